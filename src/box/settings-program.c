/* SPDX-License-Identifier: Apache-2.0 */

/* What is run: image, programs, command line, environment. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/util.h"
#include "box/guard-facts.h"
#include "box/images.h"
#include "box/settings-set.h"
#include "policy/values.h"

#define MAX_ENV_FILE (1 << 20)

SETTER(set_image)
{
	if (strcmp(v, "host") != 0 && images_check_name(v, err) < 0)
		return -err->code;
	s->stated |= SPEC_STATED_IMAGE;
	if (strcmp(v, "host") != 0)
		return put_text(&s->image, v, err);
	free(s->image);
	s->image = NULL;
	return 0;
}

/* Given again, it adds a word; empty, the image's is not used. */
SETTER(set_entrypoint)
{
	s->has_entrypoint = true;
	s->drops_cmd = true;
	if (!*v) {
		strv_done(&s->entrypoint);
		return 0;
	}
	return put_item(&s->entrypoint, v, err);
}

SETTER(set_arg)
{
	return put_item(&s->args, v, err);
}

SETTER(set_command_line)
{
	if (!*v)
		return err_set(err, EINVAL, "the command line is empty");
	return put_text(&s->command_line, v, err);
}

SETTER(set_program)
{
	if (!*v)
		return err_set(err, EINVAL, "a program has a name");
	s->has_programs = true;
	return put_item(&s->programs, v, err);
}

SETTER(set_allowed)
{
	if (!value_is_program(v))
		return err_set(err, EINVAL,
			       "'%s' is not the name of a program, without a "
			       "directory",
			       v);
	s->has_allowed = true;
	return put_item(&s->allowed, v, err);
}

SETTER(set_env)
{
	size_t len = strcspn(v, "=");

	if (len == 0)
		return err_set(err, EINVAL,
			       "'%s' is not NAME=VALUE; the host's own "
			       "variables are not passed in",
			       v);
	/* A name alone takes away what an image sets; see spec_check(). */
	for (size_t i = 0; i < s->env.n; i++)
		if (strcspn(s->env.v[i], "=") == len &&
		    strncmp(s->env.v[i], v, len) == 0)
			return put_text(&s->env.v[i], v, err);
	if (s->env.n >= 4096)
		return err_set(err, E2BIG, "more than 4096 variables");
	return put_item(&s->env, v, err);
}

SETTER(set_env_from_host)
{
	if (!value_is_env_name(v))
		return err_set(err, EINVAL, "'%s' is not a variable's name", v);
	if (s->env_from_host.n >= 4096)
		return err_set(err, E2BIG, "more than 4096 variables");
	return put_item(&s->env_from_host, v, err);
}

/* One that is there for a shell is still NAME=VALUE, without its quotes. */
static int set_env_line(struct cordon_spec *s, char *line, struct err *err)
{
	line[strcspn(line, "\r\n")] = '\0';
	if (!line[0] || line[0] == '#')
		return 0;
	if (!strchr(line, '='))
		return err_set(err, EINVAL, "'%s' is not NAME=VALUE", line);
	if (strcspn(line, " \t") < strcspn(line, "="))
		return err_set(err, EINVAL,
			       "'%.100s' has a blank in its name; write "
			       "NAME=VALUE, without 'export'",
			       line);
	return set_env(s, line, err);
}

/*
 * What ends, and does not keep us waiting for somebody to come: a file, a pipe
 * of the shell's <(...) or of standard input, and /dev/null.
 */
static int open_env_file(const char *name, struct err *err)
{
	_cleanup_fd_ int fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY |
						 O_CLOEXEC);
	char path[PATH_MAX];
	struct stat st;
	bool is_pipe;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", name);
	if (S_ISDIR(st.st_mode))
		return err_errno(err, EISDIR, "open '%s'", name);
	/* One that has a name in the file system is no such pipe. */
	is_pipe = S_ISFIFO(st.st_mode) && fd_path(fd, path, sizeof(path)) < 0;
	if (!S_ISREG(st.st_mode) && !is_pipe &&
	    !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
		return err_set(err, EINVAL,
			       "'%.300s' is not a regular file, nor a pipe",
			       name);
	if (fcntl(fd, F_SETFL, 0) < 0)
		return err_errno(err, errno, "open '%s'", name);
	return take_fd(&fd);
}

static int read_env_file(const char *name, struct buf *ret, struct err *err)
{
	_cleanup_fd_ int fd = open_env_file(name, err);
	char chunk[8192];
	ssize_t n;

	if (fd < 0)
		return fd;
	while ((n = io_read_full(fd, chunk, sizeof(chunk))) > 0)
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return err_set(err, EFBIG,
				       "'%.300s' has more than %d "
				       "bytes",
				       name, MAX_ENV_FILE);
	return n < 0 ? err_errno(err, (int)-n, "read '%s'", name) : 0;
}

static int set_env_lines(struct cordon_spec *s, struct buf *text,
			 const char *name, struct err *err)
{
	size_t at = 0;
	int number = 0;
	int r = 0;

	while (r == 0 && at < text->len) {
		char *line = text->data + at;
		char *end = memchr(line, '\n', text->len - at);
		size_t len = end ? (size_t)(end - line) : text->len - at;

		number++;
		at += len + 1;
		line[len] = '\0';
		r = strlen(line) == len
			    ? set_env_line(s, line, err)
			    : err_set(err, EINVAL, "it has a byte 0 in it");
	}
	return r < 0 ? err_wrap(err, "%s:%d", name, number) : 0;
}

/* NAME=VALUE lines; '#' starts a comment line. */
SETTER(set_env_file)
{
	struct buf text;
	int r;

	if (s->is_served)
		return err_set(err, EINVAL,
			       "the daemon reads no file for a client; send "
			       "the variables");
	buf_init(&text, MAX_ENV_FILE);
	r = read_env_file(v, &text, err);
	if (r == 0)
		r = set_env_lines(s, &text, v, err);
	buf_done(&text);
	return r;
}
