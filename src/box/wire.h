/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What client, keeper and init say to each other.
 *
 *	client -- SEQPACKET --> keeper -- SEQPACKET --> init
 *
 * A run travels as two sealed memfds, so that a box can be made before it is
 * known what will run in it:
 *
 *	the box:   limits, user, mounts, the root's own files
 *	the work:  time limits, programs, environment, files for the workspace
 *
 * Each is a fixed structure followed by a pool of strings and file contents.
 * The client writes them; the keeper reads numbers, mounts and their paths;
 * init reads the rest. Because they are sealed, what one of them checked is
 * what the next one sees. All offsets are from the start of the memfd; a
 * string is NUL-terminated; a vector is `count` strings one after the other.
 * Nothing in it is an address, and every reader checks the bounds.
 *
 * All three programs are built from one tree and start each other, so there
 * is no version to negotiate; the magic numbers change with the layout.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define WIRE_BOX_MAGIC  0x43520115U
#define WIRE_WORK_MAGIC 0x43520206U
#define WIRE_MAX_MOUNTS 192
#define WIRE_MAX_STEPS  64
#define WIRE_MAX_TASKS  8
#define WIRE_MAX_GROUPS 64
#define WIRE_MAX_SIZE   (512ULL << 20)

/*
 * What one keeper has room for: boxes that stay, programs in them, boxes of
 * which something is kept. Who admits clients holds them to less than that.
 */
#define WIRE_STAYING  512
#define WIRE_PROGRAMS 4096
#define WIRE_SHELVES  1024

struct wire_limits {
	uint64_t memory;
	uint64_t cpu_quota_us;
	uint64_t cpu_period_us;
	uint64_t pids;
	uint64_t nofile;
	uint64_t fsize;
	uint64_t disk;       /* of a writable root */
	uint64_t memory_low; /* kept for it under pressure; 0: nothing */
	uint64_t cpu_shares; /* weight against others, 2 to 262144; 0: usual */
	uint64_t cpus[4];    /* bits: only these, none set: any */
};

/*
 * A box with a way out (WIRE_EGRESS): what its gate listens on inside, and
 * addresses that a rule names, IPv4 as ::ffff:a.b.c.d.
 */
#define WIRE_MAX_PORTS  32
#define WIRE_MAX_BLOCKS 64

struct wire_block {
	uint8_t address[16];
	uint32_t bits; /* of 128 */
};

struct wire_egress {
	uint32_t n_ports;
	uint32_t n_blocks;
	uint16_t ports[WIRE_MAX_PORTS];
	struct wire_block blocks[WIRE_MAX_BLOCKS];
};

/* Without memory, boxes go before what else the host runs. */
#define WIRE_OOM_SCORE 300

/* Limits of each process, by the kernel's number; only ever lowered. */
#define WIRE_RLIMITS 16

/* What each process has at most, whatever its box has (limits, rlimits). */
#define WIRE_TOP_MEMLOCK    (64 << 10)
#define WIRE_TOP_MSGQUEUE   (800 << 10)
#define WIRE_TOP_SIGPENDING 4096
#define WIRE_TOP_STACK      (8 << 20)

struct wire_rlimit {
	uint64_t soft;
	uint64_t hard;
};

struct wire_times {
	uint64_t timeout_us;  /* of one block */
	uint64_t total_us;    /* of all blocks */
	uint64_t cpu_time_us; /* 0: none */
	uint64_t grace_us;    /* between SIGTERM and SIGKILL; 0: no SIGTERM */
};

struct wire_vec {
	uint32_t off;
	uint32_t count;
};

enum wire_mount_kind {
	WIRE_BIND,  /* a host directory or file */
	WIRE_DEV,   /* a character device, checked by number */
	WIRE_TMPFS, /* an empty place in memory */
	/* Of a root that is made of layers: */
	WIRE_LAYER, /* 64 digits name a layer of the store; the lowest first */
	WIRE_UPPER, /* as WIRE_TMPFS: takes the changes to the root */
	/* Of any root: */
	WIRE_PLACE, /* a directory that is made where it is missing */
	/* Of the root itself, read-only or not executable as it else is: */
	WIRE_VOLUME, /* a directory that can be written, in WIRE_UPPER */
	WIRE_CODE,   /* under WIRE_COMMANDS: what may be mapped as code */
	WIRE_MOUNT_KINDS,
};

