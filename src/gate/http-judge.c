/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All rules for this host and port count: a request is allowed if one of them
 * has its method and its path. What asks for a WebSocket has the method
 * WEBSOCKET for that: whoever lists GET means to read, and frames go both ways
 * without an end. Those that ask were asked for the connection, so only the one
 * that was answered counts.
 */

#include <string.h>

#include "gate/http.h"

static bool has_method(const struct gate_table *t, const struct gate_rule *r,
		       struct http_slice method)
{
	const char *m = gate_str(t, r->methods.off);

	if (r->methods.count == 0)
		return true;
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

static enum gate_reason judge_one(const struct gate_table *t,
				  const struct gate_rule *r,
				  const struct http_head *h)
{
	if (r->paths.count > 0 && !http_path_allowed(h->path, t, &r->paths))
		return GATE_R_PATH;
	return has_method(t, r, http_judged_method(h)) ? GATE_OK
						       : GATE_R_METHOD;
}

static bool is_meant(const struct gate_table *t, int own, int i,
		     const char *host, uint16_t port)
{
	return i == own || (!(t->rules[i].flags & GATE_RULE_ASK) &&
			    gate_rule_names(t, i, host, port));
}

void http_judge(const struct gate_table *t, int own, const char *host,
		uint16_t port, const struct http_head *h,
		struct http_verdict *ret)
{
	*ret = (struct http_verdict){ .reason = GATE_R_PATH, .rule = own };
	if (is_never(h->method)) {
		ret->reason = GATE_R_METHOD;
		return;
	}
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++) {
		enum gate_reason reason;

		if (!is_meant(t, own, i, host, port))
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

void http_home(const struct gate_table *t, int own, const char *host,
	       uint16_t port, bool *ret_applies)
{
	for (int i = 0; i < GATE_MAX_RULES; i++)
		ret_applies[i] = i < (int)t->n_rules &&
				 is_meant(t, own, i, host, port);
}
