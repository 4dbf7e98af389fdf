/* SPDX-License-Identifier: Apache-2.0 */

/* What a model sees of a history: calls and results stay together. */

#include "tests/tap.h"

#include "agent/memory.h"
#include "tests/agents/fakes.h"

static struct context *make(const char *config)
{
	static const struct say nothing[] = { { .is_end = true } };
	static struct model *m;
	struct err err = { 0 };
	json_t *c = doc(config);
	struct context *ret = NULL;

	if (!m)
		m = fake_model(the_loop(), nothing);
	CHECK_INT(context_new(c, m, &ret, &err), 0);
	CHECK_STR(err.text, "");
	json_decref(c);
	return ret;
}

/* u: a user; c: calls; t: results; a: the assistant's text. */
static const struct {
	char letter;
	const char *message;
} forms[] = {
	{ 'u', "{'role':'user','content':'u'}" },
	{ 'c', "{'role':'assistant','content':null,'calls':[{'id':'1'}]}" },
	{ 't', "{'role':'tool','results':[]}" },
	{ 'a', "{'role':'assistant','content':'a'}" },
};

static void add(struct context *c, const char *what)
{
	for (; *what; what++)
		for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
			if (forms[i].letter == *what)
				context_add(c, doc(forms[i].message));
}

/* The same letters; '#' is a note. */
static const char *seen(const struct context *c)
{
	static char line[128];
	json_t *list = context_messages(c);
	size_t i;
	json_t *m;

	line[0] = '\0';
	json_array_foreach(list, i, m)
	{
		const char *role = json_string_value(
			json_object_get(m, "role"));
		const char *source = json_string_value(
			json_object_get(m, "source"));

		line[i] = json_object_get(m, "calls") ? 'c' : role[0];
		if (source && strcmp(source, "context") == 0)
			line[i] = '#';
		line[i + 1] = '\0';
	}
	json_decref(list);
	return line;
}

static const struct {
	const char *config, *history, *seen;
} cases[] = {
	{ "{}", "uctau", "uctau" },
	{ "{'kind':'unbounded'}", "tua", "ua" },
	{ "{'kind':'last','n':2}", "uuuau", "au" },
	{ "{'kind':'last','n':3}", "uctau", "au" },
	{ "{'kind':'last','n':4}", "uctau", "ctau" },
	{ "{'kind':'last','n':1}", "uct", "ct" },
	{ "{'kind':'last','n':1}", "uctt", "ctt" },
	{ "{'kind':'last','n':9}", "uct", "uct" },
	{ "{'kind':'last','n':2}", "", "" },
	{ "{'kind':'last','n':5}", "ttu", "u" },
	{ "{'kind':'head_tail','head':1,'tail':2}", "uauau", "u#au" },
	{ "{'kind':'head_tail','head':1,'tail':2}", "uau", "uau" },
	{ "{'kind':'head_tail','head':2,'tail':1}", "uctau", "u#u" },
	{ "{'kind':'head_tail','head':3,'tail':1}", "uctau", "uct#u" },
	{ "{'kind':'head_tail','head':1,'tail':1}", "uauct", "u#ct" },
	{ "{'kind':'head_tail','head':9,'tail':9}", "uctau", "uctau" },
	{ "{'kind':'head_tail','head':1,'tail':1}", "ct", "ct" },
	/* ten tokens a message */
	{ "{'kind':'tokens','max':30}", "uauau", "uau" },
	{ "{'kind':'tokens','max':20}", "uctau", "au" },
	{ "{'kind':'tokens','max':35}", "uctau", "au" },
	{ "{'kind':'tokens','max':40}", "uctau", "ctau" },
	{ "{'kind':'tokens','max':1}", "uct", "ct" },
	{ "{'kind':'tokens','max':1}", "", "" },
};

TEST(calls_and_results_stay_together)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct context *c = make(cases[i].config);

		add(c, cases[i].history);
		if (strcmp(seen(c), cases[i].seen) != 0)
			printf("# %s of %s\n", cases[i].config,
			       cases[i].history);
		CHECK_STR(seen(c), cases[i].seen);
		context_free(c);
	}
}

/* Twelve groups by chance, the same in each run. */
static void some_history(unsigned int *seed, char ret[32])
{
	static const char *const groups[] = { "u", "a", "ct" };

	ret[0] = '\0';
	for (int i = 0; i < 12; i++) {
		*seed = *seed * 1103515245 + 12345;
		strcat(ret, groups[(*seed >> 16) % 3]);
	}
}

static bool is_whole(const char *line)
{
	bool is_good = line[0] != 't' && line[0] != '\0';

	for (size_t i = 0; line[i]; i++) {
		if (line[i] == 't')
			is_good &= i > 0 && line[i - 1] == 'c';
		if (line[i] == 'c')
			is_good &= line[i + 1] == 't';
	}
	return is_good;
}

/* Whatever the history and the limit: no result without its call. */
TEST(no_history_starts_with_a_result)
{
	static const char *const kinds[][2] = {
		{ "{'kind':'last','n':", "}" },
		{ "{'kind':'head_tail','tail':2,'head':", "}" },
		{ "{'kind':'tokens','max':", "0}" },
	};
	unsigned int seed = 7;

	for (int round = 0; round < 600; round++) {
		const char *const *kind = kinds[round % 3];
		char config[80];
		char history[32];
		struct context *c;

		some_history(&seed, history);
		(void)snprintf(config, sizeof(config), "%s%d%s", kind[0],
			       1 + round % 11, kind[1]);
		c = make(config);
		add(c, history);
		CHECK(is_whole(seen(c)));
		context_free(c);
	}
}

