/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the system call filter of a box as a C table, at build time.
 *
 *	another architecture, x32, 32-bit calls   the process is killed
 *	a call that has rules for its arguments   they are looked at
 *	any other call                            its number alone decides
 *
 * The numbers are an allow-list. Known calls that a box may never make answer
 * EPERM; numbers that are on no list, also those of later kernels, answer
 * ENOSYS, so that libraries fall back.
 *
 * Arguments are compared by their lower half: the kernel ignores the upper one
 * of a 32-bit argument, and so must we (CVE-2019-10063). A value that has bits
 * in the upper half only is none of those refused here.
 *
 * The numbers are searched in halves, by ranges that have one answer, and an
 * instruction stands only once: the kernel translates the whole program for
 * every box, and walks through it once for each call that exists to learn which
 * are always allowed. So each instruction costs each box something. libseccomp
 * knows the numbers; what it writes itself is several times as long.
 */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "os/filter-rules.h"

#define X32_BIT 0x40000000U

static void die(const char *what, const char *name)
{
	(void)fprintf(stderr, "filter-gen: %s '%s'\n", what, name);
	exit(1);
}

/* -1 for a name that this architecture does not have. */
static int number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr == __NR_SCMP_ERROR)
		die("unknown call", name);
	return nr < 0 ? -1 : nr;
}

/*
 * The program, from its end to its beginning: what an instruction leads to is
 * always there already, and is known by its number.
 */

#define MOST 1024

static struct {
	uint16_t code;
	uint32_t k;
	unsigned int yes; /* or whatever comes next */
	unsigned int no;
} table[MOST];
static unsigned int n_table;

#define DATA(field)   ((uint32_t)offsetof(struct seccomp_data, field))
#define ARGUMENT(n)   (DATA(args) + (n) * (uint32_t)sizeof(uint64_t))
#define ERROR(e)      (SECCOMP_RET_ERRNO | (uint32_t)(e))
#define JUMP(test)    (BPF_JMP | (test) | BPF_K)
#define IS_JUMP(code) (BPF_CLASS(code) == BPF_JMP)

static unsigned int append(uint16_t code, uint32_t k, unsigned int yes,
			   unsigned int no)
{
	if (n_table == MOST)
		die("too long at", "append");
	table[n_table].code = code;
	table[n_table].k = k;
	table[n_table].yes = yes;
	table[n_table].no = no;
	return n_table++;
}

/* Its number; that of the same instruction, where there is one. */
static unsigned int emit(uint16_t code, uint32_t k, unsigned int yes,
			 unsigned int no)
{
	for (unsigned int i = 0; i < n_table; i++)
		if (table[i].code == code && table[i].k == k &&
		    table[i].yes == yes && table[i].no == no)
			return i;
	return append(code, k, yes, no);
}

/* The same for one that cannot jump: what is next must stand behind it. */
static unsigned int emit_before(unsigned int next, uint16_t code, uint32_t k)
{
	for (unsigned int i = 1; i < n_table; i++)
		if (table[i].code == code && table[i].k == k &&
		    table[i].yes == next)
			return i;
	if (next + 1 != n_table && !IS_JUMP(table[next].code))
		die("cannot stand twice:", "emit_before");
	if (next + 1 != n_table)
		(void)append(table[next].code, table[next].k, table[next].yes,
			     table[next].no);
	return append(code, k, next, next);
}

static unsigned int test(uint16_t how, uint32_t k, unsigned int yes,
			 unsigned int no)
{
	return emit(JUMP(how), k, yes, no);
}

static unsigned int load(uint32_t offset, unsigned int next)
{
	return emit_before(next, BPF_LD | BPF_W | BPF_ABS, offset);
}

static unsigned int ret(uint32_t what)
{
	return emit(BPF_RET | BPF_K, what, 0, 0);
}

static unsigned int allow(void)
{
	return ret(SECCOMP_RET_ALLOW);
}

/* With the architecture seen to; `next` finds the number loaded. */
static unsigned int check_architecture(unsigned int next)
{
	unsigned int kill = ret(SECCOMP_RET_KILL_PROCESS);

#ifdef __x86_64__
	/* x32; and -1, which a tracer leaves where it took a call away */
	next = test(BPF_JGE, X32_BIT,
		    test(BPF_JEQ, 0xffffffff, ret(ERROR(ENOSYS)), kill), next);
#endif
	next = load(DATA(nr), next);
	next = test(BPF_JEQ, seccomp_arch_native(), next, kill);
	return load(DATA(arch), next);
}

/* The argument's lower half; every architecture here is little-endian. */
static unsigned int check_argument(const struct arg_rule *r, unsigned int next)
{
	switch (r->test) {
	case BITS:
		next = test(BPF_JSET, r->value, ret(ERROR(r->error)), next);
		break;
	case EQUAL:
		next = test(BPF_JEQ, r->value, ret(ERROR(r->error)), next);
		break;
	case DIFFER:
		next = test(BPF_JEQ, r->value, next, ret(ERROR(r->error)));
		break;
	case UNLESS:
		next = test(BPF_JSET, r->value, next, allow());
		break;
	}
	return load(ARGUMENT(r->arg), next);
}

/* All the rules of the call that the first of these is for. */
static unsigned int check_arguments(const struct arg_rule *r)
{
	bool is_last = !r[1].call || strcmp(r[1].call, r->call) != 0;

	return check_argument(r, is_last ? allow() : check_arguments(r + 1));
}

