/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * SQLite in WAL mode, synchronous=FULL: an answer that was acknowledged is on
 * the disk. Whatever changes a row runs in a transaction that has the write
 * lock from its start (BEGIN IMMEDIATE), reads the row, checks its seal, and
 * updates it only where state and seal are still the same. user_version is
 * the version of the tables; another than ours is refused, not converted.
 */

#include "desk/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/sha256.h"
#include "base/util.h"

#define STORE_NAME "approvals.sqlite"
#define VERSION    1
#define BUSY_MS    5000
#define DAY_MS     86400000LL
#define KEPT_MS    (30 * DAY_MS)
/* The real clock may be set back a little; more and a request is over. */
#define SKEW_MS 5000

static const char schema[] =
	"CREATE TABLE requests ("
	" id TEXT PRIMARY KEY NOT NULL, content TEXT NOT NULL,"
	" document TEXT NOT NULL, session TEXT NOT NULL, user TEXT NOT NULL,"
	" program TEXT NOT NULL, pid INTEGER NOT NULL,"
	" start INTEGER NOT NULL, made INTEGER NOT NULL,"
	" expires INTEGER NOT NULL, state TEXT NOT NULL"
	" CHECK (state IN ('waiting', 'allowed', 'denied', 'expired')),"
	" scope TEXT NOT NULL"
	" CHECK (scope IN ('once', 'session', 'always')),"
	" reason TEXT NOT NULL, by TEXT NOT NULL, answered INTEGER NOT NULL,"
	" taken INTEGER NOT NULL CHECK (taken IN (0, 1)),"
	" seal TEXT NOT NULL) STRICT;"
	"CREATE INDEX requests_state ON requests (state, made);"
	"CREATE TABLE grants ("
	" id TEXT PRIMARY KEY NOT NULL, content TEXT NOT NULL,"
	" session TEXT NOT NULL, what TEXT NOT NULL, reason TEXT NOT NULL,"
	" by TEXT NOT NULL, made INTEGER NOT NULL, seal TEXT NOT NULL) STRICT;"
	"CREATE INDEX grants_session ON grants (session, content);"
	"PRAGMA user_version = 1";

#define COLUMNS                                                                \
	"id, content, document, session, user, program, pid, start, made, "    \
	"expires, state, scope, reason, by, answered, taken, seal"
#define GRANT_COLUMNS "id, content, session, what, reason, by, made, seal"

/* names */

static const char *const states[] = { "waiting", "allowed", "denied",
				      "expired" };
static const char *const scopes[] = { "once", "session", "always" };

const char *entry_state_name(enum entry_state state)
{
	return states[state];
}

const char *scope_name(enum scope scope)
{
	return scopes[scope];
}

static int name_index(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -EINVAL;
}

int scope_parse(const char *name, enum scope *ret)
{
	int i = name_index(scopes, ARRAY_SIZE(scopes), name);

	if (i < 0)
		return i;
	*ret = (enum scope)i;
	return 0;
}

int64_t store_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* No letter that is read as a digit, and no vowels but a and e. */
int store_new_id(char ret[STORE_ID + 1], struct err *err)
{
	static const char letters[] = "23456789abcdefghjkmnpqrstvwxyz";
	unsigned char bytes[64];
	size_t n = 0;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_errno(err, errno, "get random bytes");
	for (size_t i = 0; i < sizeof(bytes) && n < STORE_ID; i++)
		if (bytes[i] < 240) /* 8 * 30: each letter as likely */
			ret[n++] = letters[bytes[i] % 30];
	ret[n] = '\0';
	return n == STORE_ID ? 0 : err_set(err, EAGAIN, "get random bytes");
}

/* the database */

static void stmt_end(sqlite3_stmt **st)
{
	(void)sqlite3_finalize(*st);
}

#define _cleanup_stmt_ __attribute__((cleanup(stmt_end)))

