/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /containers/{}/json: what was asked for, with the effective values in
 * the places of those that the policy changed.
 */

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "box/result.h"
#include "box/wire.h"
#include "face/docker/internal.h"
#include "face/docker/routes.h"

json_t *member_doc(const char *text)
{
	json_t *doc = text ? json_loads(text, 0, NULL) : NULL;

	return doc ? doc : json_object();
}

const char *member_str(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/*
 * What is "io.cordon." is no label of an image: it would be read as a setting
 * of the container, which an image cannot have.
 */
static void add_image_labels(json_t *labels, json_t *spec)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(spec, "image_labels"), i, v)
	{
		const char *text = json_string_value(v);
		const char *eq = text ? strchr(text, '=') : NULL;
		char *name = eq ? strndup(text, (size_t)(eq - text)) : NULL;

		if (name && strncmp(name, "io.cordon.", 10) != 0 &&
		    !json_object_get(labels, name))
			json_object_set_new(labels, name, json_string(eq + 1));
		free(name);
	}
}

json_t *labels_of(json_t *extra, json_t *spec)
{
	json_t *config = json_object_get(extra, "Config");
	json_t *labels = json_object_get(config, "Labels");

	if (!json_is_object(labels)) {
		/* A place to put it in, so that it need not be let go. */
		if (!json_is_object(config)) {
			config = json_object();
			json_object_set_new(extra, "Config", config);
		}
		labels = json_object();
		json_object_set_new(config, "Labels", labels);
	}
	add_image_labels(labels, spec);
	return labels;
}

const char *state_name(enum box_state s)
{
	static const char *const names[] = { "created", "running", "paused",
					     "exited", "dead" };

	return names[MIN((size_t)s, ARRAY_SIZE(names) - 1)];
}

const char *image_of(json_t *extra, json_t *spec)
{
	const char *asked = member_str(json_object_get(extra, "Config"),
				       "Image");

	if (*asked)
		return asked;
	return *member_str(spec, "image") ? member_str(spec, "image") : "host";
}

const char *image_id_of(json_t *spec)
{
	const char *id = member_str(spec, "image_id");

	return *id ? id : host_id();
}

json_t *networks_of(json_t *extra)
{
	const char *mode = member_str(json_object_get(extra, "HostConfig"),
				      "NetworkMode");
	const char *name = strcmp(mode, "none") == 0 ? "none" : "bridge";
	char id[65];

	network_id(name, id);
	return json_pack(
		"{s:{s:n,s:n,s:n,s:s,s:s,s:s,s:s,s:i,s:s,s:s,s:i,s:n}}", name,
		"IPAMConfig", "Links", "Aliases", "NetworkID", id, "EndpointID",
		"", "Gateway", "", "IPAddress", "", "IPPrefixLen", 0,
		"MacAddress", "", "IPv6Gateway", "", "GlobalIPv6PrefixLen", 0,
		"DriverOpts");
}

json_t *mounts_of(json_t *spec)
{
	json_t *out = json_array();
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(spec, "volumes"), i, v)
	{
		bool is_rw = strcmp(member_str(v, "mode"), "rw") == 0;

		json_array_append_new(out,
				      json_pack("{s:s,s:s,s:s,s:s,s:b,s:s}",
						"Type", "bind", "Source",
						member_str(v, "source"),
						"Destination",
						member_str(v, "target"), "Mode",
						is_rw ? "" : "ro", "RW", is_rw,
						"Propagation", "rprivate"));
	}
	/* Of the box's own, without a name or a place on the host. */
	json_array_foreach(json_object_get(spec, "writable"), i, v)
		json_array_append_new(
			out,
			json_pack("{s:s,s:s,s:s,s:O,s:s,s:s,s:b,s:s}", "Type",
				  "volume", "Name", "", "Source", "",
				  "Destination", v, "Driver", "local", "Mode",
				  "", "RW", true, "Propagation", ""));
	return out;
}

static void append_all(json_t *to, json_t *from)
{
	json_t *v;
	size_t i;

	if (json_is_string(from))
		json_array_append(to, from);
	json_array_foreach(from, i, v) json_array_append(to, v);
}

