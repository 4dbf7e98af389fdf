/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The result tells the truth: every cause of the result document provoked
 * for real, output to the byte, measures that are plausible.
 */

#define TAP_SECONDS 60

#include <pthread.h>
#include <signal.h>

#include "hog.h"
#include "watch.h"

struct expected {
	const char *cause;
	const char *status;
	int exit_code;
	int signal;
};

static void check_verdict(const struct cordon_result *r,
			  const struct expected *e)
{
	CHECK_CAUSE(r, e->cause);
	CHECK_STR(cordon_result_status(r), e->status);
	CHECK_INT(cordon_result_exit_code(r), e->exit_code);
	CHECK_INT(cordon_result_signal(r), e->signal);
	/* The document says the same as the calls. */
	CHECK_INT((long)doc_num(r, "exit_code"), e->exit_code);
}

#define CHECK_VERDICT(r, ...)                                                  \
	check_verdict(r, &(const struct expected){ __VA_ARGS__ })

static struct cordon_result *sh_run(const char *script)
{
	return hog_run("timeout=20s", BOX_CMD, "sh", "-c", script, NULL);
}

/* A spec of code in sh, one block for each string up to NULL. */
static struct cordon_spec *blocks(const char *first, ...)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error err = { 0 };
	const char *build = getenv("CORDON_BUILD");
	char volume[4200];
	va_list ap;

	va_start(ap, first);
	for (const char *code = first; code; code = va_arg(ap, const char *))
		CHECK(cordon_spec_code(s, "sh", code, strlen(code), NULL,
				       &err) == 0);
	va_end(ap);
	(void)snprintf(volume, sizeof(volume), "volume=%s/tests/hog:/hog:ro",
		       build ? build : "build");
	box_set(s, volume);
	box_set(s, "timeout=20s");
	if (!has_limits())
		box_set(s, "best-effort=cgroup");
	return s;
}

/* exited, signal */

TEST(cause_exited)
{
	static const int codes[] = { 0, 1, 3, 124, 125, 126, 127, 137, 255 };
	struct cordon_result *r;
	char script[32];

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		(void)snprintf(script, sizeof(script), "exit %d", codes[i]);
		r = sh_run(script);
		CHECK_VERDICT(r, "exited", codes[i] ? "error" : "success",
			      codes[i], 0);
		CHECK(cordon_result_message(r) == NULL);
		CHECK(doc_has(r, "\"signal\":null"));
		cordon_result_free(r);
	}
}

TEST(cause_signal)
{
	static const int signals[] = { SIGKILL, SIGTERM, SIGSEGV, SIGXCPU };
	struct cordon_result *r;
	char script[32];

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		(void)snprintf(script, sizeof(script), "kill -%d $$",
			       signals[i]);
		r = sh_run(script);
		CHECK_VERDICT(r, "signal", "error", 128 + signals[i],
			      signals[i]);
		CHECK_HAS(cordon_result_message(r), "signal");
		cordon_result_free(r);
	}
}

/* limits */

TEST(cause_timeout)
{
	struct cordon_result *r = hog_run("timeout=400ms", BOX_CMD, HOG,
					  "sleep", "20000", NULL);

	CHECK_VERDICT(r, "timeout", "timeout", 124, 0);
	CHECK(doc_num(r, "execution_time_ms") >= 400);
	cordon_result_free(r);

	/* Output before it is kept. */
	r = hog_run("timeout=400ms", BOX_CMD, "sh", "-c",
		    "echo one; echo two >&2; exec /hog sleep 20000", NULL);
	CHECK_VERDICT(r, "timeout", "timeout", 124, 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "one\n");
	CHECK_STR(cordon_result_stderr(r, NULL), "two\n");
	cordon_result_free(r);
}

TEST(cause_cpu)
{
	struct cordon_result *r;

	need_limits();
	r = hog_run("cpu-time=200ms", "cpus=1", "timeout=20s", BOX_CMD, HOG,
		    "spin", "1", NULL);
	CHECK_VERDICT(r, "cpu", "resource_exceeded", 137, SIGKILL);
	CHECK_HAS(cordon_result_message(r), "CPU time");
	cordon_result_free(r);

	r = hog_run("cpu-time=2s", "cpus=1", "timeout=20s", BOX_CMD, HOG, "cpu",
		    "100", NULL);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	cordon_result_free(r);
}

TEST(cause_memory)
{
	struct cordon_result *r;

	need_limits();
	r = hog_run("memory=32m", BOX_CMD, HOG, "touch", "64", NULL);
	CHECK_VERDICT(r, "memory", "resource_exceeded", 137, SIGKILL);
	CHECK(doc_num(r, "oom_kills") >= 1);
	cordon_result_free(r);

	/* A kill of its own is not one for memory. */
	r = hog_run("memory=32m", BOX_CMD, "sh", "-c",
		    "/hog touch 16; kill -9 $$", NULL);
	CHECK_VERDICT(r, "signal", "error", 137, SIGKILL);
	CHECK_INT((long)doc_num(r, "oom_kills"), 0);
	cordon_result_free(r);

	/* A child that is killed for memory: success if it is handled... */
	r = hog_run("memory=32m", BOX_CMD, HOG, "touch-child", "64", "0", NULL);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_INT(hog_said(r, "child"), SIGKILL);
	CHECK_INT((long)doc_num(r, "oom_kills"), 1);
	cordon_result_free(r);

	/* ... and with an exit code of its own if not. */
	r = hog_run("memory=32m", BOX_CMD, HOG, "touch-child", "64", "9", NULL);
	CHECK_VERDICT(r, "memory", "resource_exceeded", 9, 0);
	cordon_result_free(r);
}

TEST(cause_pids)
{
	struct cordon_result *r;

	need_limits();
	r = hog_run("pids-limit=16", BOX_CMD, HOG, "fork", "100", NULL);
	CHECK_VERDICT(r, "pids", "resource_exceeded", 1, 0);
	CHECK(doc_num(r, "pids_refused") >= 1);
	CHECK(doc_num(r, "peak_pids") <= 16);
	cordon_result_free(r);

	r = hog_run("pids-limit=16", BOX_CMD, "sh", "-c",
		    "/hog fork 100; exit 0", NULL);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK(doc_num(r, "pids_refused") >= 1);
	cordon_result_free(r);
}

