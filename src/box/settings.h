/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The settings of a spec, as data: what `cordon run` prints as its flags,
 * what cordon_spec_set() accepts, and what the man page and the completions
 * are made from.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct cordon_spec;

enum setting_kind {
	SETTING_OWN,  /* set() puts it in */
	SETTING_TIME, /* uint64_t: microseconds, bytes, a number */
	SETTING_SIZE,
	SETTING_COUNT,
	SETTING_SWITCH, /* bool */
};

struct setting {
	const char *name;
	char letter;       /* one-letter flag, 0: none */
	const char *value; /* what it takes, NULL: nothing (a switch) */
	const char *help;
	const char *aliases; /* further names, separated by spaces */
	int (*set)(struct cordon_spec *s, const char *value, struct err *err);
	/* Of a plain value: what it is, where it goes, from what to what. */
	enum setting_kind kind;
	size_t at;
	uint64_t min;
	uint64_t max;    /* of a number */
	uint32_t stated; /* bits of the spec's `stated` */
};

/* Sorted as the help shows them; NULL past the last. */
const struct setting *setting_at(size_t i);

/* By name or alias; '_' is as good as '-'. NULL if there is none. */
const struct setting *setting_find(const char *name);
const struct setting *setting_find_letter(char letter);

/* -EINVAL; -EOPNOTSUPP for one that is known elsewhere, and says where. */
int setting_unknown(const char *name, struct err *err);

/* What an error calls it, of who said `name`. */
const char *setting_said(const struct setting *setting, const char *name);

/* Puts a value into a spec, or says why not. NULL: a switch without one. */
int setting_put(const struct setting *setting, struct cordon_spec *s,
		const char *value, struct err *err);

/* Of a number of getrlimit(2), as the setting `ulimit` takes it. */
const char *ulimit_name(int number);
