/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What gates ask of people: a connection to a host that is under the policy's
 * `network.ask`, and that nobody was asked about when the box was made.
 *
 * A gate asks over a socket that the parent made, and that no process but these
 * two ever has. So whose question it is needs nobody's word: it is that of the
 * user for whom the parent started this gate, by what the kernel said of the
 * connection then. The front, which has the gate's other socket, cannot put a
 * question, nor hear or give an answer.
 *
 *	gate ---- struct gate_ask -------> parent
 *	parent -- document --------------> cordon-desk approvals ask --peer
 *	desk ---- one line, in a memfd --> parent
 *	parent -- struct gate_answer ----> gate
 *
 * A gate reads what a box wrote, so it is not believed either: it can name a
 * host and a port, which must be ones that the policy asks about; who it is
 * for, which rule asks and why, the parent says. Whatever fails is a no. A
 * gate that does not keep to the form is ended.
 *
 * A question ends with its gate, and so with the box: it is withdrawn then.
 */

#include "serve/daemon.h"

/*
 * Its next question; it is answered in any case. -EAGAIN: there is none,
 * -EPIPE: nor will there be, -EPROTO: it does not keep to the form.
 */
int gate_ask_hear(struct daemon *d, struct gate_child *g);
/* The desk has ended so (waitpid(2)): the gate, if it is there, is answered. */
void gate_ask_over(struct question *q, int status);
/* The gate is gone: all of its questions are withdrawn. */
void gate_ask_drop(struct daemon *d, const struct gate_child *g);
/* The policy is another: what it does not ask about is withdrawn. */
void gate_ask_again(struct daemon *d);