TEST(cause_disk)
{
	struct cordon_result *r;

	r = hog_run("file-size=1m", BOX_CMD, HOG, "fill", "/workspace/x", "4",
		    NULL);
	CHECK_VERDICT(r, "disk", "resource_exceeded", 137, SIGXFSZ);
	cordon_result_free(r);

	r = hog_run("disk=2m", BOX_CMD, HOG, "fill", "/workspace/x", "4", NULL);
	CHECK_VERDICT(r, "disk", "resource_exceeded", 1, 0);
	CHECK_HAS(cordon_result_message(r), "--disk");
	cordon_result_free(r);

	r = hog_run("disk=2m", BOX_CMD, "sh", "-c",
		    "/hog fill /workspace/x 4; exit 0", NULL);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	cordon_result_free(r);

	r = hog_run("disk=2m", "cpus=1", BOX_CMD, HOG, "files", "/workspace",
		    NULL);
	CHECK_VERDICT(r, "disk", "resource_exceeded", 1, 0);
	CHECK_HAS(cordon_result_stdout(r, NULL), "ENOSPC");
	cordon_result_free(r);

	r = hog_run("disk=2m", "cpus=1", BOX_CMD, "sh", "-c",
		    "/hog files /workspace; exit 0", NULL);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	cordon_result_free(r);

	/* A failure with room left has nothing to do with the disk. */
	r = hog_run("disk=2m", BOX_CMD, "sh", "-c",
		    "/hog fill /workspace/x 1; exit 4", NULL);
	CHECK_VERDICT(r, "exited", "error", 4, 0);
	cordon_result_free(r);
}

TEST(cause_output)
{
	struct cordon_result *r;

	r = hog_run("hard-output=1m", "timeout=20s", BOX_CMD, HOG, "flood", "1",
		    NULL);
	CHECK_VERDICT(r, "output", "resource_exceeded", 137, SIGKILL);
	cordon_result_free(r);
	r = hog_run("hard-output=1m", "timeout=20s", BOX_CMD, HOG, "flood", "2",
		    NULL);
	CHECK_VERDICT(r, "output", "resource_exceeded", 137, SIGKILL);
	cordon_result_free(r);

	r = hog_run("hard-output=1m", BOX_CMD, HOG, "flood", "1", "1048576",
		    NULL);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	cordon_result_free(r);
}

/* cancelled */

struct canceller {
	struct cordon_job *job;
	long after_us;
};

static void *cancel_later(void *arg)
{
	const struct canceller *c = arg;
	const struct timespec t = { 0, c->after_us * 1000 };

	(void)nanosleep(&t, NULL);
	cordon_job_cancel(c->job, "changed my mind");
	return NULL;
}

TEST(cause_cancelled)
{
	struct cordon_spec *s = hog_spec("timeout=20s", BOX_CMD, "sh", "-c",
					 "echo begun; /hog stubborn 5 $1", "sh",
					 mark(), NULL);
	struct canceller c = { job_start(s, NULL, NULL), 300000 };
	struct cordon_result *r;
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, cancel_later, &c) == 0);
	CHECK(job_wait(c.job, 10000));
	(void)pthread_join(thread, NULL);
	r = cordon_job_end(c.job);
	CHECK_VERDICT(r, "cancelled", "error", 130, 0);
	CHECK(doc_has(r, "\"cancel_reason\":\"changed my mind\""));
	CHECK_HAS(cordon_result_stdout(r, NULL), "begun\n");
	CHECK_INT(marked(mark()), 0);
	cordon_result_free(r);
	cordon_spec_free(s);
}

TEST(cancelled_before_start_and_after_end)
{
	struct cordon_spec *s = hog_spec("timeout=20s", BOX_CMD, HOG, "sleep",
					 "10000", NULL);
	struct cordon_job *j = job_start(s, NULL, NULL);
	struct cordon_result *r;

	cordon_job_cancel(j, "at once");
	CHECK(job_wait(j, 5000));
	r = cordon_job_end(j);
	CHECK_VERDICT(r, "cancelled", "error", 130, 0);
	cordon_result_free(r);
	cordon_spec_free(s);

	s = hog_spec("timeout=20s", BOX_CMD, "sh", "-c", "exit 5", NULL);
	j = job_start(s, NULL, NULL);
	CHECK(job_wait(j, 5000));
	cordon_job_cancel(j, "too late");
	CHECK(job_wait(j, 100));
	r = cordon_job_end(j);
	CHECK_VERDICT(r, "exited", "error", 5, 0);
	CHECK(!doc_has(r, "cancel_reason"));
	cordon_result_free(r);

	/* Let go of while it runs. */
	j = job_start(s, NULL, NULL);
	r = cordon_job_end(j);
	CHECK(strcmp(cordon_result_cause(r), "cancelled") == 0 ||
	      strcmp(cordon_result_cause(r), "exited") == 0);
	cordon_result_free(r);
	cordon_spec_free(s);
}

/* One race; true when the cancel won. Either way there is one result. */
static bool race(struct cordon_spec *s, long after_us)
{
	struct canceller c = { job_start(s, NULL, NULL), after_us };
	struct cordon_result *r;
	pthread_t thread;
	bool won;

	CHECK(pthread_create(&thread, NULL, cancel_later, &c) == 0);
	CHECK(job_wait(c.job, 10000));
	(void)pthread_join(thread, NULL);
	r = cordon_job_end(c.job);
	won = strcmp(cordon_result_cause(r), "cancelled") == 0;
	if (won)
		CHECK_VERDICT(r, "cancelled", "error", 130, 0);
	else
		CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK(doc_has(r, "cancel_reason") == won);
	cordon_result_free(r);
	return won;
}

TEST(cancel_races_with_the_end)
{
	struct cordon_spec *s = hog_spec("timeout=20s", "cpus=2", BOX_CMD, HOG,
					 "sleep", "3", NULL);
	int cancelled = 0;

	for (int i = 0; i < 100; i++)
		cancelled += race(s, 150L * i);
	printf("# %d cancelled, %d ended before it\n", cancelled,
	       100 - cancelled);
	CHECK(cancelled > 0);
	cordon_spec_free(s);
	check_nothing_left();
}

