/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A language model, whoever serves it.
 *
 * A conversation is JSON in one neutral form, a list of
 *
 *	{"role":"system","content":"..."}
 *	{"role":"user","source":"user","content":"..." or [parts]}
 *	{"role":"assistant","source":"coder","content":"..." or null,
 *	 "calls":[{"id","name","arguments":"raw JSON text"}],"thought":...}
 *	{"role":"tool","results":[{"call_id","name","content","is_error",
 *		"images"?: [{"mime","data"}]}]}
 *
 * where a part is {"type":"text","text"} or {"type":"image","mime","data"}
 * (base64). Each provider turns it into its own wire format. Tools are a list
 * of {"name","description","parameters","strict"}.
 *
 * A call goes on beside the caller and ends with exactly one of a result and
 * a fault, never from within model_start(). A call that is cancelled by its
 * token ends with the token's fault; its connection is closed.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/cancel.h"
#include "loop/fault.h"
#include "loop/loop.h"

enum model_finish {
	FINISH_STOP,
	FINISH_LENGTH,
	FINISH_CALLS,
	FINISH_FILTER,
	FINISH_UNKNOWN,
};

struct model_usage {
	int64_t prompt, completion, cached, reasoning; /* tokens */
	int64_t calls;
	double cost; /* in dollars, where prices are known */
};

struct model_info {
	bool vision, function_calling, json_output, structured_output;
	bool multiple_system_messages, streaming;
	char family[32];
	int64_t context_window, max_output; /* tokens; 0: not known */
	double price_prompt,
		price_completion; /* dollars a million; < 0: not known */
};

struct model_result {
	enum model_finish finish;
	char *content; /* NULL: none */
	json_t *calls; /* [{"id","name","arguments"}], NULL: none */
	char *thought;
	char *raw_id, *model;
	struct model_usage usage;
	bool is_cached;
	bool is_estimated; /* the server told no usage; it is a guess */
};

struct model_request {
	json_t *messages;
	json_t *tools;           /* NULL: none */
	const char *tool_choice; /* NULL is "auto"; required, none, a name */
	json_t *output_schema;   /* {"name","schema"}, NULL: free text */
	json_t *extra;           /* put into the request as it is; NULL */
	bool is_stream;
	struct cancel *cancel;
};

struct model_events {
	/* Some text of the answer, or of its thought. NULL: not wanted. */
	void (*chunk)(void *arg, bool is_thought, const char *text, size_t len);
	/* The end. The result, or NULL and why; both are the model's. */
	void (*done)(void *arg, const struct model_result *r,
		     const struct fault *why);
};

struct model;
struct model_call;

/*
 * `config` is the component's: {"model":"gpt-4o","base_url":...,"api_key":
 * {"env":"NAME"},"timeout":...,"info":{...},"temperature":...}, all of it in
 * openai-config.h. The key is read when it is needed and is in no document.
 */
int model_openai(struct loop *l, const json_t *config, struct model **ret,
		 struct err *err);
/* Answers from a recording (docs/models.md, recording.h). */
int model_replay(struct loop *l, const char *file, struct model **ret,
		 struct err *err);
/* Passes everything on to `inner`, its own once it is made, and writes it. */
int model_record(struct loop *l, struct model *inner, const char *file,
		 struct model **ret, struct err *err);
struct model *model_ref(struct model *m);
void model_unref(struct model *m);

const char *model_name(const struct model *m);
const struct model_info *model_info(const struct model *m);
const struct model_usage *model_total(const struct model *m);
/* An estimate, on the safe side. */
int64_t model_count_tokens(const struct model *m, const json_t *messages,
			   const json_t *tools);

/* NULL only when memory is short; then nothing is called. */
struct model_call *model_start(struct model *m, const struct model_request *q,
			       const struct model_events *e, void *arg);
/* The caller goes: nothing is called any more. */
void model_drop(struct model_call *c);
