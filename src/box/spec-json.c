/* SPDX-License-Identifier: Apache-2.0 */

/* The effective spec as a document, for --dry-run. */

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "box/images.h"
#include "box/lang.h"
#include "box/prepare.h"
#include "box/result.h"
#include "box/settings.h"
#include "box/spec.h"

static void put_list(struct json *j, const char *name, const struct strv *list)
{
	json_open(j, name, '[');
	for (size_t i = 0; i < list->n; i++)
		json_str(j, NULL, list->v[i]);
	json_close(j, ']');
}

static void put_blocks(struct json *j, const struct cordon_spec *s)
{
	json_open(j, "blocks", '[');
	for (size_t i = 0; i < s->n_blocks; i++) {
		const struct spec_block *b = &s->blocks[i];

		json_open(j, NULL, '{');
		json_str(j, "language",
			 b->lang ? b->lang->names[0] : b->lang_name);
		json_bytes(j, "code", b->code, b->len);
		if (b->filename)
			json_str(j, "filename", b->filename);
		if (b->args.n)
			put_list(j, "args", &b->args);
		if (b->input)
			json_bytes(j, "stdin", b->input, b->input_len);
		json_close(j, '}');
	}
	json_close(j, ']');
}

const char *spec_image_name(const struct cordon_spec *s)
{
	if (s->root)
		return s->root->name;
	return s->image ? s->image : "host";
}

/* What is known of it: more once it was found. */
static void put_image(struct json *j, const struct cordon_spec *s)
{
	const struct box_image *m = s->root;

	json_str(j, "image", spec_image_name(s));
	if (s->has_entrypoint)
		put_list(j, "entrypoint", &s->entrypoint);
	else if (m)
		put_list(j, "entrypoint", &m->entrypoint);
	if (!m)
		return;
	json_str(j, "image_id", m->id);
	put_list(j, "image_volumes", &m->volumes);
	put_list(j, "exposed_ports", &m->ports);
	put_list(j, "image_labels", &m->labels);
	if (*m->stop_signal)
		json_str(j, "stop_signal", m->stop_signal);
	if (*m->user)
		json_str(j, "image_user", m->user);
}

