/* SPDX-License-Identifier: Apache-2.0 */

/* Images in results: who may give them, how many, and what is kept of them. */

#include "tool-try.h"

#include "agent/agent.h"
#include "agent/chat.h"

/* The smallest of PNGs, 67 bytes. */
#define PNG                                                                    \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgAB" \
	"SK+kcQAAAABJRU5ErkJggg=="
#define IMAGE(mime, data)                                                      \
	"{\"type\":\"image\",\"mime\":\"" mime "\",\"data\":\"" data "\"}"

static char *given;

static char *give(void *arg, const char *args, struct err *err)
{
	(void)arg;
	(void)args;
	(void)err;
	return strdup(given);
}

static struct tool *giver(const char *text)
{
	struct tool *t = NULL;
	struct err err = { 0 };

	given = (char *)text;
	CHECK_INT(tool_function("look", "looks", NULL, give, NULL, &t, &err),
		  0);
	t->is_read_only = true;
	t->gives_parts = true;
	return t;
}

/* The content of the one call that was made. */
static json_t *content;

static void take(void *arg, const struct tool_outcome *o)
{
	json_decref(content);
	content = json_incref(o->result.content);
	tried_take(arg, o);
}

static void look(struct try *t, const char *text, struct tried *d)
{
	const struct tool_want w = {
		.id = "c", .name = "look", .arguments = "{}", .agent = "coder"
	};

	try_set(t, false);
	try_add(t, giver(text));
	tried_done(d);
	toolset_call(t->set, &w, take, d);
	CHECK(loop_run(t->loop, tried_over, d));
}

static const char *mime_at(size_t i)
{
	const char *s = json_string_value(
		json_object_get(json_array_get(content, i), "mime"));

	return s ? s : "";
}

TEST(a_function_gives_text_images_and_values)
{
	struct tried d = { 0 };
	char *ledger;
	struct try t;

	try_open(&t, NULL);
	look(&t,
	     "[{\"type\":\"text\",\"text\":\"see\"}," IMAGE(
		     "image/png",
		     PNG) ",{\"type\":\"json\",\"json\":{\"a\":1}}]",
	     &d);
	CHECK(!d.is_error);
	CHECK_STR(d.text, "see");
	CHECK_STR(mime_at(1), "image/png");
	ledger = try_ledger(&t);
	CHECK_HAS(ledger, "\"images\":[{\"mime\":\"image/png\",\"sha256\":\"");
	CHECK_HAS(ledger, "\"size\":67}]");
	CHECK_INT(try_count(ledger, "iVBOR"), 0);
	free(ledger);
	json_decref(take_ptr(content));
	tried_done(&d);
	try_close(&t);
}

TEST(what_is_no_list_of_parts_is_an_error)
{
	static const char *const bad[][2] = {
		{ "see", "no JSON" },
		{ "{}", "no list of parts" },
		{ "[{\"type\":\"text\"}]", "part 0" },
		{ "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"sound\"}]",
		  "part 1" },
		{ "[{\"type\":\"image\",\"mime\":\"image/png\"}]", "part 0" },
	};
	struct tried d = { 0 };
	struct try t;

	try_open(&t, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		look(&t, bad[i][0], &d);
		CHECK(d.is_error);
		CHECK_HAS(d.text, bad[i][1]);
	}
	json_decref(take_ptr(content));
	tried_done(&d);
	try_close(&t);
}

TEST(images_are_looked_at_and_bounded)
{
	_cleanup_free_ char *large = malloc(4 << 20);
	struct tried d = { 0 };
	struct try t;
	size_t n;

	try_open(&t, NULL);
	look(&t, "[" IMAGE("image/jpeg", PNG) "]", &d);
	CHECK_HAS(d.text, "left out: it is not what it is said to be");
	look(&t, "[" IMAGE("image/png", "aGVsbG8sIHRoaXMgaXMgdGV4dA==") "]",
	     &d);
	CHECK_HAS(d.text, "left out: it is no PNG, JPEG, GIF or WebP");
	look(&t, "[" IMAGE("image/png", "?!") "]", &d);
	CHECK_HAS(d.text, "left out: it is no PNG");
	look(&t,
	     "[" IMAGE("image/png", PNG) "," IMAGE("image/png", PNG) "," IMAGE(
		     "image/png", PNG) "," IMAGE("image/png",
						 PNG) "," IMAGE("image/png",
								PNG) "]",
	     &d);
	CHECK_STR(mime_at(3), "image/png");
	CHECK_STR(mime_at(4), "");
	CHECK_HAS(d.text, "left out: there are more than 4");
	/* A PNG's head, and three million letters. */
	n = (size_t)sprintf(large, "[{\"type\":\"image\",\"mime\":\"image/png\""
				   ",\"data\":\"iVBORw0KGgoAAAAN");
	memset(large + n, 'A', 3000000);
	(void)strcpy(large + n + 3000000, "\"}]");
	look(&t, large, &d);
	CHECK_HAS(d.text, "left out: it has more than 2097152 bytes");
	json_decref(take_ptr(content));
	tried_done(&d);
	try_close(&t);
}

/* The file x.png of the test's directory, with these bytes. */
static void put_file(const struct try *t, const void *data, size_t len)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/files", t->dir);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/files/x.png", t->dir);
	f = fopen(path, "we");
	CHECK(f && fwrite(data, 1, len, f) == len);
	(void)fclose(f);
}

