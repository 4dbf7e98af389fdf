/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The keeper's own place in the machine.
 *
 * Theory of operation. Mounts can only be copied by a process that is capable
 * in their mount namespace. Root is; an ordinary user's keeper enters a user
 * namespace in which it is capable, with a mount namespace that is a copy of
 * the host's. New mounts of the host still arrive there (slave propagation).
 * Nothing is ever mounted in the host's own namespace.
 *
 * Ids are mapped one to one in the keeper's user namespace, so an id means
 * the same here as on the host.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/caps.h"
#include "os/landlock.h"
#include "os/mnt.h"
#include "os/uapi.h"

#define PROC_MAGIC             0x9fa0
#define SECBIT_NO_SETUID_FIXUP 4

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

/* Host uids of boxes when root: above systemd's container range. */
#define ROOT_UID_BASE  0x70000000U
#define ROOT_UID_COUNT 65536U

/*
 * And of their further users: from there to where systemd's range for images
 * of others begins (0x7ffe0000, since version 258).
 */
#define ROOT_BLOCK_BASE  (ROOT_UID_BASE + ROOT_UID_COUNT)
#define ROOT_BLOCK_COUNT ((0x7ffe0000U - ROOT_BLOCK_BASE) / WIRE_IDS)
#define ROOT_UID_END     (ROOT_BLOCK_BASE + ROOT_BLOCK_COUNT * WIRE_IDS)

extern const unsigned char cordon_init_start[];
extern const unsigned char cordon_init_end[];

