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
#include "serve/named.h"
#include "serve/orders.h"
#include "serve/question.h"
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

struct daemon;

/* Who is at the other end of a connection, as the kernel says. */
#define MAX_GROUPS 1024

struct who {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	gid_t groups[MAX_GROUPS];
	size_t n_groups;
};

/* who.c; -EPROTO if it was not made to one of our sockets. */
int who_find(const struct daemon *d, int sock, struct who *ret,
	     struct err *err);
bool who_is_same(const struct who *a, const struct who *b);

enum errand_kind {
	ERRAND_NONE,
	ERRAND_SPARE, /* a preparer that waits for its order */

	ERRAND_PREPARE,
	ERRAND_ASKED, /* a preparer for which a person was asked */
	ERRAND_IMAGE,
	ERRAND_SEAL,
};

struct errand {
	enum errand_kind kind;
	uint32_t number; /* of the order */
	pid_t pid;
	int pidfd;
	int sock; /* where a preparer answers; NO_FD: it did, or has none */
	bool is_answered;
	bool is_cancelled;
	bool is_late;     /* killed; it counts until its pidfd tells the end */
	int64_t deadline; /* INT64_MAX: none */
	uid_t uid;        /* whose request it is, as the kernel says */
	uint32_t age;     /* of a preparer: daemon.spare_age at its birth */
	pid_t peer_pid;
	struct question *question; /* that it waits for, or NULL */
};

/* ---- gates.c: the gates of boxes, for as long as these want them ---- */

#define MAX_GATES  1024
#define GATES_PEER 320 /* of one user; the front has 256 boxes of one alive */

struct gate_child {
	pid_t pid; /* 0: this place is free */
	int pidfd;
	uid_t uid;       /* for whom it is, as the kernel says */
	uint32_t number; /* of the order that it was started for */
	int sock;        /* where it asks (gate-ask.h); NO_FD: it does not */
	uint32_t n_asked;
	/* Of the request, for the record. */
	char run[33];
	char box[65];
	char face[17];
	char policy[NAMED_NAME]; /* by name; "": the daemon's */
};

struct daemon;

/* What a preparer says, with the two sockets. */
struct gate_want {
	uint32_t type; /* ORDER_GATE */
	uint32_t asks; /* a rule of its table does */
	char run[33];
	char box[65];
	char face[17];
	char policy[NAMED_NAME];
};

/* For a preparer, which is answered in any case. */
void gate_start(struct daemon *d, struct errand *e,
		const struct gate_want *want, const int *fds, int n);
void gate_end(struct daemon *d, uint32_t number);
/* d->gate_events is readable: some have ended, or ask. */
void gates_look(struct daemon *d);
bool gates_have(const struct daemon *d, pid_t pid);
/* All of them, and none is left when it returns. */
void gates_kill(struct daemon *d);

#define PREPARE_US     10000000
#define MAX_PREPARERS  64
#define PREPARERS_PEER 32 /* of one user; the front has 20 at work */
#define MAX_IMAGES     8
#define MAX_ERRANDS    (MAX_PREPARERS + MAX_IMAGES + 2 + MAX_QUESTIONS)

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
	struct named named;    /* under it, for who asks for one */
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
	uint32_t spare_age;   /* one more with each user and each policy */
	struct who spare_who; /* whom the spare preparer has become, */
	bool wants_spare;     /* or is to become, */
	int64_t spare_at;     /* then; INT64_MAX: nobody was answered yet */
	struct question questions[ALL_QUESTIONS];
	struct gate_child gates[MAX_GATES];
	int gate_events; /* an epoll of theirs; NO_FD: there was none yet */
	uint64_t
		ask_wait_us; /* of a client that does not wait long; 0: usual */
};

/* Makes, locks and opens the state and the front's directory in it. */
int state_take(struct daemon *d, struct err *err);

/* 0, or -errno: then none of them is there. */
int parts_start(struct daemon *d, struct err *err);
/* Ends those that are there and waits until nothing of theirs is. */
void parts_stop(struct daemon *d);
/* Those that became ours when their parent died: we may be pid 1. */
void parts_reap(const struct daemon *d);

/* dead.c: which of them died, in words; `first` was the first seen gone. */
void parts_dead(const struct daemon *d, int first, char *ret, size_t size);

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
/*
 * The policy of that name, NULL or "": the daemon's own. -errno as
 * named_find().
 */
int rules_find(const struct daemon *d, const char *name,
	       const struct policy **ret, struct err *err);
/* Tells people, when it holds everywhere. */
void rules_say(const struct daemon *d);
/* The settings of the Docker face, as a member of a document. */
struct json;
void rules_docker(struct json *j, const struct policy *p);

/* ---- errand.c ---- */

/* Takes the descriptors. Whatever comes of it, the front is answered once. */
void errand_prepare(struct daemon *d, const struct order *o, int *fds, int n);
/* The one that was made ahead is not to be used: the policy is another. */
void errand_drop_spare(struct daemon *d);
void errand_image(struct daemon *d, const struct order *o, int *fds, int n);
/* Whoever asked for it has left: a question is withdrawn, else nothing. */
void errand_cancel(struct daemon *d, uint32_t number);
void errand_seal(struct daemon *d);
/* Its socket or its end; `events` of its pidfd and its socket. */
void errand_look(struct daemon *d, struct errand *e);
void errand_late(struct daemon *d, int64_t now);
int64_t errand_next(const struct daemon *d);
/*
 * What cannot be killed, since it waits in a file system of its user's, stays
 * in the table and counts; nobody waits for it longer than END_US.
 */
void errands_kill(struct daemon *d);

/* 0 or -errno. */
int answer_send(int sock, const struct order_answer *a, const int *fds, int n);

/* ---- the children themselves; none returns ---- */

/* It gets its orders, each with two descriptors, over its socket. */
struct preparer {
	const struct daemon *d;
	const struct who *who; /* whose requests; NULL: the first one's */
	int sock;
	int request;
	int peer;     /* a connection; is_late: a struct sweep_who */
	bool is_late; /* may only sweep */
};
void preparer_run(struct preparer *p) __attribute__((noreturn));
void image_run_child(const struct daemon *d, const int fds[5])
	__attribute__((noreturn));
void clerk_run(int sock, int parent) __attribute__((noreturn));

/* ---- notify.c ---- */

/* One datagram, where NOTIFY_SOCKET says; else nothing. */
void notify(const char *text);

/* A sealed memfd with a document; -errno. */
int doc_seal(const struct buf *text, struct err *err);
/* Reads one, of a regular file, up to the buffer's ceiling. */
int doc_read(int fd, struct buf *ret, struct err *err);
