/* SPDX-License-Identifier: Apache-2.0 */

/* HostConfig, NetworkingConfig, and labels that are settings. */

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "face/docker/fields.h"

#define LEAST_MEMORY (6 << 20)
#define MOST_PIDS    4194304

/* ---- numbers ---- */

TAKE(take_memory)
{
	int64_t n;

	if (need_int(k, v, w, 0, INT64_MAX, &n) < 0)
		return -1;
	if (n < LEAST_MEMORY)
		return say_no(&k->said, 400,
			      "%s: Minimum memory limit allowed is 6MB", w);
	set_int(k, "memory", n);
	return 0;
}

/* Judged in the end, when the memory is known. */
TAKE(take_memory_swap)
{
	int64_t n;

	return need_int(k, v, w, -1, INT64_MAX, &n);
}

static int check_memory(struct making *k)
{
	int64_t memory = json_integer_value(json_object_get(k->host, "Memory"));
	int64_t swap = json_integer_value(
		json_object_get(k->host, "MemorySwap"));
	int64_t low = json_integer_value(
		json_object_get(k->host, "MemoryReservation"));

	if (memory > 0 && low > memory)
		return say_no(&k->said, 400,
			      "HostConfig.MemoryReservation: Minimum memory "
			      "limit can not be less than memory reservation "
			      "limit");
	if (swap == 0)
		return 0;
	if (swap > 0 && memory == 0)
		return say_no(
			&k->said, 400,
			"HostConfig.MemorySwap: You should always set the "
			"Memory limit when using Memoryswap limit");
	if (swap > 0 && swap < memory)
		return say_no(&k->said, 400,
			      "HostConfig.MemorySwap: Minimum memoryswap limit "
			      "should be larger than memory limit");
	if (swap != memory)
		warn(k,
		     "cordon: MemorySwap %lld lowered: no box has swap "
		     "beside its memory",
		     (long long)swap);
	return 0;
}

TAKE(take_reservation)
{
	int64_t n;

	if (need_int(k, v, w, 0, INT64_MAX, &n) < 0)
		return -1;
	set_int(k, "memory_reservation", n);
	return 0;
}

/* 0 asks for no swapping, -1 for nothing; there is no swap in any case. */
TAKE(take_swappiness)
{
	int64_t n;

	if (need_int(k, v, w, -1, 100, &n) < 0)
		return -1;
	if (n > 0)
		warn(k, "cordon: %s is not acted on: no box has swap", w);
	return 0;
}

TAKE(take_nano_cpus)
{
	char text[32];
	int64_t n;

	if (need_int(k, v, w, 1, 4096000000000LL, &n) < 0)
		return -1;
	if (n < 10000000)
		return say_no(&k->said, 400, "%s: at least 0.01 CPUs", w);
	(void)snprintf(text, sizeof(text), "%lld.%03lld",
		       (long long)(n / 1000000000),
		       (long long)(n % 1000000000 / 1000000));
	set_str(k, "cpus", text);
	return 0;
}

TAKE(take_cpu_quota)
{
	int64_t n;

	if (need_int(k, v, w, -1, 4096000000LL, &n) < 0)
		return -1;
	if (n > 0 && n < 1000)
		return say_no(&k->said, 400,
			      "%s: CPU cfs quota can not be less than 1ms", w);
	return 0;
}

TAKE(take_cpu_period)
{
	int64_t n;

	return need_int(k, v, w, 1000, 1000000, &n);
}

/* The period first: what a quota means depends on it. */
static int put_quota(struct making *k)
{
	int64_t quota = json_integer_value(
		json_object_get(k->host, "CpuQuota"));
	int64_t period = json_integer_value(
		json_object_get(k->host, "CpuPeriod"));

	if (json_object_get(k->settings, "cpus") && (quota > 0 || period > 0))
		return say_no(&k->said, 400,
			      "Conflicting options: Nano CPUs and CPU "
			      "Period/Quota cannot both be set");
	if (quota > 0) {
		set_int(k, "cpu_period", period > 0 ? period : 100000);
		set_int(k, "cpu_quota", quota);
	} else if (period > 0) {
		set_int(k, "cpu_period", period);
	}
	return 0;
}

