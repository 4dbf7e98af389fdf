/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the deadline of a run until nothing of it is left.
 *
 *	deadline SAMPLES HOSTILE
 *
 * Each sample is a box with a time limit and 100 processes of hostile.c.
 * They are counted from outside, by their name, shortly before the deadline:
 * a count that finds them then and not afterwards has seen them end. Zombies
 * count. Afterwards means when the library has returned the result; if a
 * process or a cgroup of the box is still there, the clock runs on until it
 * is gone.
 *
 * The deadline is counted from the call that starts the run; the time to
 * build the box is therefore within the figure.
 *
 * Lines out: milliseconds from the deadline until nothing was left, number of
 * processes before, processes left at the result, cgroups left at the result.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define HOSTILE     100
#define LIMIT_MS    1000
#define COUNT_MS    850 /* when they are counted */
#define PATIENCE_MS 2000
#define MAX_CGROUPS 16

struct sight {
	char name[16];
	int count;
	int pid; /* one of them */
	char cgroups[MAX_CGROUPS][512];
	int n_cgroups;
};

/* Counts the processes of that name. */
static void look(struct sight *s)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	if (!d)
		die("open /proc: %s", strerror(errno));
	s->count = 0;
	while ((e = readdir(d))) {
		char path[280];
		char comm[32] = "";
		FILE *f;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) &&
		    strncmp(comm, s->name, strlen(s->name)) == 0) {
			s->count++;
			s->pid = (int)strtol(e->d_name, NULL, 10);
		}
		(void)fclose(f);
	}
	(void)closedir(d);
}

static void add_cgroup(struct sight *s, const char *mount, const char *path)
{
	char *to;

	if (s->n_cgroups == MAX_CGROUPS || strcmp(path, "/") == 0)
		return;
	to = s->cgroups[s->n_cgroups];
	(void)snprintf(to, sizeof(s->cgroups[0]), "/sys/fs/cgroup%s%s%s",
		       mount[0] ? "/" : "", mount, path);
	if (access(to, F_OK) == 0)
		s->n_cgroups++;
}

/* Where the box is accounted, of what is mounted at the usual places. */
static void find_cgroups(struct sight *s)
{
	char path[64];
	char line[512];
	FILE *f;

	s->n_cgroups = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", s->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *name = strchr(line, ':');
		char *at = name ? strchr(name + 1, ':') : NULL;

		if (!at)
			continue;
		*at++ = '\0';
		at[strcspn(at, "\n")] = '\0';
		name++;
		if (strncmp(name, "name=", 5) == 0)
			name += 5;
		add_cgroup(s, name, at);
		if (!name[0])
			add_cgroup(s, "unified", at);
	}
	if (f)
		(void)fclose(f);
}

static int cgroups_left(const struct sight *s)
{
	int n = 0;

	for (int i = 0; i < s->n_cgroups; i++)
		n += access(s->cgroups[i], F_OK) == 0;
	return n;
}

/* Drives the job to its end; looks once on the way. Returns the time. */
static double follow(struct cordon_job *j, double start, struct sight *s)
{
	struct pollfd p = { .fd = cordon_job_fd(j), .events = POLLIN };
	int has_looked = 0;

	while (!cordon_job_step(j)) {
		double left = start + COUNT_MS - now_ms();

		if (!has_looked && left <= 0) {
			look(s);
			find_cgroups(s);
			has_looked = 1;
			continue;
		}
		(void)poll(&p, 1, has_looked ? -1 : (int)left + 1);
	}
	return now_ms();
}

static struct cordon_spec *make_spec(const char *program, const char *name)
{
	const char *const argv[] = { "/hostile", "100", name, NULL };
	struct cordon_spec *s = new_spec(argv);
	struct cordon_error err = { 0 };
	char volume[4200];

	(void)snprintf(volume, sizeof(volume), "%s:/hostile:ro", program);
	if (cordon_spec_set(s, "volume", volume, &err) < 0 ||
	    cordon_spec_set(s, "timeout", "1000ms", &err) < 0)
		die("%s", err.text);
	return s;
}

static void check_result(const struct cordon_result *r, int before)
{
	size_t ready = 0;

	(void)cordon_result_stdout(r, &ready);
	if (strcmp(cordon_result_cause(r), "timeout") != 0)
		die("the run ended by '%s', not by its deadline: %s",
		    cordon_result_cause(r),
		    cordon_result_message(r) ? cordon_result_message(r) : "");
	if (ready != HOSTILE || before < HOSTILE)
		die("%zu processes were ready and %d seen, not %d", ready,
		    before, HOSTILE);
}

static void sample(struct cordon *c, const char *program, unsigned int number)
{
	struct cordon_error err = { 0 };
	struct sight s = { 0 };
	struct cordon_spec *spec;
	struct cordon_job *j;
	struct cordon_result *r;
	double start;
	double end;
	int before;
	int cgroups;
	int left;

	(void)snprintf(s.name, sizeof(s.name), "hst%x.%u", (unsigned)getpid(),
		       number);
	spec = make_spec(program, s.name);
	start = now_ms();
	j = cordon_start(c, spec, NULL, NULL, &err);
	if (!j)
		die("%s", err.text);
	end = follow(j, start, &s);
	cgroups = cgroups_left(&s);
	before = s.count;
	look(&s);
	left = s.count;
	while ((s.count > 0 || cgroups_left(&s) > 0) &&
	       now_ms() < start + LIMIT_MS + PATIENCE_MS) {
		look(&s);
		end = now_ms();
	}
	r = cordon_job_end(j);
	check_result(r, before);
	printf("%.3f\t%d\t%d\t%d\n", end - start - LIMIT_MS, before, left,
	       cgroups);
	cordon_result_free(r);
	cordon_spec_free(spec);
}

int main(int argc, char **argv)
{
	struct cordon *c;
	unsigned int n;

	if (argc != 3)
		die("usage: deadline SAMPLES HOSTILE");
	n = number(argv[1], 100);
	c = open_handle();
	for (unsigned int i = 0; i < n; i++)
		sample(c, argv[2], i);
	cordon_close(c);
	return 0;
}