void path_and_args(json_t *extra, json_t *spec, json_t **ret_path,
		   json_t **ret_args)
{
	json_t *config = json_object_get(extra, "Config");
	json_t *all = json_array();

	append_all(all, json_object_get(spec, "command"));
	if (json_array_size(all) == 0) {
		append_all(all, json_object_get(config, "Entrypoint"));
		append_all(all, json_object_get(config, "Cmd"));
	}
	*ret_path = json_incref(json_array_get(all, 0));
	if (!json_is_string(*ret_path)) {
		json_decref(*ret_path);
		*ret_path = json_string("");
	}
	json_array_remove(all, 0);
	*ret_args = all;
}

static json_t *time_of(int64_t ns)
{
	char text[40];

	time_format(ns, text);
	return json_string(text);
}

static json_t *state_of(const struct box_view *v)
{
	bool is_running = v->state == BOX_RUNNING || v->state == BOX_PAUSED;

	return json_pack("{s:s,s:b,s:b,s:b,s:b,s:b,s:I,s:i,s:o,s:o,s:o}",
			 "Status", state_name(v->state), "Running", is_running,
			 "Paused", v->state == BOX_PAUSED, "Restarting", 0,
			 "OOMKilled", v->oom_killed, "Dead",
			 v->state == BOX_GONE, "Pid",
			 (json_int_t)(is_running ? v->pid : 0), "ExitCode",
			 is_running ? 0 : v->exit_code, "Error",
			 doc_string(v->error), "StartedAt",
			 time_of(v->started_ns), "FinishedAt",
			 time_of(is_running ? 0 : v->finished_ns));
}

static void put_default(json_t *object, const char *name, json_t *value)
{
	if (!json_object_get(object, name))
		json_object_set(object, name, value);
	json_decref(value);
}

/* Who asked for root and did not get it sees who it is instead. */
static void put_user(json_t *config, json_t *spec)
{
	const char *asked = member_str(config, "User");
	json_t *uid = json_object_get(spec, "uid");
	char text[24];

	if (!user_is_root(asked) || !json_is_integer(uid) ||
	    !json_integer_value(uid))
		return;
	(void)snprintf(text, sizeof(text), "%lld",
		       (long long)json_integer_value(uid));
	json_object_set_new(config, "User", json_string(text));
}

static json_t *signal_of(int s)
{
	char text[SIGNAL_TEXT];

	signal_format(s > 0 ? s : SIGTERM, text);
	return json_string(text);
}

static json_t *timeout_of(int s)
{
	return json_integer(s < 0 ? 10 : s == INT32_MAX ? -1 : s);
}

static json_t *config_of(json_t *extra, json_t *spec, const struct box_view *v)
{
	json_t *c = json_copy(json_object_get(extra, "Config"));
	json_t *env = json_object_get(spec, "env");

	if (!c)
		c = json_object();
	if (*member_str(spec, "hostname"))
		json_object_set(c, "Hostname",
				json_object_get(spec, "hostname"));
	if (!*member_str(c, "Hostname"))
		json_object_set_new(c, "Hostname", json_string("cordon"));
	if (json_is_array(env))
		json_object_set(c, "Env", env);
	if (*member_str(spec, "workdir"))
		json_object_set(c, "WorkingDir",
				json_object_get(spec, "workdir"));
	put_user(c, spec);
	json_object_set_new(c, "Tty", json_boolean(v->tty));
	json_object_set_new(c, "OpenStdin", json_boolean(v->open_stdin));
	json_object_set_new(c, "StdinOnce", json_boolean(v->stdin_once));
	json_object_set(c, "Labels", labels_of(extra, spec));
	json_object_set_new(c, "Image", json_string(image_of(extra, spec)));
	if (*member_str(spec, "stop_signal"))
		put_default(c, "StopSignal",
			    json_string(member_str(spec, "stop_signal")));
	put_default(c, "Domainname", json_string(""));
	put_default(c, "User", json_string(""));
	put_default(c, "AttachStdin", json_false());
	put_default(c, "AttachStdout", json_false());
	put_default(c, "AttachStderr", json_false());
	put_default(c, "Env", json_array());
	put_default(c, "Cmd", json_pack("n"));
	put_default(c, "Entrypoint", json_pack("n"));
	put_default(c, "Volumes", json_pack("n"));
	put_default(c, "WorkingDir", json_string("/"));
	put_default(c, "OnBuild", json_pack("n"));
	put_default(c, "StopSignal", signal_of(v->stop_signal));
	put_default(c, "StopTimeout", timeout_of(v->stop_timeout_s));
	return c;
}