/* denied, not found, invalid */

static struct cordon_result *run_named(const char *filename,
				       const char *setting)
{
	struct cordon_spec *s = blocks(NULL);
	struct cordon_error err = { 0 };

	if (setting)
		box_set(s, setting);
	CHECK(cordon_spec_code(s, "sh", "echo ran", 8, filename, &err) == 0);
	return box_run_spec(s);
}

TEST(cause_denied_for_a_file_name)
{
	static const struct {
		const char *name;
		const char *text;
	} names[] = {
		{ "/etc/x.sh", "Filename is not in the workspace" },
		{ "../x.sh", "Filename is not in the workspace" },
		{ "a/../../x.sh", "Filename is not in the workspace" },
		{ "", "Filename is not valid" },
		{ ".", "Filename is not valid" },
		{ "dir/", "Filename is not valid" },
		{ "a\nb.sh", "Filename is not valid" },
	};
	struct cordon_result *r;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		r = run_named(names[i].name, NULL);
		CHECK_CAUSE(r, "denied");
		CHECK_STR(cordon_result_status(r), "error");
		CHECK_INT(cordon_result_exit_code(r), 1);
		CHECK_HAS(cordon_result_message(r), names[i].text);
		CHECK_STR(cordon_result_stdout(r, NULL), "");
		cordon_result_free(r);
	}
	r = run_named("a dir/it's: a \"file\".sh", NULL);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "ran\n");
	cordon_result_free(r);
}

/* One planted thing at the file's name, in a directory of the host. */
static void check_planted(const char *dir, const char *name)
{
	char volume[300];
	char path[300];
	struct stat before = { 0 };
	struct stat after = { 0 };
	struct cordon_result *r;
	long start = now_ms();

	(void)snprintf(volume, sizeof(volume), "volume=%s:/workspace:rw", dir);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK(lstat(path, &before) == 0 || strchr(name, '/'));
	r = run_named(name, volume);
	CHECK_CAUSE(r, "denied");
	CHECK(cordon_result_exit_code(r) != 0);
	CHECK_HAS(cordon_result_message(r), "Filename is not a regular file");
	CHECK_STR(cordon_result_stdout(r, NULL), "");
	CHECK(now_ms() - start < late_ms(2000));
	if (lstat(path, &after) == 0) {
		CHECK_INT(after.st_ino, before.st_ino);
		CHECK_INT(after.st_mode, before.st_mode);
	}
	cordon_result_free(r);
}

static void put_text(const char *dir, const char *name, const char *text)
{
	char path[300];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)close(fd);
}

static bool has_text(const char *dir, const char *name, const char *text)
{
	char path[300];
	char buf[256] = "";
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	(void)!read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	return strcmp(buf, text) == 0;
}

TEST(cause_denied_for_what_was_planted)
{
	char dir[256];
	char path[300];
	char volume[300];
	struct cordon_result *r;

	(void)snprintf(dir, sizeof(dir), "%s", dir_new());
	put_text(dir, "victim", "precious");
	(void)snprintf(path, sizeof(path), "%s/fifo.sh", dir);
	CHECK(mkfifo(path, 0666) == 0);
	(void)snprintf(path, sizeof(path), "%s/link.sh", dir);
	CHECK(symlink("victim", path) == 0);
	(void)snprintf(path, sizeof(path), "%s/dangling.sh", dir);
	CHECK(symlink("/etc/planted-by-cordon-test", path) == 0);
	(void)snprintf(path, sizeof(path), "%s/dir.sh", dir);
	CHECK(mkdir(path, 0777) == 0);
	(void)snprintf(path, sizeof(path), "%s/up", dir);
	CHECK(symlink("/tmp", path) == 0);
	check_planted(dir, "fifo.sh");
	check_planted(dir, "link.sh");
	check_planted(dir, "dangling.sh");
	check_planted(dir, "dir.sh");
	check_planted(dir, "victim/x.sh");
	check_planted(dir, "up/planted.sh");
	CHECK(has_text(dir, "victim", "precious"));
	CHECK(access("/tmp/planted.sh", F_OK) < 0);

	/* A plain file there is replaced, and its other name is not written. */
	put_text(dir, "old.sh", "old");
	(void)snprintf(path, sizeof(path), "%s/old.sh", dir);
	(void)snprintf(volume, sizeof(volume), "%s/hard", dir);
	CHECK(link(path, volume) == 0);
	(void)snprintf(volume, sizeof(volume), "volume=%s:/workspace:rw", dir);
	r = run_named("old.sh", volume);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "ran\n");
	CHECK(has_text(dir, "old.sh", "echo ran"));
	CHECK(has_text(dir, "hard", "old"));
	cordon_result_free(r);
	dir_remove(dir);
}

TEST(cause_not_found)
{
	struct cordon_error err = { 0 };
	struct cordon_spec *s;
	struct cordon_result *r;

	r = hog_run(BOX_CMD, "no-such-program", NULL);
	CHECK_VERDICT(r, "not_found", "error", 127, 0);
	CHECK_HAS(cordon_result_message(r), "no-such-program");
	cordon_result_free(r);
	r = hog_run(BOX_CMD, "/no/such/program", NULL);
	CHECK_VERDICT(r, "not_found", "error", 127, 0);
	cordon_result_free(r);
	r = hog_run(BOX_CMD, "/etc/passwd", NULL);
	CHECK_VERDICT(r, "not_found", "error", 126, 0);
	cordon_result_free(r);
	r = hog_run(BOX_CMD, "/usr", NULL);
	CHECK_VERDICT(r, "not_found", "error", 126, 0);
	cordon_result_free(r);

	/* A language that there is not; no block before it runs either. */
	s = blocks("echo ran", NULL);
	CHECK(cordon_spec_code(s, "klingon", "x", 1, NULL, &err) == 0);
	r = box_run_spec(s);
	CHECK_VERDICT(r, "not_found", "error", 127, 0);
	CHECK_STR(cordon_result_message(r),
		  "block 2: unknown language klingon");
	CHECK(doc_has(r, "\"output\":\"unknown language klingon\""));
	CHECK_STR(cordon_result_stdout(r, NULL), "");
	cordon_result_free(r);
}

