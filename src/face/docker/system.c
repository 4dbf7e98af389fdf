/* SPDX-License-Identifier: Apache-2.0 */

/* ping, version, info, df; networks, volumes and plugins that there are not */

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <cordon/cordon.h>

#include "face/docker/internal.h"
#include "face/docker/routes.h"

HANDLER(get_ping)
{
	(void)ctx;
	http_add_header(r, "Cache-Control",
			"no-cache, no-store, must-revalidate");
	http_add_header(r, "Pragma", "no-cache");
	http_add_header(r, "Swarm", "inactive");
	http_answer(r, 200, TEXT_TYPE, "OK", 2);
}

static const char *go_machine(const struct utsname *u)
{
	if (strcmp(u->machine, "x86_64") == 0)
		return "amd64";
	if (strcmp(u->machine, "aarch64") == 0)
		return "arm64";
	return u->machine;
}

HANDLER(get_version)
{
	struct utsname u;
	json_t *details;
	json_t *doc;

	(void)ctx;
	(void)uname(&u);
	details = json_pack("{s:s,s:s,s:s,s:s,s:s}", "ApiVersion", DOCKER_API,
			    "MinAPIVersion", DOCKER_API_MIN, "Os", "linux",
			    "Arch", go_machine(&u), "KernelVersion", u.release);
	doc = json_pack("{s:{s:s},s:[{s:s,s:s,s:o}],s:s,s:s,s:s,s:s,s:s,s:s,"
			"s:s,s:s,s:s}",
			"Platform", "Name", "Cordon", "Components", "Name",
			"Cordon", "Version", cordon_version(), "Details",
			details, "Version", DOCKER_COMPAT, "ApiVersion",
			DOCKER_API, "MinAPIVersion", DOCKER_API_MIN, "Os",
			"linux", "Arch", go_machine(&u), "KernelVersion",
			u.release, "GitCommit", "", "GoVersion", "",
			"BuildTime", "");
	answer_json(r, 200, doc);
}

/* ---- what needs the list of images ---- */

struct listing {
	struct ask ask;
	struct image_query *query;
};

static void listing_gone(struct ask *a)
{
	struct listing *l = (struct listing *)a;

	if (l->query)
		image_query_drop(l->query);
}

static void with_images(struct http_request *r, struct docker *d,
			images_fn *done)
{
	struct listing *l = ask_new(r, d, sizeof(*l), listing_gone);
	struct err err = { 0 };

	l->query = images_list(d, http_peer(r), done, l, &err);
	if (!l->query)
		done(l, NULL, &err);
}

static void info_have(void *arg, json_t *images, const struct err *err)
{
	struct listing *l = arg;
	struct http_request *r = l->ask.r;
	struct manager_view v = { 0 };
	struct utsname u;
	json_t *doc;
	unsigned int all;

	/* The image of this machine is always there. */
	(void)err;
	l->query = NULL;
	(void)uname(&u);
	manager_look(l->ask.d->m, http_peer(r), &v);
	all = v.created + v.running + v.paused + v.exited;
	doc = json_pack(
		"{s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:s,s:s,s:s,s:I,s:I,s:s,s:s,"
		"s:s,s:s,s:s,s:s,s:{s:{}},s:[s,s],s:{s:s},s:{},s:{},s:[]}",
		"ID", host_id() + 7, "Name", u.nodename, "ServerVersion",
		DOCKER_COMPAT, "Containers", (json_int_t)all,
		"ContainersRunning", (json_int_t)v.running, "ContainersPaused",
		(json_int_t)v.paused, "ContainersStopped",
		(json_int_t)v.created + v.exited, "Images",
		(json_int_t)MAX(json_array_size(images), 1), "Driver",
		"overlay2", "OSType", "linux", "Architecture", u.machine,
		"NCPU", (json_int_t)v.cpus, "MemTotal",
		(json_int_t)v.memory_total, "KernelVersion", u.release,
		"OperatingSystem", "Cordon", "CgroupVersion", "2",
		"CgroupDriver", "cgroupfs", "LoggingDriver", "json-file",
		"DefaultRuntime", "cordon", "Runtimes", "cordon",
		"SecurityOptions", "name=seccomp,profile=cordon",
		"name=no-new-privileges", "Swarm", "LocalNodeState", "inactive",
		"Plugins", "RegistryConfig", "Warnings");
	if (doc) {
		json_object_set_new(doc, "MemoryLimit", json_true());
		json_object_set_new(doc, "SwapLimit", json_true());
		json_object_set_new(doc, "PidsLimit", json_true());
		json_object_set_new(doc, "CpuCfsQuota", json_true());
		json_object_set_new(doc, "CpuCfsPeriod", json_true());
		json_object_set_new(doc, "CPUShares", json_true());
		json_object_set_new(doc, "CPUSet", json_true());
		json_object_set_new(doc, "OomKillDisable", json_false());
		json_object_set_new(doc, "IPv4Forwarding", json_true());
		json_object_set_new(doc, "DockerRootDir", json_string(""));
		json_object_set_new(doc, "ExperimentalBuild", json_false());
		json_object_set_new(doc, "DriverStatus", json_array());
		json_object_set_new(doc, "Labels", json_array());
	}
	answer_json(r, 200, doc);
}

