/* SPDX-License-Identifier: Apache-2.0 */
#include "box/image-parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/wire.h"
#include "image/digest.h"
#include "ledger/read.h"

#define TEXT_MAX (256U << 10)
#define LIST_MAX 4096

int image_corrupt(struct err *err, const char *what)
{
	return err_set(err, IMAGE_CORRUPT,
		       "the image store is damaged (%s); 'cordon image ls' "
		       "says more",
		       what);
}

static int copy_text(const struct value *v, char **ret)
{
	struct buf b;

	buf_init(&b, TEXT_MAX);
	if (value_type(v) != '"' || value_text(v, &b) < 0 ||
	    buf_add(&b, "", 1) < 0 || strlen(b.data) + 1 != b.len) {
		buf_done(&b);
		return -EINVAL;
	}
	*ret = buf_take(&b);
	return *ret ? 0 : -ENOMEM;
}

static int get_text(const struct value *object, const char *name, char **ret)
{
	struct value v;

	if (value_get(object, name, &v))
		return copy_text(&v, ret);
	*ret = strdup("");
	return *ret ? 0 : -ENOMEM;
}

/* A member that is a digest, or missing. */
static bool get_digest(const struct value *object, const char *name,
		       bool is_must, char ret[IMAGE_DIGEST])
{
	_cleanup_free_ char *text = NULL;

	if (get_text(object, name, &text) < 0 || (!*text && is_must) ||
	    (*text && !image_digest_check(text)))
		return false;
	(void)strcpy(ret, text);
	return true;
}

/* A list of strings, or with `names` those of an object's members. */
static int get_list(const struct value *object, const char *name, char type,
		    struct strv *ret)
{
	struct value list;
	struct value key;
	struct value item;

