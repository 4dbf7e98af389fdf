/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * clone3(2) for a child that borrows its parent's memory.
 *
 * The C libraries have no such call (posix_spawn knows no namespaces), and a
 * child on the parent's own stack would damage it.
 */

#include <stddef.h>
#include <sys/types.h>

#include "os/uapi.h"

/*
 * Runs fn(arg) in a child made by `args`, to which CLONE_VM, CLONE_VFORK and
 * a stack (a part of the caller's) are added. fn must end in exec or _exit,
 * and may change memory: the caller sleeps until then and sees it. Returns
 * the pid, or -errno.
 */
pid_t clone_vfork(struct uapi_clone_args *args, void (*fn)(void *arg),
		  void *arg);

/*
 * The same without waiting: the child runs beside the caller, on `stack`.
 * Both have one errno, so fn calls the kernel by clone_call() alone.
 */
pid_t clone_beside(struct uapi_clone_args *args, void (*fn)(void *arg),
		   void *arg, void *stack, size_t size);

/* A system call that touches no memory of the library; -errno on failure. */
long clone_call(long number, long a, long b, long c, long d, long e);
