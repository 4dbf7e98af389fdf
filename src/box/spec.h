/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is to be run, as the caller said it and checked word by word.
 *
 * A spec is filled by settings (settings.c: one table, whose names are also
 * the command line's flags), and by a command or blocks of code. Nothing on
 * the machine is touched by it; spec_check() finds what only makes sense or
 * not as a whole.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cordon/cordon.h>

#include "base/err.h"
#include "base/strv.h"
#include "box/wire.h"

#define SPEC_MAX_BLOCKS 32

struct guard_asker;

/* What a box with a way out is made with; box/egress.c's. */
struct spec_egress {
	struct wire_egress net;
	const struct strv *env;   /* NAME=placeholder, of secrets */
	const struct strv *hosts; /* "api.test:443", for the record */
	const char *ca;           /* PEM, of its gate; NULL: none needed */
	uint32_t ca_hash;         /* of its subject, as OpenSSL names files */
};

enum { BIND_RO, BIND_RW };

struct spec_bind {
	char *source; /* as given; resolved when the run is packed */
	char *target;
	int mode;
	uint64_t dev; /* what was looked at; ino 0: whatever is there */
	uint64_t ino;
	bool is_work_dir; /* made where it is missing */
};

struct spec_tmpfs {
	char *target;
	uint64_t size;
	uint32_t mode; /* of the directory itself; 0: 0755 */
	bool is_ro;
	bool is_noexec;
	bool is_volume; /* what an image has there is seen; part of `disk` */
	bool has_size;  /* it was asked for */
};

struct spec_copy {
	char *glob;
	char *dir;
};

struct spec_block {
	const struct lang *lang; /* NULL: not one we know */
	char *lang_name;         /* as given */
	const char *program;     /* the interpreter's name, if decided */
	char *code;
	size_t len;
	char *filename;
	struct strv args; /* after its file, before those of all */
	char *input;      /* standard input; NULL: that of all */
	size_t input_len;
};

/* One program of a command line, and how it is joined to the one before. */
struct spec_line {
	uint32_t join; /* enum wire_join */
	struct strv argv;
};

#define SPEC_MAX_ITEMS 24

/* Rules of which it is known what was used of them, and the text of each. */
#define SPEC_USED_MAX  256
#define SPEC_USED_SIZE 512
#define SPEC_MAX_LINE  64

/* Bits of `stated` besides those of enum policy_number. */
#define SPEC_STATED_USER      (1U << 24)
#define SPEC_STATED_ROOT      (1U << 25)
#define SPEC_STATED_QUOTA     (1U << 18)
#define SPEC_STATED_IMAGE     (1U << 16)
#define SPEC_STATED_TOTAL     (1U << 19)
#define SPEC_STATED_ISOLATION (1U << 17)

struct cordon_spec {
	/* As asked for, in order: name, value, name ...; for the daemon. */
	struct strv asked;
	struct strv asked_lists; /* names; also of a list that is empty */
	uint32_t stated; /* which settings were asked for, not defaults */
	uint64_t timeout_us;
	uint64_t total_us;
	uint64_t cpu_time_us;
	uint64_t grace_us;
	uint64_t memory;
	uint64_t cpu_quota_us;
	uint64_t cpu_period_us;
	uint64_t pids;
	uint64_t output;
	uint64_t hard_output; /* 0: none */
	uint64_t disk;
	uint64_t nofile;
	uint64_t fsize;
	uint64_t memory_low; /* 0: none */
	uint64_t cpu_shares; /* 0: the usual */
	uint64_t cpus[4];    /* bits: only these; none set: any */
	char *cpuset;        /* the same, as given */
	uint32_t oom_score_adj;
	uint32_t rlimits_set; /* bits: which of `rlimits` */
	struct wire_rlimit rlimits[WIRE_RLIMITS];
	uint32_t uid;
	uint32_t gid;
	uint32_t best_effort; /* bits of enum wire_layer */
	uint32_t require;     /* layers that must be there; of a policy */
	bool writable_root;
	bool no_tmp; /* places that a policy keeps from being written */
	bool no_shm;
	bool no_workspace;
	bool has_writable; /* the request itself says which are */
	bool interactive;
	bool tty;
	bool stays; /* the box outlives its first program: any may have a
		       terminal */
	bool continue_on_error;
	bool no_ledger;
	bool witness;  /* count refused sockets; for tests of a policy */
	bool no_files; /* nobody will look at the list of files */
	bool is_dry;   /* it is only prepared: what is missing is not made */
	bool is_empty; /* a box for programs that come later */
	/* For a peer of the daemon: paths are absolute, no file is read. */
	bool is_served;
	bool is_peer;  /* ... who is another user than the daemon's root */
	bool no_links; /* none can be made in what is mounted writable */
	bool no_pipes; /* ... and no pipe or socket */
	unsigned int tty_rows;
	unsigned int tty_cols;
	char *image;                  /* the root's; NULL: this machine's */
	const struct box_image *root; /* the same, found; the guard's */
	struct strv entrypoint;       /* instead of the image's ... */
	bool has_entrypoint;          /* ... if so, and also if it is empty */
	bool drops_cmd;               /* the image's; an empty list keeps it */
	char *user;                   /* as given; looked up in an image */
	bool is_root_replaced;    /* it was, and is the usual user instead */
	const struct strv *notes; /* to be told; the guard's */
	bool is_user_ours;        /* a number, or a name that every root has */
	bool as_user;          /* a program in a box of perhaps another user */
	bool may_unset_env;    /* a variable's name alone takes it away */
	bool may_be_root;      /* in a box that stays: programs, later */
	struct strv group_add; /* as given; found by the guard ... */
	uint32_t groups[WIRE_MAX_GROUPS]; /* ... with those of the image */
	uint32_t n_groups;
	char *workdir;
	/* Of the host, the workspace itself (work-bind.h); as who mounts it */
	char *work_dir;
	char *bind_dir;
	char *container_dir; /* there in the box, too */
	bool is_work_dir_ro;
	bool allow_cwd;
	bool delete_files;
	char *workspace;        /* copied in */
	uint64_t workspace_dev; /* as dev and ino of a bind */
	uint64_t workspace_ino;
	char *policy; /* the file that decides; NULL: none */
	char *name;
	char *hostname; /* NULL: the name */
	char *domainname;
	struct strv hosts; /* "ADDRESS NAME", for /etc/hosts */
	/* HOST:PORT that may be reached, one for each port; NAME@HOST:PORT */
	struct strv allow_hosts;
	struct strv secrets;
	bool has_network;          /* a gate goes with it; the guard's word */
	bool no_network;           /* also nothing of what the policy allows */
	const char *wants_network; /* the setting that said so, or NULL */
	char *term;
	struct strv env;
	struct strv env_from_host; /* names */
	struct strv labels;
	struct strv command;
	struct strv args;                     /* after a block's file */
	char *command_line;                   /* as given ... */
	struct spec_line line[SPEC_MAX_LINE]; /* ... and taken apart */
	size_t n_line;
	struct strv programs; /* only these exist in the box ... */
	bool has_programs;    /* ... if so, and also if there is none */
	struct strv allowed;  /* commands by name, as of a policy's list ... */
	bool has_allowed;     /* ... if so, and also if there is none */
	struct spec_bind binds[SPEC_MAX_ITEMS];
	size_t n_binds;
	struct spec_tmpfs tmpfs[SPEC_MAX_ITEMS];
	size_t n_tmpfs;
	struct spec_copy copies[SPEC_MAX_ITEMS];
	size_t n_copies;
	struct spec_block blocks[SPEC_MAX_BLOCKS];
	size_t n_blocks;
	char *input;
	size_t input_len;
	bool has_input;
	/* Of an agent's tool, both the caller's: who asks for it, and who asks
	 * a person where that must be; NULL: nobody, and we do. */
	const char *agent;
	const struct guard_asker *asker;
	const struct spec_egress *egress; /* NULL: there is no network */
	/* NAME=VALUE: of a daemon, what the policy's secrets are */
	const struct strv *secret_values;
	/* Of a daemon: "BYTES RULE", what the box's earlier gates let through
	 */
	struct strv gate_used;
	/* Served: "SIZE SHA256" of an input that goes another way, or "open" */
	char input_sum[96];
};

/* The same as cordon_spec_set(), with our own kind of error. */
int spec_set(struct cordon_spec *s, const char *name, const char *value,
	     struct err *err);

/* Keeps what was asked for; spec_set() does it. */
int spec_asked(struct cordon_spec *s, const char *name, const char *value,
	       struct err *err);

/* The time of all blocks: as stated, else at least that of one. */
uint64_t spec_total_us(const struct cordon_spec *s);

/* Bytes that the box's /workspace has; 0: it is a volume, which has its own. */
uint64_t spec_workspace_size(const struct cordon_spec *s);
/* A number of the box, or the ulimit that was asked for if that is lower. */
uint64_t spec_held_to(const struct cordon_spec *s, int what, uint64_t usual);

/* 0, or -errno with a line that says what does not go together. */
int spec_check(const struct cordon_spec *s, struct err *err);

/* Adds a program to the command line. */
int spec_add_line(struct cordon_spec *s, uint32_t join, const char *const *argv,
		  size_t n, struct err *err);

/* Takes "//", "/./" and a last slash out of it: one name for one place. */
void spec_plain_path(char *path);

/* A path in the box: absolute, plain, short enough; 0 or -EINVAL. */
int spec_check_path(const char *path, const char *what, struct err *err);

/* Whether a block's file name is one; -EINVAL with the reference's words. */
int spec_check_filename(const char *name, struct err *err);

/*
 * The same after "." and ".." in it are resolved by its text alone; the result
 * has neither, and is the caller's to free.
 */
int spec_plain_filename(const char *name, char **ret, struct err *err);

/* Copies an internal error to a caller's. */
int error_out(struct cordon_error *out, const struct err *err);

/* The image's whole name once it was found; "host" for this machine's root. */
const char *spec_image_name(const struct cordon_spec *s);
