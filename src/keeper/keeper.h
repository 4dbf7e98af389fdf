/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The keeper: what has rights over boxes.
 *
 * One thread, no heap, no parsing of anything that a box wrote. It is told by
 * a client over a socket, makes boxes, watches their time, ends them, reads
 * the kernel's counters and removes what they left. When its client is gone,
 * it ends every box.
 *
 * For the library it is a program of its own, cordon-keeper. The command
 * `cordon run`, which lives for one run and has the same rights, steps a
 * keeper in its own loop instead and spares itself a process.
 *
 *	main.c    the program
 *	keeper.c  open, step, close
 *	world.c   the keeper's own namespaces, the sealed init
 *	uids.c    host uids for boxes, so that no two have the same
 *	record.c  the note from which a later start cleans up after a crash
 *	midwife.c root's first box, born beside us
 *	net.c     network namespaces, used again
 *	remains.c what is left of a single run, taken down beside us
 *	shed.c    those of many boxes, by a child
 *	spawn.c   an empty box: namespaces, init, cgroups (parked)
 *	layers.c  the layers of an image, and that it stays
 *	mounts.c  what is mounted into a box, as descriptors
 *	configure.c  a parked box gets its spec: limits, ids, mounts
 *	run.c     a box gets its work; its life and its end
 *	session.c a box that stays: opened, asked, closed
 *	program.c a program in such a box: its group, its time, its end
 *	shelf.c   what is kept of such a box for the next one
 *	ahead.c   such a box, made before it is asked for
 *	peer.c    whose rights a bind mount is opened with
 */

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/wire.h"
#include "os/cgroup.h"
#include "os/uapi.h"

/* Numbers that init's descriptors will have; a keeper keeps them busy. */
#define KEEPER_INIT_SOCK 3
#define KEEPER_INIT_LOCK 4
#define KEEPER_FIRST_FD  5
#define KEEPER_BOXES     (WIRE_STAYING + 64) /* and what is made ahead ... */
#define KEEPER_RUNS      128                 /* ... where none stays */
#define KEEPER_PROGRAMS  WIRE_PROGRAMS
#define KEEPER_SHELVES   WIRE_SHELVES

/* What an event is about; the rest of its data is the box's number. */
enum keeper_event {
	KEEPER_EV_CLIENT,
	KEEPER_EV_CLIENT_PID,
	KEEPER_EV_SOCK,
	KEEPER_EV_PIDFD,
};

struct world {
	bool is_root; /* really root: id-mapped binds, uid range */
	uid_t caller; /* who runs this */
	gid_t caller_gid;
	uint32_t uid_base;    /* host uids that boxes may have */
	uint32_t uid_count;   /* 0: only the caller's own */
	uint32_t block_base;  /* further ones, WIRE_IDS for each block */
	uint32_t block_count; /* 0: a box has one user */
	int proc;             /* the host's procfs, checked to be one */
	int root; /* the host's root directory, in our mount namespace */
	int init; /* sealed memfd */
	int landlock_abi;
	char runtime[256];
	int runtime_fd;
};

/*
 * A box is made ahead as far as its future is known: PARKED when only its ids
 * are, READY when its spec is (that of the last run, of which the next one is
 * probably a copy). Either is used once, and never after a run.
 */
enum box_state {
	BOX_FREE,
	BOX_PARKED,
	BOX_READY,
	BOX_SETUP, /* it has work, the program is not yet started */
	BOX_RUNNING,
	BOX_STAYS, /* as RUNNING, but there is no one program that it is */
	BOX_DYING, /* killed, not yet gone */
};

#define BOX_DISKS 16

/* How long init may take to end after it said so; see box_kill(). */
#define BOX_LATE_US 2000

/*
 * Who a box is inside, whether it has the caller's uid outside, and whether it
 * has other users, root among them.
 */
struct ids {
	uint32_t uid;
	uint32_t gid;
	bool caller;
	bool many;
	bool root;
};

