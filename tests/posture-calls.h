/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* P16 to P33: system calls. */

#include "posture.h"

/* Calls that root may make with bad arguments, and a box may not at all. */
#define CHECK_REFUSED(...)                                                     \
	check_refused(in_box(BOX_CMD, "/probe", "calls", __VA_ARGS__, NULL),   \
		      on_host("/", "calls", __VA_ARGS__, NULL))

static void check_refused(const char *box, const char *host)
{
	CHECK_ALL(box, "EPERM");
	CHECK_NONE(host, "EPERM");
}

/* A key in a session keyring of the test's own. */
static bool make_key(const char *name)
{
	enum { JOIN = 1, SESSION = -3 };

	return syscall(SYS_keyctl, JOIN, NULL) >= 0 &&
	       syscall(SYS_add_key, "user", name, "x", 1, SESSION) >= 0;
}

TEST(p16_keyring)
{
	CHECK_REFUSED("add_key", "request_key", "keyctl_session");
	/* Behind the filter the box has a session keyring of its own. */
	if (!make_key("cordon-posture"))
		SKIP("this kernel has no keys");
	CHECK_WORD(on_host("/", "key", "cordon-posture", NULL), "search", "OK");
	use_test_keeper("CORDON_TEST_SKIP", "seccomp");
	CHECK_ALL(in_box(BOX_CMD, "/probe", "key", "cordon-posture", NULL),
		  "ENOKEY|EACCES|EDQUOT");
}

TEST(p17_no_new_namespaces)
{
	const char *out;

	CHECK_ALL(in_box(BOX_CMD, "/probe", "namespaces", NULL), "EPERM");
	CHECK_NONE(on_host("/", "namespaces", NULL), "EPERM");
	/* processes and threads are no namespaces */
	CHECK_ALL(in_box(BOX_CMD, "/probe", "forks", NULL), "OK");
	/* without the filter: no user namespace, so none of the others */
	use_test_keeper("CORDON_TEST_SKIP", "seccomp");
	out = in_box(BOX_CMD, "/probe", "namespaces", NULL);
	CHECK_ALL(out, "EPERM|ENOSPC|EUSERS");
}

TEST(p18_clone3_is_unknown)
{
	CHECK_ALL(in_box(BOX_CMD, "/probe", "calls", "clone3", NULL), "ENOSYS");
	CHECK_ALL(on_host("/", "calls", "clone3", NULL), "EFAULT");
}

TEST(p19_setns)
{
	CHECK_REFUSED("setns");
}

#define MOUNT_CALLS                                                            \
	"mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", \
		"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"

TEST(p20_mount_calls)
{
	CHECK_REFUSED(MOUNT_CALLS);
	CHECK_ALL(in_box(BOX_CMD, "/probe", "mount", NULL), "EPERM");
	CHECK_WORD(on_host("/", "mount", NULL), "tmpfs", "OK");
}

TEST(p21_io_uring)
{
	CHECK_REFUSED("io_uring_setup", "io_uring_enter", "io_uring_register");
}

TEST(p22_userfaultfd)
{
	CHECK_ALL(in_box(BOX_CMD, "/probe", "calls", "userfaultfd",
			 "userfaultfd_user", NULL),
		  "EPERM");
	CHECK_WORD(on_host("/", "calls", "userfaultfd", NULL), "userfaultfd",
		   "EINVAL");
}

TEST(p23_bpf_and_perf)
{
	CHECK_ALL(in_box(BOX_CMD, "/probe", "calls", "bpf", "perf_event_open",
			 NULL),
		  "EPERM");
	if (is_root())
		CHECK_ALL(on_host("/", "calls", "bpf", "perf_event_open", NULL),
			  "EFAULT");
}

TEST(p24_ptrace_family)
{
	CHECK_ALL(in_box(BOX_CMD, "/probe", "calls", "ptrace",
			 "process_vm_readv", "process_vm_writev", "pidfd_getfd",
			 "kcmp", "process_madvise", NULL),
		  "EPERM");
	CHECK_NONE(on_host("/", "calls", "ptrace", "pidfd_getfd", "kcmp",
			   "process_madvise", NULL),
		   "EPERM");
}

TEST(p25_file_handles)
{
	CHECK_ALL(in_box(BOX_CMD, "/probe", "calls", "name_to_handle_at",
			 "open_by_handle_at", NULL),
		  "EPERM");
	CHECK_WORD(on_host("/", "calls", "name_to_handle_at", NULL),
		   "name_to_handle_at", "EFAULT");
}

