/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cordon-desk: where people look at policies, approvals and the record.
 *
 * `cordon policy`, `cordon approvals` and `cordon audit` become this program.
 * It reads YAML, keeps a database and signs, with libraries made for that,
 * which `cordon run` does not have to load: that command reads what was
 * compiled here (policy) and appends to what is indexed here (ledger).
 */

#include "base/err.h"
#include "base/say.h"
#include "base/util.h"

enum {
	EXIT_OURS = 125, /* a bad call, or Cordon's own failure */
};

/* policy.c: check, show, explain, test, compile */
int cmd_policy(int argc, char **argv);
/* approvals.c: list, show, approve, deny, ask */
int cmd_approvals(int argc, char **argv);
/* audit.c: list, show, follow, verify, export, seal */
int cmd_audit(int argc, char **argv);

/*
 * The commands of each, for the manual and the completions: a line of command,
 * sub-command, what it takes and what it does, with tabs between.
 */
void policy_words(void);
void approvals_words(void);
void audit_words(void);