TEST(cause_invalid)
{
	static const char text[] =
		"Timeout must be greater than or equal to 1.";
	static const char *const bad[] = { "0", "0.5", "0.999" };
	struct cordon_error err = { 0 };
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_result *r = box_run_spec(s);

	CHECK_VERDICT(r, "invalid", "error", 125, 0);
	CHECK_HAS(cordon_result_message(r), "nothing to run");
	cordon_result_free(r);

	s = hog_spec(BOX_CMD, "sh", "-c", "exit 0", NULL);
	for (int i = 0; i < 3; i++) {
		memset(&err, 0, sizeof(err));
		CHECK_INT(cordon_spec_set(s, "timeout", bad[i], &err), -EINVAL);
		CHECK_HAS(err.text, text);
	}
	CHECK(cordon_spec_set(s, "timeout", "1", &err) == 0);
	CHECK(cordon_spec_set(s, "no-such-setting", "1", &err) < 0);
	CHECK_HAS(err.text, "no-such-setting");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	cordon_result_free(r);

	s = hog_spec("volume=/no/such/place:/data:ro", BOX_CMD, "true", NULL);
	r = box_run_spec(s);
	CHECK_VERDICT(r, "invalid", "error", 125, 0);
	CHECK_HAS(cordon_result_message(r), "/no/such/place");
	cordon_result_free(r);
}

/* setup, lost */

TEST(cause_setup)
{
	const char *dir = dir_new();
	char outer[300];
	char inner[300];
	struct cordon_result *r;

	/* A place that would have to be made in a read-only directory. */
	(void)snprintf(outer, sizeof(outer), "volume=%s:/data:ro", dir);
	(void)snprintf(inner, sizeof(inner), "volume=%s:/data/no/place:ro",
		       dir);
	r = hog_run(outer, inner, BOX_CMD, "true", NULL);
	dir_remove(dir);
	CHECK_VERDICT(r, "setup", "error", 125, 0);
	CHECK_HAS(cordon_result_message(r), "stage 'mounts'");
	cordon_result_free(r);
	r = hog_run("workdir=/sys/no/such", BOX_CMD, "true", NULL);
	CHECK_VERDICT(r, "setup", "error", 125, 0);
	CHECK_HAS(cordon_result_message(r), "/sys/no/such");
	cordon_result_free(r);
	check_nothing_left();
}

/* Each stage made to fail in turn: the program never starts. */
TEST(cause_setup_in_each_stage)
{
	static const char *const stages[] = { "root",  "mounts",  "files",
					      "enter", "limits",  "landlock",
					      "caps",  "seccomp", "identity",
					      "user",  "groups" };
	const char *build = getenv("CORDON_BUILD");
	bool limits = has_limits();
	char path[4200];
	char want[64];

	(void)snprintf(path, sizeof(path), "%s/tests", build ? build : "build");
	(void)setenv("CORDON_LIBEXEC", path, 1);
	(void)strcat(path, "/cordon-keeper");
	if (access(path, X_OK) < 0)
		SKIP("no test keeper in this build");
	/* More than once: a box made ahead may have failed already, or not. */
	for (size_t n = 0; n < 5 * sizeof(stages) / sizeof(stages[0]); n++) {
		size_t i = n % (sizeof(stages) / sizeof(stages[0]));
		struct cordon_spec *s;
		struct cordon_result *r;

		cordon_close(box_handle);
		box_handle = NULL;
		(void)setenv("CORDON_TEST_FAIL", stages[i], 1);
		s = box_spec("timeout=5s", BOX_CMD, "sh", "-c", "echo ran",
			     NULL);
		if (!limits)
			box_set(s, "best-effort=cgroup");
		r = box_run_spec(s);
		(void)snprintf(want, sizeof(want), "stage '%s'", stages[i]);
		CHECK_VERDICT(r, "setup", "error", 125, 0);
		CHECK_HAS(cordon_result_message(r), want);
		CHECK_STR(cordon_result_stdout(r, NULL), "");
		cordon_result_free(r);
	}
}

TEST(cause_lost)
{
	struct cordon_spec *s = hog_spec("timeout=20s", BOX_CMD, "sh", "-c",
					 "echo begun; exec /hog sleep 20000 $1",
					 "sh", mark(), NULL);
	struct said said = { 0 };
	struct cordon_job *j = job_start(s, &said_events, &said);
	pid_t keeper = keeper_pid();
	struct cordon_result *r;
	long start;

	CHECK(job_says(j, &said, "begun"));
	CHECK(keeper > 1);
	/* In the midst of its exec a process has no arguments. */
	for (int i = 0; i < 200 && marked(mark()) == 0; i++)
		sleep_ms(10);
	CHECK(marked(mark()) > 0);
	start = now_ms();
	CHECK(kill(keeper, SIGKILL) == 0);
	CHECK(job_wait(j, 5000));
	CHECK(now_ms() - start < late_ms(1000));
	r = cordon_job_end(j);
	CHECK_VERDICT(r, "lost", "error", 125, 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "begun\n");
	cordon_result_free(r);
	for (int i = 0; i < 200 && marked(mark()) > 0; i++)
		sleep_ms(10);
	CHECK_INT(marked(mark()), 0);

	/* A handle without a keeper says so, and a new one works. */
	CHECK(cordon_run(box_handle, s, &r, NULL) == 0);
	CHECK_VERDICT(r, "lost", "error", 125, 0);
	cordon_result_free(r);
	cordon_spec_free(s);
	cordon_close(box_handle);
	box_handle = NULL;
	r = sh_run("exit 0");
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	cordon_result_free(r);
}

/* output */

static void check_noise(const char *name, const char *have, size_t have_len,
			uint64_t seed, int stream, size_t len)
{
	unsigned char *want = malloc(len + 1);
	struct noise n;

	noise_init(&n, seed, stream);
	noise_fill(&n, want, len);
	if (have_len != len || memcmp(have, want, len) != 0) {
		printf("# %s of seed %d: %zu bytes, not the %zu expected\n",
		       name, (int)seed, have_len, len);
		CHECK(!"byte-exact");
	}
	free(want);
}