TAKE(take_shares)
{
	int64_t n;

	if (need_int(k, v, w, 2, 262144, &n) < 0)
		return -1;
	set_int(k, "cpu_shares", n);
	return 0;
}

TAKE(take_cpuset)
{
	const char *text;

	if (need_str(k, v, w, &text) < 0)
		return -1;
	if (text[strspn(text, "0123456789,-")])
		return say_no(&k->said, 400, "%s: invalid value %.60s", w,
			      text);
	set_str(k, "cpuset_cpus", text);
	return 0;
}

TAKE(take_pids)
{
	int64_t n;

	if (need_int(k, v, w, -1, INT64_MAX, &n) < 0)
		return -1;
	if (n == 1)
		warn(k, "cordon: PidsLimit 1 raised to 2: the box's own init "
			"is one");
	if (n > MOST_PIDS)
		warn(k,
		     "cordon: PidsLimit %lld lowered to %d: the kernel has no "
		     "more",
		     (long long)n, MOST_PIDS);
	if (n > 0)
		set_int(k, "pids_limit", MIN(MAX(n, 2), MOST_PIDS));
	return 0;
}

TAKE(take_oom_score)
{
	int64_t n;

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return say_no(&k->said, 403,
			      "cordon: %s is refused: it cannot be below 0", w);
	if (need_int(k, v, w, 0, 1000, &n) < 0)
		return -1;
	set_int(k, "oom_score_adj", n);
	return 0;
}

TAKE(take_shm)
{
	int64_t n;

	if (need_int(k, v, w, 4096, INT64_MAX, &n) < 0)
		return -1;
	set_int(k, "shm_size", n);
	return 0;
}

/* [{"Name":"nofile","Soft":1024,"Hard":2048}] */
struct ulimit_want {
	const char *name;
	int64_t soft, hard;
};

TAKE(take_ulimit_name)
{
	return need_str(k, v, w, &((struct ulimit_want *)k->part)->name);
}

TAKE(take_soft)
{
	return need_int(k, v, w, -1, INT64_MAX,
			&((struct ulimit_want *)k->part)->soft);
}

TAKE(take_hard)
{
	return need_int(k, v, w, -1, INT64_MAX,
			&((struct ulimit_want *)k->part)->hard);
}

static const struct field ulimit_fields[] = {
	{ "Name", FIELD_TAKEN, take_ulimit_name, NULL },
	{ "Soft", FIELD_TAKEN, take_soft, NULL },
	{ "Hard", FIELD_TAKEN, take_hard, NULL },
	{ NULL, 0, NULL, NULL },
};

TAKE(take_ulimit)
{
	static const char known[] = " as core cpu data fsize locks memlock "
				    "msgqueue nice nofile nproc rss rtprio "
				    "rttime sigpending stack ";
	struct ulimit_want u = { .name = "" };
	char text[96];

	if (fields_part(ulimit_fields, w, v, k, &u) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), " %.32s ", u.name);
	if (!*u.name || !strstr(known, text))
		return say_no(&k->said, 400, "%s: invalid ulimit type: %.32s",
			      w, u.name);
	if (u.hard >= 0 && (u.soft > u.hard || u.soft < 0))
		return say_no(&k->said, 400,
			      "%s: ulimit %.32s: soft limit must be less than "
			      "or equal to hard limit",
			      w, u.name);
	(void)snprintf(text, sizeof(text), "%s=%lld:%lld", u.name,
		       (long long)u.soft, (long long)u.hard);
	set_add(k, "ulimit", text);
	return 0;
}

TAKE(take_ulimits)
{
	json_t *row;
	size_t i;

	if (!json_is_array(v))
		return say_no(&k->said, 400, "%s: a list is expected", w);
	json_array_foreach(v, i, row) if (take_ulimit(k, row, w) < 0) return -1;
	return 0;
}