struct box {
	enum box_state state;
	uint32_t job;
	uint32_t serial;
	pid_t pid;
	int pidfd;
	int sock;
	int lock; /* holds the uid */
	uint32_t host_uid;
	uint32_t host_block;      /* of its other users, if ids.many */
	int net;                  /* its network namespace, to be used again */
	volatile int birth_error; /* why there is no init; box_born() */
	const char *volatile birth_what;
	struct ids ids;
	const struct wire_box *spec; /* mapped, from READY on */
	int only_cpu;                /* that it may use, from READY on; or -1 */
	struct cg_box cg;
	struct wire_times times;
	struct cg_usage before; /* used by set-up and earlier blocks */
	struct wire_outcome outcome;
	bool heard; /* init told its end */
	int64_t started;
	int64_t deadline;
	int64_t total_deadline;
	int64_t cpu_check;
	int64_t kill_at;      /* after a SIGTERM */
	int64_t block_at;     /* init was told to end a block; 0: it was not */
	bool goes_on;         /* also after a block that was ended */
	bool is_between;      /* a block is over, the client looks at it */
	bool is_flooded;      /* before its start was heard */
	int64_t late_at;      /* init said the end and is still there */
	int disks[BOX_DISKS]; /* writable memory file systems */
	int n_disks;
	int work;      /* the workspace among them */
	int hold;      /* the image of its root stays while this is open */
	int store;     /* where its layers are, while they are opened ... */
	int layer_map; /* ... and how their ids are shown */
	int root;      /* or its mounts: see layers_keep() */
	int unchanged; /* the root without changes, which init has: the same */
	/* of a box that stays */
	bool stays;
	bool is_frozen;
	bool may_keep;           /* what is on the shelf stays there */
	bool is_up;              /* READY, and init says so too */
	uint32_t shelf;          /* 0: none */
	uint32_t n_files;        /* numbers for requests for files */
	uint64_t oom_claimed;    /* kills for memory that are some program's */
	uint64_t last_end;       /* of a program; blame.c */
	const struct peer *peer; /* while it is opened; NULL: ourselves */
};

/* Who asks, as the kernel says; peer.c. */
#define PEER_GROUPS 256

struct peer {
	uid_t uid;
	gid_t gid;
	gid_t groups[PEER_GROUPS];
	int n_groups;
};

enum program_state {
	PROGRAM_FREE,
	PROGRAM_STARTING,
	PROGRAM_RUNNING,
	PROGRAM_ENDING, /* what is left of it was killed */
	PROGRAM_LEFT,   /* told; others of its group live on */
};

/* One program in a box that stays. Its group is named by its number. */
struct program {
	uint32_t number;
	int box;
	enum program_state state;
	bool is_files; /* a request for files, of which nobody is told */
	bool kill_rest;
	bool is_last; /* the box ends with it */
	bool is_held; /* it waits for its streams */
	bool heard;   /* init told its end */
	bool is_shot; /* it was sent SIGKILL as asked */
	struct wire_times times;
	uint64_t oom_before;
	uint64_t refused_before;
	uint64_t born;     /* by k->stamp; 0: a request for files */
	uint64_t ran;      /* seen then to have run since the look before */
	uint64_t cpu_seen; /* at the last look */
	int64_t started;
	int64_t deadline;
	int64_t total_deadline;
	int64_t cpu_check;
	int64_t kill_at;  /* after a SIGTERM */
	int64_t look_at;  /* whether its group is empty by now */
	int64_t patience; /* how long to wait until the next look */
	/* what will be told */
	uint32_t end;
	int32_t wait_status;
	int32_t exec_errno;
	uint32_t step;
	uint8_t pids_full;
	uint64_t wall_us;
};

/* What is kept of a box that was closed; shelf.c. */
struct shelf {
	uint32_t number; /* 0: free */
	bool is_used;    /* by a box that is there */
	int lock;
	uint32_t host_uid;
	uint32_t host_block;
	struct ids ids;
	int n_disks;
	int disks[BOX_DISKS]; /* detached mounts */
	uint64_t what[BOX_DISKS];
};

