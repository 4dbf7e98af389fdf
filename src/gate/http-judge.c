/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All rules for this host and port count: a request is allowed if one of them
 * has its method and its path. What asks for a WebSocket has the method
 * WEBSOCKET for that: whoever lists GET means to read, and frames go both ways
 * without an end. Those that ask were asked for the connection, so only the one
 * that was answered counts.
 */

#include <ctype.h>
#include <string.h>

#include "base/util.h"
#include "gate/http.h"

static bool has_method(const struct gate_table *t, const struct gate_rule *r,
		       struct http_slice method)
{
	const char *m = gate_str(t, r->methods.off);

	if (r->methods.count == 0)
		return !(r->flags & GATE_RULE_METHODS);
	for (uint32_t i = 0; i < r->methods.count; i++) {
		size_t n = strlen(m);

		if (n == method.len && memcmp(m, method.at, n) == 0)
			return true;
		m += n + 1;
	}
	return false;
}

static const char socket_method[] = "WEBSOCKET";

struct http_slice http_judged_method(const struct http_head *h)
{
	const struct http_slice word = { socket_method,
					 sizeof(socket_method) - 1 };

	return h->is_socket ? word : h->method;
}

/*
 * CONNECT would go on elsewhere; TRACE sends back what we put in; the word of a
 * rule is no method.
 */
static bool is_never(struct http_slice method)
{
	return http_is(&method, "CONNECT") || http_is(&method, "TRACE") ||
	       http_is(&method, socket_method);
}

/* Some programs read "_" in a header's name as "-". */
static bool is_like(struct http_slice name, const char *text)
{
	size_t i = 0;

	for (; i < name.len && text[i]; i++) {
		char c = name.at[i] == '_' ? '-' : name.at[i];

		if (tolower((unsigned char)c) != text[i])
			return false;
	}
	return i == name.len && !text[i];
}

/*
 * Headers that make some servers take another method, or another path, than
 * the first line has: what was judged would not be what is done.
 */
static bool is_overridden(const struct gate_rule *r, const struct http_head *h)
{
	static const char *const methods[] = { "x-http-method-override",
					       "x-http-method",
					       "x-method-override" };
	static const char *const paths[] = { "x-original-url",
					     "x-rewrite-url" };

	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_slice name = h->fields[i].name;

		for (size_t k = 0; r->methods.count && k < ARRAY_SIZE(methods);
		     k++)
			if (is_like(name, methods[k]))
				return true;
		for (size_t k = 0; r->paths.count && k < ARRAY_SIZE(paths); k++)
			if (is_like(name, paths[k]))
				return true;
	}
	return false;
}

static bool has_paths(const struct gate_rule *r)
{
	return r->paths.count > 0 || r->flags & GATE_RULE_PATHS;
}

static enum gate_reason judge_one(const struct gate_table *t,
				  const struct gate_rule *r,
				  const struct http_head *h)
{
	if (has_paths(r) && !http_path_allowed(h->path, t, &r->paths))
		return GATE_R_PATH;
	if (!has_method(t, r, http_judged_method(h)))
		return GATE_R_METHOD;
	return is_overridden(r, h) ? GATE_R_OVERRIDE : GATE_OK;
}

/* `port` 0: at any. */
static bool is_meant(const struct gate_table *t, const struct http_to *to,
		     int i, uint16_t port)
{
	/* Those that ask: only the one that was answered counts. */
	if (i == to->own || t->rules[i].flags & GATE_RULE_ASK)
		return i == to->own;
	return t->rules[to->own].kind == GATE_ADDRESS
		       ? gate_rule_has(t, i, to->address, port)
		       : gate_rule_names(t, i, to->host, port);
}

void http_judge(const struct gate_table *t, const struct http_to *to,
		const struct http_head *h, struct http_verdict *ret)
{
	*ret = (struct http_verdict){ .reason = GATE_R_PATH, .rule = to->own };
	if (is_never(h->method)) {
		ret->reason = GATE_R_METHOD;
		return;
	}
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++) {
		enum gate_reason reason;

		if (!is_meant(t, to, i, to->port))
			continue;
		reason = judge_one(t, &t->rules[i], h);
		ret->applies[i] = reason == GATE_OK;
		if (ret->reason == GATE_OK || reason == GATE_R_PATH)
			continue;
		/* The first that allows, or else one with the path. */
		ret->reason = reason;
		ret->rule = i;
	}
}

void http_home(const struct gate_table *t, const struct http_to *to,
	       bool *ret_applies)
{
	for (int i = 0; i < GATE_MAX_RULES; i++)
		ret_applies[i] = i < (int)t->n_rules &&
				 is_meant(t, to, i, to->port);
}

void http_sent(const struct gate_table *t, const struct http_to *to,
	       bool *ret_sent)
{
	for (int i = 0; i < GATE_MAX_RULES; i++)
		ret_sent[i] = i < (int)t->n_rules && is_meant(t, to, i, 0);
}