/* ---- the rest ---- */

TAKE(take_read_only)
{
	bool is_ro = false;

	if (need_bool(k, v, w, &is_ro) < 0)
		return -1;
	json_object_set_new(k->settings, "read_only", json_boolean(is_ro));
	return 0;
}

/* {"size":"1G"} */
TAKE(take_storage)
{
	const char *name;
	json_t *value;

	json_object_foreach(v, name, value)
	{
		uint64_t bytes;

		if (strcmp(name, "size") != 0)
			return say_no(&k->said, 501,
				      "cordon: %s.%.40s is not supported", w,
				      name);
		if (!json_is_string(value) ||
		    num_parse_size(json_string_value(value), &bytes) < 0)
			return say_no(&k->said, 400, "%s.size: invalid size",
				      w);
		set_int(k, "disk", (int64_t)MIN(bytes, INT64_MAX));
	}
	return json_is_object(v)
		       ? 0
		       : say_no(&k->said, 400, "%s: a map is expected", w);
}

TAKE(take_auto_remove)
{
	return need_bool(k, v, w, &k->want.auto_remove);
}

TAKE(take_init)
{
	bool unused;

	/* There always is one. */
	return need_bool(k, v, w, &unused);
}

TAKE(take_restart_name)
{
	const char *name;

	if (need_str(k, v, w, &name) < 0)
		return -1;
	if (strcmp(name, "no") == 0)
		return 0;
	if (strcmp(name, "always") != 0 &&
	    strcmp(name, "unless-stopped") != 0 &&
	    strcmp(name, "on-failure") != 0)
		return say_no(&k->said, 400, "%s: invalid restart policy %.40s",
			      w, name);
	warn(k,
	     "cordon: RestartPolicy %s is not acted on: a box that ended stays "
	     "so",
	     name);
	return 0;
}

TAKE(take_retries)
{
	int64_t n;

	return need_int(k, v, w, 0, INT32_MAX, &n);
}

TAKE(take_restart)
{
	static const struct field fields[] = {
		{ "Name", FIELD_TAKEN, take_restart_name, NULL },
		{ "MaximumRetryCount", FIELD_TAKEN, take_retries, NULL },
		{ NULL, 0, NULL, NULL },
	};

	return fields_part(fields, w, v, k, NULL);
}

TAKE(take_log_type)
{
	const char *type;

	if (need_str(k, v, w, &type) < 0)
		return -1;
	if (strcmp(type, "json-file") != 0)
		return say_no(&k->said, 501,
			      "cordon: %s %.40s is not supported: json-file is",
			      w, type);
	return 0;
}

TAKE(take_log)
{
	static const struct field fields[] = {
		{ "Type", FIELD_TAKEN, take_log_type, NULL },
		{ "Config", FIELD_NOTED, NULL,
		  "the policy's docker.log_max bounds the log" },
		{ NULL, 0, NULL, NULL },
	};

	return fields_part(fields, w, v, k, NULL);
}

/* "name:address" or "name=address" */
static int take_host(struct making *k, const char *text, const char *w)
{
	size_t len = strcspn(text, ":=");
	char line[512];

	if (len == 0 || !text[len] || !text[len + 1])
		return say_no(&k->said, 400,
			      "%s: invalid IP address in add-host: \"%.100s\"",
			      w, text);
	if (strcmp(text + len + 1, "host-gateway") == 0)
		return say_no(&k->said, 403,
			      "cordon: %s %.100s is refused: the host is not "
			      "reachable",
			      w, text);
	(void)snprintf(line, sizeof(line), "%.*s:%s", (int)len, text,
		       text + len + 1);
	set_add(k, "add_host", line);
	return 0;
}

TAKE(take_extra_hosts)
{
	return need_each(k, v, w, take_host);
}

/* Always satisfied: no box has any capability. */
TAKE(take_cap_drop)
{
	json_t *list = need_strs(k, v, w, false);

	json_decref(list);
	return list ? 0 : -1;
}

