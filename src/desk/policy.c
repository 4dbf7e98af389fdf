/* SPDX-License-Identifier: Apache-2.0 */

/* cordon policy */

#include "desk/desk.h"

int cmd_policy(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	say("'policy' is not in this build");
	return EXIT_OURS;
}