/*
 * Records below this path are the top layer of a root that is made of layers,
 * an image's or WIRE_OWN_ROOT; all others are files of /dev, /proc and /sys,
 * as ever.
 */
#define WIRE_OWN_LAYER "/.own"

/* Paths in a box are shorter. */
#define WIRE_MAX_PATH 4096

/* The most layers of one root. */
#define WIRE_MAX_LAYERS 127

enum {
	WIRE_MNT_RO = 1 << 0,
	WIRE_MNT_NOEXEC = 1 << 1,
	WIRE_MNT_IDMAP = 1 << 2,    /* owner on the host <-> user in the box */
	WIRE_MNT_FILE = 1 << 3,     /* the target is a file, not a directory */
	WIRE_MNT_WORK = 1 << 4,     /* the workspace: handed back at the end */
	WIRE_MNT_OPTIONAL = 1 << 5, /* skipped where the source is missing */
	WIRE_MNT_OVERLAY = 1 << 6,  /* WIRE_OWN_ROOT: changes in WIRE_UPPER */
	WIRE_MNT_PROGRAM = 1 << 7,  /* under WIRE_COMMANDS: may be executed */
};

/* In a writable bind no symbolic link, no pipe or socket can be made. */
enum { WIRE_DENY_LINKS = 1 << 0, WIRE_DENY_PIPES = 1 << 1 };

struct wire_mount {
	uint8_t kind;
	uint8_t flags;
	uint16_t dev;        /* WIRE_DEV: major * 256 + minor */
	uint32_t source;     /* WIRE_BIND, WIRE_DEV: path on the host */
	uint32_t target;     /* path in the box */
	uint16_t mode;       /* WIRE_TMPFS: of its top directory; 0: 0755 */
	uint16_t denied;     /* WIRE_DENY_*; the same for all of a box */
	uint64_t source_dev; /* what the client saw at `source`; 0: anything */
	uint64_t source_ino;
	uint64_t size;   /* WIRE_TMPFS */
	uint64_t inodes; /* WIRE_TMPFS */
};

enum {
	WIRE_STEP_END_BLOCK = 1 << 0, /* the last step of its block */
	WIRE_STEP_INPUT = 1 << 1,     /* it has a standard input of its own */
};

/* When a step of a block is run, by how those before it ended. */
enum wire_join {
	WIRE_IF_OK,   /* if the last one succeeded; else it is left out */
	WIRE_IF_NOT,  /* if the last one failed */
	WIRE_ALWAYS,  /* in any case */
	WIRE_BY_PIPE, /* at the same time, reading what the last one writes */
};

enum wire_record_kind {
	WIRE_DIR,
	WIRE_FILE,
	WIRE_LINK,
};

/*
 * Things to lay down in the box, one after the other from `off`; a record is
 * followed by its path, NUL, and its data, and padded to 8.
 */
struct wire_records {
	uint64_t off;
	uint64_t count;
};

struct wire_bytes {
	uint64_t off;
	uint64_t len;
};

struct wire_step {
	struct wire_vec argv;
	uint32_t flags;
	uint32_t join; /* enum wire_join; of a block's first it is not read */
	/* Of a block's first, but not the work's: laid down just before it. */
	struct wire_records files;
	struct wire_bytes input; /* WIRE_STEP_INPUT */
};

struct wire_record {
	uint8_t kind;
	uint8_t reserved;
	uint16_t mode;
	uint32_t path_len; /* without the NUL */
	uint64_t data_len; /* WIRE_LINK: the target, without a NUL */
	int64_t mtime_ns;  /* 0: now */
};

