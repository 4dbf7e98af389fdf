/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A box's end, a gate and a server in one process: the gate's loop and the
 * server are threads, and the test is the box. They are joined by pairs of
 * sockets; nothing leaves the process.
 */

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/util.h"
#include "gate-rules.h"
#include "gate/inspect-parts.h"
#include "gate/inspect.h"
#include "tap.h"

#define HOST       "api.test"
#define EVENTS_MAX 16
#define GOT_MAX    (1 << 20)
/* The longest that anybody waits here: before the test itself is killed. */
#define LAB_WAIT_S 25

/* an authority of the test's own, and a server's certificate */

struct test_ca {
	EVP_PKEY *key;
	X509 *cert;
	EVP_PKEY *server_key;
	X509 *server;
	char *pem;
	size_t pem_len;
};

static void lab_ext(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	if (!e || !X509_add_ext(cert, e, -1))
		abort();
	X509_EXTENSION_free(e);
}

static X509 *lab_cert(const char *name, EVP_PKEY *key, X509 *issuer,
		      EVP_PKEY *issuer_key)
{
	X509 *cert = X509_new();
	X509_NAME *subject = X509_get_subject_name(cert);
	char san[300];

	(void)X509_set_version(cert, X509_VERSION_3);
	(void)ASN1_INTEGER_set(X509_get_serialNumber(cert), issuer ? 2 : 1);
	(void)X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	(void)X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	(void)X509_set_pubkey(cert, key);
	(void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
					 (const unsigned char *)name, -1, -1,
					 0);
	(void)X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer)
						: subject);
	(void)snprintf(san, sizeof(san), "DNS:%s", name);
	if (issuer)
		lab_ext(cert, issuer, NID_subject_alt_name, san);
	else
		lab_ext(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
	if (!X509_sign(cert, issuer_key ? issuer_key : key, EVP_sha256()))
		abort();
	return cert;
}

static struct test_ca *lab_ca(const char *server_name)
{
	struct test_ca *ca = calloc(1, sizeof(*ca));
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;

	ca->key = EVP_EC_gen("P-256");
	ca->cert = lab_cert("test authority", ca->key, NULL, NULL);
	ca->server_key = EVP_EC_gen("P-256");
	ca->server = lab_cert(server_name, ca->server_key, ca->cert, ca->key);
	(void)PEM_write_bio_X509(bio, ca->cert);
	ca->pem_len = (size_t)BIO_get_mem_data(bio, &text);
	ca->pem = strndup(text, ca->pem_len);
	BIO_free(bio);
	return ca;
}

/* a stream, with TLS or not, that waits */

struct stream {
	int fd;
	SSL *ssl;
};

static ssize_t stream_read(struct stream *s, void *data, size_t len)
{
	return s->ssl ? SSL_read(s->ssl, data, (int)len)
		      : recv(s->fd, data, len, 0);
}

