/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/verify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "ledger/merkle.h"
#include "ledger/reader.h"

static const char *const fault_names[] = {
	[VERIFY_INTACT] = "intact",         [VERIFY_EDITED] = "edited",
	[VERIFY_MISSING] = "missing",       [VERIFY_REORDERED] = "reordered",
	[VERIFY_DUPLICATED] = "duplicated", [VERIFY_TRUNCATED] = "truncated",
	[VERIFY_SEAL] = "bad seal",
};
_Static_assert(ARRAY_SIZE(fault_names) == VERIFY_FAULTS, "a name for each");

const char *verify_fault_name(enum verify_fault fault)
{
	return fault_names[fault];
}

struct check {
	const struct verify_options *o;
	struct verify_result *ret;
	struct reader reader;
	int head;
	struct mark marks[MARKS];
	unsigned char last[SHA256_SIZE]; /* hash of the record before */
	uint64_t seq;                    /* of the record before */
	struct raw_line before;          /* its place */
	struct merkle tree;
	uint64_t tree_from;
};

/* Notes what is wrong; returns 1, which ends the reading. */
PRINTF(5, 6)
static int fault(struct check *c, enum verify_fault what, uint64_t seq,
		 const struct raw_line *raw, const char *fmt, ...)
{
	struct verify_result *v = c->ret;
	va_list ap;

	v->fault = what;
	v->bad = seq;
	v->file = raw->file;
	v->offset = raw->offset;
	va_start(ap, fmt);
	(void)vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
	return 1;
}

/* Whether a record with that number comes later. */
static bool comes_later(struct check *c, uint64_t seq)
{
	struct raw_line raw;
	struct line line;

	while (reader_next(&c->reader, &raw) > 0 && !raw.is_torn)
		if (line_peek(raw.text, raw.len, &line) == 0 && line.seq == seq)
			return true;
	return false;
}

static int wrong_seq(struct check *c, const struct line *line,
		     const struct raw_line *raw)
{
	struct raw_line at = *raw;
	uint64_t want = c->seq + 1;
	uint64_t have = line->seq;

	if (have < want)
		return fault(c, VERIFY_DUPLICATED, have, &at,
			     "record %llu stands again behind record %llu",
			     (unsigned long long)have,
			     (unsigned long long)c->seq);
	if (comes_later(c, want))
		return fault(c, VERIFY_REORDERED, want, &at,
			     "record %llu stands behind record %llu",
			     (unsigned long long)want,
			     (unsigned long long)have);
	return fault(c, VERIFY_MISSING, want, &at,
		     "record %llu is missing: record %llu follows record %llu",
		     (unsigned long long)want, (unsigned long long)have,
		     (unsigned long long)c->seq);
}

/* What the marks say about this record. */
static int check_marks(struct check *c, const struct line *line,
		       const unsigned char *hash, const struct raw_line *raw)
{
	for (int i = 0; i < MARKS; i++) {
		const struct mark *m = &c->marks[i];

		if (m->count && m->seq == line->seq &&
		    memcmp(m->hash, hash, SHA256_SIZE) != 0)
			return fault(c, VERIFY_EDITED, line->seq, raw,
				     "record %llu is not the one that was "
				     "written (file 'head')",
				     (unsigned long long)line->seq);
	}
	return 0;
}

static int check_seal(struct check *c, const struct line *line,
		      const struct raw_line *raw)
{
	unsigned char root[SHA256_SIZE];
	struct verify_seal s = { .line = line,
				 .root = root,
				 .head = c->last,
				 .from = c->tree_from,
				 .to = c->seq };
	struct err err = { 0 };

	merkle_root(&c->tree, root);
	if (c->o->on_seal && c->o->on_seal(c->o->arg, &s, &err) < 0)
		return fault(c, VERIFY_SEAL, line->seq, raw, "seal %llu: %s",
			     (unsigned long long)line->seq, err.text);
	c->ret->sealed = c->seq;
	c->ret->seals++;
	merkle_init(&c->tree);
	c->tree_from = line->seq;
	return 0;
}