static void check_exact(uint64_t seed, size_t out, size_t err)
{
	char words[3][24];
	struct cordon_result *r;
	const char *text;
	size_t len;

	(void)snprintf(words[0], sizeof(words[0]), "%d", (int)seed);
	(void)snprintf(words[1], sizeof(words[1]), "%zu", out);
	(void)snprintf(words[2], sizeof(words[2]), "%zu", err);
	r = hog_run("output-limit=4m", "cpus=2", BOX_CMD, HOG, "noise",
		    words[0], words[1], words[2], NULL);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	text = cordon_result_stdout(r, &len);
	check_noise("stdout", text, len, seed, 1, out);
	text = cordon_result_stderr(r, &len);
	check_noise("stderr", text, len, seed, 2, err);
	CHECK_INT((long)doc_num(r, "stdout_bytes"), (long)out);
	CHECK_INT((long)doc_num(r, "stderr_bytes"), (long)err);
	CHECK(doc_has(r, "\"truncated\":false"));
	cordon_result_free(r);
}

TEST(output_is_byte_exact)
{
	static const size_t sizes[] = { 0,     1,     4095,  4096,  4097,
					16384, 65535, 65536, 65537, MIB };
	const size_t n = sizeof(sizes) / sizeof(sizes[0]);

	for (size_t i = 0; i < n; i++) {
		check_exact(i, sizes[i], sizes[n - 1 - i]);
		check_exact(100 + i, sizes[i], sizes[i]);
		check_exact(200 + i, sizes[i], 0);
	}
}

TEST(output_is_not_lost_at_exit)
{
	for (int i = 0; i < (in_vm() ? 60 : 300); i++) {
		struct cordon_result *r = hog_run("cpus=2", BOX_CMD, "sh", "-c",
						  "printf x", NULL);

		CHECK_STR(cordon_result_stdout(r, NULL), "x");
		CHECK_INT(cordon_result_exit_code(r), 0);
		cordon_result_free(r);
	}
	/* As much as a pipe holds, and then gone. */
	for (int i = 0; i < 20; i++) {
		struct cordon_result *r = hog_run("cpus=2", BOX_CMD, HOG,
						  "flood", "1", "65536", NULL);

		CHECK_INT((long)doc_num(r, "stdout_bytes"), 65536);
		cordon_result_free(r);
	}
}

TEST(output_held_pipe)
{
	long start = now_ms();
	struct cordon_result *r;

	r = hog_run("timeout=20s", BOX_CMD, "sh", "-c",
		    "echo kept; (exec /hog sleep 20000) & exit 6", NULL);
	CHECK(now_ms() - start < late_ms(1000));
	CHECK_VERDICT(r, "exited", "error", 6, 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "kept\n");
	cordon_result_free(r);
}

/* Decodes the base64 string at `p` up to its quote; returns the length. */
static size_t decode(const char *p, unsigned char *to)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned int bits = 0;
	int have = 0;
	size_t n = 0;

	for (; *p != '"' && *p != '='; p++) {
		bits = bits << 6 |
		       (unsigned int)(strchr(letters, *p) - letters);
		have += 6;
		if (have >= 8) {
			have -= 8;
			to[n++] = (unsigned char)(bits >> have);
		}
	}
	return n;
}

TEST(output_that_is_no_text)
{
	struct cordon_result *r;
	unsigned char *raw = malloc(MIB);
	const char *text;
	const char *b64;
	char *json;
	size_t len;

	r = hog_run("cpus=2", BOX_CMD, HOG, "noise", "7", "70000", "5000",
		    NULL);
	json = cordon_result_json(r);
	text = cordon_result_stdout(r, &len);
	b64 = doc_find(json, "stdout_b64");
	CHECK(b64 != NULL);
	if (b64) {
		CHECK_INT((long)decode(b64 + 1, raw), (long)len);
		CHECK(memcmp(raw, text, len) == 0);
	}
	text = cordon_result_stderr(r, &len);
	b64 = doc_find(json, "stderr_b64");
	CHECK(b64 != NULL);
	if (b64) {
		CHECK_INT((long)decode(b64 + 1, raw), (long)len);
		CHECK(memcmp(raw, text, len) == 0);
	}
	free(json);
	cordon_result_free(r);

	/* U+FFFD in the text; a stream that is text has no second form. */
	r = sh_run("printf 'a\\377b'; printf 'caf\\303\\251' >&2");
	CHECK(doc_has(r, "\"stdout\":\"a\xef\xbf\xbd"
			 "b\"") ||
	      doc_has(r, "\"stdout\":\"a\\ufffdb\""));
	CHECK(doc_has(r, "\"stdout_b64\":\"Yf9i\""));
	CHECK(doc_has(r, "\"stderr\":\"caf\xc3\xa9\"") ||
	      doc_has(r, "\"stderr\":\"caf\\u00e9\""));
	CHECK(!doc_has(r, "stderr_b64"));
	cordon_result_free(r);
	free(raw);
}

TEST(output_cut_in_the_middle)
{
	const size_t total = 300000;
	const size_t limit = 1001;
	unsigned char *want = malloc(total);
	struct cordon_result *r;
	struct noise n;
	const char *text;
	size_t len;

	noise_init(&n, 5, 1);
	noise_fill(&n, want, total);
	r = hog_run("output-limit=1001", BOX_CMD, HOG, "noise", "5", "300000",
		    "1001", NULL);
	text = cordon_result_stdout(r, &len);
	CHECK_INT(len, limit);
	CHECK(memcmp(text, want, limit / 2) == 0);
	CHECK(memcmp(text + limit / 2, want + total - (limit - limit / 2),
		     limit - limit / 2) == 0);
	CHECK_INT((long)doc_num(r, "stdout_bytes"), (long)total);
	CHECK(doc_has(r, "\"truncated\":true"));
	CHECK(doc_has(r, "stdout: 298999 of 300000 bytes are missing"));
	/* Exactly the limit is not cut. */
	(void)cordon_result_stderr(r, &len);
	CHECK_INT(len, limit);
	CHECK(!doc_has(r, "stderr: "));
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	cordon_result_free(r);

	r = hog_run("output-limit=0", BOX_CMD, HOG, "flood", "1", "1000", NULL);
	(void)cordon_result_stdout(r, &len);
	CHECK_INT(len, 0);
	CHECK_INT((long)doc_num(r, "stdout_bytes"), 1000);
	CHECK(doc_has(r, "\"truncated\":true"));
	cordon_result_free(r);
	free(want);
}