static int db_error(const struct store *s, int rc, struct err *err)
{
	const char *why = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);

	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return err_set(err, EBADMSG,
			       "the store '%s/%s' is damaged (%s); move it "
			       "away to begin a new one",
			       s->state.path, STORE_NAME, why);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, EBUSY, "the store '%s/%s' is in use",
			       s->state.path, STORE_NAME);
	case SQLITE_NOMEM:
		return err_set(err, ENOMEM, "out of memory");
	default:
		return err_set(err, EIO, "the store '%s/%s': %s", s->state.path,
			       STORE_NAME, why);
	}
}

static int damaged(const struct store *s, const char *what, struct err *err)
{
	return err_set(err, EBADMSG,
		       "the store '%s/%s' is damaged (%s); move it away to "
		       "begin a new one",
		       s->state.path, STORE_NAME, what);
}

static int prepare(struct store *s, const char *sql, sqlite3_stmt **ret,
		   struct err *err)
{
	int rc = sqlite3_prepare_v2(s->db, sql, -1, ret, NULL);

	return rc == SQLITE_OK ? 0 : db_error(s, rc, err);
}

static int execute(struct store *s, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : db_error(s, rc, err);
}

/* 1: a row, 0: the end. */
static int step(struct store *s, sqlite3_stmt *st, struct err *err)
{
	int rc = sqlite3_step(st);

	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : db_error(s, rc, err);
}

/* Values that live until the statement ends. */
static void bind_text(sqlite3_stmt *st, int at, const char *text)
{
	(void)sqlite3_bind_text(st, at, text ? text : "", -1, SQLITE_STATIC);
}

static void bind_int(sqlite3_stmt *st, int at, int64_t value)
{
	(void)sqlite3_bind_int64(st, at, value);
}

/* A transaction; it is undone unless it was committed. */
struct change {
	struct store *s;
};

static int change_begin(struct store *s, struct change *c, struct err *err)
{
	int r = execute(s, "BEGIN IMMEDIATE", err);

	if (r == 0)
		c->s = s;
	return r;
}

static int change_commit(struct store *s, struct change *c, struct err *err)
{
	int r = execute(s, "COMMIT", err);

	if (r == 0)
		c->s = NULL;
	return r;
}

static void change_end(struct change *c)
{
	if (c->s)
		(void)sqlite3_exec(c->s->db, "ROLLBACK", NULL, NULL, NULL);
}

#define _cleanup_change_ __attribute__((cleanup(change_end)))

/* A single number or text that a pragma answers. */
static int ask_int(struct store *s, const char *sql, int64_t *ret,
		   struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = prepare(s, sql, &st, err);

	if (r < 0)
		return r;
	r = step(s, st, err);
	if (r < 0)
		return r;
	*ret = r ? sqlite3_column_int64(st, 0) : 0;
	return 0;
}

static int check_whole(struct store *s, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	const char *answer;
	int r = prepare(s, "PRAGMA integrity_check(1)", &st, err);

	if (r == 0)
		r = step(s, st, err);
	if (r < 0)
		return r;
	answer = r ? (const char *)sqlite3_column_text(st, 0) : NULL;
	if (!answer || strcmp(answer, "ok") != 0)
		return damaged(s, answer ? answer : "no check", err);
	return 0;
}

static int check_version(struct store *s, struct err *err)
{
	_cleanup_change_ struct change c = { 0 };
	int64_t version = 0;
	int r = ask_int(s, "PRAGMA user_version", &version, err);

	if (r < 0 || version == VERSION)
		return r;
	/* Somebody may be making the tables just now: look again. */
	r = change_begin(s, &c, err);
	if (r == 0)
		r = ask_int(s, "PRAGMA user_version", &version, err);
	if (r < 0)
		return r;
	if (version == VERSION)
		return 0;
	if (version != 0)
		return err_set(err, EPROTO,
			       "the store '%s/%s' was made by another version "
			       "of Cordon",
			       s->state.path, STORE_NAME);
	r = execute(s, schema, err);
	return r < 0 ? r : change_commit(s, &c, err);
}

/* The change to WAL does not wait for others by itself. */
static int use_wal(struct store *s, struct err *err)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	int r = -EBUSY;

	for (int i = 0; i < BUSY_MS / 10; i++) {
		r = execute(s, "PRAGMA journal_mode = WAL", err);
		if (r != -EBUSY)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return r;
}

