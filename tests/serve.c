/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The daemon's parent, clerk and preparer, with a front that does as it is
 * told (fake-front.c) and says what it saw.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "base/util.h"
#include "tap.h"

#define RUN   "0123456789abcdef0123456789abcdef"
#define HEAD  "\"run\":\"" RUN "\",\"box\":\"b1\",\"face\":"
#define OWN   "{" HEAD "\"cordon\","
#define OTHER 61999 /* a uid that nobody has */

struct served {
	pid_t pid;
	char dir[64];
	char log[96];
	char own[96];
	char docker[96];
};

static void nap(int ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL);
}

static char *read_text(const char *path)
{
	static char text[1 << 20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		(void)close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static int count(const char *text, const char *part)
{
	int n = 0;

	for (const char *p = text; (p = strstr(p, part)); p++)
		n++;
	return n;
}

/* Until the log has a text so many times. */
static bool wait_log(const struct served *s, const char *part, int times)
{
	for (int i = 0; i < 1000; i++) {
		if (count(read_text(s->log), part) >= times)
			return true;
		nap(20);
	}
	printf("# not in the log: %s\n# %s\n", part, read_text(s->log));
	return false;
}

static void link_program(const struct served *s, const char *from,
			 const char *name)
{
	char to[160];

	(void)snprintf(to, sizeof(to), "%s/bin/%s", s->dir, name);
	CHECK(symlink(from, to) == 0);
}

static void put_file(const struct served *s, const char *name, const char *text)
{
	char path[160];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	f = fopen(path, "we");
	CHECK(f != NULL);
	if (!f)
		return;
	(void)fputs(text, f);
	(void)fclose(f);
	(void)chmod(path, 0644);
}

static void set_up(struct served *s)
{
	static const char *const programs[] = { "cordon-keeper", "cordon-desk",
						"cordon-image", "cordon-gate" };
	const char *build = getenv("CORDON_BUILD");
	char path[4096];

	memset(s, 0, sizeof(*s));
	(void)strcpy(s->dir, "/tmp/cordon-serve-XXXXXX");
	if (!build || !mkdtemp(s->dir)) {
		printf("# CORDON_BUILD is not set, or no directory\n");
		_exit(1);
	}
	(void)chmod(s->dir, 0711);
	(void)snprintf(s->log, sizeof(s->log), "%s/log", s->dir);
	(void)snprintf(s->own, sizeof(s->own), "%s/run/cordon.sock", s->dir);
	(void)snprintf(s->docker, sizeof(s->docker), "%s/docker.sock", s->dir);
	(void)snprintf(path, sizeof(path), "%s/bin", s->dir);
	CHECK(mkdir(path, 0755) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", build, programs[i]);
		link_program(s, path, programs[i]);
	}
	(void)snprintf(path, sizeof(path), "%s/tests/fake-front", build);
	link_program(s, path, "cordon-front");
	put_file(s, "policy.yaml",
		 "version: 1\n"
		 "sandbox: {memory: 128m, mount_roots: [/tmp], "
		 "read_only: false}\n"
		 "docker: {log_max: 1m}\n");
}

static void set_env(const struct served *s, const char *name, const char *dir)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "%s/%s", s->dir, dir);
	(void)setenv(name, text, 1);
}

/* In the child: standard error, which alone goes through the exec. */
static void log_to(const struct served *s)
{
	int fd = open(s->log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);

	(void)dup2(fd, 2);
}

/* Starts the daemon; more arguments end with NULL. */
static pid_t launch(const struct served *s, const char *const *more)
{
	const char *argv[32] = { "cordon", "serve", "--mode", "0666" };
	char policy[96];
	char program[4096];
	int n = 4;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	set_env(s, "CORDON_STATE_DIR", "state");
	set_env(s, "CORDON_RUNTIME_DIR", "run");
	set_env(s, "CORDON_LIBEXEC", "bin");
	(void)snprintf(policy, sizeof(policy), "%s/policy.yaml", s->dir);
	argv[n++] = "--policy";
	argv[n++] = policy;
	for (; more && *more; more++)
		argv[n++] = *more;
	(void)snprintf(program, sizeof(program), "%s/cordon",
		       getenv("CORDON_BUILD"));
	log_to(s);
	(void)execv(program, (char **)argv);
	_exit(127);
}

static void start_with(struct served *s, const char *const *more)
{
	s->pid = launch(s, more);
	CHECK(wait_log(s, "ready:", 1));
}

static void start(struct served *s)
{
	const char *const more[] = { "--docker-socket", s->docker, NULL };

	set_up(s);
	start_with(s, more);
}

/* Waits for its end; -1: it does not end. */
static int end_of(pid_t pid)
{
	int status = 0;

	for (int i = 0; i < 1500; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status)
						 : 128 + WTERMSIG(status);
		nap(20);
	}
	return -1;
}

static void clean(const struct served *s)
{
	char command[160];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", s->dir);
	if (strncmp(s->dir, "/tmp/cordon-serve-", 18) == 0)
		(void)!system(command);
}

static void stop(struct served *s)
{
	CHECK_INT(kill(s->pid, SIGTERM), 0);
	CHECK_INT(end_of(s->pid), 0);
	clean(s);
}

/* ---- asking ---- */

static int dial(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static char answer_text[4 << 20];

static const char *ask_bytes(const char *path, const char *data, size_t len)
{
	int fd = dial(path);
	size_t have = 0;
	ssize_t n;

	answer_text[0] = '\0';
	if (fd < 0) {
		printf("# connect '%s': %s\n", path, strerror(errno));
		return answer_text;
	}
	for (size_t at = 0; at < len; at += (size_t)n) {
		n = send(fd, data + at, len - at, MSG_NOSIGNAL);
		if (n <= 0)
			break;
	}
	(void)shutdown(fd, SHUT_WR);
	while ((n = read(fd, answer_text + have,
			 sizeof(answer_text) - 1 - have)) > 0)
		have += (size_t)n;
	answer_text[have] = '\0';
	(void)close(fd);
	return answer_text;
}

static const char *ask(const struct served *s, const char *text)
{
	return ask_bytes(s->own, text, strlen(text));
}

/* The same as another user; only what it says comes back. */
static const char *ask_as(const struct served *s, uid_t uid, const char *text)
{
	size_t have = 0;
	ssize_t n;
	int p[2];
	pid_t pid;

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		const char *got;

		if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		    setresuid(uid, uid, uid) < 0)
			_exit(1);
		got = ask(s, text);
		(void)!write(p[1], got, strlen(got));
		_exit(0);
	}
	(void)close(p[1]);
	while ((n = read(p[0], answer_text + have,
			 sizeof(answer_text) - 1 - have)) > 0)
		have += (size_t)n;
	answer_text[have] = '\0';
	(void)close(p[0]);
	(void)waitpid(pid, NULL, 0);
	return answer_text;
}

/* ---- processes ---- */

static bool is_alive(pid_t pid)
{
	char path[64];
	char text[512];
	char *paren;
	int fd;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n < 0 ? 0 : n] = '\0';
	paren = strrchr(text, ')');
	return paren && paren[2] != 'Z';
}

