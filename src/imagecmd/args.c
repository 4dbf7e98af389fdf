/* SPDX-License-Identifier: Apache-2.0 */

/* The flags of `cordon image`, as one table. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "imagecmd/imagecmd.h"

#define TAKES (CMD_LOAD | CMD_IMPORT)

static int set_bool(void *at, const char *value)
{
	(void)value;
	*(bool *)at = true;
	return 0;
}

static int set_text(void *at, const char *value)
{
	*(const char **)at = value;
	return *value ? 0 : -EINVAL;
}

static int set_list(void *at, const char *value)
{
	return strv_add(at, value);
}

static int set_size(void *at, const char *value)
{
	return num_parse_size(value, at) < 0 || *(uint64_t *)at == 0 ? -EINVAL
								     : 0;
}

static int set_number(void *at, const char *value)
{
	return num_parse(value, 1000000000, at) < 0 || *(uint64_t *)at == 0
		       ? -EINVAL
		       : 0;
}

static int set_layer(void *at, const char *value)
{
	*(bool *)at = true;
	return strcmp(value, "landlock") == 0 ? 0 : -EINVAL;
}

#define AT(member) offsetof(struct call, member)

static const struct flag {
	const char *name;
	char letter;
	int commands;
	const char *value; /* what it takes, NULL for nothing */
	const char *help;
	const char *variable;
	size_t at;
	int (*set)(void *at, const char *value);
} flags[] = {
	{ "input", 'i', CMD_LOAD, "FILE", "an archive or a layout's directory",
	  NULL, AT(input), set_text },
	{ "name", 0, CMD_LOAD, "NAME", "for an image that has none", NULL,
	  AT(name), set_text },
	{ "change", 'c', CMD_IMPORT, "LINE",
	  "CMD, ENTRYPOINT, ENV, EXPOSE, LABEL, STOPSIGNAL, USER or WORKDIR; "
	  "repeats",
	  NULL, AT(changes), set_list },
	{ "message", 'm', CMD_IMPORT, "TEXT", "a comment in the history", NULL,
	  AT(message), set_text },
	{ "output", 'o', CMD_SAVE, "FILE", "instead of standard output", NULL,
	  AT(output), set_text },
	{ "all", 'a', CMD_PRUNE, NULL, "also those with names", NULL, AT(all),
	  set_bool },
	{ "force", 'f', CMD_RM, NULL, "also if it has several names", NULL,
	  AT(force), set_bool },
	{ "quiet", 'q', CMD_LS | TAKES | CMD_SAVE, NULL,
	  "ids only; no progress", NULL, AT(quiet), set_bool },
	{ "names", 0, CMD_LS, NULL, "names only, a line each", NULL, AT(names),
	  set_bool },
	{ "json", 0, CMD_LS | TAKES | CMD_RM | CMD_PRUNE | CMD_INSPECT, NULL,
	  "a JSON document", NULL, AT(json), set_bool },
	{ "max-archive", 0, TAKES, "SIZE", "of the archive as it comes",
	  "CORDON_IMAGE_MAX_ARCHIVE", AT(limits.archive), set_size },
	{ "max-size", 0, TAKES, "SIZE", "of an image, unpacked",
	  "CORDON_IMAGE_MAX_SIZE", AT(limits.size), set_size },
	{ "max-file", 0, TAKES, "SIZE", "of one file", "CORDON_IMAGE_MAX_FILE",
	  AT(limits.file), set_size },
	{ "max-files", 0, TAKES, "N", "files of an image",
	  "CORDON_IMAGE_MAX_FILES", AT(limits.files), set_number },
	{ "max-ratio", 0, TAKES, "N", "unpacked to packed, from 64 MiB on",
	  "CORDON_IMAGE_MAX_RATIO", AT(limits.ratio), set_number },
	{ "best-effort", 0, CMD_ALL, "LAYER",
	  "landlock: go on where the kernel has none", NULL,
	  AT(is_landlock_optional), set_layer },
};

void args_help(const struct command *cmd)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct flag *f = &flags[i];
		char left[40];

		if (!(f->commands & cmd->bit))
			continue;
		(void)snprintf(left, sizeof(left), "--%s%s%s", f->name,
			       f->value ? " " : "", f->value ? f->value : "");
		if (f->letter)
			printf("  -%c, %-21s %s\n", f->letter, left, f->help);
		else
			printf("      %-21s %s\n", left, f->help);
	}
}

static int set(const struct flag *f, struct call *c, const char *value,
	       struct err *err)
{
	if (f->set((char *)c + f->at, value) < 0)
		return err_set(err, EINVAL, "--%s takes %s, not '%.60s'",
			       f->name, f->value ? f->value : "nothing", value);
	return 0;
}

static int read_variables(const struct command *cmd, struct call *c,
			  struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct flag *f = &flags[i];
		const char *v = f->variable ? getenv(f->variable) : NULL;

		if (!v || !*v || !(f->commands & cmd->bit))
			continue;
		if (f->set((char *)c + f->at, v) < 0)
			return err_set(err, EINVAL, "%s takes %s, not '%.60s'",
				       f->variable, f->value, v);
	}
	return 0;
}

/* "--name", "--name=VALUE" or "-n". */
static bool is_flag(const struct flag *f, const char *arg, const char **ret)
{
	size_t len = strlen(f->name);

	*ret = NULL;
	if (f->letter && arg[0] == '-' && arg[1] == f->letter && !arg[2])
		return true;
	if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, f->name, len) != 0)
		return false;
	if (arg[2 + len] == '=')
		*ret = arg + 2 + len + 1;
	return arg[2 + len] == '\0' || *ret;
}

static int read_flag(const struct command *cmd, char ***at, struct call *c,
		     struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct flag *f = &flags[i];
		const char *value;

		if (!(f->commands & cmd->bit) || !is_flag(f, **at, &value))
			continue;
		if (!f->value && value)
			return err_set(err, EINVAL, "--%s takes no value",
				       f->name);
		if (f->value && !value) {
			value = (*at)[1];
			if (!value)
				return err_set(err, EINVAL, "--%s takes %s",
					       f->name, f->value);
			(*at)++;
		}
		return set(f, c, value ? value : "", err);
	}
	return err_set(err, EINVAL, "'%.60s' is not a flag of this command",
		       **at);
}

int args_read(const struct command *cmd, char **args, struct call *ret,
	      struct err *err)
{
	bool only_operands = false;

	image_limits_default(&ret->limits);
	if (read_variables(cmd, ret, err) < 0)
		return -err->code;
	/* Operands move to the front of the same array. */
	ret->operands = args;
	for (; *args; args++) {
		if (only_operands || **args != '-' || !(*args)[1]) {
			ret->operands[ret->n++] = *args;
		} else if (strcmp(*args, "--") == 0) {
			only_operands = true;
		} else if (read_flag(cmd, &args, ret, err) < 0) {
			return -err->code;
		}
	}
	if (ret->n < cmd->least)
		return err_set(err, EINVAL, "an argument is missing");
	if (ret->n > cmd->most)
		return err_set(err, EINVAL, "'%.60s' is one argument too many",
			       ret->operands[cmd->most]);
	return 0;
}
