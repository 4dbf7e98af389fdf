/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One policy under another: what a daemon's clients may ask for by name.
 *
 * Such a policy must be at least as strict as the one of the daemon. What can
 * be said of the two files alone is compared here, once; which directory may
 * be mounted depends on where its links lead, so decide.h asks `outer` as well
 * for each mount.
 *
 * Where it cannot be told which of two values is tighter, they must be the
 * same. What a file says of agents (tools, filters) and its tests are no
 * matter of boxes and are not compared.
 */

#include "policy/policy.h"

/*
 * Puts `p` under `outer`, which must outlive it: numbers, lists and the user
 * that `p` does not state become those of `outer`. -EPERM and what is looser,
 * with both places: `p` is then not to be used.
 */
int policy_narrow(struct policy *p, const struct policy *outer,
		  struct err *err);
