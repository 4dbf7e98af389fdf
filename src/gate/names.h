/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The synthetic addresses of a box's names: the name of number i is
 * 198.18.0.0 + i and 2001:2::i. A name keeps its number as long as the gate
 * lives, since a program may have kept the address; so the table only grows, up
 * to GATE_NAMES. Pure.
 */

#include "gate/table.h"

struct names;

/* NULL: no memory. */
struct names *names_new(void);
void names_free(struct names *n);

/* The number of `name` (plain), a new one if need be; -ENOSPC: full. */
int names_take(struct names *n, const char *name);
/* NULL: no name has this number. */
const char *names_get(const struct names *n, uint32_t number);

/* The address of a number; a.b.c.d in network order. */
void names_address4(uint32_t number, uint8_t ret[4]);
void names_address6(uint32_t number, uint8_t ret[16]);
/* The other way, IPv4 as ::ffff:a.b.c.d: -1 if it is outside both nets. */
int64_t names_number(const uint8_t address[16]);
