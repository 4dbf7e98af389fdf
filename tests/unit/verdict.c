/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From facts to one cause: a row for each line of the table of causes, and
 * for each question of which of two facts wins.
 */

#include "tests/tap.h"

#include <errno.h>
#include <signal.h>

#include "base/util.h"
#include "box/result.h"

#define EXIT(n) ((n) << 8)

static const struct {
	const char *what;
	struct wire_outcome facts;
	enum cause cause;
	const char *status;
	int exit_code;
	int signal;
} rows[] = {
	/* It ended by itself. */
	{ "success",
	  { .wait_status = EXIT(0) },
	  CAUSE_EXITED,
	  "success",
	  0,
	  0 },
	{ "failure", { .wait_status = EXIT(1) }, CAUSE_EXITED, "error", 1, 0 },
	{ "its own 124",
	  { .wait_status = EXIT(124) },
	  CAUSE_EXITED,
	  "error",
	  124,
	  0 },
	{ "its own 125",
	  { .wait_status = EXIT(125) },
	  CAUSE_EXITED,
	  "error",
	  125,
	  0 },
	{ "its own 137",
	  { .wait_status = EXIT(137) },
	  CAUSE_EXITED,
	  "error",
	  137,
	  0 },
	{ "a signal",
	  { .wait_status = SIGSEGV },
	  CAUSE_SIGNAL,
	  "error",
	  139,
	  11 },
	{ "a signal with a core",
	  { .wait_status = SIGABRT | 0x80 },
	  CAUSE_SIGNAL,
	  "error",
	  134,
	  6 },
	{ "kill without oom",
	  { .wait_status = SIGKILL },
	  CAUSE_SIGNAL,
	  "error",
	  137,
	  9 },
	/* Limits that the kernel's counters show. */
	{ "oom",
	  { .wait_status = SIGKILL, .oom_kills = 1 },
	  CAUSE_MEMORY,
	  "resource_exceeded",
	  137,
	  9 },
	{ "oom of a child, own status",
	  { .wait_status = EXIT(3), .oom_kills = 1 },
	  CAUSE_MEMORY,
	  "resource_exceeded",
	  3,
	  0 },
	{ "oom survived",
	  { .wait_status = EXIT(0), .oom_kills = 2 },
	  CAUSE_EXITED,
	  "success",
	  0,
	  0 },
	{ "no process left",
	  { .wait_status = EXIT(2), .pids_refused = 1 },
	  CAUSE_PIDS,
	  "resource_exceeded",
	  2,
	  0 },
	{ "no process left, survived",
	  { .wait_status = EXIT(0), .pids_refused = 9 },
	  CAUSE_EXITED,
	  "success",
	  0,
	  0 },
	{ "memory wins over processes",
	  { .wait_status = EXIT(1), .pids_refused = 1, .oom_kills = 1 },
	  CAUSE_MEMORY,
	  "resource_exceeded",
	  1,
	  0 },
	{ "file too large",
	  { .wait_status = SIGXFSZ },
	  CAUSE_DISK,
	  "resource_exceeded",
	  137,
	  SIGXFSZ },
	{ "disk full",
	  { .wait_status = EXIT(1), .disk_full = 1 },
	  CAUSE_DISK,
	  "resource_exceeded",
	  1,
	  0 },
	{ "disk full, survived",
	  { .wait_status = EXIT(0), .disk_full = 1 },
	  CAUSE_EXITED,
	  "success",
	  0,
	  0 },
	/* Ended from outside. */
	{ "timeout",
	  { .wait_status = SIGKILL, .end = WIRE_BY_TIMEOUT },
	  CAUSE_TIMEOUT,
	  "timeout",
	  124,
	  0 },
	{ "timeout of all blocks",
	  { .wait_status = SIGKILL, .end = WIRE_BY_TOTAL },
	  CAUSE_TIMEOUT,
	  "timeout",
	  124,
	  0 },
	{ "timeout, ended with 0 in its grace",
	  { .wait_status = EXIT(0), .end = WIRE_BY_TIMEOUT },
	  CAUSE_TIMEOUT,
	  "timeout",
	  124,
	  0 },
	{ "timeout after an oom kill",
	  { .wait_status = SIGKILL, .end = WIRE_BY_TIMEOUT, .oom_kills = 1 },
	  CAUSE_TIMEOUT,
	  "timeout",
	  124,
	  0 },
	{ "a fork bomb at its deadline",
	  { .wait_status = SIGKILL,
	    .end = WIRE_BY_TIMEOUT,
	    .pids_full = 1,
	    .pids_refused = 5 },
	  CAUSE_PIDS,
	  "resource_exceeded",
	  137,
	  9 },
	{ "full but never refused",
	  { .wait_status = SIGKILL, .end = WIRE_BY_TIMEOUT, .pids_full = 1 },
	  CAUSE_TIMEOUT,
	  "timeout",
	  124,
	  0 },
	{ "CPU time",
	  { .wait_status = SIGKILL, .end = WIRE_BY_CPU },
	  CAUSE_CPU,
	  "resource_exceeded",
	  137,
	  9 },
	{ "cancelled",
	  { .wait_status = SIGKILL, .end = WIRE_BY_CANCEL },
	  CAUSE_CANCELLED,
	  "error",
	  130,
	  0 },
	{ "too much output",
	  { .wait_status = SIGKILL, .end = WIRE_BY_FLOOD },
	  CAUSE_OUTPUT,
	  "resource_exceeded",
	  137,
	  9 },
	{ "init is gone",
	  { .end = WIRE_BY_LOSS },
	  CAUSE_LOST,
	  "error",
	  125,
	  0 },
	{ "init is gone for memory",
	  { .end = WIRE_BY_LOSS, .oom_kills = 1 },
	  CAUSE_MEMORY,
	  "resource_exceeded",
	  137,
	  9 },
	/* It could not be started. */
	{ "not found",
	  { .exec_errno = ENOENT },
	  CAUSE_NOT_FOUND,
	  "error",
	  127,
	  0 },
	{ "below a file",
	  { .exec_errno = ENOTDIR },
	  CAUSE_NOT_FOUND,
	  "error",
	  127,
	  0 },
	{ "not executable",
	  { .exec_errno = EACCES },
	  CAUSE_NOT_FOUND,
	  "error",
	  126,
	  0 },
	{ "no program",
	  { .exec_errno = ENOEXEC },
	  CAUSE_NOT_FOUND,
	  "error",
	  126,
	  0 },
	{ "a directory",
	  { .exec_errno = EISDIR },
	  CAUSE_NOT_FOUND,
	  "error",
	  126,
	  0 },
	{ "no process for it",
	  { .exec_errno = EAGAIN },
	  CAUSE_PIDS,
	  "resource_exceeded",
	  137,
	  0 },
	{ "no memory for it",
	  { .exec_errno = ENOMEM },
	  CAUSE_MEMORY,
	  "resource_exceeded",
	  137,
	  0 },
	{ "arguments too long",
	  { .exec_errno = E2BIG },
	  CAUSE_INVALID,
	  "error",
	  125,
	  0 },
	/* No box. */
	{ "a stage failed",
	  { .err = { .code = EINVAL, .stage = "mounts" } },
	  CAUSE_SETUP,
	  "error",
	  125,
	  0 },
	{ "a stage failed with EPERM",
	  { .err = { .code = EPERM, .stage = "mounts" } },
	  CAUSE_SETUP,
	  "error",
	  125,
	  0 },
	{ "the request's file may not be there",
	  { .err = { .code = EPERM, .stage = "files" } },
	  CAUSE_DENIED,
	  "error",
	  126,
	  0 },
	{ "a block before took the right to write away",
	  { .err = { .code = EACCES, .stage = "files" } },
	  CAUSE_DENIED,
	  "error",
	  126,
	  0 },
	{ "a volume that is read-only is where the file should be",
	  { .err = { .code = EROFS, .stage = "files" } },
	  CAUSE_DENIED,
	  "error",
	  126,
	  0 },
	{ "there is no room for the request's file",
	  { .err = { .code = ENOSPC, .stage = "files" } },
	  CAUSE_DISK,
	  "resource_exceeded",
	  137,
	  0 },
	{ "the request's file is larger than a file may be",
	  { .err = { .code = EFBIG, .stage = "files" } },
	  CAUSE_DISK,
	  "resource_exceeded",
	  137,
	  0 },
	{ "no room elsewhere is no fault of the request",
	  { .err = { .code = ENOSPC, .stage = "root" } },
	  CAUSE_SETUP,
	  "error",
	  125,
	  0 },
};

