/* SPDX-License-Identifier: Apache-2.0 */

/* The flat form, and who decides: one row a case. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "policy/decide.h"
#include "policy/flat.h"
#include "policy/keys.h"
#include "policy/network.h"
#include "policy/never.h"
#include "policy/policy.h"
#include "policy/preset.h"
#include "policy/values.h"
#include "tests/tap.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD "cordon-policy\t2\t0.1.0\t" HASH "\t/p/cordon.yaml\n"
#define V1   "version\t1\tp:1:1\n"

static struct policy *parse(const char *lines, struct err *err)
{
	struct policy *p;
	struct buf b;

	buf_init(&b, FLAT_MAX);
	(void)buf_puts(&b, HEAD V1);
	(void)buf_puts(&b, lines);
	p = policy_parse(b.data, b.len, err);
	buf_done(&b);
	return p;
}

TEST(flat_good)
{
	struct err err = { 0 };
	struct policy *p = parse("sandbox.timeout\t30s\tc.yaml:9:1\n"
				 "sandbox.env.A\ta\\tb\\nc\\\\d\\re\tc:1:1\n"
				 "sandbox.env.B\t\tc:2:1\n"
				 "sandbox.writable\t[]\tc:3:1\n"
				 "network.resolve.a\\.b:1\t10.0.0.1:2\tc:4:1\n"
				 "commands.allow.0.name\tls\tx\\ty:5:1\n"
				 "commands.allow.0.flags.0\t-l\tc:5:1\n"
				 "commands.allow.0.flags.1\t-a\tc:5:1\n"
				 "commands.allow.1.name\tcat\tc:6:1\n"
				 "commands.deny.0.name\tcurl\tc:7:1\n",
				 &err);

	CHECK_STR(err.text, "");
	if (!p)
		return;
	CHECK_INT((long long)p->numbers[POLICY_TIMEOUT].value, 30000000);
	CHECK_STR(p->numbers[POLICY_TIMEOUT].at.file, "c.yaml");
	CHECK_INT(p->numbers[POLICY_TIMEOUT].at.line, 9);
	CHECK(!p->numbers[POLICY_MEMORY].is_stated);
	CHECK_INT((long long)p->n_env, 2);
	CHECK_STR(p->env[0].value, "a\tb\nc\\d\re");
	CHECK_STR(p->env[1].value, "");
	CHECK(p->writable.is_stated && p->writable.n == 0);
	CHECK(!p->mount_roots.is_stated);
	CHECK_STR(p->resolve[0].name, "a.b:1");
	CHECK(p->has_commands);
	CHECK_INT((long long)p->commands.n_allow, 2);
	CHECK_STR(p->commands.allow[0].name, "ls");
	CHECK_STR(p->commands.allow[0].file, "x\ty");
	CHECK_INT(p->commands.allow[0].line, 5);
	CHECK_STR(p->commands.allow[0].flags[1], "-a");
	CHECK(!p->commands.allow[0].flags[2]);
	CHECK(!p->commands.allow[1].flags && !p->commands.allow[1].sub);
	CHECK_STR(p->commands.deny[0].name, "curl");
	CHECK_STR(p->flat.sources[0].name, "/p/cordon.yaml");
	policy_free(p);
}

#define HOST   "network.allow.0.host\ta.test\tc:1:1\n"
#define FILTER "filters.0.do\tmask\tc:1:1\n"

/* Each of these makes the whole text invalid. */
TEST(flat_bad)
{
	static const char *const rows[] = {
		"sandbox.timeuot\t30s\tc:1:1\n",   /* unknown key */
		"sandbox.timeout\tsoon\tc:1:1\n",  /* bad value */
		"sandbox.timeout\t30s\n",          /* no origin */
		"sandbox.timeout\t30s\tc\n",       /* no line */
		"sandbox.timeout\t30s\tc:x\n",     /* no number */
		"sandbox.timeout\t30s\t:1:1\n",    /* no file */
		"sandbox.timeout\t30s\tc:1\tx\n",  /* too many */
		"\tsandbox.timeout\t30s\tc:1:1\n", /* empty path */
		"\n",                              /* empty line */
		"sandbox.timeout\t3\\0s\tc:1:1\n", /* unknown escape */
		"sandbox.env.A\tx\\\tc:1:1\n",     /* cut escape */
		"sandbox.timeout\t1s\tc:1:1\nsandbox.timeout\t1s\tc:1:1\n",
		"sandbox\t{}\tc:1:1\nsandbox.timeout\t1s\tc:1:1\n",
		"sandbox.writable\t[]\tc:1:1\nsandbox.writable.0\t/x\tc:1:1\n",
		"sandbox.timeout\t[]\tc:1:1\n", /* a list there */
		"sandbox.writable\t{}\tc:1:1\n",
		"sandbox.writable\t/tmp\tc:1:1\n",
		"sandbox.writable.1\t/tmp\tc:1:1\n", /* 0 is missing */
		"sandbox.writable.00\t/tmp\tc:1:1\n",
		"sandbox.writable.x\t/tmp\tc:1:1\n",
		("commands.deny.0.name\ta\tc:1:1\n"
		 "commands.deny.2.name\tb\tc:1:1\n"),
		"commands.allow.0.flags.0\t-l\tc:1:1\n", /* no name */
		"sandbox..timeout\t1s\tc:1:1\n",
		"sandbox.\t1s\tc:1:1\n",
		"sandbox.mounts.0.from\t/x\tc:1:1\n", /* no to */
		("sandbox.mounts.0.from\tx\tc:1:1\n"
		 "sandbox.mounts.0.to\t/y\tc:1:1\n"),
		"sandbox.mount_roots.0\trel\tc:1:1\n",
		"extends\tstrict\tc:1:1\n", /* was not compiled */
		"network.allow.0.ports.0\t1\tc:1:1\n",
		"filters.0.do\tmask\tc:1:1\n",
		/* empty, or nothing, where that would be read as all */
		HOST "network.allow.0.ports\t[]\tc:1:1\n",
		HOST "network.allow.0.methods\t[]\tc:1:1\n",
		HOST "network.allow.0.paths\t[]\tc:1:1\n",
		HOST "network.allow.0.bytes\t0\tc:1:1\n",
		HOST "network.allow.0.bytes\t0g\tc:1:1\n",
		HOST "network.allow.0.connections\t0\tc:1:1\n",
		HOST "network.allow.0.rate\t0\tc:1:1\n",
		HOST "network.allow.0.ports.0\t53\tc:1:1\n",
		HOST "network.allow.0.ports.0\t053\tc:1:1\n",
		FILTER
		"filters.0.on\t[]\tc:1:1\nfilters.0.match.0\turls\tc:1:1\n",
		FILTER
		"filters.0.on.0\tuser\tc:1:1\nfilters.0.match\t[]\tc:1:1\n",
		"docker.log_max\t0\tc:1:1\n",
		"docker.exec.max_output\t0\tc:1:1\n",
		"sandbox.disk\t0\tc:1:1\n",
		"sandbox.tmpfs./x\t0\tc:1:1\n",
		"tools.t.sandbox.disk\t0\tc:1:1\n",
		"tests.0.name\tx\tc:1:1\n",
		"tests.0.name\tx\tc:1:1\ntests.0.expect\tallowed\tc:1:1\n",
		("tools.t.sandbox.timeout\t9s\tc:1:1\nsandbox.timeout\t8s\tc:2:"
		 "1\n"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = { 0 };
		struct policy *p = parse(rows[i], &err);

		if (p || !err.text[0] || !err.code)
			printf("# row %zu is accepted: %s\n", i, rows[i]);
		CHECK(!p && err.code && err.text[0]);
		policy_free(p);
	}
}

TEST(flat_bad_head)
{
	static const char *const rows[] = {
		"",
		"\n",
		V1,
		"cordon-policy\t3\t0.1.0\t" HASH "\t/p\n" V1,
		"cordon-policy\t2\t0.1.0\n" V1,
		"cordon-policy\t2\t0.1.0\t" HASH "\n" V1,
		"cordon-policy\t2\t0.1.0\tabc\t/p\n" V1,
		"cordon-policy\t2\t0.1.0\t" HASH "\t/p\\x\n" V1,
		HEAD,
		HEAD "version\t1\tp:1:1", /* cut */
		HEAD "version\t2\tp:1:1\n",
		HEAD V1 "\xff\n",
	};
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy *p = policy_parse(rows[i], strlen(rows[i]), &err);

		if (p)
			printf("# row %zu is accepted\n", i);
		CHECK(!p);
		policy_free(p);
	}
	CHECK(!policy_parse(HEAD V1 "\0\n", sizeof(HEAD V1 "\0\n") - 1, &err));
}

