/* SPDX-License-Identifier: Apache-2.0 */
#include "box/guard-image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
