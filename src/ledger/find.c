/* SPDX-License-Identifier: Apache-2.0 */

/* What the ledger says of one run, from a place on. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "ledger/internal.h"
#include "ledger/line.h"
#include "ledger/read.h"
#include "ledger/reader.h"

int ledger_where(struct ledger *l, uint64_t *ret, struct err *err)
{
	struct mark marks[MARKS];
	int r = head_read(l->head, marks);
	const struct mark *m = &marks[MARK_SYNCED];

	if (r < 0)
		return err_errno(err, -r, "read '%s/head'", l->dir);
	*ret = m->count ? (uint64_t)m->file << 32 | m->size : LEDGER_START;
	return 0;
}

static bool is_kind(const struct line *line, const char *kind)
{
	return line->kind_len == strlen(kind) &&
	       memcmp(line->kind, kind, line->kind_len) == 0;
}

static void take_end(const struct value *record, struct ledger_found *ret)
{
	struct buf cause;
	struct value v;

	ret->has_end = true;
	ret->exit_code = value_get(record, "exit_code", &v)
				 ? (int)value_int(&v, 0)
				 : 0;
	buf_init(&cause, sizeof(ret->cause));
	if (value_get(record, "cause", &v) && value_text(&v, &cause) == 0 &&
	    cause.data)
		(void)snprintf(ret->cause, sizeof(ret->cause), "%s",
			       cause.data);
	buf_done(&cause);
}

static void look(const struct raw_line *raw, const char *run,
		 struct ledger_found *ret)
{
	const struct value record = { raw->text, raw->len };
	struct line line;
	struct value v;

	/* Most lines are another's: that is seen without reading them. */
	if (raw->is_torn || !memmem(raw->text, raw->len, run, strlen(run)) ||
	    line_peek(raw->text, raw->len, &line) < 0 ||
	    !value_get(&record, "run", &v) || !value_is(&v, run))
		return;
	if (is_kind(&line, "run.start"))
		ret->has_start = true;
	else if (is_kind(&line, "run.end") && !ret->has_end)
		take_end(&record, ret);
}

int ledger_find_run(struct ledger *l, uint64_t from, const char *run,
		    struct ledger_found *ret, struct err *err)
{
	struct raw_line raw;
	struct reader r;
	int n;

	*ret = (struct ledger_found){ 0 };
	if (reader_open(&r, l->dir, (uint32_t)(from >> 32), (uint32_t)from,
			err) < 0)
		return -err->code;
	while ((n = reader_next(&r, &raw)) > 0 && !raw.is_torn)
		look(&raw, run, ret);
	reader_close(&r);
	return n < 0 ? err_errno(err, -n, "read '%s'", l->dir) : 0;
}
