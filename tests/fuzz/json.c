/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON strings from any bytes: the text is valid UTF-8, has no byte that a
 * string may not have, and every escape in it is one.
 */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"

/* The string at p; where it ends. */
static const char *string_end(const char *p)
{
	MUST(*p == '"');
	for (p++; *p != '"'; p++) {
		MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
		if (*p != '\\')
			continue;
		p++;
		MUST(*p && strchr("\"\\bfnrtu", *p));
		for (int i = 0; *p == 'u' && i < 4; i++)
			MUST(isxdigit((unsigned char)p[i + 1]));
	}
	return p + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out;
	struct json j = { .out = &out };
	const char *p;

	buf_init(&out, 8 * size + 64);
	json_open(&j, NULL, '[');
	json_bytes(&j, NULL, data, size);
	json_base64(&j, NULL, data, size);
	json_close(&j, ']');
	MUST(out.error == 0);
	MUST(strlen(out.data) == out.len);
	MUST(utf8_check(out.data, out.len));
	MUST(out.data[0] == '[');
	p = string_end(out.data + 1);
	MUST(*p == ',');
	p = string_end(p + 1);
	MUST(strcmp(p, "]") == 0);
	buf_done(&out);
	return 0;
}
