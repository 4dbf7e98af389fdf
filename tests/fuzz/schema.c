/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Schemas of tools, and what is held against them: two JSON values, one after
 * the other. A schema that was found good is used; the answer says where.
 */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tool/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int flags = JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK |
			  JSON_REJECT_DUPLICATES;
	struct err err = { 0 };
	json_error_t at;
	json_t *schema = json_loadb((const char *)data, size, flags, &at);
	json_t *value = NULL;
	size_t used = schema ? (size_t)at.position : size;

	if (schema && used < size)
		value = json_loadb((const char *)data + used, size - used,
				   flags, &at);
	if (schema && schema_check(schema, &err) == 0) {
		MUST(err.code == 0);
		if (value && schema_validate(schema, value, &err) < 0)
			MUST(err.text[0] == '/');
	} else if (schema) {
		MUST(strncmp(err.text, "schema: /", 9) == 0);
	}
	json_decref(schema);
	json_decref(value);
	return 0;
}
