/* SPDX-License-Identifier: Apache-2.0 */

/* ping, version, info, df; networks, volumes and plugins that there are not */

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <cordon/cordon.h>

#include "base/visible.h"
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

HANDLER(get_version)
{
	struct utsname u;
	const char *built = docker_commit + strcspn(docker_commit, " ");
	char commit[64];
	json_t *details;
	json_t *doc;

	(void)ctx;
	(void)uname(&u);
	(void)snprintf(commit, sizeof(commit), "%.*s",
		       (int)strcspn(docker_commit, " "), docker_commit);
	built += *built == ' ';
	details = json_pack("{s:s,s:s,s:s,s:s,s:s}", "ApiVersion", DOCKER_API,
			    "MinAPIVersion", DOCKER_API_MIN, "Os", "linux",
			    "Arch", platform_here(), "KernelVersion",
			    u.release);
	doc = json_pack("{s:{s:s},s:[{s:s,s:s,s:o}],s:s,s:s,s:s,s:s,s:s,s:s,"
			"s:s,s:s,s:s}",
			"Platform", "Name", "Cordon", "Components", "Name",
			"Cordon", "Version", cordon_version(), "Details",
			details, "Version", DOCKER_COMPAT, "ApiVersion",
			DOCKER_API, "MinAPIVersion", DOCKER_API_MIN, "Os",
			"linux", "Arch", platform_here(), "KernelVersion",
			u.release, "GitCommit", commit, "GoVersion", "",
			"BuildTime", built);
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
		"ID", v.machine_id ? v.machine_id : "", "Name", u.nodename,
		"ServerVersion", DOCKER_COMPAT, "Containers", (json_int_t)all,
		"ContainersRunning", (json_int_t)v.running, "ContainersPaused",
		(json_int_t)v.paused, "ContainersStopped",
		(json_int_t)v.created + v.exited, "Images",
		(json_int_t)MAX(json_array_size(images), 1), "Driver",
		"overlay2", "OSType", "linux", "Architecture", u.machine,
		"NCPU", (json_int_t)v.cpus, "MemTotal",
		(json_int_t)v.memory_total, "KernelVersion", u.release,
		"OperatingSystem", "Cordon", "CgroupVersion",
		v.cgroup_version == 1 ? "1" : "2", "CgroupDriver", "cgroupfs",
		"LoggingDriver", "json-file", "DefaultRuntime", "cordon",
		"Runtimes", "cordon", "SecurityOptions",
		"name=seccomp,profile=cordon", "name=no-new-privileges",
		"Swarm", "LocalNodeState", "inactive", "Plugins",
		"RegistryConfig", "Warnings");
	if (doc) {
		json_object_set_new(doc, "MemoryLimit", json_true());
		json_object_set_new(doc, "SwapLimit", json_true());
		json_object_set_new(doc, "PidsLimit", json_true());
		json_object_set_new(doc, "CpuCfsQuota", json_true());
		json_object_set_new(doc, "CpuCfsPeriod", json_true());
		json_object_set_new(doc, "CPUShares", json_true());
		json_object_set_new(doc, "CPUSet", json_true());
		json_object_set_new(doc, "OomKillDisable", json_false());
		json_object_set_new(doc, "IPv4Forwarding",
				    json_boolean(v.forwards_ipv4));
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

/* How many images have each layer. */
static json_t *layers_count(json_t *images)
{
	json_t *all = json_object();
	json_t *image;
	json_t *size;
	const char *id;
	size_t i;

	json_array_foreach(images, i, image)
	{
		json_object_foreach(json_object_get(image, LAYER_SIZES), id,
				    size)
		{
			json_int_t n = json_integer_value(
				json_object_get(all, id));

			json_object_set_new(all, id, json_integer(n + 1));
		}
	}
	return all;
}

/*
 * Of all layers, each once, whatever image it is in; and for each image what
 * it shares with others.
 */
static json_int_t layers_size(json_t *images)
{
	json_t *count = layers_count(images);
	json_int_t sum = 0;
	json_t *image;
	json_t *size;
	const char *id;
	size_t i;

	json_array_foreach(images, i, image)
	{
		json_int_t shared = 0;

		json_object_foreach(json_object_get(image, LAYER_SIZES), id,
				    size)
		{
			json_t *n = json_object_get(count, id);

			if (json_integer_value(n) != 1)
				shared += json_integer_value(size);
			/* Counted: for the next one it is 0. */
			if (json_integer_value(n) > 0)
				sum += json_integer_value(size);
			if (json_integer_value(n) > 1)
				json_integer_set(n, 0);
		}
		json_object_set_new(image, "SharedSize", json_integer(shared));
		json_object_del(image, LAYER_SIZES);
	}
	json_decref(count);
	return sum;
}

/* How many of the containers were made of it. */
static void put_users(json_t *image, json_t *rows)
{
	const char *id = member_str(image, "Id");
	json_int_t n = 0;
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
		n += strcmp(member_str(row, "ImageID"), id) == 0;
	json_object_set_new(image, "Containers", json_integer(n));
}

static void df_have(void *arg, json_t *images, const struct err *err)
{
	struct listing *l = arg;
	struct http_request *r = l->ask.r;
	struct box **boxes = NULL;
	json_t *rows;
	json_t *v;
	size_t i;
	size_t n;

	l->query = NULL;
	if (err) {
		answer_err(r, err, "");
		return;
	}
	rows = json_array();
	n = box_list(l->ask.d->m, http_peer(r), &boxes);
	for (i = 0; i < n; i++)
		json_array_append_new(rows, list_row(boxes[i], true));
	free(boxes);
	json_array_foreach(images, i, v)
	{
		put_users(v, rows);
		/* Older commands reckon with this one. */
		json_object_set(v, "VirtualSize", json_object_get(v, "Size"));
	}
	answer_json(r, 200,
		    json_pack("{s:I,s:O,s:o,s:[],s:[]}", "LayersSize",
			      layers_size(images), "Images", images,
			      "Containers", put_sizes(rows, images), "Volumes",
			      "BuildCache"));
}

HANDLER(get_df)
{
	with_images(r, docker_of(ctx), df_have);
}

/* ---- networks, volumes, plugins ---- */

static const char *const network_names[] = { "bridge", "none" };

/* Two networks that are only names have ids that are made of these. */
void network_id(const char *name, char ret[65])
{
	char text[64];

	(void)snprintf(text, sizeof(text), "cordon: network %.40s", name);
	visible_sha256(text, strlen(text), ret);
}

static json_t *network(const char *name)
{
	bool is_none = strcmp(name, "none") == 0;
	char id[65];
	json_t *config = is_none ? json_array()
				 : json_pack("[{s:s,s:s}]", "Subnet",
					     "172.17.0.0/16", "Gateway",
					     "172.17.0.1");

	network_id(name, id);
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:b,s:{s:s,s:{},s:o},s:b,s:b,"
			 "s:b,s:{},s:{},s:{}}",
			 "Name", name, "Id", id, "Created",
			 "0001-01-01T00:00:00Z", "Scope", "local", "Driver",
			 is_none ? "null" : "bridge", "EnableIPv6", 0, "IPAM",
			 "Driver", "default", "Options", "Config", config,
			 "Internal", 0, "Attachable", 0, "Ingress", 0,
			 "Containers", "Options", "Labels");
}

