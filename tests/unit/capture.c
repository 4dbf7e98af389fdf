/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Captured streams against a model that is too simple to be wrong: all bytes
 * in one array, of which the first and the last half of the limit are kept.
 */

#include "tests/tap.h"

#include <stdint.h>

#include "box/capture.h"

enum { MOST = 200000 };

static uint32_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)seed * n >> 32);
}

/* What is kept of `total` bytes under `limit`; where it is cut. */
static size_t model(const char *all, size_t total, size_t limit, char *kept,
		    size_t *ret_cut)
{
	size_t head = limit / 2;
	size_t tail = limit - head;

	if (total <= limit) {
		memcpy(kept, all, total);
		*ret_cut = total < head ? total : head;
		return total;
	}
	memcpy(kept, all, head);
	memcpy(kept + head, all + total - tail, tail);
	*ret_cut = head;
	return limit;
}

static void feed(struct capture *c, const char *all, size_t total,
		 uint32_t most)
{
	for (size_t at = 0; at < total;) {
		size_t n = 1 + random_below(most);

		if (n > total - at)
			n = total - at;
		capture_add(c, all + at, n);
		at += n;
	}
}

static bool try_once(const char *all, size_t total, size_t limit,
		     uint32_t chunk)
{
	static char want[MOST + 1];
	struct capture c;
	size_t len = 0;
	size_t cut = 0;
	size_t want_cut;
	size_t want_len = model(all, total, limit, want, &want_cut);
	uint64_t missing;
	char *text;
	bool good;

	capture_init(&c, limit);
	feed(&c, all, total, chunk);
	missing = capture_missing(&c);
	good = c.total == total && c.error == 0;
	text = capture_take(&c, &len, &cut);
	good = good && text && len == want_len &&
	       memcmp(text, want, len) == 0 && text[len] == '\0' &&
	       missing == total - want_len && (missing == 0 || cut == want_cut);
	if (!good)
		printf("# total %zu, limit %zu, chunks up to %u: kept %zu, cut "
		       "at %zu, missing %llu\n",
		       total, limit, chunk, len, cut,
		       (unsigned long long)missing);
	free(text);
	return good;
}

static char *noise(void)
{
	char *all = malloc(MOST);

	for (size_t i = 0; i < MOST; i++)
		all[i] = (char)random_below(256);
	return all;
}

/* Short and long streams, and short ones where pieces are single bytes. */
static size_t random_total(int i, uint32_t chunk)
{
	if (chunk == 1)
		return random_below(2000);
	return random_below(i % 2 ? 300 : MOST);
}

TEST(capture_agrees_with_the_model)
{
	static const uint32_t chunks[] = { 1, 7, 100, 5000, 70000 };
	char *all = noise();
	bool good = true;

	for (int i = 0; i < 3000 && good; i++) {
		uint32_t chunk = chunks[random_below(5)];
		size_t limit = random_below(i % 3 ? 64 : 40000);
		size_t total = random_total(i, chunk);

		good = try_once(all, total, limit, chunk);
	}
	CHECK(good);
	free(all);
}

/* Every small total, limit and chunk. */
TEST(capture_small_ones_all)
{
	char *all = noise();
	bool good = true;

	for (size_t limit = 0; limit < 12 && good; limit++)
		for (size_t total = 0; total < 40 && good; total++)
			for (uint32_t chunk = 1; chunk < 20 && good; chunk++)
				good = try_once(all, total, limit, chunk);
	CHECK(good);
	free(all);
}

TEST(capture_of_nothing_is_an_empty_string)
{
	struct capture c;
	size_t len = 1;
	size_t cut = 1;
	char *text;

	capture_init(&c, 100);
	CHECK_INT((long long)capture_missing(&c), 0);
	text = capture_take(&c, &len, &cut);
	CHECK_STR(text, "");
	CHECK_INT((long long)len, 0);
	free(text);
	capture_init(&c, 0);
	capture_add(&c, "abc", 3);
	CHECK_INT((long long)capture_missing(&c), 3);
	text = capture_take(&c, &len, &cut);
	CHECK_STR(text, "");
	free(text);
}

/* A gigabyte that comes takes no more memory than the limit. */
TEST(capture_does_not_grow_with_what_comes)
{
	static char chunk[65536];
	struct capture c;

	capture_init(&c, 1 << 20);
	for (int i = 0; i < 16384; i++)
		capture_add(&c, chunk, sizeof(chunk));
	CHECK_INT((long long)c.total, 1 << 30);
	CHECK(c.head_cap + c.tail_cap <= 1 << 20);
	CHECK_INT((long long)capture_missing(&c), (1 << 30) - (1 << 20));
	capture_done(&c);
	CHECK(!c.head && !c.tail);
}

TAP_MAIN()
