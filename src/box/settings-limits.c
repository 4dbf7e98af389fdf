/* SPDX-License-Identifier: Apache-2.0 */

/* Limits that are more than a number in a range: times, CPU, memory, ulimits.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/num.h"
#include "base/util.h"
#include "box/settings-set.h"
#include "box/settings.h"
#include "policy/policy.h"

/*
 * A number without a unit is seconds, and then at least one: the words are
 * those that users of other executors know.
 */
SETTER(set_timeout)
{
	uint64_t us = 0;

	s->stated |= 1U << POLICY_TIMEOUT;
	if (num_parse_duration(v, &us) == 0 && us < 1000000 &&
	    strspn(v, "0123456789.") == strlen(v))
		return err_set(err, EINVAL,
			       "Timeout must be greater than or equal to 1.");
	return put_time(v, 1000, &s->timeout_us, err);
}

SETTER(set_memory_mb)
{
	uint64_t mb = 0;

	s->stated |= 1U << POLICY_MEMORY;
	if (put_count(v, 1, 1 << 24, &mb, err) < 0)
		return -err->code;
	s->memory = mb << 20;
	return 0;
}

SETTER(set_cpus)
{
	uint64_t milli;

	s->stated |= 1U << POLICY_CPUS;
	if (num_parse_milli(v, &milli) < 0)
		return err_set(err, EINVAL,
			       "'%s' is not a number of CPUs; write 0.5 or 2",
			       v);
	if (milli < 10 || milli > 4096000)
		return err_set(err, EINVAL,
			       "'%s' CPUs are too %s; take 0.01 to 4096", v,
			       milli < 10 ? "few" : "many");
	s->stated &= ~SPEC_STATED_QUOTA;
	s->cpu_quota_us = milli * s->cpu_period_us / 1000;
	return 0;
}

SETTER(set_cpu_percent)
{
	uint64_t milli;

	s->stated |= 1U << POLICY_CPUS;
	if (num_parse_milli(v, &milli) < 0 || milli < 1000)
		return err_set(err, EINVAL, "'%s' is not a percentage", v);
	s->stated &= ~SPEC_STATED_QUOTA;
	s->cpu_quota_us = milli * s->cpu_period_us / 100000;
	return 0;
}

SETTER(set_cpu_period)
{
	uint64_t period = 0;

	s->stated |= 1U << POLICY_CPUS;
	if (put_count(v, 1000, 1000000, &period, err) < 0)
		return -err->code;
	/* A quota that was given is in each period, as in Docker. */
	if (!(s->stated & SPEC_STATED_QUOTA))
		s->cpu_quota_us = s->cpu_quota_us * period / s->cpu_period_us;
	s->cpu_period_us = period;
	return 0;
}

SETTER(set_cpu_shares)
{
	uint64_t n = 0;

	if (num_parse(v, 262144, &n) < 0 || n == 1)
		return err_set(err, EINVAL,
			       "'%s' is not a number from 2 to 262144", v);
	s->cpu_shares = n; /* 0 is how others write: the usual */
	return 0;
}

/* "0-2,4"; empty: any. */
SETTER(set_cpuset)
{
	uint64_t cpus[ARRAY_SIZE(s->cpus)] = { 0 };
	const char *p = v;

	while (*p) {
		char *end;
		unsigned long first = strtoul(p, &end, 10);
		unsigned long last = first;

		if (*p < '0' || *p > '9')
			break;
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (last < first || last > 255 || (*end && *end != ','))
			break;
		for (unsigned long i = first; i <= last; i++)
			cpus[i / 64] |= 1ULL << i % 64;
		p = end + (*end == ',');
		if (*end == ',' && !*p)
			p = "-";
	}
	if (*p)
		return err_set(err, EINVAL,
			       "'%s' is not a list of CPUs from 0 to 255, such "
			       "as 0-2,4",
			       v);
	memcpy(s->cpus, cpus, sizeof(cpus));
	return put_text(&s->cpuset, v, err);
}

/* Memory and swap together; a box never has swap, whatever is asked. */
SETTER(set_memory_swap)
{
	uint64_t bytes;

	(void)s;
	if (strcmp(v, "-1") != 0 && num_parse_size(v, &bytes) < 0)
		return err_set(err, EINVAL, "'%s' is not a size", v);
	return 0;
}

SETTER(set_oom_score)
{
	uint64_t n = 0;

	if (num_parse(v, 1000, &n) < 0)
		return err_set(err, EINVAL,
			       "'%s' is not a number from 0 to 1000; a box is "
			       "never spared before the host",
			       v);
	s->oom_score_adj = (uint32_t)n;
	return 0;
}

/* Those that the kernel obeys; `least` is what a program needs to start. */
static const struct {
	const char *name;
	int number;
	uint64_t least;
} limits[] = {
	{ "as", RLIMIT_AS, 1 << 20 },
	{ "core", RLIMIT_CORE, 0 },
	{ "cpu", RLIMIT_CPU, 1 },
	{ "data", RLIMIT_DATA, 1 << 20 },
	{ "fsize", RLIMIT_FSIZE, 0 },
	{ "memlock", RLIMIT_MEMLOCK, 0 },
	{ "msgqueue", RLIMIT_MSGQUEUE, 0 },
	{ "nice", RLIMIT_NICE, 0 },
	{ "nofile", RLIMIT_NOFILE, 4 },
	{ "nproc", RLIMIT_NPROC, 1 },
	{ "rtprio", RLIMIT_RTPRIO, 0 },
	{ "rttime", RLIMIT_RTTIME, 1 },
	{ "sigpending", RLIMIT_SIGPENDING, 0 },
	{ "stack", RLIMIT_STACK, 64 << 10 },
};

_Static_assert(RLIMIT_RTTIME < WIRE_RLIMITS, "all have a place");

const char *ulimit_name(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limits[i].number == number)
			return limits[i].name;
	return "";
}

static int limit_value(const char *text, uint64_t *ret)
{
	if (strcmp(text, "-1") == 0 || strcmp(text, "unlimited") == 0) {
		*ret = UINT64_MAX;
		return 0;
	}
	return num_parse(text, UINT64_MAX, ret);
}

/* NAME=SOFT[:HARD] */
SETTER(set_ulimit)
{
	struct wire_rlimit l = { 0 };
	char text[128];
	char *value;
	char *hard;

	if ((size_t)snprintf(text, sizeof(text), "%s", v) >= sizeof(text) ||
	    !(value = strchr(text, '=')))
		return err_set(err, EINVAL, "'%.60s' is not NAME=SOFT[:HARD]",
			       v);
	*value++ = '\0';
	hard = strchr(value, ':');
	if (hard)
		*hard++ = '\0';
	if (limit_value(value, &l.soft) < 0 ||
	    limit_value(hard ? hard : value, &l.hard) < 0 || l.soft > l.hard)
		return err_set(err, EINVAL, "'%.60s' is not NAME=SOFT[:HARD]",
			       v);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		if (strcmp(limits[i].name, text) != 0)
			continue;
		if (l.soft < limits[i].least)
			return err_set(err, EINVAL, "%s is at least %llu", text,
				       (unsigned long long)limits[i].least);
		s->rlimits[limits[i].number] = l;
		s->rlimits_set |= 1U << limits[i].number;
		return 0;
	}
	return err_set(err, EINVAL,
		       "'%.60s' is not a limit that the kernel obeys: as, "
		       "core, cpu, data, fsize, memlock, msgqueue, nice, "
		       "nofile, nproc, rtprio, rttime, sigpending, stack",
		       text);
}