/* What is to be made ahead; ahead.c. */
#define AHEAD_SEEN 8

struct ahead {
	bool is_planned;
	bool is_soon;              /* nothing that happens puts it off */
	int n_ready;               /* of its kind, when it was planned */
	struct ids ids;            /* of the next one */
	int spec;                  /* its memfd, NO_FD: that is not known */
	bool shelf;                /* it is to have one */
	int64_t at;                /* when, if nothing else happens */
	uint64_t seen[AHEAD_SEEN]; /* digests of what was opened last */
	uint32_t n_seen;
};

struct keeper {
	int sock;     /* to the client */
	int client;   /* pidfd of the client, NO_FD if that is ourselves */
	bool is_over; /* nothing more to do: the client is gone, or told all */
	struct err refusal; /* why there can be no box at all */
	int top;            /* boxes from here on were never used */
	struct world world;
	struct cg_tree cg;
	struct box boxes[KEEPER_BOXES];
	struct program programs[KEEPER_PROGRAMS];
	int top_program; /* as top */
	uint64_t stamp;  /* what came first; blame.c */
	struct shelf shelves[KEEPER_SHELVES];
	struct ahead ahead;
	bool has_own_mounts; /* a mount namespace apart from the host's */
	int epoll;
	int record; /* locked */
	char id[20];
	uint32_t serial;
	pid_t midwife;      /* the child that bears the first box, 0: none */
	struct box *unborn; /* that it is at, or NULL */
	pid_t remains;      /* the child that holds a box's mounts, 0: none */
	pid_t shed;         /* the child that lets go of mounts, 0: none */
	int shed_sock;      /* to it */
	bool has_cpus;      /* more than the one that it is on */
	cpu_set_t cpus;     /* that it may use, before cpus_leave() */
	bool is_swept;      /* looked for what others left behind */
	bool has_left;  /* a group could not be removed: the next start will */
	bool is_reused; /* more runs will follow: make the next box ahead */
	int next;       /* what that is made for, NO_FD: none to be made */
	bool next_is_born;
	/*
	 * The client is not who the boxes are for, and no run is taken from
	 * it: what a run mounts is opened with our own rights.
	 */
	bool only_stays;
};

/*
 * A named moment at which a test build can be made to die (CORDON_TEST_DIE
 * with "keeper-" in front), as by kill -9. Nothing in an ordinary build.
 */
#ifdef CORDON_TEST_BUILD
void keeper_moment(const char *name);
#else
static inline void keeper_moment(const char *name)
{
	(void)name;
}
#endif

/* keeper.c */

/*
 * Gets ready to take runs from `sock`, whose other end the client has. Where
 * no box can be made, each run is refused with the reason; where not even
 * that is possible, it is over at once, and the reason is in `refusal`.
 * `client` is 0 where the client is this very process.
 */
void keeper_open(struct keeper *k, int sock, pid_t client, bool is_reused);

/*
 * May be called before that, when all else about a run is still to be read:
 * what takes longest is begun. Then keeper_close() is a must.
 */
void keeper_ahead(struct keeper *k, bool has_way_out);

/* To be polled for reading, for at most keeper_timeout_ms(). */
int keeper_fd(const struct keeper *k);
int keeper_timeout_ms(const struct keeper *k);
void keeper_step(struct keeper *k, int timeout_ms);

/*
 * Removes what keepers that crashed left behind, once: when a program runs
 * and there is nothing else to do, at the latest at the end.
 */
bool keeper_sweep(struct keeper *k); /* whether nothing is left */

/* Ends every box and lets go of everything. */
void keeper_close(struct keeper *k);

/* world.c: who runs this, first of all; then the rest. */
int world_find_caller(struct world *w, struct err *err);
int world_open(struct world *w, struct err *err);

