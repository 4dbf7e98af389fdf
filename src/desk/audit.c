/* SPDX-License-Identifier: Apache-2.0 */

/* cordon audit */

#include "desk/desk.h"

int cmd_audit(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	say("'audit' is not in this build");
	return EXIT_OURS;
}
