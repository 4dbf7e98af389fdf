/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How programs of a box ended, for the next front.
 *
 * Beside a box's note (notes.c) there is a file ID.execs: one line, a JSON
 * object, for each program that has ended, the newest last. It is only added
 * to; above twice BOX_BYTES the newer half is written anew. What a line does
 * not hold (LINE_BYTES) is the command's arguments, which are left out then. A
 * line that is torn, as by a crash, is passed over.
 *
 *	id run command exit_code cause user tty stdin stdout stderr
 *	started_ns finished_ns out_bytes err_bytes dropped_bytes
 *
 * The next front reads the last BOX_BYTES bytes of each box, and of one user
 * OWNER_BYTES: they are known as long as the box is. A box that is removed at
 *its end has no use for it, and no file.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/say.h"
#include "base/util.h"
#include "front/doc.h"
#include "front/exec.h"

#define BOX_BYTES   65536
#define LINE_BYTES  4096
#define OWNER_BYTES ((size_t)8 << 20)

static void file_name(const char *box, const char *end, char ret[80])
{
	(void)snprintf(ret, 80, "%.64s.execs%s", box, end);
}

/* ---- writing ---- */

static void put_line(struct buf *out, const struct exec *e, size_t n_words)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_str(&j, "id", e->id);
	json_str(&j, "run", e->run);
	json_open(&j, "command", '[');
	for (size_t i = 0; i < n_words; i++)
		json_str(&j, NULL, e->command.v[i]);
	json_close(&j, ']');
	json_int(&j, "exit_code", e->exit_code);
	if (e->cause)
		json_str(&j, "cause", e->cause);
	if (e->user)
		json_str(&j, "user", e->user);
	json_bool(&j, "tty", e->tty);
	json_bool(&j, "stdin", e->has_stdin);
	json_bool(&j, "stdout", e->has_stdout);
	json_bool(&j, "stderr", e->has_stderr);
	json_int(&j, "started_ns", e->started_ns);
	json_int(&j, "finished_ns", e->finished_ns);
	json_int(&j, "out_bytes", (int64_t)e->out_bytes);
	json_int(&j, "err_bytes", (int64_t)e->err_bytes);
	json_int(&j, "dropped_bytes", (int64_t)e->dropped);
	json_close(&j, '}');
	(void)buf_puts(out, "\n");
}

/* With all words, or the first, or none: what fits. */
static int make_line(struct buf *out, const struct exec *e)
{
	const size_t tries[] = { e->command.n, MIN(e->command.n, (size_t)1),
				 0 };

	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		buf_init(out, LINE_BYTES);
		put_line(out, e, tries[i]);
		if (!out->error)
			return 0;
		buf_done(out);
	}
	return -E2BIG;
}

/* The last lines of a file, whole ones; NULL with errno, or if it is empty. */
static char *read_last(int fd)
{
	struct stat st;
	char *text;
	off_t from;
	ssize_t n;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return NULL;
	from = MAX(st.st_size - BOX_BYTES, (off_t)0);
	text = malloc(BOX_BYTES + 1);
	if (!text)
		return NULL;
	if (lseek(fd, from, SEEK_SET) < 0 ||
	    (n = io_read_full(fd, text, BOX_BYTES)) < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	if (from > 0) {
		const char *start = memchr(text, '\n', (size_t)n);
		size_t skip = start ? (size_t)(start - text) + 1 : (size_t)n;

		memmove(text, text + skip, (size_t)n - skip + 1);
	}
	return text;
}

static int shorten(const struct box *b, int fd)
{
	int dir = b->m->boxes_fd;
	_cleanup_free_ char *text = read_last(fd);
	_cleanup_fd_ int to = NO_FD;
	char tmp[80], name[80];
	int r;

	file_name(b->id, ".tmp", tmp);
	file_name(b->id, "", name);
	to = openat(dir, tmp,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (!text || to < 0)
		return -errno;
	r = io_write_all(to, text, strlen(text));
	if (r == 0 && renameat(dir, tmp, dir, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, tmp, 0);
	return r;
}

static int add_line(const struct box *b, const struct buf *line)
{
	char name[80];
	_cleanup_fd_ int fd = NO_FD;
	struct stat st;
	int r;

	file_name(b->id, "", name);
	fd = openat(b->m->boxes_fd, name,
		    O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, line->data, line->len);
	if (r == 0 && fstat(fd, &st) == 0 && st.st_size > 2 * BOX_BYTES)
		r = shorten(b, fd);
	return r;
}

void exec_note(const struct exec *e)
{
	const struct box *b = e->box;
	struct buf line;
	int r;

	if (b->auto_remove || !b->is_made || b->state == BOX_GONE)
		return;
	r = make_line(&line, e);
	if (r == 0) {
		r = add_line(b, &line);
		buf_done(&line);
	}
	if (r < 0)
		say("how a program in box %.12s ended could not be noted: %s",
		    b->id, strerror(-r));
}

void exec_notes_remove(const struct box *b)
{
	char name[80];

	file_name(b->id, "", name);
	(void)unlinkat(b->m->boxes_fd, name, 0);
}

bool exec_notes_name(const char *name)
{
	return strlen(name) == 70 && strcmp(name + 64, ".execs") == 0;
}

/* ---- reading ---- */

static size_t bytes_of(const struct manager *m, uid_t owner)
{
	size_t n = 0;

	for (const struct box *b = m->boxes; b; b = b->next)
		for (const struct past *p = b->owner == owner ? b->past : NULL;
		     p; p = p->next)
			n += p->size;
	return n;
}

static void load_line(struct box *b, const char *text, size_t len, size_t *left)
{
	struct err unused;
	json_t *o = doc_parse(text, len, &unused);
	struct past *p = o ? past_parse(b, o) : NULL;

	json_decref(o);
	if (p && p->size <= *left) {
		*left -= p->size;
		p->next = b->past;
		b->past = p;
	} else if (p) {
		past_free(p);
	}
}

void exec_notes_load(struct box *b)
{
	char name[80];
	_cleanup_fd_ int fd = NO_FD;
	_cleanup_free_ char *text = NULL;
	size_t left = OWNER_BYTES - MIN(OWNER_BYTES, bytes_of(b->m, b->owner));

	file_name(b->id, "", name);
	fd = openat(b->m->boxes_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	text = fd < 0 ? NULL : read_last(fd);
	for (const char *p = text; p && *p;) {
		size_t len = strcspn(p, "\n");

		load_line(b, p, len, &left);
		p += len + (p[len] == '\n');
	}
}
