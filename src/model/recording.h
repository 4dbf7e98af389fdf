/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Recordings: answers of models, one JSON document a line, to be read and
 * written by people too. Empty lines and lines that begin with # say nothing.
 *
 * The first line may say what the rest is; without it: a model `replay`, and
 * answers in order.
 *
 *	{"recording":1,"model":"gpt-4o","match":"order","info":{...}}
 *
 * Each other line is one answer:
 *
 *	{"request":{"hash":"...","messages":3,"last":"..."},
 *	 "delay_ms":0,"chunks":["He","llo",{"thought":"..."}],
 *	 "result":{"finish_reason":"stop","content":"Hello","calls":[{"id",
 *		"name","arguments"}],"thought":"...","model":"gpt-4o",
 *		"raw_id":"...","usage":{"prompt_tokens":9,
 *		"completion_tokens":2}}}
 *
 * or, for one that failed, {"fault":{"code":"unavailable","message":"..."}}.
 * All but `result` may be missing, and of a result what it has not; from
 * chunks alone the content is made. `arguments` is JSON text, or an object.
 *
 * With "match":"order" the answers are given in the order of the file, to all
 * models that play it on one loop. With "hash" a request gets the next answer
 * of its hash: SHA-256 over the request's messages, tools, tool_choice,
 * output_schema and extra, as JSON with sorted names and no blanks.
 *
 * A request is in a recording as its hash and the beginning of its last
 * message, for orientation. Keys are in none: they are not part of requests.
 */

#include "base/buf.h"
#include "model/provider.h"

#define RECORDING_VERSION 1
#define RECORDING_MAX     ((size_t)64 << 20)
#define HASH_SIZE         65

int recording_hash(const struct model_request *q, char ret[HASH_SIZE]);
/* {"hash","messages","last"}; NULL: no memory. */
json_t *recording_request(const struct model_request *q);

json_t *recording_result(const struct model_result *r);
/* `chunks` may be NULL; `place` makes ids for calls that have none. */
int recording_load_result(struct model_result *r, const json_t *o,
			  const json_t *chunks, size_t place, struct err *err);
