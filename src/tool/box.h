/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tools that a box holds as a whole: what they share (box.c).
 *
 * Each call is one run of libcordon's, stepped by the loop. What is run and
 * what the model reads of it is the kind's (struct box_kind); settings,
 * policy, limits, cancelling and the judgement beforehand are here.
 */

#include <cordon/cordon.h>

#include "tool/kinds.h"

struct box_tool;

struct box_kind {
	/* What is to be run, from arguments that fit the schema. */
	int (*fill)(struct box_tool *b, const json_t *args,
		    struct cordon_spec *s, struct err *err);
	/* What a person is shown of it; the caller frees. NULL: arguments. */
	char *(*show)(struct box_tool *b, const json_t *args);
	/* Further lines that an answer is bound to; or NULL. */
	int (*changes)(struct box_tool *b, const json_t *args,
		       struct strv *ret);
	/*
	 * The code that the model wrote, as struct tool_judgement has it; its
	 * `changes` then only repeat the arguments. NULL: it writes none.
	 */
	json_t *(*blocks)(struct box_tool *b, const json_t *args);
	/* Text for the model from the result document. */
	char *(*report)(struct box_tool *b, const json_t *doc);
	void (*free)(struct box_tool *b); /* of what is the kind's; or NULL */
};

struct box_tool {
	struct tool tool;
	const struct box_kind *kind;
	struct loop *loop;
	struct keeper *keeper;
	char *settings; /* JSON, or NULL */
	char *policy;
	struct box_run *runs; /* that go on */
};

/* 0, or -errno and nothing is held. The structure stays the caller's. */
int box_tool_init(struct box_tool *b, const struct tool_box *from,
		  const struct box_kind *kind, const char *name,
		  const char *description, const json_t *schema,
		  struct err *err);

/*
 * keeper.c: one keeper (cordon_open()) for as many tools as have a reference.
 * It is opened when it is first needed. One that a run found lost is closed
 * when no other run is left, and opened anew.
 */
struct keeper *keeper_new(struct cordon *given); /* NULL: its own */
struct keeper *keeper_ref(struct keeper *k);
void keeper_unref(struct keeper *k);
int keeper_open(struct keeper *k, struct err *err);
/* Where no run is left, and it is its own. */
void keeper_close(struct keeper *k);
struct cordon *keeper_cordon(const struct keeper *k);
void keeper_entered(struct keeper *k);
void keeper_left(struct keeper *k, bool is_lost);

/* {"success","output","status","cause"}, at most max_result bytes of it. */
char *box_report(struct box_tool *b, const json_t *doc);
