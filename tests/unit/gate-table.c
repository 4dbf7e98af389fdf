/* SPDX-License-Identifier: Apache-2.0 */

/* Which hosts a box may reach: the table a gate obeys, from policy and flags */

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/util.h"
#include "box/egress-table.h"
#include "policy/values.h"
#include "tests/tap.h"

#define HEAD                                                                   \
	"cordon-policy\t2\t0\t"                                                \
	"0000000000000000000000000000000000000000000000000000000000000000\t"   \
	"/c\nversion\t1\tc:1:1\n"

/* The linker gives us these names. NOLINTBEGIN(bugprone-reserved-identifier) */
static long calls;
static long fail_at; /* 0: never */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool is_failing(void)
{
	return ++calls == fail_at;
}

void *__wrap_malloc(size_t size)
{
	return is_failing() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return is_failing() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return is_failing() ? NULL : __real_realloc(p, size);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static struct policy *parse(const char *lines)
{
	struct err err = { 0 };
	struct policy *p;
	struct buf b;

	buf_init(&b, FLAT_MAX);
	(void)buf_puts(&b, HEAD);
	(void)buf_puts(&b, lines);
	p = policy_parse(b.data, b.len, &err);
	CHECK_STR(err.text, "");
	buf_done(&b);
	return p;
}

static struct cordon_spec *spec(const char *const *words)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error err = { 0 };

	for (; words && words[0]; words += 2)
		if (cordon_spec_set(s, words[0], words[1], &err) < 0)
			CHECK_STR(err.text, "");
	return s;
}

/* The memfd as the gate sees it. */
static const struct gate_table *see(const struct egress_table *t)
{
	struct err err = { 0 };
	struct stat st;
	void *at;

	if (fstat(t->fd, &st) < 0)
		return NULL;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, t->fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	CHECK_INT(gate_table_check(at, (size_t)st.st_size, &err), 0);
	CHECK_STR(err.text, "");
	return at;
}

static struct egress_table made;
static struct policy *policy;
static struct cordon_spec *given;

static const struct gate_table *make(const char *lines,
				     const char *const *words)
{
	struct err err = { 0 };

	(void)unsetenv("SSL_CERT_FILE");
	policy = lines ? parse(lines) : NULL;
	given = spec(words);
	CHECK(egress_is_wanted(policy, given));
	CHECK_INT(egress_table_make(policy, given, "run-1", NULL, &made, &err),
		  0);
	CHECK_STR(err.text, "");
	return see(&made);
}

static void done(void)
{
	egress_table_done(&made);
	policy_free(policy);
	cordon_spec_free(given);
	policy = NULL;
}

/* 'a', '?' or '-', and the number of the rule. */
static const char *name(const struct gate_table *t, const char *host,
			uint16_t port)
{
	static char text[32];
	struct gate_judgement j;

	gate_judge_name(t, host, port, &j);
	(void)snprintf(text, sizeof(text), "%c%d", "a?-"[j.verdict], j.rule);
	return text;
}

static const char *address(const struct gate_table *t, const char *host,
			   uint16_t port)
{
	static char text[32];
	unsigned char raw[16];
	struct gate_judgement j;

	CHECK_INT(value_address(host, raw), 0);
	gate_judge_address(t, raw, port, &j);
	(void)snprintf(text, sizeof(text), "%c%d", "a?-"[j.verdict], j.rule);
	return text;
}

#define ALLOW(i, host) "network.allow." #i ".host\t" host "\tc:4:1\n"
#define ASK(i, host)   "network.ask." #i ".host\t" host "\tc:5:1\n"
#define PORT(i, k, n)  "network.allow." #i ".ports." #k "\t" #n "\tc:4:1\n"

