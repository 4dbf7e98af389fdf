/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A policy, typed.
 *
 * Made from the flat form by policy_parse(), changed by policy_narrow() alone
 * and by nobody afterwards, freed by policy_free(). Every string lives as long
 * as the policy. Where a value stands is kept with it, because a denial names
 * file, line and rule.
 *
 * "Stated" and "empty" differ: a list that is stated and empty allows
 * nothing; one that is not stated says nothing, and decide.h knows what that
 * means for each.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/commands.h"
#include "policy/flat.h"

struct origin {
	const char *file; /* NULL: not stated */
	unsigned int line;
	unsigned int column;
};

enum policy_number {
	POLICY_TIMEOUT,  /* microseconds */
	POLICY_CPU_TIME, /* microseconds */
	POLICY_MEMORY,   /* bytes */
	POLICY_CPUS,     /* thousandths */
	POLICY_PIDS,
	POLICY_OUTPUT, /* bytes of each stream */
	POLICY_DISK,   /* bytes */
	POLICY_FILES,
	POLICY_NUMBERS,
};

struct policy_value {
	bool is_stated;
	uint64_t value;
	const char *text; /* as written */
	struct origin at;
};

/* A scalar that is a word: its text, NULL if it is not stated. */
struct policy_word {
	const char *text;
	struct origin at;
};

/* A list of words. */
struct policy_list {
	bool is_stated;
	const char *const *v; /* NULL-ended */
	const struct origin *origins;
	size_t n;
	struct origin at; /* of the first item, or of the empty list */
};

struct policy_mount {
	const char *from; /* absolute */
	const char *to;
	bool is_rw;
	struct origin at;
};

struct policy_pair {
	const char *name;
	const char *value;
	uint64_t size; /* of a tmpfs */
	struct origin at;
};

/* What a gate has room for (gate/table.h). */
#define POLICY_MAX_HOSTS   256
#define POLICY_MAX_PORTS   32
#define POLICY_MAX_RESOLVE 64
#define POLICY_MAX_WORDS   64

struct policy_host {
	const char *host;
	const uint16_t *ports;
	size_t n_ports;
	struct policy_list methods;
	struct policy_list paths;
	const char *secret_env; /* NULL: none */
	const char *secret_header;
	const char *secret_format;
	const char *secret_query;
	const char *secret_body;
	bool has_bytes; /* a quota is stated: also one of 0 holds */
	uint64_t bytes;
	uint64_t connections; /* these two: 0: no ceiling */
	uint64_t rate;        /* new connections in so many seconds: */
	uint32_t rate_seconds;
	struct origin at;
};

struct policy_tool {
	const char *name;
	struct policy_list agents; /* "*" is all */
	bool always_asks;
	bool never_asks;
	struct policy_value numbers[POLICY_NUMBERS];
	struct origin at;
};

struct policy_filter {
	struct policy_list on;
	struct policy_list match;
	const char *regex; /* instead of match */
	const char *action;
	const char *reason;
	struct origin at;
};

enum policy_expect {
	EXPECT_ALLOWED,
	EXPECT_ASK,
	EXPECT_DENIED,
	EXPECT_CAUSE,
};

struct policy_test {
	const char *name;
	struct policy_list run; /* one of these four */
	const char *command;
	const char *code_lang;
	const char *code_text;
	const char *connect;
	enum policy_expect expect;
	const char *cause;
	const char *layer; /* NULL: any */
	struct origin at;
};

struct policy {
	struct flat flat;
	/* sandbox */
	struct policy_value numbers[POLICY_NUMBERS];
	struct policy_word isolation;
	struct policy_word user;
	struct policy_word read_only; /* "true", "false" */
	struct policy_list images;
	struct policy_list writable;
	struct policy_list mount_roots; /* absolute */
	struct policy_list env_from_host;
	struct policy_list require;
	const struct policy_mount *mounts;
	size_t n_mounts;
	const struct policy_pair *tmpfs;
	size_t n_tmpfs;
	const struct policy_pair *env;
	size_t n_env;
	/* network */
	const struct policy_host *allow_hosts;
	size_t n_allow_hosts;
	const struct policy_host *ask_hosts;
	size_t n_ask_hosts;
	const struct policy_pair *resolve; /* NAME[:PORT], ADDRESS[:PORT] */
	size_t n_resolve;
	struct policy_value ask_wait;    /* microseconds; 0: it fails */
	struct policy_value connections; /* of a box at the same time */
	struct policy_word ca;           /* a file, absolute */
	/* commands */
	bool has_commands;
	struct origin commands_at;
	struct command_rules commands;
	/* the rest */
	const struct policy_tool *tools;
	size_t n_tools;
	const struct policy_filter *filters;
	size_t n_filters;
	uint64_t expire_us;               /* of an approval; 0: not stated */
	struct policy_list ask;           /* terminal, store */
	struct policy_list always;        /* commands, code */
	struct policy_list code_patterns; /* contained */
	struct policy_word pull;
	struct policy_list registries;
	struct policy_word over_ceiling;
	struct policy_word allow_root_inside;
	struct policy_word bind_symlinks;
	struct policy_list keep_text;
	struct policy_list redact;
	const struct policy_test *tests;
	size_t n_tests;
	struct policy_block *blocks; /* memory of all the above */
	/* Whose ceiling holds as well (narrow.h); NULL: nobody's. */
	const struct policy *outer;
};

/* NULL with *err: anything unexpected makes the whole policy invalid. */
struct policy *policy_parse(const char *text, size_t len, struct err *err);
void policy_free(struct policy *p);

/* The key of a number in `sandbox`, such as "cpu_time". */
const char *policy_number_name(enum policy_number n);

bool policy_list_has(const struct policy_list *l, const char *word);
