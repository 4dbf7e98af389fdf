/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of the ledger after a crash.
 *
 * Everything up to the mark *synced* was on the disk, and somebody may have
 * been told so: it must be there, unchanged. Behind it every whole record
 * that follows in the chain is kept, whoever wrote it. What comes then is a
 * write that did not finish. It was never acknowledged, so it is cut, and a
 * record says how much and what hash it had.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"
#include "ledger/internal.h"
#include "ledger/line.h"

struct damage {
	uint32_t file;
	uint64_t at;
	uint64_t bytes; /* cut */
	uint64_t lost;  /* records that were written and are not there */
	uint64_t again; /* bytes written once more */
	unsigned char hash[SHA256_SIZE]; /* of the bytes cut */
};

static int refuse(const struct ledger *l, const char *what, uint64_t seq,
		  struct err *err)
{
	return err_set(err, EBADMSG,
		       "ledger '%s': record %llu %s; nothing is written to it "
		       "any more: look with 'cordon audit verify', then move "
		       "the directory away and keep it",
		       l->dir, (unsigned long long)seq, what);
}

static int64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -errno : (int64_t)st.st_size;
}

/*
 * Takes the line that begins where `m` ends, if it is whole and follows: 1.
 * 0: there is none such.
 */
static int take_line(struct ledger *l, struct mark *m, char *room)
{
	struct line line;
	size_t want = 8192;
	char *end = NULL;
	ssize_t n;

	for (;; want *= 16) {
		want = MIN(want, (size_t)LINE_MAX_SIZE);
		n = pread(l->fd, room, want, (off_t)m->size);
		if (n < 0)
			return -errno;
		end = memchr(room, '\n', (size_t)n);
		if (end || (size_t)n < want || want == LINE_MAX_SIZE)
			break;
	}
	if (!end || line_parse(room, (size_t)(end - room), &line) < 0)
		return 0;
	if (line.seq != m->seq + 1 ||
	    memcmp(line.prev, m->hash, sizeof(line.prev)) != 0)
		return 0;
	m->seq = line.seq;
	m->line_at = m->size;
	m->size += line.len + 1;
	if (line.kind_len == 4 && memcmp(line.kind, "seal", 4) == 0) {
		m->sealed = line.seq;
		m->sealed_file = m->file;
		m->sealed_at = m->line_at;
	}
	line_hash(line.text, line.len, m->hash);
	return 1;
}

/* The record of the mark is there, with its hash. */
static int check_synced(struct ledger *l, const struct mark *m, char *room,
			struct err *err)
{
	unsigned char hash[SHA256_SIZE];
	uint64_t len = m->size - m->line_at;
	ssize_t n;

	if (ledger_use_file(l, m->file, NULL) < 0)
		return refuse(l, "was acknowledged and its file is gone",
			      m->seq, err);
	if (len < 2 || len > LINE_MAX_SIZE)
		return refuse(l, "has no place", m->seq, err);
	n = pread(l->fd, room, len, (off_t)m->line_at);
	if (n < 0)
		return err_errno(err, errno, "read '%s'", l->dir);
	if ((uint64_t)n < len)
		return refuse(l, "was acknowledged and is gone", m->seq, err);
	line_hash(room, len - 1, hash);
	if (room[len - 1] != '\n' || memcmp(hash, m->hash, sizeof(hash)) != 0)
		return refuse(l, "was changed after it was acknowledged",
			      m->seq, err);
	return 0;
}

/* Everything behind `from` of this file once more, so that it is dirty. */
static int write_again(struct ledger *l, uint64_t from, char *room,
		       struct damage *d, struct err *err)
{
	char name[24];
	_cleanup_fd_ int fd = NO_FD;

	ledger_file_name(l->file, name);
	/* pwrite to a descriptor with O_APPEND would append. */
	fd = openat(l->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_errno(err, errno, "open '%s/%s'", l->dir, name);
	for (;;) {
		ssize_t n = pread(fd, room, LINE_MAX_SIZE, (off_t)from);

		if (n == 0)
			return 0;
		if (n < 0 || pwrite(fd, room, (size_t)n, (off_t)from) != n)
			return err_errno(err, n < 0 ? errno : EIO,
					 "write '%s/%s' again", l->dir, name);
		from += (uint64_t)n;
		d->again += (uint64_t)n;
	}
}

/* Notes what is behind `m`; the record of it takes its place. */
static int measure(struct ledger *l, const struct mark *m, char *room,
		   struct damage *d, struct err *err)
{
	struct sha256 s;
	uint64_t at = m->size;
	ssize_t n;

