/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From a policy file to a struct policy.
 *
 * YAML is read by cordon-desk alone, which writes the flat form. That is kept
 * in the state directory, in policies/, one file for each policy file, mode
 * 0600; a kept one is used only if it belongs to us and if the SHA-256 of
 * every source that its first line names is that of what is on disk now.
 * Where nothing can be kept, the policy is compiled in each run.
 */

#include "base/err.h"
#include "policy/policy.h"

/*
 * Which file applies: `given`, else ./cordon.yaml, else that in
 * $XDG_CONFIG_HOME/cordon (~/.config/cordon), else that in /etc/cordon. A
 * file that is there is the one, also if it cannot be read. *ret is NULL if
 * there is none; the caller frees it.
 */
int policy_find(const char *given, char **ret, struct err *err);

/*
 * A file, or the name of a preset ("./strict" is a file of that name). The
 * caller frees *ret with policy_free().
 */
int policy_load(const char *file, struct policy **ret, struct err *err);

/*
 * Whether "*.name" is what one owner has (desk/public-suffix.h); the list of
 * suffixes is cordon-desk's too. 0 also for what is no pattern.
 */
int policy_check_host(const char *host, struct err *err);
