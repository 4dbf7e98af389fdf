/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A request for approval, any bytes. One that is accepted is written and read
 * again as the same, and nothing that is shown of it can steer a terminal. The
 * reader of the desk's answer gets the same bytes.
 */

#include <string.h>

#include "base/json.h"
#include "box/approve.h"
#include "desk/request.h"
#include "fuzz.h"

static void check_shown(const struct buf *out)
{
	MUST(utf8_check(out->data, out->len));
	for (size_t i = 0; i < out->len; i++) {
		unsigned char c = (unsigned char)out->data[i];

		MUST((c >= 0x20 || c == '\n') && c != 0x7f);
		/* C1 controls, and the bidi characters at U+202A to U+202E */
		MUST(c != 0xc2 || (unsigned char)out->data[i + 1] >= 0xa0);
		MUST(memcmp(out->data + i, "\xe2\x80\xae",
			    out->len - i < 3 ? out->len - i : 3) != 0 ||
		     out->len - i < 3);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct approve_answer answer;
	struct request req;
	struct request again;
	struct buf out;
	char one[65];
	char two[65];

	if (approve_parse((const char *)data, size, &answer) == 0)
		MUST(memchr(answer.reason, 0, sizeof(answer.reason)));
	if (request_parse((const char *)data, size, &req, NULL) < 0)
		return 0;
	request_content(&req, one);
	buf_init(&out, 64 << 20);
	request_format(&req, &out);
	MUST(out.error == 0);
	MUST(request_parse(out.data, out.len, &again, NULL) == 0);
	request_content(&again, two);
	MUST(strcmp(one, two) == 0);
	buf_done(&out);
	request_show(&again, 4096, &out);
	request_summary(&again, &out);
	MUST(out.error == 0);
	check_shown(&out);
	buf_done(&out);
	request_done(&req);
	request_done(&again);
	return 0;
}