TEST(output_much_of_it)
{
	struct cordon_result *r;

	r = hog_run("timeout=50s", "cpus=2", BOX_CMD, HOG, "flood", "1",
		    "209715200", NULL);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_INT((long)doc_num(r, "stdout_bytes"), 209715200);
	cordon_result_free(r);
	CHECK(own_peak_kib() < 24 * 1024 * MEMORY_FACTOR);
	CHECK(keeper_pss_kib() < 2048);
}

/* input */

TEST(input_given)
{
	const size_t len = 5 * MIB + 3;
	unsigned char *data = malloc(len);
	struct cordon_error err = { 0 };
	struct cordon_spec *s;
	struct cordon_result *r;
	unsigned long sum = 0;
	struct noise n;
	char want[80];

	noise_init(&n, 9, 0);
	noise_fill(&n, data, len);
	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + data[i];
	(void)snprintf(want, sizeof(want), "input %zu %lu\n", len, sum);
	s = hog_spec("cpus=2", "timeout=20s", BOX_CMD, HOG, "input", NULL);
	CHECK(cordon_spec_stdin(s, data, len, &err) == 0);
	r = box_run_spec(s);
	CHECK_STR(cordon_result_stdout(r, NULL), want);
	cordon_result_free(r);
	free(data);

	/* None was given: the end comes at once. */
	r = hog_run("timeout=20s", BOX_CMD, HOG, "input", NULL);
	CHECK_STR(cordon_result_stdout(r, NULL), "input 0 0\n");
	cordon_result_free(r);
	s = hog_spec("timeout=20s", BOX_CMD, HOG, "input", NULL);
	CHECK(cordon_spec_stdin(s, "", 0, &err) == 0);
	r = box_run_spec(s);
	CHECK_STR(cordon_result_stdout(r, NULL), "input 0 0\n");
	cordon_result_free(r);
}

TEST(input_never_read)
{
	const size_t len = 64 * MIB;
	char *data = calloc(1, len);
	struct cordon_error err = { 0 };
	struct cordon_spec *s = hog_spec("timeout=20s", BOX_CMD, "sh", "-c",
					 "echo out; exit 8", NULL);
	struct cordon_result *r;
	long start;

	CHECK(cordon_spec_stdin(s, data, len, &err) == 0);
	start = now_ms();
	r = box_run_spec(s);
	CHECK(now_ms() - start < late_ms(1000));
	CHECK_VERDICT(r, "exited", "error", 8, 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "out\n");
	cordon_result_free(r);

	s = hog_spec("timeout=500ms", BOX_CMD, HOG, "sleep", "20000", NULL);
	CHECK(cordon_spec_stdin(s, data, len, &err) == 0);
	r = box_run_spec(s);
	CHECK_VERDICT(r, "timeout", "timeout", 124, 0);
	cordon_result_free(r);
	free(data);
}

/* blocks */

static long runs_in(const struct cordon_result *r)
{
	char *json = cordon_result_json(r);
	const char *p = strstr(json, "\"runs\":[");
	long n = 0;

	for (; p && (p = strstr(p, "\"cause\":")); p++)
		n++;
	free(json);
	return n;
}

TEST(blocks_in_order)
{
	struct cordon_result *r;

	r = box_run_spec(blocks("echo one; echo 1 >f", "echo two; cat f",
				"echo three", NULL));
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_INT(runs_in(r), 3);
	CHECK(doc_has(r, "\"output\":\"one\\ntwo\\n1\\nthree\\n\""));
	CHECK_STR(cordon_result_stdout(r, NULL), "three\n");
	cordon_result_free(r);

	r = box_run_spec(
		blocks("echo one", "echo two; exit 4", "echo three", NULL));
	CHECK_VERDICT(r, "exited", "error", 4, 0);
	CHECK_INT(runs_in(r), 2);
	CHECK(doc_has(r, "\"output\":\"one\\ntwo\\n\""));
	cordon_result_free(r);
}

TEST(blocks_go_on_after_an_error)
{
	struct cordon_spec *s = blocks("echo one; exit 4", "kill -9 $$",
				       "echo three", NULL);
	struct cordon_result *r;
	char *json;

	box_set(s, "continue-on-error");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_INT(runs_in(r), 3);
	json = cordon_result_json(r);
	CHECK_HAS(strstr(json, "\"runs\":["), "\"cause\":\"signal\"");
	CHECK_HAS(strstr(json, "\"runs\":["), "\"exit_code\":4");
	free(json);
	cordon_result_free(r);
}

TEST(blocks_leave_nothing_running)
{
	struct cordon_result *r;

	/* The second sees no process of the first and can write its file. */
	r = box_run_spec(blocks("(while :; do echo x >>/workspace/late; "
				"/hog sleep 10; done) & /hog daemon; "
				"/hog sleep 100; echo first",
				"rm -f late; /hog sleep 200; "
				"ls /workspace/late 2>/dev/null; "
				"for p in /proc/[0-9]*; do "
				"read -r n <$p/comm; echo \"$n\"; done",
				NULL));
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_INT(runs_in(r), 2);
	CHECK(!strstr(cordon_result_stdout(r, NULL), "hog"));
	CHECK(!strstr(cordon_result_stdout(r, NULL), "late"));
	CHECK_HAS(cordon_result_stdout(r, NULL), "sh");
	cordon_result_free(r);
}

