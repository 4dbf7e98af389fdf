/* SPDX-License-Identifier: Apache-2.0 */
#include "os/seccomp.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "os/uapi.h"

#include "filter.h"

#define SECCOMP_MODE_FILTER_ 2

static int install(const struct uapi_filter *table, unsigned short n,
		   struct err *err)
{
	const struct uapi_fprog prog = { .len = n, .filter = table };

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER_, &prog, 0, 0) < 0)
		return err_errno(err, errno, "install the system call filter");
	return 0;
}

int seccomp_install(bool egress, struct err *err)
{
	if (egress)
		return install(filter_egress, ARRAY_SIZE(filter_egress), err);
	return install(filter, ARRAY_SIZE(filter), err);
}

int seccomp_install_stays(bool egress, struct err *err)
{
	if (egress)
		return install(filter_egress_stays,
			       ARRAY_SIZE(filter_egress_stays), err);
	return install(filter_stays, ARRAY_SIZE(filter_stays), err);
}

int seccomp_install_witness(int *ret_fd, struct err *err)
{
	const struct uapi_fprog prog = { .len = ARRAY_SIZE(filter_witness),
					 .filter = filter_witness };
	long fd = syscall(SYS_seccomp, UAPI_SECCOMP_SET_FILTER,
			  UAPI_SECCOMP_NEW_LISTENER, &prog);

	if (fd < 0)
		return err_errno(err, errno,
				 "install the system call filter with a "
				 "witness");
	*ret_fd = (int)fd;
	return 0;
}

int seccomp_forbid_memfd(struct err *err)
{
	return install(filter_commands, ARRAY_SIZE(filter_commands), err);
}
