/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command's heap.
 *
 * A run makes a few dozen blocks of some KiB, and so does each request to the
 * daemon. musl's allocator maps and unmaps pages for each of those, and each
 * page is a fault or two: a thirtieth of the time of a short run. So blocks
 * come from one piece, one after the other; those that are given back are kept
 * by their size and used again. When the piece is used up, and for large
 * blocks, musl's allocator goes on. The linker hands all calls to us (--wrap).
 * One thread: the command has no other that allocates.
 *
 * The list of what was given back goes through the heads of the blocks, under a
 * random word: who writes past the end of a block does not choose where the
 * next one is, and a list that is broken ends the process.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/util.h"

#define PIECE   (512U << 10)
#define LARGEST (128U << 10)
#define ALIGN   ((size_t)16)

/* Up to SMALL one bin for each size, then four for each power of two. */
#define SMALL ((size_t)1024)
#define BINS  (SMALL / 16 + 1 + 4 * 7)

#define IN_USE ((size_t)0)
#define END    ((size_t)1) /* of a list; no block is there */

void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

/* In front of a block of the piece. */
struct head {
	size_t size;
	size_t next; /* IN_USE, or where the next free one is, under the word */
};

static char piece[PIECE] __attribute__((aligned(16)));
static size_t used;
static size_t high; /* `used` at its most: behind it all is zero */
static char *last;  /* the block that ends at `used`, if it is still there */
static struct head *bins[BINS];
static size_t word;

static bool is_ours(const void *p)
{
	return (uintptr_t)p - (uintptr_t)piece < sizeof(piece);
}

static size_t size_of(const void *p)
{
	return ((const struct head *)p - 1)->size;
}

/* What a block of n bytes takes: all of a bin have one size. */
static size_t whole(size_t n)
{
	size_t step = ALIGN;

	if (n > SMALL)
		step = (size_t)1 << (61 - __builtin_clzll(n - 1));
	return (n + step - 1) & ~(step - 1);
}

static size_t bin_of(size_t size)
{
	size_t power;

	if (size <= SMALL)
		return size / ALIGN;
	power = 63 - (size_t)__builtin_clzll(size - 1);
	return SMALL / ALIGN + 1 + (power - 10) * 4 +
	       ((size - 1) >> (power - 2)) % 4;
}

static size_t secret(void)
{
	const void *random = word ? NULL : (const void *)getauxval(AT_RANDOM);

	if (random)
		memcpy(&word, random, sizeof(word));
	word |= 2; /* so that no link looks like IN_USE */
	return word;
}

static void keep(struct head *h)
{
	size_t bin = bin_of(h->size);
	size_t next = bins[bin] ? (size_t)((char *)bins[bin] - piece) : END;

	if (h->next != IN_USE)
		abort(); /* given back twice */
	h->next = next ^ secret();
	bins[bin] = h;
}

static struct head *take_from(size_t bin)
{
	struct head *h = bins[bin];
	size_t next = h->next ^ secret();
	struct head *after = NULL;

	if (next != END) {
		if (next % ALIGN != 0 || next >= used)
			abort();
		after = (void *)(piece + next);
		if (after->size != h->size)
			abort();
	}
	bins[bin] = after;
	h->next = IN_USE;
	return h;
}

void *__wrap_malloc(size_t n)
{
	struct head *h = (struct head *)(piece + used);
	size_t size;

	if (n > LARGEST)
		return __real_malloc(n);
	size = whole(n);
	if (bins[bin_of(size)])
		return take_from(bin_of(size)) + 1;
	if (sizeof(*h) + size > sizeof(piece) - used)
		return __real_malloc(n);
	h->size = size;
	h->next = IN_USE;
	used += sizeof(*h) + h->size;
	high = MAX(high, used);
	last = (char *)(h + 1);
	return last;
}

void *__wrap_calloc(size_t n, size_t size)
{
	size_t before = high;
	size_t all;
	char *p;

	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	p = __wrap_malloc(all);
	/* What was never used is not touched: that would be a fault a page. */
	if (p && is_ours(p))
		all = before > (size_t)(p - piece)
			      ? MIN(all, before - (size_t)(p - piece))
			      : 0;
	if (p)
		memset(p, 0, all);
	return p;
}

void __wrap_free(void *p)
{
	if (!p || !is_ours(p)) {
		__real_free(p);
	} else if (p == last) {
		used = (size_t)(last - piece) - sizeof(struct head);
		last = NULL;
	} else {
		keep((struct head *)p - 1);
	}
}

/* The last block grows where it is. */
static bool stretch(char *p, size_t n)
{
	size_t at = (size_t)(p - piece);

	if (p != last || n > LARGEST || whole(n) > sizeof(piece) - at)
		return false;
	((struct head *)(void *)p - 1)->size = whole(n);
	used = at + whole(n);
	high = MAX(high, used);
	return true;
}

void *__wrap_realloc(void *p, size_t n)
{
	void *moved;

	if (p && !is_ours(p))
		return __real_realloc(p, n);
	if (p && (n <= size_of(p) || stretch(p, n)))
		return p;
	moved = __wrap_malloc(n);
	if (moved && p) {
		memcpy(moved, p, size_of(p));
		__wrap_free(p);
	}
	return moved;
}
