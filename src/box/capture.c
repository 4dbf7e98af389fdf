/* SPDX-License-Identifier: Apache-2.0 */
#include "box/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void capture_init(struct capture *c, uint64_t limit)
{
	*c = (struct capture){ .limit = limit };
}

void capture_done(struct capture *c)
{
	free(c->head);
	free(c->tail);
	*c = (struct capture){ .limit = c->limit };
}

/* Makes room for `need` bytes, at most `max`; 0 or -ENOMEM. */
static int grow(char **data, size_t *cap, size_t need, size_t max)
{
	size_t want = *cap ? *cap : 4096;
	char *p;

	if (need <= *cap)
		return 0;
	while (want < need)
		want *= 2;
	want = MIN(want, max);
	p = realloc(*data, want);
	if (!p)
		return -ENOMEM;
	*data = p;
	*cap = want;
	return 0;
}

static size_t add_head(struct capture *c, const char *data, size_t len)
{
	size_t max = (size_t)(c->limit / 2);
	size_t n = MIN(len, max - c->head_len);

	if (n == 0)
		return 0;
	if (grow(&c->head, &c->head_cap, c->head_len + n, max) < 0) {
		c->error = -ENOMEM;
		return len;
	}
	memcpy(c->head + c->head_len, data, n);
	c->head_len += n;
	return n;
}

static void add_tail(struct capture *c, const char *data, size_t len)
{
	size_t max = (size_t)(c->limit - c->limit / 2);
	size_t at;

	if (max == 0 || len == 0)
		return;
	if (len > max) {
		c->tail_total += len - max;
		data += len - max;
		len = max;
	}
	if (c->tail_total + len > c->tail_cap && c->tail_cap < max) {
		size_t need = (size_t)MIN(c->tail_total + len, max);
		/* Not a ring yet: it has never been full. */
		if (grow(&c->tail, &c->tail_cap, need, max) < 0) {
			c->error = -ENOMEM;
			return;
		}
	}
	at = (size_t)(c->tail_total % c->tail_cap);
	c->tail_total += len;
	while (len > 0) {
		size_t n = MIN(len, c->tail_cap - at);

		memcpy(c->tail + at, data, n);
		data += n;
		len -= n;
		at = 0;
	}
}

void capture_add(struct capture *c, const char *data, size_t len)
{
	size_t n;

	c->total += len;
	n = c->tail_total ? 0 : add_head(c, data, len);
	add_tail(c, data + n, len - n);
}

uint64_t capture_missing(const struct capture *c)
{
	uint64_t kept = c->head_len + MIN(c->tail_total, c->tail_cap);

	return c->total - kept;
}

char *capture_take(struct capture *c, size_t *ret_len, size_t *ret_cut)
{
	size_t tail = (size_t)MIN(c->tail_total, c->tail_cap);
	size_t start = c->tail_total > c->tail_cap
			       ? (size_t)(c->tail_total % c->tail_cap)
			       : 0;
	char *all = malloc(c->head_len + tail + 1);

	if (!all) {
		capture_done(c);
		return NULL;
	}
	if (c->head_len)
		memcpy(all, c->head, c->head_len);
	if (tail) {
		memcpy(all + c->head_len, c->tail + start, tail - start);
		memcpy(all + c->head_len + tail - start, c->tail, start);
	}
	*ret_len = c->head_len + tail;
	*ret_cut = c->head_len;
	all[*ret_len] = '\0';
	capture_done(c);
	return all;
}
