/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The way of a box's network from the library through keeper and init, with a
 * gate that does what the test wants (fake-gate.c): what the box has, what
 * becomes of what the gate says, and how it ends.
 */

#define TAP_SECONDS 60

#include "box.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/clock.h"

/* How long anything is waited for, at most. */
#define WAIT_MS 30000

static char dir[] = "/tmp/egress-run-XXXXXX";

static void path_in(const char *name, char *ret)
{
	(void)snprintf(ret, PATH_MAX, "%s/%s", dir, name);
}

static void link_program(const char *name)
{
	char from[PATH_MAX];
	char to[PATH_MAX];

	(void)snprintf(from, sizeof(from), "%s/%s", getenv("CORDON_BUILD"),
		       name);
	path_in(strrchr(name, '/') ? strrchr(name, '/') + 1 : name, to);
	(void)!symlink(from, to);
}

static void copy_gate(const char *program)
{
	char from[PATH_MAX];
	char to[PATH_MAX];
	char buf[65536];
	ssize_t n;
	int in;
	int out;

	(void)snprintf(from, sizeof(from), "%s/%s", getenv("CORDON_BUILD"),
		       program);
	path_in("cordon-gate", to);
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		(void)!write(out, buf, (size_t)n);
	(void)close(in);
	(void)close(out);
}

static void put_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	path_in(name, path);
	f = fopen(path, "we");
	(void)fputs(text, f);
	(void)fclose(f);
}

static void set_up_with(const char *gate)
{
	char state[PATH_MAX];

	if (!getenv("CORDON_BUILD"))
		SKIP("CORDON_BUILD is not set");
	CHECK(mkdtemp(dir) != NULL);
	(void)chmod(dir, 0755);
	link_program("cordon-keeper");
	link_program("cordon-desk");
	copy_gate(gate);
	path_in("state", state);
	(void)setenv("CORDON_STATE_DIR", state, 1);
	(void)setenv("CORDON_LIBEXEC", dir, 1);
}

static void set_up(void)
{
	set_up_with("tests/fake-gate");
}

static void tear_down(void)
{
	char command[PATH_MAX + 16];

	cordon_close(box_handle);
	box_handle = NULL;
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	(void)!system(command);
}

/* Whose gates are counted; 0: ours. */
static pid_t client;

/* By their arguments, which are all that one may see of the real one. */
static int count_gates(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;
	char want[64];
	int n = 0;

	(void)snprintf(want, sizeof(want), "cordon-gate %d",
		       client ? client : getpid());
	while ((d = readdir(proc))) {
		char path[PATH_MAX];
		char have[64] = { 0 };
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline",
			       d->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (read(fd, have, sizeof(have) - 1) > 12)
			have[11] = ' ';
		(void)close(fd);
		n += strcmp(have, want) == 0;
	}
	(void)closedir(proc);
	return n;
}

static bool gates_are_gone(int ms)
{
	int64_t end = clock_us() + ms * 1000LL;

	while (count_gates() > 0 && clock_us() < end)
		(void)poll(NULL, 0, 20);
	return count_gates() == 0;
}

/* All of the ledger's connections. */
static char *connections(void)
{
	char command[PATH_MAX + 64];
	static char text[1 << 20];
	size_t n;
	FILE *f;

	(void)snprintf(command, sizeof(command),
		       "grep -h '\"kind\":\"connection\"' "
		       "'%s'/state/ledger/*.jsonl",
		       dir);
	f = popen(command, "re");
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	(void)pclose(f);
	return text;
}

static int count_connections(const char *host)
{
	char command[PATH_MAX + 128];
	int n = -1;
	FILE *f;

	(void)snprintf(command, sizeof(command),
		       "cat '%s'/state/ledger/*.jsonl | grep "
		       "'\"kind\":\"connection\"' | grep -c %s",
		       dir, host);
	f = popen(command, "re");
	if (fscanf(f, "%d", &n) != 1)
		n = -1;
	(void)pclose(f);
	return n;
}

#define CONNECT(address, port)                                                 \
	"exec 3<>/dev/tcp/" address "/" #port " && cat <&3"

