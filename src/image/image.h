/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images: where they are kept, how they come and go.
 *
 * Open the store, find an image, hold it (it is not removed while that is
 * open), read its configuration, open its layers, the lowest first.
 *
 * A store belongs to one user and lies below the state directory
 * (base/state.h). Reading needs no lock: the index is replaced as a whole.
 * Whoever changes the store waits for others who do, for moments only: what
 * takes long (reading an archive, unpacking) happens in a directory of its own
 * beforehand. A crash leaves the store as it was before or as it is after; what
 * was left over goes when the store is changed the next time.
 *
 * Names are normalised: `python` is docker.io/library/python:latest. Everything
 * foreign is held against its digest and against limits.
 *
 * The layers are for overlayfs with the mount option `userxattr`: what a layer
 * removes is a character device 0:0, a directory that hides what is below it
 * has the attribute user.overlay.opaque. All files belong to the store's owner;
 * docs/images.md says why, and what is left out of an archive.
 *
 * A function that fails returns -errno with one of these codes where a caller
 * may want to know; any other code is a failure of the machine. `err` is never
 * NULL here, and empty when the call begins.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strv.h"

enum image_error {
	IMAGE_NOT_FOUND = ENODATA,
	IMAGE_AMBIGUOUS = ENOTUNIQ, /* the beginning of more than one id */
	IMAGE_IN_USE = EBUSY,
	IMAGE_CORRUPT = EBADMSG, /* cut off, a wrong digest, not an image */
	IMAGE_REFUSED = EKEYREJECTED, /* understood, and not accepted */
	IMAGE_TOO_LARGE = EFBIG,
	IMAGE_BAD_NAME = EDESTADDRREQ, /* no image can have this name */
	IMAGE_NOT_YOURS = ENOKEY,      /* somebody else's name */
};

/* "sha256:", 64 digits, NUL; empty where there is none. */
#define IMAGE_DIGEST 72

struct image_layer {
	char diff_id[IMAGE_DIGEST]; /* of the tar; names the directory */
	char blob[IMAGE_DIGEST];    /* of the file as it came */
	uint64_t blob_size;
	uint64_t size; /* unpacked */
	uint64_t files;
};

struct image {
	char id[IMAGE_DIGEST];       /* of its configuration */
	char manifest[IMAGE_DIGEST]; /* if it came with one */
	char run[IMAGE_DIGEST];      /* the same, written anew: see store.h */
	struct strv names;           /* normalised, with their tags */
	struct strv owners;          /* of the names: uids, in digits */
	int64_t owner;               /* who brought it; -1 unknown */
	struct image_layer *layers;  /* lowest first */
	size_t n_layers;
	int64_t created; /* seconds since 1970, 0 unknown */
	int64_t loaded;
	char os[16];
	char architecture[32];
};

struct image_list {
	struct image *v;
	size_t n;
};

struct image_history {
	char *created, *created_by, *author, *comment;
	bool is_empty; /* made no layer */
};

/* What the image asks for. Strings are never NULL, and empty where not set. */
struct image_config {
	struct strv env; /* "NAME=value" */
	struct strv cmd;
	struct strv entrypoint;
	struct strv exposed_ports; /* "80/tcp" */
	struct strv volumes;
	struct strv labels;   /* "name=value"; a name has no '=' */
	struct strv diff_ids; /* lowest first */
	char *working_dir;
	char *user;
	char *stop_signal;
	char *created; /* as it is written */
	char *author;
	char *architecture;
	char *variant;
	char *os;
	struct image_history *history;
	size_t n_history;
};

struct image_store;

int image_store_open(struct image_store **ret, struct err *err);
void image_store_close(struct image_store *s);
/* On behalf of that user, who may change names of its own alone. */
void image_store_for(struct image_store *s, uint32_t uid);

/*
 * By name, by name@digest, by id ("sha256:..." or digits, whole or its
 * beginning). The caller frees it.
 */
int image_find(struct image_store *s, const char *text, struct image **ret,
	       struct err *err);
void image_free(struct image *image);

