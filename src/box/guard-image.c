/* SPDX-License-Identifier: Apache-2.0 */
#include "box/guard-image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"
#include "box/images.h"

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

static int add_all(struct strv *to, const struct strv *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (strv_add(to, from->v[i]) < 0)
			return -ENOMEM;
	return 0;
}

/*
 * Docker's rules: the request's entrypoint is used without the image's
 * command; the request's command follows the image's entrypoint. An empty list
 * takes away the image's entrypoint alone.
 */
static int merge_command(struct guard *g, struct err *err)
{
	const struct cordon_spec *s = g->given;
	const struct box_image *m = g->image;
	const struct strv *cmd = &s->command;

	if (s->n_blocks > 0 || s->command_line)
		return 0;
	/* A further program is started as it is; an empty box has none. */
	if (s->is_empty || (g->by && g->by->is_exec))
		return 0;
	if (cmd->n == 0 && !s->drops_cmd)
		cmd = &m->cmd;
	if (add_all(&g->merged,
		    s->has_entrypoint ? &s->entrypoint : &m->entrypoint) < 0 ||
	    add_all(&g->merged, cmd) < 0)
		return no_memory(err);
	if (g->merged.n == 0 || !g->merged.v[0][0]) {
		g->refused = REFUSED_INVALID;
		return err_set(err, EINVAL,
			       "no command specified, and image '%.100s' has "
			       "none; write 'cordon run --image NAME -- CMD'",
			       m->name);
	}
	g->spec->command = g->merged;
	return 0;
}

static bool may_be_root(const struct guard *g)
{
	return g->policy && g->policy->allow_root_inside.text &&
	       strcmp(g->policy->allow_root_inside.text, "true") == 0;
}

static int bad_user(struct guard *g, struct err *err)
{
	if (err->code != ENOMEM)
		g->refused = REFUSED_INVALID;
	return err_wrap(err, "user");
}

/*
 * What the request says, by the image's names; else what the image says,
 * unless that is root, which it gets only where a policy says so.
 */
static int merge_user(struct guard *g, struct err *err)
{
	const struct cordon_spec *s = g->given;
	uint32_t uid = 0;
	uint32_t gid = 0;

	if (s->user) {
		if (box_image_user(g->image, s->user, &uid, &gid, err) < 0)
			return bad_user(g, err);
		/* A person may be root in there; a policy decides for others.
		 */
		if (uid == 0 && g->policy && !may_be_root(g)) {
			g->spec->is_root_replaced = true;
			g->spec->stated &= ~SPEC_STATED_USER;
			g->spec->uid = g->spec->gid = 65534;
			return 0;
		}
	} else {
		if (box_image_user(g->image, g->image->user, &uid, &gid, err) <
		    0)
			return bad_user(g, err);
		if (uid == 0 && !may_be_root(g))
			return 0;
	}
	g->spec->uid = uid;
	g->spec->gid = gid;
	return 0;
}

/* Each once. */
static void add_group(struct cordon_spec *s, uint32_t id)
{
	for (uint32_t i = 0; i < s->n_groups; i++)
		if (s->groups[i] == id)
			return;
	if (s->n_groups < WIRE_MAX_GROUPS)
		s->groups[s->n_groups++] = id;
}

/* What was asked for must be had; gid 0 is for those who may be root. */
static int add_asked(struct guard *g, const char *name, uint32_t id,
		     struct err *err)
{
	if (id >= WIRE_IDS) {
		g->refused = REFUSED_INVALID;
		return err_set(err, EINVAL, "group '%.64s' is above %u", name,
			       WIRE_IDS - 1);
	}
	if (id == 0 && g->policy && !may_be_root(g)) {
		g->refused = REFUSED_DENIED;
		return err_set(err, EPERM,
			       "group '%.64s' is refused: the policy has no "
			       "'docker.allow_root_inside: true'",
			       name);
	}
	add_group(g->spec, id);
	return 0;
}

static int find_asked(struct guard *g, const char *name, uint32_t *ret,
		      struct err *err)
{
	uint64_t n;

	if (g->image)
		return box_image_group(g->image, name, ret, err);
	if (strcmp(name, "root") == 0)
		*ret = 0;
	else if (strcmp(name, "nogroup") == 0)
		*ret = 65534;
	else if (num_parse(name, UINT32_MAX - 1, &n) == 0)
		*ret = (uint32_t)n;
	else
		return err_set(err, EINVAL,
			       "'%.64s' is neither a number nor a name in the "
			       "box's group file (root, nogroup)",
			       name);
	return 0;
}

