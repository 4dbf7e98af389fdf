/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of the gate's process share: one gate, one box, one loop. All
 * of it is fixed in size or has a ceiling here, so the most a box can make
 * its gate keep is known when the gate starts.
 */

#include <uv.h>

#include "gate/names.h"
#include "gate/wire.h"

#define GATE_MAX_CONNS      512 /* open at the same time */
#define GATE_MAX_LISTENERS  (4 + 2 * GATE_MAX_PORTS)
#define GATE_MAX_WATCHED    4
#define GATE_DENIALS        256 /* told at once; after that so many ... */
#define GATE_DENIALS_SECOND 50  /* ... each second, the box waits meanwhile */

struct conns;
struct dns_server;
struct events;
struct listeners;
struct questions;
struct unheard;
struct usage;

struct gate {
	uv_loop_t loop;
	int client;
	int box;  /* until its sockets are here */
	int desk; /* where people are asked; NO_FD: nowhere */
	uv_poll_t client_poll;
	uv_poll_t box_poll;
	uv_poll_t desk_poll;
	unsigned long max_fds;
	const struct gate_table *table;
	bool has_secret; /* a rule of the table does */
	bool has_ipv6;
	bool may_pace;     /* it was not started to give way to others */
	bool is_streaming; /* so it does now (conn-relay.c) */
	bool is_ending;
	bool is_cut; /* it ends at once */
	bool has_authority;
	struct names *names;
	struct usage *usage;
	struct questions *questions;
	struct conns *conns;
	struct dns_server *dns;
	struct listeners *listeners;
	struct unheard *unheard;
	int64_t denial_tokens; /* thousandths */
	int64_t denial_time;
};