/* By number, or by a name that the image is asked for later. */
static int take_group(struct making *k, const char *text, const char *w)
{
	if (!k->policy.allow_root_inside && user_is_root(text))
		return say_no(&k->said, 403,
			      "cordon: %s %.40s is refused: "
			      "docker.allow_root_inside is false",
			      w, text);
	set_add(k, "group_add", text);
	return 0;
}

TAKE(take_group_add)
{
	return need_each(k, v, w, take_group);
}

/* [height, width] */
TAKE(take_console)
{
	if (!json_is_array(v) || json_array_size(v) != 2 ||
	    !json_is_integer(json_array_get(v, 0)) ||
	    !json_is_integer(json_array_get(v, 1)))
		return say_no(&k->said, 400, "%s: [height, width] is expected",
			      w);
	return 0;
}

TAKE(take_isolation)
{
	const char *text;

	if (need_str(k, v, w, &text) < 0)
		return -1;
	if (strcasecmp(text, "default") != 0)
		return say_no(&k->said, 400, "%s: invalid isolation: %.40s", w,
			      text);
	return 0;
}

#define NO_NAMESPACE "a box shares no namespace with anything"
#define NO_DEVICE    "a box has no devices of the host"
#define NO_PORTS     "no port is published"
#define OTHER_SYSTEM "that is for another system"
#define NO_BLOCK_IO  "block devices are not weighed or throttled"

