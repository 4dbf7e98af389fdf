/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parts of a box, one for each of its programs.
 *
 * Theory of operation. In version 2 a part is one directory; cgroup.kill ends
 * everything in it at once, also what has forked away from its parent, and
 * the kernel counts its CPU time. To be born there costs nothing, whereas to
 * move there waits for an RCU grace period (7 to 15 ms); so it is by birth.
 *
 * In version 1 nothing kills a group. There it is first told that it may have
 * no more processes (pids.max 0, so no fork succeeds), and then what is in it
 * is signalled until nothing is.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "os/cgroup.h"
#include "os/uapi.h"

#define KILL_ROUNDS 20

static const enum cg_role v1_roles[] = { CG_PIDS, CG_ACCT, CG_FREEZE };

struct part_name {
	char text[16];
};

static struct part_name name_of(uint32_t number)
{
	struct part_name n;

	(void)snprintf(n.text, sizeof(n.text), "p%u", number);
	return n;
}

static bool by_v2(const struct cg_tree *tree)
{
	return tree->role[CG_KILL].fd >= 0 && tree->role[CG_KILL].v2;
}

/* The i-th role in whose directory there is a part, CG_ROLES: no more. */
static enum cg_role role_at(const struct cg_tree *tree,
			    const struct cg_box *box, size_t i)
{
	size_t n = 0;

	if (by_v2(tree))
		return i == 0 ? CG_KILL : CG_ROLES;
	for (size_t k = 0; k < ARRAY_SIZE(v1_roles); k++) {
		enum cg_role role = v1_roles[k];
		bool is_double = false;

		for (size_t j = 0; j < k; j++)
			is_double = is_double ||
				    box->dir[v1_roles[j]] == box->dir[role];
		if (box->dir[role] < 0 || tree->role[role].v2 || is_double)
			continue;
		if (n++ == i)
			return role;
	}
	return CG_ROLES;
}

