/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The document of ORDER_PREPARE, which the front wrote from what a client
 * sent. What is accepted has an id and a face, and paths that are absolute.
 */

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"
#include "serve/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct err err = { 0 };
	struct request r;
	char *json;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (request_parse(text, size, &r, &err) == 0) {
		MUST(strlen(r.run) == 32 && r.face[0]);
		MUST(!(r.exec && r.box_only));
		MUST(r.spec->is_served);
		for (size_t i = 0; i < r.spec->n_binds; i++)
			MUST(r.spec->binds[i].source[0] == '/');
		MUST(r.is_sweep || r.n_watches == 0);
		MUST(!r.is_sweep || (r.spec->n_binds == 0 && !r.exec));
		for (size_t i = 0; i < r.n_watches; i++)
			MUST(r.watches[i].source[0] == '/' &&
			     strlen(r.watches[i].seal) == 64);
		json = cordon_spec_json(r.spec);
		MUST(json && utf8_check(json, strlen(json)));
		free(json);
	} else {
		MUST(err.code > 0 && err.text[0]);
	}
	request_done(&r);
	free(text);
	return 0;
}
