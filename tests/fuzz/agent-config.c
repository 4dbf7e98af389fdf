/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files of agents, in both forms. Whatever is accepted can be dumped, and the
 * dump loads as the same; what AutoGen is said to have written is imported or
 * refused, and never copied where it holds a key.
 */

#include <stdlib.h>
#include <string.h>

#include "agentcmd/config.h"
#include "agentcmd/doc.h"
#include "fuzz.h"

static void again(const struct config *c)
{
	struct err err = { 0 };
	struct config d;
	char *once = config_dump(c);
	char *twice;

	MUST(once);
	MUST(config_parse("dump", once, strlen(once), NULL, &d, &err) == 0);
	twice = config_dump(&d);
	MUST(twice && strcmp(once, twice) == 0);
	free(once);
	free(twice);
	config_done(&d);
}

static void import(const char *text, size_t size)
{
	struct err err = { 0 };
	struct doc d;
	json_t *left = NULL;
	json_t *ours;

	if (doc_parse("fuzz", text, size, &d, &err) < 0)
		return;
	ours = config_import(d.root, &left, &err);
	MUST(ours || err.code > 0);
	json_decref(ours);
	json_decref(left);
	doc_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct config c;

	if (config_parse("fuzz", (const char *)data, size, NULL, &c, &err) ==
	    0) {
		again(&c);
		config_done(&c);
	} else {
		MUST(err.code > 0);
		MUST(err.text[0] && strlen(err.text) < sizeof(err.text));
	}
	import((const char *)data, size);
	return 0;
}
