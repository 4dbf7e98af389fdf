/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records as events of the Open Cybersecurity Schema Framework, 1.8.
 *
 * Runs are Process Activity (1007), connections Network Activity (4001), all
 * else API Activity (6003). type_uid is class_uid * 100 + activity_id. What
 * was allowed or denied is told by the profile security_control. The record
 * itself, with its hash chain, is in `unmapped`.
 */

#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"
#include "desk/audit.h"
#include "ledger/line.h"

struct event {
	const struct line *line;
	struct value record;
	struct json j;
	struct buf text;
};

static const struct class
{
	int uid;
	const char *name;
	int category;
	const char *category_name;
} process = { 1007, "Process Activity", 1, "System Activity" },
  network = { 4001, "Network Activity", 4, "Network Activity" },
  api = { 6003, "API Activity", 6, "Application Activity" };

static const struct mapping {
	const char *kind;
	const struct class *class;
	int activity;
	const char *activity_name;
} mappings[] = {
	{ "run.start", &process, 1, "Launch" },
	{ "run.end", &process, 2, "Terminate" },
	{ "connection", &network, 1, "Open" },
	{ "decision", &api, 99, "Decide" },
	{ "command", &api, 99, "Classify" },
	{ "approval.request", &api, 1, "Create" },
	{ "approval.answer", &api, 3, "Update" },
	{ "file.in", &api, 1, "Create" },
	{ "file.out", &api, 2, "Read" },
	{ "model.call", &api, 1, "Create" },
	{ "tool.call", &api, 99, "Call" },
	{ "message.filter", &api, 99, "Filter" },
	{ "seal", &api, 1, "Create" },
	{ "recovery", &api, 3, "Update" },
};

/* A member's text, NULL if there is none; until the next call. */
static const char *get(struct event *e, const char *name)
{
	struct value v;

	e->text.len = 0;
	if (!value_get(&e->record, name, &v) || value_type(&v) == 'n')
		return NULL;
	(void)value_text(&v, &e->text);
	return e->text.len ? e->text.data : "";
}

static void put_text(struct event *e, const char *as, const char *name)
{
	const char *t = get(e, name);

	if (t)
		json_str(&e->j, as, t);
}

static void put_int(struct event *e, const char *as, const char *name)
{
	struct value v;

	if (value_get(&e->record, name, &v) && value_type(&v) == '0')
		json_int(&e->j, as, value_int(&v, 0));
}

static bool is(struct event *e, const char *name, const char *text)
{
	struct value v;

	return value_get(&e->record, name, &v) && value_is(&v, text);
}

static void put_actor(struct event *e)
{
	json_open(&e->j, "actor", '{');
	json_str(&e->j, "app_name", "cordon");
	if (get(e, "agent")) {
		json_open(&e->j, "user", '{');
		put_text(e, "name", "agent");
		json_close(&e->j, '}');
	}
	json_close(&e->j, '}');
}

static void put_host(struct event *e, const char *name)
{
	char host[256] = "localhost";

	(void)gethostname(host, sizeof(host) - 1);
	json_open(&e->j, name, '{');
	json_str(&e->j, "hostname", host);
	if (strcmp(name, "device") == 0)
		json_int(&e->j, "type_id", 0);
	else
		put_text(e, "uid", "run");
	json_close(&e->j, '}');
}

static void put_command_line(struct event *e)
{
	struct value argv;
	struct value name;
	struct value item;
	struct buf line;

	if (!value_get(&e->record, "argv", &argv))
		return;
	buf_init(&line, 2U << 20);
	for (struct walk w = walk_start(&argv); walk_next(&w, &name, &item);) {
		bool is_first = line.len == 0;

		if (!is_first)
			buf_puts(&line, " ");
		(void)value_text(&item, &line);
		if (is_first && line.len)
			json_str(&e->j, "name", line.data);
	}
	if (line.len)
		json_bytes(&e->j, "cmd_line", line.data, line.len);
	buf_done(&line);
}

static void put_process(struct event *e)
{
	put_actor(e);
	put_host(e, "device");
	json_open(&e->j, "process", '{');
	put_text(e, "uid", "run");
	put_command_line(e);
	json_close(&e->j, '}');
	put_int(e, "exit_code", "exit_code");
}

static void put_network(struct event *e)
{
	const char *address;

	put_host(e, "src_endpoint");
	json_open(&e->j, "dst_endpoint", '{');
	put_text(e, "hostname", "host");
	address = get(e, "address");
	if (address)
		json_str(&e->j, "ip", address);
	put_int(e, "port", "port");
	json_close(&e->j, '}');
	json_open(&e->j, "connection_info", '{');
	json_int(&e->j, "direction_id", 2);
	json_str(&e->j, "direction", "Outbound");
	if (is(e, "protocol", "dns")) {
		json_int(&e->j, "protocol_num", 17);
		json_str(&e->j, "protocol_name", "udp");
	} else {
		json_int(&e->j, "protocol_num", 6);
		json_str(&e->j, "protocol_name", "tcp");
	}
	json_close(&e->j, '}');
	if (!get(e, "bytes_in") && !get(e, "bytes_out"))
		return;
	json_open(&e->j, "traffic", '{');
	put_int(e, "bytes_in", "bytes_in");
	put_int(e, "bytes_out", "bytes_out");
	json_close(&e->j, '}');
}

