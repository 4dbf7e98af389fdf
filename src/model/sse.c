/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sse.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

void sse_init(struct sse *s, size_t max,
	      void (*event)(void *arg, const char *name, const char *data,
			    size_t len),
	      void *arg)
{
	memset(s, 0, sizeof(*s));
	buf_init(&s->line, max);
	buf_init(&s->data, max);
	s->event = event;
	s->arg = arg;
}

void sse_done(struct sse *s)
{
	buf_done(&s->line);
	buf_done(&s->data);
}

void sse_stop(struct sse *s)
{
	s->is_stopped = true;
}

static void dispatch(struct sse *s)
{
	bool has_data = s->has_data;
	char name[sizeof(s->name)];

	memcpy(name, s->name, sizeof(name));
	s->has_data = false;
	s->name[0] = '\0';
	if (has_data)
		s->event(s->arg, name, s->data.data ? s->data.data : "",
			 s->data.len);
	s->data.len = 0;
}

static int add_data(struct sse *s, const char *value, size_t len)
{
	if (s->has_data)
		(void)buf_add(&s->data, "\n", 1);
	s->has_data = true;
	/* Adding nothing leaves the NUL at the end where it is. */
	(void)buf_add(&s->data, value, len);
	return s->data.error;
}

static bool is_field(const char *line, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(line, name, len) == 0;
}

static int take_line(struct sse *s, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name_len = colon ? (size_t)(colon - line) : len;
	const char *value = colon ? colon + 1 : line + len;
	size_t value_len = len - (size_t)(value - line);

	if (len == 0) {
		dispatch(s);
		return 0;
	}
	if (value_len && *value == ' ') {
		value++;
		value_len--;
	}
	if (is_field(line, name_len, "data"))
		return add_data(s, value, value_len);
	if (is_field(line, name_len, "event"))
		(void)snprintf(s->name, sizeof(s->name), "%.*s",
			       (int)MIN(value_len, sizeof(s->name)), value);
	return 0;
}

/* What was kept of it before, and this. */
static int end_line(struct sse *s, const char *data, size_t len)
{
	int r;

	if (s->line.len == 0)
		return take_line(s, data, len);
	r = buf_add(&s->line, data, len);
	if (r < 0)
		return r;
	r = take_line(s, s->line.data, s->line.len);
	s->line.len = 0;
	return r;
}

static size_t find_end(const char *data, size_t len)
{
	const char *lf = memchr(data, '\n', len);
	size_t n = lf ? (size_t)(lf - data) : len;
	const char *cr = memchr(data, '\r', n);

	return cr ? (size_t)(cr - data) : n;
}

/* The mark may come in pieces, so it is looked for in the first whole line. */
static void skip_mark(struct sse *s, const char **data, size_t *len)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (s->has_begun)
		return;
	s->has_begun = true;
	if (*len >= 3 && memcmp(*data, mark, 3) == 0) {
		*data += 3;
		*len -= 3;
	}
}

static int feed_line(struct sse *s, const char *data, size_t len)
{
	int r;

	if (s->has_begun)
		return end_line(s, data, len);
	r = buf_add(&s->line, data, len);
	if (r < 0)
		return r;
	data = s->line.data ? s->line.data : "";
	len = s->line.len;
	skip_mark(s, &data, &len);
	r = take_line(s, data, len);
	s->line.len = 0;
	return r;
}

int sse_feed(struct sse *s, const char *data, size_t len)
{
	while (len && !s->is_stopped) {
		size_t n;
		int r;

		if (s->skip_lf && *data == '\n') {
			data++;
			len--;
			s->skip_lf = false;
			continue;
		}
		s->skip_lf = false;
		n = find_end(data, len);
		if (n == len)
			return buf_add(&s->line, data, len);
		s->skip_lf = data[n] == '\r';
		r = feed_line(s, data, n);
		if (r < 0)
			return r;
		data += n + 1;
		len -= n + 1;
	}
	return 0;
}

int sse_end(struct sse *s)
{
	int r = 0;

	if (s->is_stopped)
		return 0;
	if (s->line.len)
		r = feed_line(s, "", 0);
	if (r == 0 && s->has_data)
		dispatch(s);
	return r;
}
