/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The configuration of an OpenAI-compatible model:
 *
 *	model			the name; read by its owner
 *	base_url		else OPENAI_BASE_URL, else OpenAI's
 *	api_key			{"env"} or {"file"}; else OPENAI_API_KEY, but
 *				not for a base_url that is named here
 *	info			what the model can, and its prices (info.c)
 *	timeout			of a whole call with its retries, in seconds;
 *				600
 *	connect_timeout, first_byte_timeout, idle_timeout	10, 120, 60
 *	max_retries, retry_delay				3, 0.5
 *	ca_file			certificates of the server's authorities
 *	include_name		who speaks, in user messages (true)
 *	stream_usage		ask a stream for its usage (true)
 *	extra			an object, put into each request
 *
 * and what goes into each request under its own name: temperature, top_p,
 * max_tokens, max_completion_tokens, seed, stop, presence_penalty,
 * frequency_penalty, reasoning_effort, parallel_tool_calls, user.
 */

#include "model/provider.h"
#include "model/retry.h"

struct openai_config {
	char *url; /* of chat completions */
	char *ca_file;
	json_t *key; /* a reference; NULL: none */
	json_t *settings;
	struct retry retry;
	int64_t limit_us;
	int64_t connect_us, first_us, idle_us;
	bool has_names, has_stream_usage;
};

/* A field that is not known is an error. openai_config_done() either way. */
int openai_config_load(struct openai_config *c, struct model_info *info,
		       const json_t *config, struct err *err);
void openai_config_done(struct openai_config *c);
