/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Setters for what Docker's users may say of a container, beside the settings
 * of settings.c. Each is enforced as it is asked, or refused.
 */

#include "base/err.h"

struct cordon_spec;

typedef int setter_fn(struct cordon_spec *s, const char *v, struct err *err);

setter_fn set_hostname;
setter_fn set_domainname;
setter_fn set_add_host;
setter_fn set_cpu_shares;
setter_fn set_cpuset;
setter_fn set_memory_low;
setter_fn set_memory_swap;
setter_fn set_oom_score;
setter_fn set_ulimit;
setter_fn set_group_add;

/* Of a number of getrlimit(2). */
const char *ulimit_name(int number);
