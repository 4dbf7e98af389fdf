/* SPDX-License-Identifier: Apache-2.0 */
#include "client/tar-head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"

static void put_octal(char *field, size_t size, uint64_t value)
{
	field[--size] = '\0';
	while (size > 0) {
		field[--size] = (char)('0' + (value & 7));
		value >>= 3;
	}
}

static int put_header(const struct tar_out *o, const struct tar_entry *e)
{
	static const char magic[8] = { 'u', 's', 't', 'a', 'r', 0, '0', '0' };
	char h[TAR_BLOCK] = { 0 };
	unsigned int sum = 0;

	(void)memcpy(h, e->name, MIN(strlen(e->name), 100));
	put_octal(h + 100, 8, e->mode);
	/* What does not fit is an id that no box has. */
	put_octal(h + 108, 8, MIN(e->uid, 07777777));
	put_octal(h + 116, 8, MIN(e->gid, 07777777));
	put_octal(h + 124, 12, e->size > 077777777777ULL ? 0 : e->size);
	put_octal(h + 136, 12, e->mtime > 0 ? (uint64_t)e->mtime : 0);
	memset(h + 148, ' ', 8);
	h[156] = e->type;
	if (e->link)
		(void)memcpy(h + 157, e->link, MIN(strlen(e->link), 100));
	/* "ustar", NUL, and the version: no string. */
	memcpy(h + 257, magic, sizeof(magic));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	put_octal(h + 148, 7, sum);
	return o->put(o->arg, h, sizeof(h), o->err);
}

int tar_put_padding(const struct tar_out *o, uint64_t size)
{
	static const char zeros[TAR_BLOCK];
	size_t n = (size_t)(-size & (TAR_BLOCK - 1));

	return n ? o->put(o->arg, zeros, n, o->err) : 0;
}

/* "LEN key=value\n", where LEN counts itself. */
static void put_record(struct buf *b, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3;
	size_t len = rest + 1;

	for (int i = 0; i < 4; i++) {
		char digits[24];

		len = rest +
		      (size_t)snprintf(digits, sizeof(digits), "%zu", len);
	}
	(void)buf_printf(b, "%zu %s=%s\n", len, key, value);
}

/* What does not fit into the header comes in one before it. */
int tar_put_entry(const struct tar_out *o, const struct tar_entry *e)
{
	struct tar_entry pax = { .name = "pax", .type = 'x', .mode = 0644 };
	char size[24];
	struct buf b;
	int r = 0;

	buf_init(&b, TAR_MAX_HEAD);
	if (strlen(e->name) > 100)
		put_record(&b, "path", e->name);
	if (e->link && strlen(e->link) > 100)
		put_record(&b, "linkpath", e->link);
	if (e->size > 077777777777ULL) {
		(void)snprintf(size, sizeof(size), "%llu",
			       (unsigned long long)e->size);
		put_record(&b, "size", size);
	}
	if (b.error)
		r = err_set(o->err, ENAMETOOLONG, "'%.100s...' is too long",
			    e->name);
	if (r == 0 && b.len) {
		pax.size = b.len;
		r = put_header(o, &pax);
		if (r == 0)
			r = o->put(o->arg, b.data, b.len, o->err);
		if (r == 0)
			r = tar_put_padding(o, b.len);
	}
	buf_done(&b);
	return r < 0 ? r : put_header(o, e);
}

int tar_put_end(const struct tar_out *o)
{
	static const char zeros[2 * TAR_BLOCK];

	return o->put(o->arg, zeros, sizeof(zeros), o->err);
}