/* The child of the daemon with that name. */
static pid_t child_named(const struct served *s, const char *name)
{
	char path[96];
	char list[1024];
	char *save = NULL;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
		       (int)s->pid, (int)s->pid);
	(void)snprintf(list, sizeof(list), "%.1000s", read_text(path));
	for (char *p = strtok_r(list, " ", &save); p;
	     p = strtok_r(NULL, " ", &save)) {
		char comm[64];

		(void)snprintf(path, sizeof(path), "/proc/%s/comm", p);
		(void)snprintf(comm, sizeof(comm), "%.60s", read_text(path));
		comm[strcspn(comm, "\n")] = '\0';
		if (strcmp(comm, name) == 0)
			return (pid_t)atoi(p);
	}
	return 0;
}

static pid_t keeper_of(const struct served *s)
{
	return child_named(s, "cordon-keeper");
}

/* ---- tests ---- */

TEST(front_is_born_with_its_descriptors_and_nothing_else)
{
	struct served s;
	const char *t;

	start(&s);
	t = ask(&s, "status");
	for (int fd = 0; fd < 9; fd++) {
		char line[32];

		(void)snprintf(line, sizeof(line), "\nfd %d ", fd);
		CHECK_HAS(t, line);
	}
	CHECK_INT(count(t, "\nfd "), 9);
	CHECK_INT(count(t, "\nfd 3 140000"), 1);
	CHECK_INT(count(t, "\nfd 6 40000"), 1);
	CHECK_HAS(t, "NoNewPrivs:\t1");
	CHECK_HAS(t, "state 700");
	CHECK_HAS(t, "may make a file: yes");
	CHECK_HAS(t, "notes 1");
	CHECK_HAS(t, "\nPATH=/usr/bin:/bin\n");
	CHECK(!strstr(t, "CORDON_STATE_DIR"));
	CHECK(!strstr(t, "HOME="));
	for (const char *const *p =
		     (const char *const[]){ "CapInh", "CapPrm", "CapEff",
					    "CapAmb", NULL };
	     *p; p++) {
		char line[64];

		(void)snprintf(line, sizeof(line), "%s:\t0000000000000000", *p);
		CHECK_HAS(t, line);
	}
	stop(&s);
}

TEST_WHERE(front_is_another_user, geteuid() == 0)
{
	struct served s;
	const char *t;

	start(&s);
	t = ask(&s, "status");
	CHECK(!strstr(t, "Uid:\t0"));
	CHECK_HAS(t, "CapBnd:\t0000000000000000");
	CHECK_HAS(t, "Groups:\t \n");
	stop(&s);
}

TEST(max_boxes_is_told)
{
	const char *const more[] = { "--max-boxes", "7", NULL };
	struct served s;

	set_up(&s);
	start_with(&s, more);
	CHECK_HAS(ask(&s, "status"), "cordon-front\n--max-boxes\n7\n");
	CHECK_INT(count(ask(&s, "status"), "\nfd "), 8);
	stop(&s);
}

TEST(a_request_is_prepared)
{
	struct served s;
	const char *t;

	start(&s);
	t = ask(&s, "prepare\n" OWN "\"settings\":{\"memory\":\"64m\","
		    "\"env\":{\"A\":\"b\"}},\"command\":[\"true\"]}");
	CHECK_HAS(t, "refused 0 exit 0 fds 3 code 0\n");
	CHECK_HAS(t, "\"command\":[\"true\"]");
	CHECK_HAS(t, "\"memory\":67108864");
	CHECK_HAS(t, "\"decision\":\"allow\"");
	CHECK_HAS(t, "\n{\"run\":\"" RUN "\",\"box\":\"b1\","
		     "\"face\":\"cordon\",\"peer\":");
	CHECK_HAS(t, "\"policy\":{\"file\":\"/tmp/cordon-serve-");
	CHECK_HAS(t, "\"log_max\":1048576");
	CHECK_HAS(t, "\"timeout_ms\":0");
	CHECK_HAS(t, "\"clamped\":[]");
	/* Nothing of the daemon's own surroundings. */
	CHECK(!strstr(t, "CORDON_STATE_DIR"));
	/* White space, code, a further program, a box alone. */
	t = ask(&s, "prepare\n " OWN "\n \"code\" : [ { \"language\": "
		    "\"python\", \"code\": \"print(1)\\n\" } ] } \n");
	CHECK_HAS(t, "fds 3 code 0\n");
	t = ask(&s, "prepare\n" OWN "\"exec\":true,\"settings\":{\"volumes\":"
		    "[\"/nowhere/at/all:/x\"]},\"command\":[\"ls\"]}");
	CHECK_HAS(t, "fds 2 code 0\n");
	t = ask(&s, "prepare\n" OWN "\"box_only\":true,\"settings\":{}}");
	CHECK_HAS(t, "fds 2 code 0\n");
	stop(&s);
}

TEST(numbers_are_lowered_or_denied)
{
	struct served s;
	const char *t;

	start(&s);
	t = ask(&s, "prepare\n" OWN "\"settings\":{\"memory\":\"1g\"},"
		    "\"command\":[\"true\"]}");
	CHECK_HAS(t, "refused 1 ");
	CHECK_HAS(t, "fds 1 ");
	CHECK_HAS(t, "above the ceiling 128m");
	CHECK_HAS(t, "\"decision\":\"deny\"");
	CHECK_HAS(t, "\"message\":\"memory 1024m is above");
	t = ask(&s, "prepare\n" OWN "\"clamp\":true,\"settings\":{\"memory\":"
		    "\"1g\"},\"command\":[\"true\"]}");
	CHECK_HAS(t, "refused 0 exit 0 fds 3 code 0\n");
	CHECK_HAS(t, "\"clamped\":[{\"name\":\"memory\",\"asked\":1073741824,"
		     "\"given\":134217728}]");
	stop(&s);
}

/* Above what a box has: as the numbers of the policy. */
static const struct {
	const char *settings, *row, *why;
} above[] = {
	{ "\"ulimit\":[\"nofile=4000:90000\"]",
	  "{\"name\":\"ulimit nofile\",\"asked\":90000,\"given\":1024}",
	  "ulimit nofile 90000 is above the ceiling 1024" },
	{ "\"ulimit\":[\"core=-1:-1\"]",
	  "{\"name\":\"ulimit core\",\"asked\":\"unlimited\","
	  "\"given\":0}",
	  "ulimit core unlimited is above" },
	{ "\"memory_reservation\":1073741824",
	  "{\"name\":\"memory_reservation\",\"asked\":1073741824,"
	  "\"given\":134217728}",
	  "memory_reservation 1073741824 is above" },
	{ "\"cpuset_cpus\":\"0-255\"",
	  "{\"name\":\"cpuset_cpus\",\"asked\":\"0-255\",\"given\":\"0",
	  "cpuset_cpus 0-255 is above" },
	{ "\"shm_size\":1073741824",
	  "{\"name\":\"tmpfs /dev/shm\",\"asked\":1073741824,"
	  "\"given\":1048576}",
	  "/dev/shm of 1073741824 bytes is above the ceiling 1m" },
};

static void ask_above(struct served *s, bool is_denied)
{
	char text[1024];

	for (size_t i = 0; i < ARRAY_SIZE(above); i++) {
		(void)snprintf(text, sizeof(text),
			       "prepare\n" OWN
			       "\"clamp\":true,\"settings\":{%s},"
			       "\"command\":[\"true\"]}",
			       above[i].settings);
		CHECK_HAS(ask(s, text),
			  is_denied ? above[i].why : above[i].row);
	}
}

