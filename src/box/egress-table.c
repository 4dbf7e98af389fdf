/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: rows are made in the order in which the gate looks at
 * them, rules that ask first. Where the request names hosts, each rule of the
 * policy is cut down to what the request names too, so that a narrower rule
 * that stands before a wider one still decides for its own hosts. Pieces of
 * one rule share its quotas evenly; together they never have more than it.
 */

#include "box/egress-table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/util.h"
#include "policy/network.h"
#include "policy/values.h"

#define MAX_BUNDLE  (2U << 20)
#define CONNECTIONS 256
#define ASK_WAIT_MS 60000

_Static_assert(POLICY_MAX_HOSTS <= GATE_MAX_RULES &&
		       POLICY_MAX_PORTS <= GATE_MAX_PORTS &&
		       POLICY_MAX_RESOLVE <= GATE_MAX_RESOLVE &&
		       POLICY_MAX_WORDS <= GATE_MAX_WORDS,
	       "what a policy may say, a gate has room for");

/* What the request names: HOST:PORT, and for a secret its name. */
struct want {
	char host[256];
	uint16_t port;
	char secret[256]; /* "": none */
};

struct writer {
	struct gate_table *t;
	struct buf pool;
	struct egress_table *ret;
	const struct cordon_spec *spec;
	const struct strv *env; /* placeholders of the table before, or NULL */
	struct want *wants;
	size_t n_wants;
	struct err *err;
};

static int no_room(struct writer *w, const char *what)
{
	return err_set(w->err, E2BIG, "%s for one box", what);
}

/* ---- strings ---- */

static uint32_t put_bytes(struct writer *w, const void *data, size_t len)
{
	uint32_t off = (uint32_t)(sizeof(*w->t) + w->pool.len);

	(void)buf_add(&w->pool, data, len);
	return off;
}

static uint32_t put_string(struct writer *w, const char *text)
{
	return text ? put_bytes(w, text, strlen(text) + 1) : 0;
}

static struct gate_vec put_vec(struct writer *w, const struct policy_list *l)
{
	struct gate_vec v = { .count = (uint32_t)l->n };

	for (size_t i = 0; i < l->n; i++) {
		uint32_t off = put_string(w, l->v[i]);

		v.off = i ? v.off : off;
	}
	return v;
}

/*
 * Of a pool that is still growing, so not for long. Where it could not grow,
 * what was to be put there is not: make() looks at that in the end.
 */
static const char *get_string(const struct writer *w, uint32_t off)
{
	return off && !w->pool.error ? w->pool.data + (off - sizeof(*w->t))
				     : "";
}

/* ---- rows ---- */

static int add_port(struct writer *w, struct gate_rule *r, uint16_t port)
{
	struct gate_table *t = w->t;
	uint32_t at = 0;

	for (size_t i = 0; i < r->n_ports; i++)
		if (r->ports[i] == port)
			return 0;
	while (at < t->n_ports && t->ports[at] < port)
		at++;
	if (at == t->n_ports || t->ports[at] != port) {
		if (t->n_ports == GATE_MAX_PORTS)
			return no_room(w, "more than 32 different ports");
		memmove(&t->ports[at + 1], &t->ports[at],
			(t->n_ports - at) * sizeof(t->ports[0]));
		t->ports[at] = port;
		t->n_ports++;
	}
	r->ports[r->n_ports++] = port;
	return 0;
}

static void add_block(struct writer *w, const struct gate_rule *r)
{
	struct egress_block *b = &w->ret->blocks[w->ret->n_blocks++];

	memcpy(b->address, r->address, sizeof(b->address));
	b->bits = r->bits;
}

static void clear_below(uint8_t address[16], unsigned int bits)
{
	for (unsigned int i = bits; i < 128; i++)
		address[i / 8] &= (uint8_t) ~(0x80U >> i % 8);
}

/* A row for a host; NULL and an error if there is no room. */
static struct gate_rule *add_row(struct writer *w, const char *host)
{
	struct gate_rule *r = &w->t->rules[w->t->n_rules];
	unsigned int bits;
	char name[256];

