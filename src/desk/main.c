/* SPDX-License-Identifier: Apache-2.0 */

/* cordon-desk: finds the command and runs it. */

#include "desk/desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	void (*words)(void);
} table[] = {
	{ "policy", cmd_policy, policy_words },
	{ "approvals", cmd_approvals, approvals_words },
	{ "audit", cmd_audit, audit_words },
};

static int put_words(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		table[i].words();
	return fflush(stdout) == 0 ? 0 : EXIT_OURS;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(table); i++)
		if (strcmp(argv[1], table[i].name) == 0)
			return table[i].run(argc - 1, argv + 1);
	if (argc == 2 && strcmp(argv[1], "words") == 0)
		return put_words();
	say("this program is started by 'cordon policy', 'cordon approvals' "
	    "and 'cordon audit'");
	return EXIT_OURS;
}
