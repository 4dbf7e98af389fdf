/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/util.h"
#include "desk/doc.h"
#include "desk/pattern.h"

#define MAX_FILE (8U << 20)
#define NEW_NAME RULES_NAME ".new"

/* All are strings; the first so many are always there. */
#define NEEDED 8
static const struct {
	const char *name;
	size_t at;
} fields[] = {
#define FIELD(name)                                                            \
	{                                                                      \
#name, offsetof(struct rule, name)                             \
	}
	FIELD(id),       FIELD(content),   FIELD(kind), FIELD(what),
	FIELD(rule),     FIELD(by),        FIELD(when), FIELD(reason),
	FIELD(decision), FIELD(expires),   FIELD(user), FIELD(agent),
	FIELD(frame),    FIELD(arguments),
};

static char **rule_field(const struct rule *r, size_t i)
{
	return (char **)((uintptr_t)r + fields[i].at);
}

#define READ(field)                                                            \
	static int read_##field(struct fy_node *node, void *to,                \
				struct err *err)                               \
	{                                                                      \
		return doc_string(node, &((struct rule *)to)->field, err);     \
	}
READ(id)
READ(kind)
READ(what)
READ(rule)
READ(by)
READ(when)
READ(reason)
READ(user)
READ(agent)

static int read_content(struct fy_node *node, void *to, struct err *err)
{
	return doc_sha256(node, &((struct rule *)to)->content, err);
}

static int read_frame(struct fy_node *node, void *to, struct err *err)
{
	return doc_sha256(node, &((struct rule *)to)->frame, err);
}

static int read_decision(struct fy_node *node, void *to, struct err *err)
{
	struct rule *r = to;

	if (doc_string(node, &r->decision, err) < 0)
		return -err->code;
	return strcmp(r->decision, "deny") == 0
		       ? 0
		       : err_set(err, EINVAL, "only deny is known");
}

static int read_expires(struct fy_node *node, void *to, struct err *err)
{
	struct rule *r = to;
	int64_t ms;

	if (doc_string(node, &r->expires, err) < 0)
		return -err->code;
	return rule_time_parse(r->expires, &ms) == 0
		       ? 0
		       : err_set(err, EINVAL, "not a time");
}

static int read_arguments(struct fy_node *node, void *to, struct err *err)
{
	struct rule *r = to;
	json_t *pattern;

	if (doc_string(node, &r->arguments, err) < 0)
		return -err->code;
	pattern = pattern_parse(r->arguments, err);
	json_decref(pattern);
	return pattern ? 0 : -err->code;
}

static int read_rule_of(struct fy_node *node, struct rule *ret, struct err *err)
{
	static const struct doc_key keys[] = {
		{ "id", true, read_id },
		{ "content", true, read_content },
		{ "kind", true, read_kind },
		{ "what", true, read_what },
		{ "rule", true, read_rule },
		{ "by", true, read_by },
		{ "when", true, read_when },
		{ "reason", true, read_reason },
		{ "decision", false, read_decision },
		{ "expires", false, read_expires },
		{ "user", false, read_user },
		{ "agent", false, read_agent },
		{ "frame", false, read_frame },
		{ "arguments", false, read_arguments },
	};

	if (doc_mapping(node, keys, ARRAY_SIZE(keys), ret, err) < 0)
		return -err->code;
	return !ret->frame == !ret->arguments
		       ? 0
		       : err_set(err, EINVAL,
				 "'frame' and 'arguments' go together");
}

static int read_one(struct fy_node *node, void *to, struct err *err)
{
	struct rules *r = to;
	struct rule *v = realloc(r->v, (r->n + 1) * sizeof(*v));

	if (!v)
		return err_set(err, ENOMEM, "out of memory");
	r->v = v;
	v[r->n] = (struct rule){ 0 };
	return read_rule_of(node, &v[r->n++], err);
}

static int read_rules(struct fy_node *node, void *to, struct err *err)
{
	return doc_list(node, RULES_MAX, read_one, to, err);
}

static int read_version(struct fy_node *node, void *to, struct err *err)
{
	uint64_t version = 0;

	(void)to;
	if (doc_uint(node, 1, &version, err) < 0 || version != 1)
		return err_set(err, EINVAL, "only 1 is known");
	return 0;
}

static int parse(const char *text, size_t len, struct rules *ret,
		 struct err *err)
{
	static const struct doc_key keys[] = {
		{ "version", true, read_version },
		{ "rules", true, read_rules },
	};
	struct doc d;
	int r = doc_open(&d, text, len, err);

	if (r < 0)
		return r;
	r = doc_mapping(doc_root(&d), keys, ARRAY_SIZE(keys), ret, err);
	doc_close(&d);
	return r;
}

static int load(const struct state *s, struct rules *ret, struct err *err)
{
	_cleanup_fd_ int fd = state_file(s, RULES_NAME, O_RDONLY, err);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0 || st.st_size > MAX_FILE)
		return err_set(err, EFBIG, "larger than %u bytes", MAX_FILE);
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return err_set(err, ENOMEM, "out of memory");
	n = io_read_full(fd, text, (size_t)st.st_size + 1);
	if (n < 0 || n > st.st_size)
		return err_errno(err, n < 0 ? (int)-n : EBUSY, "read");
	return parse(text, (size_t)n, ret, err);
}

int rules_load(const struct state *s, struct rules *ret, struct err *err)
{
	int r;

	*ret = (struct rules){ 0 };
	r = load(s, ret, err);
	if (r == 0)
		return 0;
	rules_done(ret);
	return err_wrap(err, "rules '%s/%s'", s->path, RULES_NAME);
}