	if (w->t->n_rules == GATE_MAX_RULES) {
		(void)no_room(w, "more than 256 rules");
		return NULL;
	}
	if (value_cidr(host, r->address, &bits) == 0) {
		r->kind = GATE_ADDRESS;
		r->bits = (uint8_t)bits;
		clear_below(r->address, bits);
		r->host = put_string(w, host);
		add_block(w, r);
	} else {
		bool is_below = strncmp(host, "*.", 2) == 0;

		if (value_host_name(host + (is_below ? 2 : 0), name,
				    sizeof(name)) < 0) {
			(void)err_set(w->err, EINVAL, "'%s' is not a host",
				      host);
			return NULL;
		}
		r->kind = is_below ? GATE_BELOW : GATE_NAME;
		r->host = put_string(w, name);
	}
	w->t->n_rules++;
	return r;
}

/* ---- secrets ---- */

/* The one that the box has already; false: it has none of that name. */
static bool old_placeholder(const struct writer *w, const char *name,
			    char ret[64])
{
	size_t len = strlen(name);

	for (size_t i = 0; w->env && i < w->env->n; i++) {
		const char *have = w->env->v[i];

		if (strncmp(have, name, len) != 0 || have[len] != '=')
			continue;
		(void)snprintf(ret, 64, "%s", have + len + 1);
		return true;
	}
	return false;
}

/* Letters and digits: the same in a header, a query, a form and in JSON. */
static int make_placeholder(const struct writer *w, const char *name,
			    char ret[64], struct err *err)
{
	unsigned char raw[16];
	int n = snprintf(ret, 64, "cordon_secret_");

	if (old_placeholder(w, name, ret))
		return 0;
	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return err_errno(err, errno, "make a placeholder");
	for (size_t i = 0; i < sizeof(raw); i++)
		(void)snprintf(ret + n + 2 * i, 3, "%02x", raw[i]);
	return 0;
}

static int check_value(const char *name, const char *value, struct err *err)
{
	if (!*value)
		return err_set(err, EINVAL, "secret '%s' is empty", name);
	if (strlen(value) > GATE_MAX_SECRET)
		return err_set(err, E2BIG,
			       "secret '%s' is longer than %d bytes, the most "
			       "that is put into a request",
			       name, GATE_MAX_SECRET);
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return err_set(err, EINVAL,
				       "secret '%s' has a line break or "
				       "another control character, which no "
				       "header may have",
				       name);
	return 0;
}

static int add_note(struct writer *w, const char *text)
{
	return strv_add(&w->ret->notes, text) < 0
		       ? err_set(w->err, ENOMEM, "out of memory")
		       : 0;
}

/* It would be found in what is none; whoever relies on that is told. */
static int note_short(struct writer *w, const char *name, const char *value)
{
	char text[300];

	if (strlen(value) >= GATE_MIN_COVERED)
		return 0;
	(void)snprintf(text, sizeof(text),
		       "secret '%.200s' is shorter than %d bytes: it is not "
		       "covered in answers",
		       name, GATE_MIN_COVERED);
	return add_note(w, text);
}

/* One variable has one placeholder, for however many hosts. */
static const struct gate_rule *same_secret(const struct writer *w,
					   const struct gate_rule *r,
					   const char *name)
{
	for (const struct gate_rule *at = w->t->rules; at < r; at++)
		if (at->name && strcmp(get_string(w, at->name), name) == 0)
			return at;
	return NULL;
}

static int add_secret(struct writer *w, struct gate_rule *r, const char *name,
		      const char *value)
{
	const struct gate_rule *have = same_secret(w, r, name);
	_cleanup_free_ char *text = NULL;
	char placeholder[64];

	r->flags |= GATE_RULE_INSPECT;
	if (have) {
		r->placeholder = have->placeholder;
		r->value = have->value;
		r->name = have->name;
		return 0;
	}
	if (check_value(name, value, w->err) < 0 ||
	    note_short(w, name, value) < 0 ||
	    make_placeholder(w, name, placeholder, w->err) < 0)
		return -w->err->code;
	r->placeholder = put_string(w, placeholder);
	r->value = put_string(w, value);
	r->name = put_string(w, name);
	if (asprintf(&text, "%s=%s", name, placeholder) < 0) {
		text = NULL;
		return err_set(w->err, ENOMEM, "out of memory");
	}
	return strv_add(&w->ret->env, text) < 0
		       ? err_set(w->err, ENOMEM, "out of memory")
		       : 0;
}