static int set_up(struct store *s, struct err *err)
{
	int r;

	(void)sqlite3_busy_timeout(s->db, BUSY_MS);
	(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	r = use_wal(s, err);
	if (r == 0)
		r = execute(s,
			    "PRAGMA synchronous = FULL;"
			    "PRAGMA cell_size_check = ON",
			    err);
	if (r == 0)
		r = check_version(s, err);
	return r < 0 ? r : check_whole(s, err);
}

/*
 * The file and its companions are ours and no links. Closed again before
 * SQLite opens it: closing any descriptor of a file drops the locks of all.
 */
static int check_files(struct store *s, struct err *err)
{
	static const char *const companions[] = { STORE_NAME "-wal",
						  STORE_NAME "-shm",
						  STORE_NAME "-journal" };
	int fd = state_file(&s->state, STORE_NAME, O_RDWR | O_CREAT, err);

	if (fd < 0)
		return fd;
	(void)close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
		fd = state_file(&s->state, companions[i], O_RDWR, err);
		if (fd < 0 && fd != -ENOENT)
			return fd;
		if (fd >= 0)
			(void)close(fd);
	}
	return 0;
}

int store_open(struct store *s, struct err *err)
{
	char path[PATH_MAX];
	int r;

	*s = (struct store){ .state.fd = NO_FD };
	r = desk_state_open(&s->state, err);
	if (r == 0)
		r = check_files(s, err);
	if (r == 0) {
		(void)snprintf(path, sizeof(path), "%s/%s", s->state.path,
			       STORE_NAME);
		r = sqlite3_open_v2(path, &s->db,
				    SQLITE_OPEN_READWRITE |
					    SQLITE_OPEN_NOFOLLOW |
					    SQLITE_OPEN_PRIVATECACHE,
				    NULL);
		r = r == SQLITE_OK ? set_up(s, err) : db_error(s, r, err);
	}
	if (r < 0)
		store_close(s);
	return r;
}

void store_close(struct store *s)
{
	(void)sqlite3_close(s->db);
	s->db = NULL;
	state_close(&s->state);
}

/* rows */

static void seal_text(struct sha256 *h, const char *text)
{
	uint64_t len = text ? strlen(text) : 0;

	sha256_add(h, &len, sizeof(len));
	sha256_add(h, text, len);
}

