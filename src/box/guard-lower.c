/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a request asks for above what a box has in any case: the policy's
 * numbers are judged by policy_decide(), these follow from them, or are those
 * of every box. Nothing here gives more: what is above would be held to the
 * same by init and the kernel, silently. Whoever asked shall know.
 */

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/util.h"
#include "box/guard-parts.h"
#include "box/result.h"
#include "box/settings.h"

static void amount(uint64_t n, char *ret, size_t size)
{
	if (n == UINT64_MAX)
		(void)snprintf(ret, size, "unlimited");
	else
		(void)snprintf(ret, size, "%" PRIu64, n);
}

static int lowered(struct guard *g, const char *name, const char *asked,
		   const char *given, struct err *err)
{
	char text[300];

	if (!g->by->clamps) {
		(void)snprintf(text, sizeof(text),
			       "%.100s %.60s is above the ceiling %.60s "
			       "(docker.over_ceiling: deny)",
			       name, asked, given);
		return guard_denied(g, err, text);
	}
	if (strv_add(&g->lowered, name) < 0 ||
	    strv_add(&g->lowered, asked) < 0 ||
	    strv_add(&g->lowered, given) < 0)
		return guard_no_memory(err);
	return 0;
}

static int lowered_number(struct guard *g, const char *name, uint64_t asked,
			  uint64_t given, struct err *err)
{
	char texts[2][32];

	amount(asked, texts[0], sizeof(texts[0]));
	amount(given, texts[1], sizeof(texts[1]));
	return lowered(g, name, texts[0], texts[1], err);
}

/* As policy_decide() lowered them. */
static int tell_places(struct guard *g, struct err *err)
{
	for (size_t i = 0; i < g->given->n_tmpfs; i++) {
		const struct spec_tmpfs *was = &g->given->tmpfs[i];
		char name[200];

		if (!was->has_size || g->spec->tmpfs[i].size >= was->size)
			continue;
		(void)snprintf(name, sizeof(name), "tmpfs %.190s", was->target);
		if (lowered_number(g, name, was->size, g->spec->tmpfs[i].size,
				   err) < 0)
			return -err->code;
	}
	return 0;
}

/* What init sets (init/stage-limits.c); it raises nothing that it finds. */
static uint64_t most(const struct guard *g, int what)
{
	const struct {
		int what;
		uint64_t value;
	} table[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_NOFILE, g->spec->nofile },
		{ RLIMIT_FSIZE, g->spec->fsize },
		{ RLIMIT_MEMLOCK, WIRE_TOP_MEMLOCK },
		{ RLIMIT_MSGQUEUE, WIRE_TOP_MSGQUEUE },
		{ RLIMIT_SIGPENDING, WIRE_TOP_SIGPENDING },
		{ RLIMIT_STACK, WIRE_TOP_STACK },
		{ RLIMIT_NICE, 0 },
		{ RLIMIT_RTPRIO, 0 },
	};
	uint64_t top = g->by->limits ? g->by->limits[what].rlim_max
				     : UINT64_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].what == what)
			top = MIN(top, table[i].value);
	return top;
}

static int lower_ulimits(struct guard *g, struct err *err)
{
	for (int i = 0; i < WIRE_RLIMITS; i++) {
		struct wire_rlimit *l = &g->spec->rlimits[i];
		uint64_t top = most(g, i);
		char name[40];

		if (!(g->spec->rlimits_set & 1U << i) || l->hard <= top)
			continue;
		(void)snprintf(name, sizeof(name), "ulimit %s", ulimit_name(i));
		if (lowered_number(g, name, l->hard, top, err) < 0)
			return -err->code;
		l->hard = top;
		l->soft = MIN(l->soft, top);
	}
	return 0;
}

static int lower_reservation(struct guard *g, struct err *err)
{
	struct cordon_spec *s = g->spec;

	if (s->memory_low <= s->memory)
		return 0;
	if (lowered_number(g, "memory_reservation", s->memory_low, s->memory,
			   err) < 0)
		return -err->code;
	s->memory_low = s->memory;
	return 0;
}