static void put_rlimits(struct json *j, const struct cordon_spec *s)
{
	json_open(j, "ulimits", '[');
	for (int i = 0; i < WIRE_RLIMITS; i++) {
		if (!(s->rlimits_set & 1U << i))
			continue;
		json_open(j, NULL, '{');
		json_str(j, "name", ulimit_name(i));
		json_int(j, "soft", (int64_t)s->rlimits[i].soft);
		json_int(j, "hard", (int64_t)s->rlimits[i].hard);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* What the policy allows besides is said by the run's record. */
static void put_network(struct json *j, const struct cordon_spec *s)
{
	bool has_some = !s->no_network &&
			(s->has_network || s->allow_hosts.n || s->secrets.n);

	json_str(j, "network", has_some ? "allow" : "none");
	if (s->allow_hosts.n)
		put_list(j, "allow_host", &s->allow_hosts);
	if (s->secrets.n)
		put_list(j, "secret", &s->secrets);
}

/* Only what was asked for. */
static void put_more(struct json *j, const struct cordon_spec *s)
{
	if (s->hostname)
		json_str(j, "hostname", s->hostname);
	if (s->domainname)
		json_str(j, "domainname", s->domainname);
	if (s->hosts.n)
		put_list(j, "hosts", &s->hosts);
	if (s->work_dir)
		json_str(j, "work_dir", s->work_dir);
	if (s->bind_dir)
		json_str(j, "bind_dir", s->bind_dir);
	if (s->delete_files)
		json_bool(j, "delete_files", true);
	if (s->cpu_shares)
		json_int(j, "cpu_shares", (int64_t)s->cpu_shares);
	if (s->cpuset)
		json_str(j, "cpuset_cpus", s->cpuset);
	if (s->memory_low)
		json_int(j, "memory_reservation", (int64_t)s->memory_low);
	if (s->oom_score_adj != WIRE_OOM_SCORE)
		json_int(j, "oom_score_adj", s->oom_score_adj);
	if (s->rlimits_set)
		put_rlimits(j, s);
}

/* What every box has, apart from what was asked for. */
static void put_scratch(struct json *j, const struct cordon_spec *s)
{
	static const char *const places[] = { "/tmp", "/dev/shm",
					      "/workspace" };

	json_open(j, "default_tmpfs", '{');
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		uint64_t size = prepare_scratch(s, places[i]);

		if (size)
			json_int(j, places[i], (int64_t)size);
	}
	json_close(j, '}');
}

static void put_places(struct json *j, const struct cordon_spec *s)
{
	json_open(j, "volumes", '[');
	for (size_t i = 0; i < s->n_binds; i++) {
		json_open(j, NULL, '{');
		json_str(j, "source", s->binds[i].source);
		json_str(j, "target", s->binds[i].target);
		json_str(j, "mode", s->binds[i].mode == BIND_RW ? "rw" : "ro");
		json_close(j, '}');
	}
	json_close(j, ']');
	put_scratch(j, s);
	json_open(j, "tmpfs", '{');
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (!s->tmpfs[i].is_volume)
			json_int(j, s->tmpfs[i].target,
				 (int64_t)s->tmpfs[i].size);
	json_close(j, '}');
	json_open(j, "writable", '[');
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (s->tmpfs[i].is_volume)
			json_str(j, NULL, s->tmpfs[i].target);
	json_close(j, ']');
	json_open(j, "copy_out", '{');
	for (size_t i = 0; i < s->n_copies; i++)
		json_str(j, s->copies[i].glob, s->copies[i].dir);
	json_close(j, '}');
}

static void put_numbers(struct json *j, const struct cordon_spec *s)
{
	json_int(j, "timeout_ms", (int64_t)(s->timeout_us / 1000));
	json_int(j, "total_timeout_ms", (int64_t)(spec_total_us(s) / 1000));
	json_int(j, "kill_grace_ms", (int64_t)(s->grace_us / 1000));
	if (s->cpu_time_us)
		json_int(j, "cpu_time_ms", (int64_t)(s->cpu_time_us / 1000));
	json_int(j, "memory", (int64_t)s->memory);
	json_decimal(j, "cpus",
		     (double)s->cpu_quota_us / (double)s->cpu_period_us);
	json_int(j, "pids", (int64_t)s->pids);
	json_int(j, "output", (int64_t)s->output);
	if (s->hard_output)
		json_int(j, "hard_output", (int64_t)s->hard_output);
	json_int(j, "disk", (int64_t)s->disk);
	json_int(j, "files", (int64_t)s->nofile);
	json_int(j, "file_size", (int64_t)s->fsize);
	json_int(j, "uid", s->uid);
	json_int(j, "gid", s->gid);
}

char *cordon_spec_json(const struct cordon_spec *s)
{
	struct buf out;
	struct json j = { .out = &out };
	struct strv env = { 0 };

	buf_init(&out, 256 << 20);
	if (prepare_env(s, &env) < 0) {
		strv_done(&env);
		return NULL;
	}
	json_open(&j, NULL, '{');
	if (s->name)
		json_str(&j, "name", s->name);
	if (s->labels.n)
		result_put_labels(&j, &s->labels);
	put_image(&j, s);
	json_str(&j, "isolation", "native");
	put_network(&j, s);
	if (s->command.n)
		put_list(&j, "command", &s->command);
	if (s->n_blocks)
		put_blocks(&j, s);
	if (s->args.n)
		put_list(&j, "args", &s->args);
	if (s->n_blocks > 1)
		json_bool(&j, "continue_on_error", s->continue_on_error);
	put_numbers(&j, s);
	put_more(&j, s);
	json_bool(&j, "read_only", !s->writable_root);
	json_str(&j, "workdir", s->workdir ? s->workdir : "/workspace");
	if (s->workspace)
		json_str(&j, "workspace", s->workspace);
	json_bool(&j, "interactive", s->interactive);
	json_bool(&j, "tty", s->tty);
	put_places(&j, s);
	put_list(&j, "env", &env);
	json_open(&j, "best_effort", '[');
	for (int i = 0; i < WIRE_LAYERS; i++)
		if (s->best_effort & 1U << i)
			json_str(&j, NULL, layer_name((enum wire_layer)i));
	json_close(&j, ']');
	json_close(&j, '}');
	buf_puts(&out, "\n");
	strv_done(&env);
	return out.error ? (buf_done(&out), NULL) : buf_take(&out);
}