TEST(g01_a_connection_is_the_gates)
{
	struct cordon_result *r;
	char *json;

	set_up();
	r = box_run("allow-host=serve.test:443,8443", BOX_CMD, "bash", "-c",
		    CONNECT("198.18.1.0", 443) ";" CONNECT("198.18.77.3", 8443),
		    NULL);
	/* DNS and two ports, with IPv6 where the machine has it. */
	CHECK(strcmp(cordon_result_stdout(r, NULL), "hello 12\nhello 12\n") ==
		      0 ||
	      strcmp(cordon_result_stdout(r, NULL), "hello 6\nhello 6\n") == 0);
	json = cordon_result_json(r);
	CHECK_HAS(json, "\"denials\":[]");
	CHECK_HAS(json, "\"warnings\":[]");
	free(json);
	cordon_result_free(r);
	CHECK_HAS(connections(), "\"decision\":\"allow\"");
	CHECK_HAS(connections(), "\"bytes_in\":5,\"bytes_out\":3");
	CHECK_HAS(connections(), "\"duration_ms\":7");
	CHECK(gates_are_gone(0));
	tear_down();
}

TEST(g02_over_ipv6_too)
{
	struct cordon_result *r;

	set_up();
	r = box_run("allow-host=serve.test:443", BOX_CMD, "bash", "-c",
		    "if grep -q 20010002 /proc/net/if_inet6; then " CONNECT(
			    "2001:2::100", 443) "; else echo hello 3; fi",
		    NULL);
	CHECK(strncmp(cordon_result_stdout(r, NULL), "hello ", 6) == 0);
	cordon_result_free(r);
	tear_down();
}

TEST(g03_all_else_has_no_route)
{
	static const char code[] =
		"import socket\n"
		"for a, p in (('1.1.1.1', 443), ('198.20.0.1', 443),\n"
		"             ('198.18.1.0', 444), ('10.0.0.1', 80),\n"
		"             ('2606:4700::1', 443), ('fe80::1', 443)):\n"
		"    f = socket.AF_INET6 if ':' in a else socket.AF_INET\n"
		"    for t in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n"
		"        try:\n"
		"            s = socket.socket(f, t)\n"
		"            s.settimeout(2)\n"
		"            s.connect((a, p))\n"
		"            s.send(b'x'); s.recv(1)\n"
		"            print('reached', a, p, t)\n"
		"        except TimeoutError: print('slow', a, p, t)\n"
		"        except OSError: pass\n";
	struct cordon_result *r;
	char *json;

	set_up();
	r = box_run("allow-host=serve.test:443", BOX_CMD, "python3", "-c", code,
		    NULL);
	CHECK_STR(cordon_result_stdout(r, NULL), "");
	CHECK_STR(cordon_result_stderr(r, NULL), "");
	CHECK_INT(cordon_result_exit_code(r), 0);
	/* Nobody but the kernel saw them; the control is g01. */
	json = cordon_result_json(r);
	CHECK_HAS(json, "\"what\":\"address\",\"reason\":\"no_route\"");
	free(json);
	cordon_result_free(r);
	tear_down();
}

/* What socket(2) gives, by families, types and protocols. */
static const char families[] =
	"import socket\n"
	"for f in range(46):\n"
	"    for t in (1, 2, 3, 4, 5, 10):\n"
	"        for p in (0, 1, 2, 6, 17, 58, 132, 136, 255, 262):\n"
	"            try:\n"
	"                socket.socket(f, t, p)\n"
	"                print(f, t, p)\n"
	"            except OSError: pass\n";

TEST(g04_sockets_are_tcp_and_udp)
{
	struct cordon_result *r;
	bool has_v6 = access("/proc/net/if_inet6", F_OK) == 0;

	set_up();
	r = box_run("allow-host=serve.test:443", BOX_CMD, "python3", "-c",
		    families, NULL);
	CHECK_STR(cordon_result_stdout(r, NULL),
		  has_v6 ? "2 1 0\n2 1 6\n2 2 0\n2 2 17\n"
			   "10 1 0\n10 1 6\n10 2 0\n10 2 17\n"
			 : "2 1 0\n2 1 6\n2 2 0\n2 2 17\n");
	cordon_result_free(r);
	/* One without hosts has none, also after such a one. */
	r = box_run("timeout=10s", BOX_CMD, "python3", "-c", families, NULL);
	CHECK_STR(cordon_result_stdout(r, NULL), "");
	CHECK_INT(cordon_result_exit_code(r), 0);
	cordon_result_free(r);
	r = box_run("timeout=10s", BOX_CMD, "cat", "/proc/net/route",
		    "/etc/resolv.conf", NULL);
	CHECK(!strstr(cordon_result_stdout(r, NULL), "nameserver"));
	cordon_result_free(r);
	tear_down();
}

