/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that runs out at every moment of a call: the nth allocation of ours
 * and of jansson fails, for n = 1 to the last one. Each time there is a right
 * answer, a fault, or no call at all; never a short answer, and with ASan no
 * leak. The linker's --wrap brings the allocations here.
 */

#define TAP_SECONDS 120

#include "tests/tap.h"

#include "base/util.h"
#include "fail-malloc.h"
#include "model-server.h"
#include "model.h"

/* --- one call, from the model's making to its end --- */

#define TAPE                                                                   \
	"{\"recording\":1,\"model\":\"gpt-4o\",\"info\":{\"vision\":false}}\n" \
	"{\"chunks\":[{\"thought\":\"hm\"},\"He\",\"llo\"],\"result\":{"       \
	"\"calls\":[{\"name\":\"f\",\"arguments\":{\"a\":1}}],\"usage\":{"     \
	"\"prompt_tokens\":1,\"cached_tokens\":1}}}\n"
#define STREAM                                                                 \
	"data: {\"id\":\"i\",\"choices\":[{\"delta\":{\"reasoning\":\"hm\","   \
	"\"content\":\"He\xc3\"}}]}\n\n"                                       \
	"data: {\"choices\":[{\"delta\":{\"content\":\"\xbcllo\","             \
	"\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":"    \
	"\"f\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\n"                       \
	"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,"        \
	"\"function\":{\"arguments\":\"1}\"}}]},\"finish_reason\":\"stop\"}]"  \
	"}\n\ndata: [DONE]\n\n"

static struct server server;
static char dir[] = "/tmp/cordon-malloc-XXXXXX";
static char tape[64], copy_path[64];
static json_t *config, *tools;

static int make_openai(struct loop *l, struct model **ret, struct err *err)
{
	return model_openai(l, config, ret, err);
}

static int make_replay(struct loop *l, struct model **ret, struct err *err)
{
	struct model *inner = NULL;
	int r = model_replay(l, tape, &inner, err);

	if (r < 0)
		return r;
	r = model_record(l, inner, copy_path, ret, err);
	if (r < 0)
		model_unref(inner);
	return r;
}

struct kind {
	int (*make)(struct loop *l, struct model **ret, struct err *err);
	const char *content;
};

static void check_right(const struct said *s, const struct kind *k)
{
	CHECK_STR(s->r.content, k->content);
	CHECK_STR(s->r.thought, "hm");
	CHECK_INT((int)json_array_size(s->r.calls), 1);
	CHECK_STR(call_text(s, 0, "arguments"), "{\"a\":1}");
}

/* What the test keeps of it is not counted. */
static void keep_done(void *arg, const struct model_result *r,
		      const struct fault *why)
{
	long n = fail_at;

	fail_at = 0;
	on_done(arg, r, why);
	fail_at = n;
}

/* Whether the answer came; else there is a fault, or no call. */
static bool use(struct loop *l, struct model *m, const struct model_request *q,
		const struct kind *k)
{
	static const struct model_events events = { on_chunk, keep_done };
	struct said s = { 0 };
	bool is_right;

	if (!model_start(m, q, &events, &s))
		return false;
	(void)loop_run(l, said_is_over, &s);
	CHECK_INT(s.n_ends, 1);
	is_right = s.r.calls != NULL;
	CHECK(is_right == (s.why.code == FAULT_NONE));
	if (is_right)
		check_right(&s, k);
	said_done(&s);
	return is_right;
}

static bool call_once(const struct kind *k)
{
	struct model_request q = { .is_stream = true, .tools = tools };
	struct loop *l = NULL;
	struct model *m = NULL;
	struct err err = { 0 };
	bool is_right = false;

	q.messages = json_pack("[{s:s, s:s}]", "role", "user", "content", "x");
	if (q.messages && loop_new(&l, &err) == 0 && k->make(l, &m, &err) == 0)
		is_right = use(l, m, &q, k);
	else
		CHECK(!q.messages || err.code != 0);
	model_unref(m);
	loop_free(l);
	json_decref(q.messages);
	return is_right;
}

static void set_up(void)
{
	static const struct reply yes = { 200, NULL, STREAM, NULL, 0, 0 };
	static struct reply all[2000];
	FILE *f;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all[i] = yes;
	server = serve(all, ARRAY_SIZE(all));
	json_set_alloc_funcs(__wrap_malloc, free);
	(void)setenv("no_proxy", "*", 1);
	(void)setenv("THE_KEY", "sk-0123456789", 1);
	config = json_pack("{s:s, s:s, s:{s:s}, s:i, s:f}", "model", "gpt-4o",
			   "base_url", server.url, "api_key", "env", "THE_KEY",
			   "max_retries", 1, "retry_delay", 0.001);
	tools = json_pack("[{s:s, s:s, s:{s:s}}]", "name", "f", "description",
			  "d", "parameters", "type", "object");
	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(tape, sizeof(tape), "%s/tape", dir);
	(void)snprintf(copy_path, sizeof(copy_path), "%s/copy", dir);
	f = fopen(tape, "we");
	(void)fputs(TAPE, f);
	(void)fclose(f);
}

static void run_out(const struct kind *k)
{
	char command[64];
	long most;
	long right = 0;

	set_up();
	CHECK(call_once(k)); /* libraries have their own first time */
	calls = 0;
	CHECK(call_once(k));
	most = calls;
	CHECK(most > 50);
	for (long n = 1; n <= most; n++) {
		calls = 0;
		fail_at = n;
		right += call_once(k);
		fail_at = 0;
		if (tap_bad) {
			printf("# at allocation %ld of %ld\n", n, most);
			break;
		}
	}
	printf("# %ld allocations, %ld right answers all the same\n", most,
	       right);
	CHECK(right < most);
	server_end(&server);
	if (__lsan_do_recoverable_leak_check)
		CHECK(__lsan_do_recoverable_leak_check() == 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(system(command) == 0);
}

TEST(a_call_to_a_server)
{
	static const struct kind k = { make_openai, "He\xc3\xbcllo" };

	run_out(&k);
}

TEST(a_recording_played_and_written)
{
	static const struct kind k = { make_replay, "Hello" };

	run_out(&k);
}

TAP_MAIN()
