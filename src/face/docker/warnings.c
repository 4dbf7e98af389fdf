/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is told to who makes a container: which numbers are lower than asked
 * for, in Docker's words, and what else the preparer had to say.
 */

#include <stdio.h>
#include <string.h>

#include "face/docker/internal.h"

/* The field that was asked; a row has the setting's name. */
static void docker_word(const char *setting, const json_t *host, char *ret,
			size_t size)
{
	static const struct {
		const char *setting, *word;
	} words[] = {
		{ "memory", "Memory" },
		{ "pids", "PidsLimit" },
		{ "disk", "StorageOpt.size" },
		{ "tmpfs /dev/shm", "ShmSize" },
		{ "files", "Ulimits nofile" },
		{ "memory_reservation", "MemoryReservation" },
		{ "cpuset_cpus", "CpusetCpus" },
	};
	json_t *quota = json_object_get(host, "CpuQuota");

	(void)snprintf(ret, size, "%s", setting);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(words[i].setting, setting) == 0)
			(void)snprintf(ret, size, "%s", words[i].word);
	if (strncmp(setting, "ulimit ", 7) == 0)
		(void)snprintf(ret, size, "Ulimits %s", setting + 7);
	else if (strncmp(setting, "tmpfs ", 6) == 0 &&
		 (strcmp(setting + 6, "/dev/shm") != 0 ||
		  !json_object_get(host, "ShmSize")))
		(void)snprintf(ret, size, "Tmpfs %s size", setting + 6);
	else if (strcmp(setting, "cpus") == 0)
		(void)snprintf(ret, size, "%s",
			       json_integer_value(quota) > 0 ? "CpuQuota"
							     : "NanoCpus");
}

/* CPUs are counted in thousandths. */
static void number_text(const json_t *v, bool is_cpus, char *ret, size_t size)
{
	const char *text = json_string_value(v);

	if (is_cpus && json_is_number(v))
		(void)snprintf(ret, size, "%g CPUs",
			       json_number_value(v) / 1000);
	else if (json_is_integer(v))
		(void)snprintf(ret, size, "%lld",
			       (long long)json_integer_value(v));
	else
		(void)snprintf(ret, size, "%s", text ? text : "?");
}

static void tell_lowered(json_t *list, json_t *row, const json_t *host)
{
	const char *name = member_str(row, "name");
	bool is_cpus = strcmp(name, "cpus") == 0;
	char asked[64];
	char given[64];
	char word[256];
	char text[512];

	docker_word(name, host, word, sizeof(word));
	number_text(json_object_get(row, "asked"), is_cpus, asked,
		    sizeof(asked));
	number_text(json_object_get(row, "given"), is_cpus, given,
		    sizeof(given));
	(void)snprintf(text, sizeof(text),
		       "cordon: %s %s lowered to policy maximum %s", word,
		       asked, given);
	json_array_append_new(list, doc_string(text));
}

void warnings_of(const struct box_view *v, json_t *list)
{
	json_t *extra = member_doc(v->extra);
	json_t *spec = member_doc(v->spec);
	json_t *clamped = v->clamped ? json_loads(v->clamped, 0, NULL) : NULL;
	json_t *more = v->warnings ? json_loads(v->warnings, 0, NULL) : NULL;
	json_t *row;
	size_t i;

	if (strcmp(member_str(json_object_get(extra, "HostConfig"),
			      "NetworkMode"),
		   "bridge") == 0 &&
	    strcmp(member_str(spec, "network"), "allow") != 0)
		json_array_append_new(
			list,
			json_string("cordon: NetworkMode bridge: the policy "
				    "allows no host, so there is no network"));
	json_array_foreach(clamped, i, row)
		tell_lowered(list, row, json_object_get(extra, "HostConfig"));
	json_array_foreach(more, i, row) if (json_is_string(row))
		json_array_append(list, row);
	/* Not asked for is no request: the policy's own word holds. */
	if (json_is_true(json_object_get(spec, "read_only")) &&
	    !json_is_true(json_object_get(json_object_get(extra, "HostConfig"),
					  "ReadonlyRootfs")))
		json_array_append_new(
			list,
			json_string("cordon: the root file system is "
				    "read-only: the policy does not state "
				    "'read_only: false'"));
	json_decref(clamped);
	json_decref(more);
	json_decref(extra);
	json_decref(spec);
}
