/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Processes by their family, for a machine on which a program has no group of
 * its own. What has left its session and lost its parent is not found so; it
 * ends with the box.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/util.h"
#include "init/files.h"
#include "init/init.h"

#define MOST   1024
#define ROUNDS 20

static pid_t family[MOST];
static size_t n_family;

static bool is_known(pid_t pid)
{
	for (size_t i = 0; i < n_family; i++)
		if (family[i] == pid)
			return true;
	return false;
}

const char *proc_field(const char *stat, int n)
{
	const char *p = strrchr(stat, ')');

	for (; p && n > 0; n--) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p;
}

static bool is_of(const char *pid, pid_t first)
{
	char path[64];
	char text[1024];
	const char *parent;
	const char *session;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	if (io_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	parent = proc_field(text, PROC_PARENT);
	session = proc_field(text, PROC_SESSION);
	return session && (strtol(session, NULL, 10) == first ||
			   is_known((pid_t)strtol(parent, NULL, 10)));
}

/* Adds who is not known yet, and stops it, so that it has no more children. */
static bool add_more(pid_t first)
{
	_cleanup_fd_ int fd = openat(AT_FDCWD, "/proc",
				     O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dents d = { .fd = fd };
	const char *name;
	bool more = false;

	while (fd >= 0 && (name = dents_next(&d))) {
		pid_t pid = atoi(name);

		if (pid <= 1 || n_family >= MOST || is_known(pid) ||
		    !is_of(name, first))
			continue;
		users_kill(pid, SIGSTOP);
		family[n_family++] = pid;
		more = true;
	}
	return more;
}

void session_kill_tree(pid_t first)
{
	if (first <= 1)
		return;
	n_family = 0;
	family[n_family++] = first;
	users_kill(first, SIGSTOP);
	for (int i = 0; i < ROUNDS && add_more(first); i++)
		;
	for (size_t i = 0; i < n_family; i++)
		users_kill(family[i], SIGKILL);
}