void rule_done(struct rule *r)
{
	for (size_t k = 0; k < ARRAY_SIZE(fields); k++)
		free(*rule_field(r, k));
	*r = (struct rule){ 0 };
}

void rules_done(struct rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		rule_done(&r->v[i]);
	free(r->v);
	*r = (struct rules){ 0 };
}

int rule_parse(const char *text, size_t len, struct rule *ret, struct err *err)
{
	struct doc d;
	int r = doc_open(&d, text, len, err);

	*ret = (struct rule){ 0 };
	if (r < 0)
		return r;
	r = read_rule_of(doc_root(&d), ret, err);
	doc_close(&d);
	if (r < 0)
		rule_done(ret);
	return r;
}

/* matching */

int rule_time_parse(const char *text, int64_t *ret_ms)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

	if (!end || *end)
		return -EINVAL;
	*ret_ms = (int64_t)timegm(&tm) * 1000;
	return 0;
}

bool rule_is_deny(const struct rule *r)
{
	return r->decision;
}

bool rule_is_over(const struct rule *r, int64_t now)
{
	int64_t at = 0;

	return r->expires &&
	       (rule_time_parse(r->expires, &at) < 0 || now >= at);
}

static bool pattern_holds(const struct rule *r, const struct rule_subject *s)
{
	const char *frame = rule_is_deny(r) ? s->wide : s->frame;
	json_t *pattern;
	bool ret;

	if (!frame || strcmp(r->frame, frame) != 0)
		return false;
	pattern = pattern_parse(r->arguments, NULL);
	if (rule_is_deny(r))
		ret = !pattern || pattern_denies(pattern, s->arguments);
	else
		ret = pattern && pattern_allows(pattern, s->arguments);
	json_decref(pattern);
	return ret;
}

const struct rule *rules_find(const struct rules *r,
			      const struct rule_subject *s, bool is_deny)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct rule *one = &r->v[i];

		if (rule_is_deny(one) != is_deny || rule_is_over(one, s->now))
			continue;
		if (one->arguments ? pattern_holds(one, s)
				   : strcmp(one->content, s->content) == 0)
			return one;
	}
	return NULL;
}

/* writing */

static void format_one(struct json *j, const struct rule *r)
{
	json_open(j, NULL, '{');
	for (size_t k = 0; k < ARRAY_SIZE(fields); k++) {
		const char *text = *rule_field(r, k);

		if (text || k < NEEDED)
			json_exact(j, fields[k].name, text ? text : "",
				   text ? strlen(text) : 0);
	}
	json_close(j, '}');
	j->comma = false;
}

void rule_format(const struct rule *r, struct buf *out)
{
	struct json j = { .out = out };

	format_one(&j, r);
}

/* One rule a line, so that people can read and compare it. */
static void format(const struct rules *r, const struct rule *add,
		   const char *without, struct buf *out)
{
	struct json j = { .out = out };
	bool any = false;

	buf_puts(out, "{\"version\": 1, \"rules\": [");
	for (size_t i = 0; i <= r->n; i++) {
		const struct rule *one = i < r->n ? &r->v[i] : add;

		if (!one || (without && strcmp(one->id, without) == 0))
			continue;
		buf_puts(out, any ? ",\n" : "\n");
		format_one(&j, one);
		any = true;
	}
	buf_puts(out, "\n]}\n");
}

static int replace(const struct state *s, const struct buf *text,
		   struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	int r;

	if (text->error || text->len > MAX_FILE)
		return err_set(err, EFBIG, "too many rules");
	(void)unlinkat(s->fd, NEW_NAME, 0);
	fd = state_file(s, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL, err);
	if (fd < 0)
		return fd;
	r = io_write_all(fd, text->data, text->len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(s->fd, NEW_NAME, s->fd, RULES_NAME) < 0)
		r = -errno;
	if (r == 0 && fsync(s->fd) < 0)
		r = -errno;
	return r < 0 ? err_errno(err, -r, "write '%s/%s'", s->path, RULES_NAME)
		     : 0;
}

static int change(const struct state *s, const struct rule *add,
		  const char *without, struct err *err)
{
	_cleanup_fd_ int lock = state_file(s, "rules.lock", O_RDWR | O_CREAT,
					   err);
	struct rules have = { 0 };
	struct buf text;
	int r;

	if (lock < 0)
		return lock;
	if (flock(lock, LOCK_EX) < 0)
		return err_errno(err, errno, "lock the rules");
	r = rules_load(s, &have, err);
	if (r < 0)
		return r;
	if (add && have.n >= RULES_MAX) {
		rules_done(&have);
		return err_set(err, E2BIG, "there are %d rules already",
			       RULES_MAX);
	}
	buf_init(&text, MAX_FILE + 4096);
	format(&have, add, without, &text);
	r = replace(s, &text, err);
	buf_done(&text);
	rules_done(&have);
	return r;
}

int rules_add(const struct state *s, const struct rule *add, struct err *err)
{
	return change(s, add, NULL, err);
}

int rules_remove(const struct state *s, const char *id, struct err *err)
{
	struct rules have;
	bool found = false;
	int r = rules_load(s, &have, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < have.n; i++)
		found |= strcmp(have.v[i].id, id) == 0;
	rules_done(&have);
	if (!found)
		return err_set(err, ENOENT, "there is no rule '%.64s'", id);
	return change(s, NULL, id, err);
}