#define ABOVE                                                                  \
	"version: 1\nsandbox: {memory: 128m, files: 1024, tmpfs: {/dev/shm: "  \
	"1m}}\n"

TEST(what_is_above_is_lowered_or_denied)
{
	struct served s;

	set_up(&s);
	put_file(&s, "policy.yaml", ABOVE);
	start_with(&s, NULL);
	ask_above(&s, false);
	/* Not one of them is here. */
	CHECK_HAS(ask(&s, "prepare\n" OWN "\"clamp\":true,\"settings\":{"
			  "\"cpuset_cpus\":\"255\"},\"command\":[\"true\"]}"),
		  "has none of the CPUs that are here");
	put_file(&s, "policy.yaml", ABOVE "docker: {over_ceiling: deny}\n");
	CHECK_INT(kill(s.pid, SIGHUP), 0);
	CHECK(wait_log(&s, "policy: ", 2));
	nap(100);
	ask_above(&s, true);
	stop(&s);
}

TEST(what_cannot_be_asked_of_a_daemon)
{
	static const struct {
		const char *rest;
		const char *why;
	} table[] = {
		{ "\"settings\":{\"policy\":\"strict\"}",
		  "policy 'strict' is not as strict as the daemon's" },
		{ "\"settings\":{\"policy\":\"/etc/passwd\"}",
		  "there is no policy '/etc/passwd' here" },
		{ "\"settings\":{\"volumes\":[\"data:/data\"]}",
		  "not an absolute path" },
		{ "\"settings\":{\"env_file\":\"/etc/passwd\"}",
		  "reads no file" },
		{ "\"settings\":{\"copy_out\":\"*=/tmp\"}", "copies nothing" },
		{ "\"settings\":{\"ledger\":\"off\"}", "is recorded" },
		{ "\"settings\":{\"volumes\":[\"/proc:/data\"]}", "/proc" },
		{ "\"settings\":{\"volumes\":[\"/no/such:/data\"]}",
		  "No such file" },
		{ "\"settings\":{\"volumes\":[\"/usr/lib:/data\"]}",
		  "mount_roots" },
	};
	struct served s;

	start(&s);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char text[512];
		const char *t;

		(void)snprintf(text, sizeof(text),
			       "prepare\n" OWN "%s,\"command\":[\"true\"]}",
			       table[i].rest);
		t = ask(&s, text);
		CHECK(!strstr(t, "refused 0"));
		CHECK_HAS(t, table[i].why);
	}
	stop(&s);
}

TEST(the_daemons_state_and_sockets_are_not_mounted)
{
	struct served s;
	char text[600];

	start(&s);
	for (const char *const *p =
		     (const char *const[]){ "", "/state", "/state/ledger",
					    "/run/cordon.sock", NULL };
	     *p; p++) {
		const char *t;

		(void)snprintf(text, sizeof(text),
			       "prepare\n" OWN "\"settings\":{\"volumes\":[\"%s"
			       "%s:/data\"]},\"command\":[\"true\"]}",
			       s.dir, *p);
		t = ask(&s, text);
		CHECK_HAS(t, "refused 1 ");
		CHECK_HAS(t, "never mounted");
	}
	stop(&s);
}

TEST(a_hostile_document_is_an_error_and_no_more)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"null",
		"{\"settings\":{}}",
		OWN "\"command\":\"true\"}",
		OWN "\"command\":[1]}",
		OWN "\"command\":[\"a\\u0000b\"]}",
		OWN "\"what\":1,\"command\":[\"true\"]}",
		OWN "\"clamp\":1,\"command\":[\"true\"]}",
		OWN "\"command\":[\"true\"],\"command\":[\"true\"]}",
		OWN "\"exec\":true,\"box_only\":true}",
		OWN "\"code\":[{\"language\":1}]}",
		OWN "\"code\":[[]]}",
		OWN "\"settings\":{\"no_such\":1},\"command\":[\"true\"]}",
		OWN "\"command\":[\"\xff\"]}",
		"{\"run\":\"../../../../../../../etc/passwd\"}",
		"{" HEAD "\"../x\",\"command\":[\"true\"]}",
		OWN "\"command\":[]}",
	};
	struct served s;
	char text[1024];
	char *huge;

	start(&s);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *t;
		bool is_error;

		(void)snprintf(text, sizeof(text), "prepare\n%s", bad[i]);
		t = ask(&s, text);
		is_error = !strstr(t, "code 0\n") && strstr(t, "refused 3 ");
		if (!is_error)
			printf("# taken: %s: %s\n", bad[i], t);
		CHECK(is_error);
	}
	/* Too long, and so deep that it would not fit on a stack. */
	huge = malloc(20 << 20);
	CHECK(huge != NULL);
	memset(huge, '[', 20 << 20);
	memcpy(huge, "prepare\n", 8);
	CHECK_HAS(ask_bytes(s.own, huge, 20 << 20), "too long");
	CHECK_HAS(ask_bytes(s.own, huge, 10 << 20), "refused 3 ");
	free(huge);
	CHECK_HAS(ask(&s, "prepare-few\n{}"), "two descriptors");
	CHECK_HAS(ask(&s, "prepare-pipe\n{}"), "not a file");
	CHECK_HAS(ask(&s, "prepare\n" OWN "\"command\":[\"true\"]}"),
		  "fds 3 code 0");
	CHECK_INT(count(read_text(s.log), "ready:"), 1);
	stop(&s);
}

/* Each of these has root, or whoever runs the daemon, at its other end. */
TEST(a_front_cannot_name_a_peer_that_did_not_come)
{
	struct served s;

	start(&s);
	for (int fd = 0; fd < 9; fd++) {
		char text[200];

		(void)snprintf(text, sizeof(text),
			       "prepare-as %d\n" OWN "\"command\":[\"true\"]}",
			       fd);
		CHECK_HAS(ask(&s, text), "not a connection to this daemon");
	}
	stop(&s);
}

TEST_WHERE(a_peer_mounts_what_it_could_open, geteuid() == 0)
{
	struct served s;
	char dir[3][160];
	char text[600];
	const char *t;

	start(&s);
	/* Of the peer; of root and closed; of root and open. */
	for (int i = 0; i < 3; i++) {
		(void)snprintf(dir[i], sizeof(dir[i]), "%s/dir%d", s.dir, i);
		CHECK(mkdir(dir[i], i == 1 ? 0700 : 0755) == 0);
		CHECK(chmod(dir[i], i == 1 ? 0700 : 0755) == 0);
	}
	CHECK(chown(dir[0], OTHER, OTHER) == 0);
#define WITH                                                                   \
	"prepare\n" OWN "\"settings\":{\"volumes\":[\"%s%s:/data:%s\"]},"      \
	"\"command\":[\"true\"]}"
	(void)snprintf(text, sizeof(text), WITH, dir[0], "", "rw");
	t = ask_as(&s, OTHER, text);
	CHECK_HAS(t, "fds 3 code 0\n");
	CHECK_HAS(t, "\"peer\":61999");
	(void)snprintf(text, sizeof(text), WITH, dir[1], "/in", "ro");
	t = ask_as(&s, OTHER, text);
	CHECK_HAS(t, "refused 3 ");
	CHECK_HAS(t, "Permission denied");
	(void)snprintf(text, sizeof(text), WITH, dir[2], "", "ro");
	CHECK_HAS(ask_as(&s, OTHER, text), "fds 3 code 0\n");
	(void)snprintf(text, sizeof(text), WITH, dir[2], "", "rw");
	t = ask_as(&s, OTHER, text);
	CHECK_HAS(t, "refused 1 ");
	CHECK_HAS(t, "it is not yours");
	/* Its own, and made read-only by itself. */
	CHECK(chmod(dir[0], 0500) == 0);
	(void)snprintf(text, sizeof(text), WITH, dir[0], "", "rw");
	CHECK_HAS(ask_as(&s, OTHER, text), "you may not write to it");
	/* Root may. */
	(void)snprintf(text, sizeof(text), WITH, dir[1], "", "rw");
	CHECK_HAS(ask(&s, text), "fds 3 code 0\n");
	stop(&s);
}

