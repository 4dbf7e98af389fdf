/* SPDX-License-Identifier: Apache-2.0 */
#include "model/join.h"

#include <string.h>

#include "base/json.h"
#include "base/util.h"

static const char unknown[] = "\xef\xbf\xbd"; /* U+FFFD */

void join_init(struct join *j, size_t max)
{
	memset(j, 0, sizeof(*j));
	buf_init(&j->text, max);
}

void join_done(struct join *j)
{
	buf_done(&j->text);
}

/* Whether these bytes are the beginning of a character, and not all of it. */
static bool is_begun(const unsigned char *p, size_t len)
{
	size_t want = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;

	if (p[0] < 0xc2 || p[0] > 0xf4 || len >= want)
		return false;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return false;
	return true;
}

static void add_bytes(struct join *j, const unsigned char *p, size_t len)
{
	size_t i = 0;

	while (i < len) {
		size_t n = p[i] ? utf8_len(p + i, len - i) : 0;

		if (n) {
			(void)buf_add(&j->text, p + i, n);
		} else if (is_begun(p + i, len - i)) {
			j->n_tail = len - i;
			memcpy(j->tail, p + i, j->n_tail);
			return;
		} else {
			(void)buf_add(&j->text, unknown, 3);
			n = 1;
		}
		i += n;
	}
}

/* Plain text, the usual case, at once. */
static bool is_plain(const struct join *j, const char *data, size_t len)
{
	return j->n_tail == 0 && !memchr(data, '\0', len) &&
	       utf8_check(data, len);
}

/* U+10FE00 + byte, as UTF-8: f4 8f b8 xx .. f4 8f bb xx. */
static bool is_held_byte(const unsigned char *p, size_t len)
{
	return len >= 4 && p[0] == 0xf4 && p[1] == 0x8f && p[2] >= 0xb8 &&
	       p[2] <= 0xbb && (p[3] & 0xc0) == 0x80;
}

static size_t release(unsigned char *p, size_t len)
{
	size_t to = 0;

	for (size_t i = 0; i < len; to++) {
		if (is_held_byte(p + i, len - i)) {
			p[to] = (unsigned char)((p[i + 2] - 0xb8) << 6 |
						(p[i + 3] & 0x3f));
			i += 4;
		} else {
			p[to] = p[i++];
		}
	}
	return to;
}

int join_add(struct join *j, const char *data, size_t len, bool is_held)
{
	struct buf b;

	if (!is_held && is_plain(j, data, len))
		return buf_add(&j->text, data, len);
	buf_init(&b, len + sizeof(j->tail));
	(void)buf_add(&b, j->tail, j->n_tail);
	(void)buf_add(&b, data, len);
	if (b.error) {
		buf_done(&b);
		return -ENOMEM;
	}
	j->n_tail = 0;
	if (is_held)
		b.len = release((unsigned char *)b.data, b.len);
	add_bytes(j, (unsigned char *)b.data, b.len);
	buf_done(&b);
	return j->text.error;
}

int join_end(struct join *j)
{
	if (j->n_tail == 0)
		return j->text.error;
	j->n_tail = 0;
	return buf_add(&j->text, unknown, 3);
}

const char *join_more(struct join *j, size_t *ret_len)
{
	const char *from = j->text.len ? j->text.data + j->told : "";

	*ret_len = j->text.len - j->told;
	j->told = j->text.len;
	return from;
}

bool join_hold(struct buf *out, const char *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;
	size_t i = 0;

	if (utf8_check(data, len))
		return false;
	while (i < len) {
		size_t n = utf8_len(p + i, len - i);
		unsigned char held[4] = {
			0xf4, 0x8f, (unsigned char)(0xb8 | p[i] >> 6),
			(unsigned char)(0x80 | (p[i] & 0x3f))
		};

		(void)(n ? buf_add(out, p + i, n) : buf_add(out, held, 4));
		i += n ? n : 1;
	}
	return true;
}