/* A policy is for many; that one of them has no such variable is told. */
static int note_missing(struct writer *w, const struct policy_host *h)
{
	char text[600];

	(void)snprintf(text, sizeof(text),
		       "secret '%.200s' for '%.200s' (%.100s:%u) is not in the "
		       "environment: nothing is sent",
		       h->secret_env, h->host, h->at.file, h->at.line);
	return add_note(w, text);
}

/* Of a daemon's request: what was set aside for this, and nothing else. */
static const char *value_of(const struct writer *w, const char *name)
{
	size_t len = strlen(name);

	if (!w->spec->is_served)
		return getenv(name);
	for (size_t i = 0;
	     w->spec->secret_values && i < w->spec->secret_values->n; i++) {
		const char *have = w->spec->secret_values->v[i];

		if (strncmp(have, name, len) == 0 && have[len] == '=')
			return have + len + 1;
	}
	return NULL;
}

static int add_policy_secret(struct writer *w, struct gate_rule *r,
			     const struct policy_host *h)
{
	const char *value = value_of(w, h->secret_env);

	if (!value)
		return note_missing(w, h);
	if (add_secret(w, r, h->secret_env, value) < 0)
		return -w->err->code;
	r->header = put_string(w, h->secret_header);
	r->format = put_string(w, h->secret_format);
	r->query = put_string(w, h->secret_query);
	r->body = put_string(w, h->secret_body);
	return 0;
}

/* ---- with a policy ---- */

/* The row of one host among the pieces of a rule, if there is one yet. */
static struct gate_rule *find_piece(struct writer *w, uint32_t first,
				    const char *host)
{
	bool is_below = strncmp(host, "*.", 2) == 0;
	const char *plain = host + (is_below ? 2 : 0);

	for (uint32_t i = first; i < w->t->n_rules; i++) {
		struct gate_rule *r = &w->t->rules[i];

		if ((r->kind == GATE_BELOW) == is_below &&
		    strcasecmp(get_string(w, r->host), plain) == 0)
			return r;
	}
	return NULL;
}

static bool rule_has_port(const struct policy_host *h, uint16_t port)
{
	for (size_t i = 0; i < h->n_ports; i++)
		if (h->ports[i] == port)
			return true;
	return false;
}

static int fill_piece(struct writer *w, struct gate_rule *r,
		      const struct policy_host *h, bool asks)
{
	char said[300];

	(void)snprintf(said, sizeof(said), "%s:%u", h->at.file, h->at.line);
	r->flags = asks ? GATE_RULE_ASK : 0;
	r->said = put_string(w, said);
	r->methods = put_vec(w, &h->methods);
	r->paths = put_vec(w, &h->paths);
	if (h->methods.is_stated)
		r->flags |= GATE_RULE_INSPECT | GATE_RULE_METHODS;
	if (h->paths.is_stated)
		r->flags |= GATE_RULE_INSPECT | GATE_RULE_PATHS;
	if (h->has_bytes)
		r->flags |= GATE_RULE_BYTES;
	return h->secret_env ? add_policy_secret(w, r, h) : 0;
}

static int add_piece(struct writer *w, const struct policy_host *h,
		     uint32_t first, const char *host, uint16_t port, bool asks)
{
	struct gate_rule *r = find_piece(w, first, host);

	if (!r) {
		r = add_row(w, host);
		if (!r || fill_piece(w, r, h, asks) < 0)
			return -w->err->code;
	}
	return port ? add_port(w, r, port) : 0;
}

