/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files of a living box, as asked for over a stream socket that a child of its
 * init serves, with the rights of the box's user and no others.
 *
 * One request a connection: struct files_ask, then its path (path_len bytes).
 * Whatever comes back is foreign: the box may have had its hand in it.
 *
 *	FILES_STAT     answer: files_answer, files_entry, link target; the
 *	               last link of the path is not followed
 *	FILES_LOOK     the same for what is to be read next: an error where it
 *	               cannot be, or is nothing that an archive has
 *	FILES_READ     answer: files_answer, then entries, parents first, each a
 *	               files_entry, its name (below the path; the path itself
 *	               is ""), its link target, its bytes (`size` for a regular
 *	               file, exactly); closed by an entry of kind 0. That one
 *	               says what could not be read: `size` how many, `mode` the
 *	               errno and the name of the first
 *	FILES_WRITE    the client sends entries as above, closed by kind 0; then
 *	               comes the answer. `path` must be a directory. The first
 *	               entry that cannot be written ends it: what came before
 *	               stays. An answer may come early: a client that gets
 *	               EPIPE reads it. Kind 'h' is a hard link: its link is the
 *	               name, below the path, of a file that is there by then
 *	FILES_MAKE     a directory and what is missing above it; answer
 *	FILES_PS       answer, then entries, closed by kind 0. Each has one line
 *	               of text as its name (COMM may have spaces in it):
 *	               PID PPID STATE START CPU RSS SIZE UID COMM\tARGS
 *	               START and CPU are ticks, RSS is pages
 *	FILES_CHANGES  answer, then entries: the path, kind 'C' 'A' or 'D',
 *	               closed by kind 0 as in READ. ENOSYS where the box's root
 *	               takes no changes
 */

#include <stdint.h>

#include "base/err.h"

#define FILES_MAX_PATH 4096

enum files_op {
	FILES_STAT = 1,
	FILES_READ,
	FILES_WRITE,
	FILES_MAKE,
	FILES_PS,
	FILES_CHANGES,
	FILES_LOOK,
};

enum {
	FILES_NO_OVERWRITE = 1 << 0, /* a directory never replaces a file or
				      * the reverse: EISDIR, ENOTDIR. Without
				      * it an empty directory may give way */
	FILES_ONE_FS = 1 << 1,       /* READ: do not go into other mounts */
	FILES_IDS = 1 << 2,          /* WRITE: with owners, where the box has
				      * such users; else all is its user's */
};

struct files_ask {
	uint32_t op;
	uint32_t flags;
	uint32_t path_len;
	uint32_t reserved;
	uint64_t max; /* bytes that may be written, 0: no limit of ours */
	/*
	 * WRITE: bytes of it that the box's memory has room for, where files
	 * are kept in memory; ENOSPC before more are written. 0: not known.
	 */
	uint64_t memory;
};

struct files_answer {
	struct err err; /* code 0: it was done */
};

struct files_entry {
	uint8_t kind; /* 'f' 'd' 'l', 'p' 's' 'c' 'b' only in answers, 'h' only
		       * written; 0: end */
	uint8_t pad[3];
	uint32_t mode; /* 07777 */
	uint32_t name_len;
	uint32_t link_len;
	uint64_t size;
	int64_t mtime_ns;
	uint32_t uid; /* as the box sees them */
	uint32_t gid;
};