enum {
	WIRE_TTY = 1 << 0,
	WIRE_ROOT_RW = 1 << 1,
	WIRE_CONTINUE = 1 << 2,   /* further blocks also after a failure */
	WIRE_CORE_PIPE = 1 << 3,  /* core_pattern is a program */
	WIRE_CALLER_UID = 1 << 4, /* a writable bind needs the caller's uid */
	WIRE_COMMANDS = 1 << 5,   /* only WIRE_MNT_PROGRAM may be executed */
	WIRE_WITNESS = 1 << 6,    /* count what the wall against networks met */
	WIRE_ROOT_USER = 1 << 7,  /* box: programs in it may be its user 0 */
	WIRE_GROUPS_ASKED = 1 << 8, /* work: without its groups, nothing runs */
	WIRE_EGRESS = 1 << 9,       /* box: it has a gate; see wire_egress */
	/* box: no image, its root is WIRE_OWN_LAYER below a WIRE_UPPER */
	WIRE_OWN_ROOT = 1 << 10,
};

/*
 * A box that stays has further users and groups besides its own, if there are
 * host ids for them (keeper/uids.c): those below this number, 0 only with
 * WIRE_ROOT_USER.
 */
#define WIRE_IDS 65536U

/* In a work: the box's own user, or group. */
#define WIRE_OWN_ID UINT32_MAX

/* Layers that a machine may lack; bits of best_effort and not_enforced. */
enum wire_layer {
	WIRE_L_MEMORY,
	WIRE_L_CPU,
	WIRE_L_PIDS,
	WIRE_L_CPUSET,
	WIRE_L_LANDLOCK,
	WIRE_L_OWN_UID,
	WIRE_LAYERS,
};

/* How both begin. */
struct wire_blob {
	uint32_t magic;
	uint32_t flags; /* WIRE_TTY and so on */
	uint64_t size;  /* of the whole memfd */
};

struct wire_box {
	struct wire_blob blob;
	struct wire_limits limits;
	uint32_t uid; /* in the box */
	uint32_t gid;
	uint32_t best_effort; /* bits of enum wire_layer */
	uint32_t hostname;
	uint32_t tty_rows;
	uint32_t tty_cols;
	uint32_t n_mounts;
	uint32_t n_ours;  /* of them, the first, which no link leads to */
	uint32_t require; /* as best_effort: without these nothing runs */
	uint32_t image;   /* 64 digits, the image of the root; 0: none */
	uint32_t domainname;
	uint32_t oom_score_adj; /* 0 to 1000 */
	uint32_t rlimits_set;   /* bits: which of `rlimits` */
	struct wire_rlimit rlimits[WIRE_RLIMITS];
	struct wire_egress egress;
	struct wire_records records; /* in the root, before any mount */
	struct wire_mount mounts[WIRE_MAX_MOUNTS];
};

struct wire_work {
	struct wire_blob blob;
	struct wire_times times;
	uint32_t workdir;
	uint32_t path; /* where programs are looked for */
	struct wire_vec env;
	uint32_t n_steps;
	uint32_t n_groups;
	uint32_t uid; /* who runs it, WIRE_OWN_ID: the box's user */
	uint32_t gid;
	uint32_t groups[WIRE_MAX_GROUPS];
	struct wire_records records; /* in the finished box, before all steps */
	struct wire_step steps[WIRE_MAX_STEPS];
};

/*
 * Messages. Each starts with its type and the number of the job. The gate's
 * socket comes with a box that has WIRE_EGRESS, and with no other.
 */
