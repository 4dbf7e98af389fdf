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
 * The numbers are searched in halves, by ranges that have one answer: the
 * kernel translates the whole program for every box, and walks through it once
 * for each call that exists to learn which are always allowed. So each
 * instruction costs each box something. libseccomp knows the numbers; what it
 * writes itself is twice as long.
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

/* The program. */

#define MOST 2048

static struct sock_filter table[MOST];
static unsigned int n_table;

#define DATA(field) ((uint32_t)offsetof(struct seccomp_data, field))
#define ERROR(e)    (SECCOMP_RET_ERRNO | (uint32_t)(e))

static unsigned int emit(uint16_t code, uint32_t k, unsigned int jt,
			 unsigned int jf)
{
	if (n_table == MOST || jt > 255 || jf > 255)
		die("a jump or the program is too long at", "emit");
	table[n_table] = (struct sock_filter){
		.code = code, .jt = (uint8_t)jt, .jf = (uint8_t)jf, .k = k
	};
	return n_table++;
}

static void load(uint32_t offset)
{
	(void)emit(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

static void ret(uint32_t what)
{
	(void)emit(BPF_RET | BPF_K, what, 0, 0);
}

static void check_architecture(void)
{
	load(DATA(arch));
	(void)emit(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 1, 0);
	ret(SECCOMP_RET_KILL_PROCESS);
	load(DATA(nr));
#ifdef __x86_64__
	/* x32; and -1, which a tracer leaves where it took a call away */
	(void)emit(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 3);
	(void)emit(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1);
	ret(ERROR(ENOSYS));
	ret(SECCOMP_RET_KILL_PROCESS);
#endif
}

/* The argument's lower half; every architecture here is little-endian. */
static void check_argument(const struct arg_rule *r)
{
	load(DATA(args) + r->arg * sizeof(uint64_t));
	switch (r->test) {
	case BITS:
		(void)emit(BPF_JMP | BPF_JSET | BPF_K, r->value, 0, 1);
		break;
	case EQUAL:
		(void)emit(BPF_JMP | BPF_JEQ | BPF_K, r->value, 0, 1);
		break;
	case DIFFER:
		(void)emit(BPF_JMP | BPF_JEQ | BPF_K, r->value, 1, 0);
		break;
	case UNLESS:
		(void)emit(BPF_JMP | BPF_JSET | BPF_K, r->value, 1, 0);
		ret(SECCOMP_RET_ALLOW);
		return;
	}
	ret(ERROR(r->error));
}

static void check_arguments(void)
{
	for (size_t i = 0; arg_rules[i].call;) {
		const char *call = arg_rules[i].call;
		int nr = number(call);
		unsigned int start = n_table;

		if (nr >= 0)
			(void)emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0,
				   0);
		for (;
		     arg_rules[i].call && strcmp(arg_rules[i].call, call) == 0;
		     i++)
			if (nr >= 0)
				check_argument(&arg_rules[i]);
		if (nr < 0)
			continue;
		ret(SECCOMP_RET_ALLOW);
		table[start].jf = (uint8_t)(n_table - start - 1);
	}
}

/* It is one of these, after the bits of `but` are gone; else `error`. */
static void one_of(unsigned int arg, uint32_t but, const uint32_t *values,
		   unsigned int n, int error)
{
	load(DATA(args) + arg * (uint32_t)sizeof(uint64_t));
	if (but)
		(void)emit(BPF_ALU | BPF_AND | BPF_K, ~but, 0, 0);
	for (unsigned int i = 0; i < n; i++)
		(void)emit(BPF_JMP | BPF_JEQ | BPF_K, values[i], n - i, 0);
	ret(ERROR(error));
}

/*
 * socket(2) of a box with a gate: TCP and UDP. No raw or packet socket, no
 * other family, no ping, none of the kernel's rarer protocols.
 */
static void check_socket(void)
{
	static const uint32_t families[] = { AF_INET, AF_INET6 };
	static const uint32_t types[] = { SOCK_STREAM, SOCK_DGRAM };
	static const uint32_t protocols[] = { 0, 6 /* TCP */, 17 /* UDP */ };
	unsigned int start = emit(BPF_JMP | BPF_JEQ | BPF_K,
				  (uint32_t)number("socket"), 0, 0);

	one_of(0, 0, families, 2, EAFNOSUPPORT);
	one_of(1, SOCK_CLOEXEC | SOCK_NONBLOCK, types, 2, EPROTONOSUPPORT);
	one_of(2, 0, protocols, 3, EPROTONOSUPPORT);
	ret(SECCOMP_RET_ALLOW);
	table[start].jf = (uint8_t)(n_table - start - 1);
}

/* The numbers, as ranges with one answer. */

#define NUMBERS 1024

struct range {
	uint32_t from;
	uint32_t answer;
};

static uint32_t answers[NUMBERS];
static struct range ranges[NUMBERS];

static void answer(const char *name, uint32_t what)
{
	int nr = number(name);

	if (nr >= NUMBERS)
		die("a number is too high:", name);
	if (nr >= 0)
		answers[nr] = what;
}

/*
 * `may_bear`: for an init that lets programs be born into groups, by a call
 * whose flags a filter cannot see. Each of its children gets the ordinary
 * filter on top, before it is anything else.
 */
static size_t find_ranges(uint32_t socket_answer, bool may_bear)
{
	size_t n = 0;

	for (size_t i = 0; i < NUMBERS; i++)
		answers[i] = ERROR(ENOSYS);
	for (size_t i = 0; calls_allowed[i]; i++)
		answer(calls_allowed[i], SECCOMP_RET_ALLOW);
	for (size_t i = 0; calls_refused[i]; i++)
		answer(calls_refused[i], ERROR(EPERM));
	answer("socket", socket_answer);
	if (may_bear)
		answer("clone3", SECCOMP_RET_ALLOW);
	for (uint32_t i = 0; i < NUMBERS; i++)
		if (i == 0 || answers[i] != answers[i - 1])
			ranges[n++] = (struct range){ i, answers[i] };
	return n;
}

/* Below the middle goes on with the next instruction, the rest jumps. */
static void search(const struct range *r, size_t n)
{
	size_t half = n / 2;
	unsigned int at;

	if (n == 1) {
		ret(r->answer);
		return;
	}
	(void)emit(BPF_JMP | BPF_JGE | BPF_K, r[half].from, 0, 1);
	at = emit(BPF_JMP | BPF_JA, 0, 0, 0);
	search(r, half);
	table[at].k = n_table - at - 1;
	/* Near enough for the comparison to jump by itself? */
	if (table[at].k <= 254) {
		memmove(&table[at], &table[at + 1],
			(n_table - at - 1) * sizeof(*table));
		n_table--;
		table[at - 1].jt = (uint8_t)(n_table - at);
		table[at - 1].jf = 0;
	}
	search(r + half, n - half);
}

/*
 * Where only listed programs may run: a file in memory would be executed
 * past every rule about places. It stands beside the other one, which sees
 * to architectures.
 */
static void forbid_memfd(void)
{
	load(DATA(nr));
	(void)emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number("memfd_create"),
		   0, 1);
	ret(ERROR(EPERM));
	ret(SECCOMP_RET_ALLOW);
}