TEST(a_note_says_how_many_were_left_out)
{
	struct context *c = make("{'kind':'head_tail','head':1,'tail':1}");
	json_t *list;

	add(c, "uauau");
	list = context_messages(c);
	CHECK_HAS(json_string_value(
			  json_object_get(json_array_get(list, 1), "content")),
		  "3 messages were left out");
	json_decref(list);
	context_free(c);
}

TEST(rewind_puts_the_history_back)
{
	struct context *c = make("{}");
	size_t mark;
	json_t *since;

	add(c, "ua");
	mark = context_mark(c);
	add(c, "uct");
	since = context_since(c, mark);
	CHECK_INT((long long)json_array_size(since), 3);
	context_rewind(c, mark);
	CHECK_STR(seen(c), "ua");
	context_clear(c);
	CHECK_STR(seen(c), "");
	json_decref(since);
	context_free(c);
}

TEST(state_comes_back_with_what_is_not_known)
{
	struct context *a = make("{}");
	struct context *b = make("{}");
	struct err err = { 0 };
	json_t *s;
	json_t *t;

	add(a, "uct");
	s = context_save(a);
	(void)json_object_set_new(s, "later", json_integer(7));
	CHECK_INT(context_load(b, s, &err), 0);
	CHECK_STR(seen(b), "uct");
	t = context_save(b);
	CHECK(json_equal(s, t));
	(void)json_object_set_new(s, "version", json_integer(2));
	CHECK(context_load(b, s, &err) < 0);
	CHECK_HAS(err.text, "version 2");
	json_decref(s);
	s = doc("{'type':'memory.list','version':1}");
	CHECK(context_load(b, s, &err) < 0);
	CHECK_STR(seen(b), "uct");
	json_decref(s);
	json_decref(t);
	context_free(a);
	context_free(b);
}

TEST(settings_that_cannot_be_are_refused)
{
	static const char *const bad[][2] = {
		{ "{'kind':'digest'}", "/context/kind" },
		{ "{'kind':'summary'}", "messages or tokens is needed" },
		{ "{'kind':'summary','messages':4,'keep':4}", "/context/keep" },
		{ "{'kind':'summary','messages':0}", "/messages" },
		{ "{'kind':'last'}", "/context/n" },
		{ "{'kind':'last','n':0}", "/n" },
		{ "{'kind':'head_tail','head':1}", "head and tail" },
		{ "{'kind':'tokens'}", "/context/max" },
		{ "{'size':3}", "/size: no such setting" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		static const struct say nothing[] = { { .is_end = true } };
		struct model *m = fake_model(the_loop(), nothing);
		struct context *c = NULL;
		struct err err = { 0 };
		json_t *config = doc(bad[i][0]);

		CHECK(context_new(config, m, &c, &err) < 0);
		CHECK_HAS(err.text, bad[i][1]);
		CHECK(c == NULL);
		json_decref(config);
		model_unref(m);
	}
}

TEST(a_list_memory_keeps_and_gives)
{
	json_t *config = doc("{'entries':['tea, not coffee',"
			     "{'content':'two','metadata':{'by':'ann'}}]}");
	struct memory *m = NULL;
	struct memory *n = NULL;
	struct err err = { 0 };
	char three[4000] = "";
	json_t *found;
	json_t *shown;
	json_t *s;

	/* Longer than a line. */
	memset(three, 'x', sizeof(three) - 1);
	CHECK_INT(memory_new(config, &m, &err), 0);
	CHECK_INT(memory_add(m, three, &err), 0);
	found = memory_query(m, "tea");
	CHECK_INT((long long)json_array_size(found), 3);
	shown = memory_to_model(found);
	CHECK_HAS(json_string_value(json_object_get(shown, "content")),
		  "<untrusted from=\"memory\">\n1. tea, not coffee\n2. two");
	CHECK_HAS(json_string_value(json_object_get(shown, "content")), three);
	CHECK_STR(json_string_value(json_object_get(shown, "role")), "user");
	s = memory_save(m);
	CHECK_INT(memory_new(NULL, &n, &err), 0);
	CHECK_INT(memory_load(n, s, &err), 0);
	json_decref(found);
	found = memory_query(n, "");
	CHECK_STR(json_string_value(json_object_get(
			  json_object_get(json_array_get(found, 1), "metadata"),
			  "by")),
		  "ann");
	memory_clear(n);
	json_decref(found);
	found = memory_query(n, "");
	CHECK_INT((long long)json_array_size(found), 0);
	CHECK(memory_to_model(found) == NULL);
	json_decref(found);
	json_decref(shown);
	json_decref(s);
	json_decref(config);
	memory_free(m);
	memory_free(n);
}

TEST(a_memory_has_an_end)
{
	struct memory *m = NULL;
	struct err err = { 0 };
	char *big = calloc(1, 70000);
	int r = 0;
	int n = 0;

	CHECK_INT(memory_new(NULL, &m, &err), 0);
	memset(big, 'x', 69999);
	CHECK(memory_add(m, big, &err) < 0);
	while (r == 0 && n < 5000) {
		r = memory_add(m, "x", &err);
		n++;
	}
	CHECK(r < 0 && n == 1025);
	free(big);
	memory_free(m);
}

TAP_MAIN()
