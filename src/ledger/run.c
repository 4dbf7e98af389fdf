/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The members of run.start and run.end, from plain structures.
 *
 * What a caller can make long is cut here, with its size told, so that no
 * request is too long to be recorded.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "ledger/ledger.h"
#include "ledger/line.h"
#include "ledger/redact.h"

#define MAX_MEMBERS (768U << 10)
#define MAX_ITEM    4096        /* of an argument or a value */
#define MAX_ITEMS   256         /* of a list */
#define MAX_TEXT    (64U << 10) /* of kept code */

static void put_sha256(struct json *j, const char *name, const void *data,
		       size_t len)
{
	unsigned char hash[SHA256_SIZE];
	char hex[2 * SHA256_SIZE + 1];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, data, len);
	sha256_end(&s, hash);
	hex_format(hash, sizeof(hash), hex);
	json_str(j, name, hex);
}

/* A list may fill the record up to `eighth` parts of eight of its ceiling. */
static bool has_room(const struct json *j, size_t n, size_t eighth)
{
	return n < MAX_ITEMS && j->out->len < MAX_MEMBERS / 8 * eighth;
}

static void put_cut(struct json *j, const char *name, const char *text)
{
	json_bytes(j, name, text, strnlen(text, MAX_ITEM));
}

static void put_known(struct json *j, const char *name, const char *text)
{
	if (text)
		put_cut(j, name, text);
}

static void put_redacted(struct json *j, const char *name, const char *text)
{
	struct buf b;

	if (!text)
		return;
	buf_init(&b, MAX_MEMBERS);
	if (redact(&b, text, strlen(text)) < 0)
		j->out->error = b.error;
	json_bytes(j, name, b.data ? b.data : "", MIN(b.len, (size_t)MAX_ITEM));
	buf_done(&b);
}

static void put_names(struct json *j, const char *name, names_t v)
{
	json_open(j, name, '[');
	for (size_t i = 0; v && v[i] && has_room(j, i, 7); i++)
		put_cut(j, NULL, v[i]);
	json_close(j, ']');
}

/*
 * A secret is taken out before the text is cut: half a token no longer looks
 * like one. Very long text is cut before too, or its redaction would take
 * as long as it likes; a word at that cut is left out.
 */
static void put_item(struct json *j, const char *name, const char *before,
		     const char *text)
{
	size_t whole = strlen(text);
	size_t len = whole;
	struct buf b;

	if (len > 4 * (size_t)MAX_ITEM) {
		len = 4 * (size_t)MAX_ITEM;
		while (len > 0 && (unsigned char)text[len - 1] > ' ')
			len--;
	}
	buf_init(&b, 32 * (size_t)MAX_ITEM);
	if (name)
		(void)redact_variable(&b, name, strlen(name), text, len);
	else
		(void)redact_argument(&b, before, text, len);
	if (b.len > MAX_ITEM) {
		b.len = MAX_ITEM;
		b.data[b.len] = '\0';
	}
	if (b.error)
		j->out->error = b.error;
	else if (len < whole || b.len == MAX_ITEM)
		buf_printf(&b, "[of %zu bytes]", whole);
	json_bytes(j, name, b.data ? b.data : "", b.len);
	buf_done(&b);
}

/* What cannot be shown as it is can still be told from anything else. */
static void put_argv_hash(struct json *j, names_t argv)
{
	unsigned char hash[SHA256_SIZE];
	char hex[2 * SHA256_SIZE + 1];
	struct sha256 s;

	sha256_init(&s);
	for (size_t i = 0; argv[i]; i++)
		sha256_add(&s, argv[i], strlen(argv[i]) + 1);
	sha256_end(&s, hash);
	hex_format(hash, sizeof(hash), hex);
	json_str(j, "argv_sha256", hex);
}

static bool is_shown(const char *text)
{
	size_t len = strlen(text);

	return len < MAX_ITEM && utf8_check(text, len);
}