/* Every prefix of a good text is refused, or is whole lines. */
TEST(flat_cut_anywhere)
{
	static const char text[] = HEAD V1 "sandbox.env.A\ta\\tb\tc:1:1\n"
					   "commands.allow.0.name\tls\tc:5:1\n";

	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		struct err err = { 0 };
		struct policy *p = policy_parse(text, n, &err);

		CHECK(!p || (n > sizeof(HEAD) && text[n - 1] == '\n'));
		policy_free(p);
	}
}

/* numbers, places, users, images: a policy, a request, the verdict */

struct row {
	const char *policy; /* NULL: none */
	const char *ask;    /* what the request has, see fill() */
	enum decision decision;
	const char *why;
};

static struct request_mount mount;
static struct request_place place_asked;
static const char *word[1];

static void fill_number(struct policy_request *r, enum policy_number n,
			uint64_t v)
{
	r->numbers[n].is_stated = true;
	r->numbers[n].value = v;
}

static void fill_mount(struct policy_request *r, const char *path)
{
	static char copy[256];
	char *fact;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	memset(&mount, 0, sizeof(mount));
	fact = strchr(copy, ',');
	if (fact)
		*fact++ = '\0';
	mount.source = copy;
	mount.path = copy;
	mount.target = "/x";
	if (fact) {
		mount.is_rw = strstr(fact, "rw");
		mount.is_special = strstr(fact, "special");
		mount.is_home = strstr(fact, "home");
		mount.is_state = strstr(fact, "is-state");
		mount.holds_state = strstr(fact, "holds-state");
		mount.is_policy = strstr(fact, "policy");
		mount.credential = strstr(fact, "cred") ? ".ssh" : NULL;
		mount.not_protected = strstr(fact, "open") ? "why" : NULL;
	}
	r->mounts = &mount;
	r->n_mounts = 1;
}

