/* SPDX-License-Identifier: Apache-2.0 */
#include "os/seccomp.h"

#include <errno.h>
#include <sys/prctl.h>

#include "base/util.h"
#include "os/uapi.h"

#include "filter.h"

#define SECCOMP_MODE_FILTER_ 2

static int install(const struct uapi_filter *table, size_t n)
{
	const struct uapi_fprog prog = { .len = (unsigned short)n,
					 .filter = table };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER_, &prog, 0, 0);
}

int seccomp_install(struct err *err)
{
	/*
	 * The arguments first: once the numbers are in force, prctl(2) is
	 * still allowed, but nothing should depend on that.
	 */
	if (install(filter_arguments, ARRAY_SIZE(filter_arguments)) < 0 ||
	    install(filter_numbers, ARRAY_SIZE(filter_numbers)) < 0)
		return err_errno(err, errno, "install the system call filter");
	return 0;
}
