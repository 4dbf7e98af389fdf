/* SPDX-License-Identifier: Apache-2.0 */

/* One policy under another: what is looser is found, what is not stated kept.
 */

#include "tests/tap.h"

#include <errno.h>

#include "base/buf.h"
#include "base/util.h"
#include "policy/decide.h"
#include "policy/narrow.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Lines "path value", one after the other. */
static struct policy *make(const char *name, const char *lines)
{
	_cleanup_free_ char *copy = strdup(lines);
	struct err err = { 0 };
	struct policy *p;
	struct buf b;
	char *save = NULL;

	buf_init(&b, FLAT_MAX);
	(void)buf_printf(&b, "cordon-policy\t2\t0.1.0\t" HASH "\t/%s\n", name);
	(void)buf_printf(&b, "version\t1\t%s:1:1\n", name);
	for (char *l = strtok_r(copy, "\n", &save); l;
	     l = strtok_r(NULL, "\n", &save)) {
		char *blank = strchr(l, ' ');

		(void)buf_printf(&b, "%.*s\t%s\t%s:2:1\n", (int)(blank - l), l,
				 blank + 1, name);
	}
	p = policy_parse(b.data, b.len, &err);
	CHECK_STR(err.text, "");
	buf_done(&b);
	return p;
}

struct row {
	const char *inner;
	const char *outer;
	const char *why; /* a part of it; NULL: it is as strict */
};

static void check_row(const struct row *row)
{
	struct policy *inner = make("inner", row->inner);
	struct policy *outer = make("outer", row->outer);
	struct err err = { 0 };

	if (inner && outer) {
		int r = policy_narrow(inner, outer, &err);

		CHECK_INT(r, row->why ? -EPERM : 0);
		if (row->why)
			CHECK_HAS(err.text, row->why);
		else
			CHECK_STR(err.text, "");
		CHECK(inner->outer == (r == 0 ? outer : NULL));
		if (!row->why != (r == 0))
			fprintf(stderr, "# row: %s / %s\n", row->inner,
				row->outer);
	}
	policy_free(inner);
	policy_free(outer);
}

#define CHECK_ROWS(rows)                                                       \
	for (size_t i_ = 0; i_ < ARRAY_SIZE(rows); i_++)                       \
	check_row(&(rows)[i_])

TEST(narrow_numbers_and_words)
{
	static const struct row rows[] = {
		{ "", "", NULL },
		{ "sandbox.memory 64m", "sandbox.memory 256m", NULL },
		{ "sandbox.memory 256m", "sandbox.memory 256m", NULL },
		{ "sandbox.memory 1g", "sandbox.memory 256m",
		  "sandbox.memory 1g (inner:2) is above 256m (outer:2)" },
		{ "sandbox.memory 1g", "", NULL },
		{ "", "sandbox.timeout 5s", NULL },
		{ "sandbox.read_only true", "sandbox.read_only false", NULL },
		{ "", "sandbox.read_only false", NULL },
		{ "sandbox.read_only false", "", "sandbox.read_only" },
		{ "sandbox.read_only false", "sandbox.read_only true",
		  "sandbox.read_only" },
		{ "sandbox.isolation vm", "sandbox.isolation native", NULL },
		{ "sandbox.isolation native", "sandbox.isolation vm",
		  "sandbox.isolation" },
		{ "network.connections 300", "", "network.connections" },
		{ "network.connections 10", "network.connections 20", NULL },
		{ "images.pull true", "", "images.pull" },
		{ "approvals.expire 1h", "", "approvals.expire" },
		{ "approvals.expire 1m", "", NULL },
		{ "docker.over_ceiling deny", "", NULL },
		{ "docker.over_ceiling clamp", "docker.over_ceiling deny",
		  "docker.over_ceiling" },
		{ "docker.allow_root_inside true", "",
		  "docker.allow_root_inside" },
		{ "docker.bind_symlinks allow", "", "docker.bind_symlinks" },
		{ "docker.bind_symlinks sweep", "docker.bind_symlinks allow",
		  NULL },
		{ "docker.exec.children keep", "docker.exec.children kill",
		  "docker.exec.children" },
		{ "docker.exec.on_disconnect keep",
		  "docker.exec.on_disconnect kill", "on_disconnect" },
		{ "docker.exec.shims true", "docker.exec.shims false",
		  "shims" },
		{ "docker.exec.max_output none", "docker.exec.max_output 1m",
		  "max_output" },
		{ "docker.log_max 65m", "", "docker.log_max" },
	};

	CHECK_ROWS(rows);
}

