/* SPDX-License-Identifier: Apache-2.0 */

/* The pure parts of the model client: requests, waits, keys, counts. */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/util.h"
#include "model/openai-config.h"
#include "model/openai.h"
#include "model/retry.h"
#include "model/secret.h"

/* --- requests --- */

static json_t *settings;

static json_t *write_with(const struct model_request *q, const char *model,
			  const struct model_info *other, struct fault *why)
{
	struct model_info info;
	struct openai_form form = { .model = model,
				    .info = other ? other : &info,
				    .has_names = true,
				    .has_stream_usage = true };
	_cleanup_free_ char *text = NULL;

	if (!settings)
		settings = json_pack("{s:f}", "temperature", 0.5);
	form.settings = settings;
	info_find(model, &info);
	text = openai_body(&form, q, why);
	return text ? json_loads(text, 0, NULL) : NULL;
}

static json_t *message(json_t *body, size_t i)
{
	return json_array_get(json_object_get(body, "messages"), i);
}

static const char *text_at(json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

static json_t *conversation(void)
{
	return json_loads(
		"[{\"role\":\"system\",\"content\":\"be brief\"},"
		"{\"role\":\"user\",\"source\":\"user\",\"content\":\"hi\"},"
		"{\"role\":\"assistant\",\"source\":\"coder\",\"content\":null,"
		"\"calls\":[{\"id\":\"c1\",\"name\":\"f\",\"arguments\":"
		"\"{\\\"a\\\":1}\"}],\"thought\":\"hm\"},"
		"{\"role\":\"tool\",\"results\":[{\"call_id\":\"c1\",\"name\":"
		"\"f\",\"content\":\"ok\",\"is_error\":false},{\"call_id\":"
		"\"c2\",\"name\":\"g\",\"content\":\"no\",\"is_error\":true}]},"
		"{\"role\":\"user\",\"source\":\"a b\xc3\xbc\",\"content\":[{"
		"\"type\":\"text\",\"text\":\"see\"},{\"type\":\"image\","
		"\"mime\":\"image/png\",\"data\":\"AAAA\"}]},"
		"{\"role\":\"system\",\"content\":\"be kind\"}]",
		0, NULL);
}

TEST(a_conversation_is_written)
{
	struct fault why = { 0 };
	struct model_request q = { .messages = conversation(),
				   .is_stream = true };
	json_t *b = write_with(&q, "gpt-4o", NULL, &why);
	json_t *m;

	CHECK_STR(text_at(b, "model"), "gpt-4o");
	CHECK(json_is_true(json_object_get(b, "stream")));
	CHECK(json_is_true(json_object_get(json_object_get(b, "stream_options"),
					   "include_usage")));
	CHECK(json_number_value(json_object_get(b, "temperature")) > 0.4);
	CHECK(!json_object_get(b, "tools"));
	CHECK_INT((int)json_array_size(json_object_get(b, "messages")), 7);
	CHECK_STR(text_at(message(b, 0), "role"), "system");
	CHECK(!json_object_get(message(b, 1), "name"));
	m = message(b, 2);
	CHECK(json_is_null(json_object_get(m, "content")));
	CHECK(!json_object_get(m, "thought"));
	m = json_array_get(json_object_get(m, "tool_calls"), 0);
	CHECK_STR(text_at(m, "type"), "function");
	CHECK_STR(text_at(json_object_get(m, "function"), "arguments"),
		  "{\"a\":1}");
	CHECK_STR(text_at(message(b, 3), "tool_call_id"), "c1");
	CHECK_STR(text_at(message(b, 4), "content"), "no");
	m = message(b, 5);
	CHECK_STR(text_at(m, "name"), "a_b__");
	m = json_array_get(json_object_get(m, "content"), 1);
	CHECK_STR(text_at(json_object_get(m, "image_url"), "url"),
		  "data:image/png;base64,AAAA");
	json_decref(b);
	json_decref(q.messages);
}

TEST(a_model_without_eyes_or_many_systems)
{
	struct fault why = { 0 };
	struct model_request q = { .messages = conversation() };
	json_t *b = write_with(&q, "llama3.1:8b", NULL, &why);

	CHECK(json_is_false(json_object_get(b, "stream")));
	CHECK(!json_object_get(b, "stream_options"));
	CHECK_INT((int)json_array_size(json_object_get(b, "messages")), 6);
	CHECK_STR(text_at(message(b, 0), "content"), "be brief\n\nbe kind");
	CHECK_HAS(text_at(message(b, 5), "content"), "see\n[An image was here");
	json_decref(b);
	json_decref(q.messages);
}

TEST(images_of_results_follow_as_the_users_or_are_told_of)
{
	struct fault why = { 0 };
	struct model_request q = {
		.messages = json_loads(
			"[{\"role\":\"tool\",\"results\":[{\"call_id\":\"c1\","
			"\"name\":\"plot\",\"content\":\"see\",\"images\":[{"
			"\"mime\":\"image/png\",\"data\":\"AAAA\"}]},{"
			"\"call_id\":\"c2\",\"name\":\"f\",\"content\":\"ok\"}]"
			"}]",
			0, NULL)
	};
	json_t *b = write_with(&q, "gpt-4o", NULL, &why);
	json_t *parts = json_object_get(message(b, 2), "content");

	/* Every result first: servers want them right behind the calls. */
	CHECK_INT((int)json_array_size(json_object_get(b, "messages")), 3);
	CHECK_STR(text_at(message(b, 0), "content"), "see");
	CHECK_STR(text_at(message(b, 1), "tool_call_id"), "c2");
	CHECK_STR(text_at(message(b, 2), "role"), "user");
	CHECK_HAS(text_at(json_array_get(parts, 0), "text"), "plot (c1)");
	CHECK_STR(text_at(json_object_get(json_array_get(parts, 1),
					  "image_url"),
			  "url"),
		  "data:image/png;base64,AAAA");
	json_decref(b);
	b = write_with(&q, "llama3.1:8b", NULL, &why);
	CHECK_INT((int)json_array_size(json_object_get(b, "messages")), 2);
	CHECK_HAS(text_at(message(b, 0), "content"), "see\n[An image was here");
	CHECK_STR(text_at(message(b, 1), "content"), "ok");
	json_decref(b);
	json_decref(q.messages);
}

TEST(tools_and_choices)
{
	struct fault why = { 0 };
	struct model_request q = { .messages = json_array() };
	json_t *b;
	json_t *f;

	q.tools = json_loads("[{\"name\":\"f\",\"description\":\"d\","
			     "\"parameters\":{\"type\":\"object\"},\"strict\":"
			     "true},{\"name\":\"g\",\"strict\":false}]",
			     0, NULL);
	q.tool_choice = "f";
	b = write_with(&q, "gpt-4o", NULL, &why);
	f = json_object_get(json_array_get(json_object_get(b, "tools"), 0),
			    "function");
	CHECK_STR(text_at(f, "name"), "f");
	CHECK(json_is_true(json_object_get(f, "strict")));
	CHECK_STR(text_at(json_object_get(json_object_get(b, "tool_choice"),
					  "function"),
			  "name"),
		  "f");
	json_decref(b);
	q.tool_choice = "required";
	b = write_with(&q, "gpt-4o", NULL, &why);
	CHECK_STR(text_at(b, "tool_choice"), "required");
	json_decref(b);
	q.tool_choice = "nobody";
	CHECK(!write_with(&q, "gpt-4o", NULL, &why));
	CHECK_INT((int)why.code, FAULT_NOT_FOUND);
	fault_done(&why);
	q.tool_choice = NULL;
	CHECK(!write_with(&q, "o1-mini", NULL, &why));
	CHECK_INT((int)why.code, FAULT_CANT_HANDLE);
	fault_done(&why);
	json_decref(q.messages);
	json_decref(q.tools);
}

TEST(structured_answers)
{
	static const char open[] =
		"{\"name\":\"n\",\"schema\":{\"type\":\"object\",\"properties\""
		":{\"a\":{\"type\":\"string\"}}}}";
	static const char closed[] =
		"{\"name\":\"n\",\"schema\":{\"type\":\"object\",\"properties\""
		":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
		"\"properties\":{},\"additionalProperties\":false}}},"
		"\"required\":[\"a\"],\"additionalProperties\":false}}";
	struct fault why = { 0 };
	struct model_request q = { .messages = json_array() };
	struct model_info info;
	json_t *b;
	json_t *f;

	q.output_schema = json_loads(open, 0, NULL);
	b = write_with(&q, "gpt-4o", NULL, &why);
	f = json_object_get(b, "response_format");
	CHECK_STR(text_at(f, "type"), "json_schema");
	f = json_object_get(f, "json_schema");
	CHECK_STR(text_at(f, "name"), "n");
	CHECK(json_is_false(json_object_get(f, "strict")));
	json_decref(b);
	json_decref(q.output_schema);

	q.output_schema = json_loads(closed, 0, NULL);
	b = write_with(&q, "gpt-4o", NULL, &why);
	f = json_object_get(json_object_get(b, "response_format"),
			    "json_schema");
	CHECK(json_is_true(json_object_get(f, "strict")));
	json_decref(b);

	/* Only JSON, then not even that: it is asked for in words. */
	b = write_with(&q, "gpt-4-turbo", NULL, &why);
	f = json_object_get(b, "response_format");
	CHECK_STR(text_at(f, "type"), "json_object");
	CHECK_HAS(text_at(message(b, 0), "content"), "additionalProperties");
	json_decref(b);
	info_find("x", &info);
	info.structured_output = false;
	info.json_output = false;
	b = write_with(&q, "x", &info, &why);
	CHECK(!json_object_get(b, "response_format"));
	CHECK_HAS(text_at(message(b, 0), "content"), "JSON schema");
	json_decref(b);
	json_decref(q.output_schema);
	json_decref(q.messages);
}

TEST(extra_does_not_change_what_is_ours)
{
	struct fault why = { 0 };
	struct model_request q = { .messages = json_array() };
	json_t *b;

	q.extra = json_pack("{s:b, s:s, s:i, s:f}", "stream", 1, "model",
			    "other", "n", 1, "temperature", 0.9);
	b = write_with(&q, "gpt-4o", NULL, &why);
	CHECK(json_is_false(json_object_get(b, "stream")));
	CHECK_STR(text_at(b, "model"), "gpt-4o");
	CHECK_INT(json_integer_value(json_object_get(b, "n")), 1);
	CHECK(json_number_value(json_object_get(b, "temperature")) > 0.8);
	json_decref(b);
	json_decref(q.extra);
	json_decref(q.messages);
	/* What is no message is refused, not sent. */
	q = (struct model_request){ .messages = json_pack("[{s:s}]", "role",
							  "wizard") };
	CHECK(!write_with(&q, "gpt-4o", NULL, &why));
	CHECK_HAS(why.message, "message 0");
	json_decref(q.messages);
	fault_done(&why);
}

/* --- waits --- */

TEST(what_is_tried_again)
{
	static const int yes[] = { 0, 408, 409, 429, 500, 502, 503, 504, 599 };
	static const int no[] = { 200, 301, 400, 401, 403, 404, 413, 422 };

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		CHECK(retry_is_worth(yes[i]));
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		CHECK(!retry_is_worth(no[i]));
}

TEST(what_retry_after_asks_for)
{
	time_t now = 784111777; /* Sun, 06 Nov 1994 08:49:37 GMT */

	CHECK_INT(retry_asked("", now), -1);
	CHECK_INT(retry_asked("soon", now), -1);
	CHECK_INT(retry_asked("0", now), 0);
	CHECK_INT(retry_asked("7", now), 7000000);
	CHECK_INT(retry_asked("1.5", now), 1500000);
	CHECK_INT(retry_asked("99999999999999999999999", now), INT64_MAX);
	CHECK_INT(retry_asked("Sun, 06 Nov 1994 08:49:47 GMT", now), 10000000);
	CHECK_INT(retry_asked("Sunday, 06-Nov-94 08:49:47 GMT", now), 10000000);
	CHECK_INT(retry_asked("Sun Nov  6 08:49:47 1994", now), 10000000);
	CHECK_INT(retry_asked("Sun, 06 Nov 1994 08:49:30 GMT", now), 0);
}

TEST(waits_double_and_are_bounded)
{
	struct retry r = { 3, 500000 };

	CHECK_INT(retry_wait(&r, 1, -1, 0), 250000);
	CHECK(retry_wait(&r, 1, -1, UINT32_MAX) >= 499000);
	CHECK(retry_wait(&r, 1, -1, UINT32_MAX) <= 500000);
	CHECK_INT(retry_wait(&r, 3, -1, 0), 1000000);
	CHECK_INT(retry_wait(&r, 4, -1, 0), -1);
	/* Never sooner than was asked. */
	CHECK(retry_wait(&r, 1, 7000000, 0) >= 7000000);
	CHECK(retry_wait(&r, 1, 7000000, UINT32_MAX) <= 7200000);
	CHECK(retry_wait(&r, 1, RETRY_MOST_US, 0) > 0);
	CHECK_INT(retry_wait(&r, 1, RETRY_MOST_US + 1, 0), -1);
	CHECK_INT(retry_wait(&r, 1, INT64_MAX, 0), -1);
}

/* --- keys --- */

static int key_of(const char *ref, char ret[SECRET_MAX], struct err *err)
{
	json_t *o = json_loads(ref, JSON_DECODE_ANY, NULL);
	int r = secret_check(o, err);

	if (r == 0)
		r = secret_read(o, ret, err);
	json_decref(o);
	return r;
}

TEST(keys_are_only_referred_to)
{
	char key[SECRET_MAX];
	char file[] = "/tmp/cordon-key-XXXXXX";
	char ref[64];
	struct err err = { 0 };
	int fd = mkstemp(file);

	(void)setenv("A_KEY", "sk-from-env", 1);
	(void)setenv("BAD_KEY", "sk-a\r\nHost: evil", 1);
	(void)setenv("NO_KEY", "  ", 1);
	CHECK(key_of("{\"env\":\"A_KEY\"}", key, &err) == 0);
	CHECK_STR(key, "sk-from-env");
	CHECK(write(fd, " sk-from-file\n", 14) == 14);
	(void)close(fd);
	(void)snprintf(ref, sizeof(ref), "{\"file\":\"%s\"}", file);
	CHECK(key_of(ref, key, &err) == 0);
	CHECK_STR(key, "sk-from-file");
	(void)unlink(file);
	CHECK(key_of(ref, key, &err) < 0);
	CHECK_HAS(err.text, file);
	CHECK(key_of("{\"env\":\"NOT_SET\"}", key, &err) == -ENOENT);
	CHECK_HAS(err.text, "NOT_SET");
	CHECK(key_of("{\"env\":\"BAD_KEY\"}", key, &err) < 0);
	CHECK(!strstr(err.text, "sk-a"));
	CHECK(key_of("{\"env\":\"NO_KEY\"}", key, &err) < 0);
	CHECK(key_of("\"sk-itself\"", key, &err) < 0);
	CHECK(!strstr(err.text, "sk-itself"));
	CHECK(key_of("{\"env\":\"A\",\"file\":\"B\"}", key, &err) < 0);
	CHECK(key_of("{\"value\":\"sk-itself\"}", key, &err) < 0);
	CHECK(!strstr(err.text, "sk-itself"));
}

TEST(a_key_in_a_text_is_masked)
{
	char text[] = "wrong key: sk-secret, said sk-secret";

	secret_mask(text, "sk-secret");
	CHECK_STR(text, "wrong key: *********, said *********");
	secret_mask(text, "key");
	CHECK_HAS(text, "wrong key");
	secret_mask(NULL, "sk-secret");
	secret_mask(text, NULL);
}

/* --- the configuration --- */

static int load(const char *text, struct openai_config *c,
		struct model_info *info, struct err *err)
{
	json_t *o = json_loads(text, 0, NULL);
	int r;

	memset(err, 0, sizeof(*err));
	info_find("gpt-4o", info);
	r = openai_config_load(c, info, o, err);
	json_decref(o);
	return r;
}

TEST(a_configuration_is_read)
{
	struct openai_config c;
	struct model_info info;
	struct err err;

	(void)unsetenv("OPENAI_BASE_URL");
	(void)setenv("OPENAI_API_KEY", "sk-usual", 1);
	CHECK(load("{\"model\":\"gpt-4o\",\"temperature\":0,\"timeout\":2.5,"
		   "\"idle_timeout\":\"2m\",\"max_retries\":1,\"extra\":{\"x\":"
		   "1},\"info\":{\"vision\":"
		   "false,\"price_prompt\":7}}",
		   &c, &info, &err) == 0);
	CHECK_STR(c.url, "https://api.openai.com/v1/chat/completions");
	CHECK_INT(c.limit_us, 2500000);
	CHECK_INT(c.retry.most, 1);
	CHECK_INT(c.connect_us, 10000000);
	CHECK_INT(c.first_us, 120000000);
	CHECK_INT(c.idle_us, 120000000);
	CHECK(!info.vision && info.price_prompt > 6.9);
	CHECK(c.key != NULL);
	CHECK_INT((int)json_object_size(c.settings), 2);
	openai_config_done(&c);

	(void)setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1/", 1);
	CHECK(load("{\"model\":\"m\"}", &c, &info, &err) == 0);
	CHECK_STR(c.url, "http://127.0.0.1:8000/v1/chat/completions");
	CHECK(c.key != NULL);
	openai_config_done(&c);
}

/* A document from elsewhere does not get the key by naming a server. */
TEST(the_usual_key_goes_to_the_usual_server)
{
	struct openai_config c;
	struct model_info info;
	struct err err;

	(void)unsetenv("OPENAI_BASE_URL");
	(void)setenv("OPENAI_API_KEY", "sk-usual", 1);
	CHECK(load("{\"base_url\":\"https://elsewhere.example/v1\"}", &c, &info,
		   &err) == 0);
	CHECK(c.key == NULL);
	openai_config_done(&c);
	CHECK(load("{\"base_url\":\"https://api.openai.com/v1\"}", &c, &info,
		   &err) == 0);
	CHECK(c.key != NULL);
	openai_config_done(&c);
	CHECK(load("{\"base_url\":\"https://elsewhere.example/v1\",\"api_key\":"
		   "{\"env\":\"OTHER\"}}",
		   &c, &info, &err) == 0);
	CHECK(c.key != NULL);
	openai_config_done(&c);
	/* The usual server, named here, is not the one of the environment. */
	(void)setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1", 1);
	CHECK(load("{\"base_url\":\"https://elsewhere.example/v1\"}", &c, &info,
		   &err) == 0);
	CHECK(c.key == NULL);
	openai_config_done(&c);
}

TEST(wrong_configurations_are_refused)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "{\"temprature\":1}", "temprature" },
		{ "{\"api_key\":\"sk-plain\"}", "never itself" },
		{ "{\"base_url\":\"ftp://x\"}", "http" },
		{ "{\"base_url\":\"https://u:sk-plain@x/v1\"}", "password" },
		{ "{\"base_url\":\"https://x/v1?key=sk-plain\"}", "query" },
		{ "{\"timeout\":-1}", "timeout" },
		{ "{\"timeout\":\"a while\"}", "timeout" },
		{ "{\"max_retries\":1000}", "max_retries" },
		{ "{\"include_name\":1}", "include_name" },
		{ "{\"info\":{\"color\":1}}", "color" },
		{ "{\"info\":{\"vision\":1}}", "vision" },
		{ "{\"info\":7}", "info" },
		{ "{\"extra\":7}", "extra" },
		{ "{\"ca_file\":7}", "ca_file" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct openai_config c;
		struct model_info info;
		struct err err;

		CHECK(load(cases[i].text, &c, &info, &err) < 0);
		CHECK_HAS(err.text, cases[i].says);
		CHECK(!strstr(err.text, "sk-plain"));
		openai_config_done(&c);
	}
}

