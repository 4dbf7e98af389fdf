/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Setters: each puts one value into a spec or says why not; then the spec is
 * as it was, or is thrown away. Rows of the table (settings.c) name them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "box/spec.h"

#define SETTER(name)                                                           \
	int name(struct cordon_spec *s, const char *v, struct err *err)

/* settings-limits.c */
SETTER(set_timeout);
SETTER(set_memory_mb);
SETTER(set_cpus);
SETTER(set_cpu_percent);
SETTER(set_cpu_period);
SETTER(set_cpu_shares);
SETTER(set_cpuset);
SETTER(set_memory_swap);
SETTER(set_oom_score);
SETTER(set_ulimit);

/* settings-places.c */
SETTER(set_read_only);
SETTER(set_volume);
SETTER(set_tmpfs);
SETTER(set_shm_size);
SETTER(set_writable);
SETTER(set_writable_only);
SETTER(set_workspace);
SETTER(set_copy_out);
SETTER(set_workdir);
SETTER(set_work_dir);
SETTER(set_bind_dir);
SETTER(set_container_dir);
SETTER(set_delete_files);

/* settings-names.c */
SETTER(set_user);
SETTER(set_group_add);
SETTER(set_name);
SETTER(set_hostname);
SETTER(set_domainname);
SETTER(set_add_host);
SETTER(set_label);

/* settings-program.c */
SETTER(set_image);
SETTER(set_entrypoint);
SETTER(set_arg);
SETTER(set_command_line);
SETTER(set_program);
SETTER(set_allowed);
SETTER(set_env);
SETTER(set_env_from_host);
SETTER(set_env_file);

/* settings-wall.c */
SETTER(set_policy);
SETTER(set_ledger);
SETTER(set_isolation);
SETTER(set_best_effort);
SETTER(set_security_opt);
SETTER(set_remove);
SETTER(set_refused);
SETTER(set_privileged);

/* settings-network.c */
SETTER(set_network);
SETTER(set_network_disabled);
SETTER(set_network_enabled);
SETTER(set_allow_host);
SETTER(set_secret);

/* settings-values.c: values as people write them; -EINVAL says how. */
int put_text(char **to, const char *text, struct err *err);
int put_time(const char *v, uint64_t min_us, uint64_t *to, struct err *err);
int put_size(const char *v, uint64_t min, uint64_t *to, struct err *err);
int put_count(const char *v, uint64_t min, uint64_t max, uint64_t *to,
	      struct err *err);
/* NULL is true: a switch without a value. */
int put_bool(const char *v, bool *to, struct err *err);
int put_item(struct strv *to, const char *text, struct err *err);
int no_memory_left(struct err *err);
