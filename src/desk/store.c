/* SPDX-License-Identifier: Apache-2.0 */

/* Requests and their answers, as rows. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"
#include "desk/asker.h"
#include "desk/request.h"
#include "desk/store-db.h"

#define KEPT_MS (30 * DAY_MS)

#define COLUMNS                                                                \
	"id, content, document, session, user, program, pid, waiter, "         \
	"started, made, "                                                      \
	"expires, state, scope, reason, by, answered, taken, seal"

/* names */

static const char *const states[] = { "waiting", "allowed", "denied", "expired",
				      "withdrawn" };
static const char *const scopes[] = { "once", "session", "always" };

const char *entry_state_name(enum entry_state state)
{
	return states[state];
}

const char *scope_name(enum scope scope)
{
	return scopes[scope];
}

int scope_parse(const char *name, enum scope *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++)
		if (strcmp(scopes[i], name) == 0) {
			*ret = (enum scope)i;
			return 0;
		}
	return -EINVAL;
}

/* rows */

#define AT(member)      offsetof(struct entry, member)
#define SIZE_OF(member) sizeof(((struct entry *)NULL)->member)

static const struct column columns[] = {
	{ COLUMN_FIXED, AT(id), SIZE_OF(id), NULL },
	{ COLUMN_FIXED, AT(content), SIZE_OF(content), NULL },
	{ COLUMN_TEXT, AT(document), 0, NULL },
	{ COLUMN_TEXT, AT(session), 0, NULL },
	{ COLUMN_TEXT, AT(user), 0, NULL },
	{ COLUMN_TEXT, AT(program), 0, NULL },
	{ COLUMN_INT, AT(pid), 0, NULL },
	{ COLUMN_INT, AT(waiter), 0, NULL },
	{ COLUMN_INT, AT(started), 0, NULL },
	{ COLUMN_INT, AT(made), 0, NULL },
	{ COLUMN_INT, AT(expires), 0, NULL },
	{ COLUMN_WORD, AT(state), ARRAY_SIZE(states), states },
	{ COLUMN_WORD, AT(scope), ARRAY_SIZE(scopes), scopes },
	{ COLUMN_TEXT, AT(reason), 0, NULL },
	{ COLUMN_TEXT, AT(by), 0, NULL },
	{ COLUMN_INT, AT(answered), 0, NULL },
	{ COLUMN_INT, AT(taken), 0, NULL },
};

static const struct table requests = { "request", columns, ARRAY_SIZE(columns),
				       sizeof(struct entry) };

void entry_done(struct entry *e)
{
	row_done(&requests, e);
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
		"DELETE FROM uses WHERE id IN"
		" (SELECT id FROM grants WHERE made < ?1)",
		"DELETE FROM grants WHERE made < ?1",
	};
	const int64_t before[] = { now - KEPT_MS, now - DAY_MS, now - DAY_MS };

	for (size_t i = 0; i < ARRAY_SIZE(sql); i++) {
		_cleanup_stmt_ sqlite3_stmt *st = NULL;
		int r = db_prepare(s, sql[i], &st, err);

		if (r < 0)
			return r;
		db_bind_int(st, 1, before[i]);
		r = db_step(s, st, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Of all, or of one user. */
static int count_waiting(struct store *s, int64_t now, const char *user,
			 int most, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s,
			   "SELECT count(*) FROM requests"
			   " WHERE state = 'waiting' AND expires > ?1"
			   " AND (?2 = '' OR user = ?2)",
			   &st, err);

	if (r < 0)
		return r;
	db_bind_int(st, 1, now);
	db_bind_text(st, 2, user);
	r = db_step(s, st, err);
	if (r < 0)
		return r;
	return sqlite3_column_int(st, 0) < most
		       ? 0
		       : err_set(err, EBUSY,
				 "%d requests%s%s wait already; answer some",
				 most, *user ? " of " : "", user);
}

static int insert(struct store *s, const struct entry *e, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	char seal[65];
	int r = db_prepare(
		s,
		"INSERT INTO requests (" COLUMNS ") VALUES (?1, ?2, "
		"?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
		"?15, ?16, ?17, ?18)",
		&st, err);

	if (r < 0)
		return r;
	row_bind(&requests, st, e, seal);
	return db_step(s, st, err);
}

/* From what was read to what is to be, if it is still what was read. */
static int update(struct store *s, const struct entry *was,
		  const struct entry *now, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	char seal_was[65];
	char seal[65];
	int r = db_prepare(s,
			   "UPDATE requests SET (" COLUMNS
			   ") = (?1, ?2, ?3, ?4, "
			   "?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
			   "?16, ?17, ?18)"
			   " WHERE id = ?1 AND state = ?19 AND seal = ?20",
			   &st, err);

	if (r < 0)
		return r;
	row_seal(&requests, was, seal_was);
	row_bind(&requests, st, now, seal);
	db_bind_text(st, 19, states[was->state]);
	db_bind_text(st, 20, seal_was);
	r = db_step(s, st, err);
	if (r < 0)
		return r;
	return sqlite3_changes(s->db) == 1
		       ? 0
		       : err_set(err, EALREADY, "request '%s' has changed",
				 was->id);
}

/* What cannot be read, or cut, is dropped. */
static void cut_document(const struct entry *e, struct buf *ret)
{
	struct request req;

	if (request_parse(e->document, strlen(e->document), &req, NULL) < 0)
		return;
	request_cut(&req);
	request_format(&req, ret);
	request_done(&req);
	if (ret->error)
		buf_done(ret);
}

static int cut(struct store *s, const struct entry *was, struct err *err)
{
	struct entry now = *was;
	struct buf document;
	int r;

	buf_init(&document, REQUEST_MAX);
	cut_document(was, &document);
	now.document = document.data ? document.data : (char *)"";
	/* Also if the clock is set back: what was cut is not answered. */
	if (was->state == ENTRY_WAITING)
		now.state = ENTRY_EXPIRED;
	r = update(s, was, &now, err);
	buf_done(&document);
	return r;
}

/* The next that ended and is large still; -ENOENT: there is none. */
static int find_large(struct store *s, int64_t now, struct entry *ret,
		      struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s,
			   "SELECT " COLUMNS " FROM requests WHERE"
			   " (state IN ('denied', 'expired', 'withdrawn') OR"
			   " (state = 'waiting' AND expires <= ?1))"
			   " AND substr(document, 1, ?2) <> ?3"
			   " AND length(document) > ?4 LIMIT 1",
			   &st, err);

	if (r < 0)
		return r;
	db_bind_int(st, 1, now);
	db_bind_int(st, 2, (int64_t)strlen(REQUEST_CUT));
	db_bind_text(st, 3, REQUEST_CUT);
	db_bind_int(st, 4, STORE_SMALL);
	r = db_step(s, st, err);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	return row_read(s, &requests, st, ret, err);
}