static int seal_init(struct world *w, struct err *err)
{
	size_t size = (size_t)(cordon_init_end - cordon_init_start);

	w->init = memfd_create("cordon-init",
			       MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (w->init < 0 && errno == EINVAL) /* before Linux 6.3 */
		w->init = memfd_create("cordon-init",
				       MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (w->init < 0)
		return err_errno(err, errno, "make a memfd for init");
	if (io_write_all(w->init, cordon_init_start, size) < 0 ||
	    io_seal(w->init) < 0)
		return err_errno(err, errno, "seal init");
	return 0;
}

/* A procfs that is not one would let someone else answer for the kernel. */
static int open_proc(struct world *w, struct err *err)
{
	struct statfs fs;

	w->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w->proc < 0 || fstatfs(w->proc, &fs) < 0)
		return err_errno(err, errno, "open /proc");
	if (fs.f_type != PROC_MAGIC)
		return err_set(err, EPERM,
			       "/proc is not a procfs; mount one there");
	return 0;
}

/* The caller's line in /etc/subuid or /etc/subgid: "name:start:count". */
static bool sub_range(const char *file, const char *name, uint32_t *ret_base,
		      uint32_t *ret_count)
{
	char text[8192];
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", (unsigned int)getuid());
	if (io_read_file(AT_FDCWD, file, text, sizeof(text)) <= 0)
		return false;
	for (char *p = text; *p; p = strchrnul(p, '\n')) {
		char who[64];
		unsigned int base;
		unsigned int count;

		p += *p == '\n';
		if (sscanf(p, "%63[^:\n]:%u:%u", who, &base, &count) != 3 ||
		    count == 0)
			continue;
		if (strcmp(who, number) != 0 && strcmp(who, name) != 0)
			continue;
		*ret_base = base;
		*ret_count = count;
		return true;
	}
	return false;
}

static void caller_name(char *ret, size_t size)
{
	char text[16384];

	ret[0] = '\0';
	if (io_read_file(AT_FDCWD, "/etc/passwd", text, sizeof(text)) <= 0)
		return;
	for (char *p = text; *p; p = strchrnul(p, '\n')) {
		char who[64];
		unsigned int uid;

		p += *p == '\n';
		if (sscanf(p, "%63[^:\n]:%*[^:\n]:%u:", who, &uid) == 2 &&
		    uid == getuid()) {
			(void)snprintf(ret, size, "%s", who);
			return;
		}
	}
}

static int run_helper(const char *program, pid_t pid, uint32_t own,
		      uint32_t base, uint32_t count)
{
	char text[5][16];
	const char *const argv[] = { program, text[0], text[1], text[1], "1",
				     text[2], text[2], text[3], NULL };
	static const char *const env[] = { "PATH=/usr/bin:/bin:/usr/sbin",
					   NULL };
	int status;
	pid_t child;

	(void)snprintf(text[0], sizeof(text[0]), "%d", (int)pid);
	(void)snprintf(text[1], sizeof(text[1]), "%u", own);
	(void)snprintf(text[2], sizeof(text[2]), "%u", base);
	(void)snprintf(text[3], sizeof(text[3]), "%u", count);
	child = vfork();
	if (child == 0) {
		(void)execve(program, (char **)argv, (char **)env);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -1;
	return status == 0 ? 0 : -1;
}

/*
 * newuidmap(1) and newgidmap(1) may give the namespace of process `pid` the
 * caller's range. They must run outside of it, so a child does it that is
 * forked before; it answers with its exit status.
 */
static pid_t fork_mapper(struct world *w, const int go[2])
{
	uint32_t count = w->uid_count + w->block_count * WIRE_IDS;
	pid_t self = getpid();
	pid_t child = fork();
	char c;

	if (child != 0)
		return child;
	(void)close(go[1]);
	if (read(go[0], &c, 1) != 1)
		_exit(1);
	if (run_helper("/usr/bin/newuidmap", self, w->caller, w->uid_base,
		       count) < 0 ||
	    run_helper("/usr/bin/newgidmap", self, w->caller_gid, w->uid_base,
		       count) < 0)
		_exit(1);
	_exit(0);
}

static int map_self(const struct world *w, struct err *err)
{
	char line[64];

	if (io_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
		return err_errno(err, EPERM, "write /proc/self/setgroups");
	(void)snprintf(line, sizeof(line), "%u %u 1", w->caller, w->caller);
	if (io_write_file(AT_FDCWD, "/proc/self/uid_map", line) < 0)
		return err_errno(err, EPERM, "write /proc/self/uid_map");
	(void)snprintf(line, sizeof(line), "%u %u 1", w->caller_gid,
		       w->caller_gid);
	if (io_write_file(AT_FDCWD, "/proc/self/gid_map", line) < 0)
		return err_errno(err, EPERM, "write /proc/self/gid_map");
	return 0;
}

static int no_userns(struct err *err)
{
	return err_set(err, EPERM,
		       "make a user namespace: not permitted here; as root "
		       "set user.max_user_namespaces and "
		       "kernel.unprivileged_userns_clone to allow it "
		       "(cordon doctor says more)");
}

/* Whether the caller has the same range of uids and gids, and the tools. */
static bool has_range(struct world *w)
{
	char name[64];
	uint32_t gid_base = 0;
	uint32_t gid_count = 0;

	caller_name(name, sizeof(name));
	if (access("/usr/bin/newuidmap", X_OK) < 0 ||
	    access("/usr/bin/newgidmap", X_OK) < 0 ||
	    !sub_range("/etc/subuid", name, &w->uid_base, &w->uid_count) ||
	    !sub_range("/etc/subgid", name, &gid_base, &gid_count) ||
	    gid_base != w->uid_base)
		return false;
	gid_count = MIN(w->uid_count, gid_count);
	w->uid_count = MIN(gid_count, ROOT_UID_COUNT);
	/* What is beyond the usual 65536 gives boxes further users. */
	w->block_base = w->uid_base + w->uid_count;
	w->block_count = MIN((gid_count - w->uid_count) / WIRE_IDS,
			     ROOT_BLOCK_COUNT);
	return true;
}

/*
 * Enters a user namespace and maps it: with the caller's range where there is
 * one and the helpers agree, else with the caller's own id alone.
 */
static int enter_as_user(struct world *w, struct err *err)
{
	int go[2] = { NO_FD, NO_FD };
	pid_t mapper = 0;
	int status = 1;

	/* Our files in /proc must be ours to write the maps. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (has_range(w) && pipe2(go, O_CLOEXEC) == 0)
		mapper = fork_mapper(w, go);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		(void)no_userns(err);
	else if (mapper > 0)
		(void)!write(go[1], "g", 1);
	fd_close(&go[0]);
	fd_close(&go[1]);
	if (mapper > 0)
		(void)waitpid(mapper, &status, 0);
	if (err->code)
		return -err->code;
	if (status == 0)
		return setgroups(0, NULL) < 0
			       ? err_errno(err, errno, "drop groups")
			       : 0;
	w->uid_count = 0;
	w->block_count = 0;
	return map_self(w, err);
}

static int enter_as_root(struct world *w, struct err *err)
{
	w->uid_base = ROOT_UID_BASE;
	w->uid_count = ROOT_UID_COUNT;
	w->block_base = ROOT_BLOCK_BASE;
	w->block_count = ROOT_BLOCK_COUNT;
	/* With a user namespace instead, a box would be the host's root. */
	if (!caps_has_sys_admin())
		return err_set(err, EPERM,
			       "root has no CAP_SYS_ADMIN here, as in an "
			       "ordinary container; run Cordon there as an "
			       "ordinary user, or give the container SYS_ADMIN "
			       "(docker: --cap-add SYS_ADMIN)");
	if (setgroups(0, NULL) < 0)
		return err_errno(err, errno, "drop supplementary groups");
	return 0;
}

/*
 * Whether we are root of the whole machine, rather than of a user namespace
 * in which 0 is some ordinary user. Where 0 is 0 but not everything is
 * mapped, it cannot be told who that is; then there is no box, because none
 * may ever have the host's uid 0.
 */
int world_find_caller(struct world *w, struct err *err)
{
	char text[256];
	unsigned int inside = 0;
	unsigned int outside = 0;
	unsigned int count = 0;

	if (open_proc(w, err) < 0)
		return -err->code;
	w->caller = geteuid();
	w->caller_gid = getegid();
	w->is_root = false;
	if (w->caller != 0)
		return 0;
	if (io_read_file(w->proc, "self/uid_map", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%u %u %u", &inside, &outside, &count) != 3)
		return err_set(err, EIO, "read /proc/self/uid_map");
	if (inside == 0 && outside != 0)
		return 0;
	if (count < ROOT_UID_END)
		return err_set(err, EPERM,
			       "uid 0 of this user namespace may be the host's "
			       "root; run Cordon as an ordinary user, or "
			       "outside of the namespace");
	w->is_root = true;
	return 0;
}

static int open_runtime(struct world *w, struct err *err)
{
	const char *dir = getenv("CORDON_RUNTIME_DIR");
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (dir && dir[0] == '/')
		(void)snprintf(w->runtime, sizeof(w->runtime), "%s", dir);
	else if (w->is_root)
		(void)snprintf(w->runtime, sizeof(w->runtime), "/run/cordon");
	else if (xdg && xdg[0] == '/')
		(void)snprintf(w->runtime, sizeof(w->runtime), "%.200s/cordon",
			       xdg);
	else
		(void)snprintf(w->runtime, sizeof(w->runtime), "/tmp/cordon-%u",
			       (unsigned int)w->caller);
	if (mkdir(w->runtime, 0700) < 0 && errno != EEXIST)
		return err_errno(err, errno,
				 "make '%s' (CORDON_RUNTIME_DIR names another)",
				 w->runtime);
	w->runtime_fd = open(w->runtime,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->runtime_fd < 0 || fstat(w->runtime_fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", w->runtime);
	if (st.st_uid != w->caller || (st.st_mode & 022))
		return err_set(err, EPERM,
			       "'%s' belongs to someone else or may be "
			       "written by others; remove it, or set "
			       "CORDON_RUNTIME_DIR",
			       w->runtime);
	return 0;
}

int world_open(struct world *w, struct err *err)
{
	w->landlock_abi = landlock_abi();
	if (open_runtime(w, err) < 0 || seal_init(w, err) < 0)
		return -err->code;
	if ((w->is_root ? enter_as_root(w, err) : enter_as_user(w, err)) < 0)
		return -err->code;
	if (!w->is_root && mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
		return err_errno(err, errno, "stop mounts from leaving");
	w->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w->root < 0)
		return err_errno(err, errno, "open the host's root");
	/* A box is born with its own uid while our rights stay; see spawn.c. */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
		return err_errno(err, errno,
				 "keep rights over a change of uid");
	return 0;
}

/*
 * For a keeper whose boxes stay: a kept disk is mounted for a moment to make a
 * second mount of it, and that is nobody's to see. What the host mounts later
 * still arrives.
 */
int world_own_mounts(struct world *w, struct err *err)
{
	int root;

	if (w->is_root && (unshare(CLONE_NEWNS) < 0 ||
			   mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0))
		return err_errno(err, errno, "make a mount namespace");
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_errno(err, errno, "open the host's root");
	fd_close(&w->root);
	w->root = root;
	return 0;
}
