/* SPDX-License-Identifier: Apache-2.0 */

/* Answers for the rest of a session, and how often answers were used. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "desk/rules.h"
#include "desk/store-db.h"

#define GRANT_COLUMNS "id, session, document, made, seal"

struct grant {
	char id[STORE_ID + 1];
	char *session;
	char *document; /* rule_format() */
	int64_t made;
};

#define AT(member)      offsetof(struct grant, member)
#define SIZE_OF(member) sizeof(((struct grant *)NULL)->member)

static const struct column columns[] = {
	{ COLUMN_FIXED, AT(id), SIZE_OF(id), NULL },
	{ COLUMN_TEXT, AT(session), 0, NULL },
	{ COLUMN_TEXT, AT(document), 0, NULL },
	{ COLUMN_INT, AT(made), 0, NULL },
};

static const struct table grants = { "grant", columns, ARRAY_SIZE(columns),
				     sizeof(struct grant) };

static int insert(struct store *s, const struct grant *g, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	char seal[65];
	int r = db_prepare(s,
			   "INSERT INTO grants (" GRANT_COLUMNS ")"
			   " VALUES (?1, ?2, ?3, ?4, ?5)",
			   &st, err);

	if (r < 0)
		return r;
	row_bind(&grants, st, g, seal);
	return db_step(s, st, err);
}

int grant_add(struct store *s, const char *session, const struct rule *rule,
	      int64_t made, struct err *err)
{
	struct grant g = { .session = (char *)session, .made = made };
	struct buf document;
	int r;

	buf_init(&document, GRANT_MAX);
	rule_format(rule, &document);
	g.document = document.data;
	(void)snprintf(g.id, sizeof(g.id), "%s", rule->id);
	r = document.error ? err_set(err, E2BIG, "the answer is too long")
			   : insert(s, &g, err);
	buf_done(&document);
	return r;
}

static int add_rule(struct rules *to, const struct grant *g, struct err *err)
{
	struct rule *v = realloc(to->v, (to->n + 1) * sizeof(*v));

	if (!v)
		return err_set(err, ENOMEM, "out of memory");
	to->v = v;
	if (rule_parse(g->document, strlen(g->document), &v[to->n], err) < 0)
		return -err->code;
	to->n++;
	return 0;
}

static int read_all(struct store *s, sqlite3_stmt *st, struct rules *ret,
		    struct err *err)
{
	int r;

	while ((r = db_step(s, st, err)) > 0) {
		struct grant g;

		r = row_read(s, &grants, st, &g, err);
		if (r < 0)
			return r;
		r = add_rule(ret, &g, err);
		row_done(&grants, &g);
		if (r < 0)
			return r;
	}
	return r;
}

int grants_load(struct store *s, const char *session, struct rules *ret,
		struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int64_t now = store_now();
	int r = db_prepare(s,
			   "SELECT " GRANT_COLUMNS " FROM grants WHERE"
			   " (?1 OR session = ?2) AND made > ?3 AND made <= ?4"
			   " ORDER BY made DESC, id LIMIT 10000",
			   &st, err);

	*ret = (struct rules){ 0 };
	/* Who has no session has no answers for it. */
	if (r < 0 || (session && !*session))
		return r;
	db_bind_int(st, 1, !session);
	db_bind_text(st, 2, session);
	db_bind_int(st, 3, now - DAY_MS);
	db_bind_int(st, 4, now + SKEW_MS);
	r = read_all(s, st, ret, err);
	if (r < 0)
		rules_done(ret);
	return r;
}

static int delete (struct store *s, const char *sql, const char *id,
		   struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, sql, &st, err);

	if (r < 0)
		return r;
	db_bind_text(st, 1, id);
	r = db_step(s, st, err);
	return r < 0 ? r : sqlite3_changes(s->db);
}

int grant_remove(struct store *s, const char *id, struct err *err)
{
	int r = delete (s, "DELETE FROM grants WHERE id = ?1", id, err);

	if (r < 0)
		return r;
	return r > 0 ? 0 : err_set(err, ENOENT, "there is no rule '%s'", id);
}

/* uses */

int uses_add(struct store *s, const char *id, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s,
			   "INSERT INTO uses (id, n, last) VALUES (?1, 1, ?2)"
			   " ON CONFLICT (id) DO UPDATE"
			   " SET n = n + 1, last = excluded.last",
			   &st, err);

	if (r < 0)
		return r;
	db_bind_text(st, 1, id);
	db_bind_int(st, 2, store_now());
	return db_step(s, st, err);
}

int uses_get(struct store *s, const char *id, int64_t *ret, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, "SELECT n FROM uses WHERE id = ?1", &st, err);

	*ret = 0;
	if (r < 0)
		return r;
	db_bind_text(st, 1, id);
	r = db_step(s, st, err);
	if (r > 0)
		*ret = sqlite3_column_int64(st, 0);
	return r < 0 ? r : 0;
}

int uses_remove(struct store *s, const char *id, struct err *err)
{
	int r = delete (s, "DELETE FROM uses WHERE id = ?1", id, err);

	return r < 0 ? r : 0;
}