/* --- what is known --- */

TEST(names_of_models)
{
	static const struct {
		const char *name, *family;
		bool vision;
		int64_t window;
	} cases[] = {
		{ "gpt-4o", "gpt-4o", true, 128000 },
		{ "gpt-4o-mini-2024-07-18", "gpt-4o-mini", true, 128000 },
		{ "openai/gpt-4.1", "gpt-4.1", true, 1047576 },
		{ "gpt-4", "gpt-4", false, 8192 },
		{ "Llama3.1:8b", "llama3", false, 0 },
		{ "claude-sonnet-4", "claude", true, 200000 },
		{ "my-own", "unknown", false, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct model_info info;

		info_find(cases[i].name, &info);
		CHECK_STR(info.family, cases[i].family);
		CHECK(info.vision == cases[i].vision);
		CHECK_INT(info.context_window, cases[i].window);
	}
}

TEST(info_goes_to_json_and_back)
{
	struct model_info a;
	struct model_info b;
	struct err err = { 0 };
	json_t *o;
	json_t *again;

	info_find("gpt-4o-mini", &a);
	info_find("my-own", &b);
	a.price_prompt = 0.15;
	a.price_completion = 0.6;
	o = info_json(&a);
	CHECK(info_load(&b, o, &err) == 0);
	again = info_json(&b);
	CHECK(json_equal(o, again));
	CHECK(b.vision && b.price_completion > 0.59);
	/* What is not known is not known then, either. */
	info_find("gpt-4o-mini", &a);
	CHECK(a.price_prompt < 0 && a.price_completion < 0);
	json_decref(o);
	o = info_json(&a);
	CHECK(info_load(&b, o, &err) == 0 && b.price_completion < 0);
	json_decref(o);
	json_decref(again);
}

/* Tokens of these texts by two public vocabularies (cl100k, o200k), the
 * larger of both; ours is not below, and not without measure above. */
TEST(tokens_are_counted_on_the_safe_side)
{
	static const struct {
		const char *text;
		int tokens;
	} cases[] = {
		{ "The quick brown fox jumps over the lazy dog.", 10 },
		{ "import os\n\ndef fib(n):\n    a, b = 0, 1\n    for _ in "
		  "range(n):\n        a, b = b, a + b\n    return a\n",
		  40 },
		{ "{\"name\":\"run_python\",\"arguments\":{\"code\":\"print(1)"
		  "\"}}",
		  15 },
		{ "3.14159265358979323846264338327950288", 14 },
		{ "aGVsbG8gd29ybGQhIHRoaXMgaXMgYmFzZTY0IG9mIGEgdGV4dA==", 36 },
		{ "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852"
		  "b855",
		  35 },
		{ "internationalization of misunderstood "
		  "antidisestablishmentarianism",
		  10 },
		{ "Größenverhältnisse überprüfen und gegebenenfalls ändern",
		  18 },
		{ "Съешь же ещё этих мягких французских булок, да выпей чаю",
		  35 },
		{ "我能吞下玻璃而不伤身体。", 17 },
		{ "私はガラスを食べられます。それは私を傷つけません。", 28 },
		{ "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요", 25 },
		{ "मैं काँच खा सकता हूँ और मुझे उससे कोई चोट नहीं पहुंचती।", 58 },
		{ "أنا قادر على أكل الزجاج و هذا لا يؤلمني.", 30 },
		{ "👩‍👩‍👧‍👦 🎉🚀 😀", 25 },
		{ "=========================================== | --- | --- |",
		  7 },
		{ "\t\t\tif (!x)\n\t\t\t\treturn -ENOMEM;\n", 10 },
		{ "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
		  16 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t n = tokens_of(cases[i].text, strlen(cases[i].text));

		CHECK(n >= cases[i].tokens);
		CHECK(n <= 4 * cases[i].tokens + 4);
	}
	CHECK_INT(tokens_of("", 0), 0);
}

TEST(a_request_counts_all_its_parts)
{
	json_t *c = conversation();
	json_t *t = json_pack("[{s:s, s:s}]", "name", "f", "description", "d");
	int64_t n = tokens_of_request(c, NULL);

	CHECK(n > 1700 && n < 2000);
	CHECK(tokens_of_request(c, t) > n);
	json_decref(c);
	json_decref(t);
}

TAP_MAIN()