enum wire_type {
	WIRE_AHEAD = 1, /* client: fd box; a run of it is about to follow */
	WIRE_RUN,       /* client: fds box, work, stdin, stdout, stderr, gate */
	WIRE_CANCEL,    /* client */
	WIRE_FLOOD,     /* client: more output than the hard limit */
	WIRE_NEXT,      /* client, keeper: go on with the next block */
	WIRE_TERM,      /* keeper: SIGTERM to the program */
	WIRE_END_BLOCK, /* keeper: SIGKILL to all, and on to the next block */
	WIRE_GO,        /* keeper: the ids are mapped */
	WIRE_SPEC,      /* keeper: fd box */
	WIRE_CONF,      /* keeper: fds mounts in order */
	WIRE_BOUNDS,    /* keeper: fds tasks of version 1 groups */
	WIRE_WORK,      /* keeper: fds work, stdin, stdout, stderr, gate */
	WIRE_STARTED,   /* init, keeper: fd of the terminal, if any */
	WIRE_BLOCK,     /* init, keeper: a block ended, more may follow */
	WIRE_OVER,      /* keeper: as ENDED, but only init is left and dying */
	WIRE_ENDED,     /* init, keeper: it is over, and nothing is left */
	WIRE_FAILED,    /* init: a stage failed */
	/*
	 * Boxes that stay (box/session.h). Those of the client are a struct
	 * wire_ask; what comes back is a struct wire_told.
	 */
	WIRE_OPEN,   /* client: fds box, and the peer's connection if any */
	WIRE_EXEC,   /* client, keeper: fds work, streams; and groups */
	WIRE_SIGNAL, /* client, keeper: for the first process of a program */
	WIRE_KILL,   /* client: all of a program's group; keeper: no group */
	WIRE_FROZEN, /* client: stand still, go on */
	WIRE_CAUGHT, /* client, keeper; init, keeper: the mask */
	WIRE_USAGE,  /* client; keeper: the numbers */
	WIRE_FILES,  /* client, keeper: fd a stream socket */
	WIRE_CLOSE,  /* client */
	WIRE_FORGET, /* client: what is kept under a number */
	WIRE_READY,  /* init, keeper: the wall stands; init: fd to hold, if any
		      */
	WIRE_BEGUN,  /* init, keeper: it runs; fd of its terminal, if any */
	WIRE_DONE,   /* init, keeper: a program has ended */
	WIRE_CLOSED, /* keeper: nothing of the box is left */
	WIRE_GATE,   /* client, keeper: fd to the box's gate, for its sockets */
	WIRE_SWEPT,  /* client: is anything left of dead keepers? keeper: no */
	WIRE_LET,    /* client, keeper: fds streams, of a program on hold */
};

enum wire_end {
	WIRE_BY_ITSELF,
	WIRE_BY_TIMEOUT,
	WIRE_BY_TOTAL, /* the time of all blocks */
	WIRE_BY_CPU,
	WIRE_BY_CANCEL,
	WIRE_BY_FLOOD,
	WIRE_BY_LOSS, /* init died without a word */
};

struct wire_outcome {
	struct err err;      /* code != 0: the box could not be built */
	int32_t wait_status; /* of the last process, as from wait(2) */
	int32_t exec_errno;  /* the program could not be started */
	uint32_t step;       /* the step that `wait_status` is of */
	uint32_t end;        /* enum wire_end */
	uint32_t not_enforced;
	uint8_t pids_full; /* no process was left when it was ended */
	uint8_t disk_full; /* a writable place has no free block or inode */
	uint8_t pad[2];
	uint64_t wall_us;
	uint64_t cpu_us;
	uint64_t memory_peak;
	uint64_t oom_kills;
	uint64_t pids_peak;
	uint64_t pids_refused;
	/* Sockets, under WIRE_WITNESS; with a gate, addresses without route */
	uint64_t net_refused;
	uint64_t
		net_opened; /* made or asked inside, or refused by the kernel */
	uint32_t host_uid;
	uint32_t landlock_abi;
};

struct wire_msg {
	uint32_t type;
	uint32_t job;
	struct wire_outcome outcome; /* BLOCK, ENDED, FAILED */
};

/* The part of a message without an outcome. */
struct wire_head {
	uint32_t type;
	uint32_t job;
};

