/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon-gate: the way out of one box (wire.h). It starts with two sockets, of
 * a daemon with three, is told what may pass, reads what it needs of the
 * machine, shuts itself in, and then serves the box until the client's socket
 * ends.
 */

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/util.h"
#include "gate/client.h"
#include "gate/confine.h"
#include "gate/conn.h"
#include "gate/desk.h"
#include "gate/listen.h"
#include "gate/parent.h"
#include "gate/questions.h"
#include "gate/unheard.h"
#include "gate/usage.h"

/* Every table that the gate will ever have. */
static int make_tables(struct gate *g, struct err *err)
{
	g->names = names_new();
	g->usage = usage_new();
	g->questions = questions_new();
	g->conns = conns_new();
	g->dns = dns_server_new(g);
	g->listeners = listeners_new(g);
	g->unheard = unheard_new(g);
	if (!g->names || !g->usage || !g->questions || !g->conns || !g->dns ||
	    !g->listeners || !g->unheard)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int start(struct gate *g, const char *parent, struct err *err)
{
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	g->may_pace = sched_getscheduler(0) == SCHED_OTHER;
	r = uv_loop_init(&g->loop);
	if (r < 0)
		return err_errno(err, -r, "make an event loop");
	if (parent && parent_watch(&g->loop, parent, err) < 0)
		return -err->code;
	if (make_tables(g, err) < 0 || upstream_init(&g->loop, err) < 0 ||
	    client_first_table(g, err) < 0 ||
	    gate_confine(&g->max_fds, err) < 0 || desk_start(g, err) < 0)
		return -err->code;
	return client_start(g, err);
}

/* cordon-gate [PID [desk]]: of who starts it; it ends with that. */
int main(int argc, char **argv)
{
	static struct gate g = { .client = GATE_FD_CLIENT,
				 .box = GATE_FD_BOX,
				 .desk = NO_FD };
	struct err err = { 0 };

	if (argc == 3 && strcmp(argv[2], GATE_HAS_DESK) == 0)
		g.desk = GATE_FD_DESK;
	if (start(&g, argc >= 2 ? argv[1] : NULL, &err) < 0) {
		client_fail(&g, &err);
		return 1;
	}
	return uv_run(&g.loop, UV_RUN_DEFAULT) < 0;
}
