/* SPDX-License-Identifier: Apache-2.0 */

/* cordon approvals */

#include "desk/desk.h"

int cmd_approvals(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	say("'approvals' is not in this build");
	return EXIT_OURS;
}