static void put_argv(struct json *j, names_t argv, bool is_hidden)
{
	bool is_exact = true;
	size_t n = 0;

	json_open(j, "argv", '[');
	for (; !is_hidden && argv[n] && has_room(j, n, 1); n++) {
		is_exact = is_exact && is_shown(argv[n]);
		put_item(j, NULL, n > 0 ? argv[n - 1] : NULL, argv[n]);
	}
	json_close(j, ']');
	if (argv[n]) {
		while (argv[n])
			n++;
		json_int(j, "argc", (int64_t)n);
		is_exact = false;
	}
	if (!is_exact)
		put_argv_hash(j, argv);
}

static void put_env(struct json *j, names_t env)
{
	size_t more = 0;
	size_t i = 0;

	json_open(j, "env", '{');
	for (; env[i] && has_room(j, i, 3); i++) {
		const char *eq = strchr(env[i], '=');
		size_t len = eq ? (size_t)(eq - env[i]) : 0;
		char name[128];

		if (len == 0)
			continue;
		len = MIN(len, sizeof(name) - 1);
		memcpy(name, env[i], len);
		name[len] = '\0';
		put_item(j, name, NULL, eq + 1);
	}
	for (; env[i]; i++)
		more++;
	if (more)
		json_int(j, "[more]", (int64_t)more);
	json_close(j, '}');
}

/* All of it without its secrets, or nothing. */
static void put_text(struct json *j, const char *text, size_t len)
{
	struct buf b;

	if (len > MAX_TEXT)
		return;
	buf_init(&b, 4 * (size_t)MAX_TEXT);
	(void)redact(&b, text, len);
	if (!b.error && b.len < MAX_MEMBERS / 16)
		json_bytes(j, "text", b.data ? b.data : "", b.len);
	buf_done(&b);
}