enum {
	WIRE_ASK_TTY = 1 << 0,       /* EXEC: a terminal of its own */
	WIRE_ASK_KILL_REST = 1 << 1, /* EXEC: what it leaves is killed */
	WIRE_ASK_PEER = 1 << 2,      /* OPEN: there is a peer */
	WIRE_ASK_BIRTH = 1 << 3,     /* to init: the first group is born into */
	WIRE_ASK_LAST = 1 << 4,      /* EXEC: the box ends with it, and keeps */
	WIRE_ASK_HOLD = 1 << 5,      /* EXEC: waits for WIRE_LET; fd work */
};

/* client -> keeper -> init: something about a box that stays. */
struct wire_ask {
	uint32_t type;
	uint32_t job;   /* the box */
	uint32_t exec;  /* the program in it; no two boxes have the same */
	uint32_t value; /* signal, yes or no, shelf */
	uint32_t flags; /* WIRE_ASK_* */
	uint32_t token; /* comes back with the answer */
	uint16_t rows, cols;
	uint32_t n_groups; /* to init: the last descriptors are groups */
};

struct wire_usage {
	uint64_t memory, memory_limit, memory_peak, inactive_file, active_file;
	uint64_t cpu_us, cpu_user_us, cpu_system_us;
	uint64_t throttled, throttled_us, periods;
	uint64_t pids, pids_limit;
	uint64_t oom_kills, pids_refused;
};

enum {
	WIRE_TOLD_MAY_FREEZE = 1 << 0, /* READY */
	WIRE_TOLD_LEFT = 1 << 1,       /* SWEPT: something will not go */
};

/* init -> keeper -> client: the answers. */
struct wire_told {
	uint32_t type;
	uint32_t job;
	uint32_t exec;
	uint32_t token;
	uint32_t flags;
	uint32_t reserved;
	union {
		struct wire_outcome outcome; /* DONE, CLOSED */
		struct wire_usage usage;
		uint64_t mask; /* CAUGHT */
	};
};

/* keeper -> init, WIRE_GO */
struct wire_go {
	uint32_t type;
	uint32_t uid; /* in the box */
	uint32_t gid;
	uint32_t is_many;  /* users; init can start programs as any of them */
	uint32_t is_apart; /* the host's root goes before a spec is looked at */
	uint32_t owns_net; /* it has every right in its network namespace */
	uint32_t is_next;  /* what follows comes at once, from another CPU */
};

/* keeper -> init, WIRE_CONF */
struct wire_conf {
	uint32_t type;
	uint32_t job;
	uint64_t
		has_mount[WIRE_MAX_MOUNTS / 64]; /* bit i: there is mounts[i] */
	uint32_t skip;  /* bits of enum wire_layer that are not there */
	uint32_t stays; /* it is told what to run again and again */
};

/* keeper -> init, WIRE_BOUNDS */
struct wire_bounds {
	uint32_t type;
	uint32_t job;
	uint32_t n_tasks;    /* version 1 groups to enter */
	uint32_t n_affinity; /* no cpuset: bind to these CPUs instead */
	uint16_t affinity[256];
};

/* What init makes of the root alone; nothing is sent for it. */
static inline bool wire_is_in_root(uint8_t kind)
{
	return kind == WIRE_PLACE || kind == WIRE_VOLUME || kind == WIRE_CODE;
}

/* Whether its root is an overlayfs; else it is a file system in memory. */
static inline bool wire_has_layers(const struct wire_box *box)
{
	return box->image || (box->blob.flags & WIRE_OWN_ROOT);
}

static inline bool wire_has_mount(const struct wire_conf *c, uint32_t i)
{
	return c->has_mount[i / 64] & 1ULL << i % 64;
}

/* Checks before anything in a blob is believed; pure. */
int wire_check_box(const struct wire_box *box, uint64_t size, struct err *err);
int wire_check_work(const struct wire_work *work, uint64_t size,
		    struct err *err);

/* The string at `off`, NULL if there is none inside the blob. */
const char *wire_str(const struct wire_blob *blob, uint32_t off);
bool wire_vec_check(const struct wire_blob *blob, struct wire_vec vec);
