/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is known of models by their names. The longest beginning that fits
 * holds; a name in a directory ("openai/gpt-4o") is looked up without it.
 *
 * No price is here: they change, and a limit that is counted with a wrong one
 * is worse than none. `info` of a model's configuration says them, in dollars
 * for a million tokens, and corrects whatever else has changed. A model that is
 * not in the table is taken for one that can everything but see, with a window
 * that is not known.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "model/provider.h"

enum {
	SEES = 1,
	CALLS = 2,
	JSON = 4,
	SCHEMA = 8,
	SYSTEMS = 16, /* several system messages */
	STREAMS = 32,
	TEXT = CALLS | JSON | SCHEMA | SYSTEMS | STREAMS,
	FULL = TEXT | SEES,
	PLAIN = JSON | SYSTEMS | STREAMS,
	LOCAL = TEXT & ~SYSTEMS, /* templates often take just one */
};

struct row {
	const char *prefix;
	unsigned int can;
	int64_t window, output;
};

static const struct row rows[] = {
	{ "gpt-3.5-turbo", TEXT & ~SCHEMA, 16385, 4096 },
	{ "gpt-4", TEXT & ~SCHEMA, 8192, 8192 },
	{ "gpt-4-turbo", FULL & ~SCHEMA, 128000, 4096 },
	{ "gpt-4o", FULL, 128000, 16384 },
	{ "gpt-4o-mini", FULL, 128000, 16384 },
	{ "gpt-4.1", FULL, 1047576, 32768 },
	{ "gpt-4.1-mini", FULL, 1047576, 32768 },
	{ "gpt-4.1-nano", FULL, 1047576, 32768 },
	{ "gpt-5", FULL, 400000, 128000 },
	{ "gpt-5-mini", FULL, 400000, 128000 },
	{ "gpt-5-nano", FULL, 400000, 128000 },
	{ "o1", FULL, 200000, 100000 },
	{ "o1-mini", PLAIN, 128000, 65536 },
	{ "o3", FULL, 200000, 100000 },
	{ "o3-mini", TEXT, 200000, 100000 },
	{ "o4-mini", FULL, 200000, 100000 },
	{ "claude-", FULL & ~SYSTEMS, 200000, 8192 },
	{ "gemini-", FULL & ~SYSTEMS, 1048576, 8192 },
	{ "llama3", LOCAL, 0, 0 },
	{ "llava", SEES | JSON | STREAMS, 0, 0 },
	{ "qwen", LOCAL, 0, 0 },
	{ "mistral", LOCAL, 0, 0 },
	{ "deepseek", LOCAL & ~SCHEMA, 65536, 8192 },
};

static const struct row other = { "unknown", TEXT, 0, 0 };

void info_find(const char *name, struct model_info *ret)
{
	const char *base = strrchr(name, '/');
	const struct row *best = &other;
	size_t len = 0;

	base = base ? base + 1 : name;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = strlen(rows[i].prefix);

		if (n > len && strncasecmp(base, rows[i].prefix, n) == 0) {
			best = &rows[i];
			len = n;
		}
	}
	*ret = (struct model_info){
		.vision = best->can & SEES,
		.function_calling = best->can & CALLS,
		.json_output = best->can & JSON,
		.structured_output = best->can & SCHEMA,
		.multiple_system_messages = best->can & SYSTEMS,
		.streaming = best->can & STREAMS,
		.context_window = best->window,
		.max_output = best->output,
		.price_prompt = -1,
		.price_completion = -1,
	};
	(void)snprintf(ret->family, sizeof(ret->family), "%s", best->prefix);
	/* "claude-" is how its names begin, not what it is called. */
	len = strlen(ret->family);
	if (len && ret->family[len - 1] == '-')
		ret->family[len - 1] = '\0';
}

/* --- as a document --- */

enum kind { FLAG, COUNT, PRICE, NAME };

static const struct {
	const char *name;
	enum kind kind;
	size_t at;
} fields[] = {
	{ "vision", FLAG, offsetof(struct model_info, vision) },
	{ "function_calling", FLAG,
	  offsetof(struct model_info, function_calling) },
	{ "json_output", FLAG, offsetof(struct model_info, json_output) },
	{ "structured_output", FLAG,
	  offsetof(struct model_info, structured_output) },
	{ "multiple_system_messages", FLAG,
	  offsetof(struct model_info, multiple_system_messages) },
	{ "streaming", FLAG, offsetof(struct model_info, streaming) },
	{ "family", NAME, offsetof(struct model_info, family) },
	{ "context_window", COUNT,
	  offsetof(struct model_info, context_window) },
	{ "max_output", COUNT, offsetof(struct model_info, max_output) },
	{ "price_prompt", PRICE, offsetof(struct model_info, price_prompt) },
	{ "price_completion", PRICE,
	  offsetof(struct model_info, price_completion) },
};

static int load_field(void *at, enum kind kind, const json_t *v)
{
	bool is_good = kind == FLAG    ? json_is_boolean(v)
		       : kind == COUNT ? json_is_integer(v) &&
						 json_integer_value(v) >= 0
		       : kind == PRICE ? json_is_number(v)
				       : json_is_string(v);

	if (!is_good)
		return -EINVAL;
	if (kind == FLAG)
		*(bool *)at = json_is_true(v);
	else if (kind == COUNT)
		*(int64_t *)at = json_integer_value(v);
	else if (kind == PRICE)
		*(double *)at = json_number_value(v);
	else
		(void)snprintf(at, sizeof(((struct model_info *)0)->family),
			       "%s", json_string_value(v));
	return 0;
}

int info_load(struct model_info *info, const json_t *o, struct err *err)
{
	const char *name;
	json_t *v;

	if (!json_is_object(o))
		return err_set(err, EINVAL, "'info' is no object");
	json_object_foreach((json_t *)o, name, v)
	{
		size_t i = 0;

		while (i < ARRAY_SIZE(fields) &&
		       strcmp(fields[i].name, name) != 0)
			i++;
		if (i == ARRAY_SIZE(fields))
			return err_set(err, EINVAL,
				       "no such field of 'info': "
				       "'%s'",
				       name);
		if (load_field((char *)info + fields[i].at, fields[i].kind, v) <
		    0)
			return err_set(err, EINVAL,
				       "'info': '%s' has a wrong value", name);
	}
	return 0;
}

json_t *info_json(const struct model_info *info)
{
	return json_pack(
		"{s:b, s:b, s:b, s:b, s:b, s:b, s:s, s:I, s:I, s:f, s:f}",
		"vision", info->vision, "function_calling",
		info->function_calling, "json_output", info->json_output,
		"structured_output", info->structured_output,
		"multiple_system_messages", info->multiple_system_messages,
		"streaming", info->streaming, "family", info->family,
		"context_window", (json_int_t)info->context_window,
		"max_output", (json_int_t)info->max_output, "price_prompt",
		info->price_prompt, "price_completion", info->price_completion);
}

double info_cost(const struct model_info *info, const struct model_usage *u)
{
	double cost = 0;

	if (info->price_prompt > 0)
		cost += info->price_prompt * (double)u->prompt;
	if (info->price_completion > 0)
		cost += info->price_completion * (double)u->completion;
	return cost / 1e6;
}
