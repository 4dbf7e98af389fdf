/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Appends records, for tests in shell.
 *
 *	ledgerer DIR N [FLAG...]
 *
 * Prints the number of each record when it is on the disk, and nothing else.
 * Flags: nosync (sync once, at the end), runs (pairs of run.start and
 * run.end), all (one of each kind), agent=NAME. Ends with 1, and a line on
 * standard error, at the first that fails.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/kinds.h"
#include "ledger/ledger.h"

static bool is_nosync, is_runs, is_all;
static const char *agent = "coder";

static int fail(const struct err *err)
{
	(void)fprintf(stderr, "ledgerer: %s\n", err->text);
	return 1;
}

/* A value of each member, as its type wants it. */
static void any_members(const struct kind *k, char *out, size_t size)
{
	size_t n = 0;

	n += (size_t)snprintf(out + n, size - n, "{");
	for (const struct kind_member *m = k->members; m->name; m++) {
		const char *v = m->type == 's'   ? "\"text\""
				: m->type == 'i' ? "1"
				: m->type == 'b' ? "true"
				: m->type == 'o' ? "{}"
				: m->type == 'a'
					? "[]"
					: "\"00000000000000000000000000"
					  "0000000000000000000000000000"
					  "0000000000\"";

		n += (size_t)snprintf(out + n, size - n, "%s\"%s\":%s",
				      m == k->members ? "" : ",", m->name, v);
	}
	(void)snprintf(out + n, size - n, "}");
}

static char *members_of(unsigned long i, const char **ret_kind)
{
	char run[40];
	char script[32];
	const char *argv[] = { "python3", script, NULL };

	(void)snprintf(run, sizeof(run), "%032lx", i / 2 * 2654435761UL);
	(void)snprintf(script, sizeof(script), "job-%lu.py", i);
	if (is_all) {
		char *text = malloc(8192);

		/* Not seals: they are signed. */
		i %= n_kinds - 1;
		i += strcmp(kinds[i].name, "seal") == 0;
		*ret_kind = kinds[i].name;
		any_members(&kinds[i], text, 8192);
		return text;
	}
	if (is_runs && i % 2) {
		struct ledger_run_end e = { .run = run,
					    .agent = agent,
					    .status = "success",
					    .cause = "exited",
					    .wall_ms = i % 100 };

		*ret_kind = "run.end";
		return ledger_run_end_members(&e);
	}
	struct ledger_run_start s = { .run = run,
				      .agent = agent,
				      .decision = i % 100 == 2 ? "deny"
							       : "allow",
				      .argv = argv,
				      .image = "host" };

	*ret_kind = "run.start";
	return ledger_run_start_members(&s);
}

static int append(struct ledger *l, unsigned long i)
{
	struct err err = { 0 };
	const char *kind = NULL;
	char *members = members_of(i, &kind);
	uint64_t seq = 0;
	int r = members ? ledger_append(l, kind, members, &seq, &err) : -ENOMEM;

	free(members);
	if (r == 0 && !is_nosync)
		r = ledger_sync(l, &err);
	if (r < 0)
		return fail(&err);
	if (!is_nosync)
		(void)dprintf(1, "%llu\n", (unsigned long long)seq);
	return 0;
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	struct ledger *l = NULL;
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	for (int i = 3; i < argc; i++) {
		is_nosync |= strcmp(argv[i], "nosync") == 0;
		is_runs |= strcmp(argv[i], "runs") == 0;
		is_all |= strcmp(argv[i], "all") == 0;
		if (strncmp(argv[i], "agent=", 6) == 0)
			agent = argv[i] + 6;
	}
	if (argc < 3 || ledger_open(argv[1], &l, &err) < 0)
		return fail(&err);
	for (unsigned long i = 0; i < n; i++)
		if (append(l, i))
			return 1;
	if (is_nosync && ledger_sync(l, &err) < 0)
		return fail(&err);
	ledger_close(l);
	return 0;
}
