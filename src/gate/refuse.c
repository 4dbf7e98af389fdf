/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/refuse.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "gate/reason.h"

#define BODY_MAX 16384
/* Of a path so much is repeated. */
#define PATH_SHOWN 512

static const struct {
	unsigned int status;
	const char *phrase;
} phrases[] = {
	{ 400, "Bad Request" },
	{ 403, "Forbidden" },
	{ 408, "Request Timeout" },
	{ 413, "Content Too Large" },
	{ 415, "Unsupported Media Type" },
	{ 431, "Request Header Fields Too Large" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
};

static const char *phrase_of(unsigned int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "Refused";
}

/* What someone can do about it. */
static const char *hint_of(const struct refusal *r)
{
	switch (r->reason) {
	case GATE_R_METHOD:
		if (http_is(&r->method, "CONNECT") ||
		    http_is(&r->method, "TRACE"))
			return "no rule can allow this method: CONNECT and "
			       "TRACE are never let through";
		return "a rule of network.allow for this host needs this "
		       "method; ask whoever wrote the policy";
	case GATE_R_PATH:
		return "a rule of network.allow for this host needs a path "
		       "that has this one; ask whoever wrote the policy";
	case GATE_R_OVERRIDE:
		return "say method and path in the request's first line, and "
		       "leave out headers such as X-HTTP-Method-Override";
	case GATE_R_PLACEHOLDER:
		return "the variable holds a placeholder, not the secret; it "
		       "may only be sent where its rule says";
	case GATE_R_CLEAR:
		return "use https; the rule that has the secret must name port "
		       "80 if plain HTTP is meant";
	case GATE_R_HTTP_HOST:
		return "send the request to the host that was resolved";
	case GATE_R_HTTP:
		return "send one plain HTTP/1.1 request at a time";
	case GATE_R_CERTIFICATE:
		return "the server's certificate must be for this host, from "
		       "an authority that the gate trusts";
	default:
		return "cordon audit has the record of this refusal";
	}
}

/* The box need not know in which directory of the host its policy lies. */
static const char *place_of(const char *said)
{
	const char *slash = strrchr(said, '/');

	return slash ? slash + 1 : said;
}

static void put_body(const struct refusal *r, struct buf *out)
{
	const struct gate_table *t = r->table;
	uint32_t said = r->rule >= 0 ? t->rules[r->rule].said : 0;
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_str(&j, "error", "denied");
	json_str(&j, "layer", "net");
	json_str(&j, "host", r->host);
	json_int(&j, "port", r->port);
	json_bytes(&j, "method", r->method.at, MIN(r->method.len, (size_t)32));
	json_bytes(&j, "path", r->path.at,
		   MIN(r->path.len, (size_t)PATH_SHOWN));
	json_str(&j, "reason", gate_reason_word(r->reason));
	json_str(&j, "message",
		 r->detail ? r->detail : gate_reason_text(r->reason));
	if (said)
		json_str(&j, "rule", place_of(gate_str(t, said)));
	else
		json_none(&j, "rule");
	json_str(&j, "hint", hint_of(r));
	if (t->box)
		json_str(&j, "box", gate_str(t, t->box));
	json_close(&j, '}');
	(void)buf_puts(out, "\n");
}

void refuse_put(const struct refusal *r, struct buf *out)
{
	struct buf body;

	buf_init(&body, BODY_MAX);
	put_body(r, &body);
	(void)buf_printf(out,
			 "HTTP/1.1 %u %s\r\n"
			 "Content-Type: application/json\r\n"
			 "Content-Length: %zu\r\n"
			 "Cache-Control: no-store\r\n"
			 "X-Cordon: denied\r\n"
			 "Connection: %s\r\n\r\n",
			 r->status, phrase_of(r->status), body.len,
			 r->is_last ? "close" : "keep-alive");
	if (!r->is_bare && body.len > 0)
		(void)buf_add(out, body.data, body.len);
	if (body.error)
		out->error = body.error;
	buf_done(&body);
}
