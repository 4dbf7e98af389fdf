/* SPDX-License-Identifier: Apache-2.0 */
#include "base/flags.h"

#include <errno.h>
#include <string.h>

static bool is_flag(const struct flag_form *f, const char *arg,
		    const char **ret)
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

int flag_read(const struct flag_form *f, char ***at, const char **ret,
	      struct err *err)
{
	if (!is_flag(f, **at, ret))
		return 0;
	if (!f->value && *ret)
		return err_set(err, EINVAL, "--%s takes no value", f->name);
	if (!f->value)
		*ret = "";
	if (*ret)
		return 1;
	*ret = (*at)[1];
	if (!*ret)
		return err_set(err, EINVAL, "--%s takes %s", f->name, f->value);
	(*at)++;
	return 1;
}

int operands_read(char **args, size_t least, size_t most, struct operands *ret,
		  int (*read)(void *arg, char ***at, struct err *err),
		  void *arg, struct err *err)
{
	bool only_operands = false;

	*ret = (struct operands){ .v = args };
	for (; *args; args++) {
		if (only_operands || **args != '-' || !(*args)[1])
			ret->v[ret->n++] = *args;
		else if (strcmp(*args, "--") == 0)
			only_operands = true;
		else if (read(arg, &args, err) < 0)
			return -err->code;
	}
	if (ret->n < least)
		return err_set(err, EINVAL, "an argument is missing");
	if (ret->n > most)
		return err_set(err, EINVAL, "'%.60s' is one argument too many",
			       ret->v[most]);
	return 0;
}
