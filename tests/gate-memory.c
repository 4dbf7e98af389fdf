/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections that a gate looks into while memory runs out: the nth allocation
 * of the gate fails, for n = 1 to the last one. Whatever fails, the box never
 * gets a value, a server never gets what is not for it, and what is let
 * through is whole.
 */

#define TAP_SECONDS 120

#include "gate-inspect.h"

#define PLACE "CORDON-PLACEHOLDER-0001"
#define OTHER "CORDON-PLACEHOLDER-0002"
#define VALUE "s3cr3t-value-of-this-test"
#define BASIC "dTpDT1JET04tUExBQ0VIT0xERVItMDAwMQ==" /* u:PLACE */
#define HOSTS "Host: api.test\r\n"

static const struct rule rules[] = {
	{ .host = HOST,
	  .paths = { "/a/**" },
	  .placeholder = PLACE,
	  .value = VALUE,
	  .name = "TOKEN",
	  .header = "Authorization",
	  .query = "key",
	  .body = "token" },
	{ .host = "other.test",
	  .placeholder = OTHER,
	  .value = "value-for-the-other-host",
	  .name = "OTHER_TOKEN" },
};

/* The nth allocation of this thread from now on; 0: none fails. */
static _Thread_local long fail_at;

static bool is_failing(void)
{
	return fail_at && --fail_at == 0;
}

/* The linker gives us these names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strndup(const char *text, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strndup(const char *text, size_t n);

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

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return is_failing() ? NULL : __real_reallocarray(p, n, size);
}

char *__wrap_strndup(const char *text, size_t n)
{
	return is_failing() ? NULL : __real_strndup(text, n);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* OpenSSL's own, where the test wants that. */
static _Thread_local long ssl_fail_at;
static bool has_ssl;

static void *ssl_malloc(size_t size, const char *file, int line)
{
	(void)file, (void)line;
	if (ssl_fail_at && --ssl_fail_at == 0)
		return NULL;
	return __real_malloc(size);
}

static void *ssl_realloc(void *p, size_t size, const char *file, int line)
{
	(void)file, (void)line;
	if (ssl_fail_at && --ssl_fail_at == 0)
		return NULL;
	return __real_realloc(p, size);
}

static void ssl_free(void *p, const char *file, int line)
{
	(void)file, (void)line;
	free(p);
}

static long next;   /* which one fails in the gate of this round */
static bool is_hit; /* there were so many */

static void begin_failing(struct lab *l)
{
	(void)l;
	*(has_ssl ? &ssl_fail_at : &fail_at) = next;
}

static void end_failing(struct lab *l)
{
	(void)l;
	is_hit = (has_ssl ? ssl_fail_at : fail_at) == 0;
	fail_at = ssl_fail_at = 0;
}

/* Says it, and all that comes back is none of its business. */
static void one_round(const char *request, bool is_plain, const char *want)
{
	struct lab *l = LAB(.is_echo = true, .is_plain = is_plain,
			    .is_local = true, .before = begin_failing,
			    .after = end_failing);

	(void)lab_start(l, rules, 2);
	box_say(l, request);
	(void)box_hear(l, NULL);
	CHECK(!strstr(l->text, VALUE));
	CHECK(!strstr(l->text, "dTpzM2NyM3QtdmFsdWUt"));
	lab_end(l);
	CHECK(!strstr(l->got, PLACE));
	CHECK(!strstr(l->got, OTHER));
	CHECK(!strstr(l->got, BASIC));
	CHECK(!strstr(l->got, "/denied"));
	/* All of it, or nothing. */
	if (l->n_got > 0)
		CHECK_HAS(l->got, want ? want : "nothing at all");
	/* What was answered with 200 is the answer. */
	if (strstr(l->text, " 200 OK"))
		CHECK(l->n_got > 0);
	free(l->got);
	free(l->table);
	free(l);
}

#define CLOSE "Connection: close\r\n"

static const struct {
	const char *request, *want;
} tries[] = {
	{ "GET /a/1?key=" PLACE " HTTP/1.1\r\n" HOSTS CLOSE
	  "Authorization: Bearer " PLACE "\r\n\r\n",
	  "Authorization: Bearer " VALUE "\r\n" },
	{ "GET /a/1 HTTP/1.1\r\n" HOSTS CLOSE "Authorization: Basic " BASIC
	  "\r\n\r\n",
	  "Basic dTpzM2NyM3QtdmFsdWUtb2YtdGhpcy10ZXN0\r\n" },
	{ "POST /a/1 HTTP/1.1\r\n" HOSTS CLOSE
	  "Content-Type: application/json\r\nContent-Length: 35\r\n\r\n"
	  "{\"token\":\"" PLACE "\"}",
	  "\r\n\r\n{\"token\":\"" VALUE "\"}" },
	{ "POST /a/1 HTTP/1.1\r\n" HOSTS CLOSE
	  "Content-Type: application/x-www-form-urlencoded\r\n"
	  "Content-Length: 29\r\n\r\ntoken=" PLACE,
	  "\r\n\r\ntoken=" VALUE },
	{ "GET /a/1?key=" OTHER " HTTP/1.1\r\n" HOSTS CLOSE "\r\n", NULL },
	{ "GET /denied HTTP/1.1\r\n" HOSTS CLOSE "\r\n", NULL },
};

static void all_rounds(bool is_plain, long step, long most)
{
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		next = 1;
		do {
			one_round(tries[i].request, is_plain, tries[i].want);
			next += step;
		} while (is_hit && next < most && !tap_bad);
		if (tap_bad)
			printf("# request %zu, allocation %ld\n", i,
			       next - step);
		CHECK(!is_hit || tap_bad || step > 1);
		printf("# request %zu: %ld allocations\n", i, next - step - 1);
	}
}

TEST(nothing_opens_without_memory)
{
	all_rounds(false, 1, 1000);
}

TEST(nothing_opens_without_memory_in_plain)
{
	all_rounds(true, 1, 1000);
}

/* Some of OpenSSL's thousands: its answers to that are its own. */
TEST(nothing_opens_where_openssl_has_no_memory)
{
	CHECK(CRYPTO_set_mem_functions(ssl_malloc, ssl_realloc, ssl_free));
	has_ssl = true;
	all_rounds(false, 41, 4000);
}

TAP_MAIN()
