/* SPDX-License-Identifier: Apache-2.0 */
#include "os/allow.h"

#include <errno.h>
#include <sys/prctl.h>

#include "base/util.h"
#include "os/uapi.h"

/* linux/bpf_common.h, linux/seccomp.h, linux/audit.h */
#define LOAD      0x20 /* BPF_LD | BPF_W | BPF_ABS */
#define IF_EQUAL  0x15 /* BPF_JMP | BPF_JEQ | BPF_K */
#define RETURN    0x06 /* BPF_RET | BPF_K */
#define RET_ALLOW 0x7fff0000U
#define RET_ERRNO 0x00050000U
#define RET_KILL  0x80000000U
#define AT_NR     0
#define AT_ARCH   4
#define AT_ARGS                                                                \
	16 /* eight bytes each; both architectures are little-endian           \
	    */
#define MODE_FILTER 2

#if defined(__x86_64__)
#define ARCH 0xc000003eU
#elif defined(__aarch64__)
#define ARCH 0xc00000b7U
#else
#error "which audit architecture is this?"
#endif

static int install(struct uapi_fprog *prog, struct err *err)
{
	if (prctl(PR_SET_SECCOMP, MODE_FILTER, prog, 0, 0) < 0)
		return err_errno(err, errno, "install the system call filter");
	return 0;
}

int allow_only(int call, int arg, const unsigned int *values, size_t n,
	       struct err *err)
{
	struct uapi_filter table[2 * ALLOW_MAX + 8];
	struct uapi_fprog prog = { .filter = table };
	size_t at = 0;

	if (n > ALLOW_MAX)
		return err_set(err, E2BIG, "more than %d values", ALLOW_MAX);
	table[at++] = (struct uapi_filter){ LOAD, 0, 0, AT_NR };
	table[at++] = (struct uapi_filter){ IF_EQUAL, 1, 0, (uint32_t)call };
	table[at++] = (struct uapi_filter){ RETURN, 0, 0, RET_ALLOW };
	table[at++] = (struct uapi_filter){ LOAD, 0, 0,
					    AT_ARGS + 8U * (uint32_t)arg };
	for (size_t i = 0; i < n; i++) {
		table[at++] = (struct uapi_filter){ IF_EQUAL, 0, 1, values[i] };
		table[at++] = (struct uapi_filter){ RETURN, 0, 0, RET_ALLOW };
	}
	table[at++] = (struct uapi_filter){ RETURN, 0, 0, RET_ERRNO | EPERM };
	prog.len = (unsigned short)at;
	return install(&prog, err);
}

int allow_calls(const int *calls, size_t n, struct err *err)
{
	struct uapi_filter table[2 * ALLOW_MAX + 8];
	struct uapi_fprog prog = { .filter = table };
	size_t at = 0;

	if (n > ALLOW_MAX)
		return err_set(err, E2BIG, "more than %d system calls",
			       ALLOW_MAX);
	table[at++] = (struct uapi_filter){ LOAD, 0, 0, AT_ARCH };
	table[at++] = (struct uapi_filter){ IF_EQUAL, 1, 0, ARCH };
	table[at++] = (struct uapi_filter){ RETURN, 0, 0, RET_KILL };
	table[at++] = (struct uapi_filter){ LOAD, 0, 0, AT_NR };
	for (size_t i = 0; i < n; i++) {
		table[at++] = (struct uapi_filter){ IF_EQUAL, 0, 1,
						    (uint32_t)calls[i] };
		table[at++] = (struct uapi_filter){ RETURN, 0, 0, RET_ALLOW };
	}
	table[at++] = (struct uapi_filter){ RETURN, 0, 0, RET_ERRNO | EPERM };
	prog.len = (unsigned short)at;
	return install(&prog, err);
}