TEST(narrow_users)
{
	static const struct row rows[] = {
		{ "sandbox.user 1000", "", NULL },
		{ "", "sandbox.user 1000", NULL },
		{ "sandbox.user 1000", "sandbox.user 1000:1000", NULL },
		{ "sandbox.user 1000", "sandbox.user 1001", "sandbox.user" },
		{ "sandbox.user root", "", "sandbox.user is root" },
		{ "sandbox.user 1000:0", "", "sandbox.user is root" },
		{ "sandbox.user root", "docker.allow_root_inside true", NULL },
	};

	CHECK_ROWS(rows);
}

TEST(narrow_lists)
{
	static const struct row rows[] = {
		{ "", "sandbox.require.0 seccomp", NULL },
		{ "sandbox.require.0 landlock", "sandbox.require.0 seccomp",
		  "sandbox.require has 'seccomp', and /inner has not" },
		{ "sandbox.require []", "sandbox.require.0 seccomp",
		  "sandbox.require" },
		{ "approvals.always []", "approvals.always.0 code",
		  "approvals.always" },
		{ "approvals.always.0 code", "", NULL },
		{ "ledger.redact []", "ledger.redact.0 secrets",
		  "ledger.redact" },
		{ "ledger.keep_text []", "", "ledger.keep_text" },
		{ "ledger.keep_text.0 commands\nledger.keep_text.1 output", "",
		  NULL },
		{ "", "ledger.keep_text.0 output", NULL },
		{ "approvals.ask.0 store", "", NULL },
		{ "approvals.ask.0 store", "approvals.ask.0 terminal",
		  "approvals.ask" },
		{ "", "approvals.ask []", NULL },
		{ "approvals.ask.0 store", "approvals.ask []",
		  "approvals.ask" },
		{ "approvals.code_patterns.0 contained", "",
		  "approvals.code_patterns" },
		{ "sandbox.env_from_host.0 A", "", "sandbox.env_from_host" },
		{ "sandbox.env_from_host.0 A", "sandbox.env_from_host.0 A",
		  NULL },
		{ "images.registries.0 a.test", "", "images.registries" },
	};

	CHECK_ROWS(rows);
}

TEST(narrow_images)
{
	static const struct row rows[] = {
		{ "sandbox.images.0 host", "", NULL },
		{ "sandbox.images.0 a", "", "sandbox.images has 'a'" },
		{ "", "sandbox.images.0 a", "'host'" },
		{ "sandbox.images []", "sandbox.images.0 a", NULL },
		{ "sandbox.images.0 a/b:1", "sandbox.images.0 a/*", NULL },
		{ "sandbox.images.0 a/*", "sandbox.images.0 a/b:1",
		  "sandbox.images has 'a/*'" },
		{ "sandbox.images.0 a*", "sandbox.images.0 *", NULL },
		{ "sandbox.images.0 a?", "sandbox.images.0 a*", "'a?'" },
		{ "sandbox.images.0 host", "sandbox.images.0 *", "'host'" },
		{ "sandbox.images.0 *", "sandbox.images.0 *", NULL },
	};

	CHECK_ROWS(rows);
}

