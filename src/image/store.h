/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The store's inside. On disk, below images/ in the state directory:
 *
 *	index.json		  all that is there: images, names, layers
 *	blobs/sha256/DIGITS	  configurations, manifests, layers as they came
 *	layers/sha256/DIGITS/fs	  layers unpacked, by the digest of their tar
 *	tmp/NAME/		  one for each process that prepares something
 *	use/DIGITS		  locked by whoever uses that image
 *	lock			  held while index.json is changed
 *
 * What index.json does not name does not exist, and is swept by whoever holds
 * the lock next. A tmp/NAME is locked (flock) by its process and swept when it
 * no longer is.
 *
 * index.json, and of each image the blob "run", are as base/json.h writes them,
 * so a program without a library for JSON can read them (ledger/read.h). "run"
 * is the configuration once more, with what image.h knows of it.
 *
 * index.json is
 *{"version":1,"images":[{"id","manifest","run","names":[],"owners":[],
 * "owner","layers":[{"diff_id","blob","blob_size","size","files"}],"created",
 * "loaded","os","architecture"}]}.
 *
 * "owners" are uids, one for each name, and "owner" is who brought the image;
 * where they are missing it is the store's own user.
 */

#include "base/buf.h"
#include "image/image.h"

struct image_store {
	int dir;
	char path[4096];
	uint32_t owner; /* of the directory */
	uint32_t who;   /* for whom it is changed */
};

/* Something that is ready to be moved into the store. */
struct image_ready {
	char digest[IMAGE_DIGEST];
	char file[24]; /* in the session's directory */
	bool is_layer;
	uint64_t size;
	uint64_t files;
};

struct image_session {
	struct image_store *store;
	int dir; /* tmp/NAME, locked */
	char name[40];
	unsigned int count; /* of names given out */
	struct image_ready *ready;
	size_t n_ready;
};

int image_session_begin(struct image_session *ses, struct image_store *s,
			struct err *err);
/* Removes what was not moved. */
void image_session_end(struct image_session *ses);

/* A name for the next file in the session's directory. */
void image_session_name(struct image_session *ses, char ret[24]);

const struct image_ready *image_session_find(const struct image_session *ses,
					     const char *digest, bool is_layer);
int image_session_add(struct image_session *ses,
		      const struct image_ready *ready, struct err *err);

/* A small blob from memory; its digest. */
int image_session_put(struct image_session *ses, const void *data, size_t len,
		      char ret[IMAGE_DIGEST], struct err *err);

/*
 * Moves all that is ready into the store and adds the images; a name goes to
 * the new one. -EAGAIN if a layer that was in the store is gone meanwhile.
 */
int image_session_commit(struct image_session *ses,
			 const struct image_list *images, struct err *err);

/* The lock; close it to let go. */
int image_store_lock(struct image_store *s, struct err *err);
int image_index_load(struct image_store *s, struct image_list *ret,
		     struct err *err);
/* With the lock held. */
int image_index_store(struct image_store *s, const struct image_list *list,
		      struct err *err);
/* With the lock held: moves what the list does not name to the session. */
int image_store_sweep(struct image_session *ses, const struct image_list *list,
		      struct err *err);

/* index.json as text, for itself and for its tests. */
int image_index_parse(const char *text, size_t len, struct image_list *ret,
		      struct err *err);
void image_index_format(const struct image_list *list, struct buf *out);

/* A layer in the list, by its diff id. */
const struct image_layer *image_list_layer(const struct image_list *list,
					   const char *diff_id);
struct image *image_list_id(const struct image_list *list, const char *id);

/* As image_find(), in a list that stays its owner. */
int image_list_find(const struct image_list *list, const char *text,
		    const struct image **ret, struct err *err);

/* A copy at the list's end. */
int image_list_add(struct image_list *list, const struct image *image,
		   struct err *err);
void image_done(struct image *image);

/* A blob, opened; its content is not checked. -IMAGE_CORRUPT if missing. */
int image_blob_open(struct image_store *s, const char *digest, struct err *err);
/* All of a small one, checked. The caller frees it. */
int image_blob_read(struct image_store *s, const char *digest, char **ret,
		    size_t *ret_len, struct err *err);

/* A file of at most IMAGE_DOC_MAX bytes, as a string. The caller frees it. */
int image_read_doc(int fd, char **ret, size_t *ret_len, struct err *err);

/* A name that an image may get, normalised. */
int image_name_parse(const char *text, char *ret, size_t size, struct err *err);

/*
 * 0 where it is not what an image of the list is called by already, which is
 * the beginning of its id: else -IMAGE_REFUSED.
 */
int image_name_free(const struct image_list *list, const char *name,
		    struct err *err);

/* Whether a list has this name; where. -1 if not. */
long image_names_find(const struct strv *names, const char *name);
void image_names_remove(struct strv *names, size_t i);

/* owner.c: 0, or -IMAGE_NOT_YOURS */
int image_name_check(const struct image_store *s, const struct image *m,
		     size_t i, struct err *err);
/* All names; of an image without any, who brought it. */
int image_owner_check(const struct image_store *s, const struct image *m,
		      struct err *err);
/* Whether it may go with its last name. */
bool image_may_drop(const struct image_store *s, const struct image *m);
/* A name of who asks; and none any more. */
int image_name_add(const struct image_store *s, struct image *m,
		   const char *name, struct err *err);
void image_name_drop(struct image *m, size_t i);
int image_owners_fill(struct image *m, uint32_t uid, struct err *err);
