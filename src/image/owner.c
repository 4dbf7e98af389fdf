/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whose a name is. The store belongs to one user, and a daemon changes it for
 * others too: a name is that user's who gave it, and nobody else moves or
 * removes it, but for root and the store's own user. Using an image is open to
 * all. An image itself belongs to who brought it first; that counts where it
 * has no name.
 */

#include <errno.h>
#include <stdio.h>

#include "base/num.h"
#include "base/util.h"
#include "image/reference.h"
#include "image/store.h"

void image_store_for(struct image_store *s, uint32_t uid)
{
	s->who = uid;
}

static bool may(const struct image_store *s, int64_t uid)
{
	return s->who == 0 || s->who == s->owner || uid == (int64_t)s->who;
}

static int64_t name_owner(const struct image *m, size_t i)
{
	uint64_t uid = 0;

	if (i >= m->owners.n || num_parse(m->owners.v[i], UINT32_MAX, &uid) < 0)
		return -1;
	return (int64_t)uid;
}

int image_name_check(const struct image_store *s, const struct image *m,
		     size_t i, struct err *err)
{
	int64_t uid = name_owner(m, i);

	if (may(s, uid))
		return 0;
	return err_set(err, IMAGE_NOT_YOURS,
		       "image name '%.200s' belongs to another user (uid "
		       "%lld), who alone, with root, moves or removes it",
		       image_ref_short(m->names.v[i]), (long long)uid);
}

int image_owner_check(const struct image_store *s, const struct image *m,
		      struct err *err)
{
	for (size_t i = 0; i < m->names.n; i++)
		if (image_name_check(s, m, i, err) < 0)
			return -err->code;
	if (m->names.n > 0 || may(s, m->owner))
		return 0;
	return err_set(err, IMAGE_NOT_YOURS,
		       "image '%.19s' belongs to another user (uid %lld), who "
		       "alone, with root, removes it",
		       m->id, (long long)m->owner);
}

bool image_may_drop(const struct image_store *s, const struct image *m)
{
	return may(s, m->owner);
}

static int add_owner(struct image *m, uint32_t uid)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", uid);
	return strv_add(&m->owners, text);
}

int image_name_add(const struct image_store *s, struct image *m,
		   const char *name, struct err *err)
{
	if (strv_add(&m->names, name) < 0 || add_owner(m, s->who) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

void image_name_drop(struct image *m, size_t i)
{
	image_names_remove(&m->names, i);
	if (i < m->owners.n)
		image_names_remove(&m->owners, i);
}

/* What nobody is said to own is the user's whose store it is. */
int image_owners_fill(struct image *m, uint32_t uid, struct err *err)
{
	if (m->owner < 0)
		m->owner = uid;
	while (m->owners.n < m->names.n)
		if (add_owner(m, uid) < 0)
			return err_set(err, ENOMEM, "out of memory");
	return 0;
}