/* The effective numbers, under Docker's names. */
static void put_effective(json_t *h, json_t *spec)
{
	static const struct {
		const char *spec, *name;
	} numbers[] = {
		{ "memory", "Memory" },
		{ "pids", "PidsLimit" },
		{ "oom_score_adj", "OomScoreAdj" },
		{ "cpu_shares", "CpuShares" },
		{ "memory_reservation", "MemoryReservation" },
	};
	json_t *cpus = json_object_get(spec, "cpus");
	json_t *ro = json_object_get(spec, "read_only");

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_t *v = json_object_get(spec, numbers[i].spec);

		if (json_is_integer(v))
			json_object_set(h, numbers[i].name, v);
	}
	/* No swap: as much with it as without. */
	if (json_is_integer(json_object_get(spec, "memory")))
		json_object_set(h, "MemorySwap",
				json_object_get(spec, "memory"));
	if (json_is_boolean(ro))
		json_object_set(h, "ReadonlyRootfs", ro);
	if (*member_str(spec, "cpuset_cpus"))
		json_object_set(h, "CpusetCpus",
				json_object_get(spec, "cpuset_cpus"));
	if (!json_is_number(cpus))
		return;
	if (json_integer_value(json_object_get(h, "CpuQuota")) > 0) {
		json_int_t period = json_integer_value(
			json_object_get(h, "CpuPeriod"));
		double q = json_number_value(cpus) *
			   (double)(period > 0 ? period : 100000);

		json_object_set_new(h, "CpuQuota",
				    json_integer((json_int_t)llround(q)));
		return;
	}
	json_object_set_new(h, "NanoCpus",
			    json_integer((json_int_t)llround(
				    json_number_value(cpus) * 1e9)));
}

/* The options as asked for, with the size that is in force. */
static void tmpfs_effective(const char *asked, const json_t *size, char *ret,
			    size_t room)
{
	bool is_told = !size;
	struct buf out;

	buf_init(&out, room - 1);
	while (asked && *asked) {
		size_t len = strcspn(asked, ",");
		bool is_size = strncmp(asked, "size=", 5) == 0 && size;

		if (is_size)
			(void)buf_printf(&out, "%ssize=%lld",
					 out.len ? "," : "",
					 (long long)json_integer_value(size));
		else if (len > 0)
			(void)buf_printf(&out, "%s%.*s", out.len ? "," : "",
					 (int)len, asked);
		is_told = is_told || is_size;
		asked += len + (asked[len] == ',');
	}
	if (!is_told)
		(void)buf_printf(&out, "%ssize=%lld", out.len ? "," : "",
				 (long long)json_integer_value(size));
	(void)snprintf(ret, room, "%s", out.data ? out.data : "");
	buf_done(&out);
}

static json_t *tmpfs_of(json_t *asked, json_t *have)
{
	json_t *map = json_object();
	const char *path;
	json_t *v;

	json_object_foreach(asked, path, v)
	{
		char text[300];

		tmpfs_effective(json_string_value(v),
				json_object_get(have, path), text,
				sizeof(text));
		json_object_set_new(map, path, doc_string(text));
	}
	return map;
}

static json_t *limit_of(const char *name, const json_t *soft,
			const json_t *hard)
{
	return json_pack("{s:s,s:I,s:I}", "Name", name, "Soft",
			 json_integer_value(soft), "Hard",
			 json_integer_value(hard));
}

/* Those that were asked for, and those that every box has. */
static json_t *ulimits_of(json_t *spec)
{
	static const struct {
		const char *name, *setting;
	} always[] = { { "nofile", "files" }, { "fsize", "file_size" } };
	json_t *list = json_array();
	bool is_there[ARRAY_SIZE(always)] = { 0 };
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(spec, "ulimits"), i, v)
	{
		const char *name = member_str(v, "name");

		for (size_t k = 0; k < ARRAY_SIZE(always); k++)
			if (strcmp(always[k].name, name) == 0)
				is_there[k] = true;
		json_array_append_new(list,
				      limit_of(name, json_object_get(v, "soft"),
					       json_object_get(v, "hard")));
	}
	for (size_t k = 0; k < ARRAY_SIZE(always); k++) {
		json_t *n = json_object_get(spec, always[k].setting);

		if (!is_there[k] && json_is_integer(n))
			json_array_append_new(list,
					      limit_of(always[k].name, n, n));
	}
	return list;
}

