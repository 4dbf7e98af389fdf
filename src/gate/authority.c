/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One key for the authority, one for all that it signs: both are the gate's,
 * so a second one for each host would protect nothing. Certificates are made
 * when a host is first met, and the last few are kept.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/util.h"
#include "gate/authority.h"
#include "gate/inspect.h"

#define DAY  86400L
#define DAYS 390 /* clients refuse more than 398 */
/* Host certificates kept at the same time. */
#define KEPT 32

struct kept {
	char host[GATE_HOST_MAX];
	X509 *cert;
};

static struct {
	EVP_PKEY *key;
	X509 *cert;
	EVP_PKEY *host_key;
	SSL_CTX *ctx;
	char *pem;
	size_t pem_len;
	struct kept kept[KEPT];
	unsigned int next;
} authority;

/* certificates */

static int set_serial(X509 *cert)
{
	unsigned char bytes[16];
	BIGNUM *n;
	int ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return 0;
	bytes[0] &= 0x7f;
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return ok;
}

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *e;
	X509V3_CTX ctx;
	int ok;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = e && X509_add_ext(cert, e, -1);
	X509_EXTENSION_free(e);
	return ok;
}

/* A certificate of version 3 with times, key and names, not signed yet. */
static X509 *blank(EVP_PKEY *key, const char *name, const X509_NAME *issuer)
{
	X509 *cert = X509_new();
	X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;
	const unsigned char *text = (const unsigned char *)name;

	/* A day back: clocks inside a virtual machine may be behind. */
	if (subject && X509_set_version(cert, X509_VERSION_3) &&
	    set_serial(cert) &&
	    X509_gmtime_adj(X509_getm_notBefore(cert), -DAY) &&
	    X509_gmtime_adj(X509_getm_notAfter(cert), DAY * DAYS) &&
	    X509_set_pubkey(cert, key) &&
	    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1,
				       -1, 0) &&
	    X509_set_issuer_name(cert, issuer ? issuer : subject))
		return cert;
	X509_free(cert);
	return NULL;
}

struct extension {
	int nid;
	const char *value;
};

