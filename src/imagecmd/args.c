/* SPDX-License-Identifier: Apache-2.0 */

/* The flags of `cordon image`, as one table. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
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
	struct flag_form form;
	int commands;
	const char *help;
	const char *variable;
	size_t at;
	int (*set)(void *at, const char *value);
} flags[] = {
	{ { "input", 'i', "FILE" },
	  CMD_LOAD,
	  "an archive or a layout's directory",
	  NULL,
	  AT(input),
	  set_text },
	{ { "name", 0, "NAME" },
	  CMD_LOAD,
	  "for an image that has none",
	  NULL,
	  AT(name),
	  set_text },
	{ { "change", 'c', "LINE" },
	  CMD_IMPORT,
	  "CMD, ENTRYPOINT, ENV, EXPOSE, LABEL, STOPSIGNAL, USER, VOLUME or "
	  "WORKDIR; "
	  "repeats",
	  NULL,
	  AT(changes),
	  set_list },
	{ { "message", 'm', "TEXT" },
	  CMD_IMPORT,
	  "a comment in the history",
	  NULL,
	  AT(message),
	  set_text },
	{ { "output", 'o', "FILE" },
	  CMD_SAVE,
	  "instead of standard output",
	  NULL,
	  AT(output),
	  set_text },
	{ { "all", 'a', NULL },
	  CMD_PRUNE,
	  "also those with names",
	  NULL,
	  AT(all),
	  set_bool },
	{ { "force", 'f', NULL },
	  CMD_RM,
	  "also if it has several names",
	  NULL,
	  AT(force),
	  set_bool },
	{ { "quiet", 'q', NULL },
	  CMD_LS | TAKES | CMD_SAVE,
	  "ids only; no progress",
	  NULL,
	  AT(quiet),
	  set_bool },
	{ { "names", 0, NULL },
	  CMD_LS,
	  "names only, a line each",
	  NULL,
	  AT(names),
	  set_bool },
	{ { "json", 0, NULL },
	  CMD_LS | TAKES | CMD_RM | CMD_PRUNE | CMD_INSPECT,
	  "a JSON document",
	  NULL,
	  AT(json),
	  set_bool },
	{ { "max-archive", 0, "SIZE" },
	  TAKES,
	  "of the archive as it comes",
	  "CORDON_IMAGE_MAX_ARCHIVE",
	  AT(limits.archive),
	  set_size },
	{ { "max-size", 0, "SIZE" },
	  TAKES,
	  "of an image, unpacked",
	  "CORDON_IMAGE_MAX_SIZE",
	  AT(limits.size),
	  set_size },
	{ { "max-file", 0, "SIZE" },
	  TAKES,
	  "of one file",
	  "CORDON_IMAGE_MAX_FILE",
	  AT(limits.file),
	  set_size },
	{ { "max-files", 0, "N" },
	  TAKES,
	  "files of an image",
	  "CORDON_IMAGE_MAX_FILES",
	  AT(limits.files),
	  set_number },
	{ { "max-ratio", 0, "N" },
	  TAKES,
	  "unpacked to packed, from 64 MiB on",
	  "CORDON_IMAGE_MAX_RATIO",
	  AT(limits.ratio),
	  set_number },
	{ { "best-effort", 0, "LAYER" },
	  CMD_ALL,
	  "landlock: go on where the kernel has none",
	  NULL,
	  AT(is_landlock_optional),
	  set_layer },
};

void args_help(const struct command *cmd)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct flag *f = &flags[i];
		char left[40];

		if (!(f->commands & cmd->bit))
			continue;
		(void)snprintf(left, sizeof(left), "--%s%s%s", f->form.name,
			       f->form.value ? " " : "",
			       f->form.value ? f->form.value : "");
		if (f->form.letter)
			printf("  -%c, %-21s %s\n", f->form.letter, left,
			       f->help);
		else
			printf("      %-21s %s\n", left, f->help);
	}
}

static int set(const struct flag *f, struct call *c, const char *value,
	       struct err *err)
{
	if (f->set((char *)c + f->at, value) < 0)
		return err_set(err, EINVAL, "--%s takes %s, not '%.60s'",
			       f->form.name,
			       f->form.value ? f->form.value : "nothing",
			       value);
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
				       f->variable, f->form.value, v);
	}
	return 0;
}

struct reader {
	const struct command *cmd;
	struct call *call;
};

static int read_flag(void *arg, char ***at, struct err *err)
{
	const struct reader *r = arg;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct flag *f = &flags[i];
		const char *value;
		int e = f->commands & r->cmd->bit
				? flag_read(&f->form, at, &value, err)
				: 0;

		if (e != 0)
			return e < 0 ? e : set(f, r->call, value, err);
	}
	return err_set(err, EINVAL, "'%.60s' is not a flag of this command",
		       **at);
}

int args_read(const struct command *cmd, char **args, struct call *ret,
	      struct err *err)
{
	struct reader r = { cmd, ret };
	struct operands o = { 0 };
	int e;

	image_limits_default(&ret->limits);
	if (read_variables(cmd, ret, err) < 0)
		return -err->code;
	e = operands_read(args, cmd->least, cmd->most, &o, read_flag, &r, err);
	ret->operands = o.v;
	ret->n = o.n;
	return e;
}
