/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests and answers as a gate reads them. The first byte says which: 'q' a
 * request, 'a' an answer, 'c' chunks, 'C' those of an answer, 'w' frames of a
 * WebSocket, 'p' a path, 'j' and 'f' a body with a secret's field, 'm' bytes
 * that come back. What is accepted must hold what the gate relies on.
 */

#include <stdlib.h>
#include <string.h>

#include "../gate-rules.h"
#include "fuzz.h"
#include "gate/http.h"
#include "gate/secret.h"
#include "gate/websocket.h"

#define PLACE "CORDON-PLACEHOLDER-0001"
#define VALUE "aab-aab-aac"

static const struct rule rules[] = {
	{ .host = "api.test",
	  .paths = { "/a/**", "/b/*/c" },
	  .placeholder = PLACE,
	  .value = VALUE,
	  .name = "TOKEN",
	  .header = "*",
	  .query = "key",
	  .body = "key" },
	{ .host = "other.test",
	  .placeholder = "CORDON-PLACEHOLDER-0002",
	  .value = "another-value" },
};

static struct gate_table *table(void)
{
	static struct gate_table *t;

	if (!t)
		t = rules_new(rules, 2);
	return t;
}

static bool has(const struct buf *b, const char *text)
{
	return b->len > 0 && memmem(b->data, b->len, text, strlen(text));
}

/* Written as the gate writes it, it must be read again, with the same body. */
static void write_again(const struct http_head *h, const bool *applies)
{
	struct http_head again;
	struct buf out;

	buf_init(&out, 4 * HTTP_HEAD_MAX);
	(void)buf_add(&out, h->method.at, h->method.len);
	(void)buf_puts(&out, " ");
	(void)secret_put_target(table(), applies, h, &out);
	(void)buf_puts(&out, " HTTP/1.1\r\n");
	for (size_t i = 0; i < h->n_fields; i++) {
		if (http_is_ours(&h->fields[i].name))
			continue;
		(void)buf_add(&out, h->fields[i].name.at,
			      h->fields[i].name.len);
		(void)buf_puts(&out, ": ");
		(void)secret_put_value(table(), applies, &h->fields[i], &out);
		(void)buf_puts(&out, "\r\n");
	}
	(void)buf_puts(&out, "\r\n");
	MUST(!out.error);
	MUST(!has(&out, "CORDON-PLACEHOLDER-0002"));
	if (out.len < HTTP_HEAD_MAX) {
		MUST(http_read_request(out.data, out.len, &again) == 1);
		MUST(again.size == out.len && again.framing == HTTP_NO_BODY);
	}
	buf_done(&out);
}

static void request(const char *data, size_t size)
{
	static const struct http_to to = { .host = "api.test", .port = 443 };
	static struct http_verdict v;
	struct secret_fault fault;
	struct http_head h;

	if (http_read_request(data, size, &h) != 1)
		return;
	MUST(h.size <= size && h.path.len > 0);
	(void)http_check_host(&h, "api.test", 443, true);
	http_judge(table(), &to, &h, &v);
	if (v.reason != GATE_OK)
		return;
	MUST(!memmem(h.path.at, h.path.len, "/../", 4));
	secret_check_head(table(), v.applies, &h, &fault);
	if (fault.reason == GATE_OK)
		write_again(&h, v.applies);
}

/* Two ways to cut the same bytes must give the same body. */
static void chunks(bool is_answer, const char *data, size_t size)
{
	struct http_head h = { .framing = HTTP_CHUNKED };
	size_t n[2] = { 0, 0 }, used[2] = { 0, 0 };
	int ends[2];

	for (int k = 0; k < 2; k++) {
		struct http_slice piece;
		struct http_body b;
		ssize_t r = 0;

		http_body_init(&b, &h);
		b.is_answer = is_answer;
		while (r >= 0 && used[k] < size && !b.is_done) {
			size_t step = k ? 1 : size - used[k];

			r = http_body_take(&b, data + used[k], step, &piece);
			used[k] += r > 0 ? (size_t)r : 0;
			n[k] += r > 0 ? piece.len : 0;
		}
		ends[k] = r < 0 ? -1 : b.is_done;
	}
	MUST(ends[0] == ends[1]);
	MUST(ends[0] < 0 || (n[0] == n[1] && used[0] == used[1]));
}

/* The same for frames, which have no end. */
static void frames(const char *data, size_t size)
{
	size_t n[2] = { 0, 0 }, used[2] = { 0, 0 };
	bool is_bad[2];

	for (int k = 0; k < 2; k++) {
		struct ws_frames f = { .is_masked = size % 2,
				       .may_extend = size % 3 };
		struct http_slice piece;
		ssize_t r = 0;

		while (r >= 0 && used[k] < size) {
			size_t step = k ? 1 : size - used[k];

			r = ws_frames_take(&f, data + used[k], step, &piece);
			MUST(r != 0);
			used[k] += r > 0 ? (size_t)r : 0;
			n[k] += r > 0 ? piece.len : 0;
		}
		is_bad[k] = r < 0;
	}
	MUST(is_bad[0] == is_bad[1] && n[0] == n[1]);
}

/* A backslash gains nothing that a slash would not have. */
static void path(const char *data, size_t size)
{
	const struct gate_vec *globs = &table()->rules[0].paths;
	char *copy = malloc(size + 1);

	if (!copy)
		abort();
	for (size_t i = 0; i < size; i++)
		copy[i] = data[i] == '\\' ? '/' : data[i];
	if (http_path_allowed((struct http_slice){ data, size }, table(),
			      globs))
		MUST(http_path_allowed((struct http_slice){ copy, size },
				       table(), globs));
	free(copy);
}

static void body(bool is_json, const char *data, size_t size)
{
	static const bool applies[GATE_MAX_RULES] = { true };
	struct buf out;

	if (secret_put_body(table(), applies, is_json, data, size, &out) < 0)
		return;
	if (!memmem(data, size, PLACE, strlen(PLACE)))
		MUST(out.len == size && memcmp(out.data, data, size) == 0);
	buf_done(&out);
}

static void collect(void *arg, const char *data, size_t len)
{
	(void)buf_add(arg, data, len);
}

static void mask(const char *data, size_t size)
{
	static const bool sent[GATE_MAX_RULES] = { true, true };
	struct http_head h = { .n_fields = 0 };
	char *copy = malloc(size + 1);
	struct secret_masks m;
	size_t step = 1 + size % 7;
	struct buf out;

	if (!copy || secret_masks_init(&m, table(), sent, &h) < 0)
		abort();
	memcpy(copy, data, size);
	buf_init(&out, 2 << 20);
	for (size_t at = 0; at < size; at += step)
		secret_masks_feed(&m, copy + at,
				  step < size - at ? step : size - at, collect,
				  &out);
	secret_masks_flush(&m, collect, &out);
	secret_masks_done(&m);
	MUST(out.len == size && !has(&out, VALUE));
	buf_done(&out);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct http_head h;

	if (size < 1 || size > 1 << 20)
		return 0;
	size--;
	if (*data == 'q')
		request(text, size);
	else if (*data == 'a')
		(void)http_read_answer(text, size, size % 2, &h);
	else if (*data == 'c' || *data == 'C')
		chunks(*data == 'C', text, size);
	else if (*data == 'w')
		frames(text, size);
	else if (*data == 'p')
		path(text, size);
	else if (*data == 'j' || *data == 'f')
		body(*data == 'j', text, size);
	else if (*data == 'm')
		mask(text, size);
	return 0;
}