TEST(judge_names)
{
	const struct gate_table *t = make(
		ALLOW(0, "api.example.org") PORT(0, 0, 443) PORT(0, 1, 8443)
			ALLOW(1, "*.example.net") ALLOW(2, "*.google.internal")
				ASK(0, "ask.example.net"),
		NULL);

	if (!t)
		return;
	CHECK_INT(t->n_rules, 4);
	CHECK_INT(t->n_ports, 2);
	CHECK_INT(t->ports[0], 443);
	CHECK_INT(t->ports[1], 8443);
	CHECK_STR(name(t, "api.example.org", 443), "a1");
	CHECK_STR(name(t, "api.example.org", 8443), "a1");
	CHECK_STR(name(t, "api.example.org", 0), "a1");
	CHECK_STR(name(t, "api.example.org", 22), "--1");
	/* on the border of a label, and never the name itself (N08) */
	CHECK_STR(name(t, "example.net", 443), "--1");
	CHECK_STR(name(t, "example.net", 0), "--1");
	CHECK_STR(name(t, "a.example.net", 443), "a2");
	CHECK_STR(name(t, "a.b.example.net", 443), "a2");
	CHECK_STR(name(t, "evil-example.net", 443), "--1");
	CHECK_STR(name(t, "a.example.net.evil.test", 443), "--1");
	CHECK_STR(name(t, ".example.net", 443), "--1");
	/* what asks comes first */
	CHECK_STR(name(t, "ask.example.net", 443), "?0");
	/* never (N15) */
	CHECK_STR(name(t, "x.google.internal", 443), "a3");
	CHECK_STR(name(t, "metadata.google.internal", 443), "--1");
	CHECK_STR(gate_str(t, t->rules[1].said), "c:4");
	CHECK_STR(gate_str(t, t->box), "run-1");
	done();
}

TEST(judge_addresses)
{
	const struct gate_table *t = make(
		ALLOW(0, "10.1.2.3/16") ALLOW(1, "2001:db8::/33")
			ALLOW(2, "169.254.0.0/16") ALLOW(3, "64:ff9b::/96")
				ALLOW(4, "api.example.org"),
		NULL);

	if (!t)
		return;
	CHECK_STR(address(t, "10.1.255.255", 443), "a0");
	CHECK_STR(address(t, "10.2.0.0", 443), "--1");
	CHECK_STR(address(t, "10.1.2.3", 80), "--1");
	CHECK_STR(address(t, "10.1.2.3", 0), "--1");
	CHECK_STR(address(t, "2001:db8:7fff::1", 443), "a1");
	CHECK_STR(address(t, "2001:db8:8000::1", 443), "--1");
	CHECK_STR(address(t, "::ffff:10.1.0.1", 443), "a0");
	CHECK_STR(address(t, "::10.1.0.1", 443), "--1");
	CHECK_STR(address(t, "93.184.216.34", 443), "--1");
	/* metadata services in any wrapping, whatever a rule says */
	CHECK_STR(address(t, "169.254.1.1", 443), "a2");
	CHECK_STR(address(t, "169.254.169.254", 443), "--1");
	CHECK_STR(address(t, "64:ff9b::1.2.3.4", 443), "a3");
	CHECK_STR(address(t, "64:ff9b::a9fe:a9fe", 443), "--1");
	/* neither the other way round */
	CHECK_STR(name(t, "10.1.2.3", 443), "--1");
	CHECK_INT((long long)made.n_blocks, 4);
	CHECK_INT(made.blocks[0].bits, 96 + 16);
	CHECK_INT(made.blocks[0].address[14], 0);
	done();
}

TEST(flags_are_the_authority_without_a_policy)
{
	static const char *const words[] = { "allow-host", "api.test:443,8080",
					     "allow-host", "*.sub.test",
					     "allow-host", "[2001:db8::1]:22",
					     "allow-host", "API.test:9000",
					     NULL };
	const struct gate_table *t = make(NULL, words);
	struct strv hosts = { 0 };

	if (!t)
		return;
	CHECK_INT(t->n_rules, 3);
	CHECK_STR(name(t, "api.test", 8080), "a0");
	CHECK_STR(name(t, "api.test", 9000), "a0");
	CHECK_STR(name(t, "x.sub.test", 443), "a1");
	CHECK_STR(address(t, "2001:db8::1", 22), "a2");
	CHECK_STR(gate_str(t, t->rules[0].said), "--allow-host");
	CHECK(!made.inspects);
	CHECK_INT(egress_table_hosts(&made, &hosts), 0);
	CHECK_INT((long long)hosts.n, 5);
	CHECK_STR(hosts.v[0], "api.test:443");
	CHECK_STR(hosts.v[3], "*.sub.test:443");
	CHECK_STR(hosts.v[4], "[2001:db8::1]:22");
	strv_done(&hosts);
	done();
}

