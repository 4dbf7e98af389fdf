/* SPDX-License-Identifier: Apache-2.0 */
#include "os/clone.h"

/*
 * The child's frames end in an exec or _exit, so the address sanitizer never
 * hears that their memory is free; it must not take that for ours later.
 */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#if defined(__x86_64__)
static long call(struct uapi_clone_args *args, void (*fn)(void *), void *arg)
{
	register void (*r8)(void *) __asm__("r8") = fn;
	register void *r9 __asm__("r9") = arg;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r9, %%rdi\n\t"
			 "call *%%r8\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(ret)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory", "cc");
	return ret;
}

long clone_call(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static long call(struct uapi_clone_args *args, void (*fn)(void *), void *arg)
{
	register long x8 __asm__("x8") = SYS_clone3;
	register void *x0 __asm__("x0") = args;
	register size_t x1 __asm__("x1") = sizeof(*args);
	register void (*x2)(void *) __asm__("x2") = fn;
	register void *x3 __asm__("x3") = arg;

	__asm__ volatile("svc 0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, x3\n\t"
			 "blr x2\n\t"
			 "brk 1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
			 : "x30", "memory", "cc");
	return (long)x0;
}

long clone_call(long number, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory", "cc");
	return x0;
}
#else
#error "clone_vfork() is not written for this architecture"
#endif

pid_t clone_vfork(struct uapi_clone_args *args, void (*fn)(void *arg),
		  void *arg)
{
	char stack[32768] __attribute__((aligned(64)));
	pid_t pid;

	args->flags |= UAPI_CLONE_VM | UAPI_CLONE_VFORK;
	args->stack = (uint64_t)(uintptr_t)stack;
	args->stack_size = sizeof(stack);
	pid = (pid_t)call(args, fn, arg);
	ASAN_UNPOISON_MEMORY_REGION(stack, sizeof(stack));
	return pid;
}

pid_t clone_beside(struct uapi_clone_args *args, void (*fn)(void *arg),
		   void *arg, void *stack, size_t size)
{
	args->flags |= UAPI_CLONE_VM;
	args->stack = (uint64_t)(uintptr_t)stack;
	args->stack_size = size;
	ASAN_UNPOISON_MEMORY_REGION(stack, size);
	return (pid_t)call(args, fn, arg);
}
