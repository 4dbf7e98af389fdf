/* SPDX-License-Identifier: Apache-2.0 */

/* Who the box is: its user, its names, its view of cgroups. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "init/init.h"
#include "os/uapi.h"

#define KEYCTL_JOIN_SESSION_KEYRING 1

/*
 * The keeper has written the maps. By system call, because a library's
 * setresuid() looks for other threads; capabilities survive, since the id
 * that is left is not root's in this namespace.
 */
int stage_user(struct init *in)
{
	unsigned int uid = in->go.uid;
	unsigned int gid = in->go.gid;

	if (syscall(SYS_setresgid, gid, gid, gid) < 0)
		return err_errno(&in->err, errno, "become group %u", gid);
	if (syscall(SYS_setresuid, uid, uid, uid) < 0)
		return err_errno(&in->err, errno, "become user %u", uid);
	/*
	 * After the last change of uid, which would clear it. The socket is
	 * what init really watches; this is for the time when it does not.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_errno(&in->err, errno, "follow the keeper's death");
	/* Our own files in /proc stay ours until stage_name(). */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return err_errno(&in->err, errno, "stay dumpable");
	return 0;
}

int stage_identity(struct init *in)
{
	/* What a terminal sends to a command is not for the box's programs. */
	if (setsid() < 0)
		return err_errno(&in->err, errno,
				 "leave the command's session");
	/* ENOSYS: a kernel without keys has none to inherit */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 &&
	    errno != ENOSYS)
		return err_errno(&in->err, errno, "make a session keyring");
	return 0;
}

int stage_groups(struct init *in)
{
	for (uint32_t i = 0; i < in->bounds.n_tasks; i++) {
		if (write(in->tasks[i], "0", 1) != 1)
			return err_errno(&in->err, errno, "join a cgroup");
		fd_close(&in->tasks[i]);
	}
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_errno(&in->err, errno, "make a cgroup namespace");
	return 0;
}

/* Another one than stage_proc() has set, before nobody can any more. */
static int set_oom_score(struct init *in)
{
	char text[16];
	int r;

	if (in->box->oom_score_adj == WIRE_OOM_SCORE)
		return 0;
	(void)snprintf(text, sizeof(text), "%u", in->box->oom_score_adj);
	r = io_write_file(AT_FDCWD, "/.proc/self/oom_score_adj", text);
	return r < 0 ? err_errno(&in->err, -r, "set oom_score_adj") : 0;
}

int stage_name(struct init *in)
{
	const char *name = wire_str(&in->box->blob, in->box->hostname);
	const char *domain = wire_str(&in->box->blob, in->box->domainname);

	if (sethostname(name, strlen(name)) < 0)
		return err_errno(&in->err, errno, "set the host name");
	if (setdomainname(domain, strlen(domain)) < 0)
		return err_errno(&in->err, errno, "set the domain name");
	if (set_oom_score(in) < 0)
		return -in->err.code;
	/* Nobody in the box may look into or trace pid 1. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_errno(&in->err, errno, "be undumpable");
	return 0;
}
