/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The commands that are programs of their own, cordon-desk, cordon-image and
 * cordon-agent: this one becomes it. They stand where the keeper does.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "box/handle.h"
#include "cli/cli.h"

static int become(const char *program, int argc, char **argv)
{
	struct err err = { 0 };
	char path[4096];
	_cleanup_free_ char **args = calloc((size_t)argc + 2, sizeof(*args));

	if (!args) {
		say("out of memory");
		return EXIT_OURS;
	}
	if (program_find(program, path, sizeof(path), &err) < 0) {
		say("%s", err.text);
		return EXIT_OURS;
	}
	args[0] = path;
	memcpy(args + 1, argv, (size_t)(argc + 1) * sizeof(*argv));
	(void)execv(path, args);
	say("start '%s': %s", path, strerror(errno));
	return EXIT_OURS;
}

int cmd_desk(int argc, char **argv)
{
	return become("cordon-desk", argc, argv);
}

int cmd_image(int argc, char **argv)
{
	return become("cordon-image", argc, argv);
}

int cmd_agent(int argc, char **argv)
{
	return become("cordon-agent", argc, argv);
}
