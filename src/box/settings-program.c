/* SPDX-License-Identifier: Apache-2.0 */

/* What is run: image, programs, command line, environment. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/images.h"
#include "box/settings-set.h"
#include "policy/values.h"

SETTER(set_image)
{
	if (strcmp(v, "host") != 0 && images_check_name(v, err) < 0)
		return -err->code;
	s->stated |= SPEC_STATED_IMAGE;
	if (strcmp(v, "host") != 0)
		return put_text(&s->image, v, err);
	free(s->image);
	s->image = NULL;
	return 0;
}

/* Given again, it adds a word; empty, the image's is not used. */
SETTER(set_entrypoint)
{
	s->has_entrypoint = true;
	s->drops_cmd = true;
	if (!*v) {
		strv_done(&s->entrypoint);
		return 0;
	}
	return put_item(&s->entrypoint, v, err);
}

SETTER(set_arg)
{
	return put_item(&s->args, v, err);
}

SETTER(set_command_line)
{
	if (!*v)
		return err_set(err, EINVAL, "the command line is empty");
	return put_text(&s->command_line, v, err);
}

SETTER(set_program)
{
	if (!*v)
		return err_set(err, EINVAL, "a program has a name");
	s->has_programs = true;
	return put_item(&s->programs, v, err);
}

SETTER(set_allowed)
{
	if (!value_is_program(v))
		return err_set(err, EINVAL,
			       "'%s' is not the name of a program, without a "
			       "directory",
			       v);
	s->has_allowed = true;
	return put_item(&s->allowed, v, err);
}

SETTER(set_env)
{
	size_t len = strcspn(v, "=");

	if (len == 0)
		return err_set(err, EINVAL,
			       "'%s' is not NAME=VALUE; the host's own "
			       "variables are not passed in",
			       v);
	/* A name alone takes away what an image sets; see spec_check(). */
	for (size_t i = 0; i < s->env.n; i++)
		if (strcspn(s->env.v[i], "=") == len &&
		    strncmp(s->env.v[i], v, len) == 0)
			return put_text(&s->env.v[i], v, err);
	if (s->env.n >= 4096)
		return err_set(err, E2BIG, "more than 4096 variables");
	return put_item(&s->env, v, err);
}

SETTER(set_env_from_host)
{
	if (!value_is_env_name(v))
		return err_set(err, EINVAL, "'%s' is not a variable's name", v);
	if (s->env_from_host.n >= 4096)
		return err_set(err, E2BIG, "more than 4096 variables");
	return put_item(&s->env_from_host, v, err);
}

/* NAME=VALUE lines; '#' starts a comment line. */
SETTER(set_env_file)
{
	FILE *f = s->is_served ? NULL : fopen(v, "re");
	char *line = NULL;
	size_t cap = 0;
	int number = 0;
	int r = 0;

	if (s->is_served)
		return err_set(err, EINVAL,
			       "the daemon reads no file for a client; send "
			       "the variables");
	if (!f)
		return err_errno(err, errno, "open '%s'", v);
	while (r == 0 && getline(&line, &cap, f) >= 0) {
		number++;
		line[strcspn(line, "\r\n")] = '\0';
		if (!line[0] || line[0] == '#')
			continue;
		r = strchr(line, '=') ? set_env(s, line, err)
				      : err_set(err, EINVAL,
						"'%s' is not NAME=VALUE", line);
	}
	free(line);
	(void)fclose(f);
	return r < 0 ? err_wrap(err, "%s:%d", v, number) : 0;
}
