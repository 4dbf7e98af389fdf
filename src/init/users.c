/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Programs as other users of a box that stays.
 *
 * Theory of operation. The user namespace of such a box has more ids than one
 * (keeper/uids.c), and its init keeps six capabilities over it, out of force
 * (os/caps.h). They reach as far as the ids of the box do: its own processes,
 * and files that belong to one of its users. A volume knows none of those but
 * the box's own user, so nothing there can be given to another, nor made by
 * one (EOVERFLOW).
 *
 * A child of init takes its ids and then gives up all of this, before it looks
 * at anything that the box could have changed; no program ever has a
 * capability. Nobody in the box can look into init or into such a child.
 */

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <unistd.h>

#include "base/util.h"
#include "init/init.h"
#include "os/caps.h"
#include "os/uapi.h"

static bool is_other(const struct init *in)
{
	const struct wire_work *w = in->work;

	if ((w->uid != WIRE_OWN_ID && w->uid != in->box->uid) ||
	    (w->gid != WIRE_OWN_ID && w->gid != in->box->gid))
		return true;
	if (w->blob.flags & WIRE_GROUPS_ASKED)
		for (uint32_t i = 0; i < w->n_groups; i++)
			if (w->groups[i] != in->box->gid)
				return true;
	return false;
}

static int explain(struct init *in, int code, const char *what, uint32_t id)
{
	if (code == EINVAL)
		return err_set(&in->err, EINVAL,
			       "this box has no %s %u; it has 1 to %u, and 0 "
			       "where the policy says 'docker."
			       "allow_root_inside: true'",
			       what, id, WIRE_IDS - 1);
	return err_errno(&in->err, code, "become %s %u", what, id);
}

static int take_groups(struct init *in)
{
	const struct wire_work *w = in->work;
	gid_t groups[WIRE_MAX_GROUPS];

	for (uint32_t i = 0; i < w->n_groups; i++)
		groups[i] = w->groups[i];
	if (syscall(SYS_setgroups, w->n_groups, groups) == 0)
		return 0;
	return errno == EINVAL ? explain(in, EINVAL, "group such as",
					 w->n_groups ? w->groups[0] : 0)
			       : err_errno(&in->err, errno, "join groups");
}

static int take_ids(struct init *in)
{
	const struct wire_work *w = in->work;
	uint32_t uid = w->uid == WIRE_OWN_ID ? in->box->uid : w->uid;
	uint32_t gid = w->gid == WIRE_OWN_ID ? in->box->gid : w->gid;
	bool has_tty = in->tty >= 0;

	/* Its terminal is its own, as login(1) would make it. */
	if (has_tty && uid != in->box->uid &&
	    fchown(in->tty, uid, (gid_t)-1) < 0)
		return explain(in, errno, "user", uid);
	if (take_groups(in) < 0)
		return -in->err.code;
	if (syscall(SYS_setresgid, gid, gid, gid) < 0)
		return explain(in, errno, "group", gid);
	if (syscall(SYS_setresuid, uid, uid, uid) < 0)
		return explain(in, errno, "user", uid);
	return 0;
}

int users_become(struct init *in)
{
	if (!in->go.is_many) {
		if (!is_other(in))
			return 0;
		return err_set(&in->err, EOPNOTSUPP,
			       "a box of this daemon has one user and one "
			       "group, %u:%u here: for more the daemon must be "
			       "root's, or its user have a range of more than "
			       "65536 ids in /etc/subuid and /etc/subgid",
			       in->box->uid, in->box->gid);
	}
	if (caps_in_force(CAPS_OVER_USERS | CAPS_OVER_OWNERS) < 0)
		return err_errno(&in->err, EPERM, "take ids");
	if (take_ids(in) < 0)
		return -in->err.code;
	return caps_drop_held(&in->err);
}

void users_kill(pid_t pid, int signal)
{
	if (caps_in_force(CAPS_OVER_USERS) < 0)
		_exit(0); /* nobody could be ended any more */
	(void)kill(pid, signal);
	if (caps_in_force(0) < 0)
		_exit(0);
}