/* "0-2,4" */
static void cpus_text(const uint64_t *cpus, struct buf *out)
{
	for (int i = 0; i < 256; i++) {
		int first = i;

		if (!(cpus[i / 64] & 1ULL << i % 64))
			continue;
		while (i < 255 && cpus[(i + 1) / 64] & 1ULL << (i + 1) % 64)
			i++;
		(void)buf_printf(out, "%s%d", out->len ? "," : "", first);
		if (i > first)
			(void)buf_printf(out, "-%d", i);
	}
}

static int lower_cpus(struct guard *g, struct err *err)
{
	struct cordon_spec *s = g->spec;
	uint64_t cpus[ARRAY_SIZE(s->cpus)] = { 0 };
	bool is_less = false;
	bool has_any = false;
	cpu_set_t here;
	struct buf text;
	int r;

	if (!s->cpuset || !*s->cpuset)
		return 0;
	if (sched_getaffinity(0, sizeof(here), &here) < 0)
		return err_errno(err, errno, "find the machine's CPUs");
	for (size_t i = 0; i < 64 * ARRAY_SIZE(cpus); i++) {
		uint64_t bit = s->cpus[i / 64] & 1ULL << i % 64;

		if (bit && CPU_ISSET(i, &here))
			cpus[i / 64] |= bit;
		has_any |= bit && CPU_ISSET(i, &here);
		is_less |= bit && !CPU_ISSET(i, &here);
	}
	if (!has_any) {
		g->refused = REFUSED_INVALID;
		return err_set(err, EINVAL,
			       "cpuset_cpus '%.60s' has none of the CPUs that "
			       "are here",
			       s->cpuset);
	}
	if (!is_less)
		return 0;
	buf_init(&text, 1024);
	cpus_text(cpus, &text);
	r = text.error ? guard_no_memory(err)
		       : lowered(g, "cpuset_cpus", s->cpuset, text.data, err);
	if (r == 0 && !(s->cpuset = guard_own(g, text.data)))
		r = guard_no_memory(err);
	memcpy(s->cpus, cpus, sizeof(cpus));
	buf_done(&text);
	return r;
}

int guard_lower(struct guard *g, struct err *err)
{
	if (!g->by || !g->by->judges_rest)
		return 0;
	if (tell_places(g, err) < 0 || lower_ulimits(g, err) < 0 ||
	    lower_reservation(g, err) < 0)
		return -err->code;
	return lower_cpus(g, err);
}

static bool was_asked(const struct cordon_spec *s, const char *name)
{
	for (size_t i = 0; i + 1 < s->asked.n; i += 2)
		if (strcmp(s->asked.v[i], name) == 0)
			return true;
	return false;
}

static int note(struct guard *g, const char *name, uint64_t given,
		const char *why, struct err *err)
{
	char text[200];

	if (!was_asked(g->given, name))
		return 0;
	(void)snprintf(text, sizeof(text),
		       "%s is %" PRIu64 " and not as asked for: %s", name,
		       given, why);
	return strv_add(&g->notes, text) < 0 ? guard_no_memory(err) : 0;
}

int guard_lower_here(struct guard *g, struct err *err)
{
	struct cordon_spec *s = g->spec;
	const struct {
		const char *name;
		int what;
		uint64_t *value;
		const char *why;
	} table[] = {
		{ "files", RLIMIT_NOFILE, &s->nofile,
		  "that is the hard limit here (ulimit -Hn)" },
		{ "file-size", RLIMIT_FSIZE, &s->fsize,
		  "that is the hard limit here (ulimit -Hf)" },
	};
	uint64_t room = spec_workspace_size(s);

	/* A daemon has its own, which every box of it is made with. */
	for (size_t i = 0; !g->by && i < ARRAY_SIZE(table); i++) {
		struct rlimit now;

		if (getrlimit(table[i].what, &now) < 0 ||
		    now.rlim_max >= *table[i].value)
			continue;
		*table[i].value = now.rlim_max;
		if (note(g, table[i].name, now.rlim_max, table[i].why, err) < 0)
			return -err->code;
	}
	if (room && room < s->disk)
		return note(g, "disk", room,
			    "/workspace is a tmpfs of that size", err);
	return 0;
}
