/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long a program takes from the call that starts it until it is known to
 * have ended, for many ways to start it.
 *
 *	start ROUNDS WARM-UPS PEERS
 *
 * Theory of operation. PEERS has a line for each way, tab-separated: key,
 * flags, program, arguments. In a round each peer gives one sample, in an
 * order that is shuffled anew each time: what the machine does beside hits
 * all alike, and nobody always has the same neighbour. Between two samples
 * there is a pause, in which the kernel takes down what the last one left
 * (network namespaces die late) and Cordon's keeper readies its next box, so
 * that nobody pays for another. What a caller without pauses sees is a peer
 * of its own: "burst", calls back to back.
 *
 * Flags, separated by commas, or "-":
 *	library    cordon_run() on one handle, instead of a process
 *	burst      several calls without a pause; the sample is their mean
 *	every=N    a sample in every Nth round only, for the slow ones
 *	nounified  started where /sys/fs/cgroup/unified is not mounted
 *	state=DIR  its record is in DIR, not in $CORDON_STATE_DIR
 *
 * Every process is started by posix_spawn() with the same small environment,
 * from an absolute path, its streams on /dev/null. CORDON_STATE_DIR is part
 * of it: a run of the command must not leave a record on this machine.
 *
 * Lines out: "key<TAB>milliseconds" for a sample, "key<TAB>broken<TAB>why"
 * for a peer that fails when tried first, "key<TAB>failed<TAB>why" for a
 * sample that failed later.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MAX_PEERS  32
#define MAX_ARGS   64
#define MAX_ROUNDS 10000
#define BURST      5
#define PAUSE_US   2000
#define UNIFIED    "/sys/fs/cgroup/unified"

struct peer {
	char *line; /* what the strings point into */
	const char *key;
	bool is_library;
	bool is_burst;
	bool is_broken;
	bool no_unified;
	const char *state; /* NULL: where all have it */
	unsigned int every;
	char *argv[MAX_ARGS];
};

struct bench {
	struct peer peers[MAX_PEERS];
	size_t n;
	struct cordon *handle;
	struct cordon_spec *spec;
	const char *state; /* where the records go */
	int null;
	int ns_own;
	int ns_no_unified; /* -1 where there is nothing to unmount */
	char why[256];     /* of the last failure */
};

/* the peers */

static void take_flags(struct peer *p, char *flags)
{
	char *rest = NULL;

	p->every = 1;
	for (char *f = strtok_r(flags, ",", &rest); f;
	     f = strtok_r(NULL, ",", &rest)) {
		if (strcmp(f, "library") == 0)
			p->is_library = true;
		else if (strcmp(f, "burst") == 0)
			p->is_burst = true;
		else if (strcmp(f, "nounified") == 0)
			p->no_unified = true;
		else if (strncmp(f, "state=", 6) == 0)
			p->state = f + 6;
		else if (strncmp(f, "every=", 6) == 0)
			p->every = number(f + 6, MAX_ROUNDS);
		else if (strcmp(f, "-") != 0)
			die("unknown flag '%s'", f);
	}
}

static void take_line(struct peer *p, char *line)
{
	char *rest = NULL;
	char *flags;
	int n = 0;

	p->line = line;
	p->key = strtok_r(line, "\t\n", &rest);
	flags = strtok_r(NULL, "\t\n", &rest);
	if (!p->key || !flags)
		die("a peer needs a key and flags");
	take_flags(p, flags);
	while (n < MAX_ARGS - 1 && (p->argv[n] = strtok_r(NULL, "\t\n", &rest)))
		n++;
	if (n == 0)
		die("peer '%s' has no program", p->key);
}

static void read_peers(struct bench *b, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	if (!f)
		die("open '%s': %s", path, strerror(errno));
	while (b->n < MAX_PEERS && getline(&line, &size, f) > 0) {
		take_line(&b->peers[b->n++], line);
		line = NULL;
		size = 0;
	}
	free(line);
	(void)fclose(f);
}

/*
 * A mount namespace without the empty version 2 hierarchy of a hybrid
 * machine, which crun takes for the one to use. The namespace lives as long
 * as the descriptor.
 */
static int open_no_unified(void)
{
	char path[64];
	int ready[2];
	char byte = 0;
	int fd = -1;
	pid_t pid;

	if (access(UNIFIED "/cgroup.procs", F_OK) < 0 ||
	    pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		byte = unshare(CLONE_NEWNS) == 0 &&
		       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ==
			       0 &&
		       umount2(UNIFIED, MNT_DETACH) == 0;
		(void)!write(ready[1], &byte, 1);
		(void)pause();
		_exit(0);
	}
	(void)close(ready[1]);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (pid > 0 && read(ready[0], &byte, 1) == 1 && byte)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	(void)close(ready[0]);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	return fd;
}

/* one sample */

