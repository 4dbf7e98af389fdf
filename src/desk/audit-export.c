/* SPDX-License-Identifier: Apache-2.0 */

/* cordon audit export: the records for other programs. */

#include <stdlib.h>
#include <string.h>

#include "desk/audit.h"
#include "desk/desk.h"

struct export
{
	struct audit_options *o;
	struct index *x;
	bool is_ocsf;
	bool is_whole; /* nothing is filtered out */
	uint64_t seq;  /* of the record before */
	int failed;
};

static int each(void *arg, const struct index_row *row)
{
	struct export *e = arg;
	struct err err = { 0 };
	_cleanup_free_ char *line = index_line(e->x, row, &err);
	struct buf out;

	if (e->is_whole && row->seq != e->seq + 1) {
		say("the index lacks record %llu; try 'cordon audit reindex'",
		    (unsigned long long)e->seq + 1);
		e->failed = EXIT_OURS;
		return 1;
	}
	e->seq = row->seq;
	if (!line) {
		say("%s", err.text);
		e->failed = EXIT_OURS;
		return 1;
	}
	if (!e->is_ocsf) {
		(void)puts(line);
		return ferror(stdout) ? 1 : 0;
	}
	buf_init(&out, 8U << 20);
	ocsf_event(line, row->len, &out);
	if (out.error) {
		say("record %llu cannot be exported",
		    (unsigned long long)row->seq);
		e->failed = EXIT_OURS;
	} else if (out.len) {
		(void)puts(out.data);
	}
	buf_done(&out);
	return e->failed || ferror(stdout) ? 1 : 0;
}

int audit_export(struct audit_options *o)
{
	static const struct index_filter all;
	struct err err = { 0 };
	struct index x;
	struct export e = { .o = o, .x = &x };
	int r;

	if (index_open(&x, o->dir, false, &err) < 0) {
		say("%s", err.text);
		return EXIT_OURS;
	}
	e.is_whole = memcmp(&o->filter, &all, sizeof(all)) == 0;
	e.is_ocsf = o->format && strcmp(o->format, "ocsf") == 0;
	r = index_list(&x, &o->filter, each, &e, &err);
	if (r < 0)
		say("%s", err.text);
	/* A part of the record passed on as the whole would be a lie. */
	if (x.is_stopped) {
		say("%s", x.note);
		e.failed = EXIT_ALTERED;
	}
	index_close(&x);
	return r < 0 ? EXIT_OURS : e.failed;
}