/* Sizes and limits as they are in force, asked for or not. */
static void put_limits(json_t *h, json_t *spec)
{
	json_t *have = json_object_get(spec, "tmpfs");
	json_t *shm = json_object_get(have, "/dev/shm");
	json_t *disk = json_object_get(spec, "disk");
	char text[24];

	if (!shm)
		shm = json_object_get(json_object_get(spec, "default_tmpfs"),
				      "/dev/shm");
	if (shm)
		json_object_set(h, "ShmSize", shm);
	if (json_object_get(h, "Tmpfs"))
		json_object_set_new(h, "Tmpfs",
				    tmpfs_of(json_object_get(h, "Tmpfs"),
					     have));
	json_object_set_new(h, "Ulimits", ulimits_of(spec));
	if (json_is_integer(disk)) {
		(void)snprintf(text, sizeof(text), "%lld",
			       (long long)json_integer_value(disk));
		json_object_set_new(h, "StorageOpt",
				    json_pack("{s:s}", "size", text));
	}
}

static json_t *host_of(json_t *extra, json_t *spec, const struct box_view *v)
{
	json_t *h = json_copy(json_object_get(extra, "HostConfig"));
	json_t *log = json_pack("{s:s,s:{}}", "Type", "json-file", "Config");

	if (!h)
		h = json_object();
	put_effective(h, spec);
	put_limits(h, spec);
	json_object_set_new(h, "AutoRemove", json_boolean(v->auto_remove));
	json_object_set_new(h, "Privileged", json_false());
	json_object_set_new(h, "LogConfig", log);
	if (!*member_str(h, "NetworkMode"))
		json_object_set_new(h, "NetworkMode", json_string("default"));
	put_default(h, "RestartPolicy",
		    json_pack("{s:s,s:i}", "Name", "no", "MaximumRetryCount",
			      0));
	put_default(h, "Binds", json_pack("n"));
	put_default(h, "PortBindings", json_object());
	put_default(h, "CapAdd", json_pack("n"));
	put_default(h, "CapDrop", json_pack("n"));
	put_default(h, "ExtraHosts", json_pack("n"));
	put_default(h, "GroupAdd", json_pack("n"));
	put_default(h, "SecurityOpt", json_pack("n"));
	put_default(h, "IpcMode", json_string("private"));
	put_default(h, "CgroupnsMode", json_string("private"));
	put_default(h, "PidMode", json_string(""));
	put_default(h, "Runtime", json_string("cordon"));
	put_default(h, "ConsoleSize", json_pack("[i,i]", 0, 0));
	put_default(h, "ShmSize", json_integer(0));
	put_default(h, "Tmpfs", json_object());
	put_default(h, "StorageOpt", json_object());
	put_default(h, "CpuShares", json_integer(0));
	put_default(h, "CpuPeriod", json_integer(0));
	put_default(h, "CpuQuota", json_integer(0));
	put_default(h, "NanoCpus", json_integer(0));
	put_default(h, "CpusetCpus", json_string(""));
	put_default(h, "MemoryReservation", json_integer(0));
	put_default(h, "OomScoreAdj", json_integer(0));
	put_default(h, "Mounts", json_array());
	put_default(h, "Isolation", json_string(""));
	put_default(h, "UTSMode", json_string(""));
	put_default(h, "UsernsMode", json_string(""));
	put_default(h, "Init", json_true());
	return h;
}

/* As in the result of a run (cordon-result(5)). */
static json_t *denials_of(const struct cordon_result *net)
{
	json_t *list = json_array();

	for (size_t i = 0; net && i < net->n_refused; i++) {
		const struct refused *r = &net->refused[i];

		json_array_append_new(list,
				      json_pack("{s:s,s:o,s:s,s:o,s:I}",
						"layer", "net", "what",
						doc_string(r->what), "reason",
						r->reason, "message",
						doc_string(r->text), "count",
						(json_int_t)r->count));
	}
	return list;
}

