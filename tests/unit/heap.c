/* SPDX-License-Identifier: Apache-2.0 */

/* The command's heap, called by its own names beside that of the tests. */

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);

static int n_real; /* blocks of the other heap that are there */

void *__real_malloc(size_t n)
{
	n_real++;
	return malloc(n);
}

void *__real_realloc(void *p, size_t n)
{
	return realloc(p, n);
}

void __real_free(void *p)
{
	n_real -= p != NULL;
	free(p);
}

static uint32_t seed = 1;

static uint32_t number(uint32_t below)
{
	seed = seed * 1664525U + 1013904223U;
	return (seed >> 8) % below;
}

/* Mostly small, some of a few KiB, a few larger than the heap takes. */
static size_t some_size(void)
{
	switch (number(20)) {
	case 0:
		return number(200000);
	case 1:
	case 2:
		return number(20000);
	default:
		return number(600);
	}
}

static bool is_full_of(const unsigned char *p, size_t n, unsigned char c)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != c)
			return false;
	return true;
}

TEST(blocks_keep_what_is_in_them)
{
	enum { BLOCKS = 200, STEPS = 200000 };
	static struct {
		unsigned char *p;
		size_t n;
	} have[BLOCKS];
	bool is_good = true;

	for (int i = 0; i < STEPS && is_good; i++) {
		uint32_t k = number(BLOCKS);
		size_t n = some_size() + 1;
		unsigned char *p;

		is_good = is_full_of(have[k].p, have[k].n, (unsigned char)k);
		if (!have[k].p && number(3) == 0) {
			p = __wrap_calloc(1, n);
			is_good = is_good && p && is_full_of(p, n, 0);
		} else if (!have[k].p) {
			p = __wrap_malloc(n);
		} else if (number(3) == 0) {
			p = __wrap_realloc(have[k].p, n);
			is_good = is_good && p &&
				  is_full_of(p, n < have[k].n ? n : have[k].n,
					     (unsigned char)k);
		} else {
			__wrap_free(have[k].p);
			p = NULL;
			n = 0;
		}
		if (p)
			memset(p, (int)k, n);
		is_good = is_good && (uintptr_t)p % 16 == 0;
		have[k].p = p;
		have[k].n = n;
	}
	CHECK(is_good);
	for (int k = 0; k < BLOCKS; k++)
		__wrap_free(have[k].p);
	CHECK_INT(n_real, 0);
}

/* A request after the other, for ever: all from what the first one had. */
TEST(what_is_given_back_is_used_again)
{
	void *p[60];
	int before = n_real;
	int most = 0;

	for (int round = 0; round < 2000; round++) {
		for (int i = 0; i < 60; i++)
			p[i] = __wrap_malloc((size_t)(i * i) * 3);
		most = n_real > most ? n_real : most;
		for (int i = 0; i < 60; i++)
			__wrap_free(p[(i * 7) % 60]);
	}
	CHECK_INT(most, before);
}

static int ended_by(void (*what)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		what();
		_exit(0);
	}
	(void)waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void give_back_twice(void)
{
	char *a = __wrap_malloc(100);
	char *b = __wrap_malloc(100);

	__wrap_free(a);
	__wrap_free(a);
	__wrap_free(b);
}

static void write_past_the_end(void)
{
	char *a = __wrap_malloc(3000);
	char *b = __wrap_malloc(3000);
	char *c = __wrap_malloc(3000);
	size_t link;

	(void)__wrap_malloc(3000);
	__wrap_free(c);
	__wrap_free(b);
	/* The link of b, through the end of a. */
	link = (size_t)a;
	memcpy(b - sizeof(link), &link, sizeof(link));
	(void)__wrap_malloc(3000);
	(void)__wrap_malloc(3000);
}

TEST(a_broken_list_ends_the_process)
{
	CHECK_INT(ended_by(give_back_twice), SIGABRT);
	CHECK_INT(ended_by(write_past_the_end), SIGABRT);
}

TAP_MAIN()
