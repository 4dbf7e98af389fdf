/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests of Docker's face that ask and look at the answer. */

#include "base/json.h"
#include "tests/face/docker-fake.h"
#include "tests/tap.h"

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/*
 * Asks, checks the status and a part of the answer (NULL: none), which is
 * UTF-8; an error is a message.
 */
static void expect(const char *method, const char *url, const char *body,
		   int status, const char *part)
{
	struct http_request *r = fake_ask(method, url, body);

	if (r->status != status)
		printf("# %s %s %s: %s\n", method, url, body ? body : "",
		       fake_out(r));
	CHECK_INT(r->status, status);
	CHECK(utf8_check(fake_out(r), strlen(fake_out(r))));
	if (part)
		CHECK_HAS(fake_out(r), part);
	if (status >= 400) {
		CHECK_STR(r->type, "application/json");
		CHECK_HAS(fake_out(r), "{\"message\":\"");
	}
	fake_done(r);
}
