/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * "*.example.org" names what one owner has below one name. "*.com" would name
 * what everybody has: below a public suffix (publicsuffix.org) each name has
 * an owner of its own, who may be anyone. Such a pattern is refused.
 */

#include "desk/policy-tree.h"

/* 0, or -EINVAL with what to write instead; not a pattern: 0. */
int suffix_check(const char *host, struct err *err);

/* The same for all rules of a policy, with the place in front. */
int suffix_check_tree(const struct node *tree, struct err *err);
