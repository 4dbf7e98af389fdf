/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The speed of the ledger, on the disk that DIR is on.
 *
 *	ledger DIR [full DESK]
 *
 * Prints lines of tab-separated values: what, figure, unit, bar ("-": none).
 * With "full" also the list of a million records, by the program DESK
 * (cordon-desk). Ends with 1 when a bar does not hold. What it makes in DIR it
 * removes.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "figure.h"
#include "ledger/ledger.h"
#include "ledger/verify.h"

#define WRITERS 8

static char dir[4096];

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
	(void)fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void remove_ledger(void)
{
	static const char *const names[] = { "head", "key", "key.pub",
					     "index.sqlite" };
	char path[4200];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	for (unsigned int i = 1; i < 10000; i++) {
		(void)snprintf(path, sizeof(path), "%s/%06u.jsonl", dir, i);
		if (unlink(path) < 0)
			break;
	}
	(void)rmdir(dir);
}

static void append(struct ledger *l, unsigned long i, bool sync)
{
	static const char *const layers[] = { "userns", "mounts",  "pids",
					      "net",    "seccomp", "landlock",
					      "cgroup", "own-uid", NULL };
	static const struct ledger_limit limits[] = {
		{ "timeout_ms", 30000 },
		{ "memory", 268435456 },
		{ "pids", 128 },
		{ "output", 1048576 },
	};
	char run[40];
	char job[40];
	char agent[16];
	const char *argv[] = { "python3", job, NULL };
	struct ledger_run_start s = { .run = run,
				      .agent = agent,
				      .decision = i % 50 ? "allow" : "deny",
				      .argv = argv,
				      .image = "host",
				      .uid = 65534,
				      .gid = 65534,
				      .limits = limits,
				      .n_limits = ARRAY_SIZE(limits),
				      .layers = layers };
	struct err err = { 0 };
	char *members;

	(void)snprintf(run, sizeof(run), "%032lx", i * 2654435761UL);
	(void)snprintf(job, sizeof(job), "job-%lu.py", i);
	(void)snprintf(agent, sizeof(agent), "agent-%lu", i % 20);
	members = ledger_run_start_members(&s);
	if (!members ||
	    ledger_append(l, "run.start", members, NULL, &err) < 0 ||
	    (sync && ledger_sync(l, &err) < 0)) {
		(void)fprintf(stderr, "bench: %s\n", err.text);
		exit(2);
	}
	free(members);
}

static struct ledger *open_it(void)
{
	struct err err = { 0 };
	struct ledger *l = NULL;

	if (ledger_open(dir, &l, &err) < 0) {
		(void)fprintf(stderr, "bench: %s\n", err.text);
		exit(2);
	}
	return l;
}

static void write_many(unsigned long n)
{
	struct ledger *l = open_it();

	for (unsigned long i = 0; i < n; i++)
		append(l, i, false);
	if (ledger_sync(l, NULL) < 0)
		die("sync");
	ledger_close(l);
}

/* What one record costs the disk, without us. */
static double raw_sync(void)
{
	char path[4200];
	static char line[700];
	double start;
	int n = 0;
	int fd;

	(void)snprintf(path, sizeof(path), "%s.raw", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	memset(line, 'x', sizeof(line));
	start = now();
	for (; now() - start < 1.0; n++)
		if (write(fd, line, sizeof(line)) < 0 || fdatasync(fd) < 0)
			die(path);
	start = now() - start;
	(void)close(fd);
	(void)unlink(path);
	return start / n * 1e3;
}

/*
 * Records a second of some processes that wait for each to be on the disk.
 * `is_alone`: one after the other has the disk, as without sharing.
 */
static double synced(int writers, bool is_alone)
{
	int counts[2];
	double start = now();
	unsigned long total = 0;
	unsigned long n;

	if (pipe2(counts, O_CLOEXEC) < 0)
		die("pipe");
	for (int w = 0; w < writers; w++) {
		if (fork() != 0)
			continue;
		struct ledger *l = open_it();

		n = 0;
		for (double t = now(); now() - t < 2.0; n++) {
			if (is_alone && lockf(0, F_LOCK, 0) < 0 &&
			    errno != EBADF)
				_exit(2);
			append(l, n, true);
			if (is_alone)
				(void)lockf(0, F_ULOCK, 0);
		}
		_exit(write(counts[1], &n, sizeof(n)) == sizeof(n) ? 0 : 2);
	}
	(void)close(counts[1]);
	while (read(counts[0], &n, sizeof(n)) == sizeof(n))
		total += n;
	(void)close(counts[0]);
	while (wait(NULL) > 0)
		;
	return (double)total / (now() - start);
}

static void verify_speed(void)
{
	struct verify_options o = { .dir = dir };
	struct verify_result v;
	struct err err = { 0 };
	double start;

	write_many(150000);
	start = now();
	if (verify(&o, &v, &err) < 0 || v.fault != VERIFY_INTACT)
		die("verify");
	figure("verify", (double)v.bytes / 1e6 / (now() - start), "MB/s",
	       AT_LEAST, 100);
	/* Without the processor's own instructions. */
	sha256_is_plain = true;
	start = now();
	if (verify(&o, &v, &err) < 0)
		die("verify");
	figure("verify, portable code", (double)v.bytes / 1e6 / (now() - start),
	       "MB/s", NO_BAR, 0);
	sha256_is_plain = false;
	remove_ledger();
}

static double list(const char *desk, const char *filter, const char *value)
{
	double start = now();
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		(void)dup2(null, 1);
		(void)execl(desk, desk, "audit", "list", "--dir", dir, filter,
			    value, NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		die("cordon-desk audit list");
	return (now() - start) * 1e3;
}

static void list_speed(const char *desk)
{
	double start = now();

	write_many(1000000);
	figure("a million records, appended", now() - start, "s", NO_BAR, 0);
	figure("their index, made", list(desk, "--last", "1") / 1e3, "s",
	       NO_BAR, 0);
	figure("list all of a million", list(desk, "--since", "2000-01-01"),
	       "ms", AT_MOST, 1000);
	figure("filter by decision", list(desk, "--decision", "deny"), "ms",
	       AT_MOST, 1000);
	figure("filter by agent", list(desk, "--agent", "agent-7"), "ms",
	       AT_MOST, 1000);
	figure("the last 100", list(desk, "--last", "100"), "ms", AT_MOST,
	       1000);
	remove_ledger();
}

int main(int argc, char **argv)
{
	double one;
	char lock[4200];
	int fd;

	if (argc != 2 && (argc != 4 || strcmp(argv[2], "full") != 0)) {
		(void)fputs("usage: ledger DIR [full DESK]\n", stderr);
		return 2;
	}
	(void)snprintf(dir, sizeof(dir), "%s/bench-ledger.%d", argv[1],
		       getpid());
	(void)snprintf(lock, sizeof(lock), "%s.lock", dir);
	/* Standard input is the lock of those that do not share. */
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, 0) < 0)
		die(lock);
	verify_speed();
	figure("one write and fdatasync", raw_sync(), "ms", NO_BAR, 0);
	one = synced(1, false);
	remove_ledger();
	figure("records on the disk, one process", one, "/s", NO_BAR, 0);
	one = synced(WRITERS, true);
	remove_ledger();
	figure("records on the disk, eight processes in turn", one, "/s",
	       NO_BAR, 0);
	one = synced(WRITERS, false);
	remove_ledger();
	figure("records on the disk, eight processes, shared", one, "/s",
	       NO_BAR, 0);
	if (argc == 4)
		list_speed(argv[3]);
	(void)unlink(lock);
	return figure_failed;
}