/* Cut down to one host that the request names; it may be all of it. */
static int narrow(struct writer *w, const struct policy_host *h, uint32_t first,
		  const struct want *want, bool asks)
{
	if (!rule_has_port(h, want->port))
		return 0;
	/* All that the request names here was asked about before the run. */
	if (network_covers(h->host, want->host))
		return add_piece(w, h, first, want->host, want->port, false);
	if (network_covers(want->host, h->host))
		return add_piece(w, h, first, h->host, want->port, asks);
	return 0;
}

/* What earlier gates of the box have left of a rule's bytes. */
static uint64_t bytes_left(const struct writer *w, const struct policy_host *h)
{
	const struct strv *used = &w->spec->gate_used;
	uint64_t left = h->bytes;
	char said[300];

	(void)snprintf(said, sizeof(said), "%s:%u", h->at.file, h->at.line);
	for (size_t i = 0; i < used->n; i++) {
		char *rule = NULL;
		unsigned long long n = strtoull(used->v[i], &rule, 10);

		if (*rule == ' ' && strcmp(rule + 1, said) == 0)
			left -= MIN(left, n);
	}
	return left;
}

static uint64_t share(uint64_t quota, uint32_t pieces)
{
	return quota == 0 ? 0 : MAX(quota / pieces, 1U);
}

/* A share below one is one in a longer time. */
static void share_rate(struct gate_rule *r, const struct policy_host *h,
		       uint32_t pieces)
{
	if (h->rate == 0)
		return;
	r->rate = (uint32_t)share(h->rate, pieces);
	r->rate_seconds = h->rate_seconds;
	if (h->rate < pieces)
		r->rate_seconds *= (uint32_t)((pieces + h->rate - 1) / h->rate);
}

static int add_rule(struct writer *w, const struct policy_host *h, bool asks)
{
	uint32_t first = w->t->n_rules;
	uint32_t n;

	for (size_t i = 0; i < w->n_wants; i++)
		if (narrow(w, h, first, &w->wants[i], asks) < 0)
			return -w->err->code;
	for (size_t i = 0; w->n_wants == 0 && i < h->n_ports; i++)
		if (add_piece(w, h, first, h->host, h->ports[i], asks) < 0)
			return -w->err->code;
	n = w->t->n_rules - first;
	for (uint32_t i = first; i < w->t->n_rules; i++) {
		struct gate_rule *r = &w->t->rules[i];

		r->bytes = share(bytes_left(w, h), n);
		r->connections = (uint32_t)share(h->connections, n);
		share_rate(r, h, n);
	}
	return 0;
}

static int add_policy(struct writer *w, const struct policy *p)
{
	for (size_t i = 0; i < p->n_ask_hosts; i++)
		if (add_rule(w, &p->ask_hosts[i], true) < 0)
			return -w->err->code;
	for (size_t i = 0; i < p->n_allow_hosts; i++)
		if (add_rule(w, &p->allow_hosts[i], false) < 0)
			return -w->err->code;
	return 0;
}

static int add_resolve(struct writer *w, const struct policy *p)
{
	for (size_t i = 0; i < p->n_resolve; i++) {
		struct gate_resolve *r = &w->t->resolve[w->t->n_resolve];
		char host[256];

		if (w->t->n_resolve == GATE_MAX_RESOLVE)
			return no_room(w, "more than 64 names to resolve");
		if (value_target(p->resolve[i].value, host, &r->to_port) < 0 ||
		    value_address(host, r->address) < 0 ||
		    value_target(p->resolve[i].name, host, &r->port) < 0)
			return err_set(w->err, EINVAL,
				       "network.resolve: '%s' cannot be read",
				       p->resolve[i].name);
		r->host = put_string(w, host);
		w->t->n_resolve++;
	}
	return 0;
}

/* ---- without one ---- */

static int add_wanted_secret(struct writer *w, struct gate_rule *r,
			     const char *name)
{
	const char *value = value_of(w, name);

	if (!value)
		return err_set(w->err, EINVAL,
			       "secret '%s' is not in the environment", name);
	if (add_secret(w, r, name, value) < 0)
		return -w->err->code;
	r->header = put_string(w, "*");
	return 0;
}

