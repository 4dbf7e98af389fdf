/* SPDX-License-Identifier: Apache-2.0 */

/* Each setting with values it takes and values it does not, each alias. */

#include "tests/tap.h"

#include <stdint.h>

#include <cordon/cordon.h>

#include "base/buf.h"
#include "base/util.h"
#include "box/settings.h"
#include "box/spec.h"
#include "box/wire.h"

/* Values are separated by '|'; "" as a list is no value at all. */
static const struct {
	const char *name;
	const char *good;
	const char *bad;
} rows[] = {
	{ "image", "host|debian|a/b:1|0123abcd|some.host:5000/x",
	  "HOST|a b|../x|sha256:xyz|a:b:c|" },
	{ "entrypoint", "sh||/bin/x", NULL },
	{ "cpu-shares", "0|2|262144", "1|262145|x|-1|" },
	{ "cpuset-cpus", "0|0-3|1,3-5|255|", "x|3-1|1,|,1|256|-1|0-|1 2" },
	{ "memory-reservation", "0|64m", "x|-1|" },
	{ "memory-swap", "0|-1|1g", "x|-2|" },
	{ "oom-score-adj", "0|300|1000", "-1|1001|x|" },
	{ "ulimit", "nofile=64|nofile=64:128|core=0|core=-1|cpu=unlimited",
	  "nofile|nofile=|nofile=x|nofile=2:1|rss=1|x=1|=1|as=1|nofile=1:2:"
	  "3|" },
	{ "hostname", "a|a-b.c|A1", "-a|.a|a b|a/b|" },
	{ "domainname", "a|a.b|", "-a|a b" },
	{ "add-host", "a:1.2.3.4|a.b:::1|a=10.0.0.1",
	  "a|a:|:1.2.3.4|a:1.2.3|a:x|a:host-gateway|a b:1.2.3.4|" },
	{ "shm-size", "4096|64m", "0|4095|x|" },
	{ "group-add", "0|5|staff", "a:b|a,b|" },
	{ "timeout", "1|30s|500ms|2m|1.5s|1h", "0|0.5|x|-1|5x|0ms|" },
	{ "total-timeout", "1ms|10m", "0|x|" },
	{ "cpu-time", "200ms|5", "0|x|" },
	{ "kill-grace", "0|2s", "-1|x|" },
	{ "memory", "1m|64m|1g|1048576|1.5g", "1k|0|x|5x|-1m|99999999999t|" },
	{ "cpus", "0.5|2|.25|0.01", "0|-1|x|4097|0.001|" },
	{ "cpu-period", "1000|1000000|50000", "999|1000001|x|" },
	{ "cpu-quota", "1000|50000", "999|x|" },
	{ "pids-limit", "2|128|4194304", "0|1|-1|4194305|x|1.5|" },
	{ "output-limit", "0|1m|10", "x|-1|" },
	{ "hard-output", "1|1g", "0|x|" },
	{ "disk", "65536|64m", "65535|0|x|" },
	{ "files", "16|1024|1048576", "15|1048577|x|" },
	{ "file-size", "1|1g", "0|x|" },
	{ "network", "none", "host|bridge|NONE|" },
	{ "allow-host",
	  "example.com|Example.COM.:80|*.example.com|a.b:80,443,8080|10.0.0.1|"
	  "10.0.0.0/8:22|[2001:db8::1]:443|2001:db8::1|[2001:db8::/32]:1,2|"
	  "localhost:8080",
	  "a.b:0|a.b:53|a.b:80,53|a.b:65536|a.b:80,|a.b:80,x|a.b:,80|a..b|a "
	  "b|*|*.*.b|2130706433|"
	  "0x7f000001|127.1|0177.0.0.1|169.254.169.254|169.254.169.254/32|"
	  "64:ff9b::a9fe:a9fe|metadata.google.internal|0.0.0.0/0|::/0|"
	  "198.18.0.1|198.0.0.0/8|2001:2::5|http://a.b|a.b/x|a@b|[a.b]:443|"
	  "[::1|::1]:3|fe80::1%lo|\xe2\x91\xa0.b|a.b:443:443|" },
	{ "secret",
	  "KEY@example.com|_K1@*.example.com:8443|KEY@a.b:443,8443|"
	  "SSL_CERT@a.b",
	  "KEY|@a.b|KEY@|1K@a.b|K-Y@a.b|KEY@a b|KEY@169.254.169.254|"
	  "KEY@a.b:443,|KEY@a.b:443,53|SSL_CERT_FILE@a.b|"
	  "REQUESTS_CA_BUNDLE@a.b|CURL_CA_BUNDLE@a.b|GIT_SSL_CAINFO@a.b|"
	  "PIP_CERT@a.b|NODE_EXTRA_CA_CERTS@a.b|" },
	{ "read-only", "true|false|1|0|yes|no|TRUE", "perhaps|" },
	{ "volume", "/a:/b|/a:/b:ro|/a:/b:rw|rel:/b",
	  "/a|:/b|/a:b|/a:/b:x|/a:/|/a:/b/../c|/a:/b:|/a:/\x01|" },
	{ "tmpfs", "/x|/x:size=1m|/x:rw,size=1m,nodev|/x:ro,noexec,mode=1777",
	  "x|/|/x:size=0|/x:size=x|/x:mode=8|/x:mode=4755|/x:suid|/x/..|" },
	{ "workspace", "/a|.", NULL },
	{ "copy-out", "*.txt=out|a=b=c|/workspace/*=o|./*=o|a/**/b=o",
	  "*.txt|=out|*.txt=|/tmp/*=o|../*=o|a/../b=o|/workspace/=o|" },
	{ "workdir", "/tmp|/a/b|/", "tmp|/a/../b|/proc|/proc/self/cwd|" },
	{ "user", "0|65534|1000:100|root|nobody:nogroup|0:0|someone|1:x",
	  "-1|-x|4294967295|1:4294967295|some one|1:|:1|a/b|a:b:c|" },
	{ "writable", "/opt/x", "x|/|/..|" },
	{ "env", "A=1|A=|a=b=c|A", "=1|" },
	{ "env-file", "/dev/null", "/nonexistent/file|" },
	{ "interactive", "true|false", "x|" },
	{ "tty", "true|false", "x|" },
	{ "name", "a|box-1|A_b.c", "|-a|.a|a b|a/b|a\xc3\xa4" },
	{ "label", "a=b|a=", "a|=b|" },
	{ "isolation", "native", "vm|docker|oci:runc|" },
	{ "policy", "cordon.yaml|/x", "" },
	{ "env-from-host", "A|PATH", "A=1|1A|a b|" },
	{ "command", "ls|ls -l", "|" },
	{ "ledger", "on|off", "x|ON|" },
	{ "program", "ls|/usr/bin/ls", "|" },
	{ "best-effort", "cgroup|memory|cpu|pids|landlock",
	  "all|seccomp|own-uid|" },
	{ "continue-on-error", "true|false", "x|" },
	{ "arg", "x|--x", NULL },
	{ "max-memory-mb", "1|512", "0|-1|x|1.5|" },
	{ "writable-paths", "/tmp|/opt/x", "x|/|/..|" },
	{ "allowed-commands", "ls|python3.11", "/bin/ls|a/b|" },
	{ "max-cpu-percent", "50|100|12.5", "0|x|0.5|" },
	{ "network-disabled", "true|false", "x|" },
	{ "network-enabled", "false|true", "x|" },
	{ "security-opt", "no-new-privileges|no-new-privileges:true",
	  "seccomp=unconfined|apparmor=unconfined|" },
	{ "remove", "true", "false|x|" },
	{ "cap-add", NULL, "ALL|true|false|" },
	{ "privileged", "false|no", "true|x|" },
	{ "work-dir", "/a|.|a:ro|a:rw", "" },
	{ "bind-dir", "/a|b", "" },
	{ "container-work-dir", "/work|/", "work|/a/../b|/proc|" },
	{ "allow-cwd", "true|false", "x|" },
	{ "delete-files", "true|false", "x|" },
};

