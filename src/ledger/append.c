/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writing the ledger.
 *
 * Theory of operation
 *
 * append: take the writer lock; read the marks; look whether the file ends
 * where the mark says and its last line has the hash that the mark has (so
 * that no record is chained to one that was changed a moment ago); write the
 * line in one call; move the mark *appended*; let go. If the file does not
 * end there, somebody died in between, or the power failed: recover.c.
 *
 * sync: whoever gets the sync lock first reads the mark *appended*, calls
 * fdatasync and moves the mark *synced* up to it. Those who waited for the
 * lock meanwhile find their own records covered, or the first of them syncs
 * for all the others. Records in older files are on the disk already, since a
 * file is synced before the next one is made. So one fdatasync is shared by
 * all who appended while the one before it was under way.
 *
 * When fdatasync fails, the kernel forgets which pages did not reach the disk
 * and the next call succeeds. So the failure is noted in the mark, and the
 * next writer writes everything since the last success once more.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "ledger/internal.h"
#include "ledger/kinds.h"
#include "ledger/line.h"

#define FILE_FLAGS (O_RDWR | O_APPEND | O_NOFOLLOW)

void ledger_file_name(uint32_t n, char ret[24])
{
	(void)snprintf(ret, 24, "%06u.jsonl", n);
}

/* A file, ours, and writable for nobody else; else it is closed again. */
static int check_file(struct ledger *l, const char *name, struct err *err)
{
	struct stat st;
	int r = 0;

	if (fstat(l->fd, &st) < 0)
		r = err_errno(err, errno, "look at '%s/%s'", l->dir, name);
	else if (!S_ISREG(st.st_mode))
		r = err_set(err, EPERM, "'%s/%s' is not a file", l->dir, name);
	else if (st.st_uid != geteuid() || (st.st_mode & 022))
		r = err_set(err, EPERM,
			    "'%s/%s' is not ours alone: it belongs to user %u, "
			    "mode %03o",
			    l->dir, name, st.st_uid, st.st_mode & 0777);
	if (r < 0)
		fd_close(&l->fd);
	return r;
}

int ledger_use_file(struct ledger *l, uint32_t n, struct err *err)
{
	char name[24];

	if (l->fd >= 0 && l->file == n)
		return 0;
	fd_close(&l->fd);
	ledger_file_name(n, name);
	l->fd = openat(l->dir_fd, name, FILE_FLAGS | O_CLOEXEC);
	if (l->fd < 0) {
		l->fd = NO_FD;
		return err_errno(err, errno, "open '%s/%s'", l->dir, name);
	}
	l->file = n;
	return check_file(l, name, err);
}

int ledger_new_file(struct ledger *l, uint32_t n, struct err *err)
{
	char name[24];

	fd_close(&l->fd);
	ledger_file_name(n, name);
	/* One that is there and empty was made by somebody who then died. */
	l->fd = openat(l->dir_fd, name, FILE_FLAGS | O_CREAT | O_CLOEXEC, 0600);
	if (l->fd < 0) {
		l->fd = NO_FD;
		return err_errno(err, errno, "make '%s/%s'", l->dir, name);
	}
	if (check_file(l, name, err) < 0)
		return -EPERM;
	if (fsync(l->dir_fd) < 0) {
		fd_close(&l->fd);
		return err_errno(err, errno, "sync '%s'", l->dir);
	}
	l->file = n;
	return 0;
}

int ledger_sync_mark(struct ledger *l, const struct mark *m,
		     struct mark *synced, struct err *err)
{
	uint64_t count = synced->count;
	int r;