/* Of its last run, as in the result of a run; nothing before its end. */
static void put_used(json_t *used, const struct box_view *v,
		     const struct wire_outcome *o)
{
	bool has_ended = v->state == BOX_EXITED || v->state == BOX_GONE;

	if (v->cause)
		json_object_set_new(used, "cause", json_string(v->cause));
	if (!o || !has_ended)
		return;
	json_object_set_new(used, "execution_time_ms",
			    json_integer((json_int_t)o->wall_us / 1000));
	json_object_set_new(used, "cpu_time_ms",
			    json_integer((json_int_t)o->cpu_us / 1000));
	json_object_set_new(used, "memory_used_mb",
			    json_real((double)o->memory_peak / (1 << 20)));
	json_object_set_new(used, "peak_pids",
			    json_integer((json_int_t)o->pids_peak));
	json_object_set_new(used, "oom_kills",
			    json_integer((json_int_t)o->oom_kills));
}

/* The daemon's, or the one of that name under it. */
static json_t *policy_of(const json_t *settings, const char *note)
{
	json_t *name = json_object_get(settings, "policy");

	return name ? json_pack("{s:O,s:o}", "name", name, "under",
				member_doc(note))
		    : member_doc(note);
}

static json_t *ours(struct docker *d, const struct box *b,
		    const struct box_view *v, json_t *extra, json_t *spec)
{
	const struct wire_outcome *o = box_outcome(b);
	static const struct peer root = { .fd = NO_FD };
	struct manager_view m = { 0 };
	json_t *clamped = v->clamped ? json_loads(v->clamped, 0, NULL) : NULL;
	json_t *used = json_object();
	json_t *told = json_object_get(extra, "Warnings");
	json_t *settings = member_doc(v->settings);

	if (json_is_array(told))
		warnings_of(v, told);
	manager_look(d->m, &root, &m);
	put_used(used, v, o);
	return json_pack("{s:o,s:O,s:o,s:o,s:o,s:o,s:O}", "policy",
			 policy_of(settings, m.policy_note), "requested", extra,
			 "settings", settings, "clamped",
			 clamped ? clamped : json_array(), "denials",
			 denials_of(v->net), "resources_used", used,
			 "effective", spec);
}

static json_t *execs_of(struct box *b)
{
	const char *const *ids = NULL;
	size_t n = box_execs(b, &ids);
	json_t *list = n > 0 ? json_array() : json_pack("n");

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(ids[i]));
	return list;
}

json_t *inspect_box(struct docker *d, struct box *b)
{
	struct box_view v;
	json_t *extra;
	json_t *spec;
	json_t *args;
	json_t *out;
	json_t *path;
	char name[300];

	box_look(b, &v);
	extra = member_doc(v.extra);
	spec = member_doc(v.spec);
	path_and_args(extra, spec, &path, &args);
	(void)snprintf(name, sizeof(name), "/%s", v.name);
	out = json_pack("{s:s,s:o,s:o,s:o,s:o,s:s,s:s,s:i,s:s,s:s,s:s,s:o,s:o,"
			"s:o,s:o,s:{s:o,s:{},s:s,s:s,s:s},s:s,s:s,s:s,s:s}",
			"Id", v.id, "Created", time_of(v.created_ns), "Path",
			path, "Args", args, "State", state_of(&v), "Image",
			image_id_of(spec), "Name", name, "RestartCount",
			(int)v.restarts, "Driver", "overlay2", "Platform",
			"linux", "LogPath", "", "HostConfig",
			host_of(extra, spec, &v), "Mounts", mounts_of(spec),
			"Config", config_of(extra, spec, &v), "ExecIDs",
			execs_of(b), "NetworkSettings", "Networks",
			networks_of(extra), "Ports", "IPAddress", "", "Gateway",
			"", "MacAddress", "", "AppArmorProfile", "",
			"ProcessLabel", "", "MountLabel", "", "ResolvConfPath",
			"");
	if (out)
		json_object_set_new(out, "Cordon", ours(d, b, &v, extra, spec));
	json_decref(extra);
	json_decref(spec);
	return out;
}

HANDLER(get_container)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	json_t *doc = b ? inspect_box(d, b) : NULL;

	if (!b)
		return;
	if (doc && query_bool(r, "size", false)) {
		json_object_set_new(doc, "SizeRootFs", json_integer(0));
		answer_sized(r, d, doc);
		return;
	}
	answer_json(r, 200, doc);
}