static bool stream_write(struct stream *s, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = s->ssl ? SSL_write(s->ssl, p, (int)len)
				   : send(s->fd, p, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* the laboratory */

struct lab {
	bool is_plain;
	uint16_t port;
	bool is_local;             /* 127.0.0.1 was reached */
	const char *sni;           /* what the box asks for; default HOST */
	const unsigned char *alpn; /* what the box offers */
	size_t n_alpn;
	const char *server_name; /* what its certificate is for */
	bool is_untrusted;       /* nobody trusts the test's authority */
	const char *early;       /* plain: was read before */

	/* the server: after each request, the next of these */
	const char *answers[8];
	bool is_echo;     /* answers with the request itself */
	bool is_counting; /* forgets bodies, and counts them */
	size_t n_stream;  /* sends so many bytes more, after the answer */
	size_t quota;     /* so many bytes may move; 0: any number */
	bool is_leaving;  /* after the last answer */
	void (*serve)(struct lab *l);  /* instead, after the first answer */
	void (*before)(struct lab *l); /* first of all in the gate's thread */
	void (*after)(struct lab *l);  /* last; the beginning may fail then */

	struct gate_table *table;
	struct test_ca *ca;
	struct inspection *inspection;
	uv_loop_t loop;
	uv_async_t wake;
	/* To be done in the gate's thread, which then sets it to NULL. */
	void (*_Atomic errand)(struct lab *l);
	pthread_t gate, server;
	int box_fd, up_fd; /* the gate's ends */
	struct stream box, far;

	/* what came of it */
	char *got; /* all that the server was sent */
	size_t n_got, n_counted;
	char server_sni[256];
	bool is_server_shaken;
	unsigned int n_events;
	struct gate_event events[EVENTS_MAX];
	struct gate_event over;
	atomic_bool is_over;
	size_t n_moved;
	char text[1 << 18]; /* what the box read last */
};

static struct lab *new_lab(const struct lab *like)
{
	struct lab *l = malloc(sizeof(*l));

	*l = *like;
	return l;
}

#define LAB(...) new_lab(&(struct lab){ __VA_ARGS__ })

/* the server */

static bool is_request_whole(const char *text, size_t len, size_t *head)
{
	char *end = memmem(text, len, "\r\n\r\n", 4), *p;

	if (!end)
		return false;
	*head = (size_t)(end - text) + 4;
	p = strcasestr(text, "\ncontent-length: ");
	if (p && p < end)
		return len - *head >= strtoul(p + 17, NULL, 10);
	p = strcasestr(text, "\ntransfer-encoding: chunked");
	if (p && p < end)
		return len - *head >= 5 &&
		       memcmp(text + len - 5, "0\r\n\r\n", 5) == 0;
	return true;
}

static size_t body_wanted(const char *head)
{
	const char *p = strcasestr(head, "\ncontent-length: ");

	return p ? strtoul(p + 17, NULL, 10) : 0;
}

/* One request, or its head if the answer is not the last one to it. */
static bool serve_read(struct lab *l, size_t start, bool is_interim)
{
	size_t head = 0;

	for (;;) {
		ssize_t n;

		l->got[l->n_got] = '\0';
		if (is_request_whole(l->got + start, l->n_got - start, &head))
			return true;
		if (head > 0 && is_interim)
			return true;
		if (head > 0 && l->is_counting) {
			l->n_counted += l->n_got - start - head;
			l->n_got = start + head;
			l->got[l->n_got] = '\0';
			if (l->n_counted >= body_wanted(l->got + start))
				return true;
		}
		n = stream_read(&l->far, l->got + l->n_got,
				GOT_MAX - 1 - l->n_got);
		if (n <= 0)
			return false;
		l->n_got += (size_t)n;
	}
}

static bool serve_answer(struct lab *l, size_t start, unsigned int i)
{
	static char block[65536];
	char head[128];

	if (l->is_echo) {
		(void)snprintf(head, sizeof(head),
			       "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
			       l->n_got - start);
		return stream_write(&l->far, head, strlen(head)) &&
		       stream_write(&l->far, l->got + start, l->n_got - start);
	}
	if (!l->answers[i] ||
	    !stream_write(&l->far, l->answers[i], strlen(l->answers[i])))
		return false;
	for (size_t n = 0; n < l->n_stream; n += sizeof(block))
		if (!stream_write(&l->far, block,
				  MIN(sizeof(block), l->n_stream - n)))
			return false;
	return true;
}

static SSL *serve_tls(struct lab *l)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	SSL *ssl;

	(void)SSL_CTX_use_certificate(ctx, l->ca->server);
	(void)SSL_CTX_use_PrivateKey(ctx, l->ca->server_key);
	ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	(void)SSL_set_fd(ssl, l->far.fd);
	if (SSL_accept(ssl) != 1) {
		SSL_free(ssl);
		return NULL;
	}
	(void)snprintf(l->server_sni, sizeof(l->server_sni), "%s",
		       SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)
			       ?: "");
	return ssl;
}

static bool is_100(const char *answer)
{
	return answer && strncmp(answer, "HTTP/1.1 100", 12) == 0;
}

