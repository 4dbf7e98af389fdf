/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the bodies of create and exec may say, field by field.
 *
 * Each object has a table of all fields that Docker knows there. A field that
 * is not in a table is passed over, unless it has the name of one that is
 * refused: a security request that is not understood is refused, not ignored.
 * Names are compared as Go does, without regard to case; the same one twice is
 * an error.
 */

#include "face/docker/internal.h"

enum field_kind {
	FIELD_TAKEN,     /* take() honours it */
	FIELD_REFUSED,   /* 403 when requested */
	FIELD_NULL,      /* 403 for anything but null */
	FIELD_NOT_THERE, /* 501 when requested */
	FIELD_NOTED,     /* harmless: a warning */
	FIELD_QUIET,     /* about the client itself, or other systems */
};

/* A container, or an exec, that is being made. */
struct making {
	struct docker *d;
	const struct peer *peer;
	struct docker_policy policy;
	json_t *settings; /* for the preparer */
	json_t *warnings;
	json_t *config, *host; /* what was asked, known fields only */
	json_t *keep;          /* where the table in use keeps them */
	void *part;            /* what fields_part() fills */
	json_t *entrypoint, *cmd, *env;
	const char *image;
	struct box_want want;
	const char **argv;
	struct exec_want exec;
	const char *detach_keys;
	struct said said;
};

typedef int take_fn(struct making *k, json_t *v, const char *where);
#define TAKE(name) static int name(struct making *k, json_t *v, const char *w)

struct field {
	const char *name;
	enum field_kind kind;
	take_fn *take;
	const char *why;
};

/* null, 0, "", [], {} and false are no request. */
bool is_requested(const json_t *v);

/* Walks an object; 0, or -1 with k->said. `where` is "HostConfig." or "". */
int fields_take(const struct field *table, const char *where, json_t *object,
		struct making *k);

/* The same of an object in it, whose fields fill `part`; 400 for others. */
int fields_part(const struct field *table, const char *where, json_t *object,
		struct making *k, void *part);

/* Tables end with a row without a name. */
extern const struct field config_fields[];
extern const struct field host_fields[];
extern const struct field endpoint_fields[];
extern const struct field exec_fields[];
extern const struct field mount_fields[];
extern const struct field bind_fields[];
extern const struct field volume_fields[];
extern const struct field tmpfs_fields[];

/* Getters that say what is wrong and where; -1 with k->said. */
int need_int(struct making *k, json_t *v, const char *where, int64_t min,
	     int64_t max, int64_t *ret);
int need_str(struct making *k, json_t *v, const char *where, const char **ret);
int need_bool(struct making *k, json_t *v, const char *where, bool *ret);
/* A list of strings; with `or_one` also a string. New reference. */
json_t *need_strs(struct making *k, json_t *v, const char *where, bool or_one);
/* Root only where the policy allows it; else a warning, and *ret is NULL. */
int need_user(struct making *k, json_t *v, const char *where,
	      const char *instead, const char **ret);
/* Each of a list of strings, until one is refused. */
int need_each(struct making *k, json_t *v, const char *where,
	      int (*each)(struct making *k, const char *text,
			  const char *where));
void warn(struct making *k, const char *fmt, ...) PRINTF(2, 3);

/* Appends to a list of the settings. */
void set_add(struct making *k, const char *name, const char *text);
void set_int(struct making *k, const char *name, int64_t n);
void set_str(struct making *k, const char *name, const char *text);
bool set_has(const struct making *k, const char *name, const char *part);

/* fields.c: what create and exec both have. */
take_fn take_cmd, take_env;
/* hosts.c */
take_fn take_host_config, take_networking, take_label_settings;
/* mounts.c */
take_fn take_binds, take_mounts, take_tmpfs;
int take_volumes(struct making *k, json_t *v); /* after the others */
/* refuse.c */
take_fn take_network_mode, take_namespace, take_security, take_runtime;

/* From a body to k; 0 or -1 with k->said. making_done() in any case. */
int making_container(struct making *k, json_t *body);
int making_exec(struct making *k, json_t *body);
/* A refusal that is told to who watches; what else was said is nobody's. */
void making_denied(const struct making *k, const char *id, const char *name);
void making_init(struct making *k, struct docker *d, const struct peer *peer);
void making_done(struct making *k);