static bool row_has_port(const struct gate_rule *r, uint16_t port)
{
	for (size_t i = 0; i < r->n_ports; i++)
		if (r->ports[i] == port)
			return true;
	return false;
}

/*
 * Secrets first, each with a row of its own: a second secret for a host is a
 * second row. So is a plain --allow-host of the same host: the ports that it
 * names were not named for the secret, and port 80 would send it in clear.
 */
static int add_wanted(struct writer *w, const struct want *want)
{
	bool is_secret = want->secret[0] != '\0';
	uint32_t first = 0;
	struct gate_rule *r = NULL;

	while (!is_secret && (r = find_piece(w, first, want->host))) {
		if (row_has_port(r, want->port))
			return 0;
		if (!r->placeholder)
			break;
		first = (uint32_t)(r - w->t->rules) + 1;
	}
	if (!r) {
		r = add_row(w, want->host);
		if (!r)
			return -w->err->code;
		r->said = put_string(w,
				     is_secret ? "--secret" : "--allow-host");
		if (is_secret && add_wanted_secret(w, r, want->secret) < 0)
			return -w->err->code;
	}
	return add_port(w, r, want->port);
}

/* ---- the whole ---- */

static int read_wants(struct writer *w, const struct cordon_spec *s)
{
	size_t n = s->allow_hosts.n + s->secrets.n;

	w->wants = calloc(n + 1, sizeof(*w->wants));
	if (!w->wants)
		return err_set(w->err, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		struct want *want = &w->wants[w->n_wants++];
		bool is_secret = i < s->secrets.n;
		const char *text = is_secret
					   ? s->secrets.v[i]
					   : s->allow_hosts.v[i - s->secrets.n];
		const char *at = is_secret ? strchr(text, '@') : NULL;

		if (at)
			(void)snprintf(want->secret, sizeof(want->secret),
				       "%.*s", (int)(at - text), text);
		if (value_target(at ? at + 1 : text, want->host, &want->port) <
			    0 ||
		    want->port == 0)
			return err_set(w->err, EINVAL, "'%s' is not HOST:PORT",
				       text);
	}
	return 0;
}

/* Whom to trust upstream, where TLS is opened: a file that was named. */
static int add_bundle(struct writer *w, const struct policy *p)
{
	const char *file = p && p->ca.text ? p->ca.text
					   : getenv("SSL_CERT_FILE");
	_cleanup_fd_ int fd = NO_FD;
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	if (!file || !*file || !w->ret->inspects)
		return 0;
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(w->err, errno, "authorities '%s'", file);
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_BUNDLE)
		return err_set(w->err, EINVAL,
			       "authorities '%s': not a file of at most 2 MiB",
			       file);
	text = calloc(1, (size_t)st.st_size + 1);
	if (!text)
		return err_set(w->err, ENOMEM, "out of memory");
	n = io_read_full(fd, text, (size_t)st.st_size);
	if (n < 0)
		return err_errno(w->err, (int)-n, "authorities '%s'", file);
	if (!strstr(text, "-----BEGIN CERTIFICATE-----"))
		return err_set(w->err, EINVAL,
			       "authorities '%s': no certificate in it", file);
	w->t->ca_bundle = put_bytes(w, text, (size_t)n + 1);
	w->t->ca_bundle_len = (uint32_t)n;
	return 0;
}

static int fill(struct writer *w, const struct policy *p,
		const struct cordon_spec *s)
{
	if (read_wants(w, s) < 0)
		return -w->err->code;
	if (p && (add_policy(w, p) < 0 || add_resolve(w, p) < 0))
		return -w->err->code;
	for (size_t i = 0; !p && i < w->n_wants; i++)
		if (add_wanted(w, &w->wants[i]) < 0)
			return -w->err->code;
	for (uint32_t i = 0; i < w->t->n_rules; i++)
		w->ret->inspects |= w->t->rules[i].flags & GATE_RULE_INSPECT;
	return add_bundle(w, p);
}

