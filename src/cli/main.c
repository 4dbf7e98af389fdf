/* SPDX-License-Identifier: Apache-2.0 */

/* cordon: finds the command and runs it. */

#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cordon/cordon.h>

#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"

static const struct command table[] = {
	{ "run", "[FLAGS] -- CMD [ARG...]", "run a program or code in a box",
	  cmd_run },
	{ "ps", "[FLAGS]", "boxes that the daemon keeps", cmd_ps },
	{ "create", "[FLAGS] [-- CMD [ARG...]]", "make a box that stays",
	  cmd_create },
	{ "exec", "[FLAGS] BOX CMD [ARG...]", "run a program in a box",
	  cmd_exec },
	{ "logs", "[FLAGS] BOX", "what a box has written", cmd_logs },
	{ "cp", "BOX:PATH HOST|- or HOST|- BOX:PATH",
	  "copy files into a box and out", cmd_cp },
	{ "start", "BOX...", "start boxes", cmd_life },
	{ "stop", "[FLAGS] BOX...", "stop boxes", cmd_life },
	{ "restart", "[FLAGS] BOX...", "stop boxes and start them", cmd_life },
	{ "kill", "[FLAGS] BOX...", "send boxes a signal", cmd_life },
	{ "rm", "[FLAGS] BOX...", "remove boxes", cmd_life },
	{ "pause", "BOX...", "let boxes stand still", cmd_life },
	{ "unpause", "BOX...", "let them go on", cmd_life },
	{ "wait", "BOX...", "wait for their end, print how", cmd_life },
	{ "rename", "BOX NAME", "give a box another name", cmd_rename },
	{ "attach", "[FLAGS] BOX", "join a box's own program", cmd_attach },
	{ "inspect", "BOX...", "all about boxes, as JSON", cmd_inspect },
	{ "top", "BOX", "processes of a box", cmd_top },
	{ "stats", "[FLAGS] [BOX...]", "what boxes use", cmd_stats },
	{ "policy", "check|show|explain|test|compile|schema ...",
	  "what a policy allows, and why", cmd_desk },
	{ "approvals", "list|show|approve|deny|rules ...",
	  "what waits for a person's answer", cmd_desk },
	{ "audit", "list|show|follow|verify|export|seal|reindex|schema ...",
	  "the record of what was decided and done", cmd_desk },
	{ "image", "load|import|save|ls|inspect|rm|prune|tag ...",
	  "root file systems for boxes", cmd_image },
	{ "agent", "run|check|dump|import|ls|show|cancel|schema ...",
	  "agents that use tools, in boxes", cmd_agent },
	{ "serve", "[FLAGS]", "the daemon: boxes that live, and Docker's API",
	  cmd_serve },
	{ "doctor", "[--json]", "what this machine can enforce", cmd_doctor },
	{ "bench", "[N]", "time a box against a plain process", cmd_bench },
	{ "completion", "bash|zsh|fish", "completions for a shell",
	  cmd_completion },
	{ "version", "", "print the version", cmd_version },
};

/* Named in the documents, and still to come. */
static const char *const later[] = {
	"worker",
};

const struct command *command_at(int i)
{
	return i < (int)ARRAY_SIZE(table) ? &table[i] : NULL;
}

int cmd_version(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		say("version takes no arguments");
		return EXIT_OURS;
	}
	printf("cordon %s\n", cordon_version());
	return 0;
}

static int usage(FILE *to)
{
	(void)fprintf(to, "usage: cordon COMMAND ...\n\n"
			  "Runs code that nobody has read yet: no network, no "
			  "host files, no privileges,\nbounded in "
			  "everything.\n\ncommands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		(void)fprintf(to, "  %-11s %s\n", table[i].name, table[i].help);
	(void)fprintf(to, "\n'cordon help COMMAND' says more, and so does "
			  "cordon(1).\n\ntry: cordon run --lang python -c "
			  "'print(6 * 7)'\n");
	return to == stdout ? 0 : EXIT_OURS;
}

/* "help NAME" is "NAME --help", where a command has that. */
static int help(const char *name)
{
	static char flag[] = "--help";

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char *args[] = { (char *)table[i].name, flag, NULL };

		if (strcmp(name, table[i].name) != 0)
			continue;
		if (table[i].run == cmd_run || table[i].run == cmd_desk ||
		    table[i].run == cmd_agent || table[i].run == cmd_exec ||
		    table[i].run == cmd_logs || table[i].run == cmd_ps ||
		    table[i].run == cmd_life || table[i].run == cmd_serve ||
		    table[i].run == cmd_stats || table[i].run == cmd_attach)
			return table[i].run(2, args);
		printf("usage: cordon %s %s\n\n%s\n", table[i].name,
		       table[i].usage, table[i].help);
		return 0;
	}
	say("there is no command '%s'; 'cordon --help' lists them", name);
	return EXIT_OURS;
}

/*
 * What a command opens is none of the standard streams, whichever of them it
 * was started without, nor one of the two above (keeper.h). A run has more
 * urgent things to begin with.
 */
static int start(const struct command *c, int argc, char **argv)
{
	if (c->run != cmd_run)
		io_hold_below(KEEPER_FIRST_FD);
	return c->run(argc, argv);
}

static int dispatch(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "help") == 0 && argc == 3)
		return help(argv[2]);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
	    strcmp(name, "help") == 0)
		return usage(stdout);
	if (strcmp(name, "--version") == 0)
		name = "version";
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(name, table[i].name) == 0)
			return start(&table[i], argc - 1, argv + 1);
	for (size_t i = 0; i < ARRAY_SIZE(later); i++)
		if (strcmp(name, later[i]) == 0) {
			say("'%s' is not in this build", name);
			return EXIT_OURS;
		}
	if (*name)
		say("there is no command '%s'; 'cordon --help' lists them",
		    name);
	return *name ? EXIT_OURS : usage(stderr);
}

static bool is_missing[3];

bool stream_is_missing(int fd)
{
	return is_missing[fd];
}

/* What was said and could not be written is no success. */
int main(int argc, char **argv)
{
	bool is_any_missing = false;
	int code;

	/* Before something else is opened in its place. */
	for (int i = 0; i < (int)ARRAY_SIZE(is_missing); i++) {
		is_missing[i] = fcntl(i, F_GETFD) < 0;
		is_any_missing |= is_missing[i];
	}
	if (is_any_missing)
		io_hold_below(STDERR_FILENO + 1);
	/* Who ignores it when we are started would reap ours unseen. */
	(void)signal(SIGCHLD, SIG_DFL);
	code = dispatch(argc, argv);

	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	say("standard output could not be written");
	return code ? code : EXIT_OURS;
}
