/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a box reads of the image store, and of an image's accounts. The first
 * byte chooses: the index, a configuration, or a file of accounts.
 */

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/image-parse.h"
#include "fuzz.h"
#include "image/digest.h"

#define WANTED "some/thing:1"

static unsigned int entered;

const unsigned int fuzz_doors = 7;

unsigned int fuzz_entered(void)
{
	return entered;
}

static void index_of(const char *text, size_t len)
{
	struct box_image *m = calloc(1, sizeof(*m));
	struct image_wanted w;
	struct err err = { 0 };
	char run[IMAGE_DIGEST];
	char *entry = NULL;

	if (!m)
		abort();
	m->hold = NO_FD;
	MUST(image_wanted_parse(WANTED, &w, &err) == 0);
	if (image_entry_find(text, len, WANTED, &w, &entry, &err) == 0 &&
	    image_entry_read(m, entry, &w, run, &err) == 0) {
		entered |= 1;
		MUST(image_digest_check(m->id) && image_digest_check(run));
		MUST(m->layers.n > 0 && m->layers.n <= WIRE_MAX_LAYERS);
		for (size_t i = 0; i < m->layers.n; i++)
			MUST(strlen(m->layers.v[i]) == 64 &&
			     image_digest_digits(m->layers.v[i]) == 64);
	} else {
		MUST(err.code && err.text[0]);
	}
	free(entry);
	box_image_free(m);
}

static void config_of(const char *text, size_t len)
{
	struct box_image *m = calloc(1, sizeof(*m));
	struct err err = { 0 };

	if (!m)
		abort();
	m->hold = NO_FD;
	if (image_run_read(m, text, len, &err) == 0) {
		entered |= 2;
		MUST(m->workdir && m->user && m->stop_signal);
		for (size_t i = 0; i < m->env.n; i++)
			MUST(strchr(m->env.v[i], '='));
	} else {
		MUST(err.code && err.text[0]);
	}
	box_image_free(m);
}

static void accounts_of(const char *text)
{
	uint32_t id = 0;
	uint32_t gid = 0;
	uint32_t groups[4];
	size_t n;

	for (int i = 0; i < 2; i++)
		if (image_account_find(text, i, "app", &id, &gid)) {
			entered |= 4;
			MUST(id != UINT32_MAX && gid != UINT32_MAX);
			MUST(strstr(text, "app") == text ||
			     strstr(text, "\napp"));
		}
	(void)image_account_find(text, true, "1000", &id, &gid);
	n = image_groups_find(text, "app", 3, groups, 4);
	MUST(n <= 4);
	for (size_t i = 0; i < n; i++)
		MUST(groups[i] != UINT32_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	entered = 0;
	if (size == 0 || size > 65536)
		return 0;
	size--;
	text = malloc(size + 1);
	if (!text)
		abort();
	memcpy(text, data + 1, size);
	text[size] = '\0';
	if (data[0] == 'i')
		index_of(text, size);
	else if (data[0] == 'c')
		config_of(text, size);
	else
		accounts_of(text);
	free(text);
	return 0;
}
