/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a daemon answers, to the library and the command: HTTP around events of
 * a run, a result, frames of output or an archive. The first byte says which,
 * the second how the rest is cut: in pieces or whole, it is the same.
 */

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "client/answer.h"
#include "client/frames.h"
#include "client/lines.h"
#include "client/result.h"
#include "client/tar-file.h"
#include "fuzz.h"

enum { LINES, FRAMES, TAR, RESULT, KINDS };

const unsigned int fuzz_doors = 1U << LINES | 1U << FRAMES | 1U << TAR |
				1U << RESULT;
static unsigned int entered;

unsigned int fuzz_entered(void)
{
	return entered;
}

static int put(void *arg, int stream, const char *data, size_t len)
{
	const char mark = (char)stream;

	MUST(stream == 1 || stream == 2);
	MUST(len > 0);
	/* Cuts do not count: as if each byte came alone. */
	for (size_t i = 0; i < len; i++) {
		(void)buf_add(arg, &mark, 1);
		(void)buf_add(arg, data + i, 1);
	}
	return 0;
}

static void show_result(struct cordon_result *r, struct buf *ret)
{
	const char *text;
	size_t len;
	char *json = cordon_result_json(r);

	MUST(json && json[strlen(json) - 1] == '\n');
	MUST(cordon_result_exit_code(r) >= 0);
	MUST(cordon_result_exit_code(r) < 256);
	(void)buf_puts(ret, cordon_result_status(r));
	(void)buf_puts(ret, cordon_result_cause(r));
	text = cordon_result_stdout(r, &len);
	MUST(text[len] == '\0');
	(void)buf_add(ret, text, len);
	text = cordon_result_stderr(r, &len);
	MUST(text[len] == '\0');
	(void)buf_add(ret, text, len);
	free(json);
}

/* One way through it all; what came of it is in `ret`. */
struct way {
	struct answer answer;
	struct lines lines;
	struct frames frames;
	struct tar_file tar;
	struct buf body;
	int kind, error;
};

static void take_body(struct way *w, const char *data, size_t len,
		      struct buf *ret)
{
	struct err err = { 0 };

	if (w->error || len == 0)
		return;
	if (w->kind == LINES)
		w->error = lines_take(&w->lines, data, len, put, ret);
	else if (w->kind == FRAMES)
		w->error = frames_take(&w->frames, data, len, put, ret);
	else if (w->kind == TAR)
		w->error = tar_file_take(&w->tar, data, len, &err);
	else
		(void)buf_add(&w->body, data, len);
}

static void finish(struct way *w, struct buf *ret)
{
	struct err err = { 0 };
	struct value v = { w->body.data, w->body.len };
	struct cordon_result *r = NULL;

	if (w->kind == RESULT && v.len && value_check(v.p, v.len))
		r = result_read(&v);
	if (r)
		show_result(r, ret);
	else if (w->kind == LINES && w->lines.result)
		show_result(w->lines.result, ret);
	if (w->kind == TAR && !w->error && tar_file_end(&w->tar, &err) == 0)
		entered = 1U << TAR;
	else if ((w->kind == LINES && w->lines.result) || r ||
		 (w->kind == FRAMES && ret->len))
		entered = 1U << w->kind;
	if (w->kind == TAR)
		(void)buf_add(ret, w->tar.data.data, w->tar.data.len);
	cordon_result_free(r);
}

static void go(int kind, const char *data, size_t len, size_t cut,
	       struct buf *ret)
{
	struct way *w = calloc(1, sizeof(*w));
	struct err err = { 0 };
	const char *piece;
	size_t n;

	if (!w)
		abort();
	w->kind = kind;
	answer_init(&w->answer);
	lines_init(&w->lines);
	tar_file_init(&w->tar, 1 << 16);
	buf_init(&w->body, 1 << 20);
	while (len > 0 && !answer_has_ended(&w->answer)) {
		ssize_t used = answer_take(&w->answer, data,
					   len < cut ? len : cut, &piece, &n,
					   &err);

		MUST(used != 0);
		if (used < 0) {
			MUST(err.code && err.text[0]);
			break;
		}
		MUST((size_t)used <= len);
		MUST(n == 0 || (piece == data && n == (size_t)used));
		take_body(w, piece, n, ret);
		data += used;
		len -= (size_t)used;
	}
	finish(w, ret);
	(void)buf_printf(ret, "|%d %d %s", w->answer.status, w->error != 0,
			 w->answer.exec);
	lines_done(&w->lines);
	tar_file_done(&w->tar);
	buf_done(&w->body);
	free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole, cut;

	entered = 0;
	if (size < 2 || size > 1 << 16)
		return 0;
	buf_init(&whole, 1 << 20);
	buf_init(&cut, 1 << 20);
	go(data[0] % KINDS, (const char *)data + 2, size - 2, size, &whole);
	go(data[0] % KINDS, (const char *)data + 2, size - 2, 1 + data[1] % 32,
	   &cut);
	MUST(whole.len == cut.len);
	MUST(memcmp(whole.data, cut.data, whole.len) == 0);
	buf_done(&whole);
	buf_done(&cut);
	return 0;
}
