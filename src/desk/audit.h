/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of `cordon audit` share. */

#include <stdbool.h>
#include <stdio.h>

#include "desk/index.h"

enum {
	EXIT_ALTERED = 1, /* audit verify */
};

struct audit_options {
	char dir[4096];
	struct index_filter filter;
	bool json;
	bool quiet;
	bool all;
	const char *format; /* export: jsonl, ocsf */
	bool man;           /* schema: the list of the manual */
	const char *head;   /* verify --head */
	const char *key;    /* verify --key */
	const char *export; /* seal --export */
	const char *operand;
};

/* Text of a record for a terminal: nothing of it steers one. */
void print_plain(FILE *out, const char *text, size_t len);
/* "2026-11-16 00:09:30" */
void time_text(int64_t us, char ret[32]);

/* audit-list.c */
int audit_list(struct audit_options *o);
int audit_follow(struct audit_options *o);
/* audit-show.c */
int audit_show(struct audit_options *o);
/* audit-verify.c */
int audit_verify(struct audit_options *o);
int audit_seal(struct audit_options *o);
/* audit-export.c */
int audit_export(struct audit_options *o);
/* audit-schema.c: api/ledger.schema.json; with --man the list of the manual */
int audit_schema(struct audit_options *o);

/* ocsf.c: one event, a line of JSON; nothing for kinds that are none. */
void ocsf_event(const char *line, size_t len, struct buf *out);
