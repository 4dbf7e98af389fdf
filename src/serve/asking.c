/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The preparer's side of a question (question.h).
 *
 * A person may take minutes. What was judged before is therefore judged again
 * after a yes, by the same policy, and goes on only if it leads to the very
 * same question, byte for byte: what was said yes to is what is run, and what
 * is known of volumes and images is of now.
 */

#include "serve/asking.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/sha256.h"
#include "base/util.h"
#include "box/images.h"
#include "serve/daemon.h"

#define MAX_REQUEST (2U << 20)
#define MAX_ANSWER  32768

/* ---- what else is said yes to ---- */

struct changes {
	struct strv lines;
	bool is_bad;
};

/* However many: the guard refuses what is too much to be shown. */
static void add(struct changes *c, const char *text)
{
	c->is_bad |= strv_add(&c->lines, text) < 0;
}

static void add_text(struct changes *c, const char *what, const char *text)
{
	struct buf b;

	buf_init(&b, 256 << 10);
	buf_printf(&b, "%s %s", what, text);
	if (b.error)
		c->is_bad = true;
	else
		add(c, b.data);
	buf_done(&b);
}

static void add_bind(struct changes *c, const struct spec_bind *b)
{
	char text[2 * 4096 + 32];

	(void)snprintf(text, sizeof(text), "mount %s -> %s %s", b->source,
		       b->target, b->mode == BIND_RW ? "rw" : "ro");
	add(c, text);
}

static void add_tmpfs(struct changes *c, const struct spec_tmpfs *t)
{
	char text[4096 + 64];

	(void)snprintf(text, sizeof(text), "tmpfs %s%s%s", t->target,
		       t->is_ro ? " ro" : "", t->is_noexec ? " noexec" : "");
	add(c, text);
}

/* All that makes the same words another program. */
static int list_changes(const struct cordon_spec *s, struct changes *c,
			struct err *err)
{
	char text[64];

	if (s->root)
		add_text(c, "image", s->root->id);
	(void)snprintf(text, sizeof(text), "%u:%u", s->uid, s->gid);
	add_text(c, "user", text);
	if (s->workdir)
		add_text(c, "directory", s->workdir);
	for (size_t i = 0; i < s->n_binds; i++)
		add_bind(c, &s->binds[i]);
	for (size_t i = 0; i < s->n_tmpfs; i++)
		add_tmpfs(c, &s->tmpfs[i]);
	for (size_t i = 0; i < s->env.n; i++)
		add_text(c, "variable", s->env.v[i]);
	for (size_t i = 0; i < s->allow_hosts.n; i++)
		add_text(c, "host", s->allow_hosts.v[i]);
	return c->is_bad ? err_set(err, ENOMEM, "out of memory") : 0;
}

/* ---- the question ---- */

static void read_all(int fd, struct buf *ret)
{
	char chunk[4096];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		/* What is too long is remembered, and not understood. */
		if (n < 0 || buf_add(ret, chunk, (size_t)n) < 0)
			break;
	}
}

static int send_question(const struct asking *a, const struct buf *doc,
			 int *ret_pipe, struct err *err)
{
	const struct ask ask = { .type = ORDER_ASKED, .is_short = a->is_short };
	_cleanup_fd_ int text = doc_seal(doc, err);
	_cleanup_fd_ int ours = NO_FD;
	_cleanup_fd_ int theirs = NO_FD;
	int pair[2];
	int fds[2];

	if (text < 0)
		return text;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	ours = pair[0];
	theirs = pair[1];
	/* As the desk reads it: from its beginning. */
	if (lseek(text, 0, SEEK_SET) < 0)
		return err_errno(err, errno, "write a question");
	fds[0] = text;
	fds[1] = theirs;
	if (io_send(a->sock, &ask, sizeof(ask), fds, 2) < 0)
		return err_set(err, EPIPE, "the daemon does not listen");
	*ret_pipe = take_fd(&ours);
	return 0;
}

static int hear(const struct asking *a, int out, struct approve_answer *ret,
		struct err *err)
{
	struct ask_end end;
	struct buf said;
	int fds[IO_MAX_FDS];
	int n = 0;
	int r;