TEST_WHERE(root_inside_is_replaced_for_docker, geteuid() == 0)
{
	struct served s;
	const char *t;

	start(&s);
	t = ask(&s,
		"prepare\n{" HEAD "\"docker\",\"settings\":{\"user\":\"0\"},"
		"\"command\":[\"true\"]}");
	CHECK_HAS(t, "\"uid\":65534");
	CHECK_HAS(t, "allow_root_inside");
	stop(&s);
}

TEST(a_rule_that_asks_waits_and_nobody_answers)
{
	struct served s;
	const char *t;

	set_up(&s);
	put_file(&s, "policy.yaml",
		 "version: 1\ncommands: {allow: [ls], ask: [cat]}\n"
		 "approvals: {expire: 300ms}\n");
	start_with(&s, NULL);
	CHECK_HAS(ask(&s, "prepare\n" OWN "\"command\":[\"ls\"]}"),
		  "fds 3 code 0\n");
	t = ask(&s, "prepare\n" OWN "\"command\":[\"cat\",\"/tmp/x\"]}");
	CHECK_HAS(t, "refused 1 ");
	CHECK_HAS(t, "a person was asked");
	CHECK_HAS(t, "nobody answered in time");
	CHECK_HAS(t, "\"decision\":\"deny\"");
	t = ask(&s, "prepare\n" OWN "\"command\":[\"rm\",\"x\"]}");
	CHECK_HAS(t, "refused 1 ");
	t = ask(&s, "prepare\n" OWN "\"exec\":true,\"command\":[\"rm\"]}");
	CHECK_HAS(t, "refused 1 ");
	stop(&s);
}

TEST(at_most_so_many_are_prepared_at_once)
{
	static const char head[] = "many 150\n" OWN
				   "\"code\":[{\"language\":\"sh\",\"code\":\"";
	static const char tail[] = "\"}],\"timeout\":\"never\"}";
	const size_t size = 2 << 20;
	struct served s;
	const char *t;
	char *text;
	int ok;
	int busy;

	/* Much to read and little to say: they take longer than to come. */
	text = malloc(size);
	CHECK(text != NULL);
	memset(text, ' ', size);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + size - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
	start(&s);
	t = ask_bytes(s.own, text, size);
	free(text);
	ok = count(t, "fds 0 code 22\n");
	busy = count(t, "busy: too many");
	CHECK_INT(ok + busy, 150);
	/* One user has half of the places, and that many at least. */
	CHECK(ok >= 32);
	CHECK(busy > 0);
	CHECK_HAS(ask(&s, "prepare\n" OWN "\"command\":[\"true\"]}"),
		  "fds 3 code 0\n");
	stop(&s);
}

#define GATES "gates %d\n" OWN "\"command\":[\"true\"]}"

/* A gate lives as long as the front holds it: what one user can have of them.
 */
TEST(one_user_has_so_many_gates)
{
	const int most = 320;
	struct served s;
	char text[256];
	const char *t;

	set_up(&s);
	put_file(&s, "policy.yaml",
		 "version: 1\nnetwork: {allow: [{host: api.test}]}\n");
	start_with(&s, NULL);
	(void)snprintf(text, sizeof(text), GATES, most);
	CHECK_INT(count(ask(&s, text), "fds 5 code 0\n"), most);
	(void)snprintf(text, sizeof(text), GATES, 1);
	t = ask(&s, text);
	CHECK_HAS(t, "busy: too many boxes have a gate");
	CHECK(!strstr(t, "code 0\n"));
	/* What needs none goes on, and so do others. */
	CHECK_HAS(ask(&s, "prepare\n" OWN "\"command\":[\"true\"],"
			  "\"settings\":{\"network\":\"none\"}}"),
		  "fds 3 code 0\n");
	if (geteuid() == 0)
		CHECK_HAS(ask_as(&s, OTHER, text), "fds 5 code 0\n");
	/* One that is gone makes room for one. */
	(void)ask(&s, "drop-gate\n");
	nap(500);
	CHECK_HAS(ask(&s, text), "fds 5 code 0\n");
	CHECK_HAS(ask(&s, text), "busy: too many boxes have a gate");
	stop(&s);
}

/* ---- what gates ask, and a front that lies ---- */

/* A server that says one word to all who reach it; its port. */
static uint16_t serve_word(pid_t *ret_pid)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(a);

	CHECK(bind(fd, (struct sockaddr *)&a, len) == 0 && listen(fd, 8) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
	*ret_pid = fork();
	while (*ret_pid == 0) {
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		(void)send(c, "reached", 7, MSG_NOSIGNAL);
		(void)close(c);
	}
	(void)close(fd);
	return ntohs(a.sin_port);
}

