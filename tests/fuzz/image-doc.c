/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The documents and names of images. The first byte chooses which reader gets
 * the rest. What is accepted is written and read again as the same, and no
 * name of a file or an image that comes out leads anywhere else.
 */

#include <stdlib.h>
#include <string.h>

#include "image/config.h"
#include "image/digest.h"
#include "image/entry.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "image/store.h"
#include "fuzz.h"

static void is_below(const char *path)
{
	MUST(path[0] != '/' && strlen(path) < 4096);
	for (const char *p = path; *p;) {
		size_t len = strcspn(p, "/");

		MUST(len > 0 && len < 256);
		MUST(!(len == 1 && p[0] == '.'));
		MUST(!(len == 2 && p[0] == '.' && p[1] == '.'));
		p += len;
		MUST(!*p || p[1]);
		p += *p == '/';
	}
}

static void entry(const char *text)
{
	static struct image_entry e;
	struct err err = { 0 };

	if (image_entry_parse(text, &e, &err) < 0) {
		MUST(err.code == IMAGE_REFUSED && err.text[0]);
		return;
	}
	if (e.kind == IMAGE_ENTRY_NONE)
		return;
	is_below(e.path);
	MUST(e.base <= strlen(e.path));
	MUST(!strchr(e.path + e.base, '/'));
	MUST((e.kind == IMAGE_ENTRY_ROOT) <= !*e.path);
	MUST(e.kind != IMAGE_ENTRY_FILE || *e.path);
	MUST(e.kind != IMAGE_ENTRY_GONE || e.path[e.base]);
}

static void name(const char *text)
{
	struct image_ref ref;
	struct image_ref again;
	char whole[IMAGE_REF_MAX];

	if (image_ref_parse(text, &ref, NULL) < 0)
		return;
	image_ref_format(&ref, whole);
	for (const char *p = whole; *p; p++)
		MUST(*p > 0x20 && *p < 0x7f);
	MUST(!strstr(ref.name, "..") && !strstr(whole, "//"));
	MUST(strchr(whole, '/') && *whole != '/');
	MUST(*ref.tag || image_digest_check(ref.digest));
	if (!*ref.tag)
		return;
	MUST(image_ref_parse(whole, &again, NULL) == 0);
	MUST(strcmp(again.name, ref.name) == 0);
	MUST(strcmp(again.tag, ref.tag) == 0);
	MUST(image_ref_parse(image_ref_short(whole), &again, NULL) == 0);
	MUST(strcmp(again.name, ref.name) == 0);
}

static void config(const char *text, size_t len)
{
	struct image_config c;
	struct image_config again;
	struct err err = { 0 };
	struct buf out;

	if (image_config_parse(text, len, &c, &err) < 0) {
		MUST(err.code && !c.os);
		return;
	}
	for (size_t i = 0; i < c.diff_ids.n; i++)
		MUST(image_digest_check(c.diff_ids.v[i]));
	buf_init(&out, (size_t)64 << 20);
	image_config_format(&c, &out);
	MUST(out.error == 0);
	MUST(image_config_parse(out.data, out.len, &again, &err) == 0);
	MUST(again.env.n == c.env.n && again.labels.n == c.labels.n);
	MUST(strcmp(again.user, c.user) == 0);
	MUST(again.n_history == c.n_history);
	image_config_done(&again);
	image_config_done(&c);
	buf_done(&out);
}

static void change(const char *text)
{
	struct image_config c = { 0 };
	struct err err = { 0 };

	if (image_config_change(&c, text, &err) < 0)
		MUST(err.code && err.text[0]);
	for (size_t i = 0; i < c.env.n; i++)
		MUST(strchr(c.env.v[i], '=') > c.env.v[i]);
	image_config_done(&c);
}

static void manifests(const char *text, size_t len)
{
	struct image_plans plans = { 0 };
	struct image_descs descs;
	struct err err = { 0 };

	if (image_plans_parse_docker(text, len, &plans, &err) == 0)
		MUST(plans.n > 0 && plans.v[0].config);
	image_plans_done(&plans);
	if (image_descs_parse(text, len, &descs, &err) < 0)
		return;
	for (size_t i = 0; i < descs.n; i++)
		MUST(image_digest_check(descs.v[i].digest));
	if (image_descs_choose(&descs, len & 1, &err) == 0)
		MUST(descs.n > 0);
	image_descs_done(&descs);
}

static void plan(const char *text, size_t len)
{
	struct image_plans plans = { 0 };
	struct image_plan *p = image_plans_add(&plans);
	struct err err = { 0 };

	MUST(p);
	if (image_plan_parse(text, len, p, &err) == 0) {
		is_below(p->config);
		for (size_t i = 0; i < p->layers.n; i++)
			is_below(p->layers.v[i]);
	}
	image_plans_done(&plans);
}

static void store_index(const char *text, size_t len)
{
	struct image_list list;
	struct image_list again;
	struct err err = { 0 };
	struct buf out;

	if (image_index_parse(text, len, &list, &err) < 0)
		return;
	buf_init(&out, (size_t)64 << 20);
	image_index_format(&list, &out);
	MUST(out.error == 0);
	MUST(image_index_parse(out.data, out.len, &again, &err) == 0);
	MUST(again.n == list.n);
	for (size_t i = 0; i < list.n; i++)
		MUST(image_digest_check(list.v[i].id));
	image_list_done(&again);
	image_list_done(&list);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;
	size_t len;

	if (size == 0)
		return 0;
	len = size - 1;
	text = malloc(size);
	MUST(text);
	memcpy(text, data + 1, len);
	text[len] = '\0';
	switch (data[0] % 8) {
	case 0:
		manifests(text, len);
		break;
	case 1:
		plan(text, len);
		break;
	case 2:
		config(text, len);
		break;
	case 3:
		name(text);
		break;
	case 4:
		entry(text);
		break;
	case 5:
		store_index(text, len);
		break;
	default:
		change(text);
		break;
	}
	free(text);
	return 0;
}
