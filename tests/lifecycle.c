/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nothing is left behind: lifecycle.tsv.
 *
 * A test that must see every process runs as pid 1 of a pid namespace with a
 * procfs of its own, so that all other processes there are Cordon's. Without
 * root that cannot be had; then boxes are known by a word in their command
 * line that no other process has.
 */

#define TAP_SECONDS 180

#include "tap.h"

#include "box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

extern char **environ;

static char runtime[128];

static void own_runtime(void)
{
	(void)snprintf(runtime, sizeof(runtime), "/tmp/cordon-life-%d",
		       (int)getpid());
	(void)mkdir(runtime, 0700);
	(void)setenv("CORDON_RUNTIME_DIR", runtime, 1);
}

static void forget_runtime(void)
{
	char line[200];

	(void)snprintf(line, sizeof(line), "rm -rf %s", runtime);
	(void)!system(line);
}

static long random_below(long n)
{
	return random() % n;
}

static void sleep_us(long us)
{
	const struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	(void)nanosleep(&t, NULL);
}

static const char *build_file(const char *name)
{
	static char path[4][4096];
	static int at;
	const char *build = getenv("CORDON_BUILD");

	at = (at + 1) % 4;
	(void)snprintf(path[at], sizeof(path[at]), "%s/%s",
		       build ? build : "build", name);
	return path[at];
}

/* Reaps whatever has ended; as pid 1 that is also what others left. */
static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Processes that have `word` in their command line, but ourselves; with an
 * empty word, all processes that we can see. */
static int count_processes(const char *word)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		char path[300];
		char text[4096];
		int fd;
		ssize_t len;

		if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
		    atoi(e->d_name) == getpid())
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline",
			       e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			(void)close(fd);
		if (len < 0 || (len == 0 && *word))
			continue;
		text[len] = '\0';
		for (ssize_t i = 0; i < len; i++)
			if (!text[i])
				text[i] = ' ';
		n += strstr(text, word) != NULL;
	}
	if (d)
		(void)closedir(d);
	return n;
}

/* Waits at most two seconds for them to be gone. */
static int left_after_two_seconds(const char *word)
{
	int n = 0;

	for (int i = 0; i < 200; i++) {
		reap();
		n = count_processes(word);
		if (n == 0)
			return 0;
		sleep_us(10000);
	}
	return n;
}

static int count_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	int c;
	int n = 0;

	while (f && (c = fgetc(f)) != EOF)
		n += c == '\n';
	if (f)
		(void)fclose(f);
	return n;
}

static int count_entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		(void)closedir(d);
	return n;
}

/* Runs fn as pid 1 of its own namespace, where that is possible. */
static void alone(void (*fn)(const char *word))
{
	char word[64];
	int status;
	pid_t child;

	(void)snprintf(word, sizeof(word), "cordon-life-%d", (int)getpid());
	if (geteuid() != 0) {
		fn(word);
		return;
	}
	if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		CHECK(!"could not make namespaces");
		return;
	}
	child = fork();
	if (child == 0) {
		if (mount("proc", "/proc", "proc", 0, NULL) < 0)
			_exit(2);
		fn("");
		(void)fflush(NULL);
		_exit(tap_bad ? 1 : 0);
	}
	(void)waitpid(child, &status, 0);
	CHECK_INT(status, 0);
}

static pid_t spawn(const char *const *argv)
{
	posix_spawn_file_actions_t act;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&act);
	(void)posix_spawn_file_actions_addopen(&act, 1, "/dev/null", O_WRONLY,
					       0);
	(void)posix_spawn_file_actions_addopen(&act, 2, "/dev/null", O_WRONLY,
					       0);
	if (posix_spawn(&pid, argv[0], &act, NULL, (char **)argv, environ) != 0)
		pid = -1;
	(void)posix_spawn_file_actions_destroy(&act);
	return pid;
}

/* A box with three stubborn processes; the last word marks them. */
static pid_t start_box(const char *word)
{
	const char *const argv[] = {
		build_file("cordon"),
		"run",
		"--timeout",
		"60s",
		"--",
		"sh",
		"-c",
		"trap '' TERM INT HUP; (sleep 50; :) & (sleep 50; :) & wait",
		*word ? word : "box",
		NULL
	};

	return spawn(argv);
}

static int run_true(void)
{
	const char *const argv[] = { build_file("cordon"), "run", "--", "true",
				     NULL };
	pid_t pid = spawn(argv);
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* The children of `parent` whose name is `name`; the first, or 0. */
static pid_t find_child(pid_t parent, const char *name)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	while (d && !found && (e = readdir(d))) {
		char path[300];
		char comm[64] = "";
		int ppid = 0;
		FILE *f;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%*d (%63[^)]) %*c %d", comm, &ppid) == 2 &&
		    ppid == parent && strcmp(comm, name) == 0)
			found = atoi(e->d_name);
		if (f)
			(void)fclose(f);
	}
	if (d)
		(void)closedir(d);
	return found;
}

