/* SPDX-License-Identifier: Apache-2.0 */
#include "box/settings-more.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/num.h"
#include "base/util.h"
#include "box/spec.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static int copy(char **to, const char *text, struct err *err)
{
	char *dup = strdup(text);

	if (!dup)
		return err_set(err, ENOMEM, "out of memory");
	free(*to);
	*to = dup;
	return 0;
}

/* Of what a line in /etc/hosts may name, without what could be another line. */
static bool is_host(const char *v, size_t len, size_t max)
{
	return len > 0 && len <= max && strspn(v, LETTERS "-._") >= len &&
	       v[0] != '-' && v[0] != '.';
}

int set_hostname(struct cordon_spec *s, const char *v, struct err *err)
{
	if (!is_host(v, strlen(v), 63))
		return err_set(err, EINVAL,
			       "'%s' is not a host name: letters, digits, '-' "
			       "and '.', at most 63",
			       v);
	return copy(&s->hostname, v, err);
}

int set_domainname(struct cordon_spec *s, const char *v, struct err *err)
{
	if (*v && !is_host(v, strlen(v), 63))
		return err_set(err, EINVAL, "'%s' is not a domain name", v);
	return copy(&s->domainname, v, err);
}

/* NAME:ADDRESS, as Docker has it; the address may have colons itself. */
int set_add_host(struct cordon_spec *s, const char *v, struct err *err)
{
	size_t len = strcspn(v, ":=");
	const char *address = v[len] ? v + len + 1 : v + len;
	unsigned char raw[16];
	char line[400];

	if (strcmp(address, "host-gateway") == 0)
		return err_set(err, EPERM,
			       "'host-gateway' is refused: the host is not "
			       "reachable from a box");
	if (!is_host(v, len, 253) || (inet_pton(AF_INET, address, raw) != 1 &&
				      inet_pton(AF_INET6, address, raw) != 1))
		return err_set(err, EINVAL,
			       "'%s' is not NAME:ADDRESS, such as db:10.0.0.7",
			       v);
	if (s->hosts.n >= 1024)
		return err_set(err, E2BIG, "more than 1024 hosts");
	(void)snprintf(line, sizeof(line), "%s %.*s", address, (int)len, v);
	return strv_add(&s->hosts, line) < 0
		       ? err_set(err, ENOMEM, "out of memory")
		       : 0;
}

int set_cpu_shares(struct cordon_spec *s, const char *v, struct err *err)
{
	uint64_t n = 0;

	if (num_parse(v, 262144, &n) < 0 || n == 1)
		return err_set(err, EINVAL,
			       "'%s' is not a number from 2 to 262144", v);
	s->cpu_shares = n; /* 0 is how others write: the usual */
	return 0;
}

/* "0-2,4"; empty: any. */
int set_cpuset(struct cordon_spec *s, const char *v, struct err *err)
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
	return copy(&s->cpuset, v, err);
}

int set_memory_low(struct cordon_spec *s, const char *v, struct err *err)
{
	if (num_parse_size(v, &s->memory_low) < 0)
		return err_set(err, EINVAL,
			       "'%s' is not a size; write 64m, 1g or bytes", v);
	return 0;
}

/* Memory and swap together; a box never has swap, whatever is asked. */
int set_memory_swap(struct cordon_spec *s, const char *v, struct err *err)
{
	uint64_t bytes;

	(void)s;
	if (strcmp(v, "-1") != 0 && num_parse_size(v, &bytes) < 0)
		return err_set(err, EINVAL, "'%s' is not a size", v);
	return 0;
}

int set_oom_score(struct cordon_spec *s, const char *v, struct err *err)
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
int set_ulimit(struct cordon_spec *s, const char *v, struct err *err)
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

/* It has one group on the host, and no right to have more. */
int set_group_add(struct cordon_spec *s, const char *v, struct err *err)
{
	(void)s;
	return err_set(err, EOPNOTSUPP,
		       "group '%.60s' is refused: a box has one group; give it "
		       "with --user UID:GID",
		       v);
}