/*
 * uids.c: returns a locked descriptor and the uid; adds a block to what is
 * locked, -EAGAIN where none is free; writes the lines of uid_map or gid_map.
 */
int uid_take(const struct world *w, uint32_t *ret_uid, struct err *err);
int block_take(const struct world *w, int lock, uint32_t *ret_base);
void ids_format(const struct box *b, uint32_t inside, uint32_t outside,
		char *ret, size_t size);

/* record.c */
int record_open(struct keeper *k, struct err *err);
/* One more directory in which groups will be made. */
int record_add(struct keeper *k, const char *path, struct err *err);
void record_remove(struct keeper *k);
bool record_sweep(const struct world *w);

/*
 * midwife.c: what it needs to bear a box, and what becomes of it. The pid is
 * not 0 as soon as there is a process; there may be an error all the same.
 */
struct birth {
	struct uapi_clone_args args;
	void (*run)(void *unused); /* in the new process, on this stack */
	void *stack;
	size_t stack_size;
	uint64_t *ignored; /* signals; set before the clone */
	bool has_uid;
	uint32_t uid;
	int proc; /* where the maps are written */
	bool denies_groups;
	char uid_map[160];
	char gid_map[160];
	int sock; /* to init */
	struct wire_go go;
	pid_t pid;
	int error;
	const char *what; /* was tried then */
};

/*
 * Begins, where it can; takes a birth, which must stay until it was awaited, or
 * refuses; ends it.
 */
void midwife_call(struct keeper *k, bool has_way_out);
bool midwife_bear(struct keeper *k, struct birth *birth);
void midwife_await(struct keeper *k);
void midwife_done(struct keeper *k);
/* The signals that a box would ignore if nobody changed it. */
uint64_t signals_ignored(void);
/* All CPUs that we may use but the one that we are on; false: none. */
bool cpus_other(const struct keeper *k, cpu_set_t *ret);
/*
 * A single run's keeper leaves the only CPU of its box alone: woken up there it
 * would be in the way of what it waits for.
 */
void cpus_leave(const struct keeper *k, int cpu);

/*
 * net.c: enters a network namespace that is left of another box, -ENOENT where
 * there is none; comes back; lets go of all.
 */
int net_enter(struct keeper *k, struct box *b);
int net_leave(void);
void net_close(void);
/* That of a box which was born with it; and for others, when it is dead. */
void net_hold(const struct keeper *k, struct box *b);
void net_keep(const struct keeper *k, struct box *b);
/*
 * remains.c: the box runs: what is left of it will be taken down by a child;
 * nobody has to look at its groups any more. Its init is dead: whether they
 * are removed by remains_settle(); that, whether they are gone; all is.
 */
void remains_watch(struct keeper *k, const struct box *b);
void remains_offer(const struct keeper *k, const struct box *b);
bool remains_take(const struct keeper *k, struct box *b);
bool remains_settle(void);
void remains_done(struct keeper *k);
/*
 * shed.c: from here on others let go; closes these, or has them closed, in a
 * moment and in any order; waits until all of them are; ends it.
 */
#define KEEPER_SHED 32 /* at once; more of them are closed here */
void shed_open(struct keeper *k);
void shed_fds(const struct keeper *k, int *fds, int n);
void shed_settle(const struct keeper *k);
void shed_close(struct keeper *k);

/* spawn.c */
struct box *box_spawn(struct keeper *k, struct ids ids, struct err *err);
/* The same with the host ids of what is on a shelf. */
struct box *box_spawn_again(struct keeper *k, struct ids ids,
			    const struct shelf *s, struct err *err);
/* Waits until its init runs; an error where it never will. */
int box_born(struct keeper *k, const struct box *b, struct err *err);
/* The same for the one that is under way, if any; it is gone where it failed.
 */
void box_settle(struct keeper *k);
/* Opens the `tasks` that its init is to write to; the number, or -errno. */
int box_open_tasks(struct keeper *k, const struct box *b, int *ret_fds,
		   struct err *err);