TEST(g05_the_program_has_nothing_of_it)
{
	struct cordon_result *r;

	set_up();
	r = box_run("allow-host=serve.test:443", "ulimit=nofile=24", BOX_CMD,
		    "sh", "-c", "ls /proc/self/fd; ulimit -n; ulimit -Hn",
		    NULL);
	/* 3 is the directory that ls reads. */
	CHECK_STR(cordon_result_stdout(r, NULL), "0\n1\n2\n3\n24\n24\n");
	cordon_result_free(r);
	r = box_run("allow-host=serve.test:443", "files=20", BOX_CMD, "bash",
		    "-c", "ulimit -n; ulimit -Hn;" CONNECT("198.18.1.0", 443),
		    NULL);
	CHECK_HAS(cordon_result_stdout(r, NULL), "20\n20\nhello ");
	cordon_result_free(r);
	tear_down();
}

TEST(g06_no_gate_no_run)
{
	struct cordon_error err = { 0 };
	struct cordon_result *r = NULL;
	struct cordon_spec *s;
	char path[PATH_MAX];

	set_up();
	path_in("cordon-gate", path);
	(void)unlink(path);
	s = box_spec("allow-host=serve.test:443", BOX_CMD, "echo", "ran", NULL);
	CHECK(cordon_run(box_open(), s, &r, &err) < 0);
	CHECK_HAS(err.text, "cordon-gate");
	CHECK(r == NULL);
	/* Not a program of this machine: refused before anything has begun. */
	put_file("cordon-gate", "no program\n");
	(void)chmod(path, 0755);
	CHECK(cordon_run(box_open(), s, &r, &err) < 0);
	CHECK_HAS(err.text, "start");
	cordon_spec_free(s);
	tear_down();
}

TEST(g07_a_gate_that_dies)
{
	struct cordon_result *r;
	char *json;

	set_up();
	r = box_run("allow-host=die.test:443", BOX_CMD, "bash", "-c",
		    "sleep 0.3;" CONNECT("198.18.1.0", 443), NULL);
	json = cordon_result_json(r);
	CHECK_STR(cordon_result_stdout(r, NULL), "");
	CHECK_HAS(cordon_result_stderr(r, NULL), "refused");
	CHECK_HAS(json, "the gate ended before the box");
	free(json);
	cordon_result_free(r);
	tear_down();
}

TEST(g08_a_gate_that_does_not_end)
{
	struct cordon_result *r;
	int64_t begin;
	char *json;

	set_up();
	begin = clock_us();
	r = box_run("allow-host=hang.test:443", BOX_CMD, "true", NULL);
	json = cordon_result_json(r);
	CHECK_INT(cordon_result_exit_code(r), 0);
	CHECK_HAS(json, "did not end in time");
	CHECK(clock_us() - begin < 5000000);
	CHECK(gates_are_gone(0));
	free(json);
	cordon_result_free(r);
	tear_down();
}

TEST(g09_a_flood_has_a_ceiling)
{
	struct cordon_result *r;
	const char *at;
	int lines = 0;
	char *json;

	set_up();
	r = box_run("allow-host=flood.test:443", BOX_CMD, "sleep", "0.3", NULL);
	json = cordon_result_json(r);
	CHECK_HAS(json, "\"what\":\"n0.evil.test\",\"reason\":\"no_rule\"");
	CHECK_HAS(json, "\"what\":\"others\",\"count\":5936");
	CHECK_HAS(json, "1904 more refusals");
	for (at = json; (at = strstr(at, "\"layer\":\"net\"")); at++)
		lines++;
	CHECK_INT(lines, 65);
	free(json);
	cordon_result_free(r);
	tear_down();
}