static void put_code(struct json *j, const struct ledger_run_start *r)
{
	/* Each block, whatever of its text finds room: it will be run. */
	json_open(j, "code", '[');
	for (size_t i = 0; i < r->n_code; i++) {
		const struct ledger_code *c = &r->code[i];

		json_open(j, NULL, '{');
		put_known(j, "lang", c->lang);
		put_sha256(j, "sha256", c->text, c->len);
		json_int(j, "size", (int64_t)c->len);
		if (r->keep_code && has_room(j, i, 2))
			put_text(j, c->text, c->len);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_mounts(struct json *j, const struct ledger_run_start *r)
{
	json_open(j, "mounts", '[');
	for (size_t i = 0; i < r->n_mounts && has_room(j, i, 6); i++) {
		const struct ledger_mount *m = &r->mounts[i];

		json_open(j, NULL, '{');
		put_known(j, "source", m->source);
		put_known(j, "target", m->target);
		put_known(j, "mode", m->mode);
		if (m->size)
			json_int(j, "size", (int64_t)m->size);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_wall(struct json *j, const struct ledger_run_start *r)
{
	put_mounts(j, r);
	json_open(j, "network", '{');
	json_str(j, "mode", r->network && r->network[0] ? "allow" : "none");
	put_names(j, "allow", r->network);
	json_close(j, '}');
	json_open(j, "user", '{');
	json_int(j, "uid", r->uid);
	json_int(j, "gid", r->gid);
	json_close(j, '}');
	json_open(j, "limits", '{');
	for (size_t i = 0; i < r->n_limits; i++)
		json_int(j, r->limits[i].name, (int64_t)r->limits[i].value);
	json_close(j, '}');
	put_names(j, "layers", r->layers);
	put_names(j, "not_enforced", r->not_enforced);
}

static char *finish(struct buf *out)
{
	if (out->error) {
		buf_done(out);
		return NULL;
	}
	return buf_take(out);
}

/* What only the daemon's runs have. */
static void put_peer(struct json *j, const char *box, const char *face,
		     int64_t peer)
{
	put_known(j, "box", box);
	put_known(j, "face", face);
	if (box && peer >= 0)
		json_int(j, "peer", peer);
}

char *ledger_run_start_members(const struct ledger_run_start *r)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, MAX_MEMBERS);
	json_open(&j, NULL, '{');
	put_known(&j, "run", r->run);
	put_peer(&j, r->box, r->face, r->peer);
	put_redacted(&j, "name", r->name);
	put_redacted(&j, "agent", r->agent);
	put_known(&j, "decision", r->decision);
	put_known(&j, "rule", r->rule);
	put_redacted(&j, "reason", r->reason);
	put_known(&j, "approval", r->approval);
	put_redacted(&j, "approved_by", r->approved_by);
	if (r->policy_file || r->policy_sha256) {
		json_open(&j, "policy", '{');
		put_known(&j, "file", r->policy_file);
		put_known(&j, "sha256", r->policy_sha256);
		json_close(&j, '}');
	}
	if (r->argv)
		put_argv(&j, r->argv, r->hide_argv);
	if (r->n_code)
		put_code(&j, r);
	if (r->env)
		put_env(&j, r->env);
	put_known(&j, "workdir", r->workdir);
	put_known(&j, "image", r->image);
	put_known(&j, "isolation", r->isolation);
	put_wall(&j, r);
	json_close(&j, '}');
	return finish(&out);
}

static void put_stream(struct json *j, const char *name,
		       const struct ledger_stream *s, bool keep_text)
{
	json_open(j, name, '{');
	json_int(j, "bytes", (int64_t)s->bytes);
	json_int(j, "kept", (int64_t)s->len);
	put_sha256(j, "sha256", s->kept ? s->kept : "", s->len);
	if (keep_text && s->kept)
		put_text(j, s->kept, s->len);
	json_close(j, '}');
}

static void put_usage(struct json *j, const struct ledger_run_end *r)
{
	json_open(j, "usage", '{');
	json_int(j, "wall_ms", (int64_t)r->wall_ms);
	json_int(j, "cpu_ms", (int64_t)r->cpu_ms);
	json_int(j, "memory_peak", (int64_t)r->memory_peak);
	json_int(j, "pids_peak", (int64_t)r->pids_peak);
	json_int(j, "oom_kills", (int64_t)r->oom_kills);
	json_int(j, "pids_refused", (int64_t)r->pids_refused);
	json_close(j, '}');
}

char *ledger_run_end_members(const struct ledger_run_end *r)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, MAX_MEMBERS);
	json_open(&j, NULL, '{');
	put_known(&j, "run", r->run);
	put_peer(&j, r->box, r->face, r->peer);
	put_known(&j, "agent", r->agent);
	put_known(&j, "status", r->status);
	put_known(&j, "cause", r->cause);
	json_int(&j, "exit_code", r->exit_code);
	if (r->signal)
		json_int(&j, "signal", r->signal);
	put_redacted(&j, "message", r->message);
	put_usage(&j, r);
	put_stream(&j, "stdout", &r->out, r->keep_output);
	put_stream(&j, "stderr", &r->err, r->keep_output);
	json_open(&j, "denials", '[');
	for (size_t i = 0; i < r->n_denials && has_room(&j, i, 5); i++) {
		json_open(&j, NULL, '{');
		put_known(&j, "layer", r->denials[i].layer);
		put_redacted(&j, "what", r->denials[i].what);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	put_names(&j, "not_enforced", r->not_enforced);
	json_close(&j, '}');
	return finish(&out);
}

static int append_and_sync(struct ledger *l, const char *kind, char *members,
			   struct err *err)
{
	_cleanup_free_ char *owned = members;
	int r;

	if (!owned)
		return err_errno(err, ENOMEM, "record '%s'", kind);
	r = ledger_append(l, kind, owned, NULL, err);
	return r < 0 ? r : ledger_sync(l, err);
}

int ledger_run_start(struct ledger *l, const struct ledger_run_start *r,
		     struct err *err)
{
	return append_and_sync(l, "run.start", ledger_run_start_members(r),
			       err);
}

int ledger_run_end(struct ledger *l, const struct ledger_run_end *r,
		   struct err *err)
{
	return append_and_sync(l, "run.end", ledger_run_end_members(r), err);
}