	if (m->size == 0) /* a new file; the one before it is synced */
		return 0;
	r = ledger_use_file(l, m->file, err);
	if (r < 0)
		return r;
	if (fdatasync(l->fd) < 0) {
		r = err_errno(err, errno, "sync '%s/%06u.jsonl'", l->dir,
			      m->file);
		synced->is_broken = 1;
		(void)head_write(l->head, MARK_SYNCED, synced);
		return r;
	}
	*synced = *m;
	synced->count = count;
	synced->is_broken = 0;
	r = head_write(l->head, MARK_SYNCED, synced);
	/* The first one lasts: "nothing was ever synced" is then a lie. */
	if (r == 0 && count == 0 && fsync(l->head) < 0)
		r = -errno;
	return r < 0 ? err_errno(err, -r, "write '%s/head'", l->dir) : 0;
}

/* The writer lock is held, so nobody can be writing to the old file. */
static int next_file(struct ledger *l, struct mark *m, struct err *err)
{
	struct mark marks[MARKS];
	int r = head_lock(l->head, HEAD_SYNC, true);

	if (r < 0)
		return err_errno(err, -r, "lock '%s/head'", l->dir);
	r = head_read(l->head, marks);
	if (r < 0)
		r = err_errno(err, -r, "read '%s/head'", l->dir);
	else
		r = ledger_sync_mark(l, m, &marks[MARK_SYNCED], err);
	head_unlock(l->head, HEAD_SYNC);
	if (r < 0)
		return r;
	r = ledger_new_file(l, m->file + 1, err);
	if (r < 0)
		return r;
	m->file++;
	m->line_at = m->size = 0;
	l->is_due = true;
	/* Who dies after the write to it leaves a file that is too long. */
	r = head_write(l->head, MARK_APPENDED, m);
	return r < 0 ? err_errno(err, -r, "write '%s/head'", l->dir) : 0;
}

/* Where this fails too, the tail is torn and the next writer cuts it. */
static void undo(const struct ledger *l, uint64_t at)
{
	if (ftruncate(l->fd, (off_t)at) < 0)
		return;
}

/*
 * The line in the place of a torn end, then the rest of that is cut: who fails
 * or dies in between leaves an end that is still torn, so that it is not
 * forgotten.
 */
static int write_over(struct ledger *l, uint64_t at, struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	char name[24];
	ssize_t n = -1;

	ledger_file_name(l->file, name);
	/* pwrite to a descriptor with O_APPEND would append. */
	fd = openat(l->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		n = pwrite(fd, l->line.data, l->line.len, (off_t)at);
	if (n >= 0 && n != (ssize_t)l->line.len)
		errno = ENOSPC;
	if (n != (ssize_t)l->line.len ||
	    ftruncate(fd, (off_t)(at + l->line.len)) < 0)
		return err_errno(err, errno, "write '%s/%s'", l->dir, name);
	return 0;
}

/* All of the line or nothing of it. */
static int write_line(struct ledger *l, uint64_t at, struct err *err)
{
	ssize_t n;
	int code;

	if (l->is_over)
		return write_over(l, at, err);
	do
		n = write(l->fd, l->line.data, l->line.len);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)l->line.len)
		return 0;
	code = n < 0 ? errno : ENOSPC;
	if (n > 0)
		undo(l, at);
	return err_errno(err, code, "write '%s/%06u.jsonl'", l->dir, l->file);
}

int ledger_write(struct ledger *l, struct mark *m, const char *kind,
		 const char *members, size_t len, struct err *err)
{
	struct line_head head = { .seq = m->seq + 1, .kind = kind };
	struct mark next = *m;
	int r;

	memcpy(head.prev, m->hash, sizeof(head.prev));
	l->line.len = 0;
	l->line.error = 0;
	r = line_format(&l->line, &head, members, len);
	if (r < 0)
		return err_errno(err, -r, "record '%s'", kind);
	if (next.size > 0 && next.size + l->line.len > l->file_size) {
		r = next_file(l, &next, err);
		if (r < 0)
			return r;
	}
	r = ledger_use_file(l, next.file, err);
	if (r == 0)
		r = write_line(l, next.size, err);
	if (r < 0)
		return r;
	next.seq = head.seq;
	next.line_at = next.size;
	next.size += l->line.len;
	if (strcmp(kind, "seal") == 0) {
		next.sealed = next.seq;
		next.sealed_file = next.file;
		next.sealed_at = next.line_at;
	}
	line_hash(l->line.data, l->line.len - 1, next.hash);
	r = head_write(l->head, MARK_APPENDED, &next);
	if (r < 0) {
		undo(l, next.line_at);
		return err_errno(err, -r, "write '%s/head'", l->dir);
	}
	*m = next;
	return 0;
}