/* What was let out is on the record as that, and is never only counted. */
TEST(g21_what_was_let_out_has_its_record)
{
	struct cordon_result *r;
	char *json;

	set_up();
	r = box_run("allow-host=sent.test:443", BOX_CMD, "sleep", "0.5", NULL);
	json = cordon_result_json(r);
	CHECK_HAS(json, "104 more refusals");
	CHECK_INT(count_connections("'\"allow\".*\"reset\".*reset.test'"), 30);
	CHECK_INT(count_connections("'\"allow\".*\"left\".*left.test'"), 30);
	CHECK_INT(count_connections("'\"allow\".*\"bytes\".*bytes.test'"), 60);
	CHECK_INT(count_connections("'\"deny\".*secret.test'"), 30);
	CHECK_INT(count_connections("'\"allow\".*secret.test'"), 30);
	CHECK(!strstr(json, "reset.test") && !strstr(json, "left.test"));
	CHECK_HAS(json, "\"what\":\"bytes.test:443\",\"reason\":\"bytes\"");
	CHECK_HAS(json, "\"what\":\"secret.test:443\"");
	CHECK(!strstr(json, "\"count\":60"));
	free(json);
	cordon_result_free(r);
	tear_down();
}

/* What is let out has a record each, so a box that is too busy waits. */
TEST(g20_a_busy_box_does_not_fill_the_ledger)
{
	struct cordon_result *r;
	const char *took;
	char *json;

	set_up();
	r = box_run("allow-host=busy.test:443", BOX_CMD, "sleep", "4", NULL);
	json = cordon_result_json(r);
	took = strstr(json, "took-");
	CHECK(took);
	CHECK(took && strtol(took + 5, NULL, 10) >= 500);
	CHECK_INT(count_connections("busy.test"), 2300);
	free(json);
	cordon_result_free(r);
	tear_down();
}

TEST(g10_a_gate_is_not_believed)
{
	struct cordon_result *r;
	const char *at;
	int lines = 0;
	char *json;

	set_up();
	r = box_run("allow-host=lies.test:443", BOX_CMD, "sleep", "0.2", NULL);
	json = cordon_result_json(r);
	for (at = json; (at = strstr(at, "\"layer\":\"net\"")); at++)
		lines++;
	CHECK_INT(lines, 1);
	CHECK_HAS(json, "AAAA:1\"");
	CHECK_INT(cordon_result_exit_code(r), 0);
	free(json);
	cordon_result_free(r);
	tear_down();
}

TEST(g11_what_is_asked_is_denied_where_nobody_answers)
{
	struct cordon_result *r;
	char setting[PATH_MAX + 16];
	char *json;

	set_up();
	put_file("p.yaml", "version: 1\n"
			   "network:\n"
			   "  ask: [{host: ask.test}]\n"
			   "approvals: {expire: 1s, ask: [store]}\n");
	(void)snprintf(setting, sizeof(setting), "policy=%s/p.yaml", dir);
	r = box_run(setting, BOX_CMD, "sleep", "2.5", NULL);
	json = cordon_result_json(r);
	CHECK_HAS(json,
		  "\"what\":\"ask.test:443\",\"reason\":\"not_approved\"");
	CHECK_HAS(connections(), "\"code\":\"not_approved\"");
	free(json);
	cordon_result_free(r);
	tear_down();
}

TEST(g12_the_box_trusts_its_gate)
{
	struct cordon_result *r;
	char setting[PATH_MAX + 16];

	set_up();
	put_file("p.yaml", "version: 1\n"
			   "network:\n"
			   "  allow: [{host: trust.test, methods: [GET]}]\n");
	(void)snprintf(setting, sizeof(setting), "policy=%s/p.yaml", dir);
	r = box_run(setting, BOX_CMD, "sh", "-c",
		    "for f in $SSL_CERT_FILE $REQUESTS_CA_BUNDLE "
		    "$CURL_CA_BUNDLE $GIT_SSL_CAINFO $NODE_EXTRA_CA_CERTS "
		    "/etc/ssl/certs/abcd1234.0 "
		    "/etc/ssl/certs/ca-certificates.crt; do grep -c '^fake' "
		    "$f; done",
		    NULL);
	CHECK_STR(cordon_result_stdout(r, NULL), "1\n1\n1\n1\n1\n1\n1\n");
	cordon_result_free(r);
	/* Who brings variables of its own keeps them. */
	r = box_run("allow-host=serve.test:443", BOX_CMD, "sh", "-c",
		    "echo ${SSL_CERT_FILE-none}", NULL);
	CHECK_STR(cordon_result_stdout(r, NULL), "none\n");
	cordon_result_free(r);
	tear_down();
}

