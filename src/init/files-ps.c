/* SPDX-License-Identifier: Apache-2.0 */

/* The processes of the box, one line each; but for the one that lists them. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "init/files.h"

#define ARGS_MAX 4096

/* What a line cannot have in it. */
static void tame(char *text, size_t len, char between)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] == '\0')
			text[i] = between;
		else if ((unsigned char)text[i] < ' ' || text[i] == 127)
			text[i] = '?';
}

static unsigned int uid_of(int dir)
{
	char text[4096];
	const char *at;

	if (io_read_file(dir, "status", text, sizeof(text)) <= 0)
		return 65534;
	at = strstr(text, "\nUid:");
	return at ? (unsigned int)strtoul(at + 5, NULL, 10) : 65534;
}

/* "PID PPID STATE START TIME RSS SIZE UID COMM\tARGS"; false if it is gone. */
static bool describe(int dir, char *ret, size_t size)
{
	char stat[1024];
	char args[ARGS_MAX];
	char *open;
	char *close;
	const char *rss;
	char state;
	long pid;
	long parent;
	unsigned long long used;
	unsigned long long start;
	unsigned long long bytes;
	long long pages;
	ssize_t n;

	if (io_read_file(dir, "stat", stat, sizeof(stat)) <= 0)
		return false;
	/* The name may hold anything, also brackets. */
	open = strchr(stat, '(');
	close = strrchr(stat, ')');
	rss = proc_field(stat, PROC_RSS);
	if (!open || !close || close < open || !rss)
		return false;
	pid = strtol(stat, NULL, 10);
	state = *proc_field(stat, PROC_STATE);
	parent = strtol(proc_field(stat, PROC_PARENT), NULL, 10);
	used = strtoull(proc_field(stat, PROC_USER), NULL, 10) +
	       strtoull(proc_field(stat, PROC_KERNEL), NULL, 10);
	start = strtoull(proc_field(stat, PROC_START), NULL, 10);
	bytes = strtoull(proc_field(stat, PROC_SIZE), NULL, 10);
	pages = strtoll(rss, NULL, 10);
	*close = '\0';
	tame(open + 1, strlen(open + 1), ' ');
	n = io_read_file(dir, "cmdline", args, sizeof(args));
	if (n <= 0)
		n = snprintf(args, sizeof(args), "[%s]", open + 1);
	while (n > 1 && args[n - 1] == '\0')
		n--;
	args[n] = '\0';
	tame(args, (size_t)n, ' ');
	(void)snprintf(ret, size, "%ld %ld %c %llu %llu %lld %llu %u %s\t%s",
		       pid, parent, state, start, used, pages, bytes,
		       uid_of(dir), open + 1, args);
	return true;
}

void files_ps(struct files *f)
{
	_cleanup_fd_ int proc = openat(AT_FDCWD, "/proc",
				       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dents d = { .fd = proc };
	struct files_entry e = { .kind = 'f' };
	char line[ARGS_MAX + 256];
	const char *name;

	if (proc < 0)
		(void)err_errno(&f->err, errno, "open /proc");
	files_answer(f);
	if (proc < 0)
		return;
	while ((name = dents_next(&d))) {
		_cleanup_fd_ int dir = NO_FD;

		if (name[0] < '1' || name[0] > '9' || atoi(name) == getpid())
			continue;
		dir = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0 || !describe(dir, line, sizeof(line)))
			continue;
		e.name_len = (uint32_t)strlen(line);
		files_put_entry(f, &e, line, "");
	}
	files_put_end(f, 0, 0, "");
}