static void *run_server(void *arg)
{
	struct lab *l = arg;
	bool goes_on = true;
	size_t start = 0;

	if (!l->is_plain)
		l->far.ssl = serve_tls(l);
	l->is_server_shaken = l->is_plain || l->far.ssl;
	for (unsigned int i = 0; l->is_server_shaken && goes_on; i++) {
		bool is_interim = is_100(l->answers[i]);

		if (i == 0 || !is_100(l->answers[i - 1]))
			start = l->n_got;
		goes_on = serve_read(l, start, is_interim) &&
			  serve_answer(l, start, i) && !l->serve &&
			  i + 1 < ARRAY_SIZE(l->answers) &&
			  (!l->is_leaving || l->answers[i + 1]);
	}
	if (l->serve && l->is_server_shaken)
		l->serve(l);
	if (l->far.ssl)
		(void)SSL_shutdown(l->far.ssl);
	SSL_free(l->far.ssl);
	(void)close(l->far.fd);
	return NULL;
}

/* the gate */

static void on_lab_event(void *arg, const struct gate_event *e)
{
	struct lab *l = arg;

	if (l->n_events < EVENTS_MAX)
		l->events[l->n_events++] = *e;
}

static void on_lab_moved(void *arg, size_t n)
{
	((struct lab *)arg)->n_moved += n;
}

static uint64_t lab_left(void *arg)
{
	const struct lab *l = arg;

	return l->quota ? l->quota - MIN(l->quota, l->n_moved) : UINT64_MAX;
}

static void on_lab_over(void *arg, const struct gate_event *e)
{
	struct lab *l = arg;

	l->over = *e;
	l->is_over = true;
	l->inspection = NULL;
	uv_close((uv_handle_t *)&l->wake, NULL);
}

static void on_lab_wake(uv_async_t *a)
{
	struct lab *l = a->data;
	void (*errand)(struct lab * l) = l->errand;

	if (errand && l->inspection)
		errand(l);
}

static void *run_gate(void *arg)
{
	struct lab *l = arg;
	struct gate_event base = { .port = l->port, .rule = 0 };
	struct inspection_hooks hooks = { .event = on_lab_event,
					  .moved = on_lab_moved,
					  .left = lab_left,
					  .over = on_lab_over,
					  .arg = l };
	struct inspected what = {
		.loop = &l->loop,
		.table = l->table,
		.port = l->port,
		.host = HOST,
		.is_tls = !l->is_plain,
		.box = l->box_fd,
		.early = (const uint8_t *)l->early,
		.n_early = l->early ? strlen(l->early) : 0,
		.upstream = l->up_fd,
		.base = &base,
	};
	struct err err;

	(void)strcpy(base.host, HOST);
	if (l->is_local)
		memcpy(base.address, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1",
		       16);
	if (l->before)
		l->before(l);
	l->inspection = inspect_start(&what, &hooks, &err);
	if (!l->inspection && !l->after)
		abort();
	if (!l->inspection)
		on_lab_over(l, &(struct gate_event){ .kind = GATE_E_CLOSE });
	(void)uv_run(&l->loop, UV_RUN_DEFAULT);
	if (l->after)
		l->after(l);
	return NULL;
}

/* the box */

static bool box_tls(struct lab *l)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	size_t len;
	const char *pem = authority_pem(&len);
	BIO *bio = BIO_new_mem_buf(pem, (int)len);
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	const char *name = l->sni ?: HOST;

	(void)X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert);
	(void)X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx),
					  X509_V_FLAG_X509_STRICT);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	l->box.ssl = SSL_new(ctx);
	if (l->n_alpn > 0)
		(void)SSL_set_alpn_protos(l->box.ssl, l->alpn,
					  (unsigned int)l->n_alpn);
	if (*name)
		(void)SSL_set_tlsext_host_name(l->box.ssl, name);
	(void)SSL_set1_host(l->box.ssl, HOST);
	(void)SSL_set_fd(l->box.ssl, l->box.fd);
	X509_free(cert);
	BIO_free(bio);
	SSL_CTX_free(ctx);
	return SSL_connect(l->box.ssl) == 1;
}

