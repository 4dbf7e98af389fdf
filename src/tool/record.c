/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls on the ledger: of what no box holds that it may happen, before it
 * does; of every call how it ended. Arguments go by their hash, and as text
 * (without secrets) only where the policy keeps code.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/util.h"
#include "base/visible.h"
#include "ledger/ledger.h"
#include "ledger/redact.h"
#include "tool/call.h"

#define MAX_RECORD (256U << 10)
#define MAX_KEPT   (32U << 10)

static void put_redacted(struct json *j, const char *name, const char *text,
			 size_t len)
{
	struct buf b;

	if (!text || len == 0)
		return;
	buf_init(&b, 2 * MAX_KEPT);
	(void)redact(&b, text, MIN(len, MAX_KEPT));
	json_bytes(j, name, b.data ? b.data : "", b.len);
	buf_done(&b);
}

static void put_text(struct json *j, const char *name, const char *text)
{
	put_redacted(j, name, text, text ? strlen(text) : 0);
}

/* FILE:LINE of the rule about this tool, else what decided in words. */
static void put_rule(struct json *j, const struct call *c)
{
	char text[400];

	if (!c->rule && c->rule_text) {
		json_str(j, "rule", c->rule_text);
	} else if (c->rule && c->rule->at.file) {
		(void)snprintf(text, sizeof(text), "%.300s:%u",
			       c->rule->at.file, c->rule->at.line);
		json_str(j, "rule", text);
	}
}

/* The run of the box, if there was one: it has records of its own. */
static void put_who(struct json *j, const struct call *c)
{
	const json_t *id = json_object_get(c->outcome.result.detail, "id");

	json_open(j, NULL, '{');
	put_text(j, "run", json_string_value(id));
	json_str(j, "agent", c->agent && *c->agent ? c->agent : "-");
}

static void put_hash(struct json *j, const char *name, const char *text,
		     bool keeps_text)
{
	char sum[65];

	visible_sha256(text, strlen(text), sum);
	json_open(j, name, '{');
	json_str(j, "sha256", sum);
	json_int(j, "size", (int64_t)strlen(text));
	if (keeps_text)
		put_text(j, "text", text);
	json_close(j, '}');
}

/* By hash and size; of their bytes nothing. */
static void put_images(struct json *j, const json_t *content)
{
	bool has_one = false;
	size_t i;
	json_t *part;

	json_array_foreach(content, i, part)
	{
		const char *mime = json_string_value(
			json_object_get(part, "mime"));
		struct buf b;
		char sum[65];

		if (image_bytes(part, &b) == 0 && mime) {
			if (!has_one)
				json_open(j, "images", '[');
			has_one = true;
			visible_sha256(b.data ? b.data : "", b.len, sum);
			json_open(j, NULL, '{');
			json_str(j, "mime", mime);
			json_str(j, "sha256", sum);
			json_int(j, "size", (int64_t)b.len);
			json_close(j, '}');
		}
		buf_done(&b);
	}
	if (has_one)
		json_close(j, ']');
}

static int append(struct call *c, const char *kind, struct buf *b,
		  struct err *err)
{
	struct toolset *s = c->set;
	int r = b->error ? err_errno(err, -b->error, "record '%s'", kind) : 0;

	if (r == 0 && !s->ledger)
		r = ledger_open(NULL, &s->ledger, err);
	if (r == 0)
		r = ledger_append(s->ledger, kind, b->data, NULL, err);
	if (r == 0)
		r = ledger_sync(s->ledger, err);
	buf_done(b);
	return r;
}

int record_decision(struct call *c, struct err *err)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, MAX_RECORD);
	put_who(&j, c);
	json_str(&j, "what", "tool");
	put_text(&j, "subject", c->name);
	json_str(&j, "decision", decision_name(c->decision));
	put_rule(&j, c);
	put_text(&j, "reason", c->why);
	json_close(&j, '}');
	return append(c, "decision", &out, err);
}

static void put_approval(struct json *j, const struct call *c)
{
	if (!c->was_asked)
		return;
	json_str(j, "approval", c->answer.id[0] ? c->answer.id : "-");
	if (c->answer.is_allowed)
		put_text(j, "approved_by", c->answer.by);
}

int record_call(struct call *c, const char *status, struct err *err)
{
	const struct policy *p = c->set->policy;
	_cleanup_free_ char *text = result_all_text(&c->outcome.result);
	struct buf out;
	struct json j = { .out = &out };

	if (!text)
		return err_set(err, ENOMEM, "out of memory");
	buf_init(&out, MAX_RECORD);
	put_who(&j, c);
	put_text(&j, "tool", *c->name ? c->name : "-");
	if (c->tool && c->tool->kind && strcmp(c->tool->kind, c->name) != 0)
		json_str(&j, "tool_kind", c->tool->kind);
	json_str(&j, "decision", decision_name(c->decision));
	put_rule(&j, c);
	put_text(&j, "reason", c->why);
	put_approval(&j, c);
	json_str(&j, "status", status);
	put_text(&j, "call", c->id);
	put_text(&j, "task", c->run);
	put_hash(&j, "arguments", c->arguments,
		 policy_list_has(&p->keep_text, "code"));
	put_hash(&j, "result", text, false);
	put_images(&j, c->outcome.result.content);
	json_int(&j, "duration_ms", (clock_us() - c->begun) / 1000);
	json_close(&j, '}');
	return append(c, "tool.call", &out, err);
}
