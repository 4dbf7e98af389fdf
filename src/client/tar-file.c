/* SPDX-License-Identifier: Apache-2.0 */
#include "client/tar-file.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

void tar_file_init(struct tar_file *t, size_t max)
{
	memset(t, 0, sizeof(*t));
	buf_init(&t->data, max);
}

void tar_file_done(struct tar_file *t)
{
	buf_done(&t->data);
}

static int broken(struct err *err)
{
	return err_set(err, EPROTO, "the daemon's archive is none");
}

/* Octal digits up to a space or NUL. */
static int read_octal(const char *field, size_t size, uint64_t *ret)
{
	size_t i = 0;

	*ret = 0;
	while (i < size && field[i] == ' ')
		i++;
	for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
		*ret = *ret << 3 | (uint64_t)(field[i] - '0');
	return i == size || !field[i] || field[i] == ' ' ? 0 : -EPROTO;
}

static bool is_sum_right(const char *block)
{
	unsigned int sum = 0;
	uint64_t told;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
	return read_octal(block + 148, 8, &told) == 0 && told == sum;
}

static bool is_zero(const char *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

static int take_head(struct tar_file *t, struct err *err)
{
	char type = t->block[156];
	uint64_t size;

	if (is_zero(t->block))
		return 0;
	if (!is_sum_right(t->block) ||
	    read_octal(t->block + 124, 12, &size) < 0)
		return broken(err);
	/* What pax tells of a file is its long name, its times. */
	if (type == 'x' || type == 'g') {
		if (size > TAR_MAX_HEAD)
			return broken(err);
		t->skip = size + (-size & (TAR_BLOCK - 1));
		return 0;
	}
	if (type != '0' && type != '\0')
		return err_set(err, EISDIR, "it is no regular file");
	if (t->has_file || t->is_in)
		return broken(err);
	if (size > t->data.max)
		return err_set(err, E2BIG,
			       "the file has more than %zu bytes: get it as an "
			       "archive",
			       t->data.max);
	t->left = size;
	t->skip = -size & (TAR_BLOCK - 1);
	t->is_in = size > 0;
	t->has_file = true;
	return 0;
}

/* Bytes of the entry or behind it; how many. */
static size_t take_data(struct tar_file *t, const char *data, size_t len)
{
	size_t n;

	if (t->is_in) {
		n = (size_t)MIN(len, t->left);
		(void)buf_add(&t->data, data, n);
		t->left -= n;
		t->is_in = t->left > 0;
		return n;
	}
	n = (size_t)MIN(len, t->skip);
	t->skip -= n;
	return n;
}

int tar_file_take(struct tar_file *t, const char *data, size_t len,
		  struct err *err)
{
	while (len > 0) {
		size_t n;

		if (t->is_in || t->skip) {
			n = take_data(t, data, len);
		} else {
			n = MIN(len, TAR_BLOCK - t->have);
			memcpy(t->block + t->have, data, n);
			t->have += n;
			if (t->have == TAR_BLOCK) {
				t->have = 0;
				if (take_head(t, err) < 0)
					return -err->code;
			}
		}
		data += n;
		len -= n;
	}
	return t->data.error == -ENOMEM ? err_set(err, ENOMEM, "out of memory")
					: 0;
}

int tar_file_end(struct tar_file *t, struct err *err)
{
	if (!t->has_file || t->is_in || t->skip || t->have || t->data.error)
		return broken(err);
	return 0;
}
