/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/doc.h"

#include <errno.h>
#include <libfyaml.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"

#define MAX_KEYS 32

int doc_open(struct doc *d, const char *text, size_t len, struct err *err)
{
	struct fy_parse_cfg cfg = { .flags = FYPCF_QUIET | FYPCF_JSON_FORCE };

	*d = (struct doc){ 0 };
	d->diag = fy_diag_create(NULL);
	if (!d->diag)
		return err_set(err, ENOMEM, "out of memory");
	/* Else it prints, with the text in it. */
	fy_diag_set_collect_errors(d->diag, true);
	cfg.diag = d->diag;
	if (len > 0)
		d->tree = fy_document_build_from_string(&cfg, text, len);
	/* A second document is an error that still yields the first. */
	if (!d->tree || fy_diag_got_error(d->diag) ||
	    !fy_document_root(d->tree)) {
		void *at = NULL;
		struct fy_diag_error *e = fy_diag_errors_iterate(d->diag, &at);

		if (e)
			(void)err_set(err, EINVAL, "line %d, column %d: %s",
				      e->line, e->column, e->msg);
		else
			(void)err_set(err, EINVAL, "not a JSON document");
		doc_close(d);
		return -EINVAL;
	}
	return 0;
}

struct fy_node *doc_root(const struct doc *d)
{
	return fy_document_root(d->tree);
}

void doc_close(struct doc *d)
{
	fy_document_destroy(d->tree);
	fy_diag_destroy(d->diag);
	*d = (struct doc){ 0 };
}

/* Which key of the table this is, or -1. */
static int key_index(struct fy_node *key, const struct doc_key *keys,
		     size_t n_keys)
{
	size_t len = 0;
	const char *name = fy_node_get_scalar(key, &len);

	for (size_t i = 0; name && i < n_keys; i++)
		if (strlen(keys[i].name) == len &&
		    memcmp(name, keys[i].name, len) == 0)
			return (int)i;
	return -1;
}

int doc_mapping(struct fy_node *node, const struct doc_key *keys, size_t n_keys,
		void *to, struct err *err)
{
	bool seen[MAX_KEYS] = { false };
	struct fy_node_pair *pair;
	void *at = NULL;

	if (!node || !fy_node_is_mapping(node) || n_keys > MAX_KEYS)
		return err_set(err, EINVAL, "an object is needed here");
	while ((pair = fy_node_mapping_iterate(node, &at))) {
		int i = key_index(fy_node_pair_key(pair), keys, n_keys);

		if (i < 0)
			return err_set(err, EINVAL, "a key that is not known");
		if (seen[i])
			return err_set(err, EINVAL, "'%s' is given twice",
				       keys[i].name);
		seen[i] = true;
		if (keys[i].read(fy_node_pair_value(pair), to, err) < 0)
			return err_wrap(err, "%s", keys[i].name);
	}
	for (size_t i = 0; i < n_keys; i++)
		if (keys[i].is_needed && !seen[i])
			return err_set(err, EINVAL, "'%s' is missing",
				       keys[i].name);
	return 0;
}

int doc_list(struct fy_node *node, size_t max,
	     int (*each)(struct fy_node *node, void *to, struct err *err),
	     void *to, struct err *err)
{
	struct fy_node *item;
	void *at = NULL;
	size_t n = 0;

	if (!node || !fy_node_is_sequence(node))
		return err_set(err, EINVAL, "a list is needed here");
	while ((item = fy_node_sequence_iterate(node, &at))) {
		int r;

		if (n++ == max)
			return err_set(err, E2BIG, "more than %zu entries",
				       max);
		r = each(item, to, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int plain(struct fy_node *node, const char **ret, size_t *ret_len,
		 struct err *err)
{
	*ret = NULL;
	if (node && fy_node_is_scalar(node) &&
	    fy_node_get_style(node) == FYNS_DOUBLE_QUOTED)
		*ret = fy_node_get_scalar(node, ret_len);
	if (*ret)
		return 0;
	(void)err_set(err, EINVAL, "a string is needed here");
	return -EINVAL;
}

static int decode(struct fy_node *node, char **ret, size_t *ret_len,
		  struct err *err)
{
	_cleanup_free_ char *data = NULL;
	const char *text;
	size_t len = 0;
	size_t have = 0;

	if (plain(node, &text, &len, err) < 0)
		return -EINVAL;
	data = malloc(len + 1);
	if (!data)
		return err_set(err, ENOMEM, "out of memory");
	if (sodium_base642bin((unsigned char *)data, len, text, len, NULL,
			      &have, NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
		return err_set(err, EINVAL, "not base64");
	data[have] = '\0';
	*ret = take_ptr(data);
	*ret_len = have;
	return 0;
}

struct bytes {
	char *data;
	size_t len;
};

static int read_base64(struct fy_node *node, void *to, struct err *err)
{
	struct bytes *b = to;

	return decode(node, &b->data, &b->len, err);
}

int doc_bytes(struct fy_node *node, char **ret, size_t *ret_len,
	      struct err *err)
{
	static const struct doc_key keys[] = { { "base64", true,
						 read_base64 } };
	struct bytes b = { 0 };
	const char *text;

	if (node && fy_node_is_mapping(node)) {
		if (doc_mapping(node, keys, ARRAY_SIZE(keys), &b, err) < 0) {
			free(b.data);
			return -EINVAL;
		}
	} else {
		if (plain(node, &text, &b.len, err) < 0)
			return -EINVAL;
		b.data = malloc(b.len + 1);
		if (!b.data)
			return err_set(err, ENOMEM, "out of memory");
		memcpy(b.data, text, b.len);
		b.data[b.len] = '\0';
	}
	free(*ret);
	*ret = b.data;
	*ret_len = b.len;
	return 0;
}

int doc_string(struct fy_node *node, char **ret, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int r = doc_bytes(node, &text, &len, err);

	if (r < 0 || !text)
		return r;
	if (memchr(text, '\0', len))
		return err_set(err, EINVAL, "a NUL is not allowed here");
	free(*ret);
	*ret = take_ptr(text);
	return 0;
}

int doc_sha256(struct fy_node *node, char **ret, struct err *err)
{
	if (doc_string(node, ret, err) < 0)
		return -err->code;
	if (strlen(*ret) != 64 || strspn(*ret, "0123456789abcdef") != 64)
		return err_set(err, EINVAL, "not a SHA-256");
	return 0;
}

int doc_uint(struct fy_node *node, uint64_t max, uint64_t *ret, struct err *err)
{
	size_t len = 0;
	const char *text = NULL;
	char digits[24];

	if (node && fy_node_is_scalar(node) &&
	    fy_node_get_style(node) == FYNS_PLAIN)
		text = fy_node_get_scalar(node, &len);
	if (!text || len >= sizeof(digits))
		return err_set(err, EINVAL, "a number is needed here");
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (num_parse(digits, max, ret) < 0)
		return err_set(err, EINVAL, "a number up to %llu is needed",
			       (unsigned long long)max);
	return 0;
}
