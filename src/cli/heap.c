/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command's heap.
 *
 * A run makes a few dozen blocks of some KiB. musl's allocator maps and unmaps
 * pages for each of those, and each page is a fault or two: a thirtieth of the
 * time of a short run. So the first blocks come from one piece, one after the
 * other, where only the last is ever given back; when it is used up, and for
 * large blocks, musl's allocator goes on. The linker hands all calls to us
 * (--wrap). One thread: the command has no other that allocates.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

#define PIECE   (256U << 10)
#define LARGEST (128U << 10)
#define ALIGN   ((size_t)16)

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
	size_t reserved; /* keeps what follows aligned */
};

static char piece[PIECE] __attribute__((aligned(16)));
static size_t used;
static size_t high; /* `used` at its most: behind it all is zero */
static char *last;  /* the block that ends at `used`, if it is still there */

static bool is_ours(const void *p)
{
	return (uintptr_t)p - (uintptr_t)piece < sizeof(piece);
}

static size_t whole(size_t n)
{
	return (n + ALIGN - 1) & ~(ALIGN - 1);
}

static size_t size_of(const void *p)
{
	return ((const struct head *)p - 1)->size;
}

void *__wrap_malloc(size_t n)
{
	struct head *h = (struct head *)(piece + used);

	if (n > LARGEST || sizeof(*h) + whole(n) > sizeof(piece) - used)
		return __real_malloc(n);
	h->size = whole(n);
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
