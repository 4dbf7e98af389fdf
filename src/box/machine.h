/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What this machine gives for each layer of the wall.
 *
 * Nothing is guessed: a layer is looked for where the kernel shows it, and a
 * real box is run with every layer that may be missing declared optional.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum machine_state {
	MACHINE_PRESENT,
	MACHINE_WEAKER, /* works, with less than the best */
	MACHINE_ABSENT,
};

struct machine_layer {
	const char *name;
	enum machine_state state;
	char detail[200];
	char remedy[300]; /* what to do, empty if nothing */
};

#define MACHINE_LAYERS 16

struct machine {
	struct machine_layer layers[MACHINE_LAYERS];
	size_t n;
	bool can_enforce; /* a default box ran, nothing left out */
	char why_not[600];
};

void machine_look(struct machine *ret);

/* As root, on cgroup v1: gives a user groups of its own. */
int machine_grant_cgroup(unsigned int uid, struct err *err);
