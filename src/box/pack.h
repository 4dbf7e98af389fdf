/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writing one of the two blobs of a run (wire.h) into a memfd that is sealed
 * at the end.
 *
 *	pack_init(&p, sizeof(box), &err); pack_string(), pack_record() ...;
 *	fd = pack_seal(&p, &box.blob, &err);  or pack_done(&p) to give up
 *
 * Errors are remembered: only pack_seal() needs to be looked at, except where
 * a caller wants to stop early.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strv.h"
#include "box/wire.h"

struct pack {
	int fd;
	size_t head;  /* size of the structure at the front */
	uint64_t end; /* of what was written or buffered */
	size_t used;  /* of the buffer */
	char buffer[32768];
	struct err err;
	struct wire_records records; /* after all strings */
	uint64_t budget;   /* bytes of file content that may still be added */
	const char *below; /* put before the paths of records; NULL: nothing */
};

int pack_init(struct pack *p, size_t head, struct err *err);
void pack_done(struct pack *p);

uint32_t pack_string(struct pack *p, const char *text);
struct wire_vec pack_vector(struct pack *p, const struct strv *list);

/* Adds a mount; returns it for its numbers to be filled in. */
struct wire_mount *pack_mount(struct pack *p, struct wire_box *box,
			      enum wire_mount_kind kind, int flags,
			      const char *source, const char *target);

/* Adds a step; and gives the last one a standard input of its own. */
void pack_step(struct pack *p, struct wire_work *work, const char *const *argv,
	       int flags);
void pack_step_input(struct pack *p, struct wire_work *work, const void *data,
		     size_t len);

/* From here on only records. */
void pack_records_begin(struct pack *p);
void pack_record(struct pack *p, const struct wire_record *rec,
		 const char *path, const void *data);
/*
 * The same with the content of `fd`, rec->data_len bytes of it; returns where
 * in the blob that is.
 */
uint64_t pack_record_fd(struct pack *p, const struct wire_record *rec,
			const char *path, int fd);

/* Writes the structure, seals; the caller closes the memfd. */
int pack_seal(struct pack *p, struct wire_blob *head, uint32_t magic,
	      struct err *err);