	sha256_init(&s);
	while ((n = pread(l->fd, room, LINE_MAX_SIZE, (off_t)at)) > 0) {
		sha256_add(&s, room, (size_t)n);
		at += (uint64_t)n;
	}
	if (n < 0)
		return err_errno(err, errno, "read '%s/%06u.jsonl'", l->dir,
				 m->file);
	sha256_end(&s, d->hash);
	d->file = m->file;
	d->at = m->size;
	d->bytes = at - m->size;
	return 0;
}

/* Moves `m` over all whole records; notes what is behind them. */
static int walk(struct ledger *l, struct mark *m, char *room, struct damage *d,
		struct err *err)
{
	for (;;) {
		int64_t size;
		int r;

		r = ledger_use_file(l, m->file, err);
		if (r < 0)
			return r;
		while ((r = take_line(l, m, room)) > 0)
			;
		size = size_of(l->fd);
		if (r < 0 || size < 0)
			return err_errno(err, r < 0 ? -r : (int)-size,
					 "read '%s'", l->dir);
		if ((uint64_t)size < m->size)
			return refuse(l, "was acknowledged and is gone", m->seq,
				      err);
		if (!ledger_has_file(l, m->file + 1)) {
			if ((uint64_t)size > m->size)
				return measure(l, m, room, d, err);
			return 0;
		}
		/* A file is whole and synced before the next is made. */
		if ((uint64_t)size > m->size)
			return refuse(l, "is followed by something else",
				      m->seq, err);
		m->file++;
		m->size = 0;
	}
}

static int record(struct ledger *l, struct mark *m, const struct damage *d,
		  struct err *err)
{
	char hash[2 * SHA256_SIZE + 1];
	char name[24];
	struct buf out;
	struct json j = { .out = &out };
	int r;

	buf_init(&out, 4096);
	ledger_file_name(d->file ? d->file : m->file, name);
	hex_format(d->hash, sizeof(d->hash), hash);
	json_str(&j, "file", name);
	json_int(&j, "offset", (int64_t)(d->bytes ? d->at : m->size));
	json_int(&j, "bytes", (int64_t)d->bytes);
	if (d->bytes)
		json_str(&j, "sha256", hash);
	if (d->lost)
		json_int(&j, "lost", (int64_t)d->lost);
	if (d->again)
		json_int(&j, "rewritten", (int64_t)d->again);
	json_str(&j, "reason",
		 d->bytes   ? "a write did not finish"
		 : d->again ? "a sync failed"
			    : "records that were not synced are gone");
	r = out.error ? err_errno(err, -out.error, "recovery record")
		      : ledger_write(l, m, "recovery", out.data, out.len, err);
	buf_done(&out);
	return r;
}

/* The sync lock is held too: nobody counts on what is moved here. */
static int recover(struct ledger *l, struct mark marks[MARKS], char *room,
		   struct err *err)
{
	struct mark *appended = &marks[MARK_APPENDED];
	struct mark *synced = &marks[MARK_SYNCED];
	struct damage d = { 0 };
	struct mark m = { .file = 1 };
	int r = 0;

	if (synced->count && synced->seq) {
		r = check_synced(l, synced, room, err);
		m = *synced;
	} else {
		r = ledger_new_file(l, 1, err);
	}
	if (r == 0 && synced->is_broken) {
		r = ledger_use_file(l, m.file, err);
		if (r == 0)
			r = write_again(l, m.size, room, &d, err);
	}
	if (r == 0)
		r = walk(l, &m, room, &d, err);
	if (r < 0)
		return r;
	if (appended->count && appended->seq > m.seq)
		d.lost = appended->seq - m.seq;
	m.count = appended->count;
	m.is_broken = 0;
	if (d.bytes || d.lost || d.again) {
		uint64_t size = l->file_size;

		/* Not in a new file: making one takes the lock held here. */
		l->file_size = UINT64_MAX;
		l->is_over = true;
		r = record(l, &m, &d, err);
		l->is_over = false;
		l->file_size = size;
		if (r == 0)
			r = ledger_sync_mark(l, &m, synced, err);
	}
	*appended = m;
	return r;
}

int ledger_recover(struct ledger *l, struct mark marks[MARKS], struct err *err)
{
	_cleanup_free_ char *room = malloc(LINE_MAX_SIZE);
	int r;

	if (!room)
		return err_errno(err, ENOMEM, "recover '%s'", l->dir);
	r = head_lock(l->head, HEAD_SYNC, true);
	if (r < 0)
		return err_errno(err, -r, "lock '%s/head'", l->dir);
	/* Somebody may have synced since the marks were read. */
	r = head_read(l->head, marks);
	if (r < 0)
		r = err_errno(err, -r, "read '%s/head'", l->dir);
	else
		r = recover(l, marks, room, err);
	head_unlock(l->head, HEAD_SYNC);
	return r;
}