TEST(read_file_gives_an_image_as_one)
{
	static const unsigned char png[] =
		"\x89PNG\r\n\x1a\n\0\0\0\rIHDR and so on";
	const struct tool_want w = { .id = "c",
				     .name = "read_file",
				     .arguments = "{\"path\":\"x.png\"}",
				     .agent = "coder" };
	struct tool *tool = NULL;
	struct err err = { 0 };
	struct tried d = { 0 };
	_cleanup_fd_ int dir = NO_FD;
	char path[256];
	struct try t;

	try_open(&t, NULL);
	put_file(&t, png, sizeof(png));
	(void)snprintf(path, sizeof(path), "%s/files", t.dir);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(tool_files(t.loop, dir, "read_file", &tool, &err), 0);
	try_add(&t, tool);
	toolset_call(t.set, &w, take, &d);
	CHECK(loop_run(t.loop, tried_over, &d));
	CHECK_STR(d.text, "x.png: an image");
	CHECK_STR(mime_at(1), "image/png");
	/* A name makes no image. */
	put_file(&t, "just text, whatever it is called", 32);
	try_call(&t, "read_file", "{\"path\":\"x.png\"}", &d);
	CHECK_STR(d.text, "just text, whatever it is called");
	/* A part of one is no text. */
	put_file(&t, png, sizeof(png));
	try_call(&t, "read_file", "{\"path\":\"x.png\",\"length\":20}", &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "is not text");
	json_decref(take_ptr(content));
	tried_done(&d);
	try_close(&t);
}

TEST(a_program_in_a_box_gives_one)
{
	struct tool_box box = { 0 };
	struct tool *tool = NULL;
	struct err err = { 0 };
	struct tried d = { 0 };
	char path[256];
	char about[256];
	struct tool_want w = {
		.id = "c", .name = "plot", .arguments = "{}", .agent = "coder"
	};
	struct try t;

	try_open(&t, NULL);
	box.loop = t.loop;
	box.policy = t.policy;
	(void)snprintf(path, sizeof(path), "%s/plot.py", t.dir);
	try_write(path, "print('[{\"type\":\"image\",\"mime\":\"image/png\","
			"\"data\":\"" PNG "\"}]')\n");
	(void)snprintf(about, sizeof(about), "%s/plot.py.json", t.dir);
	try_write(about, "{\"name\":\"plot\",\"description\":\"d\","
			 "\"parameters\":{\"type\":\"object\"},"
			 "\"result\":\"parts\"}");
	CHECK_INT(tool_program(&box, path, &tool, &err), 0);
	CHECK_STR(err.text, "");
	try_add(&t, tool);
	toolset_call(t.set, &w, take, &d);
	CHECK(loop_run(t.loop, tried_over, &d));
	CHECK(!d.is_error);
	CHECK_STR(mime_at(0), "image/png");
	CHECK(!json_object_get(d.detail, "stdout"));
	try_write(about, "{\"name\":\"plot\",\"description\":\"d\","
			 "\"parameters\":{\"type\":\"object\"},"
			 "\"result\":\"film\"}");
	CHECK_INT(tool_program(&box, path, &tool, &err), -EINVAL);
	CHECK_HAS(err.text, "result: not text or parts");
	json_decref(take_ptr(content));
	tried_done(&d);
	try_close(&t);
}

struct ears {
	json_t *events, *chat;
	int ends;
};

static void on_event(void *arg, json_t *event)
{
	(void)json_array_append(((struct ears *)arg)->events, event);
}

static void on_over(void *arg, json_t *chat, const struct fault *why,
		    json_t *pending)
{
	struct ears *e = arg;

	(void)why;
	(void)pending;
	e->chat = json_incref(chat);
	e->ends++;
}

static bool is_over(void *arg)
{
	return ((struct ears *)arg)->ends > 0;
}

TEST(an_agent_tells_and_remembers_it)
{
	static const struct turn_events events = { on_event, on_over };
	struct ears e = { .events = json_array() };
	const struct turn_asker who = { .events = &events, .arg = &e };
	json_t *task = json_pack("[o]", chat_text("user", "go"));
	json_t *config = json_pack("{s:i}", "max_tool_iterations", 2);
	struct agent *a = NULL;
	struct model *m = NULL;
	struct err err = { 0 };
	json_t *state;
	char path[256];
	char *text;
	struct try t;

	try_open(&t, NULL);
	try_add(&t, giver("[" IMAGE("image/png", PNG) "]"));
	(void)snprintf(path, sizeof(path), "%s/recording", t.dir);
	try_write(path, "{\"result\":{\"finish_reason\":\"function_calls\","
			"\"calls\":[{\"id\":\"1\",\"name\":\"look\","
			"\"arguments\":{}}]}}\n"
			"{\"result\":{\"finish_reason\":\"stop\",\"content\":"
			"\"a dot\"}}\n");
	CHECK_INT(model_replay(t.loop, path, &m, &err), 0);
	CHECK_INT(agent_assistant(t.loop, "ann", config, m, take_ptr(t.set), &a,
				  &err),
		  0);
	CHECK(turn_begin(a, task, &who) != NULL);
	CHECK(loop_run(t.loop, is_over, &e));
	text = json_dumps(e.events, 0);
	CHECK_HAS(text, "\"content\": \"[image: image/png]\"");
	CHECK_HAS(text,
		  "\"images\": [{\"mime\": \"image/png\", \"data\": \"" PNG
		  "\"}]");
	free(text);
	state = agent_save(a);
	text = json_dumps(state, 0);
	CHECK_HAS(text, PNG);
	free(text);
	json_decref(state);
	json_decref(e.events);
	json_decref(e.chat);
	json_decref(task);
	json_decref(config);
	agent_free(a);
	model_unref(m);
	try_close(&t);
}

TAP_MAIN()