/* The same for the groups of one of its programs. */
int box_open_part(struct keeper *k, const struct box *b, uint32_t number,
		  struct cg_join *ret, struct err *err);
/* Lets go of everything of a box that has no process any more. */
void box_release(struct keeper *k, struct box *b);

/* The writable places that it was watched by, once its end is told. */
void box_close_disks(const struct keeper *k, struct box *b);
/* mounts.c: opens all mounts of the spec; bit i of ret_mask: fds has one. */
int mounts_open(struct keeper *k, struct box *b, const struct wire_box *spec,
		int *ret_fds, int *ret_n, uint64_t *ret_mask, struct err *err);

struct pair {
	uint32_t uid;
	uint32_t gid;
};

/* A user namespace that only says how to translate ids. */
int mounts_map(const struct world *w, struct pair from, struct pair to,
	       struct err *err);

/*
 * layers.c: the image of the box's root, held until the box is gone; one of
 * its layers, a detached mount; no more layers are to be opened.
 */
int box_hold_image(const struct world *w, struct box *b,
		   const struct wire_box *spec, struct err *err);
int layer_open(const struct world *w, struct box *b, const struct wire_mount *m,
	       struct err *err);
void layers_done(struct box *b);
/*
 * Keeps the mounts of a box that is up until box_release(); of one with a
 * volume of somebody's only its root, since volumes are free when the end is
 * told. The kernel takes mounts and layers down in several waits, for which
 * init's end, and who waits for that, would have to wait too.
 */
void layers_keep(const struct keeper *k, struct box *b);

/* configure.c: gives a parked box its spec, of which `fd` is the memfd. */
int box_configure(struct keeper *k, struct box *b, int fd, struct err *err);
/* Maps a sealed spec and checks it; NULL with *err. */
const struct wire_box *spec_map(int fd, struct err *err);

/*
 * Whether sending failed because init has failed before: then what it said
 * is still in the socket, and its death will bring it up.
 */
static inline bool init_is_gone(int r)
{
	return r == -EPIPE || r == -ECONNRESET;
}

/*
 * Whether a box that was made ahead can still be used. One whose init has
 * failed already waits for its death only: the next one will tell why.
 */
static inline bool box_waits(const struct box *b, enum box_state state)
{
	return b->state == state && b->sock >= 0 && !b->heard;
}

/* next.c: a box for what *fd has, which it takes; in steps, at leisure. */
void next_plan(struct keeper *k, int *fd);
void next_step(struct keeper *k);

/* run.c */
/* A run of this box is about to follow. */
void run_ahead(struct keeper *k, int *fds, int n_fds);
void run_request(struct keeper *k, const struct wire_head *head, int *fds,
		 int n_fds);
void run_init_said(struct keeper *k, struct box *b);
void run_init_died(struct keeper *k, struct box *b);
void run_end(struct keeper *k, struct box *b, enum wire_end end);
void run_flooded(struct keeper *k, struct box *b); /* its client says so */
void run_next(struct box *b, const struct wire_head *head);
void run_timers(struct keeper *k);
int64_t run_next_look(const struct keeper *k); /* INT64_MAX: never */
struct box *run_find(struct keeper *k, uint32_t job);
struct box *run_find_parked(struct keeper *k, struct ids ids);
struct ids run_ids(const struct keeper *k, const struct wire_box *spec);
void box_kill(struct keeper *k, struct box *b);
void box_look_at_disks(struct box *b);
void box_fill_usage(struct keeper *k, struct box *b, const struct rusage *ru);

bool spec_is_same(const struct wire_box *a, const struct wire_box *b);

/* session.c: a message of the client; what init says; its death. */
void session_request(struct keeper *k, const struct wire_ask *ask, int *fds,
		     int n_fds);
void session_init_said(struct keeper *k, struct box *b);
void session_init_died(struct keeper *k, struct box *b);
/* The program with which it ends has ended; its disks stay. */
void session_over(struct keeper *k, struct box *b);
/* Tells the client; one that does not listen is given up. */
void session_tell(struct keeper *k, const struct wire_told *told,
		  const int *fds, int n);