static int check_line(struct check *c, const struct raw_line *raw)
{
	unsigned char hash[SHA256_SIZE];
	struct line line;
	int r;

	if (line_parse(raw->text, raw->len, &line) < 0)
		return fault(c, VERIFY_EDITED, c->seq + 1, raw,
			     "record %llu is not as it was written: its line "
			     "does not fit its checksum or its form",
			     (unsigned long long)c->seq + 1);
	if (line.seq != c->seq + 1)
		return wrong_seq(c, &line, raw);
	if (memcmp(line.prev, c->last, SHA256_SIZE) != 0) {
		if (c->seq == 0)
			return fault(c, VERIFY_EDITED, 1, raw,
				     "record 1 names a record before it");
		return fault(c, VERIFY_EDITED, c->seq, &c->before,
			     "record %llu was changed: record %llu has another "
			     "hash of it",
			     (unsigned long long)c->seq,
			     (unsigned long long)line.seq);
	}
	line_hash(raw->text, raw->len, hash);
	r = check_marks(c, &line, hash, raw);
	if (r == 0 && line.kind_len == 4 && memcmp(line.kind, "seal", 4) == 0)
		r = check_seal(c, &line, raw);
	if (r == 0 && c->o->on_record)
		r = c->o->on_record(c->o->arg, &line, hash, raw->file,
				    raw->offset);
	if (r)
		return r;
	merkle_add(&c->tree, hash);
	memcpy(c->last, hash, sizeof(hash));
	c->seq = line.seq;
	c->before = *raw;
	c->before.text = NULL;
	c->ret->records++;
	c->ret->bytes += raw->len + 1;
	c->ret->files = raw->file;
	return 0;
}

static int torn(struct check *c, const struct raw_line *raw)
{
	c->ret->is_torn = c->seq >= c->marks[MARK_SYNCED].seq;
	return fault(
		c, VERIFY_TRUNCATED, c->seq + 1, raw,
		"%zu bytes behind record %llu are not a whole line%s", raw->len,
		(unsigned long long)c->seq,
		c->ret->is_torn && c->head >= 0
			? "; nothing that was acknowledged is missing, and "
			  "the next run cuts them"
			: "");
}

/*
 * A line without its end may be one that is just being written: it is read
 * again while nobody writes.
 */
static int read_torn(struct check *c, struct raw_line *raw)
{
	bool is_locked = c->head >= 0 &&
			 head_lock(c->head, HEAD_WRITER, true) == 0;
	int n;

	reader_again(&c->reader, raw);
	n = reader_next(&c->reader, raw);
	if (is_locked)
		head_unlock(c->head, HEAD_WRITER);
	return n;
}

static int check_lines(struct check *c, struct err *err)
{
	struct raw_line raw;
	int n;

	while ((n = reader_next(&c->reader, &raw)) > 0) {
		int r;

		if (raw.is_torn)
			n = read_torn(c, &raw);
		if (n <= 0)
			break;
		r = raw.is_torn ? torn(c, &raw) : check_line(c, &raw);
		if (r)
			return r;
	}
	if (n == -EMEDIUMTYPE) {
		/* The one that is open is good; else it is the first. */
		raw = (struct raw_line){ .file = c->reader.file +
						 (c->reader.fd >= 0) };
		return fault(c, VERIFY_MISSING, c->seq + 1, &raw,
			     "record %llu is missing: '%06u.jsonl' is not a "
			     "file",
			     (unsigned long long)c->seq + 1, raw.file);
	}
	if (n < 0)
		return err_errno(err, -n, "read '%s/%06u.jsonl'", c->o->dir,
				 c->reader.file);
	return 0;
}