TEST(narrow_places_and_variables)
{
	static const struct row rows[] = {
		{ "sandbox.writable.0 /tmp", "", NULL },
		{ "sandbox.writable.0 /data", "", "'/data'" },
		{ "sandbox.writable.0 /data", "sandbox.read_only false", NULL },
		{ "sandbox.writable.0 /data", "sandbox.writable.0 /data",
		  NULL },
		{ "sandbox.writable.0 /data", "sandbox.writable.0 /tmp",
		  "'/data'" },
		{ "", "sandbox.writable.0 /tmp", NULL },
		{ "sandbox.tmpfs./tmp 64m", "sandbox.tmpfs./tmp 32m",
		  "above the ceiling 32m" },
		{ "sandbox.tmpfs./tmp 32m", "sandbox.tmpfs./tmp 32m", NULL },
		{ "", "sandbox.tmpfs./tmp 32m", NULL },
		{ "sandbox.writable []", "sandbox.tmpfs./tmp 32m", NULL },
		{ "sandbox.tmpfs./x 2g",
		  "sandbox.read_only false\nsandbox.disk 1g",
		  "above the ceiling 1g" },
		{ "sandbox.mount_roots.0 /srv/a", "sandbox.mount_roots.0 /srv",
		  NULL },
		{ "sandbox.mount_roots.0 /srv", "sandbox.mount_roots.0 /srv/a",
		  "sandbox.mount_roots has '/srv'" },
		{ "sandbox.mount_roots.0 /srv", "", "sandbox.mount_roots" },
		{ "", "sandbox.mount_roots.0 /srv", NULL },
		{ "sandbox.env.A 1", "", NULL },
		{ "sandbox.env.A 1", "sandbox.env.A 2", "'A'" },
		{ "", "sandbox.env.A 2", NULL },
		{ "sandbox.env.B 1", "sandbox.env.A 2", "no 'A'" },
		{ "sandbox.env.B 1\ncommands.allow.0.name ls",
		  "commands.allow.0.name ls", NULL },
		{ "sandbox.env.LD_PRELOAD x\ncommands.allow.0.name ls",
		  "commands.allow.0.name ls", "'LD_PRELOAD'" },
	};

	CHECK_ROWS(rows);
}

TEST(narrow_lists_of_commands)
{
#define LS  "commands.allow.0.name ls"
#define GIT "commands.ask.0.name git"
	static const struct row rows[] = {
		{ LS, "", NULL },
		{ "", LS, "states no commands" },
		{ LS, LS "\ncommands.allow.1.name cat", NULL },
		{ "commands.allow.0.name rm", LS, "commands.allow 'rm'" },
		{ LS "\ncommands.allow.0.flags.0 -l", LS, "'ls'" },
		{ LS, LS "\ncommands.allow.0.flags.0 -l", "'ls'" },
		{ "commands.ask.0.name ls", LS, NULL },
		{ LS "\ncommands.allow.0.flags.0 -l",
		  LS "\ncommands.allow.0.flags.0 -a\n"
		     "commands.allow.0.flags.1 -l",
		  NULL },
		{ LS "\ncommands.allow.0.flags.0 -x",
		  LS "\ncommands.allow.0.flags.0 -l", "'ls'" },
		{ LS "\ncommands.allow.0.operands any", LS, "'ls'" },
		{ GIT, LS, "commands.ask 'git'" },
		{ LS, LS "\n" GIT, NULL },
		{ "commands.allow.0.name git",
		  "commands.allow.0.name git\ncommands.ask.0.name git\n"
		  "commands.ask.0.sub.0 push",
		  "'git' does not ask" },
		{ LS, LS "\ncommands.deny.0.name ls", NULL }, /* taken over */
		/* A denial of some flags is no question about the others. */
		{ LS "\ncommands.deny.0.name ls\ncommands.deny.0.flags.0 -l",
		  LS "\ncommands.ask.0.name ls\ncommands.ask.0.flags.0 -l",
		  "'ls' does not ask" },
		{ LS "\ncommands.deny.0.name ls",
		  LS "\ncommands.ask.0.name ls\ncommands.ask.0.flags.0 -l",
		  NULL },
		{ LS, LS "\ncommands.deny.0.name curl", NULL },
		{ LS "\ncommands.deny.0.name ls",
		  LS "\ncommands.deny.0.name ls", NULL },
		{ LS "\ncommands.otherwise ask", LS, "commands.otherwise" },
		{ LS "\ncommands.otherwise ask", "", NULL },
	};

	CHECK_ROWS(rows);
}

