/* SPDX-License-Identifier: Apache-2.0 */

/* cordon-desk: finds the command and runs it. */

#include "desk/desk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} table[] = {
	{ "policy", cmd_policy },
	{ "approvals", cmd_approvals },
	{ "audit", cmd_audit },
};

void say(const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* A name in it may be a box's: nothing of it steers a terminal. */
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	(void)fprintf(stderr, "cordon: %s\n", line);
}

int use_colour(int fd)
{
	const char *force = getenv("CLICOLOR_FORCE");
	const char *no = getenv("NO_COLOR");

	if (no && *no)
		return 0;
	if (force && *force && strcmp(force, "0") != 0)
		return 1;
	return isatty(fd);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(table); i++)
		if (strcmp(argv[1], table[i].name) == 0)
			return table[i].run(argc - 1, argv + 1);
	say("this program is started by 'cordon policy', 'cordon approvals' "
	    "and 'cordon audit'");
	return EXIT_OURS;
}
