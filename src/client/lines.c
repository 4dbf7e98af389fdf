/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lines.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/util.h"
#include "client/result.h"
#include "ledger/read.h"

/* The document is the longest. */
#define MAX_LINE ((size_t)256 << 20)

void lines_init(struct lines *l)
{
	buf_init(&l->line, MAX_LINE);
	l->result = NULL;
	l->has_started = false;
}

void lines_done(struct lines *l)
{
	buf_done(&l->line);
	cordon_result_free(take_ptr(l->result));
}

typedef int put_fn(void *arg, int stream, const char *data, size_t len);

/* {"stream": "stdout", "text": ...}, or "b64" where it is no UTF-8 */
static int take_output(const struct value *event, put_fn *put, void *arg)
{
	struct value stream, v;
	struct buf text, bytes;
	int r = -EPROTO;

	if (!value_get(event, "stream", &stream))
		return -EPROTO;
	buf_init(&text, MAX_LINE);
	buf_init(&bytes, MAX_LINE);
	if (value_get(event, "text", &v))
		r = value_text(&v, &bytes);
	else if (value_get(event, "b64", &v) && value_text(&v, &text) == 0)
		r = base64_add(&bytes, text.data ? text.data : "", text.len);
	if (r == 0 && bytes.len)
		r = put(arg, value_is(&stream, "stderr") ? 2 : 1, bytes.data,
			bytes.len);
	buf_done(&text);
	buf_done(&bytes);
	return r;
}

static int take_event(struct lines *l, put_fn *put, void *arg)
{
	struct value v = { l->line.data, l->line.len };
	struct value kind, doc;

	if (!value_check(v.p, v.len) || !value_get(&v, "event", &kind))
		return -EPROTO;
	if (value_is(&kind, "output"))
		return take_output(&v, put, arg);
	if (value_is(&kind, "started"))
		l->has_started = true;
	if (!value_is(&kind, "result"))
		return 0;
	if (value_get(&v, "result", &doc))
		l->result = result_read(&doc);
	return l->result ? 0 : -EPROTO;
}

int lines_take(struct lines *l, const char *data, size_t len, put_fn *put,
	       void *arg)
{
	while (len > 0 && !l->result) {
		const char *at = memchr(data, '\n', len);
		size_t n = at ? (size_t)(at - data) : len;
		int r = buf_add(&l->line, data, n);

		if (r == 0 && at && l->line.len)
			r = take_event(l, put, arg);
		if (r < 0)
			return r;
		if (!at)
			return 0;
		l->line.len = 0;
		data += n + 1;
		len -= n + 1;
	}
	return 0;
}