static int write_out(struct writer *w)
{
	_cleanup_fd_ int fd = memfd_create("cordon-egress",
					   MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return err_errno(w->err, errno, "make a memfd");
	r = io_write_all(fd, w->t, sizeof(*w->t));
	if (r == 0)
		r = io_write_all(fd, w->pool.data, w->pool.len);
	if (r == 0)
		r = io_seal(fd);
	if (r < 0)
		return err_errno(w->err, -r, "write the gate's table");
	w->ret->fd = take_fd(&fd);
	return 0;
}

/* For us: what is not for the gate alone. */
static int keep_copy(struct writer *w)
{
	struct gate_table *t = malloc(w->t->size);

	if (!t)
		return err_set(w->err, ENOMEM, "out of memory");
	memcpy(t, w->t, sizeof(*t));
	memcpy(t + 1, w->pool.data, w->pool.len);
	for (uint32_t i = 0; i < t->n_rules; i++) {
		uint32_t off = w->t->rules[i].value;

		if (off)
			explicit_bzero((char *)t + off,
				       strlen(get_string(w, off)));
		t->rules[i].value = 0;
	}
	w->ret->table = t;
	return 0;
}

static int make(struct writer *w, const struct policy *p,
		const struct cordon_spec *s, const char *run)
{
	struct gate_table *t = w->t;
	int r = fill(w, p, s);

	if (r < 0)
		return r;
	t->box = put_string(w, run ? run : "");
	t->ask_wait_ms = p && p->ask_wait.is_stated
				 ? (uint32_t)(p->ask_wait.value / 1000)
				 : ASK_WAIT_MS;
	t->connections = p && p->connections.is_stated
				 ? (uint32_t)p->connections.value
				 : CONNECTIONS;
	t->magic = GATE_TABLE_MAGIC;
	t->size = (uint32_t)(sizeof(*t) + w->pool.len);
	if (w->pool.error)
		return err_set(w->err, -w->pool.error,
			       "the gate's table cannot be written");
	/* A daemon's front hears the gate, and is not to be obeyed by it. */
	t->is_final = s->is_served;
	r = write_out(w);
	return r < 0 ? r : keep_copy(w);
}

int egress_table_make(const struct policy *p, const struct cordon_spec *s,
		      const char *run, const struct egress_table *before,
		      struct egress_table *ret, struct err *err)
{
	struct writer w = { .ret = ret,
			    .spec = s,
			    .env = before ? &before->env : NULL,
			    .err = err };
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->fd = NO_FD;
	w.t = calloc(1, sizeof(*w.t));
	if (!w.t)
		return err_set(err, ENOMEM, "out of memory");
	buf_init(&w.pool, GATE_MAX_TABLE - sizeof(*w.t));
	r = make(&w, p, s, run);
	if (w.pool.data)
		explicit_bzero(w.pool.data, w.pool.len);
	buf_done(&w.pool);
	free(w.wants);
	free(w.t);
	if (r < 0)
		egress_table_done(ret);
	return r;
}

void egress_table_done(struct egress_table *t)
{
	fd_close(&t->fd);
	free(t->table);
	strv_done(&t->env);
	strv_done(&t->notes);
	memset(t, 0, sizeof(*t));
	t->fd = NO_FD;
}

bool egress_is_wanted(const struct policy *p, const struct cordon_spec *s)
{
	if (s->no_network)
		return false;
	return s->allow_hosts.n > 0 || s->secrets.n > 0 ||
	       (p && p->n_allow_hosts + p->n_ask_hosts > 0);
}

int egress_table_hosts(const struct egress_table *t, struct strv *ret)
{
	for (uint32_t i = 0; i < t->table->n_rules; i++) {
		const struct gate_rule *r = &t->table->rules[i];
		const char *host = gate_str(t->table, r->host);
		bool has_colons = strchr(host, ':') != NULL;

		for (size_t k = 0; k < r->n_ports; k++) {
			char text[300];

			(void)snprintf(text, sizeof(text), "%s%s%s%s:%u",
				       r->kind == GATE_BELOW ? "*." : "",
				       has_colons ? "[" : "", host,
				       has_colons ? "]" : "", r->ports[k]);
			if (strv_add(ret, text) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}