TEST(narrow_hosts)
{
#define A    "network.allow.0.host a.test"
#define B    "network.allow.1.host b.test"
#define ALL  "network.allow.0.host *.test"
#define ASKS "network.ask.0.host a.test"
#define SECRET                                                                 \
	"\nnetwork.allow.0.secret.env T\nnetwork.allow.0.secret.header X-T"
	static const struct row rows[] = {
		{ "", A, NULL },
		{ A, "", "network.allow 'a.test'" },
		{ A, A, NULL },
		{ "network.allow.0.host b.test", A "\n" B, NULL },
		{ "network.allow.0.host b.test\nnetwork.allow.1.host a.test",
		  A "\n" B, NULL },
		{ A "\nnetwork.allow.0.ports.0 80", A, "network.allow" },
		{ A,
		  A "\nnetwork.allow.0.ports.0 443\n"
		    "network.allow.0.ports.1 80",
		  NULL },
		{ A "\nnetwork.allow.0.methods.0 GET", A, NULL },
		{ A, A "\nnetwork.allow.0.methods.0 GET", "network.allow" },
		{ A "\nnetwork.allow.0.methods.0 POST",
		  A "\nnetwork.allow.0.methods.0 GET", "network.allow" },
		{ A, A "\nnetwork.allow.0.paths.0 /x", "network.allow" },
		{ A, A "\nnetwork.allow.0.bytes 1m", "network.allow" },
		{ A "\nnetwork.allow.0.bytes 1k",
		  A "\nnetwork.allow.0.bytes 1m", NULL },
		{ A, A "\nnetwork.allow.0.connections 2", "network.allow" },
		{ A, A "\nnetwork.allow.0.rate 2", "network.allow" },
		{ A "\nnetwork.allow.0.rate 2/s", A "\nnetwork.allow.0.rate 2",
		  "network.allow" },
		{ A "\nnetwork.allow.0.rate 2/h", A "\nnetwork.allow.0.rate 2",
		  NULL },
		{ A SECRET, A, "network.allow" },
		{ A, A SECRET, "network.allow" }, /* TLS is opened for it */
		{ A SECRET, A SECRET, NULL },
	};

	CHECK_ROWS(rows);
}

