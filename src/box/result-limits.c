/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What held a run: the document's `limits`. Whoever reads it can rely on each
 * number there; a limit that this machine could not enforce is null, and a
 * warning says so.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/json.h"
#include "base/util.h"
#include "box/guard-parts.h"
#include "box/result.h"
#include "box/spec.h"

#define USUAL_PLACE (64ULL << 20)

static void add_place(struct strv *to, const char *path, uint64_t size)
{
	char *text;

	if (asprintf(&text, "%" PRIu64 " %s", size, path) < 0)
		return;
	(void)strv_add(to, text);
	free(text);
}

/* Those that are there anyway, unless something else is in their place. */
static void take_places(struct strv *to, const struct cordon_spec *s)
{
	static const char *const usual[] = { "/tmp", "/dev/shm" };

	strv_done(to);
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (!guard_has_target(s, usual[i]))
			add_place(to, usual[i], USUAL_PLACE);
	for (size_t i = 0; i < s->n_tmpfs; i++)
		add_place(to, s->tmpfs[i].target, s->tmpfs[i].size);
}

void result_take_limits(struct cordon_result *r, const struct cordon_spec *s)
{
	r->limits.timeout_us = s->timeout_us;
	r->limits.total_us = s->total_us;
	r->limits.grace_us = s->grace_us;
	r->limits.cpu_time_us = s->cpu_time_us;
	r->limits.memory = s->memory;
	r->limits.cpu_quota_us = s->cpu_quota_us;
	r->limits.cpu_period_us = s->cpu_period_us;
	r->limits.pids = s->pids;
	r->limits.output = s->output;
	r->limits.hard_output = s->hard_output;
	r->limits.disk = spec_workspace_size(s);
	r->limits.nofile = spec_held_to(s, RLIMIT_NOFILE, s->nofile);
	r->limits.fsize = spec_held_to(s, RLIMIT_FSIZE, s->fsize);
	r->limits.uid = s->uid;
	r->limits.gid = s->gid;
	r->limits.read_only = !s->writable_root;
	r->limits.has_network = !s->no_network &&
				(s->has_network || s->egress ||
				 s->allow_hosts.n || s->secrets.n);
	take_places(&r->limits.places, s);
}

static int64_t ms(uint64_t us)
{
	return (int64_t)((us + 500) / 1000);
}

static bool is_missing(const struct cordon_result *r, enum wire_layer layer)
{
	return r->not_enforced & 1U << layer;
}

static void put_held(struct json *j, const struct cordon_result *r,
		     const char *name, enum wire_layer layer, uint64_t value)
{
	if (is_missing(r, layer))
		json_none(j, name);
	else
		json_int(j, name, (int64_t)value);
}

static void put_times(struct json *j, const struct cordon_result *r)
{
	json_int(j, "timeout_ms", ms(r->limits.timeout_us));
	if (r->limits.total_us)
		json_int(j, "total_timeout_ms", ms(r->limits.total_us));
	json_int(j, "kill_grace_ms", ms(r->limits.grace_us));
	if (r->limits.cpu_time_us)
		json_int(j, "cpu_time_ms", ms(r->limits.cpu_time_us));
}

static void put_wall(struct json *j, const struct cordon_result *r)
{
	char user[32];

	(void)snprintf(user, sizeof(user), "%u:%u", r->limits.uid,
		       r->limits.gid);
	json_str(j, "user", user);
	json_bool(j, "read_only", r->limits.read_only);
	json_str(j, "network", r->limits.has_network ? "allow" : "none");
	json_open(j, "tmpfs", '{');
	for (size_t i = 0; i < r->limits.places.n; i++) {
		const char *text = r->limits.places.v[i];

		json_int(j, strchr(text, ' ') + 1,
			 (int64_t)strtoull(text, NULL, 10));
	}
	json_close(j, '}');
}

void result_put_limits(struct json *j, const struct cordon_result *r)
{
	json_open(j, "limits", '{');
	put_times(j, r);
	put_held(j, r, "memory", WIRE_L_MEMORY, r->limits.memory);
	if (is_missing(r, WIRE_L_CPU))
		json_none(j, "cpus");
	else
		json_decimal(j, "cpus",
			     (double)r->limits.cpu_quota_us /
				     (double)r->limits.cpu_period_us);
	put_held(j, r, "pids", WIRE_L_PIDS, r->limits.pids);
	json_int(j, "output", (int64_t)r->limits.output);
	if (r->limits.hard_output)
		json_int(j, "hard_output", (int64_t)r->limits.hard_output);
	if (r->limits.disk)
		json_int(j, "disk", (int64_t)r->limits.disk);
	else
		json_none(j, "disk");
	json_int(j, "files", (int64_t)r->limits.nofile);
	json_int(j, "file_size", (int64_t)r->limits.fsize);
	put_wall(j, r);
	json_close(j, '}');
}

/* Others are missing without anybody's consent, and hold nothing alone. */
void result_put_missing(struct json *j, const struct cordon_result *r)
{
	static const enum wire_layer told[] = { WIRE_L_MEMORY, WIRE_L_CPU,
						WIRE_L_PIDS, WIRE_L_LANDLOCK };
	char text[80];

	for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
		if (!is_missing(r, told[i]))
			continue;
		(void)snprintf(text, sizeof(text),
			       "%s is not enforced on this machine",
			       layer_name(told[i]));
		json_str(j, NULL, text);
	}
}