/* What strict verifiers (Python 3.13's among them) insist on. */
static const struct extension of_authority[] = {
	{ NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
	{ NID_key_usage, "critical,keyCertSign,cRLSign" },
	{ NID_subject_key_identifier, "hash" },
};

static const struct extension of_host[] = {
	{ NID_basic_constraints, "critical,CA:FALSE" },
	{ NID_key_usage, "critical,digitalSignature" },
	{ NID_ext_key_usage, "serverAuth" },
	{ NID_subject_key_identifier, "hash" },
	{ NID_authority_key_identifier, "keyid:always" },
};

static int add_all(X509 *cert, X509 *issuer, const struct extension *e,
		   size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (!add_extension(cert, issuer, e[k].nid, e[k].value))
			return 0;
	return 1;
}

static X509 *make_authority(EVP_PKEY *key)
{
	unsigned char id[4];
	char name[64];
	X509 *cert;

	if (RAND_bytes(id, sizeof(id)) != 1)
		return NULL;
	(void)snprintf(name, sizeof(name),
		       "Cordon, authority of one box %02x%02x%02x%02x", id[0],
		       id[1], id[2], id[3]);
	cert = blank(key, name, NULL);
	if (cert &&
	    add_all(cert, cert, of_authority, ARRAY_SIZE(of_authority)) &&
	    X509_sign(cert, key, EVP_sha256()))
		return cert;
	X509_free(cert);
	return NULL;
}

static bool is_address(const char *host)
{
	unsigned char any[16];

	return inet_pton(AF_INET, host, any) == 1 ||
	       inet_pton(AF_INET6, host, any) == 1;
}

/* The name stands in subjectAltName; a subject holds 64 characters at most. */
static X509 *make_host(const char *host)
{
	char san[GATE_HOST_MAX + 8];
	X509 *cert;

	if (strpbrk(host, ",;= \t\n"))
		return NULL; /* X509V3_EXT_conf_nid() would read more in it */
	(void)snprintf(san, sizeof(san), "%s:%s",
		       is_address(host) ? "IP" : "DNS", host);
	cert = blank(authority.host_key,
		     strlen(host) <= 64 ? host : "a host behind a cordon",
		     X509_get_subject_name(authority.cert));
	if (cert &&
	    add_all(cert, authority.cert, of_host, ARRAY_SIZE(of_host)) &&
	    add_extension(cert, authority.cert, NID_subject_alt_name, san) &&
	    X509_sign(cert, authority.key, EVP_sha256()))
		return cert;
	X509_free(cert);
	return NULL;
}

static X509 *find_host(const char *host)
{
	struct kept *k;
	X509 *cert;

	for (k = authority.kept; k < authority.kept + KEPT; k++)
		if (k->cert && strcmp(k->host, host) == 0)
			return k->cert;
	if (strlen(host) >= sizeof(k->host))
		return NULL;
	cert = make_host(host);
	if (!cert)
		return NULL;
	k = &authority.kept[authority.next++ % KEPT];
	X509_free(k->cert);
	k->cert = cert;
	(void)snprintf(k->host, sizeof(k->host), "%s", host);
	return cert;
}

int authority_dress(SSL *ssl, const char *host)
{
	X509 *cert = authority.cert ? find_host(host) : NULL;

	if (!cert || SSL_use_certificate(ssl, cert) != 1 ||
	    SSL_use_PrivateKey(ssl, authority.host_key) != 1) {
		ERR_clear_error();
		return -ENOMEM;
	}
	return 0;
}

/* our side of TLS */

/* HTTP/1.1 is what can be looked into; every client that has h2 has it too. */
static int choose_protocol(SSL *ssl, const unsigned char **out,
			   unsigned char *out_len, const unsigned char *in,
			   unsigned int in_len, void *arg)
{
	static const unsigned char h1[] = "\x08http/1.1";
	unsigned char *found;

	(void)ssl, (void)arg;
	if (SSL_select_next_proto(&found, out_len, h1, sizeof(h1) - 1, in,
				  in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = found;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_ctx(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx)
		return NULL;
	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET |
					       SSL_OP_NO_RENEGOTIATION |
					       SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	return ctx;
}

SSL_CTX *authority_ctx(void)
{
	return authority.ctx;
}

/* what others see */

static int write_pem(void)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long n;

	if (bio && PEM_write_bio_X509(bio, authority.cert)) {
		n = BIO_get_mem_data(bio, &text);
		authority.pem = n > 0 ? strndup(text, (size_t)n) : NULL;
		authority.pem_len = authority.pem ? (size_t)n : 0;
	}
	BIO_free(bio);
	return authority.pem ? 0 : -ENOMEM;
}

int authority_make(struct err *err)
{
	/* No configuration of the machine's: there is no file access here. */
	if (authority.cert)
		return 0;
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL))
		return err_set(err, ENOMEM, "start OpenSSL");
	authority.key = EVP_EC_gen("P-256");
	authority.host_key = EVP_EC_gen("P-256");
	authority.ctx = make_ctx();
	if (authority.key && authority.host_key && authority.ctx)
		authority.cert = make_authority(authority.key);
	if (!authority.cert || write_pem() < 0) {
		ERR_clear_error();
		X509_free(authority.cert);
		authority.cert = NULL;
		return err_set(err, ENOMEM, "make the box's authority");
	}
	return 0;
}

const char *authority_pem(size_t *ret_len)
{
	*ret_len = authority.pem_len;
	return authority.pem;
}

uint32_t authority_subject_hash(void)
{
	int ok = 0;
	unsigned long h;

	if (!authority.cert)
		return 0;
	h = X509_NAME_hash_ex(X509_get_subject_name(authority.cert), NULL, NULL,
			      &ok);
	return ok ? (uint32_t)h : 0;
}