	buf_init(&said, MAX_ANSWER);
	read_all(out, &said);
	if (io_recv(a->sock, &end, sizeof(end), 0, fds, &n) != sizeof(end)) {
		r = err_set(err, EPIPE, "the daemon does not answer");
	} else if (end.err.code) {
		end.err.text[sizeof(end.err.text) - 1] = '\0';
		*err = end.err;
		r = -err->code;
	} else {
		r = approve_understand(&said, end.status, ret, err);
	}
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
	buf_done(&said);
	if (r == -ETIME)
		return err_set(err, ETIME,
			       "asked, and not answered yet: 'cordon approvals "
			       "approve %s' by who runs the daemon, then ask "
			       "again",
			       ret->id);
	return r;
}

static int put_question(struct asking *a, const struct buf *doc,
			struct approve_answer *ret, struct err *err)
{
	_cleanup_fd_ int out = NO_FD;
	int r = send_question(a, doc, &out, err);

	if (r == 0)
		r = hear(a, out, ret, err);
	if (r == 0 && ret->is_allowed) {
		a->is_answered = true;
		a->answer = *ret;
	}
	return r;
}

static void digest(const struct buf *doc, unsigned char ret[SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, doc->data, doc->len);
	sha256_end(&s, ret);
}

/* For guard_ask_by(): the first time a person, then the answer to the same. */
static int ask(void *arg, const struct approve_request *req,
	       struct approve_answer *ret, struct err *err)
{
	struct asking *a = arg;
	unsigned char sum[SHA256_SIZE];
	struct buf doc;
	int r = 0;

	*ret = (struct approve_answer){ .scope = "once", .by = "cordon" };
	buf_init(&doc, MAX_REQUEST);
	approve_format(req, &doc);
	if (doc.error) {
		r = err_set(err, E2BIG,
			    "the request is too large to be shown to a person");
	} else if (!a->is_answered) {
		digest(&doc, a->sum);
		r = put_question(a, &doc, ret, err);
	} else {
		digest(&doc, sum);
		if (memcmp(sum, a->sum, sizeof(sum)) == 0)
			*ret = a->answer;
		else
			r = err_set(err, ESTALE,
				    "it is no longer what was asked about");
	}
	buf_done(&doc);
	return r;
}

/*
 * A box has of a list what is allowed, and what a person was asked about when
 * it was made: else what is allowed could start what asks. So of a program in
 * it nobody is asked in vain.
 */
static int check_there(const char *name, const struct request *q,
		       struct guard *g, struct err *err)
{
	for (size_t i = 0; i < q->programs.n; i++)
		if (strcmp(q->programs.v[i], name) == 0)
			return 0;
	g->refused = REFUSED_DENIED;
	return err_set(err, EPERM,
		       "'%.100s' needs a person's yes (%.200s), and is not in "
		       "this box; make one whose main program it is",
		       name, g->verdict.why);
}

static int check_all_there(const struct request *q, struct guard *g,
			   struct err *err)
{
	const struct cordon_spec *s = g->spec;
	int r = 0;

	if (!q->has_programs)
		return 0;
	for (size_t i = 0; r == 0 && i < s->n_line; i++)
		r = check_there(s->line[i].argv.v[0], q, g, err);
	if (r == 0 && s->command.n)
		r = check_there(s->command.v[0], q, g, err);
	for (size_t i = 0; r == 0 && i < s->n_blocks; i++)
		if (s->blocks[i].program)
			r = check_there(s->blocks[i].program, q, g, err);
	return r;
}

int asking_judge(struct asking *a, struct guard *g, const struct request *q,
		 struct err *err)
{
	struct changes c = { 0 };
	struct guard_asker asker = { .how = ask,
				     .arg = a,
				     .run = q->run,
				     .box = q->box[0] ? q->box : NULL,
				     .face = q->face };
	int r = check_all_there(q, g, err);

	if (r == 0)
		r = list_changes(g->spec, &c, err);
	asker.changes = (const char *const *)c.lines.v;
	if (r == 0)
		r = guard_ask_by(g, &asker, err);
	strv_done(&c.lines);
	return r;
}
