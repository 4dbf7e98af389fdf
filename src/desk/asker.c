/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/asker.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"

static void user_name(uid_t uid, char *ret, size_t size)
{
	const struct passwd *pw = getpwuid(uid);

	if (pw)
		(void)snprintf(ret, size, "%s", pw->pw_name);
	else
		(void)snprintf(ret, size, "uid %u", uid);
}

/* proc(5): field 22; the name before it may hold spaces and brackets. */
int64_t process_start(pid_t pid)
{
	char path[64];
	char text[1024];
	const char *p;
	char *end;
	long long start;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (pid <= 0 || io_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return -1;
	p = strrchr(text, ')');
	/* One that has ended and whose parent has not looked does nothing. */
	if (p && p[1] && (p[2] == 'Z' || p[2] == 'X'))
		return -1;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return -1;
	start = strtoll(p + 1, &end, 10);
	return end != p + 1 && start >= 0 ? start : -1;
}

static void program_name(pid_t pid, char *ret, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (io_read_file(AT_FDCWD, path, ret, size) <= 0)
		(void)snprintf(ret, size, "?");
	ret[strcspn(ret, "\n")] = '\0';
}

/* A process, and no other that ever had its number. */
static int process_name(pid_t pid, char *ret, size_t size)
{
	int64_t start = process_start(pid);
	char boot[64];
	int n;

	if (start < 0 ||
	    io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot,
			 sizeof(boot)) <= 0)
		return -1;
	boot[strcspn(boot, "\n")] = '\0';
	n = snprintf(ret, size, "%s %d %lld", boot, pid, (long long)start);
	return n < 0 || (size_t)n >= size ? -1 : 0;
}

static void session_name(char *ret, size_t size)
{
	const char *given = getenv("CORDON_SESSION");
	char leader[128];
	int n;

	*ret = '\0';
	if (given && *given) {
		n = snprintf(ret, size, "named %s", given);
		/* One that was cut could be another's. */
		if (n < 0 || (size_t)n >= size)
			*ret = '\0';
		return;
	}
	if (process_name(getsid(0), leader, sizeof(leader)) == 0)
		(void)snprintf(ret, size, "terminal %s", leader);
}

void asker_init(struct asker *a)
{
	*a = (struct asker){ .pid = getppid() };
	user_name(getuid(), a->user, sizeof(a->user));
	program_name(a->pid, a->program, sizeof(a->program));
	session_name(a->session, sizeof(a->session));
}

void asker_init_peer(struct asker *a, uid_t uid, pid_t pid)
{
	char daemon[128];

	*a = (struct asker){ .pid = pid };
	user_name(uid, a->user, sizeof(a->user));
	program_name(pid, a->program, sizeof(a->program));
	if (process_name(getppid(), daemon, sizeof(daemon)) == 0)
		(void)snprintf(a->session, sizeof(a->session),
			       "daemon %s, uid %u", daemon, uid);
}

void answerer(char *ret, size_t size)
{
	char user[64];
	char tty[64];
	bool has_tty = false;

	user_name(getuid(), user, sizeof(user));
	for (int fd = 0; fd < 3 && !has_tty; fd++)
		has_tty = ttyname_r(fd, tty, sizeof(tty)) == 0;
	if (has_tty)
		(void)snprintf(ret, size, "%s on %s", user,
			       strncmp(tty, "/dev/", 5) == 0 ? tty + 5 : tty);
	else
		(void)snprintf(ret, size, "%s", user);
}
