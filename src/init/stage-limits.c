/* SPDX-License-Identifier: Apache-2.0 */

/* What each process may use, whatever its cgroup still has. */

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/util.h"
#include "init/init.h"
#include "os/caps.h"
#include "os/seccomp.h"
#include "os/uapi.h"

#define NOFILE_OF_INIT (INIT_MAX_SOCKETS + 64)

static int limit(struct init *in, int what, uint64_t value)
{
	struct rlimit now;
	struct rlimit want = { value, value };

	if (getrlimit(what, &now) < 0)
		return err_errno(&in->err, errno, "read limit %d", what);
	/* Never raised: what the keeper may not have, the box may not. */
	if (now.rlim_max < want.rlim_max)
		want.rlim_cur = want.rlim_max = now.rlim_max;
	if (setrlimit(what, &want) < 0)
		return err_errno(&in->err, errno, "set limit %d", what);
	return 0;
}

/* Where no cpuset holds the box to its CPUs, at least start there. */
static int set_affinity(struct init *in)
{
	unsigned long mask[16] = { 0 };

	for (uint32_t i = 0; i < in->bounds.n_affinity; i++) {
		uint32_t cpu = in->bounds.affinity[i];

		if (cpu < 1024)
			mask[cpu / 64] |= 1UL << (cpu % 64);
	}
	if (syscall(SYS_sched_setaffinity, 0, sizeof(mask), mask) < 0)
		return err_errno(&in->err, errno, "bind to CPUs");
	return 0;
}

/*
 * Init itself holds the gate's sockets for a while, and must be able to take
 * what comes with the work; its programs are held to the box's (become()).
 */
static uint64_t own_nofile(const struct init *in)
{
	uint64_t n = in->box->limits.nofile;

	return init_has_gate(in) ? MAX(n, NOFILE_OF_INIT) : n;
}

int stage_limits(struct init *in)
{
	/*
	 * A core_pattern that is a program ignores a limit of 0 and would run
	 * it as root of the host; 1 is the value that stops it (core(5) does
	 * not say so, fs/coredump.c does). It is too small for a file too.
	 */
	uint64_t core = in->box->blob.flags & WIRE_CORE_PIPE ? 1 : 0;
	const struct {
		int what;
		uint64_t value;
	} table[] = {
		{ RLIMIT_CORE, core },
		{ RLIMIT_NOFILE, own_nofile(in) },
		{ RLIMIT_FSIZE, in->box->limits.fsize },
		{ RLIMIT_MEMLOCK, WIRE_TOP_MEMLOCK },
		{ RLIMIT_MSGQUEUE, WIRE_TOP_MSGQUEUE },
		{ RLIMIT_SIGPENDING, WIRE_TOP_SIGPENDING },
		{ RLIMIT_STACK, WIRE_TOP_STACK },
		{ RLIMIT_NICE, 0 },
		{ RLIMIT_RTPRIO, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (limit(in, table[i].what, table[i].value) < 0)
			return -in->err.code;
	return in->bounds.n_affinity ? set_affinity(in) : 0;
}

static int lower_nofile(const struct init *in)
{
	struct rlimit now;
	uint64_t n = in->box->limits.nofile;

	if (!init_has_gate(in))
		return 0;
	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return -errno;
	now.rlim_max = MIN(now.rlim_max, n);
	now.rlim_cur = now.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &now) < 0 ? -errno : 0;
}

int limits_lower(const struct init *in)
{
	int r = lower_nofile(in);

	if (r < 0)
		return r;
	for (int i = 0; i < WIRE_RLIMITS; i++) {
		const struct wire_rlimit *l = &in->box->rlimits[i];
		struct rlimit now;

		if (!(in->box->rlimits_set & 1U << i))
			continue;
		if (getrlimit(i, &now) < 0)
			return -errno;
		now.rlim_max = MIN(now.rlim_max, l->hard);
		now.rlim_cur = MIN(MIN(now.rlim_cur, l->soft), now.rlim_max);
		if (setrlimit(i, &now) < 0)
			return -errno;
	}
	return 0;
}

int stage_caps(struct init *in)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(&in->err, errno, "set no_new_privs");
	/* Over users of the box alone; see users.c. */
	if (in->go.is_many && in->conf.stays)
		return caps_drop_all_but(CAPS_OVER_USERS | CAPS_OVER_OWNERS,
					 &in->err);
	return caps_drop_all(&in->err);
}

int stage_seccomp(struct init *in)
{
	bool egress = init_has_gate(in);

	if ((in->box->blob.flags & WIRE_COMMANDS) &&
	    seccomp_forbid_memfd(&in->err) < 0)
		return -in->err.code;
	if (in->conf.stays)
		return seccomp_install_stays(egress, &in->err);
	/* With a gate it is the gate that says what was refused. */
	if ((in->box->blob.flags & WIRE_WITNESS) && !egress)
		return seccomp_install_witness(&in->witness, &in->err);
	return seccomp_install(egress, &in->err);
}