/* What a command of the daemon's own user says, about its questions. */
static const char *approvals(const struct served *s, const char *words)
{
	static char text[65536];
	char command[400];
	FILE *f;
	size_t n;

	(void)snprintf(command, sizeof(command),
		       "CORDON_LIBEXEC='%s/bin' CORDON_STATE_DIR='%s/state' "
		       "'%s/cordon' approvals %s 2>&1",
		       s->dir, s->dir, getenv("CORDON_BUILD"), words);
	f = popen(command, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	if (f)
		(void)pclose(f);
	return text;
}

/* The only question that waits; "": there is none, or there are several. */
static const char *question(const struct served *s)
{
	static char id[16];

	for (int i = 0; i < 200; i++) {
		const char *t = approvals(s, "list --json");
		const char *at = strstr(t, "\"id\":\"");

		id[0] = '\0';
		if (at && count(t, "\"id\":\"") == 1) {
			(void)snprintf(id, sizeof(id), "%.*s",
				       (int)strcspn(at + 6, "\""), at + 6);
			return id;
		}
		nap(50);
	}
	return id;
}

static void no_question(const struct served *s)
{
	for (int i = 0; i < 200; i++) {
		if (!strstr(approvals(s, "list --json"), "\"id\":\""))
			return;
		nap(50);
	}
	CHECK(!"a question is left");
}

static void give(const struct served *s, const char *how, const char *id,
		 const char *more)
{
	char words[100];

	(void)snprintf(words, sizeof(words), "%s %s %s", how, id, more);
	CHECK(!strstr(approvals(s, words), "cordon:"));
}

/* Who asks it, and who does not. */
static void is_of(const struct served *s, const char *id, uid_t uid)
{
	char words[64];
	char who[32];
	const char *t;

	(void)snprintf(words, sizeof(words), "show %s", id);
	(void)snprintf(who, sizeof(who), ", uid %u\n", (unsigned int)uid);
	t = approvals(s, words);
	CHECK_HAS(t, who);
	CHECK_HAS(t, "cordon-gate");
}

/* A front with gates: the first ones of root's, the others of OTHER's. */
struct lying {
	struct served s;
	uint16_t port;
	pid_t server;
};

static void set_up_lying(struct lying *l)
{
	char text[512];

	memset(l, 0, sizeof(*l));
	l->port = serve_word(&l->server);
	set_up(&l->s);
	(void)snprintf(text, sizeof(text),
		       "version: 1\napprovals: {ask: [store]}\n"
		       "network: {allow: [{host: free.test, ports: [%u]}], "
		       "ask: [{host: 127.0.0.1, ports: [%u]}, "
		       "{host: a.test, ports: [%u]}, "
		       "{host: '*.below.test', ports: [%u]}]}\n",
		       l->port, l->port, l->port, l->port);
	put_file(&l->s, "policy.yaml", text);
}

static void begin_lying(struct lying *l, int n_root, int n_other)
{
	char text[512];

	start_with(&l->s, NULL);
	(void)snprintf(text, sizeof(text), GATES, n_root);
	CHECK_INT(count(ask(&l->s, text), "fds 5 code 0\n"), n_root);
	(void)snprintf(text, sizeof(text), GATES, n_other);
	if (n_other)
		CHECK_INT(count(ask_as(&l->s, OTHER, text), "fds 5 code 0\n"),
			  n_other);
}

static void end_lying(struct lying *l)
{
	(void)kill(l->server, SIGKILL);
	(void)waitpid(l->server, NULL, 0);
	stop(&l->s);
}

/* A box of the front's making at that gate; where its words come. */
static int box_at(const struct lying *l, int gate)
{
	char text[64];
	int fd = dial(l->s.own);

	(void)snprintf(text, sizeof(text), "gate-box %d\n%u", gate, l->port);
	(void)send(fd, text, strlen(text), MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	return fd;
}

static const char *box_says(int fd)
{
	static char text[64];
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, text + have, sizeof(text) - 1 - have)) > 0)
		have += (size_t)n;
	text[have] = '\0';
	(void)close(fd);
	return text;
}

/*
 * The front alone does all of it, and only root is still connected. Whose gate
 * it uses, in that name is asked, and an answer for one is none for another.
 */
TEST_WHERE(a_front_asks_in_nobodys_name, geteuid() == 0)
{
	struct lying l;
	char id[16];
	int fd;

	set_up_lying(&l);
	begin_lying(&l, 2, 2);
	fd = box_at(&l, 2);
	(void)strcpy(id, question(&l.s));
	is_of(&l.s, id, OTHER);
	give(&l.s, "approve", id, "--scope session");
	CHECK_STR(box_says(fd), "asks reached");
	/* Root's gate, at the same host: a question of its own. */
	fd = box_at(&l, 0);
	(void)strcpy(id, question(&l.s));
	is_of(&l.s, id, 0);
	give(&l.s, "deny", id, "");
	CHECK_STR(box_says(fd), "asks refused");
	/* The control: that answer is OTHER's, and holds for OTHER's. */
	CHECK_STR(box_says(box_at(&l, 3)), "asks reached");
	CHECK_HAS(approvals(&l.s, "list --json"), "[]");
	end_lying(&l);
}

TEST(a_front_gives_no_answer)
{
	struct lying l;
	char id[16];
	char words[64];
	int fd;

	set_up_lying(&l);
	begin_lying(&l, 2, 0);
	fd = box_at(&l, 0);
	(void)strcpy(id, question(&l.s));
	(void)ask(&l.s, "gate-answer 0");
	CHECK_STR(box_says(fd), "asks refused");
	/* Its gate is gone, and so is its question. */
	no_question(&l.s);
	(void)snprintf(words, sizeof(words), "approve %s", id);
	CHECK_HAS(approvals(&l.s, words), "withdrawn");
	/* Another one is not touched by that. */
	fd = box_at(&l, 1);
	(void)strcpy(id, question(&l.s));
	CHECK(*id);
	give(&l.s, "approve", id, "");
	CHECK_STR(box_says(fd), "asks reached");
	end_lying(&l);
}

/* Who is asked for, and for which gate, is in no order of the front's. */
TEST(a_front_cannot_order_a_question)
{
	/* ORDER_ASKED, ORDER_GATE and one that there is not */
	static const char *const orders[] = { "order 12", "order 14",
					      "order 99" };
	struct lying l;

	set_up_lying(&l);
	begin_lying(&l, 1, 0);
	CHECK_HAS(ask(&l.s, "prepare\n" OWN "\"command\":[\"true\"],"
			    "\"peer\":0}"),
		  "code 22\n");
	for (int i = 0; i < (int)ARRAY_SIZE(orders); i++) {
		(void)ask(&l.s, orders[i]);
		CHECK(wait_log(&l.s, "does not keep to the form", i + 1));
		CHECK(wait_log(&l.s, "ready:", i + 2));
	}
	CHECK_HAS(approvals(&l.s, "list --json"), "[]");
	CHECK_INT(child_named(&l.s, "cordon-gate"), 0);
	end_lying(&l);
}

static const char *gate_says(const struct lying *l, int gate, const char *what)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "gate-say %d\n%s", gate, what);
	return ask(&l->s, text);
}

/* The same of a question, at the port that the policy names. */
static const char *gate_asks(const struct lying *l, int gate, int number,
			     const char *host)
{
	char text[200];

	(void)snprintf(text, sizeof(text), "%d %s %u", number, host, l->port);
	return gate_says(l, gate, text);
}

static void gate_is_refused(const struct lying *l, int number, const char *host)
{
	const char *said = gate_asks(l, 0, number, host);
	char no[16];

	(void)snprintf(no, sizeof(no), "%d no", number);
	if (strcmp(said, no) != 0)
		printf("# %s\n", host);
	CHECK_STR(said, no);
}

/* Nor is a gate believed: it reads what a box wrote. */
TEST(a_gate_asks_about_what_the_policy_asks)
{
	static const char *const never[] = {
		"evil.test",   "free.test",   "*.below.test", "below.test",
		"127.0.0.0/8", "[a.test]",    "a.test:443",   "169.254.169.254",
		"*",           "127.0.0.1:1", "a.test/",
	};
	struct lying l;
	char path[4096];
	char id[16];

	set_up_lying(&l);
	(void)snprintf(path, sizeof(path), "%s/bin/cordon-gate", l.s.dir);
	CHECK(unlink(path) == 0);
	(void)snprintf(path, sizeof(path), "%s/tests/lying-gate",
		       getenv("CORDON_BUILD"));
	link_program(&l.s, path, "cordon-gate");
	begin_lying(&l, 4, 0);
	CHECK_STR(gate_asks(&l, 0, 1, "a.test"), "nothing");
	(void)strcpy(id, question(&l.s));
	is_of(&l.s, id, geteuid());
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		gate_is_refused(&l, (int)i + 2, never[i]);
	CHECK_STR(gate_says(&l, 0, "40 a.test 1"), "40 no");
	CHECK_STR(gate_says(&l, 0, "41 a.test 0"), "41 no");
	CHECK_STR(question(&l.s), id);
	/* A number is asked about once; then it is a gate no more. */
	CHECK_STR(gate_asks(&l, 0, 41, "a.test"), "gone");
	no_question(&l.s);
	CHECK_STR(gate_asks(&l, 1, 65, "a.test"), "gone");
	CHECK_STR(gate_says(&l, 2, "short"), "gone");
	CHECK_STR(gate_asks(&l, 3, 64, "x.below.test"), "nothing");
	give(&l.s, "deny", question(&l.s), "");
	CHECK_STR(gate_says(&l, 3, "listen"), "64 no");
	end_lying(&l);
}

