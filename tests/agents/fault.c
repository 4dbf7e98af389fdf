/* SPDX-License-Identifier: Apache-2.0 */

/* Errors as data: every code goes to JSON and comes back. */

#include "tests/tap.h"

#include "loop/fault.h"

TEST(every_code_comes_back)
{
	for (int c = FAULT_NOT_FOUND; c < FAULTS; c++) {
		struct fault f = { 0 };
		struct fault g = { 0 };
		struct err err = { 0 };
		json_t *o;

		fault_set(&f, (enum fault_code)c, "number %d", c);
		f.agent = strdup("a/b");
		f.cause = json_pack("{s:s, s:s}", "code", "internal", "message",
				    "deeper");
		o = fault_json(&f);
		CHECK(fault_load(&g, o, &err) == 0);
		CHECK_INT((int)g.code, c);
		CHECK_STR(g.message, f.message);
		CHECK_STR(g.agent, "a/b");
		CHECK(g.message_id == NULL);
		CHECK(json_equal(g.cause, f.cause));
		CHECK(g.is_retryable == f.is_retryable);
		json_decref(o);
		fault_done(&f);
		fault_done(&g);
	}
}

TEST(what_is_no_fault_is_refused)
{
	struct err err = { 0 };
	struct fault f = { 0 };
	json_t *o = json_pack("{s:s, s:s}", "code", "nonsense", "message", "x");

	CHECK(fault_load(&f, o, &err) < 0);
	CHECK_HAS(err.text, "nonsense");
	json_decref(o);
}

TAP_MAIN()
