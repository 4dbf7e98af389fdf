/* SPDX-License-Identifier: Apache-2.0 */
#include "base/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void say(const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* A name in it may be the box's: nothing of it steers a terminal. */
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