/* One that does not end in time is cancelled, and the test fails. */
static struct cordon_result *wait_job(struct cordon_job *j)
{
	struct pollfd p = { .fd = cordon_job_fd(j), .events = POLLIN };
	int64_t end = clock_us() + (int64_t)WAIT_MS * 1000;
	bool is_done = false;

	while (!is_done && clock_us() < end) {
		is_done = cordon_job_step(j);
		if (!is_done)
			(void)poll(&p, 1, 1000);
	}
	CHECK(is_done && "the job ended");
	return cordon_job_end(j);
}

TEST(g13_another_policy_for_a_living_run)
{
	struct cordon_error err = { 0 };
	struct cordon_spec *s;
	struct cordon_job *j;
	struct cordon_result *r;
	char one[PATH_MAX + 16];
	char two[PATH_MAX];
	char *json;

	set_up();
	put_file("one.yaml", "version: 1\nnetwork:\n"
			     "  allow: [{host: serve.test}]\n");
	put_file("two.yaml", "version: 1\nnetwork:\n"
			     "  allow: [{host: other.test}]\n");
	put_file("inspects.yaml",
		 "version: 1\nnetwork:\n"
		 "  allow: [{host: other.test, methods: [GET]}]\n");
	(void)snprintf(one, sizeof(one), "policy=%s/one.yaml", dir);
	s = box_spec(one, BOX_CMD, "sleep", "0.5", NULL);
	j = cordon_start(box_open(), s, NULL, NULL, &err);
	CHECK(j != NULL);
	CHECK(cordon_job_set_network(j, "/nonexistent.yaml", &err) < 0);
	path_in("inspects.yaml", two);
	CHECK_INT(cordon_job_set_network(j, two, &err), -EOPNOTSUPP);
	CHECK_HAS(err.text, "authority");
	path_in("two.yaml", two);
	CHECK_INT(cordon_job_set_network(j, two, &err), 0);
	r = wait_job(j);
	json = cordon_result_json(r);
	CHECK_HAS(json, "\"what\":\"replaced.test:443\"");
	free(json);
	cordon_result_free(r);
	cordon_spec_free(s);
	/* One without a network cannot get one. */
	s = box_spec("timeout=9s", BOX_CMD, "sleep", "0.1", NULL);
	j = cordon_start(box_open(), s, NULL, NULL, &err);
	CHECK_INT(cordon_job_set_network(j, two, &err), -ENOTCONN);
	cordon_result_free(wait_job(j));
	cordon_spec_free(s);
	tear_down();
}

TEST(g14_it_ends_with_a_client_that_is_killed)
{
	pid_t pid;

	set_up();
	pid = fork();
	if (pid == 0) {
		struct cordon_result *r = box_run("allow-host=serve.test:443",
						  BOX_CMD, "sleep", "30", NULL);

		cordon_result_free(r);
		_exit(0);
	}
	client = pid;
	for (int i = 0; i < 250 && count_gates() == 0; i++)
		(void)poll(NULL, 0, 20);
	CHECK_INT(count_gates(), 1);
	(void)poll(NULL, 0, 100);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	CHECK(gates_are_gone(2000));
	tear_down();
}

