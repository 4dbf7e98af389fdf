/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/words.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "box/handle.h"

#define DESK "cordon-desk"

static int spawn_desk(int out, pid_t *ret, struct err *err)
{
	static const char *const argv[] = { DESK, "words", NULL };
	posix_spawn_file_actions_t actions;
	extern char **environ;
	char program[4096];
	int r;

	if (program_find(DESK, program, sizeof(program), err) < 0)
		return -err->code;
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, out, 1);
	r = posix_spawn(ret, program, &actions, NULL, (char **)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r ? err_errno(err, r, "start '%s'", program) : 0;
}

/* All that the desk prints. */
static int ask_desk(struct buf *ret, struct err *err)
{
	_cleanup_fd_ int from = NO_FD;
	char chunk[4096];
	int fds[2];
	int status = 0;
	pid_t pid = 0;
	ssize_t n;
	int r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	from = fds[0];
	r = spawn_desk(fds[1], &pid, err);
	(void)close(fds[1]);
	if (r < 0)
		return r;
	while ((n = read(from, chunk, sizeof(chunk))) > 0 ||
	       (n < 0 && errno == EINTR))
		if (n > 0)
			(void)buf_add(ret, chunk, (size_t)n);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n < 0 || ret->error || status != 0 || ret->len == 0)
		return err_set(err, EIO, "%s does not say what it knows", DESK);
	return 0;
}

/* "ID [--json] [--head FILE]": the flags, one space between. */
static char *take_flags(const char *takes, char *to)
{
	while ((takes = strstr(takes, "--"))) {
		size_t len = 2 +
			     strspn(takes + 2, "abcdefghijklmnopqrstuvwxyz-");

		memcpy(to, takes, len);
		to += len;
		*to++ = ' ';
		takes += len;
	}
	*to++ = '\0';
	return to;
}

static int parse(struct words *w)
{
	char *rest = w->text;
	char *flags = w->flags;
	char *line;

	while ((line = strsep(&rest, "\n")) && *line) {
		struct words_verb *v = &w->v[w->n];
		char *takes;

		if (w->n == WORDS_MAX)
			return -E2BIG;
		v->command = strsep(&line, "\t");
		v->name = strsep(&line, "\t");
		takes = strsep(&line, "\t");
		if (!takes || !line || !*line)
			return -EBADMSG;
		v->has_file = strstr(takes, "FILE") || strstr(takes, "DIR");
		v->flags = flags;
		flags = take_flags(takes, flags);
		w->n++;
	}
	return 0;
}

int words_read(struct words *ret, struct err *err)
{
	struct buf text;
	int r;

	memset(ret, 0, sizeof(*ret));
	buf_init(&text, 65536);
	r = ask_desk(&text, err);
	if (r < 0) {
		buf_done(&text);
		return r;
	}
	/* A flag and its blank are never longer than where they came from. */
	ret->flags = malloc(2 * text.len + 1);
	ret->text = buf_take(&text);
	if (!ret->flags || !ret->text)
		return err_set(err, ENOMEM, "out of memory");
	return parse(ret) < 0 ? err_set(err, EBADMSG, "%s says nonsense", DESK)
			      : 0;
}

void words_done(struct words *w)
{
	free(w->text);
	free(w->flags);
	memset(w, 0, sizeof(*w));
}