static int dir_of(const struct cg_box *box, enum cg_role role, uint32_t number)
{
	return openat(box->dir[role], name_of(number).text,
		      O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Where init will look for its rights when it lets a child be born there. */
static int give(const struct cg_box *box, const char *name, uid_t owner)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	if (fchownat(box->dir[CG_KILL], path, owner, (gid_t)-1,
		     AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchownat(box->dir[CG_KILL], "cgroup.procs", owner, (gid_t)-1,
		     AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

int cg_part_make(const struct cg_tree *tree, const struct cg_box *box,
		 uint32_t number, int64_t owner, struct err *err)
{
	struct part_name name = name_of(number);
	enum cg_role role;
	int r = 0;

	for (size_t i = 0; (role = role_at(tree, box, i)) != CG_ROLES; i++) {
		if (mkdirat(box->dir[role], name.text, 0755) < 0)
			r = -errno;
		else if (by_v2(tree) && owner >= 0)
			r = give(box, name.text, (uid_t)owner);
		if (r < 0) {
			(void)cg_part_remove(tree, box, number);
			return err_errno(err, -r, "make cgroup '%s/%s'",
					 box->name, name.text);
		}
	}
	return 0;
}

int cg_part_open(const struct cg_tree *tree, const struct cg_box *box,
		 uint32_t number, struct cg_join *ret, struct err *err)
{
	enum cg_role role;
	char path[40];

	*ret = (struct cg_join){ .dir = NO_FD };
	if (by_v2(tree)) {
		ret->dir = dir_of(box, CG_KILL, number);
		return ret->dir < 0 ? err_errno(err, errno, "open a cgroup")
				    : 0;
	}
	(void)snprintf(path, sizeof(path), "%s/tasks", name_of(number).text);
	for (size_t i = 0; (role = role_at(tree, box, i)) != CG_ROLES; i++) {
		int fd = openat(box->dir[role], path, O_WRONLY | O_CLOEXEC);

		if (fd < 0) {
			(void)err_errno(err, errno, "open tasks of a cgroup");
			cg_join_close(ret);
			return -err->code;
		}
		ret->tasks[ret->n_tasks++] = fd;
	}
	return 0;
}

void cg_join_close(struct cg_join *j)
{
	fd_close(&j->dir);
	while (j->n_tasks > 0)
		fd_close(&j->tasks[--j->n_tasks]);
}

/*
 * A number read from a group may be another process by the time it is used.
 * So each is opened, and signalled only if its number is still in the list
 * that is read after that: then it is the one that was opened, or gone.
 */
void cg_kill_tasks(int dir)
{
	char text[8192];
	char again[8192];
	char *p = text;

	if (io_read_file(dir, "cgroup.procs", text, sizeof(text)) <= 0)
		return;
	while (*p) {
		long pid = strtol(p, &p, 10);
		_cleanup_fd_ int fd = pid > 1 ? sys_pidfd_open((pid_t)pid)
					      : NO_FD;
		char *q = again;

		p += *p == '\n';
		if (fd < 0 || io_read_file(dir, "cgroup.procs", again,
					   sizeof(again)) <= 0)
			continue;
		while (*q && strtol(q, &q, 10) != pid)
			q += *q == '\n';
		if (*q)
			(void)sys_pidfd_kill(fd, SIGKILL);
	}
}

static bool is_populated(int dir, bool v2)
{
	char text[16];

	if (v2)
		return cg_keyed(dir, "cgroup.events", "populated") != 0;
	return io_read_file(dir, "cgroup.procs", text, sizeof(text)) > 0;
}

/* A part of version 1: no more forks, then whoever is there. */
static void kill_v1(const struct cg_tree *tree, const struct cg_box *box,
		    enum cg_role role, uint32_t number)
{
	_cleanup_fd_ int dir = dir_of(box, role, number);

	if (dir < 0)
		return;
	(void)io_write_file(dir, "pids.max", "0");
	for (int i = 0; i < KILL_ROUNDS && is_populated(dir, false); i++)
		cg_kill_tasks(dir);
	/* What is frozen dies only when it may move again. */
	(void)cg_part_freeze(tree, box, number, false);
}

bool cg_part_kill(const struct cg_tree *tree, const struct cg_box *box,
		  uint32_t number)
{
	enum cg_role role = role_at(tree, box, 0);
	_cleanup_fd_ int dir = NO_FD;

	if (role == CG_ROLES)
		return false;
	if (!by_v2(tree)) {
		kill_v1(tree, box, role, number);
		return true;
	}
	dir = dir_of(box, role, number);
	if (dir < 0 || io_write_file(dir, "cgroup.kill", "1") == 0)
		return dir >= 0;
	/* Before Linux 5.14; what is frozen can be killed in version 2. */
	(void)io_write_file(dir, "cgroup.freeze", "1");
	for (int i = 0; i < KILL_ROUNDS && is_populated(dir, true); i++)
		cg_kill_tasks(dir);
	(void)io_write_file(dir, "cgroup.freeze", "0");
	return true;
}

bool cg_part_is_empty(const struct cg_tree *tree, const struct cg_box *box,
		      uint32_t number)
{
	enum cg_role role = role_at(tree, box, 0);
	_cleanup_fd_ int dir = NO_FD;

	if (role == CG_ROLES)
		return true;
	dir = dir_of(box, role, number);
	return dir < 0 || !is_populated(dir, by_v2(tree));
}

uint64_t cg_part_cpu_us(const struct cg_tree *tree, const struct cg_box *box,
			uint32_t number)
{
	enum cg_role role = by_v2(tree) ? CG_KILL : CG_ACCT;
	_cleanup_fd_ int dir = NO_FD;

	if (box->dir[role] < 0)
		return 0;
	dir = dir_of(box, role, number);
	if (dir < 0)
		return 0;
	return by_v2(tree) ? cg_keyed(dir, "cpu.stat", "usage_usec")
			   : cg_single(dir, "cpuacct.usage") / 1000;
}

bool cg_may_freeze(const struct cg_tree *tree)
{
	return by_v2(tree) || tree->role[CG_FREEZE].fd >= 0;
}

int cg_part_freeze(const struct cg_tree *tree, const struct cg_box *box,
		   uint32_t number, bool is_frozen)
{
	enum cg_role role = by_v2(tree) ? CG_KILL : CG_FREEZE;
	_cleanup_fd_ int dir = NO_FD;

	if (box->dir[role] < 0)
		return -EOPNOTSUPP;
	dir = dir_of(box, role, number);
	if (dir < 0)
		return -errno;
	if (by_v2(tree))
		return io_write_file(dir, "cgroup.freeze",
				     is_frozen ? "1" : "0");
	return io_write_file(dir, "freezer.state",
			     is_frozen ? "FROZEN" : "THAWED");
}

int cg_part_remove(const struct cg_tree *tree, const struct cg_box *box,
		   uint32_t number)
{
	struct part_name name = name_of(number);
	enum cg_role role;
	int first = 0;

	for (size_t i = 0; (role = role_at(tree, box, i)) != CG_ROLES; i++)
		if (unlinkat(box->dir[role], name.text, AT_REMOVEDIR) < 0 &&
		    errno != ENOENT && !first)
			first = -errno;
	return first;
}
