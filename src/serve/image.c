/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon-image for the front: a fixed list of what it may be told. Nothing
 * that names a file of the host is among it: archives come on standard input
 * and go to standard output.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "base/util.h"
#include "box/handle.h"
#include "os/slice.h"
#include "os/uapi.h"
#include "serve/daemon.h"

#define MAX_ARGS  256
#define MAX_BYTES (64U << 10)
#define EXIT_OURS 125

/* A flag's value follows it as the next word where it has one ("="). */
static const struct allowed {
	const char *name;
	const char *flags; /* separated by blanks */
	int most;          /* operands */
} allowed[] = {
	{ "load", "--quiet --json --name=", 0 },
	{ "import", "--quiet --json --change= --message=", 2 },
	{ "save", "--quiet", MAX_ARGS },
	{ "ls", "--quiet --json --names", 0 },
	{ "inspect", "--json", MAX_ARGS },
	{ "rm", "--force --json", MAX_ARGS },
	{ "prune", "--all --json", 0 },
	{ "tag", "", 2 },
};

static const struct allowed *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		if (strcmp(name, allowed[i].name) == 0)
			return &allowed[i];
	return NULL;
}

/* 0: not one of these; 1: one without a value; 2: with the next word. */
static int is_flag(const struct allowed *a, const char *arg)
{
	size_t len = strlen(arg);

	for (const char *p = a->flags; *p;) {
		size_t n = strcspn(p, " =");

		if (n == len && memcmp(p, arg, n) == 0)
			return p[n] == '=' ? 2 : 1;
		p += strcspn(p, " ");
		p += *p == ' ';
	}
	return 0;
}

/* Whether all of it is on the list. */
static bool is_allowed(char *const *args)
{
	const struct allowed *a = args[0] ? find(args[0]) : NULL;
	bool is_import = a && strcmp(a->name, "import") == 0;
	int operands = 0;

	if (!a)
		return false;
	for (args++; *args; args++) {
		int kind = is_flag(a, *args);

		if (kind == 2 && !*++args)
			return false;
		if (kind)
			continue;
		/* The archive is what comes in, whatever else is named. */
		if (is_import && operands == 0 && strcmp(*args, "-") != 0)
			return false;
		if ((**args == '-' && !(is_import && operands == 0)) ||
		    **args == '/' || !**args || ++operands > a->most)
			return false;
	}
	return !is_import || operands > 0;
}

/* The words of the document into argv, from `from` on. */
static int split(const struct buf *text, char **argv, int from)
{
	int n = from;

	if (text->len == 0 || text->data[text->len - 1] != '\0')
		return -EINVAL;
	for (size_t at = 0; at < text->len; at += strlen(text->data + at) + 1) {
		if (n == MAX_ARGS)
			return -E2BIG;
		argv[n++] = text->data + at;
	}
	argv[n] = NULL;
	return 0;
}

static int take_streams(const int fds[4])
{
	int high[3];

	for (int i = 0; i < 3; i++) {
		high[i] = fcntl(fds[1 + i], F_DUPFD_CLOEXEC, 32);
		if (high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(high[i], i) < 0)
			return -errno;
	return 0;
}

void image_run_child(const struct daemon *d, const int fds[5])
{
	static struct who who;
	static char name[] = "cordon-image";
	static char word[] = "image";
	static char path_env[] = "PATH=/usr/bin:/bin";
	static char lang_env[] = "LANG=C.UTF-8";
	static char *argv[MAX_ARGS + 1] = { name, word };
	char state[PATH_MAX + 32];
	char whom[48];
	char *env[] = { path_env, lang_env, state, whom, NULL };
	struct err err = { 0 };
	char path[PATH_MAX];
	struct buf text;

	buf_init(&text, MAX_BYTES);
	(void)setsid();
	(void)snprintf(state, sizeof(state), "CORDON_STATE_DIR=%s", d->state);
	if (take_streams(fds) < 0)
		_exit(EXIT_OURS);
	if (doc_read(fds[0], &text, &err) < 0 || split(&text, argv, 2) < 0 ||
	    !is_allowed(argv + 2)) {
		say("the daemon does not run that command on images");
		_exit(EXIT_OURS);
	}
	/* Whose names it may change: not by the front's word. */
	if (who_find(d, fds[4], &who, &err) < 0) {
		say("%s", err.text);
		_exit(EXIT_OURS);
	}
	(void)snprintf(whom, sizeof(whom), "CORDON_IMAGE_FOR=%u",
		       (unsigned int)who.uid);
	slice_usual();
	if (program_find(name, path, sizeof(path), &err) < 0 ||
	    child_keep(fds, 0) < 0 || chdir("/") < 0 ||
	    child_settle(getppid()) < 0) {
		say("%s", err.code ? err.text : "cordon-image cannot start");
		_exit(EXIT_OURS);
	}
	(void)execve(path, argv, env);
	say("start '%s': %s", path, strerror(errno));
	_exit(EXIT_OURS);
}