static int cut_ended(struct store *s, int64_t now, struct err *err)
{
	struct entry e;
	int r;

	while ((r = find_large(s, now, &e, err)) == 0) {
		r = cut(s, &e, err);
		entry_done(&e);
		if (r < 0)
			return r;
	}
	return r == -ENOENT ? 0 : r;
}

/* An answer that may still be used has not ended. */
static int drop_ended(struct store *s, int64_t now, const char *user,
		      struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(
		s,
		"DELETE FROM requests WHERE id IN (SELECT id"
		" FROM requests WHERE user = ?1 AND"
		" (state IN ('denied', 'expired', 'withdrawn') OR taken = 1 OR"
		" (state = 'waiting' AND expires <= ?2) OR"
		" (state = 'allowed' AND"
		" answered + expires - made < ?2))"
		" ORDER BY made DESC, id LIMIT -1 OFFSET ?3)",
		&st, err);

	if (r < 0)
		return r;
	db_bind_text(st, 1, user);
	db_bind_int(st, 2, now);
	db_bind_int(st, 3, STORE_ENDED);
	return db_step(s, st, err);
}

int store_add(struct store *s, struct entry *e, int most_of_user,
	      struct err *err)
{
	_cleanup_change_ struct change c = { 0 };
	int r = change_begin(s, &c, err);

	if (r == 0)
		r = prune(s, e->made, err);
	if (r == 0)
		r = cut_ended(s, e->made, err);
	if (r == 0 && most_of_user)
		r = drop_ended(s, e->made, e->user, err);
	if (r == 0)
		r = count_waiting(s, e->made, "", STORE_WAITING, err);
	if (r == 0 && most_of_user)
		r = count_waiting(s, e->made, e->user, most_of_user, err);
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
	int r = db_prepare(s, "SELECT " COLUMNS " FROM requests WHERE id = ?1",
			   &st, err);

	if (r < 0)
		return r;
	db_bind_text(st, 1, id);
	r = db_step(s, st, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ENOENT, "there is no request '%s'", id);
	return row_read(s, &requests, st, ret, err);
}

static int find_among(struct store *s, const char *sql, const char *prefix,
		      char ret[STORE_ID + 1], struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, sql, &st, err);

	if (r < 0)
		return r;
	db_bind_text(st, 1, prefix);
	db_bind_int(st, 2, store_now());
	r = db_step(s, st, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, ENOENT, "there is no request '%s'", prefix);
	db_fixed(st, 0, ret, STORE_ID + 1);
	r = db_step(s, st, err);
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
	if (a->scope == SCOPE_SESSION && (!was->session || !*was->session))
		return err_set(err, EINVAL,
			       "request '%s' comes from no session; answer it "
			       "once or always",
			       was->id);
	r = update(s, was, &now, err);
	if (r == 0 && a->also)
		r = a->also(&now, a->arg, err);
	return r;
}

