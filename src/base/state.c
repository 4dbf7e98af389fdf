/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *variable(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

int state_path(char *ret, size_t size, struct err *err)
{
	const char *own = variable("CORDON_STATE_DIR");
	const char *xdg = variable("XDG_STATE_HOME");
	const char *home = variable("HOME");
	int n;

	if (own)
		n = snprintf(ret, size, "%s", own);
	else if (geteuid() == 0)
		n = snprintf(ret, size, "/var/lib/cordon");
	else if (xdg)
		n = snprintf(ret, size, "%s/cordon", xdg);
	else if (home)
		n = snprintf(ret, size, "%s/.local/state/cordon", home);
	else
		return err_set(err, ENOENT,
			       "find the state directory: set "
			       "'CORDON_STATE_DIR' or 'HOME'");
	if (n < 0 || (size_t)n >= size)
		return err_set(err, ENAMETOOLONG,
			       "the state directory's name is too long");
	if (ret[0] != '/')
		return err_set(err, EINVAL,
			       "the state directory '%s' is not an absolute "
			       "path",
			       ret);
	return 0;
}
