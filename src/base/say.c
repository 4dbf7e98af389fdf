/* SPDX-License-Identifier: Apache-2.0 */
#include "base/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/visible.h"

void say(const char *fmt, ...)
{
	char line[4096];
	struct buf shown;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* A name in it may be the box's: nothing of it steers a terminal. */
	buf_init(&shown, 16 * sizeof(line));
	visible_text(&shown, line, strlen(line), sizeof(line));
	if (shown.error || !shown.data)
		for (char *p = line; *p; p++)
			if ((unsigned char)*p < 0x20 ||
			    (unsigned char)*p > 0x7e)
				*p = '?';
	(void)fprintf(stderr, "cordon: %s\n",
		      shown.error || !shown.data ? line : shown.data);
	buf_done(&shown);
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
