/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What import.c and import-table.c share. */

#include <stddef.h>

enum import_how {
	IMPORT_SAME, /* the value as it is */
	IMPORT_PART,
	IMPORT_PARTS,
	IMPORT_COUNT,     /* left out where it is 0 */
	IMPORT_KEY,       /* a secret: never copied */
	IMPORT_INFO,      /* of a model */
	IMPORT_BOX,       /* into the settings of the box */
	IMPORT_EXECUTOR,  /* its settings into this tool's box */
	IMPORT_MEMORY,    /* [{"content","mime_type"}] */
	IMPORT_WORKBENCH, /* tools in a bundle */
	IMPORT_HANDOFFS,
	IMPORT_APPROVER, /* code that decides: here a person does */
};

struct import_field {
	const char *theirs;
	const char *ours; /* NULL: nothing is lost without it */
	enum import_how how;
};

struct import_provider {
	const char *theirs, *ours;
	const struct import_field *fields;
};

/* By package and class; NULL: not known. */
const struct import_provider *import_find(const char *name);
