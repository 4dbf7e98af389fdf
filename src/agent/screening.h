/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The policy's filters where no message goes through the runtime: what the
 * model is told of its task, what it answers before the agent remembers it,
 * the arguments of a call before its tool has them, and its result before the
 * model reads it. Nothing happens to an agent without a screen.
 */

#include "agent/parts.h"
#include "model/model.h"

/*
 * The system's words, tools, entries of a memory, as whose they are (ROLE_...
 * of runtime/filter-policy.h): *data is replaced by what may be told of it.
 * false: nothing of it may, and `why` is set.
 */
bool screening_prompt(const struct agent *a, unsigned int roles,
		      const char *type, json_t **data, struct fault *why);

/*
 * What may be kept of an answer: `ret` is like `r`, but for what was taken
 * out of its text, its thought, and the ids and names of its calls; it lives
 * as long as *holder, the caller's. The arguments are screening_call()'s.
 * false: nothing may be kept, and `why` is set.
 */
bool screening_answer(const struct agent *a, const struct model_result *r,
		      struct model_result *ret, json_t **holder,
		      struct fault *why);

/*
 * Whether the call may be made. With *ret: with these arguments, which the
 * caller frees. false: `reason`, of 256 bytes, says why not.
 */
bool screening_call(const struct agent *a, const char *arguments, char **ret,
		    char *reason);

/*
 * Replaces *text by what the model may read of it; an error where nothing.
 * Returns whether it did.
 */
bool screening_result(const struct agent *a, char **text, bool *is_error);
