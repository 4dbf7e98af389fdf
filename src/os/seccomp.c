/* SPDX-License-Identifier: Apache-2.0 */
#include "os/seccomp.h"

#include <errno.h>
#include <sys/prctl.h>

#include "base/util.h"
#include "os/uapi.h"

#include "filter.h"

#define SECCOMP_MODE_FILTER_ 2

int seccomp_install(struct err *err)
{
	const struct uapi_fprog prog = { .len = ARRAY_SIZE(filter),
					 .filter = filter };

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER_, &prog, 0, 0) < 0)
		return err_errno(err, errno, "install the system call filter");
	return 0;
}