TEST(flags_narrow_a_policy)
{
	static const char *const words[] = { "allow-host", "*.a.test",
					     "allow-host", "b.test:8443",
					     "allow-host", "x.c.test",
					     NULL };
	const struct gate_table *t = make(
		ALLOW(0, "x.a.test") "network.allow.0.methods.0\tGET\tc:4:"
				     "1\n" ALLOW(1, "*.a.test") ALLOW(
					     2, "b.test") PORT(2, 0, 443)
					     PORT(2, 1,
						  8443) ALLOW(3, "other.test")
						     ALLOW(4, "10.0.0.0/8") ASK(
							     0, "*.c.test")
							     ASK(1, "y.a.test"),
		words);

	if (!t)
		return;
	/* A narrower rule keeps its say. */
	CHECK_STR(name(t, "x.a.test", 443), "a2");
	CHECK(t->rules[2].flags & GATE_RULE_INSPECT);
	CHECK_STR(name(t, "z.a.test", 443), "a3");
	CHECK_STR(name(t, "b.test", 443), "--1");
	CHECK_STR(name(t, "b.test", 8443), "a4");
	CHECK_STR(name(t, "other.test", 443), "--1");
	CHECK_STR(address(t, "10.0.0.1", 443), "--1");
	/* Named by the request, so it was asked before the run ... */
	CHECK_STR(name(t, "x.c.test", 443), "a0");
	CHECK_STR(name(t, "y.c.test", 443), "--1");
	/* ... and this was not. */
	CHECK_STR(name(t, "y.a.test", 443), "?1");
	CHECK_INT(t->n_ports, 2);
	done();
}

/* A gate that is told of a list holds it, also where nothing is in it. */
TEST(what_is_stated_is_told)
{
	static const char rules[] = "network.allow.0.host\ta.test\tc:4:1\n"
				    "network.allow.0.methods.0\tGET\tc:4:1\n"
				    "network.allow.1.host\tb.test\tc:5:1\n"
				    "network.allow.1.paths.0\t/x\tc:5:1\n"
				    "network.allow.2.host\tc.test\tc:6:1\n"
				    "network.allow.2.bytes\t1k\tc:6:1\n";
	const struct gate_table *t = make(rules, NULL);

	if (!t)
		return;
	CHECK_INT(t->rules[0].flags, GATE_RULE_INSPECT | GATE_RULE_METHODS);
	CHECK_INT(t->rules[1].flags, GATE_RULE_INSPECT | GATE_RULE_PATHS);
	CHECK_INT(t->rules[2].flags, GATE_RULE_BYTES);
	done();
}

TEST(quotas_are_shared_among_pieces)
{
	static const char *const words[] = { "allow-host", "x.a.test",
					     "allow-host", "y.a.test",
					     "allow-host", "x.a.test:80",
					     NULL };
	const struct gate_table *t = make(
		ALLOW(0, "*.a.test") PORT(0, 0, 443)
			PORT(0, 1, 80) "network.allow.0.bytes\t1k\tc:4:1\n"
				       "network.allow.0.connections\t5\tc:4:1\n"
				       "network.allow.0.rate\t1/s\tc:4:1\n",
		words);

	if (!t)
		return;
	CHECK_INT(t->n_rules, 2);
	CHECK_INT((long long)t->rules[0].bytes, 512);
	CHECK_INT(t->rules[0].connections, 2);
	/* One in two seconds: together no more than the rule has. */
	CHECK_INT(t->rules[1].rate, 1);
	CHECK_INT(t->rules[1].rate_seconds, 2);
	CHECK_STR(name(t, "x.a.test", 80), "a0");
	CHECK_STR(name(t, "y.a.test", 80), "--1");
	done();
}