static void seal_end(struct sha256 *h, char ret[65])
{
	unsigned char sum[SHA256_SIZE];

	sha256_end(h, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", sum[i]);
}

static void entry_seal(const struct entry *e, char ret[65])
{
	const char *const texts[] = {
		"request",        e->id,     e->content, e->document,
		e->session,       e->user,   e->program, states[e->state],
		scopes[e->scope], e->reason, e->by,
	};
	const int64_t numbers[] = { e->pid,     e->start,    e->made,
				    e->expires, e->answered, e->taken };
	struct sha256 h;

	sha256_init(&h);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		seal_text(&h, texts[i]);
	sha256_add(&h, numbers, sizeof(numbers));
	seal_end(&h, ret);
}

static void grant_seal(const struct grant *g, char ret[65])
{
	const char *const texts[] = { "grant",    g->id,   g->content,
				      g->session, g->what, g->reason,
				      g->by };
	struct sha256 h;

	sha256_init(&h);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		seal_text(&h, texts[i]);
	sha256_add(&h, &g->made, sizeof(g->made));
	seal_end(&h, ret);
}

void entry_done(struct entry *e)
{
	free(e->document);
	free(e->session);
	free(e->user);
	free(e->program);
	free(e->reason);
	free(e->by);
	*e = (struct entry){ 0 };
}

void grant_done(struct grant *g)
{
	free(g->session);
	free(g->what);
	free(g->reason);
	free(g->by);
	*g = (struct grant){ 0 };
}

static const char *column(sqlite3_stmt *st, int at)
{
	const char *text = (const char *)sqlite3_column_text(st, at);

	return text ? text : "";
}

/* A text of fixed size; what does not fit fails the seal. */
static void fixed(sqlite3_stmt *st, int at, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s", column(st, at));
}

static int read_entry(struct store *s, sqlite3_stmt *st, struct entry *ret,
		      struct err *err)
{
	int state = name_index(states, ARRAY_SIZE(states), column(st, 10));
	int scope = name_index(scopes, ARRAY_SIZE(scopes), column(st, 11));
	struct entry e = {
		.document = strdup(column(st, 2)),
		.session = strdup(column(st, 3)),
		.user = strdup(column(st, 4)),
		.program = strdup(column(st, 5)),
		.pid = sqlite3_column_int64(st, 6),
		.start = sqlite3_column_int64(st, 7),
		.made = sqlite3_column_int64(st, 8),
		.expires = sqlite3_column_int64(st, 9),
		.reason = strdup(column(st, 12)),
		.by = strdup(column(st, 13)),
		.answered = sqlite3_column_int64(st, 14),
		.taken = sqlite3_column_int64(st, 15),
	};
	char seal[65];

	fixed(st, 0, e.id, sizeof(e.id));
	fixed(st, 1, e.content, sizeof(e.content));
	if (state >= 0 && scope >= 0 && e.document && e.session && e.user &&
	    e.program && e.reason && e.by) {
		e.state = (enum entry_state)state;
		e.scope = (enum scope)scope;
		entry_seal(&e, seal);
		if (strcmp(seal, column(st, 16)) == 0) {
			*ret = e;
			return 0;
		}
	}
	entry_done(&e);
	return damaged(s, "a row does not match its seal", err);
}

static int read_grant(struct store *s, sqlite3_stmt *st, struct grant *ret,
		      struct err *err)
{
	struct grant g = {
		.session = strdup(column(st, 2)),
		.what = strdup(column(st, 3)),
		.reason = strdup(column(st, 4)),
		.by = strdup(column(st, 5)),
		.made = sqlite3_column_int64(st, 6),
	};
	char seal[65];

	fixed(st, 0, g.id, sizeof(g.id));
	fixed(st, 1, g.content, sizeof(g.content));
	if (g.session && g.what && g.reason && g.by) {
		grant_seal(&g, seal);
		if (strcmp(seal, column(st, 7)) == 0) {
			*ret = g;
			return 0;
		}
	}
	grant_done(&g);
	return damaged(s, "a row does not match its seal", err);
}

bool entry_is_over(const struct entry *e, int64_t now)
{
	return e->state == ENTRY_EXPIRED ||
	       (e->state == ENTRY_WAITING &&
		(now >= e->expires || now < e->made - SKEW_MS));
}

/* requests */

static int prune(struct store *s, int64_t now, struct err *err)
{
	static const char *const sql[] = {
		"DELETE FROM requests WHERE expires < ?1 AND made < ?1",
		"DELETE FROM grants WHERE made < ?1",
	};
	const int64_t before[] = { now - KEPT_MS, now - DAY_MS };

	for (size_t i = 0; i < ARRAY_SIZE(sql); i++) {
		_cleanup_stmt_ sqlite3_stmt *st = NULL;
		int r = prepare(s, sql[i], &st, err);

		if (r < 0)
			return r;
		bind_int(st, 1, before[i]);
		r = step(s, st, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int count_waiting(struct store *s, int64_t now, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = prepare(s,
			"SELECT count(*) FROM requests"
			" WHERE state = 'waiting' AND expires > ?1",
			&st, err);

	if (r < 0)
		return r;
	bind_int(st, 1, now);
	r = step(s, st, err);
	if (r < 0)
		return r;
	return sqlite3_column_int(st, 0) < STORE_WAITING
		       ? 0
		       : err_set(err, EBUSY,
				 "%d requests wait already; answer some",
				 STORE_WAITING);
}

static int insert(struct store *s, const struct entry *e, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	char seal[65];
	int r = prepare(s,
			"INSERT INTO requests (" COLUMNS ") VALUES (?1, ?2, "
			"?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
			"?15, ?16, ?17)",
			&st, err);

	if (r < 0)
		return r;
	entry_seal(e, seal);
	bind_text(st, 1, e->id);
	bind_text(st, 2, e->content);
	bind_text(st, 3, e->document);
	bind_text(st, 4, e->session);
	bind_text(st, 5, e->user);
	bind_text(st, 6, e->program);
	bind_int(st, 7, e->pid);
	bind_int(st, 8, e->start);
	bind_int(st, 9, e->made);
	bind_int(st, 10, e->expires);
	bind_text(st, 11, states[e->state]);
	bind_text(st, 12, scopes[e->scope]);
	bind_text(st, 13, e->reason);
	bind_text(st, 14, e->by);
	bind_int(st, 15, e->answered);
	bind_int(st, 16, e->taken);
	bind_text(st, 17, seal);
	return step(s, st, err);
}

int store_add(struct store *s, struct entry *e, struct err *err)
{
	_cleanup_change_ struct change c = { 0 };
	int r = change_begin(s, &c, err);

	if (r == 0)
		r = prune(s, e->made, err);
	if (r == 0)
		r = count_waiting(s, e->made, err);
	/* An id that is taken is as unlikely as one in 700 million. */
	if (r == 0)
		r = store_new_id(e->id, err);
	if (r == 0)
		r = insert(s, e, err);
	return r < 0 ? r : change_commit(s, &c, err);
}

int store_get(struct store *s, const char *id, struct entry *ret,
	      struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = prepare(s, "SELECT " COLUMNS " FROM requests WHERE id = ?1",
			&st, err);

	if (r < 0)
		return r;
	bind_text(st, 1, id);
	r = step(s, st, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ENOENT, "there is no request '%s'", id);
	return read_entry(s, st, ret, err);
}

static int find_among(struct store *s, const char *sql, const char *prefix,
		      char ret[STORE_ID + 1], struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = prepare(s, sql, &st, err);

	if (r < 0)
		return r;
	bind_text(st, 1, prefix);
	bind_int(st, 2, store_now());
	r = step(s, st, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ENOENT, "there is no request '%s'", prefix);
	fixed(st, 0, ret, STORE_ID + 1);
	r = step(s, st, err);
	if (r > 0)
		return err_set(err, ENOTUNIQ,
			       "several requests begin with '%s'; give more "
			       "of it",
			       prefix);
	return r;
}

int store_find(struct store *s, const char *prefix, char ret[STORE_ID + 1],
	       struct err *err)
{
	size_t len = strlen(prefix);
	int r;

	/* Letters and digits alone: nothing that GLOB would read. */
	if (len == 0 || len > STORE_ID ||
	    strspn(prefix, "0123456789abcdefghijklmnopqrstuvwxyz") != len)
		return err_set(err, ENOENT, "there is no request '%.64s'",
			       prefix);
	r = find_among(s,
		       "SELECT id FROM requests WHERE id GLOB ?1 || '*'"
		       " AND state = 'waiting' AND expires > ?2 LIMIT 2",
		       prefix, ret, err);
	if (r != -ENOENT)
		return r;
	return find_among(s,
			  "SELECT id FROM requests WHERE id GLOB ?1 || '*'"
			  " AND ?2 > 0 LIMIT 2",
			  prefix, ret, err);
}

/* From what was read to what is to be, if it is still what was read. */
static int update(struct store *s, const struct entry *was,
		  const struct entry *now, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	char seal_was[65];
	char seal[65];
	int r = prepare(
		s,
		"UPDATE requests SET state = ?1, scope = ?2,"
		" reason = ?3, by = ?4, answered = ?5, taken = ?6,"
		" seal = ?7 WHERE id = ?8 AND state = ?9 AND seal = ?10",
		&st, err);

	if (r < 0)
		return r;
	entry_seal(was, seal_was);
	entry_seal(now, seal);
	bind_text(st, 1, states[now->state]);
	bind_text(st, 2, scopes[now->scope]);
	bind_text(st, 3, now->reason);
	bind_text(st, 4, now->by);
	bind_int(st, 5, now->answered);
	bind_int(st, 6, now->taken);
	bind_text(st, 7, seal);
	bind_text(st, 8, was->id);
	bind_text(st, 9, states[was->state]);
	bind_text(st, 10, seal_was);
	r = step(s, st, err);
	if (r < 0)
		return r;
	return sqlite3_changes(s->db) == 1
		       ? 0
		       : err_set(err, EALREADY, "request '%s' has changed",
				 was->id);
}

static int insert_grant(struct store *s, const struct entry *e,
			const struct store_answer *a, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	struct grant g = { .session = e->session,
			   .what = (char *)(a->what ? a->what : ""),
			   .reason = e->reason,
			   .by = e->by,
			   .made = e->answered };
	char seal[65];
	int r = prepare(s,
			"INSERT INTO grants (" GRANT_COLUMNS ")"
			" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
			&st, err);

	if (r < 0)
		return r;
	(void)strcpy(g.id, e->id);
	(void)strcpy(g.content, e->content);
	grant_seal(&g, seal);
	bind_text(st, 1, g.id);
	bind_text(st, 2, g.content);
	bind_text(st, 3, g.session);
	bind_text(st, 4, g.what);
	bind_text(st, 5, g.reason);
	bind_text(st, 6, g.by);
	bind_int(st, 7, g.made);
	bind_text(st, 8, seal);
	return step(s, st, err);
}

/* The answered form of *e; its texts are the answer's until they are copied. */
static struct entry answered(const struct entry *e,
			     const struct store_answer *a)
{
	struct entry now = *e;

	now.state = a->is_allowed ? ENTRY_ALLOWED : ENTRY_DENIED;
	now.scope = a->scope;
	now.reason = (char *)(a->reason ? a->reason : "");
	now.by = (char *)a->by;
	now.answered = store_now();
	return now;
}

static int answer_row(struct store *s, const struct entry *was,
		      const struct store_answer *a, struct err *err)
{
	struct entry now = answered(was, a);
	int r;

	if (was->state != ENTRY_WAITING)
		return err_set(err, EALREADY, "request '%s' was %s by %s",
			       was->id, states[was->state], was->by);
	if (entry_is_over(was, now.answered))
		return err_set(err, ETIME, "request '%s' has expired", was->id);
	if (strlen(now.reason) > STORE_REASON)
		return err_set(err, E2BIG, "a reason has at most %d bytes",
			       STORE_REASON);
	if (!utf8_check(now.reason, strlen(now.reason)))
		return err_set(err, EINVAL, "a reason is UTF-8 text");
	if (a->is_allowed && a->scope == SCOPE_SESSION && !*was->session)
		return err_set(err, EINVAL,
			       "request '%s' comes from no session; answer it "
			       "once or always",
			       was->id);
	r = update(s, was, &now, err);
	if (r == 0 && a->is_allowed && a->scope == SCOPE_SESSION)
		r = insert_grant(s, &now, a, err);
	if (r == 0 && a->also)
		r = a->also(&now, a->arg, err);
	return r;
}

int store_answer(struct store *s, const char *id, const struct store_answer *a,
		 struct entry *ret, struct err *err)
{
	_cleanup_change_ struct change c = { 0 };
	struct entry e = { 0 };
	int r = change_begin(s, &c, err);

	*ret = (struct entry){ 0 };
	if (r == 0)
		r = store_get(s, id, &e, err);
	if (r < 0)
		return r;
	r = answer_row(s, &e, a, err);
	if (r == 0) {
		entry_done(&e);
		r = store_get(s, id, &e, err);
	}
	if (r == 0)
		r = change_commit(s, &c, err);
	if (r == 0 || r == -EALREADY || r == -ETIME)
		*ret = e;
	else
		entry_done(&e);
	return r;
}

static int change_row(struct store *s, const char *id,
		      int (*change)(struct entry *e, struct err *err),
		      struct err *err)
{
	_cleanup_change_ struct change c = { 0 };
	struct entry was = { 0 };
	struct entry now;
	int r = change_begin(s, &c, err);

	if (r == 0)
		r = store_get(s, id, &was, err);
	if (r < 0)
		return r;
	now = was;
	r = change(&now, err);
	if (r == 0)
		r = update(s, &was, &now, err);
	if (r == 0)
		r = change_commit(s, &c, err);
	entry_done(&was);
	return r;
}

static int to_expired(struct entry *e, struct err *err)
{
	if (e->state != ENTRY_WAITING)
		return err_set(err, EALREADY, "request '%s' was %s", e->id,
			       states[e->state]);
	e->state = ENTRY_EXPIRED;
	return 0;
}

int store_expire(struct store *s, const char *id, struct err *err)
{
	return change_row(s, id, to_expired, err);
}

/* An answer is good for as long as the request could have waited. */
static int to_taken(struct entry *e, struct err *err)
{
	int64_t age = store_now() - e->answered;

	if (e->state != ENTRY_ALLOWED)
		return err_set(err, EPERM, "request '%s' is %s", e->id,
			       states[e->state]);
	if (e->taken)
		return err_set(err, EALREADY,
			       "the answer to '%s' was used already", e->id);
	if (age < -SKEW_MS || age > e->expires - e->made)
		return err_set(err, ETIME, "the answer to '%s' is too old",
			       e->id);
	e->taken = 1;
	return 0;
}

int store_take(struct store *s, const char *id, struct err *err)
{
	return change_row(s, id, to_taken, err);
}

int store_list(struct store *s, bool all,
	       int (*each)(const struct entry *e, void *arg), void *arg,
	       struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = prepare(s,
			"SELECT " COLUMNS " FROM requests"
			" WHERE ?1 OR (state = 'waiting' AND expires > ?2)"
			" ORDER BY made DESC, id LIMIT 10000",
			&st, err);

	if (r < 0)
		return r;
	bind_int(st, 1, all);
	bind_int(st, 2, store_now());
	while ((r = step(s, st, err)) > 0) {
		struct entry e;

		r = read_entry(s, st, &e, err);
		if (r < 0)
			return r;
		r = each(&e, arg);
		entry_done(&e);
		if (r < 0)
			return err_set(err, -r, "list requests");
	}
	return r;
}

/* answers for a session */

int grant_find(struct store *s, const char *session, const char *content,
	       struct grant *ret, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int64_t now = store_now();
	int r = prepare(s,
			"SELECT " GRANT_COLUMNS " FROM grants WHERE"
			" session = ?1 AND content = ?2 AND made > ?3"
			" AND made <= ?4 LIMIT 1",
			&st, err);

	if (r < 0)
		return r;
	bind_text(st, 1, session);
	bind_text(st, 2, content);
	bind_int(st, 3, now - DAY_MS);
	bind_int(st, 4, now + SKEW_MS);
	r = *session ? step(s, st, err) : 0;
	if (r < 0)
		return r;
	return r ? read_grant(s, st, ret, err)
		 : err_set(err, ENOENT, "no answer for this session");
}

int grant_list(struct store *s, int (*each)(const struct grant *g, void *arg),
	       void *arg, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = prepare(s,
			"SELECT " GRANT_COLUMNS " FROM grants WHERE made > ?1"
			" ORDER BY made DESC, id LIMIT 10000",
			&st, err);

	if (r < 0)
		return r;
	bind_int(st, 1, store_now() - DAY_MS);
	while ((r = step(s, st, err)) > 0) {
		struct grant g;

		r = read_grant(s, st, &g, err);
		if (r < 0)
			return r;
		r = each(&g, arg);
		grant_done(&g);
		if (r < 0)
			return err_set(err, -r, "list answers");
	}
	return r;
}

int grant_remove(struct store *s, const char *id, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = prepare(s, "DELETE FROM grants WHERE id = ?1", &st, err);

	if (r < 0)
		return r;
	bind_text(st, 1, id);
	r = step(s, st, err);
	if (r < 0)
		return r;
	return sqlite3_changes(s->db) > 0
		       ? 0
		       : err_set(err, ENOENT, "there is no rule '%s'", id);
}
