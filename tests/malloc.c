/* SPDX-License-Identifier: Apache-2.0 */

/*
 * L04: memory that runs out at every moment.
 *
 * The library's allocations go through the functions below (the linker's
 * --wrap), which count them and make the nth fail, once or from then on, for
 * n = 1 to the last one. Each time a real box is run from the opening of a
 * handle to the document. Whatever fails: no crash, no descriptor and no
 * process left, and either a clean error or a result that is true. With ASan
 * also no leak.
 */

#define TAP_SECONDS 300

#include "tests/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>

#include <cordon/cordon.h>

#define TEXT "the output of the box, which is either whole or not claimed\n"

static long calls;      /* since the count was started */
static long fail_at;    /* 0: never */
static bool persistent; /* and all after it */

static bool is_failing(void)
{
	calls++;
	if (fail_at && (calls == fail_at || (persistent && calls > fail_at))) {
		errno = ENOMEM;
		return true;
	}
	return false;
}

/* The linker gives us these names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
DIR *__real_fdopendir(int fd);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);
DIR *__wrap_fdopendir(int fd);
int __wrap_asprintf(char **ret, const char *fmt, ...);
int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...);
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

void *__wrap_malloc(size_t size)
{
	return is_failing() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return is_failing() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return is_failing() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *text)
{
	return is_failing() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n)
{
	return is_failing() ? NULL : __real_strndup(text, n);
}

DIR *__wrap_fdopendir(int fd)
{
	return is_failing() ? NULL : __real_fdopendir(fd);
}

int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (is_failing())
		return -1;
	va_start(ap, fmt);
	n = vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...)
{
	va_list ap;
	int n;

	(void)flag;
	if (is_failing())
		return -1;
	va_start(ap, fmt);
	n = vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static char place[] = "/tmp/cordon-malloc-XXXXXX";

static void enter(void)
{
	const char *build = getenv("CORDON_BUILD");

	if (!getenv("CORDON_LIBEXEC"))
		(void)setenv("CORDON_LIBEXEC", build ? build : "build", 1);
	if (!mkdtemp(place) || chdir(place) < 0 ||
	    system("mkdir in && "
		   "echo x >in/f"))
		abort();
}

static void leave(void)
{
	CHECK_INT(system("rm -rf in out"), 0);
	CHECK_INT(chdir("/"), 0);
	CHECK_INT(rmdir(place), 0);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* An error is one: a code, and words for it. */
static bool is_error(const struct cordon_error *err)
{
	return err->code > 0 && err->text[0] &&
	       strlen(err->text) < sizeof(err->text);
}

static bool fill(struct cordon_spec *s, struct cordon_error *err)
{
	static const char *const settings[][2] = {
		{ "memory", "64m" },     { "env", "A=1" },
		{ "env", "A=2" },        { "volume", "in:/data:ro" },
		{ "tmpfs", "/scratch" }, { "workspace", "in" },
		{ "copy-out", "*=out" }, { "workdir", "/tmp" },
		{ "name", "box" },       { "label", "a=b" },
	};
	const char *code = "echo made >/workspace/new; printf '" TEXT "'";

	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (cordon_spec_set(s, settings[i][0], settings[i][1], err) < 0)
			return false;
	return cordon_spec_stdin(s, "in", 2, err) == 0 &&
	       cordon_spec_code(s, "sh", code, strlen(code), "sub/a.sh", err) ==
		       0;
}

/* A result that says success has all of the output, or says it has not. */
static bool is_true(const struct cordon_result *r)
{
	size_t len = 0;
	const char *text = cordon_result_stdout(r, &len);
	bool whole = len == strlen(TEXT) && memcmp(text, TEXT, len) == 0;
	char *json;
	bool good;

	if (strcmp(cordon_result_status(r), "success") != 0)
		return strlen(cordon_result_cause(r)) > 0;
	json = cordon_result_json(r);
	good = !json || strstr(json, whole ? "which is either whole"
					   : "\"truncated\":true");
	if (!good)
		printf("# %s", json);
	free(json);
	return good;
}

static bool run_sync(struct cordon *c, const struct cordon_spec *s,
		     struct cordon_error *err)
{
	struct cordon_result *r = NULL;
	bool good;

	if (cordon_run(c, s, &r, err) < 0)
		return is_error(err) && !r;
	good = is_true(r);
	cordon_result_free(r);
	return good;
}

/* The same by steps, ended in the middle. */
static bool run_async(struct cordon *c, const struct cordon_spec *s,
		      struct cordon_error *err)
{
	static const struct cordon_events none;
	struct cordon_job *j = cordon_start(c, s, &none, NULL, err);

	if (!j)
		return is_error(err);
	(void)cordon_job_step(j);
	cordon_job_cancel(j, "enough");
	cordon_result_free(cordon_job_end(j));
	return true;
}

/* From nothing to nothing; false if something was untrue. */
static bool whole_life(void)
{
	struct cordon_error err = { 0 };
	struct cordon *c = cordon_open(&err);
	struct cordon_spec *s;
	bool good = true;

	if (!c)
		return is_error(&err);
	s = cordon_spec_new();
	if (s && fill(s, &err)) {
		char *json = cordon_spec_json(s);

		free(json);
		good = run_sync(c, s, &err) && run_async(c, s, &err);
	} else if (s) {
		good = is_error(&err);
	}
	cordon_spec_free(s);
	cordon_close(c);
	return good;
}

static bool try_failing(long n, bool from_then_on)
{
	int before = count_fds();
	bool good;

	calls = 0;
	fail_at = n;
	persistent = from_then_on;
	good = whole_life();
	fail_at = 0;
	if (!good)
		printf("# an untrue end when allocation %ld fails%s\n", n,
		       from_then_on ? " and all after it" : "");
	if (count_fds() != before) {
		printf("# %d descriptors more when allocation %ld fails%s\n",
		       count_fds() - before, n,
		       from_then_on ? " and all after it" : "");
		good = false;
	}
	if (waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD) {
		printf("# a child is left when allocation %ld fails\n", n);
		good = false;
	}
	return good;
}

static void each_fails(bool from_then_on)
{
	long last;
	int bad = 0;

	enter();
	CHECK(try_failing(0, false));
	last = calls;
	/* Fewer would mean that they are not counted. */
	CHECK(last > 50);
	printf("# %ld allocations\n", last);
	for (long n = 1; n <= last && bad < 10; n++)
		bad += !try_failing(n, from_then_on);
	CHECK_INT(bad, 0);
	/* And afterwards all is as before. */
	CHECK(try_failing(0, false));
	if (__lsan_do_recoverable_leak_check)
		CHECK_INT(__lsan_do_recoverable_leak_check(), 0);
	leave();
}

TEST(l04_each_allocation_fails_once)
{
	each_fails(false);
}

TEST(l04_each_allocation_fails_and_all_after_it)
{
	each_fails(true);
}

TAP_MAIN()
