/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/events.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"

static void tell(struct gate *g, const struct gate_event *e, uint32_t type)
{
	struct gate_event out = *e;

	out.head.type = type;
	if (g->client >= 0 &&
	    io_send(g->client, &out, sizeof(out), NULL, 0) < 0)
		_exit(0);
}

void events_send(struct gate *g, const struct gate_event *e)
{
	tell(g, e, GATE_EVENT);
}

void events_ask(struct gate *g, const struct gate_event *e)
{
	tell(g, e, GATE_ASKED);
}

bool events_send_now(struct gate *g, const struct gate_event *e)
{
	struct gate_event out = *e;

	out.head.type = GATE_EVENT;
	return io_send_now(g->client, &out, sizeof(out), NULL, 0) == 0;
}

static void refill(struct gate *g)
{
	int64_t now = clock_us();
	int64_t more = (now - g->denial_time) * GATE_DENIALS_SECOND / 1000;

	if (g->denial_time == 0 ||
	    g->denial_tokens + more > GATE_DENIALS * 1000LL)
		g->denial_tokens = GATE_DENIALS * 1000LL;
	else
		g->denial_tokens += more;
	g->denial_time = now;
}

bool events_may_tell(struct gate *g)
{
	refill(g);
	if (g->denial_tokens < 1000)
		return false;
	g->denial_tokens -= 1000;
	return true;
}

uint64_t events_denial_pause(struct gate *g)
{
	refill(g);
	/* However many there were at once, a pause is over in a second. */
	g->denial_tokens = MAX(g->denial_tokens - 1000,
			       -1000LL * GATE_DENIALS_SECOND);
	if (g->denial_tokens >= 0)
		return 0;
	return (uint64_t)(-g->denial_tokens / GATE_DENIALS_SECOND + 1);
}
