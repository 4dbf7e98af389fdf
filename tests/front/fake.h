/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A front without the rest of the daemon.
 *
 * Parent and clerk are served from the same loop over socket pairs; boxes are
 * plain processes (fake-session.c stands in for box/session.h), each program
 * in a session of its own. Nothing is walled in: only what the manager does
 * is tested with it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "front/manager.h"

struct fake {
	uv_loop_t loop;
	struct manager *m;
	struct manager_limits limits;
	int parent, clerk; /* the other ends */
	uv_poll_t polls[2];
	char dir[64]; /* the state directory */

	/* how the others behave */
	bool refuse_records; /* the clerk has no disk */
	bool hold_records;   /* it answers later: fake_answer_records() */
	bool lose_records;   /* it is killed before it has written */
	bool hold_prepares;
	int n_prepares;
	int reloads; /* before so many answers the policy is read again */
	const char *image_says; /* JSON: what it adds to a box's spec */
	bool has_watches;       /* boxes have volumes that are to be swept */
	const char *violation;  /* that a sweep finds; NULL: it fails */
	int n_sweeps;
	int n_late;     /* of them, of boxes of an earlier front */
	bool has_gates; /* boxes have a way out: these, until they are ended */
	struct fake_gate {
		uint32_t number; /* of the order that brought it */
		int client, box; /* the gate's ends */
	} gates[16];
	int n_gates; /* that there were */
	int n_gate_ends;

	/* what the clerk was told: "run.start ID", "run.end ID cause code",
	 * then what was denied */
	char *records[4096];
	size_t n_records;
	int n_settled; /* runs of an earlier front that were asked about */
	bool is_drained, is_ready;
};

extern struct fake fake;
extern struct peer fake_root, fake_alice, fake_bob;

void fake_begin(void); /* a new state directory, a manager */
void fake_open(void);  /* a manager in the directory that is there */
void fake_crash(void); /* as if the front was killed; boxes die */
void fake_end(void);   /* drain, free, remove */
void fake_answer_records(void);
void fake_reload(void); /* the policy was read again */

/* Turns the loop until *flag, or for `ms` at most; whether it was set. */
bool fake_until(const bool *flag, int ms);
void fake_turn(int ms);
/* How many records begin with this text. */
size_t fake_count(const char *start);

/* ---- calls that wait ---- */

/* A box with `sh -c script`; NULL and fake_err if it was refused. */
struct box *fake_box(const char *name, const char *script);
struct box *fake_box_of(const struct peer *peer, const struct box_want *w);
extern struct err fake_err;
int fake_start(struct box *b); /* 0 or the error's code */
int fake_stop(struct box *b, int timeout_s);
int fake_remove(struct box *b, bool force);
struct exec *fake_exec(struct box *b, const char *const *command);

/* Collects what a feed gives. */
struct bag {
	char *out;
	size_t len, n_out, n_err;
	size_t room; /* takes no more than that; SIZE_MAX: all */
	bool is_over;
	struct feed *feed;
};
void bag_init(struct bag *b);
struct sink bag_sink(struct bag *b);

struct waited {
	bool is_done;
	int code;
	char error[200];
};
void fake_wait(struct waited *w, const char *text, enum box_condition c);

/* ---- fake-session.c ---- */

/* Serves session_files() in a child; NULL: it is closed. */
extern void (*fake_files)(int sock);
extern unsigned int fake_walls;    /* open now */
extern unsigned int fake_shelves;  /* kept, not forgotten */
extern bool fake_no_walls;         /* none can be built */
extern uint64_t fake_memory_limit; /* 0: boxes have none */
extern uint64_t fake_oom_kills;    /* in the life of what ends now */
extern uint64_t fake_caught;       /* what session_ask_caught() answers */
extern unsigned int fake_gated;    /* walls that were given a gate's socket */
void fake_kill_all(void);