/* The invariant of lifecycle.tsv after a kill. */
static void check_nothing_left(const char *word, int mounts)
{
	char records[200];

	CHECK_INT(left_after_two_seconds(word), 0);
	CHECK_INT(count_lines("/proc/self/mountinfo"), mounts);
	CHECK_INT(run_true(), 0);
	/* The next start has removed the groups and their records. */
	(void)snprintf(records, sizeof(records), "%s/keepers", runtime);
	CHECK_INT(count_entries(records), 0);
	CHECK_INT(run_true(), 0);
	CHECK_INT(count_entries(records), 0);
	reap();
}

static void kill_anywhere(const char *word)
{
	const int rounds = getenv("CORDON_IN_VM") ? 30 : 200;
	const int mounts = count_lines("/proc/self/mountinfo");

	srandom(20261115);
	own_runtime();
	for (int i = 0; i < rounds; i++) {
		pid_t pid = start_box(word);
		pid_t victim = pid;

		/* All of a run's life, and mostly its beginning. */
		sleep_us(random_below(i % 4 ? 12000 : 60000));
		/* The command, with the keeper in it; or pid 1 of the box. */
		if (i % 3 == 1)
			victim = find_child(pid, "cordon-init");
		if (victim > 0)
			(void)kill(victim, SIGKILL);
		/*
		 * A box may outlive the first kill: an init that had no work
		 * yet is replaced by another one, and an ordinary user may
		 * not kill one that has the box's uid.
		 */
		if (victim != pid)
			sleep_us(random_below(30000));
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	check_nothing_left(word, mounts);
	forget_runtime();
}

TEST(l01_kill_at_200_random_moments)
{
	alone(kill_anywhere);
}

/* Directories of boxes, in whichever hierarchy. */
static int count_groups(void)
{
	FILE *f = popen("find /sys/fs/cgroup -type d "
			"-name 'cordon-*-[0-9]*' 2>/dev/null | wc -l",
			"r");
	int n = -1;

	if (f && fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f)
		(void)pclose(f);
	return n;
}

static void kill_many(const char *word)
{
	const int n = getenv("CORDON_IN_VM") ? 10 : 100;
	const int mounts = count_lines("/proc/self/mountinfo");
	const int groups = count_groups();
	pid_t pids[100];

	own_runtime();
	for (int i = 0; i < n; i++)
		pids[i] = start_box(word);
	sleep_us(300000);
	CHECK(count_processes(word) >= n);
	for (int i = 0; i < n; i++)
		(void)kill(pids[i], SIGKILL);
	for (int i = 0; i < n; i++)
		(void)waitpid(pids[i], NULL, 0);
	check_nothing_left(word, mounts);
	CHECK_INT(count_groups(), groups);
	forget_runtime();
}

static void kill_keepers(const char *word)
{
	const int rounds = getenv("CORDON_IN_VM") ? 10 : 60;
	const int mounts = count_lines("/proc/self/mountinfo");

	srandom(20261116);
	own_runtime();
	for (int i = 0; i < rounds; i++) {
		pid_t client = fork();
		pid_t keeper;

		if (client == 0) {
			(void)box_run("timeout=60s", BOX_CMD, "sh", "-c",
				      "sleep 50 & wait", *word ? word : "box",
				      NULL);
			_exit(0);
		}
		sleep_us(random_below(15000));
		keeper = find_child(client, "cordon-keeper");
		if (keeper > 0)
			(void)kill(keeper, SIGKILL);
		else
			(void)kill(client, SIGKILL);
		/* A client that lost its keeper ends by itself. */
		(void)waitpid(client, NULL, 0);
	}
	check_nothing_left(word, mounts);
	forget_runtime();
}

TEST(l01_kill_keepers_of_a_library)
{
	alone(kill_keepers);
}

TEST(l01_kill_100_living_boxes)
{
	alone(kill_many);
}

static const char *const moments[] = {
	"proc",
	"user",
	"identity",
	"enter",
	"name",
	"root",
	"mounts",
	"leave",
	"freeze",
	"groups",
	"tty",
	"limits",
	"landlock",
	"caps",
	"seccomp",
	"files",
	"workdir",
	"keeper-world",
	"keeper-record",

	"keeper-cgroup",
	"keeper-groups",
	"keeper-birth",
	"keeper-ids",
	"keeper-configure",
	"keeper-started",
	"keeper-ended",
	"keeper-removed",
};

static void die_at_each(const char *word)
{
	const int mounts = count_lines("/proc/self/mountinfo");

	own_runtime();
	for (size_t i = 0; i < sizeof(moments) / sizeof(*moments); i++) {
		const char *const argv[] = { build_file("tests/cordon"),
					     "run",
					     "--timeout",
					     "5s",
					     "--",
					     "true",
					     *word ? word : "box",
					     NULL };
		int status = 0;
		pid_t pid;

		(void)setenv("CORDON_TEST_DIE", moments[i], 1);
		pid = spawn(argv);
		(void)unsetenv("CORDON_TEST_DIE");
		(void)waitpid(pid, &status, 0);
		/* 125: setup or lost; or killed with the keeper in it */
		if (strncmp(moments[i], "keeper-", 7) == 0
			    ? !WIFSIGNALED(status)
			    : !WIFEXITED(status) ||
				      WEXITSTATUS(status) != 125) {
			printf("# died at %s: status %x\n", moments[i],
			       (unsigned int)status);
			tap_bad++;
		}
		check_nothing_left(word, mounts);
	}
	forget_runtime();
}

TEST(l02_die_at_every_named_step)
{
	if (access(build_file("tests/cordon"), X_OK) < 0)
		SKIP("the test build of the command is not there");
	alone(die_at_each);
}

/* memory, descriptors */

static long status_kb(pid_t pid, const char *field)
{
	char path[64];
	char line[256];
	long kb = -1;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			kb = strtol(line + strlen(field) + 1, NULL, 10);
	if (f)
		(void)fclose(f);
	return kb;
}

static int count_fds(pid_t pid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	return count_entries(path);
}

static void mixed_run(int i)
{
	struct cordon_result *r;

	switch (i % 5) {
	case 0:
		r = box_run(BOX_CMD, "sh", "-c", "echo x; exit 3", NULL);
		CHECK_INT(cordon_result_exit_code(r), 3);
		break;
	case 1:
		r = box_run("timeout=5ms", BOX_CMD, "sleep", "9", NULL);
		CHECK_STR(cordon_result_cause(r), "timeout");
		break;
	case 2:
		r = box_run(BOX_CMD, "nosuchprogram", NULL);
		CHECK_STR(cordon_result_cause(r), "not_found");
		break;
	case 3:
		r = box_run("pids-limit=8", BOX_CMD, "sh", "-c",
			    "sleep 9 & sleep 9 & exit 0", NULL);
		CHECK_STR(cordon_result_status(r), "success");
		break;
	default:
		r = box_run(BOX_CMD, "true", NULL);
		CHECK_STR(cordon_result_status(r), "success");
		break;
	}
	cordon_result_free(r);
}

TEST(l08_short_soak_stays_flat)
{
	const int n = getenv("CORDON_LONG")    ? 100000
		      : getenv("CORDON_IN_VM") ? 100
					       : 1500;
	long rss[2], keeper_rss[2];
	int fds[2], keeper_fds[2];
	pid_t keeper;

	own_runtime();
	(void)box_open();
	for (int i = 0; i < 100; i++)
		mixed_run(i);
	keeper = find_child(getpid(), "cordon-keeper");
	CHECK(keeper > 0);
	for (int half = 0; half < 2; half++) {
		/* Until the box that is made ahead is there. */
		sleep_us(500000);
		rss[half] = status_kb(getpid(), "VmRSS:");
		keeper_rss[half] = status_kb(keeper, "VmRSS:");
		fds[half] = count_fds(getpid());
		keeper_fds[half] = count_fds(keeper);
		for (int i = 0; half == 0 && i < n; i++)
			mixed_run(i);
	}
	printf("# %d runs: rss %ld -> %ld kB, keeper %ld -> %ld kB, fds %d -> "
	       "%d, keeper %d -> %d\n",
	       n, rss[0], rss[1], keeper_rss[0], keeper_rss[1], fds[0], fds[1],
	       keeper_fds[0], keeper_fds[1]);
	CHECK(rss[1] - rss[0] < 1024);
	CHECK(keeper_rss[1] - keeper_rss[0] < 256);
	CHECK_INT(fds[1], fds[0]);
	CHECK_INT(keeper_fds[1], keeper_fds[0]);
	cordon_close(box_handle);
	forget_runtime();
}

/* what an earlier life left */

static void write_record(const char *name, const char *text)
{
	char path[300];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/keepers", runtime);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/keepers/%s", runtime, name);
	f = fopen(path, "we");
	if (f) {
		(void)fputs(text, f);
		(void)fclose(f);
	}
}