/* The end: nothing that was acknowledged may be missing. */
static int check_end(struct check *c)
{
	const struct mark *m = &c->marks[MARK_SYNCED];
	struct raw_line at = c->before;

	if (c->head >= 0 && !head_check(c->head))
		return fault(c, VERIFY_EDITED, c->seq, &at,
			     "the file 'head' is damaged");
	/* The first mark lasts before anything is sealed. */
	if (c->head >= 0 && m->seq == 0 && c->ret->seals > 0)
		return fault(c, VERIFY_EDITED, c->seq, &at,
			     "the file 'head' was emptied: whether records "
			     "are missing at the end is not known");
	if (m->seq <= c->seq)
		return 0;
	return fault(c, VERIFY_TRUNCATED, c->seq + 1, &at,
		     "record %llu was acknowledged, and the ledger ends with "
		     "record %llu",
		     (unsigned long long)m->seq, (unsigned long long)c->seq);
}

static int open_head(struct check *c, struct err *err)
{
	struct stat st;
	char path[4200];
	int r;

	(void)snprintf(path, sizeof(path), "%s/head", c->o->dir);
	c->head = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (c->head < 0 && (errno == EACCES || errno == EROFS))
		c->head = open(path,
			       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (c->head < 0 && errno == ENOENT)
		return 0;
	if (c->head < 0 && errno != ELOOP && errno != EISDIR)
		return err_errno(err, errno, "open '%s'", path);
	if (c->head < 0 || fstat(c->head, &st) < 0 || !S_ISREG(st.st_mode))
		return fault(c, VERIFY_EDITED, 0, &c->before,
			     "'head' is not a file");
	c->ret->has_head = true;
	r = head_read(c->head, c->marks);
	if (r == -EBADMSG)
		return fault(c, VERIFY_EDITED, 0, &c->before,
			     "the file 'head' is damaged");
	return r < 0 ? err_errno(err, -r, "read '%s'", path) : 0;
}

/* The number in a name NNNNNN.jsonl, 0 if it is none. */
static uint32_t file_number(const char *name)
{
	char again[24];
	unsigned long n = strtoul(name, NULL, 10);

	if (n == 0 || n > UINT32_MAX)
		return 0;
	(void)snprintf(again, sizeof(again), "%06lu.jsonl", n);
	return strcmp(name, again) == 0 ? (uint32_t)n : 0;
}

/* The next file behind those that were read, 0 if there is none. */
static int find_rest(struct check *c, uint32_t *ret, struct err *err)
{
	DIR *dir = opendir(c->o->dir);
	struct dirent *e;
	struct stat st;

	*ret = 0;
	if (!dir)
		return err_errno(err, errno, "open '%s'", c->o->dir);
	while ((e = readdir(dir))) {
		uint32_t n = file_number(e->d_name);

		if (n < c->reader.file || (*ret && n >= *ret) ||
		    (c->reader.fd >= 0 && n == c->reader.file))
			continue;
		if (fstatat(c->reader.dir_fd, e->d_name, &st,
			    AT_SYMLINK_NOFOLLOW) == 0 &&
		    (st.st_size > 0 || !S_ISREG(st.st_mode)))
			*ret = n;
	}
	(void)closedir(dir);
	return 0;
}

/* A file that nothing leads to: one before it is gone. */
static int check_rest(struct check *c, struct err *err)
{
	struct raw_line at = { 0 };
	int r = find_rest(c, &at.file, err);

	if (r < 0 || at.file == 0)
		return r;
	return fault(c, VERIFY_MISSING, c->seq + 1, &at,
		     "record %llu is missing: '%06u.jsonl' is there, and the "
		     "file before it is not",
		     (unsigned long long)c->seq + 1, at.file);
}

int verify(const struct verify_options *o, struct verify_result *ret,
	   struct err *err)
{
	struct check c = { .o = o, .ret = ret, .head = NO_FD, .tree_from = 1 };
	int r;

	*ret = (struct verify_result){ 0 };
	merkle_init(&c.tree);
	r = reader_open(&c.reader, o->dir, 1, 0, err);
	if (r < 0)
		return r;
	r = open_head(&c, err);
	if (r == 0)
		r = check_lines(&c, err);
	if (r == 0)
		r = check_rest(&c, err);
	if (r == 0)
		r = check_end(&c);
	reader_close(&c.reader);
	fd_close(&c.head);
	return r < 0 ? r : 0;
}
