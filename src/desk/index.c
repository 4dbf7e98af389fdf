/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "ledger/kinds.h"
#include "ledger/reader.h"

#define VERSION 1
#define MAX_SUM 200

static const char schema[] =
	"PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"
	"PRAGMA cache_size=-65536;"
	"CREATE TABLE IF NOT EXISTS record(seq INTEGER PRIMARY KEY,"
	" time INT, kind INT, run TEXT, agent TEXT, decision TEXT, what TEXT,"
	" file INT, offset INT, len INT);"
	"CREATE INDEX IF NOT EXISTS by_run ON record(run) WHERE run <> '';"
	"CREATE TABLE IF NOT EXISTS place(one INTEGER PRIMARY KEY, seq INT,"
	" file INT, offset INT, hash BLOB);";

static int fail(struct index *x, const char *what, struct err *err)
{
	return err_set(err, EIO, "index of '%s': %s: %s", x->dir, what,
		       x->db ? sqlite3_errmsg(x->db) : "out of memory");
}

static void path_of(const struct index *x, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s/index.sqlite", x->dir);
}

static int try_open(struct index *x, const char *path, bool anew)
{
	char version[64];
	sqlite3_stmt *q = NULL;
	int have = -1;

	if (sqlite3_open_v2(path, &x->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
			    NULL) != SQLITE_OK)
		return -EIO;
	(void)sqlite3_busy_timeout(x->db, 10000);
	if (sqlite3_prepare_v2(x->db, "PRAGMA user_version", -1, &q, NULL) ==
		    SQLITE_OK &&
	    sqlite3_step(q) == SQLITE_ROW)
		have = sqlite3_column_int(q, 0);
	(void)sqlite3_finalize(q);
	/* Kinds are numbers in it: one more of them makes another version. */
	(void)snprintf(version, sizeof(version), "PRAGMA user_version=%d",
		       VERSION * 1000 + (int)n_kinds);
	if (have < 0 || (have != 0 && have != VERSION * 1000 + (int)n_kinds) ||
	    (have != 0 && anew))
		return -ESTALE;
	if (sqlite3_exec(x->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(x->db, version, NULL, NULL, NULL) != SQLITE_OK)
		return -EIO;
	return 0;
}

static void shut(struct index *x)
{
	(void)sqlite3_close(x->db);
	x->db = NULL;
}

/* Made by us, so that nobody else can read it. */
static int make_private(const char *path, struct err *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_errno(err, errno, "make '%s'", path);
	(void)close(fd);
	return 0;
}

static int open_in_memory(struct index *x, struct err *err)
{
	return try_open(x, ":memory:", false) < 0 ? fail(x, "open", err) : 0;
}

static int open_db(struct index *x, bool anew, struct err *err)
{
	char path[4200];
	int r;

	path_of(x, path, sizeof(path));
	if (access(x->dir, W_OK) < 0)
		return open_in_memory(x, err);
	r = make_private(path, err);
	if (r < 0 || try_open(x, path, anew) == 0)
		return r;
	shut(x);
	if (unlink(path) < 0)
		return err_errno(err, errno, "remove '%s'", path);
	r = make_private(path, err);
	if (r == 0 && try_open(x, path, false) < 0)
		r = fail(x, "open", err);
	return r;
}

struct place {
	uint64_t seq;
	uint32_t file;
	uint64_t offset;
	unsigned char hash[SHA256_SIZE];
};

static int place_load(struct index *x, struct place *p)
{
	sqlite3_stmt *q = NULL;
	int r = sqlite3_prepare_v2(x->db,
				   "SELECT seq, file, offset, hash FROM place",
				   -1, &q, NULL);

	*p = (struct place){ .file = 1 };
	if (r == SQLITE_OK)
		r = sqlite3_step(q);
	if (r == SQLITE_ROW &&
	    sqlite3_column_bytes(q, 3) == (int)sizeof(p->hash)) {
		p->seq = (uint64_t)sqlite3_column_int64(q, 0);
		p->file = (uint32_t)sqlite3_column_int64(q, 1);
		p->offset = (uint64_t)sqlite3_column_int64(q, 2);
		memcpy(p->hash, sqlite3_column_blob(q, 3), sizeof(p->hash));
	}
	(void)sqlite3_finalize(q);
	return r == SQLITE_ROW || r == SQLITE_DONE ? 0 : -EIO;
}

static int place_store(struct index *x, const struct place *p)
{
	sqlite3_stmt *q = NULL;
	int r = sqlite3_prepare_v2(
		x->db, "INSERT OR REPLACE INTO place VALUES(1, ?, ?, ?, ?)", -1,
		&q, NULL);

	if (r == SQLITE_OK) {
		(void)sqlite3_bind_int64(q, 1, (sqlite3_int64)p->seq);
		(void)sqlite3_bind_int64(q, 2, p->file);
		(void)sqlite3_bind_int64(q, 3, (sqlite3_int64)p->offset);
		(void)sqlite3_bind_blob(q, 4, p->hash, sizeof(p->hash),
					SQLITE_STATIC);
		r = sqlite3_step(q);
	}
	(void)sqlite3_finalize(q);
	return r == SQLITE_DONE ? 0 : -EIO;
}

static void bind_text(sqlite3_stmt *q, int at, const struct value *v,
		      struct buf *b)
{
	/* Nearly always without an escape: the text itself. */
	if (v->len >= 2 && !memchr(v->p, '\\', v->len)) {
		(void)sqlite3_bind_text(q, at, v->p + 1, (int)v->len - 2,
					SQLITE_STATIC);
		return;
	}
	b->len = 0;
	if (v->len)
		(void)value_text(v, b);
	(void)sqlite3_bind_text(q, at, b->len ? b->data : "", (int)b->len,
				SQLITE_TRANSIENT);
}

/* run, agent and decision, in one walk. */
static void bind_members(sqlite3_stmt *q, const struct value *record,
			 struct buf *b)
{
	static const char *const names[] = { "run", "agent", "decision" };
	struct value found[ARRAY_SIZE(names)] = { 0 };
	struct value name;
	struct value v;

	for (struct walk w = walk_start(record); walk_next(&w, &name, &v);)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (value_type(&v) == '"' && value_is(&name, names[i]))
				found[i] = v;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		bind_text(q, 4 + (int)i, &found[i], b);
}

static int kind_number(const struct line *line)
{
	const struct kind *k = kind_find(line->kind, line->kind_len);

	return k ? (int)(k - kinds) : -1;
}

static int insert(sqlite3_stmt *q, const struct raw_line *raw,
		  const struct line *line, struct buf *b)
{
	struct value record = { raw->text, raw->len };
	int kind = kind_number(line);

	(void)sqlite3_reset(q);
	(void)sqlite3_bind_int64(q, 1, (sqlite3_int64)line->seq);
	(void)sqlite3_bind_int64(q, 2, line_time_us(line->time));
	(void)sqlite3_bind_int(q, 3, kind);
	bind_members(q, &record, b);
	b->len = 0;
	record_summary(&record, kind < 0 ? "" : kinds[kind].name, b);
	if (b->len > MAX_SUM) {
		b->len = MAX_SUM;
		while (b->len > 0 && (b->data[b->len] & 0xc0) == 0x80)
			b->len--;
	}
	(void)sqlite3_bind_text(q, 7, b->len ? b->data : "", (int)b->len,
				SQLITE_TRANSIENT);
	(void)sqlite3_bind_int64(q, 8, raw->file);
	(void)sqlite3_bind_int64(q, 9, (sqlite3_int64)raw->offset);
	(void)sqlite3_bind_int64(q, 10, (sqlite3_int64)raw->len);
	return sqlite3_step(q) == SQLITE_DONE ? 0 : -EIO;
}

static int read_on(struct index *x, struct place *p, struct reader *r,
		   sqlite3_stmt *q)
{
	struct raw_line raw;
	struct line line;
	struct buf b;
	int n;

	buf_init(&b, 4U << 20);
	while ((n = reader_next(r, &raw)) > 0 && !raw.is_torn) {
		if (line_parse(raw.text, raw.len, &line) < 0 ||
		    line.seq != p->seq + 1 ||
		    memcmp(line.prev, p->hash, SHA256_SIZE) != 0) {
			x->is_stopped = true;
			(void)snprintf(x->note, sizeof(x->note),
				       "record %llu is not as it was written; "
				       "what follows is left out: look with "
				       "'cordon audit verify'",
				       (unsigned long long)p->seq + 1);
			break;
		}
		n = insert(q, &raw, &line, &b);
		if (n < 0)
			break;
		p->seq = line.seq;
		p->file = raw.file;
		p->offset = raw.offset + raw.len + 1;
		line_hash(raw.text, raw.len, p->hash);
	}
	buf_done(&b);
	return n < 0 ? n : 0;
}

/* The place of the last record that it has. */
static int last_row(struct index *x, const struct place *p,
		    struct index_row *ret)
{
	sqlite3_stmt *q = NULL;
	int r = sqlite3_prepare_v2(x->db,
				   "SELECT file, offset, len FROM record WHERE "
				   "seq = (SELECT max(seq) FROM record)"
				   " AND seq = ?",
				   -1, &q, NULL);

	*ret = (struct index_row){ .seq = p->seq };
	(void)sqlite3_bind_int64(q, 1, (sqlite3_int64)p->seq);
	if (r == SQLITE_OK)
		r = sqlite3_step(q);
	if (r == SQLITE_ROW) {
		ret->file = (uint32_t)sqlite3_column_int64(q, 0);
		ret->offset = (uint64_t)sqlite3_column_int64(q, 1);
		ret->len = (size_t)sqlite3_column_int64(q, 2);
	}
	(void)sqlite3_finalize(q);
	return r == SQLITE_ROW ? 0 : -ENOENT;
}

/*
 * The files may have got shorter, or be another ledger's: the last record
 * that it has must be there, with its hash, or nothing of it holds.
 */
static bool fits(struct index *x, const struct place *p)
{
	unsigned char hash[SHA256_SIZE];
	struct err unused = { 0 };
	struct index_row row;
	_cleanup_free_ char *line = NULL;

	if (p->seq == 0)
		return p->offset == 0;
	if (last_row(x, p, &row) < 0 || row.file != p->file ||
	    row.offset + row.len + 1 != p->offset)
		return false;
	line = index_line(x, &row, &unused);
	if (!line)
		return false;
	line_hash(line, row.len, hash);
	return memcmp(hash, p->hash, sizeof(hash)) == 0;
}

/* Only what came since; one transaction, so that two at once do no harm. */
static int update(struct index *x, struct err *err)
{
	struct reader r;
	struct place p;
	sqlite3_stmt *q = NULL;
	int n;

	if (sqlite3_exec(x->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) !=
		    SQLITE_OK ||
	    place_load(x, &p) < 0 ||
	    sqlite3_prepare_v2(
		    x->db,
		    "INSERT INTO record VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		    -1, &q, NULL) != SQLITE_OK)
		return fail(x, "update", err);
	if (!fits(x, &p)) {
		(void)sqlite3_finalize(q);
		return -ESTALE;
	}
	n = reader_open(&r, x->dir, p.file, p.offset, err);
	if (n == 0) {
		n = read_on(x, &p, &r, q);
		reader_close(&r);
		if (n < 0)
			n = err_errno(err, -n, "index '%s'", x->dir);
	}
	(void)sqlite3_finalize(q);
	if (n < 0)
		return n;
	if (place_store(x, &p) < 0 ||
	    sqlite3_exec(x->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return fail(x, "store", err);
	return 0;
}

int index_open(struct index *x, const char *dir, bool anew, struct err *err)
{
	int r;

	*x = (struct index){ 0 };
	(void)snprintf(x->dir, sizeof(x->dir), "%s", dir);
	if (access(dir, R_OK | X_OK) < 0)
		return err_errno(err, errno, "open '%s'", dir);
	r = open_db(x, anew, err);
	if (r == 0)
		r = update(x, err);
	if (r < 0 && !anew) {
		/* It does not fit, or is damaged: once more from nothing. */
		shut(x);
		x->is_stopped = false;
		r = open_db(x, true, err);
		if (r == 0)
			r = update(x, err);
	}
	if (r < 0 && !anew) {
		/* No room for it: what is on the record is shown all the same.
		 */
		shut(x);
		x->is_stopped = false;
		r = open_in_memory(x, err);
		if (r == 0)
			r = update(x, err);
	}
	if (r < 0)
		shut(x);
	return r;
}

void index_close(struct index *x)
{
	shut(x);
}

static void put_filter(struct buf *sql, const struct index_filter *f)
{
	buf_puts(sql, "SELECT seq, time, kind, run, agent, decision, what,"
		      " file, offset, len FROM record WHERE 1");
	if (f->since)
		buf_puts(sql, " AND time >= ?1");
	if (f->until)
		buf_puts(sql, " AND time <= ?2");
	if (f->kind) {
		buf_puts(sql, " AND kind IN (-2");
		for (size_t i = 0; i < n_kinds; i++) {
			size_t len = strlen(f->kind);

			if (strncmp(kinds[i].name, f->kind, len) == 0 &&
			    (kinds[i].name[len] == '\0' ||
			     kinds[i].name[len] == '.'))
				buf_printf(sql, ",%zu", i);
		}
		buf_puts(sql, ")");
	}
	if (f->agent)
		buf_puts(sql, " AND agent = ?3");
	if (f->decision)
		buf_puts(sql, " AND decision = ?4");
	if (f->run)
		buf_puts(sql, " AND run <> '' AND run >= ?5 AND run < ?6");
	if (f->seq)
		buf_puts(sql, " AND seq = ?7");
	if (f->above)
		buf_puts(sql, " AND seq > ?8");
}

static void bind_filter(sqlite3_stmt *q, const struct index_filter *f)
{
	char above[128];

	(void)sqlite3_bind_int64(q, 1, f->since);
	(void)sqlite3_bind_int64(q, 2, f->until);
	if (f->agent)
		(void)sqlite3_bind_text(q, 3, f->agent, -1, SQLITE_STATIC);
	if (f->decision)
		(void)sqlite3_bind_text(q, 4, f->decision, -1, SQLITE_STATIC);
	if (f->run) {
		(void)snprintf(above, sizeof(above), "%.100s\x7f", f->run);
		(void)sqlite3_bind_text(q, 5, f->run, -1, SQLITE_STATIC);
		(void)sqlite3_bind_text(q, 6, above, -1, SQLITE_TRANSIENT);
	}
	(void)sqlite3_bind_int64(q, 7, (sqlite3_int64)f->seq);
	(void)sqlite3_bind_int64(q, 8, (sqlite3_int64)f->above);
}

static const char *text(sqlite3_stmt *q, int column)
{
	const unsigned char *t = sqlite3_column_text(q, column);

	return t ? (const char *)t : "";
}

static void row_of(sqlite3_stmt *q, struct index_row *row)
{
	int kind = sqlite3_column_int(q, 2);

	*row = (struct index_row){
		.seq = (uint64_t)sqlite3_column_int64(q, 0),
		.time = sqlite3_column_int64(q, 1),
		.kind = kind >= 0 && (size_t)kind < n_kinds ? kinds[kind].name
							    : "?",
		.run = text(q, 3),
		.agent = text(q, 4),
		.decision = text(q, 5),
		.what = text(q, 6),
		.file = (uint32_t)sqlite3_column_int64(q, 7),
		.offset = (uint64_t)sqlite3_column_int64(q, 8),
		.len = (size_t)sqlite3_column_int64(q, 9),
	};
}

int index_list(struct index *x, const struct index_filter *f,
	       int (*each)(void *arg, const struct index_row *row), void *arg,
	       struct err *err)
{
	struct index_row row;
	sqlite3_stmt *q = NULL;
	struct buf sql;
	int r;

	buf_init(&sql, 4096);
	if (f->limit)
		buf_puts(&sql, "SELECT * FROM (");
	put_filter(&sql, f);
	if (f->limit)
		buf_printf(&sql, " ORDER BY seq DESC LIMIT %lld)",
			   (long long)f->limit);
	buf_puts(&sql, " ORDER BY seq");
	r = sql.error ? SQLITE_NOMEM
		      : sqlite3_prepare_v2(x->db, sql.data, -1, &q, NULL);
	buf_done(&sql);
	if (r != SQLITE_OK)
		return fail(x, "list", err);
	bind_filter(q, f);
	while ((r = sqlite3_step(q)) == SQLITE_ROW) {
		row_of(q, &row);
		if (each(arg, &row) != 0) {
			r = SQLITE_DONE;
			break;
		}
	}
	(void)sqlite3_finalize(q);
	return r == SQLITE_DONE
		       ? 0
		       : fail(x, "list (try 'cordon audit reindex')", err);
}

char *index_line(struct index *x, const struct index_row *row, struct err *err)
{
	char path[4200];
	char *line;
	struct line parsed;
	int fd;
	ssize_t n = -1;

	if (row->len >= LINE_MAX_SIZE) {
		(void)err_set(err, EBADMSG, "the index is damaged");
		return NULL;
	}
	(void)snprintf(path, sizeof(path), "%s/%06u.jsonl", x->dir, row->file);
	line = calloc(1, row->len + 1);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && line)
		n = pread(fd, line, row->len, (off_t)row->offset);
	if (fd >= 0)
		(void)close(fd);
	if (n == (ssize_t)row->len &&
	    line_parse(line, row->len, &parsed) == 0 && parsed.seq == row->seq)
		return line;
	free(line);
	(void)err_set(err, EBADMSG,
		      "record %llu is not where the index has it; try 'cordon "
		      "audit reindex' and 'cordon audit verify'",
		      (unsigned long long)row->seq);
	return NULL;
}