/* Calls `take` with each part of the list. */
static void each(const char *name, const char *list,
		 void (*take)(const char *name, const char *value))
{
	while (list) {
		char value[256];
		size_t len = strcspn(list, "|");

		(void)snprintf(value, sizeof(value), "%.*s", (int)len, list);
		take(name, value);
		list = list[len] ? list + len + 1 : NULL;
	}
}

static void take_good(const char *name, const char *value)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error err = { 0 };

	if (cordon_spec_set(s, name, value, &err) != 0) {
		printf("# %s '%s' was refused: %s\n", name, value, err.text);
		CHECK(!"the value above");
	}
	cordon_spec_free(s);
}

static void take_bad(const char *name, const char *value)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error err = { 0 };
	char *before = cordon_spec_json(s);
	int r = cordon_spec_set(s, name, value, &err);
	char *after = cordon_spec_json(s);

	if (r >= 0 || err.code != -r || !strstr(err.text, name) ||
	    strchr(err.text, '\n')) {
		printf("# %s '%s' gave %d: %s\n", name, value, r, err.text);
		CHECK(!"the value above");
	}
	/* What is refused changes nothing. */
	if (strcmp(before, after) != 0) {
		printf("# %s '%s' changed the spec\n", name, value);
		CHECK_STR(after, before);
	}
	free(before);
	free(after);
	cordon_spec_free(s);
}

