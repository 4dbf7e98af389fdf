/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the two files of egress.h share: the process, and what it says. */

#include "box/egress.h"

/* What comes from a gate. */
union gate_message {
	struct gate_head head;
	struct gate_ca ca;
	struct gate_event event;
};

/* `what` of a question is its place, of others one of these. */
enum { FROM_GATE = EGRESS_QUESTIONS, FROM_PAUSE, FROM_BOX };
int egress_watch(struct egress *e, int fd, uint32_t what);

/* The box is made: its gate is to be started now. */
void egress_start_late(struct egress *e);

/* Again, if it was not listened to for a while. */
void egress_listen(struct egress *e);
/* Reads what is there, some of it; the end of the gate closes the socket. */
void egress_hear(struct egress *e);
/* Nobody is asked any more. */
void egress_withdraw(struct egress *e);
/* What was too much for single records. */
void egress_note_more(struct egress *e);