TEST(verdict_table)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct verdict v = verdict_of(&rows[i].facts);

		if (v.cause == rows[i].cause &&
		    v.exit_code == rows[i].exit_code &&
		    v.signal == rows[i].signal &&
		    strcmp(verdict_status(&v), rows[i].status) == 0)
			continue;
		printf("# %s: %s, %s, exit code %d, signal %d\n", rows[i].what,
		       cause_name(v.cause), verdict_status(&v), v.exit_code,
		       v.signal);
		CHECK(!"the row above");
	}
}

/* All causes but those that the client itself finds have a row. */
TEST(verdict_every_cause_is_reached)
{
	for (int c = 0; c < CAUSES; c++) {
		bool seen = false;

		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			seen = seen || (int)rows[i].cause == c;
		if (!seen)
			printf("# no row for %s\n", cause_name((enum cause)c));
		CHECK(seen);
	}
}

/* Whatever the facts, the status is one of the four. */
TEST(verdict_any_facts_give_one_of_four)
{
	unsigned int seed = 1;

	for (int i = 0; i < 200000; i++) {
		struct wire_outcome o = { 0 };
		struct verdict v;
		const char *status;

		seed = seed * 1664525 + 1013904223;
		o.end = seed >> 16 & 15;
		o.wait_status = (int)(seed >> 8 & 0xffff);
		o.exec_errno = seed & 64 ? (int)(seed >> 20 & 127) : 0;
		o.oom_kills = seed >> 30;
		o.pids_refused = seed >> 28 & 3;
		o.pids_full = seed >> 27 & 1;
		o.disk_full = seed >> 26 & 1;
		v = verdict_of(&o);
		status = verdict_status(&v);
		if (v.cause < CAUSES && v.exit_code >= 0 &&
		    v.exit_code <= 255 &&
		    (strcmp(status, "success") == 0 ||
		     strcmp(status, "error") == 0 ||
		     strcmp(status, "timeout") == 0 ||
		     strcmp(status, "resource_exceeded") == 0) &&
		    (strcmp(status, "success") == 0) == (v.exit_code == 0))
			continue;
		printf("# end %u, wait status %#x: %s, %d\n", o.end,
		       (unsigned int)o.wait_status, status, v.exit_code);
		CHECK(!"the facts above");
		return;
	}
}

TAP_MAIN()
