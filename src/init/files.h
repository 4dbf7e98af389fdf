/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside the child of init that serves one request for files.
 *
 * It is what any program of the box could be: the same user, root, limits,
 * filter and Landlock rules. So a path is simply opened: no link can lead to
 * where a program of the box could not go. What is guarded against is what
 * the box does meanwhile: a file that becomes a pipe or a link between two
 * looks, a directory that is swapped while something is written below it.
 *
 * The filter has no openat2(2); where no link may be followed, the way is gone
 * one component at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "box/files.h"
#include "init/init.h"

struct files {
	int sock;
	struct changes changes;
	struct files_ask ask;
	char path[FILES_MAX_PATH + 1];
	struct err err;
	size_t n_out;
	char out[32768];
};

/* Sends; a peer that is gone ends the child. */
void files_put(struct files *f, const void *data, size_t len);
void files_flush(struct files *f);
void files_answer(struct files *f); /* with f->err */
void files_put_entry(struct files *f, const struct files_entry *e,
		     const char *name, const char *link);
/* The last entry: what could not be read, if anything. */
void files_put_end(struct files *f, uint64_t n_left_out, int code,
		   const char *name);

/* Receives exactly that much, or ends the child; nothing half is left. */
void files_get(struct files *f, void *data, size_t len);

/* Fills in an entry from what the kernel says; 'f', 'd' ... or 0. */
void files_describe(const struct stat *st, struct files_entry *ret);

/* One step down, never through a link; O_PATH, or -errno. */
int files_step(int dir, const char *name, size_t len);

/* A directory, entry by entry and without a heap. */
struct dents {
	int fd;
	long len;
	long at;
	char buf[4096] __attribute__((aligned(8)));
};

/* The next name but "." and "..", NULL at the end. */
const char *dents_next(struct dents *d);

/*
 * files-fresh.c: a new file in `dir`, which must stay open. fresh_link() gives
 * it a name, to be renamed; until then it has none, or one that fresh_drop()
 * unlinks. fresh_name() is one that was not there before. -errno.
 */
#define FRESH_NAME 32

int fresh_open(int dir);
int fresh_link(int fd, int dir, char ret[FRESH_NAME]);
void fresh_drop(void);
int fresh_name(char ret[FRESH_NAME]);

/* files-times.c: of directories, set at the end for each by `set`. */
void times_fill(int64_t mtime_ns, struct timespec ret[2]);
void times_later(const char *name, size_t len, int64_t mtime_ns);
void times_set(void (*set)(const char *name, const struct timespec t[2],
			   int top),
	       int top);

/*
 * tree.c: the nth word of /proc/PID/stat after the process's name, which may
 * hold anything; NULL if there are fewer. sscanf(3) would be a quarter of all
 * of init, which is copied for every box.
 */
enum {
	PROC_STATE = 1,
	PROC_PARENT = 2,
	PROC_SESSION = 4,
	PROC_USER = 12,
	PROC_KERNEL = 13,
	PROC_START = 20,
	PROC_SIZE = 21,
	PROC_RSS = 22,
};

const char *proc_field(const char *stat, int n);

/* files-read.c, files-write.c and so on: each sends its answer. */
void files_stat(struct files *f);
void files_read(struct files *f);
void files_write(struct files *f);
void files_make(struct files *f);
void files_ps(struct files *f);
void files_changes(struct files *f);