/* Also an answer that was given, as long as nobody has used it. */
static int withdraw_row(struct store *s, const struct entry *was,
			const struct store_answer *a, struct err *err)
{
	struct entry now = answered(was, a);
	int r;

	if (entry_is_over(was, now.answered))
		return err_set(err, EALREADY, "request '%s' has expired",
			       was->id);
	if (was->taken)
		return err_set(err, EALREADY,
			       "the answer to '%s' was used already", was->id);
	if (was->state != ENTRY_WAITING && was->state != ENTRY_ALLOWED)
		return err_set(err, EALREADY, "request '%s' was %s by %s",
			       was->id, states[was->state], was->by);
	now.state = ENTRY_WITHDRAWN;
	now.scope = SCOPE_ONCE;
	r = update(s, was, &now, err);
	if (r == 0 && a->also)
		r = a->also(&now, a->arg, err);
	return r;
}

static int change_answer(struct store *s, const char *id,
			 const struct store_answer *a,
			 int (*change)(struct store *s, const struct entry *was,
				       const struct store_answer *a,
				       struct err *err),
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
	r = change(s, &e, a, err);
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

int store_answer(struct store *s, const char *id, const struct store_answer *a,
		 struct entry *ret, struct err *err)
{
	return change_answer(s, id, a, answer_row, ret, err);
}

int store_withdraw(struct store *s, const char *id,
		   const struct store_answer *a, struct entry *ret,
		   struct err *err)
{
	return change_answer(s, id, a, withdraw_row, ret, err);
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

static int to_attended(struct entry *e, struct err *err)
{
	(void)err;
	e->waiter = getpid();
	e->started = process_start(getpid());
	return 0;
}

int store_attend(struct store *s, const char *id, struct err *err)
{
	return change_row(s, id, to_attended, err);
}

/* Whether nobody waits for it, and it is of use still. */
static bool is_orphan(const struct entry *e)
{
	struct entry copy = *e;

	if (e->started >= 0 && process_start((pid_t)e->waiter) == e->started)
		return false;
	if (e->state == ENTRY_WAITING)
		return !entry_is_over(e, store_now());
	return to_taken(&copy, NULL) == 0;
}

/* The first of those; entry_done() releases it. */
static int find_orphan(struct store *s, const char *content, struct entry *ret,
		       struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s,
			   "SELECT " COLUMNS " FROM requests WHERE content = ?1"
			   " AND state IN ('waiting', 'allowed') AND taken = 0"
			   " ORDER BY state, made",
			   &st, err);

	if (r < 0)
		return r;
	db_bind_text(st, 1, content);
	while ((r = db_step(s, st, err)) > 0) {
		r = row_read(s, &requests, st, ret, err);
		if (r < 0)
			return r;
		if (is_orphan(ret))
			return 0;
		entry_done(ret);
	}
	return r < 0 ? r : err_set(err, ENOENT, "nothing to take up");
}

int store_adopt(struct store *s, struct entry *e, struct err *err)
{
	_cleanup_change_ struct change c = { 0 };
	struct entry was = { 0 };
	struct entry now;
	int r = change_begin(s, &c, err);

	if (r == 0)
		r = find_orphan(s, e->content, &was, err);
	if (r < 0)
		return r;
	now = was;
	if (was.state == ENTRY_WAITING) {
		now = *e;
		(void)strcpy(now.id, was.id);
	}
	(void)to_attended(&now, err);
	r = update(s, &was, &now, err);
	if (r == 0)
		r = change_commit(s, &c, err);
	if (r == 0)
		(void)strcpy(e->id, was.id);
	entry_done(&was);
	return r;
}

int store_list(struct store *s, bool all,
	       int (*each)(const struct entry *e, void *arg), void *arg,
	       struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s,
			   "SELECT " COLUMNS " FROM requests"
			   " WHERE ?1 OR (state = 'waiting' AND expires > ?2)"
			   " ORDER BY made DESC, id LIMIT 10000",
			   &st, err);

	if (r < 0)
		return r;
	db_bind_int(st, 1, all);
	db_bind_int(st, 2, store_now());
	while ((r = db_step(s, st, err)) > 0) {
		struct entry e;

		r = row_read(s, &requests, st, &e, err);
		if (r < 0)
			return r;
		r = each(&e, arg);
		entry_done(&e);
		if (r < 0)
			return err_set(err, -r, "list requests");
	}
	return r;
}