TEST(what_was_prepared_runs)
{
	struct served s;
	const char *t;

	start(&s);
	t = ask(&s, "run\n" OWN "\"command\":[\"sh\",\"-c\",\"echo $((6*7)); "
		    "id -u; env\"]}");
	CHECK_HAS(t, "program: status 0, exec 0,");
	CHECK_HAS(t, "\n42\n65534\n");
	CHECK(!strstr(t, "CORDON_"));
	t = ask(&s, "run\n" OWN "\"command\":[\"no-such-program\"]}");
	CHECK_HAS(t, "exec 2,");
	stop(&s);
}

TEST_WHERE(what_a_peers_box_makes_is_the_peers, geteuid() == 0)
{
	struct served s;
	char text[512];
	char path[160];
	struct stat st;

	start(&s);
	(void)snprintf(path, sizeof(path), "%s/w", s.dir);
	CHECK(mkdir(path, 0700) == 0 && chown(path, OTHER, OTHER) == 0);
	(void)snprintf(text, sizeof(text),
		       "run\n" OWN "\"settings\":{\"volumes\":[\"%s:/w:rw\"]},"
		       "\"command\":[\"touch\",\"/w/made\"]}",
		       path);
	CHECK_HAS(ask_as(&s, OTHER, text), "program: status 0,");
	(void)snprintf(path, sizeof(path), "%s/w/made", s.dir);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_uid, OTHER);
	stop(&s);
}

/* The store is root's; who asks is not, and cannot read it. */
TEST_WHERE(a_peers_box_has_an_image_of_the_store, geteuid() == 0)
{
	const char *build = getenv("CORDON_BUILD");
	struct served s;
	char text[4096];
	const char *t;

	start(&s);
	(void)snprintf(text, sizeof(text),
		       "mkdir -p '%s/root/bin' && cp '%s/tests/hog' "
		       "'%s/root/bin/hog' && tar -C '%s/root' -cf - . | "
		       "CORDON_STATE_DIR='%s/state' '%s/cordon' image import "
		       "- small:1 >/dev/null",
		       s.dir, build, s.dir, s.dir, s.dir, build);
	CHECK_INT(system(text), 0);
#define OF_IMAGE(name, more)                                                   \
	"run\n{" HEAD "\"docker\",\"settings\":{\"image\":\"" name "\"}" more  \
	"}"
	put_file(&s, "policy.yaml",
		 "version: 1\nsandbox: {images: [host, \"small*\"], "
		 "read_only: false}\n");
	CHECK_INT(kill(s.pid, SIGHUP), 0);
	CHECK(wait_log(&s, "policy: ", 2));
	t = ask_as(&s, OTHER,
		   OF_IMAGE("small:1", ",\"command\":[\"/bin/hog\"]"));
	CHECK_HAS(t, "fds 3 code 0\n");
	CHECK_HAS(t, "\"image_id\":\"sha256:");
	CHECK_HAS(t, "exec 0,");
	/* None of that name; one that the policy does not have; no command. */
	t = ask_as(&s, OTHER,
		   OF_IMAGE("small:2", ",\"command\":[\"/bin/hog\"]"));
	CHECK_HAS(t, "refused 3 exit 0 fds 1 code 61\n");
	t = ask_as(&s, OTHER, OF_IMAGE("other", ",\"command\":[\"/bin/hog\"]"));
	CHECK_HAS(t, "refused 1 ");
	CHECK_HAS(ask_as(&s, OTHER, OF_IMAGE("small:1", "")), "refused 3 ");
	/* A further program, and a box with none yet, need no command of it. */
	CHECK_HAS(ask_as(&s, OTHER, OF_IMAGE("small:1", ",\"box_only\":true")),
		  "fds 2 code 0\n");
	CHECK_HAS(ask_as(&s, OTHER,
			 OF_IMAGE("small:1", ",\"exec\":true,\"command\":["
					     "\"/bin/hog\"]")),
		  "fds 2 code 0\n");
	stop(&s);
}

/* In a writable directory that others use too. */
#define IN_BIND                                                                \
	"cd /w && : >f && mkdir d && ln f g && mv f d/f && echo fine; "        \
	"ln -s /etc/passwd link; mkfifo pipe; ln -s x d/link; "                \
	"ln -s x /tmp/link && mkfifo /dev/shm/pipe && echo elsewhere"

static void try_links(bool is_docker, bool is_root_writable)
{
	struct served s;
	char text[1024];
	char path[160];
	char link[200];
	struct stat st;
	const char *t;

	start(&s);
	(void)snprintf(path, sizeof(path), "%s/w", s.dir);
	CHECK(mkdir(path, 0755) == 0);
	(void)snprintf(text, sizeof(text),
		       "run\n{" HEAD "\"%s\",\"settings\":{\"read_only\":%s,"
		       "\"volumes\":[\"%s:/w:rw\"]},\"command\":[\"sh\",\"-c\","
		       "\"" IN_BIND "\"]}",
		       is_docker ? "docker" : "cordon",
		       is_root_writable ? "false" : "true", path);
	t = ask(&s, text);
	CHECK_HAS(t, "\nfine\n");
	CHECK_HAS(t, "\nelsewhere\n");
	(void)snprintf(link, sizeof(link), "%s/g", path);
	CHECK_INT(lstat(link, &st), 0);
	for (const char *const *p =
		     (const char *const[]){ "link", "pipe", "d/link", NULL };
	     *p; p++) {
		(void)snprintf(link, sizeof(link), "%s/%s", path, *p);
		CHECK_INT(lstat(link, &st), is_docker ? -1 : 0);
	}
	stop(&s);
}

TEST(no_link_is_made_in_a_volume_for_docker)
{
	try_links(true, false);
}

TEST(nor_where_the_root_can_be_written)
{
	try_links(true, true);
}

TEST(links_are_made_for_others)
{
	try_links(false, true);
}

#define END                                                                    \
	"{\"run\":\"" RUN "\",\"cause\":\"exited\",\"exit_code\":0,"           \
	"\"usage\":{},\"box\":\"b1\",\"face\":\"cordon\",\"peer\":0}"

TEST(records_are_on_the_ledger)
{
	struct served s;
	char path[160];
	const char *t;

	start(&s);
	CHECK_HAS(ask(&s, "record run.end\n" END), "code 0\n");
	(void)snprintf(path, sizeof(path), "%s/state/ledger/000001.jsonl",
		       s.dir);
	t = read_text(path);
	CHECK_HAS(t, "\"kind\":\"run.end\",\"run\":\"" RUN "\"");
	CHECK_HAS(t, "\"face\":\"cordon\",\"peer\":0");
	/* Not what the ledger says itself, and not nonsense. */
	CHECK_HAS(ask(&s, "record recovery\n{\"file\":\"x\",\"offset\":0,"
			  "\"bytes\":0,\"reason\":\"x\"}"),
		  "no record of the front's");
	CHECK(!strstr(ask(&s, "record run.end\n{}"), "code 0\n"));
	CHECK(!strstr(ask(&s, "record run.end\n{\"run\":\"\n\"}"), "code 0\n"));
	CHECK_INT(count(read_text(path), "\n"), 1);
	stop(&s);
}

