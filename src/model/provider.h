/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every kind of model is made of, and what it gives to the rest.
 *
 * model.c owns the call: its end is told once, from the loop, and its memory
 * goes after that. A provider has its own state behind `struct model_call` in
 * the same allocation, and calls
 *
 *	call_chunk()	for text as it comes; nothing may be assumed to go on
 *			afterwards but the memory: the caller may have dropped
 *			the call or cancelled it (c->is_over)
 *	call_end()	when c->result is complete
 *	call_fail()	when c->why says what went wrong
 *
 * `stop` may come in the middle of any of them, and twice.
 */

#include "model/model.h"

struct model_ops {
	size_t model_size, call_size;
	/* 0, or -errno with c->why; never calls call_chunk(). */
	int (*start)(struct model_call *c, const struct model_request *q);
	/* Nothing of it goes on. The memory stays. */
	void (*stop)(struct model_call *c);
	void (*done)(struct model_call *c);
	void (*free)(struct model *m);
};

struct model {
	const struct model_ops *ops;
	struct loop *loop;
	unsigned int refs;
	char *name;
	struct model_info info;
	struct model_usage total;
};

struct model_call {
	struct model *model;
	struct model_events events;
	void *arg;
	struct cancel *cancel;
	struct cancel_hook hook;
	struct task task; /* tells the end, or frees */
	bool is_stream;
	bool is_over;    /* it has its result or its fault */
	bool is_telling; /* within the caller's function */
	bool is_dropped;
	struct model_result result;
	struct fault why;
};

/* NULL: no memory. The name is copied, the info is that of the name. */
struct model *provider_new(const struct model_ops *ops, struct loop *l,
			   const char *name);

void call_chunk(struct model_call *c, bool is_thought, const char *text,
		size_t len);
void call_end(struct model_call *c);
void call_fail(struct model_call *c);

void result_done(struct model_result *r);
/* -ENOMEM: nothing is there. */
int result_copy(struct model_result *to, const struct model_result *from);

/* info.c: what is known of a model of this name. */
void info_find(const char *name, struct model_info *ret);
/* The fields of a document that says otherwise. */
int info_load(struct model_info *info, const json_t *o, struct err *err);
json_t *info_json(const struct model_info *info);
double info_cost(const struct model_info *info, const struct model_usage *u);

/* tokens.c: of a text, on the safe side. */
int64_t tokens_of(const char *text, size_t len);
/* Of a request without its images' bytes. */
int64_t tokens_of_request(const json_t *messages, const json_t *tools);