/* The one kind of socket: a pair of unix ones, which leads nowhere. */
TEST(p26_socket_families)
{
	const char *out = in_box(BOX_CMD, "/probe", "families", NULL);
	const char *host = on_host("/", "families", NULL);

	/* two lines for AF_UNIX: plain, and with bits the kernel drops */
	CHECK_WORD(out, "pair-1", "OK");
	CHECK_WORD(out, "pair-high-1", "OK");
	CHECK_INT(lines_with(out, "EAFNOSUPPORT", true), 2);
	CHECK_WORD(host, "socket-1", "OK");
	CHECK_WORD(host, "socket-2", "OK");
	CHECK_WORD(host, "socket-16", "OK");
	CHECK_WORD(host, "socket-high-2", "OK");
}

TEST(p27_foreign_abis_die)
{
	const char *host;

#ifndef __x86_64__
	SKIP("the foreign ABIs of this test are those of x86-64");
#endif
	CHECK_ALL(in_box(BOX_CMD, "/probe", "abi", NULL), "SIGSYS");
	host = on_host("/", "abi", NULL);
	CHECK_NONE(host, "SIGSYS");
}

TEST(p28_socketcall)
{
#ifndef __x86_64__
	SKIP("the foreign ABIs of this test are those of x86-64");
#endif
	CHECK_WORD(in_box(BOX_CMD, "/probe", "abi", NULL), "socketcall",
		   "SIGSYS");
	/* it is there outside, unless the kernel is without 32-bit calls */
	CHECK(!strstr(word(on_host("/", "abi", NULL), "socketcall"), "SIGSYS"));
}

TEST(p29_argument_width)
{
	char *dir = temp_dir();
	const char *host;

	CHECK_ALL(in_box(BOX_CMD, "/probe", "namespaces", "high", NULL),
		  "EPERM");
	host = on_host("/", "namespaces", "high", NULL);
	CHECK_WORD(host, "clone-user", "OK");
	CHECK_ALL(in_box(BOX_CMD, "/probe", "personality", NULL), "EPERM");
	CHECK_ALL(on_host("/", "personality", NULL), "OK");
	CHECK_ALL(in_box(BOX_CMD, "/probe", "tty", NULL), "EPERM");
	CHECK_INT(lines_with(in_box(BOX_CMD, "/probe", "setid", "/workspace",
				    NULL),
			     "EPERM|ENOSYS", true),
		  1); /* the plain file itself */
	CHECK_WORD(on_host(dir, "setid", ".", NULL), "open-high", "OK");
	CHECK_ALL(in_box(BOX_CMD, "/probe", "forks", NULL), "OK");
	/* the families with high bits and odd numbers are in p26 */
	remove_tree(dir);
}

TEST(p30_every_number)
{
	const char *out;

#ifndef __x86_64__
	SKIP("the golden file has the numbers of x86-64");
#endif
	out = in_box(BOX_CMD, "/probe", "verdicts", NULL);
	check_golden("verdicts", out);
	/* without the filter it is another list */
	use_test_keeper("CORDON_TEST_SKIP", "seccomp");
	CHECK(strcmp(in_box(BOX_CMD, "/probe", "verdicts", NULL), out) != 0);
}

#define PRIVILEGED                                                             \
	"init_module", "finit_module", "delete_module", "kexec_load",          \
		"reboot", "swapon", "acct", "iopl", "ioperm", "quotactl",      \
		"syslog", "settimeofday", "clock_settime", "sethostname",      \
		"vhangup", "fanotify_init", "mbind", "move_pages"

TEST(p31_privileged_calls)
{
	CHECK_ALL(in_box(BOX_CMD, "/probe", "calls", PRIVILEGED, NULL),
		  "EPERM");
	if (is_root())
		CHECK_NONE(on_host("/", "calls", "reboot", "swapon", "acct",
				   "settimeofday", "clock_settime",
				   "sethostname", "vhangup", NULL),
			   "EPERM");
	CHECK_NONE(on_host("/", "calls", "mbind", "move_pages", NULL), "EPERM");
}

TEST(p32_legacy_calls)
{
	CHECK_ALL(in_box(BOX_CMD, "/probe", "calls", "personality",
			 "modify_ldt", "vmsplice", "uselib", "ustat", "sysfs",
			 NULL),
		  "EPERM|ENOSYS");
	CHECK_NONE(on_host("/", "calls", "personality", "vmsplice", "ustat",
			   NULL),
		   "EPERM|ENOSYS");
}

/*
 * Decided: code in memory may run, as everywhere without a `commands` policy
 * (interpreters with a JIT need it). It gains nothing by that.
 */
TEST(p33_code_in_memory_gains_nothing)
{
	const char *out = in_box(BOX_CMD, "/probe", "memfd", NULL);

	CHECK_WORD(out, "wx", "OK");
	CHECK_WORD(out, "Seccomp", "2");
	CHECK_WORD(out, "NoNewPrivs", "1");
	check_no_caps(out);
	CHECK_WORD(on_host("/", "memfd", NULL), "Seccomp", "0");
}
