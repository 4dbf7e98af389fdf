/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What clients send to Docker's face: bodies, filters, paths and queries, and
 * input with keys that detach. The first byte chooses. Whatever comes, the
 * answer is well-formed, nothing is created that was refused, and the preparer
 * gets a document that it can read.
 */

#include <stdlib.h>
#include <string.h>

#include "face/docker/fields.h"
#include "face/docker/stream.h"
#include "tests/face/docker-fake.h"
#include "fuzz.h"

const unsigned int fuzz_doors = 0x1f;
static unsigned int entered;

unsigned int fuzz_entered(void)
{
	return entered;
}

static void is_object(const char *text)
{
	json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	MUST(json_is_object(doc));
	json_decref(doc);
}

/* An error has a message; a refusal says who refuses. */
static void is_answer(struct http_request *r)
{
	const char *message;
	json_t *doc;

	if (r->status < 400)
		return;
	MUST(strcmp(r->type, "application/json") == 0);
	doc = json_loads(fake_out(r), 0, NULL);
	message = json_string_value(json_object_get(doc, "message"));
	MUST(message && *message);
	MUST(r->status != 403 || strncmp(message, "cordon: ", 8) == 0);
	MUST(r->status != 501 || strstr(message, "is not supported"));
	json_decref(doc);
}

static void create(const char *text)
{
	struct http_request *r;

	fake_reset();
	r = fake_ask("POST", "/containers/create", text);
	is_answer(r);
	MUST(r->status == 201 || r->status == 400 || r->status == 403 ||
	     r->status == 501 || r->status == 500);
	MUST((r->status == 201) == (fake.created == 1));
	if (fake.created) {
		is_object(fake.settings);
		is_object(fake.extra);
		/* None of these is ever asked of the preparer. */
		MUST(!strstr(fake.settings, "\"privileged\":"));
		MUST(!strstr(fake.settings, "\"cap_add\":"));
		MUST(!strstr(fake.settings, "\"network\":\"host\""));
		entered |= 1;
	}
	fake_done(r);
	if (fake.created) {
		r = fake_ask("GET", "/containers/made_up/json", NULL);
		MUST(r->status == 200 || r->status == 500);
		fake_done(r);
	}
}

static void exec(const char *text)
{
	struct http_request *r;

	fake_reset();
	fake_box(BOX_RUNNING);
	r = fake_ask("POST", "/containers/web/exec", text);
	is_answer(r);
	MUST((r->status == 201) == fake.has_exec);
	if (fake.has_exec) {
		MUST(fake.exec.command[0]);
		entered |= 2;
	}
	fake_done(r);
}

static void filters(const char *text)
{
	struct err err = { 0 };
	json_t *f = filters_parse(text, "id name label label! status until",
				  &err);
	json_t *labels = json_pack("{s:s}", "a", "b");
	const char *name;
	json_t *v;

	if (f) {
		json_object_foreach(f, name, v) MUST(json_is_array(v));
		(void)filters_labels(f, labels);
		(void)pattern_found(text, "a/b-c");
		entered |= 4;
	} else {
		MUST(err.code && err.text[0]);
	}
	json_decref(f);
	json_decref(labels);
}

/* "METHOD url" */
static void url(char *text)
{
	static const char *const methods[] = { "GET", "POST", "HEAD", "DELETE",
					       "PUT" };
	struct http_request *r;
	char *space = strchr(text, ' ');

	if (!space || strlen(space) > 4000)
		return;
	*space = '\0';
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		if (strcmp(methods[i], text) != 0)
			continue;
		fake_reset();
		fake_box(BOX_RUNNING);
		fake_exec();
		fake.image_says = "[]";
		fake.stat.name = fake.stat.link = "x";
		r = fake_ask(methods[i], space + 1, NULL);
		fake_send_body(r, "", 0);
		is_answer(r);
		if (r->route)
			entered |= 8;
		fake_done(r);
	}
}

/* Input in pieces comes out as it was, up to the keys. */
static void keys(const unsigned char *data, size_t len)
{
	struct keys k;
	char *out = malloc(len + 64);
	size_t n = 0;
	bool is_over = false;

	MUST(out && keys_parse("", &k) == 0);
	for (size_t at = 0; at < len && !is_over;) {
		size_t piece = MIN((size_t)(data[at] % 7 + 1), len - at);

		n += keys_filter(&k, (const char *)data + at, piece, out + n,
				 &is_over);
		MUST(n <= len);
		at += piece;
	}
	MUST(n == 0 || memcmp(out, data, n) == 0);
	MUST(is_over || n + k.at == len);
	entered |= 16;
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	entered = 0;
	if (size == 0)
		return 0;
	text = malloc(size);
	MUST(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0]) {
	case 'c':
		create(text);
		break;
	case 'e':
		exec(text);
		break;
	case 'f':
		filters(text);
		break;
	case 'u':
		url(text);
		break;
	default:
		keys(data + 1, size - 1);
	}
	free(text);
	return 0;
}
