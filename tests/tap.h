/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tests in C, each in a child of its own, reported as TAP.
 *
 *	TEST(p01_no_capabilities)
 *	{
 *		CHECK(caps == 0);
 *		CHECK_STR(text, "0000");
 *	}
 *	TAP_MAIN()
 *
 * A test passes when it returns and no CHECK failed. SKIP("why") ends it as
 * skipped; the runner counts that as a failure when CI=true. Names on the
 * command line choose tests (by prefix). A test that takes longer than
 * TAP_SECONDS is killed with its process group and fails; on an emulated
 * machine (CORDON_IN_VM), three times that.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef TAP_SECONDS
#define TAP_SECONDS 60
#endif

struct tap_test {
	const char *name;
	void (*run)(void);
	struct tap_test *next;
};

static struct tap_test *tap_first;
static struct tap_test **tap_last __attribute__((unused)) = &tap_first;
static int tap_bad;

enum { TAP_SKIPPED = 77 };

#define TEST(name_)                                                            \
	static void name_(void);                                               \
	static struct tap_test tap_##name_ = { #name_, name_, NULL };          \
	__attribute__((constructor)) static void tap_add_##name_(void)         \
	{                                                                      \
		*tap_last = &tap_##name_;                                      \
		tap_last = &tap_##name_.next;                                  \
	}                                                                      \
	static void name_(void)

/* A test that is there only where `when` holds. */
#define TEST_WHERE(name_, when)                                                \
	static void name_(void);                                               \
	static struct tap_test tap_##name_ = { #name_, name_, NULL };          \
	__attribute__((constructor)) static void tap_add_##name_(void)         \
	{                                                                      \
		if (!(when))                                                   \
			return;                                                \
		*tap_last = &tap_##name_;                                      \
		tap_last = &tap_##name_.next;                                  \
	}                                                                      \
	static void name_(void)

/* One that changes the machine: only as root of the virtual machine. */
#define TEST_IN_VM(name_)                                                      \
	TEST_WHERE(name_, getenv("CORDON_IN_VM") && geteuid() == 0)

/* One that emulation is too slow for. */
#define TEST_NOT_IN_VM(name_) TEST_WHERE(name_, !getenv("CORDON_IN_VM"))

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			printf("# %s:%d: not so: %s\n", __FILE__, __LINE__,    \
			       #cond);                                         \
			tap_bad++;                                             \
		}                                                              \
	} while (0)

#define CHECK_INT(have, want)                                                  \
	do {                                                                   \
		long long h_ = (have), w_ = (want);                            \
		if (h_ != w_) {                                                \
			printf("# %s:%d: %s is %lld, not %lld\n", __FILE__,    \
			       __LINE__, #have, h_, w_);                       \
			tap_bad++;                                             \
		}                                                              \
	} while (0)

#define CHECK_STR(have, want)                                                  \
	do {                                                                   \
		const char *h_ = (have), *w_ = (want);                         \
		if (!h_ || strcmp(h_, w_) != 0) {                              \
			printf("# %s:%d: %s is '%s', not '%s'\n", __FILE__,    \
			       __LINE__, #have, h_ ? h_ : "(null)", w_);       \
			tap_bad++;                                             \
		}                                                              \
	} while (0)

#define CHECK_HAS(have, part)                                                  \
	do {                                                                   \
		const char *h_ = (have), *p_ = (part);                         \
		if (!h_ || !strstr(h_, p_)) {                                  \
			printf("# %s:%d: '%s' is not in %s: '%s'\n", __FILE__, \
			       __LINE__, p_, #have, h_ ? h_ : "(null)");       \
			tap_bad++;                                             \
		}                                                              \
	} while (0)

#define SKIP(why)                                                              \
	do {                                                                   \
		printf("# skipped: %s\n", why);                                \
		(void)fflush(NULL);                                            \
		_exit(TAP_SKIPPED);                                            \
	} while (0)

static bool tap_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strncmp(name, argv[i], strlen(argv[i])) == 0)
			return true;
	return argc < 2;
}

static int tap_run(const struct tap_test *t)
{
	int status = 0;
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)setpgid(0, 0);
		(void)alarm(getenv("CORDON_IN_VM") ? 3 * TAP_SECONDS
						   : TAP_SECONDS);
		t->run();
		(void)fflush(NULL);
		_exit(tap_bad ? 1 : 0);
	}
	(void)setpgid(pid, pid);
	while (waitpid(pid, &status, 0) < 0)
		;
	(void)kill(-pid, SIGKILL);
	return status;
}

static int tap_main(int argc, char **argv)
{
	int n = 0;
	int failed = 0;

	for (struct tap_test *t = tap_first; t; t = t->next) {
		int status;

		if (!tap_wanted(t->name, argc, argv))
			continue;
		status = tap_run(t);
		n++;
		if (WIFEXITED(status) && WEXITSTATUS(status) == TAP_SKIPPED)
			printf("ok %d - %s # SKIP\n", n, t->name);
		else if (status == 0)
			printf("ok %d - %s\n", n, t->name);
		else
			printf("not ok %d - %s\n", n, t->name);
		if (WIFSIGNALED(status))
			printf("# ended by signal %d\n", WTERMSIG(status));
		failed += status != 0 && !(WIFEXITED(status) &&
					   WEXITSTATUS(status) == TAP_SKIPPED);
	}
	printf("1..%d\n", n);
	return failed ? 1 : 0;
}

#define TAP_MAIN()                                                             \
	int main(int argc, char **argv)                                        \
	{                                                                      \
		return tap_main(argc, argv);                                   \
	}
