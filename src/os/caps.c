/* SPDX-License-Identifier: Apache-2.0 */
#include "os/caps.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>

#include "base/util.h"
#include "os/clone.h"
#include "os/uapi.h"

#define CAP_VERSION_3 0x20080522

/* include/uapi/linux/capability.h */
enum {
	CAP_CHOWN = 0,
	CAP_DAC_OVERRIDE = 1,
	CAP_DAC_READ_SEARCH = 2,
	CAP_FOWNER = 3,
	CAP_FSETID = 4,
	CAP_KILL = 5,
	CAP_SETGID = 6,
	CAP_SETUID = 7,
	CAP_SETPCAP = 8,
	CAP_NET_BIND_SERVICE = 10,
	CAP_NET_ADMIN = 12,
	CAP_NET_RAW = 13,
	CAP_SYS_ADMIN = 21,
	CAP_SYS_RESOURCE = 24,
	CAP_LAST_POSSIBLE = 63,
};

#define SECBIT_NOROOT_LOCKED               0x3
#define SECBIT_NO_SETUID_FIXUP_LOCKED      0xc
#define SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED 0xc0

struct cap_header {
	uint32_t version;
	int pid;
};

struct cap_data {
	uint32_t effective;
	uint32_t permitted;
	uint32_t inheritable;
};

bool caps_has_sys_admin(void)
{
	struct cap_header head = { CAP_VERSION_3, 0 };
	struct cap_data data[2];

	return syscall(SYS_capget, &head, data) == 0 &&
	       (data[0].effective & 1U << CAP_SYS_ADMIN);
}

int caps_keep_over_exec(void)
{
	static const uint8_t keep[] = {
		CAP_CHOWN,     CAP_DAC_OVERRIDE,     CAP_FOWNER,
		CAP_KILL,      CAP_SETGID,           CAP_SETUID,
		CAP_SETPCAP,   CAP_SYS_ADMIN,        CAP_SYS_RESOURCE,
		CAP_NET_ADMIN, CAP_NET_BIND_SERVICE, CAP_NET_RAW
	};
	struct cap_header head = { CAP_VERSION_3, 0 };
	struct cap_data data[2];
	long r = clone_call(SYS_capget, (long)&head, (long)data, 0, 0, 0);

	if (r < 0)
		return (int)r;
	data[0].inheritable = data[0].permitted;
	data[1].inheritable = data[1].permitted;
	r = clone_call(SYS_capset, (long)&head, (long)data, 0, 0, 0);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(keep); i++)
		r = clone_call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE,
			       keep[i], 0, 0);
	return (int)r;
}

int caps_over_files(bool in_force)
{
	const uint32_t over = 1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE |
			      1U << CAP_DAC_READ_SEARCH | 1U << CAP_FOWNER |
			      1U << CAP_FSETID;
	struct cap_header head = { CAP_VERSION_3, 0 };
	struct cap_data data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	if (in_force)
		data[0].effective |= over & data[0].permitted;
	else
		data[0].effective &= ~over;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int caps_drop_held(struct err *err)
{
	struct cap_header head = { CAP_VERSION_3, 0 };
	const struct cap_data none[2] = { 0 };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_errno(err, errno, "clear ambient capabilities");
	if (syscall(SYS_capset, &head, none) < 0)
		return err_errno(err, errno, "drop all capabilities");
	return 0;
}

static_assert(CAPS_OVER_USERS ==
		      (1U << CAP_KILL | 1U << CAP_SETGID | 1U << CAP_SETUID),
	      "they are numbers there");
static_assert(CAPS_OVER_OWNERS == (1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE |
				   1U << CAP_FOWNER),
	      "they are numbers there");

/* Nothing of it can come back by an exec, whoever executes what. */
static int lock(struct err *err)
{
	/* EINVAL: past the last capability that this kernel knows */
	for (int cap = 0; cap <= CAP_LAST_POSSIBLE; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL)
				break;
			return err_errno(err, errno,
					 "drop capability %d for ever", cap);
		}
	if (prctl(PR_SET_SECUREBITS,
		  SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
			  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED) < 0)
		return err_errno(err, errno, "lock the capability rules");
	return 0;
}

int caps_drop_all(struct err *err)
{
	return lock(err) < 0 ? -err->code : caps_drop_held(err);
}

static int hold(uint32_t permitted, uint32_t effective)
{
	struct cap_header head = { CAP_VERSION_3, 0 };
	const struct cap_data data[2] = { { .permitted = permitted,
					    .effective = effective } };

	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int caps_drop_all_but(uint32_t keep, struct err *err)
{
	if (lock(err) < 0)
		return -err->code;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    hold(keep, 0) < 0)
		return err_errno(err, errno, "drop capabilities");
	return 0;
}

static int held(uint32_t *ret)
{
	struct cap_header head = { CAP_VERSION_3, 0 };
	struct cap_data data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	*ret = data[0].permitted;
	return 0;
}

int caps_in_force(uint32_t which)
{
	uint32_t kept = 0;
	int r = held(&kept);

	return r < 0 ? r : hold(kept, kept & which);
}

int caps_keep_only(uint32_t keep)
{
	uint32_t kept = 0;
	int r = held(&kept);

	return r < 0 ? r : hold(kept & keep, 0);
}
