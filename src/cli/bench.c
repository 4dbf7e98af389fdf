/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon bench: what a box costs on this machine, beside a plain process and
 * bubblewrap where it is installed; one after the other in turn, so that a
 * noisy moment hits all alike.
 */

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cordon/cordon.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/util.h"
#include "cli/cli.h"

#define MAX_ROUNDS 10000

struct peer {
	const char *name;
	int (*once)(void *arg);
	void *arg;
	double *ms;
};

static int spawn(const char *const *argv)
{
	static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char **)argv,
			 (char **)env) != 0 ||
	    waitpid(pid, &status, 0) < 0)
		return -1;
	return status == 0 ? 0 : -1;
}

static int plain_once(void *arg)
{
	const char *const argv[] = { "/usr/bin/true", NULL };

	(void)arg;
	return spawn(argv);
}

static int bwrap_once(void *arg)
{
	const char *const argv[] = {
		"bwrap",     "--unshare-all", "--ro-bind", "/usr",
		"/usr",      "--symlink",     "usr/lib",   "/lib",
		"--symlink", "usr/lib64",     "/lib64",    "--proc",
		"/proc",     "--dev",         "/dev",      "--tmpfs",
		"/tmp",      "/usr/bin/true", NULL
	};

	(void)arg;
	return spawn(argv);
}

struct boxes {
	struct cordon *handle;
	struct cordon_spec *spec;
};

static int box_once(void *arg)
{
	struct boxes *b = arg;
	struct cordon_result *r = NULL;
	int bad = cordon_run(b->handle, b->spec, &r, NULL) < 0 ||
		  strcmp(cordon_result_status(r), "success") != 0;

	cordon_result_free(r);
	return bad ? -1 : 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(struct peer *p, int rounds, double plain)
{
	double median;

	qsort(p->ms, (size_t)rounds, sizeof(*p->ms), by_value);
	median = p->ms[rounds / 2];
	printf("%-22s %8.2f %8.2f %8.2f\n", p->name, median,
	       p->ms[rounds * 95 / 100], median / plain);
}

static int measure(struct peer *peers, size_t n, int rounds)
{
	for (int i = -3; i < rounds; i++)
		for (size_t k = 0; k < n; k++) {
			int64_t t = clock_us();

			if (!peers[k].ms)
				continue;
			if (peers[k].once(peers[k].arg) < 0) {
				free(peers[k].ms);
				peers[k].ms = NULL;
				continue;
			}
			if (i >= 0)
				peers[k].ms[i] = (double)(clock_us() - t) / 1e3;
		}
	return peers[0].ms ? 0 : -1;
}

int cmd_bench(int argc, char **argv)
{
	static const char *const command[] = { "true", NULL };
	struct cordon_error err = { .text = "out of memory" };
	struct boxes boxes = { cordon_open(&err), cordon_spec_new() };
	struct peer peers[] = {
		{ "plain process", plain_once, NULL, NULL },
		{ "box, reused handle", box_once, &boxes, NULL },
		{ "bubblewrap", bwrap_once, NULL, NULL },
	};
	uint64_t rounds = 200;
	int code = EXIT_OURS;

	if (argc > 2 ||
	    (argc == 2 &&
	     (num_parse(argv[1], MAX_ROUNDS, &rounds) < 0 || rounds == 0))) {
		say("bench takes a number of rounds, at most %d", MAX_ROUNDS);
		goto out;
	}
	if (!boxes.handle || !boxes.spec ||
	    cordon_spec_command(boxes.spec, command, &err) < 0) {
		say("%s", err.text);
		goto out;
	}
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++)
		peers[i].ms = calloc(rounds, sizeof(double));
	if (measure(peers, ARRAY_SIZE(peers), (int)rounds) == 0) {
		double plain;

		printf("%-22s %8s %8s %8s\n", "/usr/bin/true", "median", "95 %",
		       "ratio");
		qsort(peers[0].ms, rounds, sizeof(double), by_value);
		plain = peers[0].ms[rounds / 2];
		for (size_t i = 0; i < ARRAY_SIZE(peers); i++)
			if (peers[i].ms)
				report(&peers[i], (int)rounds, plain);
		code = 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++)
		free(peers[i].ms);
out:
	cordon_spec_free(boxes.spec);
	cordon_close(boxes.handle);
	return code;
}