TEST(settings_good_values)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		each(rows[i].name, rows[i].good, take_good);
}

TEST(settings_bad_values)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		each(rows[i].name, rows[i].bad, take_bad);
}

TEST(settings_each_has_a_row_here)
{
	const struct setting *s;

	for (size_t i = 0; (s = setting_at(i)); i++) {
		bool seen = false;

		for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
			seen = seen || strcmp(rows[k].name, s->name) == 0;
		if (!seen)
			printf("# no row for %s\n", s->name);
		CHECK(seen);
	}
}

static const struct setting *wanted;

static void check_name(const char *name)
{
	char other[64];

	if (setting_find(name) != wanted) {
		printf("# '%s' does not find '%s'\n", name, wanted->name);
		CHECK(!"the name above");
	}
	(void)snprintf(other, sizeof(other), "%s", name);
	for (char *p = other; *p; p++)
		*p = *p == '-' ? '_' : *p;
	CHECK(setting_find(other) == wanted);
	(void)snprintf(other, sizeof(other), "%sx", name);
	CHECK(setting_find(other) != wanted);
}

TEST(settings_names_and_aliases_find_theirs)
{
	for (size_t i = 0; (wanted = setting_at(i)); i++) {
		const char *p = wanted->aliases;

		check_name(wanted->name);
		while (*p) {
			char alias[64];
			size_t len = strcspn(p, " ");

			(void)snprintf(alias, sizeof(alias), "%.*s", (int)len,
				       p);
			check_name(alias);
			p += len + (p[len] == ' ');
		}
		if (wanted->letter)
			CHECK(setting_find_letter(wanted->letter) == wanted);
	}
	CHECK(!setting_find(""));
	CHECK(!setting_find("frobnicate"));
	CHECK(!setting_find("mem"));
	CHECK(!setting_find_letter('Z'));
	CHECK(!setting_find_letter(0));
}

