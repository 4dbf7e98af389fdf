/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of the parent share.
 *
 * One thread. All descriptors are close-on-exec; a child that is forked keeps
 * only those that child_keep() names.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"
#include "serve/orders.h"
#include "serve/serve.h"
#include "serve/sweep.h"

/* ---- listen.c ---- */

struct listener {
	int fd;         /* NO_FD: there is none */
	char path[108]; /* as it is bound */
	bool is_made;   /* by us, and so removed by us */
	dev_t dev;
	ino_t ino;
};

/*
 * Takes what systemd has passed on, then makes what is missing. Nobody can
 * connect before owner and mode are right. -EADDRINUSE if somebody listens.
 */
int listeners_open(const struct serve_options *o, struct listener *own,
		   struct listener *docker, struct err *err);
void listener_close(struct listener *l);

/* ---- parts.c: the three that live as long as the daemon works ---- */

enum part_name { PART_KEEPER, PART_CLERK, PART_FRONT, PARTS };

struct part {
	pid_t pid; /* 0: not there */
	int pidfd;
};

/* ---- errand.c: children that live for one order ---- */

enum errand_kind { ERRAND_NONE, ERRAND_PREPARE, ERRAND_IMAGE, ERRAND_SEAL };

struct errand {
	enum errand_kind kind;
	uint32_t number; /* of the order */
	pid_t pid;
	int pidfd;
	int sock; /* where a preparer answers; NO_FD: it did, or has none */
	bool is_answered;
	int64_t deadline; /* INT64_MAX: none */
};

#define MAX_PREPARERS 64
#define MAX_IMAGES    8
#define MAX_ERRANDS   (MAX_PREPARERS + MAX_IMAGES + 1)

struct daemon {
	const struct serve_options *o;
	struct listener own;
	struct listener docker;
	bool is_root;
	uid_t front_uid;
	gid_t front_gid;
	char state[PATH_MAX]; /* without links */
	int state_fd;
	int lock;
	int front_dir;
	int signals;
	struct policy *policy;
	char *policy_name;     /* absolute; NULL: a preset */
	int64_t policy_loaded; /* seconds of the day */
	unsigned char sweep_key[SWEEP_KEY];
	struct part parts[PARTS];
	int front;  /* socket */
	int ledger; /* socket to the clerk: it says that a seal is due */
	bool is_ready;
	bool was_ready;
	bool is_stopping;
	bool is_drained;
	int n_signals; /* to stop */
	int64_t stop_at;
	int64_t restarts[10]; /* when the last ones were */
	struct errand errands[MAX_ERRANDS];
};

/* Makes, locks and opens the state and the front's directory in it. */
int state_take(struct daemon *d, struct err *err);

/* 0, or -errno: then none of them is there. */
int parts_start(struct daemon *d, struct err *err);
/* Ends those that are there and waits until nothing of theirs is. */
void parts_stop(struct daemon *d);

/*
 * In a child: descriptors `fds` become 3 and so on, all others go but the
 * three standard ones. A NO_FD leaves its number closed. -errno.
 */
int child_keep(const int *fds, int n);
/* Ends with the parent, no new rights, no dumps, no signals held back. */
int child_settle(pid_t parent);

/* ---- rules.c ---- */

/* On failure the policy is the one before. */
int rules_load(struct daemon *d, struct err *err);
/* Tells the front; -errno if it cannot be told. */
int rules_tell(struct daemon *d);
/* The settings of the Docker face, as a member of a document. */
struct json;
void rules_docker(struct json *j, const struct policy *p);

/* ---- errand.c ---- */

/* Takes the descriptors. Whatever comes of it, the front is answered once. */
void errand_prepare(struct daemon *d, const struct order *o, int *fds, int n);
void errand_image(struct daemon *d, const struct order *o, int *fds, int n);
void errand_seal(struct daemon *d);
/* Its socket or its end; `events` of its pidfd and its socket. */
void errand_look(struct daemon *d, struct errand *e);
void errand_late(struct daemon *d, int64_t now);
int64_t errand_next(const struct daemon *d);
void errands_kill(struct daemon *d);

/* 0 or -errno. */
int answer_send(int sock, const struct order_answer *a, const int *fds, int n);

/* ---- the children themselves; none returns ---- */

struct preparer {
	const struct daemon *d;
	int request; /* descriptors */
	int peer;
	int sock;
	uint32_t number;
};
void preparer_run(const struct preparer *p) __attribute__((noreturn));
void image_run_child(const struct daemon *d, const int fds[4])
	__attribute__((noreturn));
void clerk_run(int sock, int parent) __attribute__((noreturn));

/* ---- notify.c ---- */

/* One datagram, where NOTIFY_SOCKET says; else nothing. */
void notify(const char *text);

/* A sealed memfd with a document; -errno. */
int doc_seal(const struct buf *text, struct err *err);
/* Reads one, of a regular file, up to the buffer's ceiling. */
int doc_read(int fd, struct buf *ret, struct err *err);
