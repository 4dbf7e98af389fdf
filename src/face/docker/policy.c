/* SPDX-License-Identifier: Apache-2.0 */

/* What the policy in force says of this face, as the parent told it. */

#include <string.h>

#include "face/docker/internal.h"

#define LOG_MAX ((uint64_t)64 << 20)

static uint64_t number_of(const json_t *v, uint64_t absent)
{
	json_int_t n = json_integer_value(v);

	return json_is_integer(v) && n > 0 ? (uint64_t)n : absent;
}

void docker_policy(struct docker *d, const struct peer *peer,
		   struct docker_policy *ret)
{
	struct manager_view v = { 0 };
	json_t *note;
	json_t *docker;
	json_t *exec;

	manager_look(d->m, peer, &v);
	note = member_doc(v.policy_note);
	docker = json_object_get(note, "docker");
	exec = json_object_get(docker, "exec");
	/* Nothing known: what the shipped default says. */
	*ret = (struct docker_policy){
		.allow_root_inside = json_is_true(
			json_object_get(docker, "allow_root_inside")),
		.kill_on_disconnect = strcmp(member_str(exec, "on_disconnect"),
					     "kill") == 0,
		.kill_children = strcmp(member_str(exec, "children"), "kill") ==
				 0,
		.shims = !json_is_false(json_object_get(exec, "shims")),
		.max_output = number_of(json_object_get(exec, "max_output"), 0),
		.log_max = number_of(json_object_get(docker, "log_max"),
				     LOG_MAX),
	};
	json_decref(note);
}
