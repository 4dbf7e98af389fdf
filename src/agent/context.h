/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to context*.c; what others use is in agent.h and parts.h. */

#include "agent/agent.h"
#include "agent/parts.h"

struct context {
	const struct context_kind *kind;
	const struct model *model; /* only for counting */
	size_t n, head, tail;
	int64_t max;
	json_t *messages;
	json_t *loaded; /* with what this version does not know */
	bool is_short;  /* something was lost for want of memory */

	/* Of one that summarises. */
	size_t limit; /* messages; 0: any number */
	size_t keep;  /* of them, as they are */
	char *prompt;
	/*
	 * [{"upto","text"}]: what stands for the first `upto` messages. The
	 * last one counts; those before it are there as long as the turn that
	 * made it may be taken back.
	 */
	json_t *summaries;
	size_t n_settled; /* of them, before that turn */
};

struct context_kind {
	const char *name;
	/* Adds what is seen to `list`; 0 or -ENOMEM. */
	int (*choose)(const struct context *c, json_t *list);
};

/* context.c; a group is calls with their results, or one other message. */
int context_add_range(const struct context *c, json_t *list, size_t begin,
		      size_t end);
/* "[3 messages were left out here.]" */
json_t *context_note(size_t left_out);
/*
 * Where to begin for at most so many messages, or tokens, at the end, after
 * `from`; the last group is always among them. < 0: no memory.
 */
size_t context_tail(const struct context *c, size_t n, size_t from);
int64_t context_tail_tokens(const struct context *c, int64_t max, size_t from);

/* context-summary.c */
int context_choose_summary(const struct context *c, json_t *list);
int context_init_summary(struct context *c, const json_t *config,
			 struct err *err);
/* Those that were made in the turn that is taken back. */
void context_unsummarise(struct context *c, size_t keep);
/* Into a saved document; of a turn that goes on: as before it. */
int context_save_summary(const struct context *c, bool has_turn, json_t *o);
int context_load_summary(struct context *c, const json_t *state, size_t n,
			 json_t **ret, struct err *err);