/* Gives it its spec; `shelf` is taken if nothing is kept there yet. */
int session_configure(struct keeper *k, struct box *b, uint32_t shelf, int fd,
		      struct err *err);

/* ahead.c: numbers of shelves from here on are the keeper's own. */
#define AHEAD_SHELF 0x80000000U
/* One that was made for just this, whose shelf has now this number; or NULL. */
struct box *ahead_take(struct keeper *k, const struct wire_box *spec,
		       struct ids ids, uint32_t shelf);
/* One was opened: what will probably be asked for next? */
void ahead_plan(struct keeper *k, const struct wire_box *spec, struct ids ids,
		int fd, bool has_shelf);
/* One was closed: the next will be wanted soon, if one is planned. */
void ahead_soon(struct keeper *k);
/* The oldest that waits, whose place is free then; NULL: none waits. */
struct box *ahead_give_up(struct keeper *k);
/* Its init died, or it was not asked for. */
void ahead_drop(struct keeper *k, struct box *b);
/* Something happened: the time to make one is later. */
void ahead_wait(struct keeper *k);
void ahead_timers(struct keeper *k);
int64_t ahead_next_look(const struct keeper *k);

/* program.c */
struct program *program_get(struct keeper *k, const struct box *b,
			    uint32_t number);
int program_start(struct keeper *k, struct box *b, const struct wire_ask *ask,
		  const int *fds, int n_fds, struct err *err);
void program_signal(struct keeper *k, struct program *p, int signal);
void program_kill(struct keeper *k, struct program *p, enum wire_end end);
void program_begun(struct keeper *k, struct program *p, int tty);
void program_done(struct keeper *k, struct program *p,
		  const struct wire_outcome *o);
/* All of a box that has no process any more. */
void programs_end(struct keeper *k, struct box *b);
int programs_freeze(struct keeper *k, struct box *b, bool is_frozen);
void programs_timers(struct keeper *k);
int64_t programs_next_look(const struct keeper *k);

/* blame.c: kills for memory that are this program's, of so many of the box */
void blame_begin(struct keeper *k, struct program *p);
uint64_t blame_kills(struct keeper *k, const struct program *p, uint64_t kills);
void blame_end(struct keeper *k, const struct program *p);

/* shelf.c: the one with this number; NULL: none. */
struct shelf *shelf_find(struct keeper *k, uint32_t number);
/* A new one for a box that is opened; NULL with *err. */
struct shelf *shelf_take(struct keeper *k, struct box *b, uint32_t number,
			 struct err *err);
void shelf_forget(struct keeper *k, uint32_t number);
/* The disk of a mount of the spec, for the box to have; see mounts.c. */
int shelf_disk(struct keeper *k, struct box *b, const struct wire_mount *m,
	       const char *target, int *mnt, struct err *err);
void shelves_close(struct keeper *k);

/* peer.c */
int peer_read(int sock, struct peer *ret, struct err *err);
/* Opens it with the peer's rights, without following any link. */
int peer_open(struct keeper *k, const struct peer *p, const char *path,
	      bool may_write, struct err *err);
/* Whether it is what every box is made of. */
bool peer_may_see(const struct wire_mount *m, const char *path);
/* The same of all that it mounts from the host: nobody's volume is there. */
bool peer_may_see_all(const struct wire_box *spec);
/* Whether it is theirs to be shown as the box's own. */
bool peer_owns(const struct peer *p, const struct stat *st);
/* The group that files made there may have. */
gid_t peer_group(const struct peer *p, const struct stat *st);

/* world.c: a mount namespace of our own, where we still have the host's. */
int world_own_mounts(struct world *w, struct err *err);

/* mounts.c: a second mount of the same file system, detached, or -errno. */
int mounts_twin(const struct world *w, int *mnt, struct err *err);