/* All, the newest first. */
int image_list_load(struct image_store *s, struct image_list *ret,
		    struct err *err);
void image_list_done(struct image_list *list);

int image_config_load(struct image_store *s, const struct image *image,
		      struct image_config *ret, struct err *err);
void image_config_done(struct image_config *config);
/* The configuration as it came, checked against the id. The caller frees it. */
int image_config_text(struct image_store *s, const struct image *image,
		      char **ret, size_t *ret_len, struct err *err);

/* Of the unpacked layers together. */
uint64_t image_size(const struct image *image);

/* Layer `i`, 0 the lowest: a directory (O_PATH), and its absolute path. */
int image_layer_open(struct image_store *s, const struct image *image, size_t i,
		     struct err *err);
int image_layer_path(struct image_store *s, const struct image *image, size_t i,
		     char *ret, size_t size, struct err *err);

/*
 * Whether the same layer comes once more above: then this one changes nothing,
 * and overlayfs takes no directory twice.
 */
bool image_layer_is_repeated(const struct image *image, size_t i);

/*
 * A descriptor. While it, or a copy of it in any process, is open, the image
 * and its layers stay. -IMAGE_NOT_FOUND if it went meanwhile.
 */
int image_hold(struct image_store *s, const struct image *image,
	       struct err *err);

/* Ceilings for what is taken in; image_limits_default() fills them all. */
struct image_limits {
	uint64_t archive; /* bytes of an archive as it comes */
	uint64_t size;    /* bytes of one image, unpacked */
	uint64_t file;    /* bytes of one file */
	uint64_t files;   /* entries of one image */
	uint64_t ratio;   /* unpacked to packed, from 64 MiB on */
};

void image_limits_default(struct image_limits *limits);

enum image_step {
	IMAGE_READING,   /* `done` bytes of `total` (0: not known) */
	IMAGE_UNPACKING, /* a layer, `what` its diff id; in packed bytes */
	IMAGE_WRITING,
	IMAGE_SKIPPED, /* `what`: something an archive had that is left out */
};

struct image_progress {
	void (*tell)(void *arg, enum image_step step, const char *what,
		     uint64_t done, uint64_t total);
	void *arg;
};

struct image_take {
	/* An archive (any file, or a pipe), or the directory of a layout. */
	int fd;
	struct image_limits limits;
	struct image_progress progress;
	/* Load: a name for an image without one. Import: the name, or NULL. */
	const char *name;
	/* Import: "CMD ...", "ENV A=b" and the like; a comment. */
	char *const *changes;
	size_t n_changes;
	const char *message;
};

/* Fills *ret with the images that were in it; on failure none is kept. */
int image_load(struct image_store *s, const struct image_take *take,
	       struct image_list *ret, struct err *err);
int image_import(struct image_store *s, const struct image_take *take,
		 struct image **ret, struct err *err);

/* Writes an archive that image_load() and others' tools read. */
int image_save(struct image_store *s, char *const *names, size_t n, int fd,
	       const struct image_progress *progress, struct err *err);

int image_tag(struct image_store *s, const char *text, const char *name,
	      struct err *err);

struct image_removed {
	struct strv untagged; /* names */
	struct strv deleted;  /* ids */
	uint64_t freed;       /* bytes */
};

/*
 * A name is taken from its image; an image without names goes. By id: all of
 * it, with `force` also if it has several names. What is held stays in any
 * case.
 */
int image_remove(struct image_store *s, const char *text, bool force,
		 struct image_removed *ret, struct err *err);
/* Those without a name; with `all`, those that nobody holds. */
int image_prune(struct image_store *s, bool all, struct image_removed *ret,
		struct err *err);
void image_removed_done(struct image_removed *removed);

/*
 * This process, for ever: no capabilities, no new privileges, no system calls
 * but those for files, and of all files only the store's (and those below
 * `input`, a directory to read, or NO_FD) and what is open already. For a
 * process that does nothing else but this; call it before foreign bytes are
 * read. With `is_landlock_optional` a kernel without Landlock is accepted.
 */
int image_confine(struct image_store *s, int input, bool is_landlock_optional,
		  struct err *err);