static void print(const char *name)
{
	printf("\nstatic const struct uapi_filter %s[] = {\n", name);
	for (unsigned int i = 0; i < n_table; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", table[i].code,
		       table[i].jt, table[i].jf, table[i].k);
	printf("};\n");
	n_table = 0;
}

/* The whole filter; what differs is who answers to socket(2). */
static void make(const char *name, uint32_t socket_answer, bool may_bear)
{
	check_architecture();
	check_arguments();
	search(ranges, find_ranges(socket_answer, may_bear));
	print(name);
}

/* The same for a box with a gate. */
static void make_egress(const char *name, bool may_bear)
{
	check_architecture();
	check_socket();
	check_arguments();
	search(ranges, find_ranges(SECCOMP_RET_ALLOW, may_bear));
	print(name);
}

int main(void)
{
	printf("/* Made by filter-gen.c; do not edit. */\n");
	make("filter", ERROR(EAFNOSUPPORT), false);
	/* init answers the same, and counts (src/init/witness.c). */
	make("filter_witness", SECCOMP_RET_USER_NOTIF, false);
	make("filter_stays", ERROR(EAFNOSUPPORT), true);
	make_egress("filter_egress", false);
	make_egress("filter_egress_stays", true);
	forbid_memfd();
	print("filter_commands");
	return 0;
}