/* A limit that one block met is not the cause of the next one's end. */
TEST(blocks_have_counters_of_their_own)
{
	struct cordon_spec *s;
	struct cordon_result *r;

	need_limits();
	s = blocks("/hog touch-child 64 0", "exit 3", NULL);
	box_set(s, "memory=32m");
	r = box_run_spec(s);
	CHECK_INT(runs_in(r), 2);
	CHECK_VERDICT(r, "exited", "error", 3, 0);
	cordon_result_free(r);

	s = blocks("/hog fork 100; true", "exit 3", NULL);
	box_set(s, "pids-limit=16");
	r = box_run_spec(s);
	CHECK_INT(runs_in(r), 2);
	CHECK_VERDICT(r, "exited", "error", 3, 0);
	cordon_result_free(r);

	s = blocks("/hog cpu 200", "exit 0", NULL);
	box_set(s, "cpus=1");
	r = box_run_spec(s);
	CHECK(doc_num(r, "cpu_time_ms") < 150);
	cordon_result_free(r);
}

static void add_file(struct cordon_spec *s, const char *name, const char *code)
{
	struct cordon_error err = { 0 };

	CHECK(cordon_spec_code(s, "sh", code, strlen(code), name, &err) == 0);
}

TEST(blocks_have_their_own_file)
{
	struct cordon_spec *s = blocks(NULL);
	struct cordon_result *r;

	/* One name twice: each runs what it is, and replaces no open file. */
	add_file(s, "a.sh", "echo one; ln a.sh other; test ! -e d");
	add_file(s, "a.sh", "echo two; cat other; touch .cordon-1-0");
	add_file(s, "d/a.sh", "echo three");
	add_file(s, "a.sh", "echo four");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_INT(runs_in(r), 4);
	CHECK(doc_has(r, "\"output\":\"one\\ntwo\\necho one; ln a.sh other; "
			 "test ! -e dthree\\nfour\\n\""));
	cordon_result_free(r);

	/* What a block writes at the next one's name is not what runs. */
	s = blocks(NULL);
	add_file(s, "a.sh", "echo 'echo bad' >b.sh; chmod 400 b.sh");
	add_file(s, "b.sh", "echo good");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "good\n");
	cordon_result_free(r);
}

TEST(blocks_plant_nothing_for_the_next)
{
	static const struct {
		const char *plant;
		const char *name;
	} cases[] = {
		{ "ln -s target b.sh", "b.sh" },
		{ "ln -s nowhere b.sh", "b.sh" },
		{ "mkfifo b.sh", "b.sh" },
		{ "mkdir b.sh", "b.sh" },
		{ "mkdir e; ln -s e d", "d/b.sh" },
		{ "mkfifo d", "d/b.sh" },
		{ "mkdir -p d e; ln -s ../e d/c", "d/c/b.sh" },
	};
	char code[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cordon_spec *s = blocks(NULL);
		struct cordon_result *r;

		(void)snprintf(code, sizeof(code), "echo kept >target; %s",
			       cases[i].plant);
		add_file(s, "a.sh", code);
		add_file(s, cases[i].name, "echo ran");
		add_file(s, "c.sh", "cat target; ls nowhere e 2>/dev/null");
		box_set(s, "continue-on-error");
		r = box_run_spec(s);
		CHECK_INT(runs_in(r), 3);
		CHECK(doc_has(r, "\"cause\":\"denied\""));
		CHECK(doc_has(r, "Filename is not a regular file"));
		CHECK(!doc_has(r, "ran\\n"));
		CHECK_HAS(cordon_result_stdout(r, NULL), "kept\n");
		CHECK(!strstr(cordon_result_stdout(r, NULL), "b.sh"));
		cordon_result_free(r);

		s = blocks(NULL);
		add_file(s, "a.sh", cases[i].plant);
		add_file(s, cases[i].name, "echo ran");
		add_file(s, "c.sh", "echo never");
		r = box_run_spec(s);
		CHECK_VERDICT(r, "denied", "error", 126, 0);
		CHECK_INT(runs_in(r), 2);
		CHECK_HAS(cordon_result_message(r),
			  "Filename is not a regular file");
		cordon_result_free(r);
	}
}

TEST(blocks_go_on_after_a_timeout)
{
	struct cordon_spec *s = blocks(
		"echo one; /hog daemon >/dev/null; /hog sleep 9000",
		"/hog sleep 9000 & wait; echo no", "echo three", NULL);
	struct cordon_result *r;
	long start = now_ms();

	box_set(s, "continue-on-error");
	box_set(s, "timeout=500ms");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_INT(runs_in(r), 3);
	CHECK(doc_has(r, "\"runs\":[{\"status\":\"timeout\","
			 "\"cause\":\"timeout\",\"exit_code\":124"));
	CHECK(doc_has(r, "\"output\":\"one\\n\\nTimeout\\n\\nTimeout\\n"
			 "three\\n\""));
	CHECK(now_ms() - start < late_ms(4000));
	cordon_result_free(r);

	/* With a time of grace; a program that obeys has timed out too. */
	s = blocks("trap 'exit 0' TERM; while :; do /hog sleep 50; done",
		   "trap '' TERM; while :; do /hog sleep 50; done",
		   "echo three", NULL);
	box_set(s, "continue-on-error");
	box_set(s, "timeout=500ms");
	box_set(s, "kill-grace=300ms");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	CHECK_INT(runs_in(r), 3);
	CHECK(doc_has(r, "\"runs\":[{\"status\":\"timeout\""));
	cordon_result_free(r);

	s = blocks("trap 'exit 0' TERM; while :; do /hog sleep 50; done",
		   "echo never", NULL);
	box_set(s, "timeout=500ms");
	box_set(s, "kill-grace=5s");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "timeout", "timeout", 124, 0);
	CHECK_INT(runs_in(r), 1);
	cordon_result_free(r);
}

TEST(blocks_end_with_the_total_time)
{
	struct cordon_spec *s = blocks("/hog sleep 9000", "/hog sleep 9000",
				       "/hog sleep 9000", "echo never", NULL);
	struct cordon_result *r;
	long start = now_ms();

	box_set(s, "continue-on-error");
	box_set(s, "timeout=600ms");
	box_set(s, "total-timeout=1s");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "timeout", "timeout", 124, 0);
	CHECK_INT(runs_in(r), 2);
	CHECK_HAS(cordon_result_message(r), "--total-timeout");
	cordon_result_free(r);

	/* It holds as it is stated, also below the time of one block. */
	s = blocks("/hog sleep 9000", NULL);
	box_set(s, "timeout=20s");
	box_set(s, "total-timeout=1s");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "timeout", "timeout", 124, 0);
	CHECK_HAS(cordon_result_message(r), "ended after 1 s (--total-timeout");
	CHECK(now_ms() - start < late_ms(5000));
	cordon_result_free(r);
}

