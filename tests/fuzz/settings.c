/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settings: lines of NAME=VALUE, as a caller could give them, with numbers,
 * sizes and times among them. Whatever is accepted can be printed, and the
 * document is valid UTF-8.
 */

#include <stdlib.h>
#include <string.h>

#include <cordon/cordon.h>

#include "base/json.h"
#include "base/num.h"
#include "box/settings.h"
#include "box/spec.h"
#include "fuzz.h"

static void numbers(const char *text)
{
	uint64_t v = 1;

	if (num_parse(text, 1000, &v) == 0)
		MUST(v <= 1000);
	if (num_parse_size(text, &v) == 0)
		MUST(v <= UINT64_MAX / 2);
	if (num_parse_duration(text, &v) == 0)
		MUST(v <= UINT64_MAX / 2);
	(void)num_parse_milli(text, &v);
}

static void one_line(struct cordon_spec *s, char *line)
{
	struct cordon_error err = { 0 };
	char *eq = strchr(line, '=');

	if (eq)
		*eq++ = '\0';
	numbers(eq ? eq : line);
	/* A file of variables would be read from the machine. */
	if (setting_find(line) == setting_find("env-file"))
		return;
	if (cordon_spec_set(s, line, eq, &err) < 0) {
		MUST(err.code > 0);
		MUST(err.text[0] && strlen(err.text) < sizeof(err.text));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cordon_spec *s = cordon_spec_new();
	char *text = malloc(size + 1);
	char *save = NULL;
	char *json;

	if (!s || !text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		one_line(s, line);
	json = cordon_spec_json(s);
	MUST(json && utf8_check(json, strlen(json)));
	MUST(s->cpu_period_us > 0);
	free(json);
	free(text);
	cordon_spec_free(s);
	return 0;
}
