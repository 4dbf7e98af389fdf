/* SPDX-License-Identifier: Apache-2.0 */

/* cordon-agent: finds the command and runs it. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentcmd/agentcmd.h"
#include "base/io.h"
#include "base/util.h"

static const struct command commands[] = {
	{ "run", "[FLAGS] FILE TASK | --resume ID [ANSWER]",
	  "give an agent or a team a task", CMD_RUN, 0, 2, run_run },
	{ "check", "[FLAGS] FILE", "whether a file would run, and as what",
	  CMD_CHECK, 1, 1, run_check },
	{ "dump", "FILE", "the file as a component, spelled out", CMD_DUMP, 1,
	  1, run_dump },
	{ "import", "[FLAGS] FILE", "a component of AutoGen's as one of ours",
	  CMD_IMPORT, 1, 1, run_import },
	{ "ls", "[--json]", "runs that can go on", CMD_LS, 0, 0, run_ls },
	{ "show", "[FLAGS] ID", "the conversation at a checkpoint", CMD_SHOW, 1,
	  1, run_show },
	{ "cancel", "[FLAGS] ID", "end a run that waits for people", CMD_CANCEL,
	  1, 1, run_cancel },
	{ "schema", "", "the JSON schema of such files", CMD_SCHEMA, 0, 0,
	  run_schema },
};

static int usage(void)
{
	printf("usage: cordon agent COMMAND ...\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-7s %-42s %s\n", commands[i].name, commands[i].usage,
		       commands[i].help);
	printf("\n'cordon agent COMMAND --help' lists its flags; "
	       "cordon-agent(1) says more.\n");
	return 0;
}

static int help(const struct command *cmd)
{
	printf("usage: cordon agent %s%s%s\n\n%s\n\n", cmd->name,
	       *cmd->usage ? " " : "", cmd->usage, cmd->help);
	args_help(cmd);
	return 0;
}

static bool asks_help(char **args)
{
	for (; *args && strcmp(*args, "--") != 0; args++)
		if (strcmp(*args, "--help") == 0 || strcmp(*args, "-h") == 0)
			return true;
	return false;
}

static int run(const struct command *cmd, char **args)
{
	struct call c = { 0 };
	struct err err = { 0 };
	int r;

	if (asks_help(args))
		return help(cmd);
	if (args_read(cmd, args, &c, &err) < 0) {
		say("%s; usage: cordon agent %s %s", err.text, cmd->name,
		    cmd->usage);
		return EXIT_OURS;
	}
	r = cmd->run(&c, &err);
	if (fflush(stdout) != 0 && r >= 0)
		r = err_errno(&err, errno, "write to standard output");
	if (r < 0)
		say("%s", err.text);
	return r < 0 ? EXIT_OURS : r;
}

int main(int argc, char **argv)
{
	/* cordon-agent agent COMMAND ... */
	const char *name = argc > 2 ? argv[2] : "";

	io_hold_below(STDERR_FILENO + 1);
	(void)umask(077);
	if (argc < 2 || strcmp(argv[1], "agent") != 0) {
		say("this program is started by 'cordon agent'");
		return EXIT_OURS;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return usage();
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return run(&commands[i], argv + 3);
	say("agent takes run, check, dump, import, ls, show, cancel or schema; "
	    "'cordon agent --help' says more");
	return EXIT_OURS;
}