	if (!value_get(object, name, &list) || value_type(&list) == 'n')
		return 0;
	if (value_type(&list) != type)
		return -EINVAL;
	for (struct walk w = walk_start(&list); walk_next(&w, &key, &item);) {
		_cleanup_free_ char *text = NULL;
		int r = copy_text(type == '{' ? &key : &item, &text);

		if (r < 0 || ret->n >= LIST_MAX)
			return r < 0 ? r : -E2BIG;
		if (strv_add(ret, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int get_labels(const struct value *object, struct strv *ret)
{
	struct value list;
	struct value key;
	struct value item;

	if (!value_get(object, "Labels", &list) || value_type(&list) == 'n')
		return 0;
	if (value_type(&list) != '{')
		return -EINVAL;
	for (struct walk w = walk_start(&list); walk_next(&w, &key, &item);) {
		_cleanup_free_ char *name = NULL;
		_cleanup_free_ char *text = NULL;
		_cleanup_free_ char *both = NULL;

		if (ret->n >= LIST_MAX || copy_text(&key, &name) < 0 ||
		    copy_text(&item, &text) < 0)
			return -EINVAL;
		if (asprintf(&both, "%s=%s", name, text) < 0) {
			both = NULL;
			return -ENOMEM;
		}
		if (strv_add(ret, both) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* the index */

int image_wanted_parse(const char *text, struct image_wanted *ret,
		       struct err *err)
{
	struct err bad = { 0 };
	const char *digits = image_digest_hex(text);
	size_t len = strlen(digits);

	memset(ret, 0, sizeof(*ret));
	if (len > 0 && len <= 64 && image_digest_digits(digits) == len)
		ret->digits = digits;
	if (digits == text && image_ref_parse(text, &ret->ref, &bad) == 0) {
		ret->is_name = true;
		image_ref_format(&ret->ref, ret->name);
	}
	if (!ret->is_name && !ret->digits) {
		if (digits != text)
			return err_set(err, IMAGE_BAD_NAME,
				       "'%.100s' is not an id", text);
		*err = bad;
		return -err->code;
	}
	return 0;
}

/* An image of that name, whatever its tag, with that digest. */
static bool has_digest(const struct box_image *m, const struct image_ref *ref)
{
	return (strcmp(m->id, ref->digest) == 0 ||
		strcmp(m->manifest, ref->digest) == 0) &&
	       image_ref_names(ref, &m->names);
}

static bool has_name(const struct box_image *m, const struct image_wanted *w)
{
	if (!w->is_name)
		return false;
	if (*w->ref.digest)
		return has_digest(m, &w->ref);
	for (size_t i = 0; i < m->names.n; i++)
		if (strcmp(m->names.v[i], w->name) == 0)
			return true;
	return false;
}

static bool has_id(const struct box_image *m, const struct image_wanted *w)
{
	return w->digits && strncmp(image_digest_hex(m->id), w->digits,
				    strlen(w->digits)) == 0;
}

static int read_head(const struct value *v, struct box_image *ret)
{
	if (value_type(v) != '{' || !get_digest(v, "id", true, ret->id) ||
	    !get_digest(v, "manifest", false, ret->manifest) ||
	    get_list(v, "names", '[', &ret->names) < 0)
		return -EINVAL;
	return 0;
}

/*
 * By name first; by the beginning of an id only if that is of one image alone.
 * What is a name and the beginning of another one's id is neither, if it is
 * long enough that it can have been taken from an id.
 */
static int choose(const struct value *images, const struct image_wanted *w,
		  const char *text, struct value *ret, struct err *err)
{
	struct value none;
	struct value item;
	bool is_named = false;
	int by_id = 0;

	for (struct walk k = walk_start(images); walk_next(&k, &none, &item);) {
		struct box_image head = { 0 };
		int r = read_head(&item, &head);
		bool is_it = r == 0 && !is_named && has_name(&head, w);

		if (is_it ||
		    (r == 0 && has_id(&head, w) && by_id++ == 0 && !is_named))
			*ret = item;
		is_named = is_named || is_it;
		strv_done(&head.names);
		if (r < 0)
			return image_corrupt(err, "index.json");
	}
	if (is_named && by_id > 0 && strlen(w->digits) >= IMAGE_ID_SHORT)
		return err_set(err, IMAGE_AMBIGUOUS,
			       "more than one image is meant by '%.64s': it is "
			       "a name, and the beginning of an id",
			       text);
	if (is_named)
		return 0;
	if (by_id > 1)
		return err_set(err, IMAGE_AMBIGUOUS,
			       "more than one image has an id that begins with "
			       "'%.64s'",
			       w->digits);
	if (by_id == 0)
		return err_set(
			err, IMAGE_NOT_FOUND,
			"No such image: %.200s; 'cordon image ls' shows "
			"what there is, 'cordon image load' and 'import' "
			"take archives in; pulling is not in this build",
			text);
	return 0;
}

/* The lower one of two that are the same layer changes nothing. */
static int keep_last(struct strv *all, struct strv *ret)
{
	for (size_t i = 0; i < all->n; i++) {
		bool again = false;

		for (size_t k = i + 1; k < all->n && !again; k++)
			again = strcmp(all->v[i], all->v[k]) == 0;
		if (!again && strv_add(ret, all->v[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_layers(const struct value *image, struct strv *ret)
{
	struct strv all = { 0 };
	struct value list;
	struct value none;
	struct value item;
	int r = value_get(image, "layers", &list) && value_type(&list) == '['
			? 0
			: -EINVAL;

	for (struct walk w = walk_start(&list);
	     r == 0 && walk_next(&w, &none, &item);) {
		char digest[IMAGE_DIGEST];

		if (!get_digest(&item, "diff_id", true, digest))
			r = -EINVAL;
		else if (strv_add(&all, image_digest_hex(digest)) < 0)
			r = -ENOMEM;
	}
	if (r == 0)
		r = keep_last(&all, ret);
	strv_done(&all);
	return r;
}

static int set_name(struct box_image *m, const struct image_wanted *w)
{
	const char *name = m->id;

	if (has_name(m, w) && !*w->ref.digest)
		name = w->name;
	else if (m->names.n > 0)
		name = m->names.v[0];
	return (size_t)snprintf(m->name, sizeof(m->name), "%s", name) <
			       sizeof(m->name)
		       ? 0
		       : -ENAMETOOLONG;
}

int image_entry_find(const char *index, size_t len, const char *text,
		     const struct image_wanted *w, char **ret, struct err *err)
{
	const struct value top = { index, len };
	struct value images;
	struct value version;
	struct value chosen = { 0 };

	if (!value_check(top.p, top.len) || value_type(&top) != '{' ||
	    !value_get(&top, "version", &version) ||
	    value_int(&version, 0) != 1 ||
	    !value_get(&top, "images", &images) || value_type(&images) != '[')
		return image_corrupt(err, "index.json");
	if (choose(&images, w, text, &chosen, err) < 0)
		return -err->code;
	*ret = chosen.p ? strndup(chosen.p, chosen.len) : NULL;
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

int image_entry_read(struct box_image *m, const char *entry,
		     const struct image_wanted *w, char run[IMAGE_DIGEST],
		     struct err *err)
{
	const struct value v = { entry, strlen(entry) };

	if (!value_check(v.p, v.len) || read_head(&v, m) < 0 ||
	    set_name(m, w) < 0 || !get_digest(&v, "run", true, run) ||
	    read_layers(&v, &m->layers) < 0)
		return image_corrupt(err, "index.json");
	if (m->layers.n == 0 || m->layers.n > WIRE_MAX_LAYERS)
		return err_set(err, IMAGE_REFUSED,
			       "image '%.100s' has %zu layers; a box takes 1 "
			       "to %d",
			       m->name, m->layers.n, WIRE_MAX_LAYERS);
	return 0;
}

/* what the image says */

static int read_config(struct box_image *m, const struct value *top)
{
	struct value config;
	struct value empty = { "{}", 2 };

	if (!value_get(top, "config", &config))
		config = empty;
	if (get_text(&config, "WorkingDir", &m->workdir) < 0 ||
	    get_text(&config, "User", &m->user) < 0 ||
	    get_text(&config, "StopSignal", &m->stop_signal) < 0 ||
	    get_list(&config, "Env", '[', &m->env) < 0 ||
	    get_list(&config, "Cmd", '[', &m->cmd) < 0 ||
	    get_list(&config, "Entrypoint", '[', &m->entrypoint) < 0 ||
	    get_list(&config, "ExposedPorts", '{', &m->ports) < 0 ||
	    get_list(&config, "Volumes", '{', &m->volumes) < 0 ||
	    get_labels(&config, &m->labels) < 0)
		return -EINVAL;
	for (size_t i = 0; i < m->env.n; i++)
		if (!strchr(m->env.v[i], '=') || m->env.v[i][0] == '=')
			return -EINVAL;
	return 0;
}

static int check_machine(const struct value *top, const struct box_image *m,
			 struct err *err)
{
#if defined(__x86_64__)
	static const char here[] = "amd64";
#elif defined(__aarch64__)
	static const char here[] = "arm64";
#endif
	_cleanup_free_ char *os = NULL;
	_cleanup_free_ char *arch = NULL;

	if (get_text(top, "os", &os) < 0 ||
	    get_text(top, "architecture", &arch) < 0)
		return image_corrupt(err, "a configuration");
	if (strcmp(os, "linux") != 0 || strcmp(arch, here) != 0)
		return err_set(err, IMAGE_REFUSED,
			       "image '%.100s' is for %.20s/%.20s; this "
			       "machine runs linux/%s",
			       m->name, os, arch, here);
	return 0;
}

int image_run_read(struct box_image *m, const char *text, size_t len,
		   struct err *err)
{
	const struct value top = { text, len };

	if (!value_check(top.p, top.len) || value_type(&top) != '{' ||
	    read_config(m, &top) < 0)
		return image_corrupt(err, "a configuration");
	return check_machine(&top, m, err);
}