static bool run_process(struct bench *b, const struct peer *p, int err_fd)
{
	char state[PATH_MAX];
	const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
				    "LANG=C.UTF-8", state, NULL };
	posix_spawn_file_actions_t act;
	int status = 0;
	pid_t pid;
	int r;

	(void)snprintf(state, sizeof(state), "CORDON_STATE_DIR=%s",
		       p->state ? p->state : b->state);
	if (posix_spawn_file_actions_init(&act) != 0)
		die("out of memory");
	r = posix_spawn_file_actions_adddup2(&act, b->null, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&act, b->null, 1);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&act, err_fd, 2);
	if (!r)
		r = posix_spawn(&pid, p->argv[0], &act, NULL, p->argv,
				(char **)env);
	(void)posix_spawn_file_actions_destroy(&act);
	if (r) {
		(void)snprintf(b->why, sizeof(b->why), "start '%s': %s",
			       p->argv[0], strerror(r));
		return false;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		(void)snprintf(b->why, sizeof(b->why), "ended with status %d",
			       WIFEXITED(status) ? WEXITSTATUS(status)
						 : 128 + WTERMSIG(status));
	return status == 0;
}

static bool run_library(struct bench *b, const struct peer *p)
{
	int times = p->is_burst ? BURST : 1;
	bool good = true;

	for (int i = 0; good && i < times; i++) {
		struct cordon_error err = { 0 };
		struct cordon_result *r = NULL;

		if (cordon_run(b->handle, b->spec, &r, &err) < 0) {
			(void)snprintf(b->why, sizeof(b->why), "%.200s",
				       err.text);
			return false;
		}
		good = strcmp(cordon_result_status(r), "success") == 0;
		if (!good)
			(void)snprintf(b->why, sizeof(b->why), "cause %s",
				       cordon_result_cause(r));
		cordon_result_free(r);
	}
	return good;
}

/* Milliseconds, or a negative number and b->why. */
static double sample(struct bench *b, const struct peer *p, int err_fd)
{
	bool moves = p->no_unified && b->ns_no_unified >= 0;
	bool good;
	double t;

	if (moves && setns(b->ns_no_unified, CLONE_NEWNS) < 0)
		die("enter a mount namespace: %s", strerror(errno));
	t = now_ms();
	good = p->is_library ? run_library(b, p) : run_process(b, p, err_fd);
	t = now_ms() - t;
	if (moves && setns(b->ns_own, CLONE_NEWNS) < 0)
		die("return to the mount namespace: %s", strerror(errno));
	if (!good)
		return -1;
	return p->is_burst ? t / BURST : t;
}

/* Tries it once and keeps what it says when it fails. */
static void probe(struct bench *b, struct peer *p)
{
	int said = memfd_create("said", MFD_CLOEXEC);
	char text[200];
	ssize_t n;

	if (said < 0)
		die("make a memory file: %s", strerror(errno));
	p->is_broken = sample(b, p, said) < 0;
	if (p->is_broken) {
		n = pread(said, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		text[strcspn(text, "\t\n")] = '\0';
		printf("%s\tbroken\t%s%s%s\n", p->key, b->why,
		       text[0] ? ": " : "", text);
	}
	(void)close(said);
	(void)usleep(PAUSE_US);
}

/* the rounds */

static void shuffle(size_t *order, size_t n)
{
	static unsigned int seed = 1; /* the same orders each time */

	for (size_t i = n; i > 1; i--) {
		size_t k = (size_t)rand_r(&seed) % i;
		size_t was = order[i - 1];

		order[i - 1] = order[k];
		order[k] = was;
	}
}

static void one_round(struct bench *b, const size_t *order, unsigned int at,
		      bool counts)
{
	for (size_t i = 0; i < b->n; i++) {
		struct peer *p = &b->peers[order[i]];
		double ms;

		if (p->is_broken || at % p->every != 0)
			continue;
		ms = sample(b, p, b->null);
		if (ms < 0)
			printf("%s\tfailed\t%s\n", p->key, b->why);
		else if (counts)
			printf("%s\t%.4f\n", p->key, ms);
		(void)usleep(PAUSE_US);
	}
}

static void bench_open(struct bench *b)
{
	static const char *const program[] = { "true", NULL };

	b->state = getenv("CORDON_STATE_DIR");
	if (!b->state)
		die("CORDON_STATE_DIR is not set");
	b->handle = open_handle();
	b->spec = new_spec(program);
	b->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	b->ns_own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	b->ns_no_unified = open_no_unified();
	if (b->null < 0 || b->ns_own < 0)
		die("open files: %s", strerror(errno));
}

static void bench_close(struct bench *b)
{
	cordon_spec_free(b->spec);
	cordon_close(b->handle);
	(void)close(b->null);
	(void)close(b->ns_own);
	if (b->ns_no_unified >= 0)
		(void)close(b->ns_no_unified);
	for (size_t i = 0; i < b->n; i++)
		free(b->peers[i].line);
}

int main(int argc, char **argv)
{
	static struct bench b;
	size_t order[MAX_PEERS] = { 0 };
	unsigned int rounds;
	unsigned int warm_ups;

	if (argc != 4)
		die("usage: start ROUNDS WARM-UPS PEERS");
	rounds = number(argv[1], MAX_ROUNDS);
	warm_ups = number(argv[2], MAX_ROUNDS);
	read_peers(&b, argv[3]);
	bench_open(&b);
	for (size_t i = 0; i < b.n; i++) {
		order[i] = i;
		probe(&b, &b.peers[i]);
	}
	for (unsigned int i = 0; i < warm_ups + rounds; i++) {
		shuffle(order, b.n);
		one_round(&b, order, i < warm_ups ? i : i - warm_ups,
			  i >= warm_ups);
	}
	bench_close(&b);
	return 0;
}
