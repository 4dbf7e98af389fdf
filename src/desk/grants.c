/* SPDX-License-Identifier: Apache-2.0 */

/* Answers for the rest of a session. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "desk/store-db.h"

#define GRANT_COLUMNS "id, content, session, what, reason, by, made, seal"

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

void grant_done(struct grant *g)
{
	free(g->session);
	free(g->what);
	free(g->reason);
	free(g->by);
	*g = (struct grant){ 0 };
}

static int read_grant(struct store *s, sqlite3_stmt *st, struct grant *ret,
		      struct err *err)
{
	struct grant g = {
		.session = strdup(db_column(st, 2)),
		.what = strdup(db_column(st, 3)),
		.reason = strdup(db_column(st, 4)),
		.by = strdup(db_column(st, 5)),
		.made = sqlite3_column_int64(st, 6),
	};
	char seal[65];

	db_fixed(st, 0, g.id, sizeof(g.id));
	db_fixed(st, 1, g.content, sizeof(g.content));
	if (g.session && g.what && g.reason && g.by) {
		grant_seal(&g, seal);
		if (strcmp(seal, db_column(st, 7)) == 0) {
			*ret = g;
			return 0;
		}
	}
	grant_done(&g);
	return db_damaged(s, "a row does not match its seal", err);
}

int grant_insert(struct store *s, const struct entry *e, const char *what,
		 struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	struct grant g = { .session = e->session,
			   .what = (char *)(what ? what : ""),
			   .reason = e->reason,
			   .by = e->by,
			   .made = e->answered };
	char seal[65];
	int r = db_prepare(s,
			   "INSERT INTO grants (" GRANT_COLUMNS ")"
			   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
			   &st, err);

	if (r < 0)
		return r;
	(void)strcpy(g.id, e->id);
	(void)strcpy(g.content, e->content);
	grant_seal(&g, seal);
	db_bind_text(st, 1, g.id);
	db_bind_text(st, 2, g.content);
	db_bind_text(st, 3, g.session);
	db_bind_text(st, 4, g.what);
	db_bind_text(st, 5, g.reason);
	db_bind_text(st, 6, g.by);
	db_bind_int(st, 7, g.made);
	db_bind_text(st, 8, seal);
	return db_step(s, st, err);
}

int grant_find(struct store *s, const char *session, const char *content,
	       struct grant *ret, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int64_t now = store_now();
	int r = db_prepare(s,
			   "SELECT " GRANT_COLUMNS " FROM grants WHERE"
			   " session = ?1 AND content = ?2 AND made > ?3"
			   " AND made <= ?4 LIMIT 1",
			   &st, err);

	if (r < 0)
		return r;
	db_bind_text(st, 1, session);
	db_bind_text(st, 2, content);
	db_bind_int(st, 3, now - DAY_MS);
	db_bind_int(st, 4, now + SKEW_MS);
	r = *session ? db_step(s, st, err) : 0;
	if (r < 0)
		return r;
	return r ? read_grant(s, st, ret, err)
		 : err_set(err, ENOENT, "no answer for this session");
}

int grant_list(struct store *s, int (*each)(const struct grant *g, void *arg),
	       void *arg, struct err *err)
{
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s,
			   "SELECT " GRANT_COLUMNS
			   " FROM grants WHERE made > ?1"
			   " ORDER BY made DESC, id LIMIT 10000",
			   &st, err);

	if (r < 0)
		return r;
	db_bind_int(st, 1, store_now() - DAY_MS);
	while ((r = db_step(s, st, err)) > 0) {
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
	int r = db_prepare(s, "DELETE FROM grants WHERE id = ?1", &st, err);

	if (r < 0)
		return r;
	db_bind_text(st, 1, id);
	r = db_step(s, st, err);
	if (r < 0)
		return r;
	return sqlite3_changes(s->db) > 0
		       ? 0
		       : err_set(err, ENOENT, "there is no rule '%s'", id);
}