/* It is one of these, after the bits of `but` are gone; else `error`. */
static unsigned int one_of(unsigned int arg, uint32_t but,
			   const uint32_t *values, unsigned int n, int error,
			   unsigned int next)
{
	unsigned int at = ret(ERROR(error));

	for (unsigned int i = 0; i < n; i++)
		at = test(BPF_JEQ, values[i], next, at);
	if (but)
		at = emit_before(at, BPF_ALU | BPF_AND | BPF_K, ~but);
	return load(ARGUMENT(arg), at);
}

/*
 * socket(2) of a box with a gate: TCP and UDP. No raw or packet socket, no
 * other family, no ping, none of the kernel's rarer protocols.
 */
static unsigned int check_socket(void)
{
	static const uint32_t families[] = { AF_INET, AF_INET6 };
	static const uint32_t types[] = { SOCK_STREAM, SOCK_DGRAM };
	static const uint32_t protocols[] = { 0, 6 /* TCP */, 17 /* UDP */ };
	unsigned int next = one_of(2, 0, protocols, 3, EPROTONOSUPPORT,
				   allow());

	next = one_of(1, SOCK_CLOEXEC | SOCK_NONBLOCK, types, 2,
		      EPROTONOSUPPORT, next);
	return one_of(0, 0, families, 2, EAFNOSUPPORT, next);
}

/* The numbers, as ranges with one answer. */

#define NUMBERS 1024

struct range {
	uint32_t from;
	unsigned int answer; /* the instruction that gives it */
};

static unsigned int answers[NUMBERS];
static struct range ranges[NUMBERS];

static void answer(const char *name, unsigned int what)
{
	int nr = number(name);

	if (nr >= NUMBERS)
		die("a number is too high:", name);
	if (nr >= 0)
		answers[nr] = what;
}

/* The lists, then the rules for arguments, then what a box differs in. */
static void answer_all(unsigned int socket_answer, bool may_bear)
{
	for (size_t i = 0; i < NUMBERS; i++)
		answers[i] = ret(ERROR(ENOSYS));
	for (size_t i = 0; calls_allowed[i]; i++)
		answer(calls_allowed[i], allow());
	for (size_t i = 0; calls_refused[i]; i++)
		answer(calls_refused[i], ret(ERROR(EPERM)));
	for (size_t i = 0; arg_rules[i].call; i++)
		if (i == 0 ||
		    strcmp(arg_rules[i].call, arg_rules[i - 1].call) != 0)
			answer(arg_rules[i].call,
			       check_arguments(&arg_rules[i]));
	answer("socket", socket_answer);
	if (may_bear)
		answer("clone3", allow());
}

static size_t find_ranges(void)
{
	size_t n = 0;

	for (uint32_t i = 0; i < NUMBERS; i++)
		if (i == 0 || answers[i] != answers[i - 1])
			ranges[n++] = (struct range){ i, answers[i] };
	return n;
}

static unsigned int search(const struct range *r, size_t n)
{
	size_t half = n / 2;
	unsigned int upper;

	if (n == 1)
		return r->answer;
	upper = search(r + half, n - half);
	return test(BPF_JGE, r[half].from, upper, search(r, half));
}

/*
 * Where only listed programs may run: a file in memory would be executed
 * past every rule about places. It stands beside the other one, which sees
 * to architectures.
 */
static void forbid_memfd(void)
{
	unsigned int next = test(BPF_JEQ, (uint32_t)number("memfd_create"),
				 ret(ERROR(EPERM)), allow());

	(void)load(DATA(nr), next);
}

static unsigned int distance(unsigned int from, unsigned int to)
{
	unsigned int n = from - to - 1;

	if (to >= from || n > 255)
		die("a jump is too long at", "print");
	return n;
}

static void print(const char *name)
{
	printf("\nstatic const struct uapi_filter %s[] = {\n", name);
	for (unsigned int i = n_table; i-- > 0;) {
		unsigned int yes = 0;
		unsigned int no = 0;

		if (IS_JUMP(table[i].code)) {
			yes = distance(i, table[i].yes);
			no = distance(i, table[i].no);
		}
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", table[i].code, yes,
		       no, table[i].k);
	}
	printf("};\n");
	n_table = 0;
}

/*
 * The whole filter; what differs is who answers to socket(2), with a gate its
 * arguments. `may_bear`: for an init that lets programs be born into groups, by
 * a call whose flags a filter cannot see. Each of its children gets the
 * ordinary filter on top, before it is anything else.
 */
static void make(const char *name, unsigned int socket_answer, bool may_bear)
{
	answer_all(socket_answer, may_bear);
	(void)check_architecture(search(ranges, find_ranges()));
	print(name);
}

int main(void)
{
	printf("/* Made by filter-gen.c; do not edit. */\n");
	make("filter", ret(ERROR(EAFNOSUPPORT)), false);
	/* init answers the same, and counts (src/init/witness.c). */
	make("filter_witness", ret(SECCOMP_RET_USER_NOTIF), false);
	make("filter_stays", ret(ERROR(EAFNOSUPPORT)), true);
	make("filter_egress", check_socket(), false);
	make("filter_egress_stays", check_socket(), true);
	forbid_memfd();
	print("filter_commands");
	return 0;
}