/* The names in the first column of the code executor's table. */
TEST(settings_names_of_others)
{
	static const char *const names[] = {
		"network_disabled",
		"read_only",
		"mem_limit",
		"cpu_quota",
		"cpu_period",
		"pids_limit",
		"user",
		"remove",
		"auto_remove",
		"tmpfs",
		"disk_limit",
		"max_output",
		"hard_output",
		"timeout",
		"total_timeout",
		"kill_grace",
		"cap_add",
		"privileged",
		"devices",
		"work_dir",
		"bind_dir",
		"allow_cwd",
		"delete_files",
		"delete_tmp_files",
		"container_work_dir",
		"extra_hosts",
		"ulimits",
		"allow_domains",
		"image",
		"container_name",
		"extra_volume",
		"best_effort",
		"max_execution_seconds",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!setting_find(names[i])) {
			printf("# no '%s'\n", names[i]);
			CHECK(!"the name above");
		}
}

static struct cordon_spec *spec_with(const char *name, const char *value)
{
	struct cordon_spec *s = cordon_spec_new();

	CHECK_INT(cordon_spec_set(s, name, value, NULL), 0);
	return s;
}

TEST(settings_arrive_where_they_belong)
{
	struct cordon_spec *s = spec_with("timeout", "1.5s");

	CHECK_INT((long long)s->timeout_us, 1500000);
	cordon_spec_free(s);
	s = spec_with("memory", "64m");
	CHECK_INT((long long)s->memory, 64 << 20);
	cordon_spec_free(s);
	s = spec_with("max_memory_mb", "64");
	CHECK_INT((long long)s->memory, 64 << 20);
	cordon_spec_free(s);
	s = spec_with("max_cpu_percent", "150");
	CHECK_INT((long long)s->cpu_quota_us, 150000);
	cordon_spec_free(s);
	s = spec_with("user", "7");
	CHECK_INT(s->uid, 7);
	CHECK_INT(s->gid, 7);
	cordon_spec_free(s);
	s = spec_with("read-only", "false");
	CHECK(s->writable_root);
	cordon_spec_free(s);
	s = spec_with("best-effort", "cgroup");
	CHECK_INT(s->best_effort,
		  1 << WIRE_L_MEMORY | 1 << WIRE_L_CPU | 1 << WIRE_L_PIDS);
	cordon_spec_free(s);
	s = spec_with("volume", "a:/b:rw");
	CHECK_STR(s->binds[0].source, "a");
	CHECK_STR(s->binds[0].target, "/b");
	CHECK_INT(s->binds[0].mode, BIND_RW);
	cordon_spec_free(s);
}

/* A quota keeps its share of CPUs when the period is given later. */
TEST(settings_cpu_period_after_cpus)
{
	struct cordon_spec *s = spec_with("cpus", "2");

	CHECK_INT(cordon_spec_set(s, "cpu-period", "50000", NULL), 0);
	CHECK_INT((long long)s->cpu_quota_us, 100000);
	cordon_spec_free(s);
}

TEST(settings_env_replaces_by_name)
{
	struct cordon_spec *s = spec_with("env", "A=1");

	CHECK_INT(cordon_spec_set(s, "env", "AB=2", NULL), 0);
	CHECK_INT(cordon_spec_set(s, "env", "A=3", NULL), 0);
	CHECK_INT((long long)s->env.n, 2);
	CHECK_STR(s->env.v[0], "A=3");
	CHECK_STR(s->env.v[1], "AB=2");
	cordon_spec_free(s);
}

static int count_accepted(const char *name, const char *before,
			  const char *after)
{
	struct cordon_spec *s = cordon_spec_new();
	int n = 0;
	int r = 0;

	for (; r == 0 && n < 10000; n++) {
		char value[32];

		(void)snprintf(value, sizeof(value), "%s%d%s", before, n,
			       after);
		r = cordon_spec_set(s, name, value, NULL);
	}
	cordon_spec_free(s);
	return n - 1;
}

TEST(settings_lists_have_ceilings)
{
	CHECK_INT(count_accepted("volume", "/a:/b", ""), SPEC_MAX_ITEMS);
	CHECK_INT(count_accepted("copy-out", "*", "=out"), SPEC_MAX_ITEMS);
	CHECK_INT(count_accepted("env", "A", "=1"), 4096);
	CHECK(count_accepted("tmpfs", "/b", "") <= SPEC_MAX_ITEMS);
}

