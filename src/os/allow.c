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

struct program {
	size_t n;
	struct uapi_filter table[4 * ALLOW_MAX];
};

static void add(struct program *p, uint16_t code, uint8_t no, uint32_t value)
{
	p->table[p->n++] = (struct uapi_filter){ code, 0, no, value };
}

/* The value that was loaded is `value`: allowed. */
static void add_allowed(struct program *p, uint32_t value)
{
	add(p, IF_EQUAL, 1, value);
	add(p, RETURN, 0, RET_ALLOW);
}

/* Decides about this call, whatever it is called with. */
static void add_only(struct program *p, const struct allow_only *o)
{
	add(p, IF_EQUAL, (uint8_t)(2 * o->n + 2), (uint32_t)o->call);
	add(p, LOAD, 0, AT_ARGS + 8U * (uint32_t)o->arg);
	for (size_t i = 0; i < o->n; i++)
		add_allowed(p, o->values[i]);
	add(p, RETURN, 0, RET_ERRNO | EPERM);
}

/* Each takes at most what a place in the table has room for. */
static bool has_room(size_t n, const struct allow_only *only, size_t n_only)
{
	size_t all = n + n_only;

	for (size_t i = 0; i < n_only; i++)
		all += only[i].n;
	return all <= ALLOW_MAX;
}

int allow_calls(const int *calls, size_t n, const struct allow_only *only,
		size_t n_only, struct err *err)
{
	struct program p = { 0 };
	struct uapi_fprog prog = { .filter = p.table };

	if (!has_room(n, only, n_only))
		return err_set(err, E2BIG, "more than %d system calls",
			       ALLOW_MAX);
	add(&p, LOAD, 0, AT_ARCH);
	p.table[p.n++] = (struct uapi_filter){ IF_EQUAL, 1, 0, ARCH };
	add(&p, RETURN, 0, RET_KILL);
	add(&p, LOAD, 0, AT_NR);
	for (size_t i = 0; i < n_only; i++)
		add_only(&p, &only[i]);
	for (size_t i = 0; i < n; i++)
		add_allowed(&p, (uint32_t)calls[i]);
	add(&p, RETURN, 0, RET_ERRNO | EPERM);
	prog.len = (unsigned short)p.n;
	if (prctl(PR_SET_SECCOMP, MODE_FILTER, &prog, 0, 0) < 0)
		return err_errno(err, errno, "install the system call filter");
	return 0;
}
