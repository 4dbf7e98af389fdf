/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many runs a second several callers get together, each a thread with a
 * handle of its own that runs /usr/bin/true without pauses.
 *
 *	scale SECONDS CALLERS...
 *
 * Lines out: callers, runs, seconds, failed runs.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "bench.h"

#define MAX_CALLERS 64
#define WARM_UPS    3

struct crowd {
	pthread_barrier_t ready;
	atomic_uint runs;
	atomic_uint failures;
	double length_ms;
};

static bool run_once(struct cordon *c, const struct cordon_spec *s)
{
	struct cordon_result *r = NULL;
	bool good = cordon_run(c, s, &r, NULL) == 0 &&
		    strcmp(cordon_result_status(r), "success") == 0;

	cordon_result_free(r);
	return good;
}

static void *caller(void *arg)
{
	static const char *const program[] = { "true", NULL };
	struct crowd *all = arg;
	struct cordon *c = open_handle();
	struct cordon_spec *s = new_spec(program);
	double end;

	for (int i = 0; i < WARM_UPS; i++)
		(void)run_once(c, s);
	(void)pthread_barrier_wait(&all->ready);
	end = now_ms() + all->length_ms;
	while (now_ms() < end) {
		if (run_once(c, s))
			atomic_fetch_add(&all->runs, 1);
		else
			atomic_fetch_add(&all->failures, 1);
	}
	(void)pthread_barrier_wait(&all->ready);
	cordon_spec_free(s);
	cordon_close(c);
	return NULL;
}

static void measure(unsigned int callers, unsigned int seconds)
{
	struct crowd all = { .length_ms = seconds * 1e3 };
	pthread_t threads[MAX_CALLERS];
	double t;

	(void)pthread_barrier_init(&all.ready, NULL, callers + 1);
	for (unsigned int i = 0; i < callers; i++)
		if (pthread_create(&threads[i], NULL, caller, &all) != 0)
			die("start a thread");
	(void)pthread_barrier_wait(&all.ready);
	t = now_ms();
	(void)pthread_barrier_wait(&all.ready);
	t = now_ms() - t;
	for (unsigned int i = 0; i < callers; i++)
		(void)pthread_join(threads[i], NULL);
	(void)pthread_barrier_destroy(&all.ready);
	printf("%u\t%u\t%.3f\t%u\n", callers, atomic_load(&all.runs), t / 1e3,
	       atomic_load(&all.failures));
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: scale SECONDS CALLERS...");
	for (int i = 2; i < argc; i++)
		measure(number(argv[i], MAX_CALLERS), number(argv[1], 60));
	return 0;
}
