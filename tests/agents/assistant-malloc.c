/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that runs out in the middle of a turn: the nth allocation fails, for
 * each n. The turn has exactly one end; it is good and the history has all of
 * it, or it is an error and the history has nothing; and the next turn works.
 */

#include "tests/tap.h"

#include "tests/agents/fakes.h"

static long calls, fail_at;

static bool is_failing(void)
{
	return fail_at && !fake_quiet && ++calls == fail_at;
}

/* The linker gives us these names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

void *__wrap_malloc(size_t size)
{
	return is_failing() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return is_failing() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return is_failing() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *text)
{
	return is_failing() ? NULL : __real_strdup(text);
}
/* NOLINTEND(bugprone-reserved-identifier) */

#define CALL(id, name)                                                         \
	"{\"id\":\"" id "\",\"name\":\"" name "\",\"arguments\":\"{}\"}"

static const struct scenario {
	const char *config;
	const struct say *script;
	size_t history; /* when it went well */
	size_t or ;     /* or this: a decision that was not read is a no */
	bool is_executor;
} scenarios[] = {
	{ "{'max_tool_iterations':2,'stream':true,"
	  "'memory':[{'entries':['tea']}]}",
	  (const struct say[]){
		  { .calls = "[" CALL("1", "echo") "," CALL("2", "fail") "]",
		    .thought = "hm" },
		  { .content = "end", .chunks = { "e", "nd" } },
		  { .content = "again", .is_last = true } },
	  4, 0, false },
	{ "{'summary_format':'{tool_name}: {result}'}",
	  (const struct say[]){
		  { .calls = "[" CALL("1", "echo") "," CALL("2", "echo") "]" },
		  { .content = "again", .is_last = true } },
	  3, 0, false },
	{ "{'max_tool_iterations':2,"
	  "'context':{'kind':'summary','messages':2}}",
	  (const struct say[]){
		  { .calls = "[" CALL("1", "echo") "]" },
		  { .content = "so far" },
		  { .content = "end" },
		  { .content = "again", .is_end = true, .is_last = true } },
	  4, 0, false },
	{ "{'handoffs':['bob']}",
	  (const struct say[]){ { .calls = "[" CALL("1", "echo") "," CALL(
					  "2", "transfer_to_bob") "]" },
				{ .content = "again", .is_last = true } },
	  3, 0, false },
	{ "{'output_schema':{'type':'object','properties':{'n':"
	  "{'type':'integer'}}}}",
	  (const struct say[]){ { .content = "{\"n\":\"x\"}" },
				{ .content = "{\"n\":1}" },
				{ .content = "{\"n\":2}", .is_last = true } },
	  2, 0, false },
	{ "{}",
	  (const struct say[]){ { .calls = "[" CALL("1", "ask") "]" },
				{ .content = "again", .is_last = true } },
	  0, 0, false },
	{ "{'context':{'kind':'head_tail','head':1,'tail':1},"
	  "'max_retries_on_error':1}",
	  (const struct say[]){
		  { .content = "```python\nx\n```\n" },
		  { .content = "{\"retry\":true,\"reason\":\"r\"}" },
		  { .content = "```python\ny\n```\n" },
		  { .content = "end" },
		  { .content = "again", .is_last = true } },
	  7, 5, true },
};

static size_t history(struct agent *a)
{
	json_t *state = agent_save(a);
	size_t n = json_array_size(
		json_object_get(json_object_get(state, "context"), "messages"));

	json_decref(state);
	return n;
}

/* Whether the nth allocation was made at all. */
static bool fails(const struct scenario *s, long n)
{
	struct model *m = fake_model(the_loop(), s->script);
	struct toolset *t = fake_tools(the_loop(), "echo fail ask run_code");
	json_t *config = doc(s->config);
	json_t *list = json_pack("[o]", chat_text("user", "go"));
	struct heard h = { 0 };
	struct agent *a = NULL;
	struct turn *turn;
	bool has_failed;

	t->detail = doc("{'status':'error','exit_code':1,'output':'x'}");
	CHECK((s->is_executor ? agent_executor
			      : agent_assistant)(the_loop(), "ann", config, m,
						 t, &a, NULL) == 0);
	heard_begin(&h);
	calls = 0;
	fail_at = n;
	turn = turn_begin(a, list,
			  &(struct turn_asker){ "t", "r", NULL, &hears, &h });
	(void)loop_run(the_loop(), is_heard, &h);
	has_failed = calls >= n;
	fail_at = 0;

	CHECK_INT(h.ends, turn ? 1 : 0);
	CHECK(!turn || h.chat || h.pending || h.why.code);
	CHECK(history(a) == (h.chat ? s->history : 0) ||
	      (h.chat && s->or &&history(a) == s->or));
	if (!has_failed)
		CHECK(h.chat || h.pending);
	/* The agent is well again: the last answer is for whoever asks now. */
	if (!h.pending) {
		while (!m->script[m->at].is_last)
			m->at++;
		ask(a, "again", &h);
		CHECK(h.chat != NULL);
	}
	json_decref(list);
	json_decref(config);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
	return has_failed;
}

TEST(every_allocation_of_a_turn_may_fail)
{
	json_set_alloc_funcs(__wrap_malloc, free);
	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
		long n = 1;

		while (n < 5000 && fails(&scenarios[i], n))
			n++;
		printf("# %zu: %ld allocations\n", i, n - 1);
		CHECK(n > 50 && n < 5000);
	}
	if (__lsan_do_recoverable_leak_check)
		CHECK(__lsan_do_recoverable_leak_check() == 0);
}

TAP_MAIN()