/* Those that the image has this user in, which are left out rather than 0. */
static void add_memberships(struct guard *g)
{
	struct cordon_spec *s = g->spec;
	const char *user = g->given->user ? g->given->user : g->image->user;
	uint32_t found[WIRE_MAX_GROUPS];
	size_t n;

	/* Who stands in for somebody is in none of that one's groups. */
	if (s->is_root_replaced || g->verdict.has_user ||
	    (s->uid == 65534 && !g->given->user))
		return;
	n = box_image_groups(g->image, user, found, WIRE_MAX_GROUPS);
	for (size_t i = 0; i < n; i++)
		if (found[i] < WIRE_IDS && (found[i] > 0 || may_be_root(g)))
			add_group(s, found[i]);
}

int guard_groups(struct guard *g, struct err *err)
{
	const struct strv *asked = &g->given->group_add;

	g->spec->n_groups = 0;
	g->spec->may_be_root = may_be_root(g);
	for (size_t i = 0; i < asked->n; i++) {
		uint32_t id = 0;

		if (find_asked(g, asked->v[i], &id, err) < 0) {
			if (err->code != ENOMEM)
				g->refused = REFUSED_INVALID;
			return err_wrap(err, "group-add");
		}
		if (add_asked(g, asked->v[i], id, err) < 0)
			return -err->code;
	}
	if (g->image)
		add_memberships(g);
	return 0;
}

static int merge_workdir(struct guard *g, struct err *err)
{
	const char *dir = g->image->workdir;

	/* Code starts where its files are, as ever. */
	if (g->spec->workdir || g->spec->n_blocks > 0)
		return 0;
	if (!*dir || strcmp(dir, "/") == 0)
		dir = "/";
	else if (spec_check_path(dir, "its working directory", err) < 0) {
		g->refused = REFUSED_INVALID;
		return err_wrap(err, "image '%.100s'", g->image->name);
	}
	if (strv_add(&g->owned, dir) < 0)
		return no_memory(err);
	g->spec->workdir = g->owned.v[g->owned.n - 1];
	return 0;
}

/* What is asked for, else the policy's first; "host" is this machine. */
static const char *wanted(const struct guard *g)
{
	const struct policy_list *l = g->policy ? &g->policy->images : NULL;

	if (g->given->image)
		return g->given->image;
	if (g->given->stated & SPEC_STATED_IMAGE || !l || l->n == 0)
		return "host";
	return l->v[0];
}

int guard_image(struct guard *g, struct err *err)
{
	const char *name = wanted(g);

	if (strcmp(name, "host") == 0)
		return 0;
	g->image_name = name;
	if (images_find(name, &g->image, &g->image_err) < 0)
		return 0;
	g->spec->root = g->image;
	if (merge_command(g, err) < 0 || merge_user(g, err) < 0 ||
	    merge_workdir(g, err) < 0)
		return -err->code;
	return 0;
}

static int add_names(struct strv *ret, const struct box_image *m)
{
	char text[IMAGE_REF_MAX + IMAGE_DIGEST];

	if (strv_add(ret, m->id) < 0 ||
	    (*m->manifest && strv_add(ret, m->manifest) < 0))
		return -ENOMEM;
	for (size_t i = 0; i < m->names.n; i++) {
		const char *full = m->names.v[i];
		const char *brief = image_ref_short(full);
		const char *tag = strrchr(full, ':');
		int len = tag ? (int)(tag - full) : (int)strlen(full);

		(void)snprintf(text, sizeof(text), "%.*s@%s", len, full, m->id);
		if (strv_add(ret, full) < 0 || strv_add(ret, brief) < 0 ||
		    strv_add(ret, text) < 0)
			return -ENOMEM;
		if (tag && strcmp(tag, ":latest") == 0) {
			(void)snprintf(text, sizeof(text), "%.*s",
				       len - (int)(brief - full), brief);
			if (strv_add(ret, text) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

int guard_image_names(struct guard *g, struct strv *ret, struct err *err)
{
	if (g->image && add_names(ret, g->image) < 0)
		return no_memory(err);
	return 0;
}

void guard_image_done(struct guard *g)
{
	strv_done(&g->merged);
	box_image_free(g->image);
	g->image = NULL;
}