static bool fits_name(const char *value, void *arg)
{
	return strstr(member_str(arg, "Name"), value) != NULL;
}

static bool fits_id(const char *value, void *arg)
{
	return strncmp(member_str(arg, "Id"), value, strlen(value)) == 0;
}

static bool fits_driver(const char *value, void *arg)
{
	return strcmp(member_str(arg, "Driver"), value) == 0;
}

static bool fits_scope(const char *value, void *arg)
{
	return strcmp(member_str(arg, "Scope"), value) == 0;
}

/* Both are always there: neither was made by anybody, nor can be removed. */
static bool is_builtin(const char *value, void *arg)
{
	(void)arg;
	return strcmp(value, "builtin") == 0;
}

static bool is_not(const char *value, void *arg)
{
	(void)arg;
	return !filter_is_true(value);
}

static bool network_fits(const json_t *f, json_t *n)
{
	return filters_any(f, "name", fits_name, n) &&
	       filters_any(f, "id", fits_id, n) &&
	       filters_any(f, "driver", fits_driver, n) &&
	       filters_any(f, "scope", fits_scope, n) &&
	       filters_any(f, "type", is_builtin, NULL) &&
	       filters_any(f, "dangling", is_not, NULL) &&
	       filters_labels(f, json_object_get(n, "Labels"));
}

HANDLER(get_networks)
{
	static const char known[] = "name id driver type scope label dangling";
	json_t *f = need_filters(r, known);
	json_t *list;

	(void)ctx;
	if (!f || !need_bools(r, f, "dangling"))
		return;
	list = json_array();
	for (size_t i = 0; i < ARRAY_SIZE(network_names); i++) {
		json_t *n = network(network_names[i]);

		if (network_fits(f, n))
			json_array_append(list, n);
		json_decref(n);
	}
	json_decref(f);
	answer_json(r, 200, list);
}

/* By its name, its id, or the beginning of that. */
static const char *network_find(const char *text)
{
	const char *found = NULL;
	char id[65];

	for (size_t i = 0; i < ARRAY_SIZE(network_names); i++)
		if (strcmp(text, network_names[i]) == 0)
			return network_names[i];
	for (size_t i = 0; i < ARRAY_SIZE(network_names) && *text; i++) {
		network_id(network_names[i], id);
		if (strncmp(id, text, strlen(text)) != 0)
			continue;
		if (found)
			return NULL;
		found = network_names[i];
	}
	return found;
}

HANDLER(get_network)
{
	const char *text = http_param(r, 0);
	const char *name = network_find(text);

	(void)ctx;
	if (name)
		answer_json(r, 200, network(name));
	else
		answer_fail(r, 404, "network %.200s not found", text);
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

HANDLER(get_plugin)
{
	(void)ctx;
	answer_fail(r, 404, "plugin \"%.200s\" not found", http_param(r, 0));
}