TEST(l13_stale_records_touch_nothing_foreign)
{
	char dir[200];
	char text[400];
	char path[300];
	struct stat st;

	own_runtime();
	/* A directory of this test stands for a hierarchy. */
	(void)snprintf(dir, sizeof(dir), "%s/tree", runtime);
	(void)mkdir(dir, 0755);
	(void)snprintf(path, sizeof(path), "%s/cordon-dead-1", dir);
	(void)mkdir(path, 0755);
	(void)snprintf(path, sizeof(path), "%s/cordon-other-1", dir);
	(void)mkdir(path, 0755);
	(void)snprintf(path, sizeof(path), "%s/elsewhere", dir);
	(void)mkdir(path, 0755);
	(void)snprintf(text, sizeof(text), "%s\nrelative/path\n/no/such\n",
		       dir);
	write_record("dead", text);
	write_record("garbage", "\001\002\377 no path at all");
	write_record("empty", "");
	CHECK_INT(run_true(), 0);
	(void)snprintf(path, sizeof(path), "%s/cordon-dead-1", dir);
	CHECK(stat(path, &st) < 0 && errno == ENOENT);
	(void)snprintf(path, sizeof(path), "%s/cordon-other-1", dir);
	CHECK(stat(path, &st) == 0);
	(void)snprintf(path, sizeof(path), "%s/elsewhere", dir);
	CHECK(stat(path, &st) == 0);
	(void)snprintf(path, sizeof(path), "%s/keepers", runtime);
	CHECK_INT(count_entries(path), 0);
	forget_runtime();
}