/* Where an earlier gate of the box has let bytes of a rule through. */
TEST(bytes_that_were_used_stay_used)
{
	const struct gate_table *t = make(
		ALLOW(0, "a.test")
			PORT(0, 0, 443) "network.allow.0.bytes\t1k\tc:4:1\n",
		NULL);
	struct egress_table next;
	struct err err = { 0 };
	char used[600];

	if (!t)
		return;
	CHECK_INT((long long)t->rules[0].bytes, 1024);
	(void)snprintf(used, sizeof(used), "24 %s",
		       gate_str(t, t->rules[0].said));
	CHECK_INT(strv_add(&given->gate_used, "500 other:1"), 0);
	CHECK_INT(strv_add(&given->gate_used, used), 0);
	CHECK_INT(egress_table_make(policy, given, "r", NULL, &next, &err), 0);
	CHECK_INT((long long)see(&next)->rules[0].bytes, 1000);
	egress_table_done(&next);
	/* Nothing is left, and that is not the same as no quota. */
	(void)snprintf(used, sizeof(used), "5000 %s",
		       gate_str(t, t->rules[0].said));
	CHECK_INT(strv_add(&given->gate_used, used), 0);
	CHECK_INT(egress_table_make(policy, given, "r", NULL, &next, &err), 0);
	CHECK_INT((long long)see(&next)->rules[0].bytes, 0);
	CHECK(see(&next)->rules[0].flags & GATE_RULE_BYTES);
	egress_table_done(&next);
	done();
}

TEST(resolve_is_the_policys_word)
{
	const struct gate_table *t = make(
		ALLOW(0,
		      "api.test") "network.resolve.api\\.test:443\t127.0.0.1:"
				  "18443\tc:4:1\n"
				  "network.resolve.api\\.test\t[::1]\tc:5:1\n"
				  "network.ask_wait\t0\tc:5:1\n"
				  "network.connections\t9\tc:5:1\n",
		NULL);
	const struct gate_resolve *r;

	if (!t)
		return;
	CHECK_INT(t->ask_wait_ms, 0);
	CHECK_INT(t->connections, 9);
	r = gate_resolve(t, "api.test", 443);
	CHECK(r && r->to_port == 18443 && r->address[15] == 1 &&
	      r->address[12] == 127);
	r = gate_resolve(t, "api.test", 80);
	CHECK(r && r->to_port == 0 && r->address[15] == 1 &&
	      r->address[12] == 0);
	CHECK(!gate_resolve(t, "x.test", 443));
	done();
}

#define VALUE "s3cr3t-value-of-the-host"

/* Where `what` is in the bytes of the memfd, or NULL. */
static const void *find(const struct gate_table *t, const char *what)
{
	return memmem(t, t->size, what, strlen(what));
}

TEST(secrets_are_only_in_the_memfd)
{
	static const char *const words[] = {
		"secret",     "KEY@api.test",
		"secret",     "KEY@*.other.test:8443",
		"secret",     "SECOND@api.test",
		"allow-host", "api.test:80",
		NULL
	};
	const struct gate_table *t;

	(void)setenv("KEY", VALUE, 1);
	(void)setenv("SECOND", "second-value", 1);
	t = make(NULL, words);
	if (!t)
		return;
	CHECK_INT(t->n_rules, 4);
	CHECK(made.inspects);
	CHECK_INT((long long)made.notes.n, 0);
	CHECK(find(t, VALUE) != NULL);
	CHECK(memmem(made.table, made.table->size, VALUE, strlen(VALUE)) ==
	      NULL);
	CHECK_STR(gate_str(t, t->rules[0].value), VALUE);
	CHECK_INT(t->rules[0].placeholder, t->rules[1].placeholder);
	CHECK(t->rules[0].placeholder != t->rules[2].placeholder);
	CHECK_STR(gate_str(t, t->rules[0].header), "*");
	CHECK_INT((long long)made.env.n, 2);
	CHECK(strncmp(made.env.v[0], "KEY=cordon_secret_", 18) == 0);
	CHECK_STR(made.env.v[0] + 4, gate_str(t, t->rules[0].placeholder));
	/* Two rules that name one host are two secrets for it. */
	CHECK(gate_rule_names(t, 0, "api.test", 443));
	CHECK(gate_rule_names(t, 2, "api.test", 443));
	CHECK(!gate_rule_names(t, 1, "api.test", 443));
	/* A port that was named without a secret has none. */
	CHECK_STR(name(t, "api.test", 80), "a3");
	CHECK(!gate_rule_names(t, 0, "api.test", 80));
	CHECK(!gate_rule_names(t, 2, "api.test", 80));
	CHECK_INT(t->rules[3].placeholder, 0);
	CHECK_INT(t->rules[3].n_ports, 1);
	/* A table that replaces it has the box's placeholders. */
	{
		struct err err = { 0 };
		struct egress_table next;

		CHECK_INT(egress_table_make(NULL, given, "run-1", &made, &next,
					    &err),
			  0);
		CHECK_STR(next.env.v[0], made.env.v[0]);
		CHECK_STR(next.env.v[1], made.env.v[1]);
		egress_table_done(&next);
	}
	done();
}

