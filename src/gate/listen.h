/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sockets inside the box's network: DNS, and a listener for each port. */

#include "gate/gate.h"

struct listeners *listeners_new(struct gate *g);

/*
 * Takes the descriptors of GATE_SOCKETS, all of them or none: each must be
 * what its place says.
 */
int listeners_take(struct gate *g, const struct gate_sockets *s, int *fds,
		   int n_fds, struct err *err);

/* Takes nothing from the box for so long; 0: goes on as before. */
void listen_pause(struct gate *g, uint64_t ms);
bool listen_is_paused(const struct gate *g);

/* Takes what a box that is dead has begun; nothing more will come. */
void listen_rest(struct gate *g);

/* Takes nothing more from the box. */
void listen_stop(struct gate *g);

/* One answer, and the event if it is a refusal; its length. */
size_t listen_answer(struct gate *g, const uint8_t *query, size_t len,
		     uint8_t *ret);
/* dns-tcp.c: a connection to the resolver. */
struct dns_server *dns_server_new(struct gate *g);
void dns_server_take(struct gate *g, int fd);
/* A pause is over: those who asked meanwhile are answered. */
void dns_server_go_on(struct gate *g);