static void fill(struct policy_request *r, const char *ask)
{
	const char *v = strchr(ask, '=') + 1;

	word[0] = v;
	switch (ask[0]) {
	case 'm':
		fill_number(r, POLICY_MEMORY, strtoull(v, NULL, 10));
		break;
	case 't':
		fill_number(r, POLICY_TIMEOUT, strtoull(v, NULL, 10));
		break;
	case 'v':
		fill_mount(r, v);
		break;
	case 'w':
		place_asked = (struct request_place){ .path = v,
						      .size = 4096,
						      .is_stated = true };
		r->places = &place_asked;
		r->n_places = 1;
		break;
	case 'u':
		r->has_user = true;
		r->uid = r->gid = (uint32_t)strtoull(v, NULL, 10);
		break;
	case 'i':
		r->image = v;
		break;
	case 'l':
		r->isolation = v;
		break;
	case 'r':
		r->states_root = true;
		r->wants_writable_root = strcmp(v, "rw") == 0;
		break;
	case 'e':
		r->env = word;
		r->n_env = 1;
		break;
	case 'h':
		r->env_from_host = word;
		r->n_env_from_host = 1;
		break;
	case 'b':
		r->best_effort = word;
		r->n_best_effort = 1;
		break;
	case 'n':
		r->hosts = word;
		r->n_hosts = 1;
		break;
	case 'S':
		r->secrets = word;
		r->n_secrets = 1;
		break;
	case 'c':
		r->is_code = v[0] == '1';
		break;
	default:
		CHECK(false);
	}
}

#define ALLOW DECISION_ALLOW, NULL
#define DENY  DECISION_DENY