TEST(l13_living_keepers_are_left_alone)
{
	struct cordon_spec *s;
	struct cordon_job *j;
	struct cordon_result *r;

	own_runtime();
	s = box_spec("timeout=20s", BOX_CMD, "sh", "-c", "sleep 0.6; echo on",
		     NULL);
	j = cordon_start(box_open(), s, NULL, NULL, NULL);
	CHECK(j != NULL);
	sleep_us(150000);
	for (int i = 0; i < 5; i++)
		CHECK_INT(run_true(), 0);
	while (!cordon_job_step(j))
		sleep_us(1000);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "exited");
	CHECK_STR(cordon_result_stdout(r, NULL), "on\n");
	cordon_result_free(r);
	cordon_spec_free(s);
	cordon_close(box_handle);
	forget_runtime();
}

/* the client goes away, or does not read */

static void client_vanishes(const char *word)
{
	pid_t client;

	own_runtime();
	client = fork();
	if (client == 0) {
		(void)box_run("timeout=60s", BOX_CMD, "sh", "-c",
			      "sleep 50 & wait", *word ? word : "box", NULL);
		_exit(0);
	}
	sleep_us(300000);
	CHECK(count_processes(*word ? word : "sleep") > 0);
	(void)kill(client, SIGKILL);
	(void)waitpid(client, NULL, 0);
	CHECK_INT(left_after_two_seconds(word), 0);
	forget_runtime();
}

TEST(l14_client_vanishes)
{
	alone(client_vanishes);
}

TEST(l14_client_does_not_read)
{
	struct cordon_spec *s;
	struct cordon_job *j;
	struct cordon_result *r;

	own_runtime();
	s = box_spec("timeout=300ms", BOX_CMD, "sh", "-c",
		     "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyy; done", NULL);
	j = cordon_start(box_open(), s, NULL, NULL, NULL);
	CHECK(j != NULL);
	/* Not stepped: its pipe is full, and its deadline passes. */
	sleep_us(900000);
	CHECK(status_kb(find_child(getpid(), "cordon-keeper"), "VmRSS:") <
	      4096);
	while (!cordon_job_step(j))
		sleep_us(1000);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "timeout");
	cordon_result_free(r);
	cordon_spec_free(s);
	cordon_close(box_handle);
	forget_runtime();
}

static void cancel_leaves_nothing(const char *word)
{
	struct cordon_spec *s;
	struct cordon_job *j;
	struct cordon_result *r;
	int before;

	own_runtime();
	before = count_processes(word);
	s = box_spec("timeout=60s", BOX_CMD, "sh", "-c",
		     "for i in 1 2 3 4 5; do (setsid sleep 50 &) ; done; "
		     "trap '' TERM; sleep 50; :",
		     *word ? word : "box", NULL);
	j = cordon_start(box_open(), s, NULL, NULL, NULL);
	sleep_us(300000);
	CHECK(count_processes(word) > before);
	cordon_job_cancel(j, "enough");
	while (!cordon_job_step(j))
		sleep_us(100);
	/* When the call that was cancelled returns, nothing of it exists. */
	if (*word)
		CHECK_INT(count_processes(word), before);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "cancelled");
	cordon_result_free(r);
	cordon_spec_free(s);
	cordon_close(box_handle);
	CHECK_INT(left_after_two_seconds(word), 0);
	forget_runtime();
}

TEST(l14_cancel_leaves_nothing)
{
	alone(cancel_leaves_nothing);
}

TAP_MAIN()