TEST(blocks_tell_what_is_missing_of_any)
{
	struct cordon_spec *s = blocks("head -c 5000 /dev/zero", "echo two",
				       NULL);
	struct cordon_result *r;
	char *json;

	box_set(s, "output-limit=1000");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "exited", "success", 0, 0);
	json = cordon_result_json(r);
	*strstr(json, "\"runs\":[") = '\0';
	CHECK_HAS(json, "\"truncated\":true");
	CHECK_HAS(json, "block 1: stdout: ");
	free(json);
	cordon_result_free(r);

	/* Both together, and none of them alone. */
	s = blocks("head -c 700 /dev/zero", "head -c 700 /dev/zero", NULL);
	box_set(s, "output-limit=1000");
	r = box_run_spec(s);
	CHECK(doc_has(r, "\"output: 400 of 1400 bytes are missing"));
	json = cordon_result_json(r);
	*strstr(json, "\"runs\":[") = '\0';
	CHECK_HAS(json, "\"truncated\":true");
	free(json);
	cordon_result_free(r);

	/* The first file is the whole's. */
	s = blocks(NULL);
	add_file(s, "a.sh", "true");
	add_file(s, "b.sh", "true");
	r = box_run_spec(s);
	json = cordon_result_json(r);
	CHECK_HAS(strstr(json, "\"runs\":["),
		  "\"code_file\":\"/workspace/b.sh\"");
	*strstr(json, "\"runs\":[") = '\0';
	CHECK_HAS(json, "\"code_file\":\"/workspace/a.sh\"");
	free(json);
	cordon_result_free(r);
}

static bool output_ends(const struct cordon_result *r, const char *ending)
{
	char *json = cordon_result_json(r);
	const char *at = doc_find(json, "output");
	bool ends = false;

	/* Behind the limits there is one more of that name, a number. */
	while (at && *at != '"')
		at = doc_find(at, "output");
	if (at) {
		const char *end = strchr(at + 1, '"');
		size_t len = strlen(ending);

		ends = end && (size_t)(end - at) > len &&
		       memcmp(end - len, ending, len) == 0;
	}
	if (!ends)
		printf("# %s", json);
	free(json);
	return ends;
}

TEST(text_of_timeout_and_cancel)
{
	struct cordon_spec *s = blocks("echo some; exec /hog sleep 20000",
				       "echo never", NULL);
	struct said said = { 0 };
	struct cordon_result *r;
	struct cordon_job *j;

	box_set(s, "timeout=500ms");
	r = box_run_spec(s);
	CHECK_VERDICT(r, "timeout", "timeout", 124, 0);
	CHECK_INT(runs_in(r), 1);
	CHECK(output_ends(r, "some\\n\\nTimeout"));
	CHECK_STR(cordon_result_stdout(r, NULL), "some\n");
	cordon_result_free(r);

	s = blocks("echo some; exec /hog sleep 20000", "echo never", NULL);
	j = job_start(s, &said_events, &said);
	CHECK(job_says(j, &said, "some"));
	cordon_job_cancel(j, "enough");
	CHECK(job_wait(j, 5000));
	r = cordon_job_end(j);
	CHECK_VERDICT(r, "cancelled", "error", 130, 0);
	CHECK_INT(runs_in(r), 1);
	CHECK(output_ends(r, "some\\n\\nCode execution was cancelled."));
	cordon_result_free(r);
	cordon_spec_free(s);
}

/* measures */

TEST(measure_wall_time)
{
	struct cordon_result *r = hog_run("timeout=20s", BOX_CMD, HOG, "sleep",
					  "300", NULL);

	CHECK(doc_num(r, "execution_time_ms") >= 300);
	CHECK(doc_num(r, "execution_time_ms") <= 300 + late_ms(100));
	CHECK(doc_num(r, "cpu_time_ms") < late_ms(50));
	cordon_result_free(r);
}

TEST(measure_cpu_time)
{
	struct cordon_result *r = hog_run("cpus=1", "timeout=20s", BOX_CMD, HOG,
					  "cpu", "200", NULL);

	CHECK(doc_num(r, "cpu_time_ms") >= 195);
	CHECK(doc_num(r, "cpu_time_ms") <= 200 + late_ms(60));
	CHECK(doc_num(r, "execution_time_ms") >= 195);
	cordon_result_free(r);
}

TEST(measure_memory)
{
	struct cordon_result *r;

	need_limits();
	r = hog_run("cpus=1", "timeout=20s", BOX_CMD, HOG, "touch", "50", NULL);
	CHECK(doc_num(r, "memory_used_mb") >= 50);
	CHECK(doc_num(r, "memory_used_mb") <= 60);
	cordon_result_free(r);
	r = hog_run("cpus=1", "timeout=20s", BOX_CMD, HOG, "touch", "1", NULL);
	CHECK(doc_num(r, "memory_used_mb") <= 11);
	cordon_result_free(r);
}

TEST(python_too)
{
	static const char code[] = "import sys, os\n"
				   "sys.stdout.write('h\\u00e9')\n"
				   "sys.stdout.flush()\n"
				   "os.write(2, bytes(range(256)))\n"
				   "sys.exit(5)\n";
	struct cordon_spec *s = blocks(NULL);
	struct cordon_error err = { 0 };
	struct cordon_result *r;
	size_t len;

	CHECK(cordon_spec_code(s, "python", code, strlen(code), NULL, &err) ==
	      0);
	r = box_run_spec(s);
	if (strcmp(cordon_result_cause(r), "not_found") == 0) {
		/* What it says of a missing language is part of the truth. */
		CHECK_VERDICT(r, "not_found", "error", 127, 0);
		CHECK_HAS(cordon_result_message(r), "python3");
	} else {
		CHECK_VERDICT(r, "exited", "error", 5, 0);
		CHECK_STR(cordon_result_stdout(r, NULL), "h\xc3\xa9");
		(void)cordon_result_stderr(r, &len);
		CHECK_INT(len, 256);
	}
	cordon_result_free(r);
}

TAP_MAIN()