static void run_row(const struct row *row, size_t i)
{
	struct err err = { 0 };
	struct policy *p = row->policy ? parse(row->policy, &err) : NULL;
	struct policy_request req = { 0 };
	struct policy_verdict v;
	bool ok;

	if (row->policy && !p) {
		printf("# row %zu: %s\n", i, err.text);
		CHECK(p);
		return;
	}
	fill(&req, row->ask);
	policy_decide(p, &req, &v);
	ok = v.decision == row->decision &&
	     (!row->why || strstr(v.why, row->why));
	if (!ok)
		printf("# row %zu (%s): %d '%s'\n", i, row->ask,
		       (int)v.decision, v.why);
	CHECK(ok);
	policy_free(p);
}

static void run_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		run_row(&rows[i], i);
}

/* Lowered where numbers are, and where nobody asked for so much. */
TEST(decide_sizes_of_places)
{
	struct err err = { 0 };
	struct policy *p = parse("sandbox.tmpfs./x\t1k\tc:4:1\n", &err);
	uint64_t size = 0;
	struct request_place place = {
		.path = "/x", .size = 4096, .is_stated = true, .ret_size = &size
	};
	struct policy_request req = { .places = &place, .n_places = 1 };
	struct policy_verdict v;

	CHECK(p);
	policy_decide(p, &req, &v);
	CHECK_INT(v.decision, DECISION_DENY);
	req.clamps = true;
	policy_decide(p, &req, &v);
	CHECK_INT(v.decision, DECISION_ALLOW);
	CHECK_INT(size, 1024);
	req.clamps = false;
	place.is_stated = false;
	size = 0;
	policy_decide(p, &req, &v);
	CHECK_INT(v.decision, DECISION_ALLOW);
	CHECK_INT(size, 1024);
	/* Who takes no size is denied. */
	place.ret_size = NULL;
	policy_decide(p, &req, &v);
	CHECK_INT(v.decision, DECISION_DENY);
	policy_free(p);
}

TEST(decide_numbers_and_the_box)
{
	static const struct row rows[] = {
		{ NULL, "m=999999999999", ALLOW },
		{ "", "m=999999999999", ALLOW },
		{ "sandbox.memory\t64m\tc:4:1\n", "m=67108864", ALLOW },
		{ "sandbox.memory\t64m\tc:4:1\n", "m=1", ALLOW },
		{ "sandbox.memory\t64m\tc:4:1\n", "m=67108865", DENY,
		  "above the ceiling 64m (c:4: sandbox.memory)" },
		{ "sandbox.memory\t64m\tc:4:1\n", "t=99000000", ALLOW },
		{ "sandbox.timeout\t5s\tc:4:1\n", "t=5000001", DENY,
		  "above the ceiling 5s" },
		/* Where the whole root can be written, so can any place. */
		{ "sandbox.read_only\tfalse\tc:4:1\n", "w=/run", ALLOW },
		{ "sandbox.read_only\tfalse\tc:4:1\n"
		  "sandbox.disk\t1k\tc:5:1\n",
		  "w=/run", DENY, "above the ceiling 1k (c:5: sandbox.disk)" },
		{ "sandbox.read_only\ttrue\tc:4:1\n", "w=/run", DENY,
		  "may not be writable" },
		{ "sandbox.read_only\tfalse\tc:4:1\n"
		  "sandbox.writable.0\t/tmp\tc:5:1\n",
		  "w=/run", DENY, "sandbox.writable" },
		{ NULL, "u=0", ALLOW },
		{ "", "u=0", ALLOW },
		{ "sandbox.user\t7\tc:4:1\n", "u=7", ALLOW },
		{ "sandbox.user\t7\tc:4:1\n", "u=0", DENY,
		  "(c:4: sandbox.user" },
		{ NULL, "i=host", ALLOW },
		{ NULL, "i=debian", ALLOW },
		{ "", "i=host", ALLOW },
		{ "", "i=debian", DENY, "states no sandbox.images" },
		{ "sandbox.images\t[]\tc:4:1\n", "i=host", DENY, "c:4" },
		{ "sandbox.images\t[]\tc:4:1\n", "c=1", DENY, "c:4" },
		{ "sandbox.images.0\t*\tc:4:1\n", "i=host", DENY, "not given" },
		{ "sandbox.images.0\tdeb*\tc:4:1\n", "i=debian", ALLOW },
		{ "sandbox.images.0\tdeb*\tc:4:1\n", "i=fedora", DENY,
		  "not given" },
		{ "", "l=native", ALLOW },
		{ "", "l=vm", DENY, "not in this build" },
		{ "sandbox.isolation\tvm\tc:4:1\n", "l=native", DENY,
		  "less than 'vm' (c:4" },
		{ "sandbox.isolation\tvm\tc:4:1\n", "c=1", DENY,
		  "not in this build" },
		{ NULL, "r=rw", ALLOW },
		{ "", "r=rw", DENY, "read-only" },
		{ "", "r=ro", ALLOW },
		{ "sandbox.read_only\ttrue\tc:4:1\n", "r=rw", DENY, "c:4" },
		{ "sandbox.read_only\tfalse\tc:4:1\n", "r=rw", ALLOW },
		{ NULL, "w=/opt", ALLOW },
		{ "", "w=/opt", DENY, "states no sandbox.writable" },
		{ "", "w=/tmp", ALLOW },
		{ "sandbox.writable\t[]\tc:4:1\n", "w=/tmp", DENY, "c:4" },
		{ "sandbox.writable.0\t/opt\tc:4:1\n", "w=/opt", ALLOW },
		{ "sandbox.writable.0\t/opt\tc:4:1\n", "w=/tmp", DENY, "c:4" },
		{ "sandbox.tmpfs./opt\t4096\tc:4:1\n", "w=/opt", ALLOW },
		{ "sandbox.tmpfs./opt\t4095\tc:4:1\n", "w=/opt", DENY, "c:4" },
	};

	run_rows(rows, ARRAY_SIZE(rows));
}