TEST(settings_unknown_ones_and_missing_values)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error err = { 0 };

	CHECK(cordon_spec_set(s, "frobnicate", "1", &err) < 0);
	CHECK_HAS(err.text, "'frobnicate'");
	CHECK(cordon_spec_set(s, "memory", NULL, &err) < 0);
	CHECK_HAS(err.text, "memory takes SIZE");
	CHECK_INT(cordon_spec_set(s, "tty", NULL, &err), 0);
	CHECK(s->tty);
	cordon_spec_free(s);
}

TEST(spec_what_does_not_go_together)
{
	const char *const command[] = { "true", NULL };
	const char *const empty[] = { "", NULL };
	struct cordon_spec *s = cordon_spec_new();
	struct err err = { 0 };

	CHECK(spec_check(s, &err) < 0);
	CHECK_INT(cordon_spec_command(s, command, NULL), 0);
	CHECK_INT(spec_check(s, &err), 0);
	CHECK_INT(cordon_spec_code(s, "sh", "x", 1, NULL, NULL), 0);
	CHECK(spec_check(s, &err) < 0);
	CHECK_HAS(err.text, "both");
	CHECK(cordon_spec_command(s, empty, NULL) < 0);
	CHECK(cordon_spec_command(s, empty + 1, NULL) < 0);
	cordon_spec_free(s);
}

TEST(spec_blocks_and_input_have_ceilings)
{
	struct cordon_spec *s = cordon_spec_new();
	int n = 0;

	while (n < 1000 && cordon_spec_code(s, "sh", "", 0, NULL, NULL) == 0)
		n++;
	CHECK_INT(n, SPEC_MAX_BLOCKS);
	CHECK(cordon_spec_stdin(s, "x", SIZE_MAX - 1, NULL) < 0);
	CHECK_INT(cordon_spec_stdin(s, "x", 1, NULL), 0);
	CHECK_INT(cordon_spec_stdin(s, "yz", 2, NULL), 0);
	CHECK_INT((long long)s->input_len, 2);
	cordon_spec_free(s);
	cordon_spec_free(NULL);
}

TEST(spec_json_is_what_was_set)
{
	struct cordon_spec *s = spec_with("memory", "64m");
	const char *const command[] = { "echo", "a\"b", NULL };
	char *text;

	CHECK_INT(cordon_spec_command(s, command, NULL), 0);
	text = cordon_spec_json(s);
	CHECK_HAS(text, "\"memory\":67108864");
	CHECK_HAS(text, "\"command\":[\"echo\",\"a\\\"b\"]");
	free(text);
	cordon_spec_free(s);
}

/* As long as a word of a program can be, and which one is longer. */
TEST(spec_json_has_long_values)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error e = { 0 };
	struct buf b;

	for (int more = 0; more < 2; more++) {
		buf_init(&b, 1 << 20);
		(void)buf_puts(&b, "{\"env\":[\"A=1\",\"BIG=");
		for (int i = 0; i < 131067 + more; i++)
			(void)buf_puts(&b, "x");
		(void)buf_puts(&b, "\"]}");
		CHECK_INT(cordon_spec_set_json(s, b.data, b.len, &e),
			  more ? -EINVAL : 0);
		buf_done(&b);
	}
	CHECK_HAS(e.text, "env: 'BIG' is longer than 131071 bytes");
	buf_init(&b, 1 << 20);
	(void)buf_puts(&b, "{\"env\":{\"OTHER\":\"");
	for (int i = 0; i < 131066; i++)
		(void)buf_puts(&b, "x");
	(void)buf_puts(&b, "\"}}");
	CHECK_INT(cordon_spec_set_json(s, b.data, b.len, &e), -EINVAL);
	CHECK_HAS(e.text, "env: 'OTHER' is longer than 131071 bytes");
	buf_done(&b);
	cordon_spec_free(s);
}

TAP_MAIN()