/* What is allowed besides a secret has a row of its own, in any order. */
TEST(a_secret_goes_to_no_port_that_it_was_not_named_with)
{
	static const char *const words[] = {
		"allow-host", "api.test:80,8080", "secret", "KEY@api.test",
		"allow-host", "api.test:443",     "secret", "KEY@plain.test:80",
		"allow-host", "api.test:9000",    NULL
	};
	const struct gate_table *t;
	struct strv hosts = { 0 };

	(void)setenv("KEY", VALUE, 1);
	t = make(NULL, words);
	if (!t)
		return;
	CHECK_INT(t->n_rules, 3);
	for (uint32_t i = 0; i < t->n_rules; i++)
		CHECK_INT(t->rules[i].placeholder != 0, i < 2);
	CHECK_STR(name(t, "api.test", 443), "a0");
	CHECK_STR(name(t, "plain.test", 80), "a1");
	CHECK_STR(name(t, "api.test", 80), "a2");
	CHECK_STR(name(t, "api.test", 8080), "a2");
	CHECK_STR(name(t, "api.test", 9000), "a2");
	CHECK_STR(gate_str(t, t->rules[2].said), "--allow-host");
	CHECK_INT(egress_table_hosts(&made, &hosts), 0);
	CHECK_INT((long long)hosts.n, 5);
	strv_done(&hosts);
	done();
}

/* One limit, said where the value is read; the gate has the same. */
TEST(a_secret_has_a_longest_and_a_shortest_value)
{
	static const char *const words[] = { "secret", "KEY@api.test", NULL };
	static char value[GATE_MAX_SECRET + 2];
	struct err err = { 0 };
	struct egress_table t;

	memset(value, 'x', GATE_MAX_SECRET);
	(void)setenv("KEY", value, 1);
	CHECK(make(NULL, words) != NULL);
	CHECK_INT((long long)made.notes.n, 0);
	done();
	value[GATE_MAX_SECRET] = 'x';
	(void)setenv("KEY", value, 1);
	given = spec(words);
	CHECK_INT(egress_table_make(NULL, given, "r", NULL, &t, &err), -E2BIG);
	CHECK_HAS(err.text, "'KEY' is longer than 4096 bytes");
	cordon_spec_free(given);
	(void)setenv("KEY", "1234567", 1);
	CHECK(make(NULL, words) != NULL);
	CHECK_INT((long long)made.notes.n, 1);
	CHECK_HAS(made.notes.v[0], "'KEY' is shorter than 8 bytes");
	done();
	(void)setenv("KEY", "12345678", 1);
	CHECK(make(NULL, words) != NULL);
	CHECK_INT((long long)made.notes.n, 0);
	done();
}

TEST(secrets_of_a_policy)
{
	static const char *const lines = ALLOW(
		0,
		"api.test") "network.allow.0.secret.env\tKEY\tc:4:1\n"
			    "network.allow.0.secret.header\tAuthorization\tc:4:"
			    "1\n"
			    "network.allow.0.secret.format\tBearer {}\tc:4:1\n"
			    "network.allow.0.secret.query\tkey\tc:4:1\n";
	const struct gate_table *t;

	(void)setenv("KEY", VALUE, 1);
	t = make(lines, NULL);
	if (!t)
		return;
	CHECK_STR(gate_str(t, t->rules[0].format), "Bearer {}");
	CHECK_STR(gate_str(t, t->rules[0].query), "key");
	done();
	(void)unsetenv("KEY");
	t = make(lines, NULL);
	CHECK(t && t->rules[0].placeholder == 0);
	CHECK_INT((long long)made.notes.n, 1);
	CHECK_INT((long long)made.env.n, 0);
	done();
}

TEST(what_cannot_be_a_secret)
{
	static const char *const words[] = { "secret", "KEY@api.test", NULL };
	static const char *const bad[] = { "", "a\nb", "a\rb", "\x7f" };
	struct egress_table t;

	given = spec(words);
	for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
		struct err err = { 0 };

		if (i < ARRAY_SIZE(bad))
			(void)setenv("KEY", bad[i], 1);
		else
			(void)unsetenv("KEY");
		CHECK_INT(egress_table_make(NULL, given, "r", NULL, &t, &err),
			  -EINVAL);
		CHECK(strstr(err.text, "'KEY'") != NULL);
	}
	cordon_spec_free(given);
}