TEST(decide_the_rest)
{
	static const struct row rows[] = {
		{ "", "e=A=1", ALLOW },
		{ "sandbox.env.A\t1\tc:4:1\n", "e=A=1", ALLOW },
		{ "sandbox.env.A\t1\tc:4:1\n", "e=AB=2", ALLOW },
		{ "sandbox.env.A\t1\tc:4:1\n", "e=A=2", DENY, "c:4" },
		{ NULL, "h=HOME", DENY, "not passed in" },
		{ "", "h=HOME", DENY, "env_from_host" },
		{ "sandbox.env_from_host\t[]\tc:4:1\n", "h=HOME", DENY, "c" },
		{ "sandbox.env_from_host.0\tHOME\tc:4:1\n", "h=HOME", ALLOW },
		{ "sandbox.env_from_host.0\tHOM\tc:4:1\n", "h=HOME", DENY,
		  "c" },
		{ NULL, "b=memory", ALLOW },
		{ "", "b=memory", ALLOW },
		{ "sandbox.require.0\tcgroup\tc:4:1\n", "b=memory", DENY,
		  "c:4" },
		{ "sandbox.require.0\tpids\tc:4:1\n", "b=memory", ALLOW },
		{ NULL, "n=a.b:443", ALLOW },
		{ NULL, "n=169.254.169.254:80", DENY, "metadata" },
		{ NULL, "n=[64:ff9b::a9fe:a9fe]:80", DENY, "metadata" },
		{ NULL, "n=metadata.google.internal:80", DENY, "metadata" },
		{ NULL, "n=2130706433:80", DENY, "HOST:PORT" },
		{ NULL, "n=*.a.b:443", ALLOW },
		{ NULL, "S=KEY@a.b:443", ALLOW },
		{ NULL, "S=KEY@169.254.169.254:80", DENY, "metadata" },
		{ "", "S=KEY@a.b:443", DENY, "no rule" },
		{ "network.allow.0.host\ta.b\tc:4:1\n", "S=KEY@a.b:443", DENY,
		  "sends it there" },
		{ "network.allow.0.host\ta.b\tc:4:1\n"
		  "network.allow.0.secret.env\tKEY\tc:4:1\n"
		  "network.allow.0.secret.header\tX\tc:4:1\n",
		  "S=KEY@a.b:443", ALLOW },
		{ "network.allow.0.host\ta.b\tc:4:1\n"
		  "network.allow.0.secret.env\tKEY\tc:4:1\n"
		  "network.allow.0.secret.header\tX\tc:4:1\n",
		  "S=KEYS@a.b:443", DENY, "sends it there" },
		{ "network.allow.0.host\t*.a.b\tc:4:1\n", "n=*.a.b:443",
		  ALLOW },
		{ "network.allow.0.host\t*.a.b\tc:4:1\n", "n=*.x.a.b:443",
		  ALLOW },
		{ "network.allow.0.host\t*.a.b\tc:4:1\n", "n=*.b:443", DENY,
		  "no rule" },
		{ "network.allow.0.host\tx.a.b\tc:4:1\n", "n=*.a.b:443", DENY,
		  "no rule" },
		{ "network.allow.0.host\t10.0.0.0/8\tc:4:1\n",
		  "n=10.1.0.0/16:443", ALLOW },
		{ "network.allow.0.host\t10.1.0.0/16\tc:4:1\n",
		  "n=10.0.0.0/8:443", DENY, "no rule" },
		{ "", "n=a.b:443", DENY, "no rule" },
		{ "network.allow.0.host\ta.b\tc:4:1\n", "n=a.b:443", ALLOW },
		{ "network.ask.0.host\ta.b\tc:4:1\n", "n=a.b:443", DECISION_ASK,
		  "c:4" },
		{ "approvals.always.0\tcode\tc:4:1\n", "c=1", DECISION_ASK,
		  "c:4: approvals.always" },
		{ "approvals.always.0\tcode\tc:4:1\n", "c=0", ALLOW },
		{ "approvals.always\t[]\tc:4:1\n", "c=1", ALLOW },
	};

	run_rows(rows, ARRAY_SIZE(rows));
}