TEST(the_whole_record_of_a_start_is_taken)
{
	struct served s;
	char text[65536];
	const char *from;
	const char *to;
	int depth = 0;

	start(&s);
	from = strstr(ask(&s, "prepare\n" OWN "\"command\":[\"true\"]}"),
		      "\n{\"run\":");
	CHECK(from != NULL);
	from = from ? from + 1 : "{";
	for (to = from; *to; to++) {
		depth += *to == '{';
		depth -= *to == '}';
		if (depth == 0)
			break;
	}
	(void)snprintf(text, sizeof(text), "record run.start\n%.*s",
		       (int)(to - from + 1), from);
	CHECK_HAS(ask(&s, text), "code 0\n");
	stop(&s);
}

TEST(images_only_by_the_list)
{
	static const char *const refused[] = {
		"image\npull\nx\n",
		"image\nload\n/etc/passwd\n",
		"image\nload\n-i\n/etc/passwd\n",
		"image\nload\n--input=/etc/passwd\n",
		"image\nsave\n-o\n/tmp/x\nimage\n",
		"image\nsave\n--output\n/tmp/x\nimage\n",
		"image\nimport\n/etc/passwd\nx\n",
		"image\nls\n--best-effort\nlandlock\n",
		"image\n\n",
		"image\n",
	};
	struct served s;

	start(&s);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		CHECK_HAS(ask(&s, refused[i]), "does not run that command");
	CHECK_HAS(ask(&s, "image\nls\n--json\n"), "exit 0 ");
	CHECK_HAS(ask(&s, "image\ninspect\nno-such\n"), "exit 1 ");
	CHECK(!strstr(ask(&s, "image\nimport\n-\nx\n"), "does not run that"));
	stop(&s);
}

static void dies(const struct served *s, pid_t victim, int n)
{
	pid_t before[] = { keeper_of(s), child_named(s, "cordon"),
			   child_named(s, "cordon-front") };

	CHECK(before[0] > 0 && before[1] > 0 && before[2] > 0);
	CHECK_INT(kill(victim, SIGKILL), 0);
	CHECK(wait_log(s, "ready:", n + 1));
	for (size_t i = 0; i < ARRAY_SIZE(before); i++)
		CHECK(!is_alive(before[i]));
	CHECK_HAS(ask(s, "prepare\n" OWN "\"command\":[\"true\"]}"),
		  "fds 3 code 0\n");
}

static int times_in(const char *text, const char *part)
{
	int n = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		n++;
	}
	return n;
}

TEST(whoever_dies_all_are_started_again)
{
	struct served s;

	start(&s);
	dies(&s, child_named(&s, "cordon-front"), 1);
	dies(&s, keeper_of(&s), 2);
	dies(&s, child_named(&s, "cordon"), 3);
	/* The others ended because of it, and are not blamed. */
	CHECK_INT(times_in(read_text(s.log), " died ("), 3);
	CHECK_HAS(read_text(s.log), "the front died (signal 9); all");
	CHECK_HAS(read_text(s.log), "the keeper died (signal 9); all");
	CHECK_HAS(read_text(s.log), "the clerk died (signal 9); all");
	(void)ask(&s, "garbage");
	CHECK(wait_log(&s, "ready:", 5));
	CHECK_HAS(read_text(s.log), "does not keep to the form");
	/* A client that came meanwhile waits. */
	(void)ask(&s, "exit");
	CHECK_HAS(ask(&s, "status"), "notes 1");
	stop(&s);
}

TEST(nothing_outlives_the_parent)
{
	struct served s;
	pid_t all[3];
	int status = 0;

	start(&s);
	all[0] = keeper_of(&s);
	all[1] = child_named(&s, "cordon");
	all[2] = child_named(&s, "cordon-front");
	CHECK_INT(kill(s.pid, SIGKILL), 0);
	CHECK(waitpid(s.pid, &status, 0) == s.pid);
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 250 && is_alive(all[i]); k++)
			nap(20);
		CHECK(!is_alive(all[i]));
	}
	/* Its socket is left, and the next one takes its place. */
	CHECK(access(s.own, F_OK) == 0);
	(void)unlink(s.log);
	start_with(&s, NULL);
	CHECK_HAS(ask(&s, "status"), "notes 1");
	stop(&s);
}

TEST(too_many_deaths_end_it)
{
	struct served s;

	set_up(&s);
	(void)setenv("CORDON_TEST_FRONT_DIES", "1", 1);
	s.pid = launch(&s, NULL);
	CHECK_INT(end_of(s.pid), 1);
	CHECK_HAS(read_text(s.log), "10 restarts in a minute");
	CHECK(access(s.own, F_OK) < 0);
	clean(&s);
}

TEST(two_daemons_never_share_a_state)
{
	struct served s;
	char other[96];
	const char *const more[] = { "--socket", other, NULL };

	start(&s);
	(void)snprintf(other, sizeof(other), "%s/other.sock", s.dir);
	CHECK_INT(end_of(launch(&s, more)), 1);
	CHECK_HAS(read_text(s.log), "another daemon has the state");
	CHECK(access(other, F_OK) < 0);
	CHECK_HAS(ask(&s, "status"), "notes 1");
	stop(&s);
}

TEST(a_socket_is_not_taken_from_who_listens)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct served s;
	char path[96];
	const char *const more[] = { "--socket", path, NULL };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	set_up(&s);
	(void)snprintf(path, sizeof(path), "%s/my.sock", s.dir);
	(void)strcpy(a.sun_path, path);
	CHECK(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	CHECK(listen(fd, 1) == 0);
	CHECK_INT(end_of(launch(&s, more)), 1);
	CHECK_HAS(read_text(s.log), "somebody listens");
	CHECK(access(path, F_OK) == 0);
	/* Nobody listens any more. */
	(void)close(fd);
	start_with(&s, more);
	CHECK_HAS(ask_bytes(path, "status", 6), "notes 1");
	CHECK_INT(kill(s.pid, SIGTERM), 0);
	CHECK_INT(end_of(s.pid), 0);
	CHECK(access(path, F_OK) < 0);
	/* A file is nobody's socket; a directory of others no place for one. */
	put_file(&s, "my.sock", "text");
	CHECK_INT(end_of(launch(&s, more)), 1);
	CHECK_HAS(read_text(s.log), "is not a socket");
	CHECK(access(path, F_OK) == 0);
	(void)strcpy(path, "/tmp/cordon-serve-test.sock");
	CHECK_INT(end_of(launch(&s, more)), 1);
	CHECK_HAS(read_text(s.log), "no place for a socket");
	clean(&s);
}

TEST(stops_in_order)
{
	struct served s;
	pid_t keeper;

	start(&s);
	keeper = keeper_of(&s);
	CHECK_INT(kill(s.pid, SIGTERM), 0);
	CHECK_INT(end_of(s.pid), 0);
	CHECK(!is_alive(keeper));
	CHECK(access(s.own, F_OK) < 0);
	CHECK(access(s.docker, F_OK) < 0);
	CHECK_HAS(read_text(s.log), "stopped");
	clean(&s);
}