HANDLER(get_info)
{
	with_images(r, docker_of(ctx), info_have);
}

static void df_have(void *arg, json_t *images, const struct err *err)
{
	struct listing *l = arg;
	struct http_request *r = l->ask.r;
	struct box **boxes = NULL;
	json_t *rows;
	json_t *v;
	json_int_t layers = 0;
	size_t i;
	size_t n;

	l->query = NULL;
	if (err) {
		answer_err(r, err, "");
		return;
	}
	json_array_foreach(images, i, v)
		layers += json_integer_value(json_object_get(v, "Size"));
	rows = json_array();
	n = box_list(l->ask.d->m, http_peer(r), &boxes);
	for (i = 0; i < n; i++)
		json_array_append_new(rows, list_row(boxes[i], true));
	free(boxes);
	answer_json(r, 200,
		    json_pack("{s:I,s:O,s:o,s:[],s:[]}", "LayersSize", layers,
			      "Images", images, "Containers", rows, "Volumes",
			      "BuildCache"));
}

HANDLER(get_df)
{
	with_images(r, docker_of(ctx), df_have);
}

/* ---- networks, volumes, plugins ---- */

static json_t *network(const char *name)
{
	bool is_none = strcmp(name, "none") == 0;
	char id[65];
	json_t *config = is_none ? json_array()
				 : json_pack("[{s:s,s:s}]", "Subnet",
					     "172.17.0.0/16", "Gateway",
					     "172.17.0.1");

	/* Two networks that are only names have ids that are only numbers. */
	(void)snprintf(id, sizeof(id), "%064d", is_none ? 1 : 2);
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:b,s:{s:s,s:{},s:o},s:b,s:b,"
			 "s:b,s:{},s:{},s:{}}",
			 "Name", name, "Id", id, "Created",
			 "0001-01-01T00:00:00Z", "Scope", "local", "Driver",
			 is_none ? "null" : "bridge", "EnableIPv6", 0, "IPAM",
			 "Driver", "default", "Options", "Config", config,
			 "Internal", 0, "Attachable", 0, "Ingress", 0,
			 "Containers", "Options", "Labels");
}

static bool fits_network(const char *value, void *arg)
{
	return strstr(arg, value) != NULL;
}

HANDLER(get_networks)
{
	static const char known[] = "name id driver type scope label dangling";
	static char names[2][8] = { "bridge", "none" };
	json_t *f = need_filters(r, known);
	json_t *list;

	(void)ctx;
	if (!f)
		return;
	list = json_array();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (filters_any(f, "name", fits_network, names[i]))
			json_array_append_new(list, network(names[i]));
	json_decref(f);
	answer_json(r, 200, list);
}

HANDLER(get_network)
{
	const char *name = http_param(r, 0);

	(void)ctx;
	if (strcmp(name, "none") == 0 || strcmp(name, "bridge") == 0)
		answer_json(r, 200, network(name));
	else
		answer_fail(r, 404, "network %.200s not found", name);
}

HANDLER(get_volumes)
{
	(void)ctx;
	answer_json(r, 200, json_pack("{s:[],s:n}", "Volumes", "Warnings"));
}

HANDLER(get_volume)
{
	(void)ctx;
	answer_fail(r, 404, "get %.200s: no such volume", http_param(r, 0));
}

HANDLER(get_plugins)
{
	(void)ctx;
	answer_json(r, 200, json_array());
}

HANDLER(get_plugin)
{
	(void)ctx;
	answer_fail(r, 404, "plugin \"%.200s\" not found", http_param(r, 0));
}
