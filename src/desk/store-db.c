/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * SQLite in WAL mode, synchronous=FULL: an answer that was acknowledged is on
 * the disk. Whatever changes a row runs in a transaction that has the write
 * lock from its start (BEGIN IMMEDIATE), reads the row, checks its seal, and
 * updates it only where state and seal are still the same. user_version is
 * the version of the tables; an older one is converted, others are refused.
 */

#include "desk/store-db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define STORE_NAME "approvals.sqlite"
#define VERSION    2
#define BUSY_MS    5000

#define REQUESTS                                                               \
	"CREATE TABLE requests ("                                              \
	" id TEXT PRIMARY KEY NOT NULL, content TEXT NOT NULL,"                \
	" document TEXT NOT NULL, session TEXT NOT NULL,"                      \
	" user TEXT NOT NULL,"                                                 \
	" program TEXT NOT NULL, pid INTEGER NOT NULL,"                        \
	" waiter INTEGER NOT NULL, started INTEGER NOT NULL,"                  \
	" made INTEGER NOT NULL,"                                              \
	" expires INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN"       \
	" ('waiting', 'allowed', 'denied', 'expired', 'withdrawn')),"          \
	" scope TEXT NOT NULL"                                                 \
	" CHECK (scope IN ('once', 'session', 'always')),"                     \
	" reason TEXT NOT NULL, by TEXT NOT NULL,"                             \
	" answered INTEGER NOT NULL,"                                          \
	" taken INTEGER NOT NULL CHECK (taken IN (0, 1)),"                     \
	" seal TEXT NOT NULL) STRICT;"                                         \
	"CREATE INDEX requests_state ON requests (state, made);"               \
	"CREATE INDEX requests_content ON requests (content);"

#define GRANTS                                                                 \
	"CREATE TABLE grants ("                                                \
	" id TEXT PRIMARY KEY NOT NULL, session TEXT NOT NULL,"                \
	" document TEXT NOT NULL, made INTEGER NOT NULL,"                      \
	" seal TEXT NOT NULL) STRICT;"                                         \
	"CREATE INDEX grants_session ON grants (session);"                     \
	"CREATE TABLE uses (id TEXT PRIMARY KEY NOT NULL,"                     \
	" n INTEGER NOT NULL, last INTEGER NOT NULL) STRICT;"

static const char schema[] = REQUESTS GRANTS "PRAGMA user_version = 2";

/*
 * From version 1, where a request could not be withdrawn and the answers of a
 * session had other columns; those are asked about anew.
 */
static const char from_1[] =
	"DROP INDEX requests_state; DROP INDEX requests_content;"
	"ALTER TABLE requests RENAME TO requests_1;" REQUESTS
	"INSERT INTO requests SELECT id, content, document, session, user,"
	" program, pid, waiter, started, made, expires, state, scope, reason,"
	" by, answered, taken, seal FROM requests_1;"
	"DROP TABLE requests_1; DROP TABLE grants;" GRANTS
	"PRAGMA user_version = 2";

void stmt_end(sqlite3_stmt **st)
{
	(void)sqlite3_finalize(*st);
}

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

int db_damaged(const struct store *s, const char *what, struct err *err)
{
	(void)err_set(err, EBADMSG,
		      "the store '%s/%s' is damaged (%s); move it away to "
		      "begin a new one",
		      s->state.path, STORE_NAME, what);
	return -EBADMSG;
}

int db_prepare(struct store *s, const char *sql, sqlite3_stmt **ret,
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

int db_step(struct store *s, sqlite3_stmt *st, struct err *err)
{
	int rc = sqlite3_step(st);

	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : db_error(s, rc, err);
}

void db_bind_text(sqlite3_stmt *st, int at, const char *text)
{
	(void)sqlite3_bind_text(st, at, text ? text : "", -1, SQLITE_STATIC);
}

void db_bind_int(sqlite3_stmt *st, int at, int64_t value)
{
	(void)sqlite3_bind_int64(st, at, value);
}

int change_begin(struct store *s, struct change *c, struct err *err)
{
	int r = execute(s, "BEGIN IMMEDIATE", err);

	if (r == 0)
		c->s = s;
	return r;
}

int change_commit(struct store *s, struct change *c, struct err *err)
{
	int r = execute(s, "COMMIT", err);

	if (r == 0)
		c->s = NULL;
	return r;
}

void change_end(struct change *c)
{
	if (c->s)
		(void)sqlite3_exec(c->s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* A single number or text that a pragma answers. */
static int ask_int(struct store *s, const char *sql, int64_t *ret,
		   struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, sql, &st, err);

	if (r < 0)
		return r;
	r = db_step(s, st, err);
	if (r < 0)
		return r;
	*ret = r ? sqlite3_column_int64(st, 0) : 0;
	return 0;
}

static int check_whole(struct store *s, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	const char *answer;
	int r = db_prepare(s, "PRAGMA integrity_check(1)", &st, err);

	if (r == 0)
		r = db_step(s, st, err);
	if (r < 0)
		return r;
	answer = r ? (const char *)sqlite3_column_text(st, 0) : NULL;
	if (!answer || strcmp(answer, "ok") != 0)
		return db_damaged(s, answer ? answer : "no check", err);
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
	if (version != 0 && version != 1)
		return err_set(err, EPROTO,
			       "the store '%s/%s' was made by another version "
			       "of Cordon",
			       s->state.path, STORE_NAME);
	r = execute(s, version == 1 ? from_1 : schema, err);
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

/* columns */

const char *db_column(sqlite3_stmt *st, int at)
{
	const char *text = (const char *)sqlite3_column_text(st, at);

	return text ? text : "";
}

void db_fixed(sqlite3_stmt *st, int at, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s", db_column(st, at));
}