/*
 * After a power cut the mark may be older than a file that came after it.
 * One that is empty was made by somebody who then died.
 */
bool ledger_has_file(const struct ledger *l, uint32_t n)
{
	struct stat st;
	char name[24];

	ledger_file_name(n, name);
	return fstatat(l->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_size > 0;
}

/*
 * A handle may have been open for long: a file that no longer has its name is
 * nobody's record.
 */
static void drop_moved(struct ledger *l)
{
	struct stat have;
	struct stat named;
	char name[24];

	if (l->fd < 0)
		return;
	ledger_file_name(l->file, name);
	if (fstat(l->fd, &have) < 0 ||
	    fstatat(l->dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    have.st_dev != named.st_dev || have.st_ino != named.st_ino)
		fd_close(&l->fd);
}

/*
 * Whether the ledger ends where the mark says, with the record it says: 1,
 * 0, or -errno.
 */
static int is_at(struct ledger *l, const struct mark *m, struct err *err)
{
	unsigned char hash[SHA256_SIZE];
	uint64_t len = m->size - m->line_at;
	struct stat st;
	struct buf *b = &l->line;
	struct err why = { 0 };
	ssize_t n;
	int r;

	drop_moved(l);
	r = ledger_use_file(l, m->file, &why);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_set(err, why.code, "%s", why.text);
	if (fstat(l->fd, &st) < 0)
		return err_errno(err, errno, "look at '%s'", l->dir);
	if ((uint64_t)st.st_size != m->size || ledger_has_file(l, m->file + 1))
		return 0;
	if (m->size == 0) /* a new file */
		return 1;
	if (len < 2 || len > LINE_MAX_SIZE)
		return 0;
	b->len = 0;
	b->error = 0;
	/* Makes room: what is in it is overwritten. */
	while (b->cap < len + 1 && !b->error) {
		static const char none[1024];

		(void)buf_add(b, none, sizeof(none));
	}
	if (b->error)
		return err_errno(err, -b->error, "read '%s'", l->dir);
	n = pread(l->fd, b->data, len, (off_t)m->line_at);
	if (n < 0)
		return err_errno(err, errno, "read '%s'", l->dir);
	if ((uint64_t)n != len || b->data[len - 1] != '\n')
		return 0;
	line_hash(b->data, len - 1, hash);
	return memcmp(hash, m->hash, sizeof(hash)) == 0;
}

/* The writer lock is held. Afterwards `ret` is the end of the ledger. */
static int find_end(struct ledger *l, struct mark *ret, struct err *err)
{
	struct mark marks[MARKS];
	struct mark *m = &marks[MARK_APPENDED];
	int r = head_read(l->head, marks);

	if (r < 0)
		return err_errno(err, -r,
				 "read '%s/head': it is damaged; look with "
				 "'cordon audit verify', then move the "
				 "directory away and keep it",
				 l->dir);
	r = m->count && !marks[MARK_SYNCED].is_broken ? is_at(l, m, err) : 0;
	if (r < 0)
		return r;
	if (r == 0) {
		r = ledger_recover(l, marks, err);
		if (r < 0)
			return r;
	}
	*ret = *m;
	return 0;
}

/* The writer lock is held. */
static int append_locked(struct ledger *l, const char *kind,
			 ledger_make_fn make, void *arg, struct err *err)
{
	struct buf members;
	struct mark end = { 0 };
	int r = find_end(l, &end, err);

	if (r < 0)
		return r;
	buf_init(&members, LINE_MAX_SIZE);
	r = make(arg, end.seq + 1, end.hash, &members, err);
	if (r == 0)
		r = members.error;
	if (r == 0)
		r = kind_check(kind, members.data, members.len, err);
	if (r == 0) /* without its braces */
		r = ledger_write(l, &end, kind, members.data + 1,
				 members.len - 2, err);
	buf_done(&members);
	if (r < 0)
		return r;
	l->mine = end.seq;
	if (end.seq - MAX(end.sealed, l->told) >= LEDGER_SEAL_EVERY)
		l->is_due = true;
	return 0;
}

int ledger_append_made(struct ledger *l, const char *kind, ledger_make_fn make,
		       void *arg, uint64_t *ret_seq, struct err *err)
{
	int r = head_lock(l->head, HEAD_WRITER, true);

	if (r < 0)
		return err_errno(err, -r, "lock '%s/head'", l->dir);
	r = append_locked(l, kind, make, arg, err);
	head_unlock(l->head, HEAD_WRITER);
	if (r == 0 && ret_seq)
		*ret_seq = l->mine;
	return r;
}

static int make_copy(void *arg, uint64_t seq,
		     const unsigned char prev[SHA256_SIZE], struct buf *out,
		     struct err *err)
{
	int r = buf_puts(out, arg);

	(void)seq;
	(void)prev;
	return r < 0 ? err_errno(err, -r, "record") : 0;
}

int ledger_append(struct ledger *l, const char *kind, const char *members,
		  uint64_t *ret_seq, struct err *err)
{
	return ledger_append_made(l, kind, make_copy, (void *)members, ret_seq,
				  err);
}

int ledger_last_seal(struct ledger *l, uint64_t *ret_seq, uint32_t *ret_file,
		     uint64_t *ret_offset, struct err *err)
{
	struct mark marks[MARKS];
	int r = head_read(l->head, marks);

	if (r < 0)
		return err_errno(err, -r, "read '%s/head'", l->dir);
	*ret_seq = marks[MARK_APPENDED].sealed;
	*ret_file = *ret_seq ? marks[MARK_APPENDED].sealed_file : 1;
	*ret_offset = *ret_seq ? marks[MARK_APPENDED].sealed_at : 0;
	return 0;
}

int ledger_lock_seal(struct ledger *l)
{
	return head_lock(l->head, HEAD_SEAL, true);
}

static bool is_synced(const struct ledger *l, const struct mark *synced)
{
	return synced->seq >= l->mine && !synced->is_broken;
}

int ledger_sync(struct ledger *l, struct err *err)
{
	struct mark marks[MARKS];
	int r;

	if (l->mine == 0)
		return 0;
	if (head_read(l->head, marks) == 0 && is_synced(l, &marks[MARK_SYNCED]))
		return 0;
	r = head_lock(l->head, HEAD_SYNC, true);
	if (r < 0)
		return err_errno(err, -r, "lock '%s/head'", l->dir);
	r = head_read(l->head, marks);
	if (r < 0)
		r = err_errno(err, -r, "read '%s/head'", l->dir);
	else if (is_synced(l, &marks[MARK_SYNCED]))
		r = 0;
	else if (marks[MARK_SYNCED].is_broken)
		r = err_set(err, EIO, "sync '%s': an earlier sync of it failed",
			    l->dir);
	else if (marks[MARK_APPENDED].seq < l->mine)
		r = err_set(err, EBADMSG, "'%s/head' was set back", l->dir);
	else
		r = ledger_sync_mark(l, &marks[MARK_APPENDED],
				     &marks[MARK_SYNCED], err);
	head_unlock(l->head, HEAD_SYNC);
	return r;
}

bool ledger_take_seal_due(struct ledger *l)
{
	bool is_due = l->is_due;

	if (is_due)
		l->told = l->mine;
	l->is_due = false;
	return is_due;
}

void ledger_set_file_size(struct ledger *l, uint64_t size)
{
	l->file_size = size;
}