static void put_api(struct event *e, const char *kind)
{
	const char *service = NULL;

	put_actor(e);
	put_host(e, "src_endpoint");
	json_open(&e->j, "api", '{');
	if (get(e, "tool"))
		put_text(e, "operation", "tool");
	else if (get(e, "model"))
		put_text(e, "operation", "model");
	else
		json_str(&e->j, "operation", kind);
	service = get(e, "provider");
	json_open(&e->j, "service", '{');
	json_str(&e->j, "name", service ? service : "cordon");
	json_close(&e->j, '}');
	json_close(&e->j, '}');
}

/* 1 allowed, 2 denied; 0 where nothing was decided. */
static int action(struct event *e)
{
	return is(e, "decision", "deny")    ? 2
	       : is(e, "decision", "allow") ? 1
					    : 0;
}

static void put_outcome(struct event *e)
{
	int what = action(e);
	bool failed = what == 2 || is(e, "status", "error") ||
		      is(e, "status", "timeout") ||
		      is(e, "status", "resource_exceeded");

	json_int(&e->j, "severity_id", what == 2 ? 2 : 1);
	json_str(&e->j, "severity", what == 2 ? "Low" : "Informational");
	json_int(&e->j, "status_id", failed ? 2 : 1);
	json_str(&e->j, "status", failed ? "Failure" : "Success");
	put_text(e, "status_detail", "cause");
	if (what) {
		json_int(&e->j, "action_id", what);
		json_str(&e->j, "action", what == 1 ? "Allowed" : "Denied");
		json_int(&e->j, "disposition_id", what);
		json_str(&e->j, "disposition",
			 what == 1 ? "Allowed" : "Blocked");
	}
}

static void put_metadata(struct event *e)
{
	char uid[2 * SHA256_SIZE + 1];
	unsigned char hash[SHA256_SIZE];

	line_hash(e->line->text, e->line->len, hash);
	hex_format(hash, sizeof(hash), uid);
	json_open(&e->j, "metadata", '{');
	json_str(&e->j, "version", "1.8.0");
	json_open(&e->j, "product", '{');
	json_str(&e->j, "name", "Cordon");
	json_str(&e->j, "vendor_name", "Cordon");
	json_str(&e->j, "version", CORDON_VERSION);
	json_close(&e->j, '}');
	if (action(e)) {
		json_open(&e->j, "profiles", '[');
		json_str(&e->j, NULL, "security_control");
		json_close(&e->j, ']');
	}
	json_str(&e->j, "uid", uid);
	json_int(&e->j, "sequence", (int64_t)e->line->seq);
	json_bytes(&e->j, "event_code", e->line->kind, e->line->kind_len);
	json_bytes(&e->j, "original_time", e->line->time, LINE_TIME);
	json_close(&e->j, '}');
}

static const struct mapping *mapping_of(const struct line *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(mappings); i++)
		if (strlen(mappings[i].kind) == line->kind_len &&
		    memcmp(mappings[i].kind, line->kind, line->kind_len) == 0)
			return &mappings[i];
	return NULL;
}

static void put_class(struct event *e, const struct mapping *m)
{
	int activity = m->activity;
	const char *name = m->activity_name;

	if (m->class == &network && action(e) == 2) {
		activity = 5;
		name = "Refuse";
	}
	json_int(&e->j, "category_uid", m->class->category);
	json_str(&e->j, "category_name", m->class->category_name);
	json_int(&e->j, "class_uid", m->class->uid);
	json_str(&e->j, "class_name", m->class->name);
	json_int(&e->j, "activity_id", activity);
	json_str(&e->j, "activity_name", name);
	json_int(&e->j, "type_uid", m->class->uid * 100 + activity);
	json_int(&e->j, "time", line_time_us(e->line->time) / 1000);
}

void ocsf_event(const char *text, size_t len, struct buf *out)
{
	struct line line;
	const struct mapping *m;
	struct event e = { .line = &line,
			   .record = { text, len },
			   .j = { .out = out } };

	if (line_parse(text, len, &line) < 0)
		return;
	m = mapping_of(&line);
	if (!m)
		return;
	buf_init(&e.text, 4U << 20);
	json_open(&e.j, NULL, '{');
	put_class(&e, m);
	put_outcome(&e);
	put_metadata(&e);
	record_summary(&e.record, m->kind, (e.text.len = 0, &e.text));
	json_bytes(&e.j, "message", e.text.data ? e.text.data : "", e.text.len);
	if (m->class == &process)
		put_process(&e);
	else if (m->class == &network)
		put_network(&e);
	else
		put_api(&e, m->kind);
	json_open(&e.j, "unmapped", '{');
	buf_puts(out, "\"record\":");
	buf_add(out, text, len);
	json_close(&e.j, '}');
	json_close(&e.j, '}');
	buf_done(&e.text);
}