TEST(decide_mounts)
{
#define ROOT_SRV  "sandbox.mount_roots.0\t/srv\tc:4:1\n"
#define ROOT_ALL  "sandbox.mount_roots.0\t/\tc:4:1\n"
#define ROOT_HOME "sandbox.mount_roots.0\t/home/u\tc:4:1\n"
#define ROOT_ETC  "sandbox.mount_roots.0\t/etc/app\tc:4:1\n"
#define DECLARED                                                               \
	"sandbox.mounts.0.from\t/srv/d\tc:4:1\nsandbox.mounts.0.to\t/"         \
	"x\tc:4:1\n"
	static const struct row rows[] = {
		{ NULL, "v=/srv", ALLOW },
		{ NULL, "v=/srv,rw", ALLOW },
		{ "", "v=/srv", DENY, "states neither" },
		{ "sandbox.mount_roots\t[]\tc:4:1\n", "v=/srv", DENY, "c:4" },
		{ ROOT_SRV, "v=/srv", ALLOW },
		{ ROOT_SRV, "v=/srv/a/b,rw", ALLOW },
		{ ROOT_SRV, "v=/srv2", DENY, "c:4" },
		{ ROOT_SRV, "v=/sr", DENY, "c:4" },
		{ ROOT_SRV "sandbox.writable\t[]\tc:5:1\n", "v=/srv,rw", DENY,
		  "c:5: sandbox.writable" },
		{ ROOT_SRV "sandbox.writable.0\t/x\tc:5:1\n", "v=/srv,rw",
		  ALLOW },
		{ DECLARED, "v=/srv/d", ALLOW },
		{ DECLARED, "v=/srv/d,rw", DENY, "states neither" },
		{ DECLARED, "v=/srv/d/e", DENY, "states neither" },
		/* never */
		{ NULL, "v=/", DENY, "never" },
		{ ROOT_ALL, "v=/", DENY, "never" },
		{ ROOT_ALL, "v=/proc", DENY, "never" },
		{ ROOT_ALL, "v=/proc/1/root", DENY, "never" },
		{ "sandbox.mount_roots.0\t/proc\tc:4:1\n", "v=/proc", DENY,
		  "never" },
		{ "sandbox.mount_roots.0\t/dev\tc:4:1\n", "v=/dev/shm", DENY,
		  "never" },
		{ ROOT_ALL, "v=/etc", DENY, "never" },
		{ ROOT_ALL, "v=/etc/shadow", DENY, "never" },
		{ NULL, "v=/etc/ssl", DENY, "never" },
		{ ROOT_ETC, "v=/etc/app", ALLOW },
		{ ROOT_ETC, "v=/etc/app/x", ALLOW },
		{ ROOT_ETC, "v=/etc", DENY, "never" },
		{ ROOT_ETC, "v=/etc/other", DENY, "never" },
		{ NULL, "v=/etcetera", ALLOW },
		{ NULL, "v=/var", DENY, "never" },
		{ NULL, "v=/var/lib/x", DENY, "never" },
		{ NULL, "v=/var/tmp/x", ALLOW },
		{ NULL, "v=/run/docker", DENY, "never" },
		{ NULL, "v=/root", DENY, "never" },
		{ NULL, "v=/boot", DENY, "never" },
		{ ROOT_ALL, "v=/home/u,home", DENY, "home directory" },
		{ ROOT_HOME, "v=/home/u,home", ALLOW },
		{ ROOT_HOME, "v=/home/u,home,cred", ALLOW },
		{ ROOT_HOME, "v=/home/u/.ssh", DENY, "credentials" },
		{ ROOT_HOME, "v=/home/u/p,cred", DENY, "credentials" },
		{ NULL, "v=/srv,cred", DENY, "credentials ('.ssh')" },
		{ NULL, "v=/srv/.aws/config", DENY, "credentials ('.aws')" },
		{ NULL, "v=/srv/.config/gcloud/x", DENY, "credentials" },
		{ NULL, "v=/srv/x.ssh", ALLOW },
		{ NULL, "v=/srv/s,special", DENY, "never" },
		{ ROOT_SRV, "v=/srv/s,special", DENY, "never" },
		{ NULL, "v=/srv,is-state", DENY, "own state" },
		{ ROOT_SRV, "v=/srv,holds-state", DENY, "own state" },
		{ ROOT_SRV, "v=/srv/c,policy", DENY, "policy file" },
		{ ROOT_SRV, "v=/srv,open", ALLOW },
		{ ROOT_SRV, "v=/srv,open,rw", DENY, "cannot be writable" },
		{ NULL, "v=/srv/.git/hooks,rw", DENY, "'.git'" },
		{ NULL, "v=/srv/.git/hooks", ALLOW },
		{ NULL, "v=/srv/.bashrc,rw", DENY, "'.bashrc'" },
		{ NULL, "v=/srv/x.bashrc,rw", ALLOW },
	};

	run_rows(rows, ARRAY_SIZE(rows));
}