TEST(no_network)
{
	static const char *const words[] = { "network", "none", NULL };

	policy = parse(ALLOW(0, "a.test"));
	given = spec(words);
	CHECK(!egress_is_wanted(policy, given));
	cordon_spec_free(given);
	given = spec(NULL);
	CHECK(egress_is_wanted(policy, given));
	CHECK(!egress_is_wanted(NULL, given));
	policy_free(policy);
	cordon_spec_free(given);
}

/* A gate believes nothing: each of these is refused, and nothing is read. */
TEST(check_refuses)
{
	static const char *const words[] = { "secret", "KEY@api.test", NULL };
	const struct gate_table *t;
	struct gate_table *c;
	size_t size;

	(void)setenv("KEY", VALUE, 1);
	t = make(NULL, words);
	if (!t)
		return;
	size = t->size;
	c = malloc(size);
#define REFUSED(change)                                                        \
	do {                                                                   \
		struct err err = { 0 };                                        \
		memcpy(c, t, size);                                            \
		change;                                                        \
		CHECK(gate_table_check(c, size, &err) < 0);                    \
	} while (0)
	REFUSED(c->magic++);
	REFUSED(c->size--);
	REFUSED(c->n_rules = GATE_MAX_RULES + 1);
	REFUSED(c->n_rules = 2);
	REFUSED(c->n_resolve = 1);
	REFUSED(c->n_ports = GATE_MAX_PORTS + 1);
	REFUSED(c->n_ports = 0);
	REFUSED(c->ports[0] = 0);
	REFUSED(c->box = c->size);
	REFUSED(c->box = 4);
	REFUSED(c->ca_bundle_len = 1);
	REFUSED(c->ca_bundle = c->size - 2; c->ca_bundle_len = 2);
	REFUSED(c->rules[0].kind = GATE_HOST_KINDS);
	REFUSED(c->rules[0].host = 0);
	REFUSED(c->rules[0].host = c->size);
	REFUSED(c->rules[0].bits = 129);
	REFUSED(c->rules[0].n_ports = GATE_MAX_PORTS + 1);
	REFUSED(c->rules[0].ports[0] = 80);
	REFUSED(c->rules[0].methods.count = 1);
	REFUSED(c->rules[0].methods = ((struct gate_vec){ c->size - 1, 2 }));
	REFUSED(c->rules[0].methods = ((struct gate_vec){ c->box, 65 }));
	REFUSED(c->rules[0].said = UINT32_MAX);
	REFUSED(c->rules[0].value = 0);
	REFUSED(c->rules[0].name = 0);
	REFUSED(c->rules[0].format = c->rules[0].header);
	REFUSED(c->rules[0].flags = 0);
	REFUSED(((char *)c)[size - 1] = 'x');
	REFUSED(((char *)c)[c->rules[0].host] = 'A');
	REFUSED(((char *)c)[c->rules[0].value] = '\0');
	{
		struct err err = { 0 };

		CHECK(gate_table_check(t, sizeof(*t) - 1, &err) < 0);
		CHECK_INT(gate_table_check(t, size, &err), 0);
	}
	free(c);
	done();
}

TEST(memory_that_runs_out)
{
	static const char *const words[] = { "secret",     "KEY@api.test",
					     "allow-host", "a.test:80,443",
					     "allow-host", "10.0.0.0/8",
					     NULL };
	long n = 0;
	int r = -1;

	(void)setenv("KEY", VALUE, 1);
	(void)unsetenv("SSL_CERT_FILE");
	given = spec(words);
	while (r < 0 && n < 200) {
		struct err err = { 0 };
		struct egress_table t;

		calls = 0;
		fail_at = ++n;
		r = egress_table_make(NULL, given, "run-1", NULL, &t, &err);
		fail_at = 0;
		if (r == 0)
			egress_table_done(&t);
		else
			CHECK_INT(r, -ENOMEM);
	}
	CHECK(n > 5 && n < 200);
	cordon_spec_free(given);
}

TAP_MAIN()
