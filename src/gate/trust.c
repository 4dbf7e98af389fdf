/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bundle is read early, while there are files, and taken apart late: it
 * has more than a hundred certificates, and most boxes look into nothing.
 * Without any bundle nobody is believed.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/io.h"
#include "base/util.h"
#include "gate/inspect.h"
#include "gate/trust.h"

#define BUNDLE_MAX   (4U << 20)
#define BUNDLE_CERTS 4096

/* Where distributions keep it. */
static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/cert.pem",
};

static struct {
	char *pem; /* not taken apart yet */
	size_t len;
	bool is_machine; /* the machine's own; cannot be read a second time */
	SSL_CTX *ctx;
} trust;

static int open_bundle(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(bundles); i++) {
		int fd = open(bundles[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			return fd;
	}
	return NO_FD;
}

static int read_machine(struct err *err)
{
	_cleanup_fd_ int fd = open_bundle();
	char *pem;
	ssize_t n;

	if (fd < 0)
		return 0;
	pem = malloc(BUNDLE_MAX);
	if (!pem)
		return err_set(err, ENOMEM, "read the machine's authorities");
	n = io_read_full(fd, pem, BUNDLE_MAX);
	if (n < 0 || n == BUNDLE_MAX) {
		free(pem);
		return err_set(err, EIO, "read the machine's authorities");
	}
	trust.pem = realloc(pem, (size_t)n + 1);
	if (!trust.pem)
		trust.pem = pem;
	trust.len = (size_t)n;
	return 0;
}

int trust_init(const char *pem, size_t len, struct err *err)
{
	if (len == 0 && trust.is_machine)
		return 0;
	SSL_CTX_free(trust.ctx);
	free(trust.pem);
	trust.ctx = NULL;
	trust.pem = NULL;
	trust.len = 0;
	trust.is_machine = len == 0;
	if (len == 0)
		return read_machine(err);
	if (len > BUNDLE_MAX)
		return err_set(err, E2BIG,
			       "the bundle of authorities is "
			       "larger than 4m");
	trust.pem = malloc(len);
	if (!trust.pem)
		return err_set(err, ENOMEM, "read the bundle of authorities");
	memcpy(trust.pem, pem, len);
	trust.len = len;
	return 0;
}

/* Certificates that cannot be read are left out: others still count. */
static void fill_store(X509_STORE *store)
{
	BIO *bio = trust.len > 0 ? BIO_new_mem_buf(trust.pem, (int)trust.len)
				 : NULL;

	for (int i = 0; bio && i < BUNDLE_CERTS; i++) {
		X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);

		if (cert)
			(void)X509_STORE_add_cert(store, cert);
		else if (ERR_GET_REASON(ERR_peek_last_error()) ==
			 PEM_R_NO_START_LINE)
			break; /* the end */
		X509_free(cert);
		ERR_clear_error();
	}
	BIO_free(bio);
	ERR_clear_error();
}

static SSL_CTX *make_ctx(void)
{
	static const unsigned char h1[] = "\x08http/1.1";
	SSL_CTX *ctx;

	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL))
		return NULL;
	ctx = SSL_CTX_new(TLS_client_method());
	if (!ctx)
		return NULL;
	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION |
					       SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_set_alpn_protos(ctx, h1, sizeof(h1) - 1) != 0) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	fill_store(SSL_CTX_get_cert_store(ctx));
	return ctx;
}

static int ask_for(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *p = SSL_get0_param(ssl);
	unsigned char any[16];

	if (inet_pton(AF_INET, host, any) == 1 ||
	    inet_pton(AF_INET6, host, any) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(p, host);
	X509_VERIFY_PARAM_set_hostflags(p,
					X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set_tlsext_host_name(ssl, host) == 1 &&
	       SSL_set1_host(ssl, host) == 1;
}

SSL *trust_new(const char *host)
{
	SSL *ssl;

	if (!trust.ctx)
		trust.ctx = make_ctx();
	ssl = trust.ctx ? SSL_new(trust.ctx) : NULL;
	if (ssl && ask_for(ssl, host))
		return ssl;
	SSL_free(ssl);
	ERR_clear_error();
	return NULL;
}

const char *trust_complaint(const SSL *ssl)
{
	long r = SSL_get_verify_result(ssl);

	if (r == X509_V_OK)
		return NULL;
	return trust.len == 0 ? "this machine has no bundle of authorities"
			      : X509_verify_cert_error_string(r);
}
