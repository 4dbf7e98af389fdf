/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What policy and ledger cost the command, on the disk that DIR is on.
 *
 *	commands CORDON DIR
 *
 * Eight callers, and one, start `cordon run` again and again for a while in
 * each of some ways; the ways take turns, and the figures are medians of the
 * turns. Lines as in figure.h. What it makes in DIR it removes.
 */

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "figure.h"

#define CALLERS 8
#define TURNS   7
#define TURN_MS 1200

extern char **environ;

static char policy[4096];
static char list[4096];

/* Neither; the record; the record and a policy file; and a list of commands. */
static const char *const ways[][9] = {
	{ "cordon", "run", "--ledger", "off", "--", "true" },
	{ "cordon", "run", "--", "true" },
	{ "cordon", "run", "--policy", policy, "--", "true" },
	{ "cordon", "run", "--policy", list, "--command", "true" },
};

enum { BARE, RECORDED, JUDGED, LISTED, WAYS };

static double runs[2][WAYS][TURNS];

static void run_once(const char *cordon, int way)
{
	pid_t pid;
	int status = -1;
	int r = posix_spawn(&pid, cordon, NULL, NULL, (char **)ways[way],
			    environ);

	if (r != 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		die("'cordon run', way %d, ended with %d", way, status);
}

/* In a child of its own; the number of runs is its answer. */
static void call(const char *cordon, int way, int answer)
{
	double end = now_ms() + TURN_MS;
	int n = 0;

	for (; now_ms() < end; n++)
		run_once(cordon, way);
	_exit(write(answer, &n, sizeof(n)) == sizeof(n) ? 0 : 2);
}

/* Runs a second of so many callers. */
static double turn(const char *cordon, int callers, int way)
{
	double start = now_ms();
	int answers[2];
	int total = 0;
	int failed = 0;
	int status;
	int n;

	if (pipe2(answers, O_CLOEXEC) < 0)
		die("pipe: %s", strerror(errno));
	for (int i = 0; i < callers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork: %s", strerror(errno));
		if (pid == 0)
			call(cordon, way, answers[1]);
	}
	(void)close(answers[1]);
	while (read(answers[0], &n, sizeof(n)) == sizeof(n))
		total += n;
	(void)close(answers[0]);
	while (wait(&status) > 0)
		failed |= status;
	if (failed)
		exit(2);
	return total / (now_ms() - start) * 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v)
{
	qsort(v, TURNS, sizeof(*v), compare);
	return v[TURNS / 2];
}

static void write_policy(const char *file, const char *preset)
{
	FILE *f = fopen(file, "we");

	if (!f || fprintf(f, "version: 1\nextends: %s\n", preset) < 0 ||
	    fclose(f) != 0)
		die("'%s': %s", file, strerror(errno));
}

static void report(int crowd)
{
	static const char *const names[2][WAYS] = {
		{ "one at a time, without", "one at a time, with the ledger",
		  "one at a time, with ledger and policy",
		  "one at a time, with a list of commands" },
		{ "eight at once, without", "eight at once, with the ledger",
		  "eight at once, with ledger and policy",
		  "eight at once, with a list of commands" },
	};
	double middle[WAYS];

	for (int way = 0; way < WAYS; way++) {
		middle[way] = median(runs[crowd][way]);
		if (crowd)
			figure(names[crowd][way], middle[way], "runs/s", NO_BAR,
			       0);
		else
			figure(names[crowd][way], 1e3 / middle[way], "ms",
			       NO_BAR, 0);
	}
	if (crowd)
		figure("with ledger and policy, of without",
		       middle[JUDGED] / middle[BARE], "", AT_LEAST, 0.85);
}

int main(int argc, char **argv)
{
	char dir[3000];
	char line[3100];

	if (argc != 3)
		die("usage: commands CORDON DIR");
	(void)snprintf(dir, sizeof(dir), "%s/bench-commands.%d", argv[2],
		       (int)getpid());
	(void)snprintf(policy, sizeof(policy), "%s/policy.yaml", dir);
	(void)snprintf(list, sizeof(list), "%s/list.yaml", dir);
	/* No policy is found from there unless it is named. */
	if (mkdir(dir, 0700) < 0 || chdir(dir) < 0 ||
	    setenv("HOME", dir, 1) < 0 || unsetenv("XDG_CONFIG_HOME") < 0 ||
	    unsetenv("CORDON_POLICY") < 0 ||
	    setenv("CORDON_STATE_DIR", dir, 1) < 0)
		die("'%s': %s", dir, strerror(errno));
	write_policy(policy, "strict");
	write_policy(list, "shell-tools");
	for (int i = 0; i < TURNS; i++)
		for (int way = 0; way < WAYS; way++) {
			runs[0][way][i] = turn(argv[1], 1, way);
			runs[1][way][i] = turn(argv[1], CALLERS, way);
		}
	report(0);
	report(1);
	(void)snprintf(line, sizeof(line), "rm -rf '%s'", dir);
	if (system(line) != 0)
		die("cannot remove '%s'", dir);
	return figure_failed;
}