const struct field host_fields[] = {
	{ "Memory", FIELD_TAKEN, take_memory, NULL },
	{ "MemorySwap", FIELD_TAKEN, take_memory_swap, NULL },
	{ "MemoryReservation", FIELD_TAKEN, take_reservation, NULL },
	{ "MemorySwappiness", FIELD_TAKEN, take_swappiness, NULL },
	{ "NanoCpus", FIELD_TAKEN, take_nano_cpus, NULL },
	{ "CpuQuota", FIELD_TAKEN, take_cpu_quota, NULL },
	{ "CpuPeriod", FIELD_TAKEN, take_cpu_period, NULL },
	{ "CpuShares", FIELD_TAKEN, take_shares, NULL },
	{ "CpusetCpus", FIELD_TAKEN, take_cpuset, NULL },
	{ "PidsLimit", FIELD_TAKEN, take_pids, NULL },
	{ "OomScoreAdj", FIELD_TAKEN, take_oom_score, NULL },
	{ "ShmSize", FIELD_TAKEN, take_shm, NULL },
	{ "Ulimits", FIELD_TAKEN, take_ulimits, NULL },
	{ "ReadonlyRootfs", FIELD_TAKEN, take_read_only, NULL },
	{ "StorageOpt", FIELD_TAKEN, take_storage, NULL },
	{ "Binds", FIELD_TAKEN, take_binds, NULL },
	{ "Mounts", FIELD_TAKEN, take_mounts, NULL },
	{ "Tmpfs", FIELD_TAKEN, take_tmpfs, NULL },
	{ "AutoRemove", FIELD_TAKEN, take_auto_remove, NULL },
	{ "Init", FIELD_TAKEN, take_init, NULL },
	{ "RestartPolicy", FIELD_TAKEN, take_restart, NULL },
	{ "LogConfig", FIELD_TAKEN, take_log, NULL },
	{ "ExtraHosts", FIELD_TAKEN, take_extra_hosts, NULL },
	{ "CapDrop", FIELD_TAKEN, take_cap_drop, NULL },
	{ "ConsoleSize", FIELD_TAKEN, take_console, NULL },
	{ "Isolation", FIELD_TAKEN, take_isolation, NULL },
	{ "NetworkMode", FIELD_TAKEN, take_network_mode, NULL },
	{ "PidMode", FIELD_TAKEN, take_namespace, NULL },
	{ "IpcMode", FIELD_TAKEN, take_namespace, NULL },
	{ "UTSMode", FIELD_TAKEN, take_namespace, NULL },
	{ "UsernsMode", FIELD_TAKEN, take_namespace, NULL },
	{ "CgroupnsMode", FIELD_TAKEN, take_namespace, NULL },
	{ "SecurityOpt", FIELD_TAKEN, take_security, NULL },
	{ "Runtime", FIELD_TAKEN, take_runtime, NULL },
	{ "Privileged", FIELD_REFUSED, NULL, "sandboxes are never privileged" },
	{ "CapAdd", FIELD_REFUSED, NULL, "no box has capabilities" },
	{ "GroupAdd", FIELD_TAKEN, take_group_add, NULL },
	{ "Devices", FIELD_REFUSED, NULL, NO_DEVICE },
	{ "DeviceRequests", FIELD_REFUSED, NULL, NO_DEVICE },
	{ "DeviceCgroupRules", FIELD_REFUSED, NULL, NO_DEVICE },
	{ "MaskedPaths", FIELD_NULL, NULL, "what is hidden stays hidden" },
	{ "ReadonlyPaths", FIELD_NULL, NULL, "what is read-only stays so" },
	{ "Sysctls", FIELD_REFUSED, NULL, "kernel settings are not changed" },
	{ "CgroupParent", FIELD_REFUSED, NULL, "groups are Cordon's own" },
	{ "Cgroup", FIELD_REFUSED, NULL, NO_NAMESPACE },
	{ "OomKillDisable", FIELD_REFUSED, NULL,
	  "a box that is out of memory ends" },
	{ "VolumesFrom", FIELD_REFUSED, NULL, "boxes share no files" },
	{ "VolumeDriver", FIELD_REFUSED, NULL, "there are no volume drivers" },
	{ "Links", FIELD_REFUSED, NULL, "boxes do not reach each other" },
	{ "PortBindings", FIELD_REFUSED, NULL, NO_PORTS },
	{ "PublishAllPorts", FIELD_REFUSED, NULL, NO_PORTS },
	{ "CpuRealtimePeriod", FIELD_REFUSED, NULL,
	  "no box has real-time priority" },
	{ "CpuRealtimeRuntime", FIELD_REFUSED, NULL,
	  "no box has real-time priority" },
	{ "CpusetMems", FIELD_NOT_THERE, NULL, "memory nodes are not chosen" },
	{ "KernelMemory", FIELD_NOT_THERE, NULL, "Memory bounds all of it" },
	{ "KernelMemoryTCP", FIELD_NOT_THERE, NULL, "Memory bounds all of it" },
	{ "BlkioWeight", FIELD_NOT_THERE, NULL, NO_BLOCK_IO },
	{ "BlkioWeightDevice", FIELD_NOT_THERE, NULL, NO_BLOCK_IO },
	{ "BlkioDeviceReadBps", FIELD_NOT_THERE, NULL, NO_BLOCK_IO },
	{ "BlkioDeviceWriteBps", FIELD_NOT_THERE, NULL, NO_BLOCK_IO },
	{ "BlkioDeviceReadIOps", FIELD_NOT_THERE, NULL, NO_BLOCK_IO },
	{ "BlkioDeviceWriteIOps", FIELD_NOT_THERE, NULL, NO_BLOCK_IO },
	{ "CpuCount", FIELD_NOT_THERE, NULL, OTHER_SYSTEM },
	{ "CpuPercent", FIELD_NOT_THERE, NULL, OTHER_SYSTEM },
	{ "IOMaximumIOps", FIELD_NOT_THERE, NULL, OTHER_SYSTEM },
	{ "IOMaximumBandwidth", FIELD_NOT_THERE, NULL, OTHER_SYSTEM },
	{ "Dns", FIELD_NOTED, NULL, "names are not resolved by a box itself" },
	{ "DnsOptions", FIELD_NOTED, NULL,
	  "names are not resolved by a box itself" },
	{ "DnsSearch", FIELD_NOTED, NULL,
	  "names are not resolved by a box itself" },
	{ "Annotations", FIELD_NOTED, NULL, "use Labels" },
	{ "ContainerIDFile", FIELD_QUIET, NULL, NULL },
	{ NULL, 0, NULL, NULL },
};

