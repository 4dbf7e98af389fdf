/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Code with a directive in its first line, and its file name: whatever is
 * accepted stays in the workspace. The first byte chooses whether the bytes
 * are the code or the name.
 */

#include <stdlib.h>
#include <string.h>

#include <cordon/cordon.h>

#include "box/prepare.h"
#include "box/spec.h"
#include "fuzz.h"

#define TOP "/workspace/"

static void is_inside(const char *path)
{
	MUST(strncmp(path, TOP, sizeof(TOP) - 1) == 0);
	MUST(path[sizeof(TOP) - 1] && path[strlen(path) - 1] != '/');
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		MUST(strncmp(p, "/../", 4) != 0 && strcmp(p, "/..") != 0);
		MUST(strncmp(p, "/./", 3) != 0 && strcmp(p, "/.") != 0);
	}
	for (const char *p = path; *p; p++)
		MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cordon_spec *s = cordon_spec_new();
	struct prepared p;
	struct err err = { 0 };
	bool is_name = size && data[0] & 1;
	char *text;
	int r;

	if (!s || size == 0 || size > 65536) {
		cordon_spec_free(s);
		return 0;
	}
	size--;
	text = malloc(size + 1);
	if (!text)
		abort();
	memcpy(text, data + 1, size);
	text[size] = '\0';
	r = is_name ? cordon_spec_code(s, "sh", "x", 1, text, NULL)
		    : cordon_spec_code(s, "sh", text, size, NULL, NULL);
	MUST(r == 0);
	if (prepare(s, &p, &err) == 0)
		is_inside(p.code_files[0]);
	else
		MUST(err.code && err.text[0]);
	prepared_done(&p);
	free(text);
	cordon_spec_free(s);
	return 0;
}
