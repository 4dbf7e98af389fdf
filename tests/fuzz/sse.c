/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers of a model's server. The first byte says how: as a stream, whole and
 * in pieces, which must give the same events and the same answer; as a
 * document; as the body of an error. Whatever comes, there is either a result
 * that holds together or a fault.
 */

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/util.h"
#include "fuzz.h"
#include "model/openai.h"
#include "model/sse.h"

/* All doors: a result by a stream, by a document, calls, a fault. */
const unsigned int fuzz_doors = 15;
static unsigned int entered;

unsigned int fuzz_entered(void)
{
	return entered;
}

struct seen {
	struct answer a;
	struct sse sse;
	struct sha256 events, chunks;
	struct fault why;
	bool is_bad;
};

static bool is_utf8(const char *text)
{
	json_t *v = json_string(text); /* NULL where it is none */

	json_decref(v);
	return v != NULL;
}

static void on_chunk(void *arg, bool is_thought, const char *text, size_t len)
{
	struct seen *s = arg;
	json_t *v = json_stringn(text, len);

	/* Each piece can be shown by itself. */
	MUST(v && len && !memchr(text, '\0', len));
	json_decref(v);
	sha256_add(&s->chunks, &is_thought, sizeof(is_thought));
	sha256_add(&s->chunks, text, len);
}

static void on_event(void *arg, const char *name, const char *data, size_t len)
{
	struct seen *s = arg;

	MUST(data[len] == '\0');
	sha256_add(&s->events, name, strlen(name) + 1);
	sha256_add(&s->events, data, len + 1);
	if (!s->is_bad && answer_event(&s->a, data, len, &s->why) < 0)
		s->is_bad = true;
}

static void check_calls(const json_t *calls)
{
	json_t *c;
	size_t i;

	json_array_foreach(calls, i, c)
	{
		static const char *const fields[] = { "id", "name",
						      "arguments" };

		for (size_t k = 0; k < ARRAY_SIZE(fields); k++)
			MUST(json_string_length(json_object_get(c, fields[k])));
	}
}

static void check_end(struct seen *s, unsigned int door)
{
	struct model_result r = { 0 };

	if (!s->is_bad && answer_end(&s->a, &r, &s->why) < 0)
		s->is_bad = true;
	MUST(s->is_bad == (s->why.code != FAULT_NONE));
	if (s->is_bad) {
		entered |= 8;
		MUST(s->why.message && !r.content && !r.calls);
	} else {
		entered |= door | (r.calls ? 4 : 0);
		MUST(r.content || json_array_size(r.calls));
		MUST(!r.content || is_utf8(r.content));
		MUST(!r.thought || is_utf8(r.thought));
		MUST(r.usage.prompt >= 0 && r.usage.completion >= 0);
		check_calls(r.calls);
	}
	result_done(&r);
}

static void begin(struct seen *s)
{
	memset(s, 0, sizeof(*s));
	sha256_init(&s->events);
	sha256_init(&s->chunks);
	answer_init(&s->a, on_chunk, s);
	sse_init(&s->sse, 1 << 20, on_event, s);
}

static void end(struct seen *s, unsigned char sums[2 * SHA256_SIZE])
{
	sha256_end(&s->events, sums);
	sha256_end(&s->chunks, sums + SHA256_SIZE);
	answer_done(&s->a);
	sse_done(&s->sse);
	fault_done(&s->why);
}

static bool stream(const char *data, size_t len, size_t piece,
		   unsigned char sums[2 * SHA256_SIZE])
{
	struct seen s;

	begin(&s);
	for (size_t i = 0; i < len; i += piece)
		MUST(sse_feed(&s.sse, data + i, MIN(piece, len - i)) == 0);
	MUST(sse_end(&s.sse) == 0);
	check_end(&s, 1);
	end(&s, sums);
	return s.is_bad;
}

static void document(const char *data, size_t len)
{
	unsigned char sums[2 * SHA256_SIZE];
	struct seen s;

	begin(&s);
	s.is_bad = answer_document(&s.a, data, len, &s.why) < 0;
	check_end(&s, 2);
	end(&s, sums);
}

static void error(const char *data, size_t len)
{
	struct fault why = { 0 };

	answer_error(data, len, FAULT_REJECTED, &why);
	MUST(why.code != FAULT_NONE && why.message);
	fault_done(&why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char whole[2 * SHA256_SIZE];
	unsigned char pieces[2 * SHA256_SIZE];
	const char *text = (const char *)data + 1;
	bool is_bad;

	entered = 0;
	if (size < 1 || size > 1 << 16)
		return 0;
	size--;
	if (data[0] == 'd') {
		document(text, size);
	} else if (data[0] == 'e') {
		error(text, size);
	} else {
		is_bad = stream(text, size, MAX(size, 1), whole);
		MUST(stream(text, size, 1, pieces) == is_bad);
		MUST(memcmp(whole, pieces, sizeof(whole)) == 0);
		MUST(stream(text, size, 2 + data[0] % 61, pieces) == is_bad);
		MUST(memcmp(whole, pieces, sizeof(whole)) == 0);
	}
	return 0;
}