int take_host_config(struct making *k, json_t *v, const char *where)
{
	(void)where;
	if (!json_is_object(v))
		return say_no(&k->said, 400, "HostConfig: a map is expected");
	k->keep = k->host;
	if (fields_take(host_fields, "HostConfig.", v, k) < 0)
		return -1;
	return check_memory(k) < 0 || put_quota(k) < 0 ? -1 : 0;
}

/* ---- NetworkingConfig ---- */

const struct field endpoint_fields[] = {
	{ "Links", FIELD_REFUSED, NULL, "boxes do not reach each other" },
	{ "IPAMConfig", FIELD_NOT_THERE, NULL, "addresses are not chosen" },
	{ "MacAddress", FIELD_NOT_THERE, NULL, "a box has no such interface" },
	{ "DriverOpts", FIELD_NOT_THERE, NULL, "there are no drivers" },
	{ "Aliases", FIELD_NOTED, NULL, "boxes do not reach each other" },
	{ "DNSNames", FIELD_NOTED, NULL, "boxes do not reach each other" },
	{ "GwPriority", FIELD_QUIET, NULL, NULL },
	{ NULL, 0, NULL, NULL },
};

TAKE(take_endpoints)
{
	const char *name;
	json_t *each;

	if (!json_is_object(v))
		return say_no(&k->said, 400, "%s: a map is expected", w);
	json_object_foreach(v, name, each)
	{
		if (strcmp(name, "default") != 0 && strcmp(name, "none") != 0 &&
		    strcmp(name, "bridge") != 0)
			return say_no(&k->said, 400, "network %.60s not found",
				      name);
		if (!json_is_null(each) &&
		    fields_part(endpoint_fields, w, each, k, NULL) < 0)
			return -1;
	}
	return 0;
}

int take_networking(struct making *k, json_t *v, const char *where)
{
	static const struct field fields[] = {
		{ "EndpointsConfig", FIELD_TAKEN, take_endpoints, NULL },
		{ NULL, 0, NULL, NULL },
	};

	return fields_part(fields, where, v, k, NULL);
}

/* ---- labels ---- */

static int label_time(struct making *k, const char *name, const char *text,
		      uint64_t *ret)
{
	if (num_parse_duration(text, ret) < 0 || *ret == 0)
		return say_no(&k->said, 400, "%s: '%.40s' is not a time", name,
			      text);
	return 0;
}

static int label_hosts(struct making *k, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, ",");
		char host[256];

		if (len >= sizeof(host))
			return say_no(&k->said, 400,
				      "io.cordon.egress: a name is too long");
		(void)snprintf(host, sizeof(host), "%.*s", (int)len, text);
		if (*host)
			set_add(k, "allow_host", host);
		text += len + (text[len] == ',');
	}
	return 0;
}

int take_label_settings(struct making *k, json_t *v, const char *name)
{
	const char *text = json_string_value(v);
	const char *word = name + strlen("io.cordon.");

	if (strcmp(word, "policy") == 0) {
		set_str(k, "policy", text);
		return 0;
	}
	if (strcmp(word, "timeout") == 0)
		return label_time(k, name, text, &k->want.exec_timeout_us);
	if (strcmp(word, "idle-timeout") == 0)
		return label_time(k, name, text, &k->want.idle_us);
	if (strcmp(word, "egress") == 0)
		return label_hosts(k, text);
	if (strcmp(word, "max-output") == 0)
		return num_parse_size(text, &k->want.exec_max_output) < 0
			       ? say_no(&k->said, 400,
					"%s: '%.40s' is not a size", name, text)
			       : 0;
	if (strcmp(word, "exec-children") == 0 &&
	    (strcmp(text, "keep") == 0 || strcmp(text, "kill") == 0)) {
		k->want.kill_exec_rest = *text == 'k' && text[1] == 'i';
		return 0;
	}
	return say_no(&k->said, 400, "label %.60s=%.60s is not one of Cordon's",
		      name, text);
}
