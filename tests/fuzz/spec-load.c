/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settings as a JSON object, as a library's caller or a client of the daemon
 * writes them. Whatever is accepted can be printed, and is a document.
 */

#include <stdlib.h>
#include <string.h>

#include <cordon/cordon.h>

#include "base/json.h"
#include "box/spec.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error err = { 0 };
	char *json;

	if (!s)
		abort();
	/* Else a file of variables would be read from the machine. */
	s->is_served = true;
	if (cordon_spec_set_json(s, (const char *)data, size, &err) < 0) {
		MUST(err.code > 0);
		MUST(err.text[0] && strlen(err.text) < sizeof(err.text));
	}
	json = cordon_spec_json(s);
	MUST(json && utf8_check(json, strlen(json)));
	MUST(s->cpu_period_us > 0);
	for (size_t i = 0; i < s->n_binds; i++)
		MUST(s->binds[i].source[0] == '/');
	free(json);
	cordon_spec_free(s);
	return 0;
}