/* Who waits longer for bytes gets none. */
static void bound_reads(int fd)
{
	const struct timeval t = { .tv_sec = LAB_WAIT_S };

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

/* Starts all of it; whether the box could shake hands. */
static bool lab_start(struct lab *l, const struct rule *rules, size_t n)
{
	int near[2], far[2];
	struct err err;

	l->port = l->port ? l->port : 443;
	l->table = rules_new(rules, n);
	l->got = calloc(1, GOT_MAX);
	l->ca = lab_ca(l->server_name ?: HOST);
	if (authority_make(&err) < 0 ||
	    trust_init(l->is_untrusted ? lab_ca(HOST)->pem : l->ca->pem,
		       l->ca->pem_len, &err) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, near) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, far) < 0)
		abort();
	l->box.fd = near[0];
	l->box_fd = near[1];
	l->up_fd = far[0];
	l->far.fd = far[1];
	bound_reads(l->box.fd);
	bound_reads(l->far.fd);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)uv_loop_init(&l->loop);
	(void)uv_async_init(&l->loop, &l->wake, on_lab_wake);
	l->wake.data = l;
	if (pthread_create(&l->gate, NULL, run_gate, l) != 0 ||
	    pthread_create(&l->server, NULL, run_server, l) != 0)
		abort();
	return l->is_plain || box_tls(l);
}

static void box_say(struct lab *l, const char *text)
{
	(void)stream_write(&l->box, text, strlen(text));
}

/* Reads until `end` was seen or nothing more comes; all that was read. */
static const char *box_hear(struct lab *l, const char *end)
{
	size_t n = 0;

	l->text[0] = '\0';
	while (!end || !strstr(l->text, end)) {
		ssize_t r = stream_read(&l->box, l->text + n,
					sizeof(l->text) - 1 - n);

		if (r < 0 && errno == EAGAIN)
			printf("# in %d s no '%s' came\n", LAB_WAIT_S,
			       end ? end : "end of the connection");
		if (r <= 0)
			break;
		n += (size_t)r;
		l->text[n] = '\0';
	}
	return l->text;
}

/* What is waited for in vain is said, with what became of the connection. */
static void lab_complain(const struct lab *l, const char *what)
{
	printf("# waited for %s; the connection %s (reason %u), %u events\n",
	       what, l->is_over ? "is over" : "goes on",
	       (unsigned int)l->over.reason, l->n_events);
	tap_bad++;
}

/*
 * Has it done in the gate's thread, again and again until it says that it is
 * done. A connection that has ended does no errands any more.
 */
static inline void lab_errand(struct lab *l, void (*errand)(struct lab *l),
			      const char *what)
{
	l->errand = errand;
	for (int n = 0; l->errand && !l->is_over && n < LAB_WAIT_S * 1000;
	     n++) {
		(void)uv_async_send(&l->wake);
		(void)usleep(1000);
	}
	if (l->errand)
		lab_complain(l, what);
}

/* A thread that does not end cannot be left behind: the test ends then. */
static void lab_join(struct lab *l, pthread_t thread, const char *what)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LAB_WAIT_S;
	if (pthread_timedjoin_np(thread, NULL, &end) == 0)
		return;
	lab_complain(l, what);
	(void)fflush(NULL);
	_exit(1);
}

/* The box leaves; everybody else has to follow. */
/* Closed with something unread, a socket says that it was broken off. */
static void box_drain(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char data[4096];

	(void)shutdown(fd, SHUT_WR);
	while (poll(&p, 1, 500) > 0 && read(fd, data, sizeof(data)) > 0)
		;
}

static void lab_end(struct lab *l)
{
	if (l->box.ssl)
		(void)SSL_shutdown(l->box.ssl);
	box_drain(l->box.fd);
	(void)close(l->box.fd);
	lab_join(l, l->gate, "the gate to end");
	lab_join(l, l->server, "the server to end");
	CHECK(l->is_over);
	CHECK_INT(l->over.kind, GATE_E_CLOSE);
	CHECK_INT(l->n_moved, l->over.sent + l->over.received);
	CHECK_INT(uv_loop_close(&l->loop), 0);
	SSL_free(l->box.ssl);
	l->got[l->n_got] = '\0';
}