TEST(g15_a_run_that_is_cancelled)
{
	struct cordon_error err = { 0 };
	struct cordon_spec *s;
	struct cordon_job *j;
	struct cordon_result *r;

	set_up();
	s = box_spec("allow-host=serve.test:443", BOX_CMD, "sleep", "30", NULL);
	j = cordon_start(box_open(), s, NULL, NULL, &err);
	CHECK(j != NULL);
	CHECK_INT(count_gates(), 1);
	cordon_job_cancel(j, "enough");
	r = wait_job(j);
	CHECK_STR(cordon_result_cause(r), "cancelled");
	CHECK(gates_are_gone(0));
	cordon_result_free(r);
	cordon_spec_free(s);
	tear_down();
}

/* The second box of a keeper is made while the first one runs. */
TEST(g16_boxes_made_ahead)
{
	set_up();
	for (int i = 0; i < 4; i++) {
		struct cordon_result *r = box_run("allow-host=serve.test:443",
						  BOX_CMD, "bash", "-c",
						  CONNECT("198.18.1.0", 443),
						  NULL);

		CHECK(strncmp(cordon_result_stdout(r, NULL), "hello", 5) == 0);
		cordon_result_free(r);
	}
	CHECK(gates_are_gone(0));
	tear_down();
}

TEST(g17_addresses_that_a_rule_names)
{
	struct cordon_result *r;

	set_up();
	r = box_run("allow-host=serve.test:443",
		    "allow-host=203.0.113.0/24:443", BOX_CMD, "bash", "-c",
		    CONNECT("203.0.113.9", 443) ";" CONNECT("203.0.114.9", 443),
		    NULL);
	CHECK(strncmp(cordon_result_stdout(r, NULL), "hello", 5) == 0);
	CHECK_HAS(cordon_result_stderr(r, NULL), "unreachable");
	cordon_result_free(r);
	tear_down();
}

/* Set-up that fails at any of its steps starts nothing. */
TEST(g19_its_stages_fail_closed)
{
	static const char *const stages[] = { "net", "gate" };
	char path[PATH_MAX];

	set_up();
	path_in("cordon-keeper", path);
	(void)unlink(path);
	link_program("tests/cordon-keeper");
	for (size_t i = 0; i < 2; i++) {
		struct cordon_result *r;

		(void)setenv("CORDON_TEST_FAIL", stages[i], 1);
		r = box_run("allow-host=serve.test:443", BOX_CMD, "echo", "ran",
			    NULL);
		CHECK_STR(cordon_result_cause(r), "setup");
		CHECK_HAS(cordon_result_message(r), stages[i]);
		CHECK_STR(cordon_result_stdout(r, NULL), "");
		cordon_result_free(r);
		cordon_close(box_handle);
		box_handle = NULL;
		CHECK(gates_are_gone(0));
	}
	(void)unsetenv("CORDON_TEST_FAIL");
	tear_down();
}

/* Starts one that lives, forks who keeps all of its descriptors, and waits. */
static void be_client(int ready)
{
	struct cordon_spec *s = box_spec("allow-host=serve.test:443", BOX_CMD,
					 "sleep", "30", NULL);
	struct cordon_job *j = cordon_start(box_open(), s, NULL, NULL, NULL);
	pid_t holder = j ? fork() : -1;

	if (holder == 0)
		(void)poll(NULL, 0, 6000);
	else
		(void)!write(ready, &holder, sizeof(holder));
	if (holder > 0)
		(void)poll(NULL, 0, 30000);
	_exit(0);
}

/* The real one: it is its own to see that who started it is dead. */
TEST(g18_a_fork_of_the_client_does_not_keep_it)
{
	pid_t holder = -1;
	int ready[2];
	pid_t pid;

	set_up_with("cordon-gate");
	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0)
		be_client(ready[1]);
	client = pid;
	CHECK(poll(&(struct pollfd){ ready[0], POLLIN, 0 }, 1, WAIT_MS) == 1 &&
	      "the client has started a box");
	CHECK(fcntl(ready[0], F_SETFL, O_NONBLOCK) == 0);
	CHECK(read(ready[0], &holder, sizeof(holder)) == sizeof(holder));
	CHECK(holder > 0);
	CHECK_INT(count_gates(), 1);
	/* Also while it is still coming up, which this may or may not be. */
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	CHECK(gates_are_gone(3000));
	CHECK_INT(kill(holder, 0), 0);
	(void)kill(holder, SIGKILL);
	tear_down();
}

TAP_MAIN()