TEST(decide_effective_numbers)
{
	struct err err = { 0 };
	struct policy *p = parse("sandbox.memory\t64m\tc:1:1\n"
				 "sandbox.user\t7:8\tc:1:1\n",
				 &err);
	struct policy_request req = { 0 };
	struct policy_verdict v;

	req.numbers[POLICY_MEMORY].value = 256 << 20;
	req.numbers[POLICY_PIDS].value = 128;
	policy_decide(p, &req, &v);
	CHECK_INT(v.decision, DECISION_ALLOW);
	CHECK_INT((long long)v.numbers[POLICY_MEMORY], 64 << 20);
	CHECK_INT((long long)v.numbers[POLICY_PIDS], 128);
	CHECK_INT(v.uid, 7);
	CHECK_INT(v.gid, 8);
	/* The Docker face lowers instead of denying, and is told. */
	req.numbers[POLICY_MEMORY].is_stated = true;
	req.clamps = true;
	policy_decide(p, &req, &v);
	CHECK_INT(v.decision, DECISION_ALLOW);
	CHECK_INT((long long)v.numbers[POLICY_MEMORY], 64 << 20);
	CHECK_INT(v.clamped, 1 << POLICY_MEMORY);
	req.clamps = false;
	policy_decide(p, &req, &v);
	CHECK_INT(v.decision, DECISION_DENY);
	policy_free(p);
}