TEST(narrow_hosts_that_overlap)
{
	static const struct row rows[] = {
		/* A narrower rule must not be left out of a wider one. */
		{ ALL,
		  ALL "\nnetwork.allow.1.host a.test\n"
		      "network.allow.1.bytes 1k",
		  "overlap" },
		{ ALL, ALL "\n" ASKS, "overlap" },
		{ ALL "\n" ASKS, ALL "\n" ASKS, NULL },
		{ A, ALL, NULL },
		{ A "\n" B, ALL, NULL },
		{ ALL, A, "network.allow" },
		{ A "\n" B, ALL "\nnetwork.allow.0.bytes 1m", "network.allow" },
		{ A,
		  "network.allow.0.host a.test\n"
		  "network.allow.0.methods.0 GET\n"
		  "network.allow.1.host *.test",
		  "overlap" },
		{ A "\nnetwork.allow.0.bytes 1m\n"
		    "network.allow.1.host a.test\nnetwork.allow.1.bytes 1m",
		  A "\nnetwork.allow.0.bytes 1m", "more than one rule" },
		{ A "\nnetwork.allow.0.bytes 1m\nnetwork.ask.0.host a.test\n"
		    "network.ask.0.ports.0 80\nnetwork.ask.0.bytes 1m",
		  A "\nnetwork.allow.0.bytes 1m\nnetwork.allow.0.ports.0 80\n"
		    "network.allow.0.ports.1 443",
		  "more than one rule" },
		/* Fewer ports, and the next rule would have the others. */
		{ A "\nnetwork.allow.0.bytes 1m\n"
		    "network.allow.1.host *.test\n"
		    "network.allow.1.ports.0 80\nnetwork.allow.1.ports.1 443",
		  A "\nnetwork.allow.0.bytes 1m\nnetwork.allow.0.ports.0 80\n"
		    "network.allow.0.ports.1 443\n"
		    "network.allow.1.host *.test\n"
		    "network.allow.1.ports.0 80\nnetwork.allow.1.ports.1 443",
		  "overlap" },
		/* The same rules, each tighter. */
		{ A "\nnetwork.allow.0.bytes 1k\n"
		    "network.allow.1.host *.test\n"
		    "network.allow.1.methods.0 GET",
		  A "\nnetwork.allow.0.bytes 1m\n"
		    "network.allow.1.host *.test",
		  NULL },
		{ "network.ask.0.host *.test",
		  ASKS "\nnetwork.ask.0.methods.0 GET\n"
		       "network.ask.1.host *.test",
		  "overlap" },
		{ "network.ask.0.host *.test",
		  A "\nnetwork.allow.0.bytes 1k\n"
		    "network.allow.1.host *.test",
		  "overlap" },
		{ "network.ask_wait 1h", "", "network.ask_wait" },
		{ "", "network.ask_wait 0", NULL },
		{ ASKS, A, NULL },
		{ ASKS, "", "network.ask 'a.test'" },
		{ A, ASKS, "network.allow 'a.test'" },
		{ A, A "\nnetwork.resolve.a\\.test 127.0.0.1", NULL },
		{ A "\nnetwork.resolve.a\\.test 127.0.0.1", A,
		  "network.resolve" },
		{ A, A "\nnetwork.ca /x.pem", NULL },
		{ A "\nnetwork.ca /x.pem", A, "network.ca" },
	};

	CHECK_ROWS(rows);
}

TEST(narrow_keeps_what_is_not_stated)
{
	struct policy *inner = make("inner", "sandbox.memory 64m");
	struct policy *outer = make("outer", "sandbox.memory 256m\n"
					     "sandbox.timeout 5s\n"
					     "sandbox.user 1000\n"
					     "sandbox.require.0 landlock\n"
					     "sandbox.env.A 1\n"
					     "approvals.ask.0 store\n"
					     "approvals.expire 1m\n"
					     "docker.over_ceiling deny\n"
					     "docker.allow_root_inside true\n"
					     "sandbox.read_only false\n"
					     "sandbox.mount_roots.0 /srv");
	struct err err = { 0 };

	CHECK_INT(policy_narrow(inner, outer, &err), 0);
	CHECK_INT((long long)inner->numbers[POLICY_MEMORY].value, 64 << 20);
	CHECK_INT((long long)inner->numbers[POLICY_TIMEOUT].value, 5000000);
	CHECK_STR(inner->user.text, "1000");
	CHECK(policy_list_has(&inner->require, "landlock"));
	CHECK_INT(inner->n_env, 1);
	CHECK_INT(inner->ask.n, 1);
	CHECK_INT((long long)inner->expire_us, 60000000);
	CHECK_STR(inner->over_ceiling.text, "deny");
	/* A permission that it does not state is not given. */
	CHECK(!inner->allow_root_inside.text && !inner->read_only.text);
	CHECK_INT(inner->mount_roots.n, 0);
	policy_free(inner);
	policy_free(outer);
}

