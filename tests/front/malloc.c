/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that runs out while the front reads and writes what lasts: the nth
 * allocation fails, for each n. What comes out is right, or nothing comes out;
 * a note or an answer that lacks something is never taken for a whole one.
 */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

#include "base/util.h"
#include "box/files.h"
#include "front/doc.h"
#include "front/front.h"
#include "front/tar.h"

static long calls, fail_at;

static bool is_failing(void)
{
	return ++calls == fail_at;
}

/* The linker gives us these names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);
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
/* NOLINTEND(bugprone-reserved-identifier) */

static const char note[] =
	"{\"form\":1,\"id\":\"abababababababababababababababababababababababab"
	"abababababababab\",\"name\":\"calm_reed\",\"owner\":1000,\"run\":"
	"\"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd\",\"state\":\"exited\",\"restarts\""
	":2,\"face\":\"docker\",\"settings\":\"{\\\"memory\\\":\\\"64m\\\"}\","
	"\"command\":\"[\\\"sh\\\"]\",\"spec\":\"{}\",\"warnings\":\"[]\","
	"\"clamped\":\"[]\",\"image\":\"host\",\"error\":\"why\",\"auto_"
	"remove\""
	":true,\"stop_signal\":15,\"stop_timeout_s\":10,\"exit_code\":3,"
	"\"cause\":\"exited\",\"log_max\":1000}";

/* Runs it with the nth allocation failing until none fails; how often. */
static long each(bool (*fn)(void))
{
	long n = 0;
	bool is_right;

	do {
		fail_at = ++n;
		calls = 0;
		is_right = fn();
	} while (calls >= n && n < 100000);
	fail_at = 0;
	CHECK(is_right); /* the last one, where nothing failed */
	CHECK(!__lsan_do_recoverable_leak_check ||
	      !__lsan_do_recoverable_leak_check());
	return n;
}

static char *whole; /* of a run where nothing fails */

static bool round_trip(void)
{
	static struct manager m;
	struct box *b = note_parse(&m, note, strlen(note));
	char *text = b ? note_dump(b) : NULL;
	bool is_right = text;

	if (text && !whole)
		whole = __real_strdup(text);
	if (text && strcmp(text, whole) != 0) {
		CHECK_STR(text, whole);
		is_right = false;
	}
	free(text);
	if (b)
		box_unref(b);
	return is_right;
}

TEST(m01_notes)
{
	json_set_alloc_funcs(__wrap_malloc, free);
	CHECK(round_trip());
	CHECK(each(round_trip) > 40);
	free(whole);
}

static bool parse_list(void)
{
	struct {
		struct files_answer a;
		struct files_entry e;
		char name[4];
		struct files_entry end;
	} __attribute__((packed))
	said = { .e = { .kind = 'f', .name_len = 4 }, .name = "name" };
	struct files_list l;
	struct err err = { 0 };

	if (files_parse(&said, sizeof(said), false, &l, &err) < 0) {
		CHECK_INT(err.code, ENOMEM);
		CHECK_INT(l.n, 0);
		return false;
	}
	CHECK_INT(l.n, 1);
	CHECK_STR(l.v[0].name, "name");
	files_list_done(&l);
	return true;
}

TEST(m02_answers)
{
	CHECK(each(parse_list) > 3);
}

static bool records(void)
{
	static const char run[] = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";
	struct end_facts facts = { .run = run,
				   .cause = "exited",
				   .status = "success",
				   .message = "a word" };
	char *start = record_start("{\"run\":\"x\",\"decision\":\"deny\"}",
				   run);
	char *end = record_end(&facts);
	bool is_right = start && end;

	if (start)
		CHECK_HAS(start, "\"decision\":\"deny\"");
	if (start)
		CHECK_HAS(start, run);
	if (end)
		CHECK_HAS(end, "\"message\":\"a word\"");
	free(start);
	free(end);
	return is_right;
}

TEST(m03_records)
{
	json_set_alloc_funcs(__wrap_malloc, free);
	CHECK(each(records) > 8);
}

static bool one_log(void)
{
	int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct log *l = log_new(dir, "cordon-malloc-log", 100000);
	bool is_right = l && log_add(l, 1, 1, "x", 1) == 0;

	log_free(l);
	log_remove(dir, "cordon-malloc-log");
	(void)close(dir);
	return is_right;
}

TEST(m04_logs)
{
	CHECK(each(one_log) > 1);
}

TAP_MAIN()