TEST(a_second_signal_ends_it_at_once)
{
	struct served s;
	time_t then;

	(void)setenv("CORDON_TEST_NO_DRAIN", "1", 1);
	start(&s);
	CHECK_INT(kill(s.pid, SIGTERM), 0);
	CHECK(wait_log(&s, "stopping", 1));
	nap(300);
	CHECK(is_alive(s.pid));
	then = time(NULL);
	CHECK_INT(kill(s.pid, SIGINT), 0);
	CHECK_INT(end_of(s.pid), 0);
	CHECK(time(NULL) - then < 5);
	clean(&s);
}

TEST(a_front_that_does_not_drain_is_ended)
{
	struct served s;

	(void)setenv("CORDON_TEST_NO_DRAIN", "1", 1);
	start(&s);
	CHECK_INT(kill(s.pid, SIGTERM), 0);
	CHECK_INT(end_of(s.pid), 0);
	CHECK_HAS(read_text(s.log), "did not end in time");
	clean(&s);
}

TEST(the_policy_is_read_again)
{
	struct served s;
	char before[2][2048];

	start(&s);
	(void)snprintf(before[0], sizeof(before[0]), "%s", ask(&s, "policy"));
	CHECK_HAS(before[0], "\"log_max\":1048576");
	CHECK_HAS(before[0], "\"bind_symlinks\":\"deny\"");
	put_file(&s, "policy.yaml",
		 "version: 1\nsandbox: {memory: 64m}\n"
		 "docker: {log_max: 2m, exec: {max_output: 1m}}\n");
	CHECK_INT(kill(s.pid, SIGHUP), 0);
	CHECK(wait_log(&s, "policy: ", 2));
	nap(100);
	(void)snprintf(before[1], sizeof(before[1]), "%s", ask(&s, "policy"));
	CHECK_HAS(before[1], "\"log_max\":2097152");
	CHECK_HAS(before[1], "\"max_output\":1048576");
	CHECK_HAS(ask(&s, "prepare\n" OWN "\"settings\":{\"memory\":\"100m\"},"
			  "\"command\":[\"true\"]}"),
		  "above the ceiling 64m");
	/* A broken one changes nothing, and is told. */
	put_file(&s, "policy.yaml", "version: 1\nsandbox: {memory: lots}\n");
	CHECK_INT(kill(s.pid, SIGHUP), 0);
	CHECK(wait_log(&s, "the policy stays as it was", 1));
	CHECK_STR(ask(&s, "policy"), before[1]);
	CHECK_HAS(ask(&s, "prepare\n" OWN "\"settings\":{\"memory\":\"100m\"},"
			  "\"command\":[\"true\"]}"),
		  "above the ceiling 64m");
	stop(&s);
}

TEST(a_broken_policy_at_the_start_is_the_end)
{
	struct served s;

	set_up(&s);
	put_file(&s, "policy.yaml", "version: 1\nsandbox: {memory: lots}\n");
	CHECK_INT(end_of(launch(&s, NULL)), 1);
	CHECK(access(s.own, F_OK) < 0);
	clean(&s);
}

/* The daemon with what systemd would pass it: `n` descriptors from 3 on. */
static pid_t launch_passed(const struct served *s, const int *fds, int n)
{
	pid_t pid = fork();
	char program[4096];
	char number[16];

	if (pid != 0)
		return pid;
	/* launch() forks once more; the pid must be the program's. */
	set_env(s, "CORDON_STATE_DIR", "state");
	set_env(s, "CORDON_RUNTIME_DIR", "run");
	set_env(s, "CORDON_LIBEXEC", "bin");
	(void)snprintf(number, sizeof(number), "%d", (int)getpid());
	(void)setenv("LISTEN_PID", number, 1);
	(void)snprintf(number, sizeof(number), "%d", n);
	(void)setenv("LISTEN_FDS", number, 1);
	(void)snprintf(program, sizeof(program), "%s/cordon",
		       getenv("CORDON_BUILD"));
	log_to(s);
	for (int i = 0; i < n; i++)
		(void)dup2(fds[i], 40 + i);
	for (int i = 0; i < n; i++)
		(void)dup2(40 + i, 3 + i);
	(void)execl(program, "cordon", "serve", (char *)NULL);
	_exit(127);
}

/* The next news, within what a recv waits. */
static const char *next_news(int news)
{
	static char note[256];
	ssize_t n = recv(news, note, sizeof(note) - 1, 0);

	note[n > 0 ? n : 0] = '\0';
	return note;
}

/* As systemd would: the socket is its own, and it is told what happens. */
TEST(sockets_and_news_of_systemd)
{
	const struct timeval patience = { .tv_sec = 20 };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct served s;
	char path[96];
	int news = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	set_up(&s);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/notify", s.dir);
	CHECK(bind(news, (struct sockaddr *)&a, sizeof(a)) == 0);
	(void)setsockopt(news, SOL_SOCKET, SO_RCVTIMEO, &patience,
			 sizeof(patience));
	(void)setenv("NOTIFY_SOCKET", a.sun_path, 1);
	(void)snprintf(path, sizeof(path), "%s/passed.sock", s.dir);
	(void)strcpy(a.sun_path, path);
	CHECK(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	CHECK(listen(fd, 8) == 0);
	s.pid = launch_passed(&s, &fd, 1);
	(void)close(fd);
	CHECK(wait_log(&s, "ready:", 1));
	CHECK_HAS(next_news(news), "READY=1");
	CHECK_HAS(ask_bytes(path, "status", 6), "notes 1");
	CHECK_HAS(ask_bytes(path, "policy", 6), "preset:daemon");
	CHECK_HAS(ask_bytes(path, "prepare\n" OWN "\"command\":[\"true\"]}",
			    strlen("prepare\n" OWN "\"command\":[\"true\"]}")),
		  "fds 3 code 0\n");
	CHECK_INT(kill(s.pid, SIGHUP), 0);
	CHECK_HAS(next_news(news), "RELOADING=1\nMONOTONIC_USEC=");
	CHECK_STR(next_news(news), "READY=1");
	CHECK_INT(kill(s.pid, SIGTERM), 0);
	CHECK_STR(next_news(news), "STOPPING=1");
	CHECK_INT(end_of(s.pid), 0);
	/* It is systemd's: not removed. */
	CHECK(access(path, F_OK) == 0);
	CHECK(access(s.own, F_OK) < 0);
	clean(&s);
}

/* What is passed in and is no socket to listen on is not served. */
TEST(other_descriptors_of_systemd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int silent = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int wrong[] = { null, silent };

	for (int i = 0; i < 2; i++) {
		struct served s;

		set_up(&s);
		CHECK_INT(end_of(launch_passed(&s, &wrong[i], 1)), 1);
		CHECK_HAS(read_text(s.log),
			  "is not a unix socket that listens");
		CHECK(access(s.own, F_OK) < 0);
		clean(&s);
	}
}

TEST(words_that_are_refused)
{
	static const char *const table[][3] = {
		{ "--listen", "127.0.0.1:80", "not in this build" },
		{ "--what", "x", "is not a flag" },
		{ "--max-boxes", "0", "a number from 1" },
		{ "--mode", "rwx", "not one such as" },
		{ "--group", "no-such-group", "there is no group" },
	};
	struct served s;

	set_up(&s);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const char *const more[] = { table[i][0], table[i][1], NULL };

		(void)unlink(s.log);
		CHECK(end_of(launch(&s, more)) > 0);
		CHECK_HAS(read_text(s.log), table[i][2]);
	}
	clean(&s);
}

TAP_MAIN()