TEST(narrow_keeps_what_is_denied)
{
	struct policy *inner = make("inner", "commands.allow.0.name python\n"
					     "commands.deny.0.name ls");
	struct policy *outer = make("outer", "commands.allow.0.name python\n"
					     "commands.deny.0.name python3");
	struct err err = { 0 };

	CHECK_INT(policy_narrow(inner, outer, &err), 0);
	CHECK_INT(inner->commands.n_deny, 2);
	CHECK_STR(inner->commands.deny[0].name, "ls");
	CHECK_STR(inner->commands.deny[1].name, "python3");
	policy_free(inner);
	policy_free(outer);
}

/* ---- mounts, which both must give ---- */

static enum decision decide(const struct policy *p,
			    const struct request_mount *m, char why[480])
{
	const struct policy_request req = { .mounts = m,
					    .n_mounts = 1,
					    .is_empty = true };
	struct policy_verdict v;

	policy_decide(p, &req, &v);
	(void)snprintf(why, 480, "%s", v.why);
	return v.decision;
}

static uint64_t size_of_tmp(const struct policy *p, uint64_t asked)
{
	uint64_t size = asked;
	const struct request_place place = { .path = "/tmp",
					     .size = asked,
					     .is_stated = true,
					     .ret_size = &size };
	const struct policy_request req = { .places = &place,
					    .n_places = 1,
					    .is_empty = true,
					    .clamps = true };
	struct policy_verdict v;

	policy_decide(p, &req, &v);
	CHECK_INT(v.decision, DECISION_ALLOW);
	return size;
}

TEST(narrow_places_are_bounded_by_both)
{
	static const struct {
		const char *inner;
		const char *outer;
		uint64_t size;
	} rows[] = {
		{ "", "", 1 << 30 },
		{ "", "sandbox.read_only false\nsandbox.disk 64m", 64 << 20 },
		{ "sandbox.writable.0 /tmp",
		  "sandbox.read_only false\nsandbox.disk 64m", 64 << 20 },
		{ "sandbox.tmpfs./tmp 32m",
		  "sandbox.read_only false\nsandbox.disk 64m", 32 << 20 },
		{ "", "sandbox.tmpfs./tmp 16m", 16 << 20 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy *inner = make("inner", rows[i].inner);
		struct policy *outer = make("outer", rows[i].outer);
		struct err err = { 0 };

		CHECK_INT(policy_narrow(inner, outer, &err), 0);
		CHECK_INT((long long)size_of_tmp(inner, 1 << 30),
			  (long long)rows[i].size);
		policy_free(inner);
		policy_free(outer);
	}
}

TEST(narrow_mounts_are_judged_by_both)
{
	struct policy *inner = make("inner", "sandbox.mounts.0.from /srv/d\n"
					     "sandbox.mounts.0.to /d\n"
					     "sandbox.mount_roots.0 /srv/a");
	struct policy *outer = make("outer", "sandbox.mount_roots.0 /srv");
	/* Its own mount, when /srv/d is a link to somewhere else. */
	const struct request_mount away = { .source = "/srv/d",
					    .path = "/opt/d",
					    .target = "/d",
					    .is_declared = true };
	struct request_mount m = away;
	struct err err = { 0 };
	char why[480];

	CHECK_INT(policy_narrow(inner, outer, &err), 0);
	CHECK_INT(decide(inner, &m, why), DECISION_DENY);
	CHECK_HAS(why, "(outer:2: sandbox.mount_roots)");
	m.path = "/srv/d";
	CHECK_INT(decide(inner, &m, why), DECISION_ALLOW);
	m.is_declared = false;
	m.source = m.path = "/srv/b";
	CHECK_INT(decide(inner, &m, why), DECISION_DENY);
	CHECK_HAS(why, "(inner:2: sandbox.mount_roots)");
	m.source = m.path = "/srv/a";
	CHECK_INT(decide(inner, &m, why), DECISION_ALLOW);
	/* That the inner one names it exactly opens nothing. */
	m.credential = ".ssh";
	CHECK_INT(decide(inner, &m, why), DECISION_DENY);
	CHECK_HAS(why, "holds credentials");
	policy_free(inner);
	policy_free(outer);
}

TAP_MAIN()