TEST(values_hosts)
{
	static const char *const good[] = {
		"a.b", "A.B.",       "a-b.c",    "*.a.b",     "127.0.0.1",
		"::1", "10.0.0.0/8", "fd00::/8", "localhost", "a_b.c",
	};
	static const char *const bad[] = {
		"",           ".",          "a..b",
		".a",         "-a.b",       "a-.b",
		"*",          "*.",         "a.*.b",
		"127.1",      "2130706433", "0x7f000001",
		"0177.0.0.1", "1.2.3.4.5",  "10.0.0.0/33",
		"fd00::/129", "a b",        "a/b",
		"a:1",        "http://a",   "\xef\xbc\x91.a",
		"a\x01.b",    "1.2.3.256",  "01.2.3.4",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!value_is_host(good[i]))
			CHECK_STR("", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (value_is_host(bad[i]))
			CHECK_STR("", bad[i]);
}

TEST(values_paths)
{
	static const char *const good[] = { "/a", "/a/b", "/a/.b", "/a/..b",
					    "/.a" };
	static const char *const bad[] = { "",     "/",     "a",       "/a/",
					   "//a",  "/a//b", "/a/../b", "/..",
					   "/a/.", "/./a",  "/a\n" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!value_is_box_path(good[i]))
			CHECK_STR("", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (value_is_box_path(bad[i]))
			CHECK_STR("", bad[i]);
}

/* Of two values, which one `extends` accepts over the other. */
TEST(grammar_tighter)
{
	static const struct {
		const char *key;
		const char *a;
		const char *b;
		int sign;
	} rows[] = {
		{ "timeout", "5s", "30s", -1 },
		{ "timeout", "30s", "30000ms", 0 },
		{ "timeout", "31s", "30s", 1 },
		{ "memory", "64m", "1g", -1 },
		{ "cpus", "0.5", "0.25", 1 },
		{ "isolation", "vm", "native", -1 },
		{ "isolation", "native", "vm", 1 },
		{ "isolation", "docker", "oci:runc", 1 },
		{ "isolation", "oci:runc", "docker", 1 },
		{ "read_only", "true", "false", -1 },
		{ "read_only", "false", "true", 1 },
		{ "user", "1", "2", 1 },
		{ "user", "1", "1", 0 },
	};
	const struct grammar *sandbox = grammar_step(&grammar_policy,
						     "sandbox");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct grammar *g = grammar_step(sandbox, rows[i].key);
		int c = grammar_compare(g, rows[i].a, rows[i].b);

		CHECK_INT((c > 0) - (c < 0), rows[i].sign);
	}
}

/* A rate is how many at once as well. */
TEST(grammar_tighter_rates)
{
	static const char *const way[] = { "network", "allow", "0", "rate" };
	static const struct {
		const char *a;
		const char *b;
		int sign;
	} rows[] = {
		{ "60", "60/m", 0 },  { "1/s", "60/m", -1 },
		{ "60/m", "1/s", 1 }, { "100/h", "2/m", 1 },
		{ "1/h", "1/m", -1 }, { "2/m", "100/h", 1 },
	};
	const struct grammar *g = &grammar_policy;

	for (size_t i = 0; g && i < ARRAY_SIZE(way); i++)
		g = grammar_step(g, way[i]);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int c = g ? grammar_compare(g, rows[i].a, rows[i].b) : 9;

		CHECK_INT((c > 0) - (c < 0), rows[i].sign);
	}
}

TEST(presets_are_there)
{
	static const char *const names[] = { "strict", "data-analysis",
					     "shell-tools", "build",
					     "cautious" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct preset *p = preset_find(names[i]);

		CHECK(p && p->len > 100 && strstr(p->text, "version: 1"));
		CHECK(!p || strlen(p->text) == p->len);
	}
	CHECK(!preset_find("nothing"));
}

TAP_MAIN()
