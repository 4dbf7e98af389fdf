/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thousand agents on one loop, all waiting at once for answers that come in
 * pieces: nothing is lost, nothing is mixed up.
 */

#include "tests/tap.h"

#include "team.h"

#define MANY   1000
#define PIECES 8

/* Says its number in so many pieces, each after a while of its own. */
struct streamer {
	struct agent agent;
	struct turn *turn;
	struct timer timer;
	int number, pieces;
};

static int waiting, waiting_most;

static void piece(struct timer *timer)
{
	struct streamer *s = (struct streamer *)((char *)timer -
						 offsetof(struct streamer,
							  timer));
	struct turn *t = s->turn;
	char text[64];

	(void)snprintf(text, sizeof(text), "%d/%d ", s->number, s->pieces);
	if (s->pieces++ < PIECES) {
		turn_event(t, chat_new("ModelClientStreamingChunkEvent",
				       s->agent.name,
				       json_pack("{s:s, s:s}", "content", text,
						 "full_message_id", "x")));
		(void)timer_set(s->agent.loop, &s->timer,
				clock_us() + 1000 + s->number * 7 % 4000);
		return;
	}
	waiting--;
	s->turn = NULL;
	(void)snprintf(text, sizeof(text), "all of %d", s->number);
	turn_done(t, chat_text(s->agent.name, text));
}

static void begin(struct agent *a, struct turn *t)
{
	struct streamer *s = (struct streamer *)a;

	s->turn = t;
	s->pieces = 0;
	s->timer.fire = piece;
	waiting++;
	waiting_most = MAX(waiting_most, waiting);
	(void)timer_set(a->loop, &s->timer, clock_us() + 20000);
}

static void streamer_free(struct agent *a)
{
	free(a->name);
	free(a->description);
	free(a);
}

static const struct agent_ops ops = { .begin = begin, .free = streamer_free };

static struct agent *streamer_new(struct loop *l, int number)
{
	struct streamer *s = calloc(1, sizeof(*s));

	s->agent = (struct agent){ .ops = &ops,
				   .loop = l,
				   .name = strdup("talker"),
				   .description = strdup("") };
	s->number = number;
	return &s->agent;
}

struct one {
	struct team *team;
	int number, chunks, messages, overs;
	int *left;
};

static void on_event(void *arg, json_t *event)
{
	struct one *o = arg;
	char want[64];
	const char *text = json_string_value(json_object_get(event, "content"));

	if (!chat_is_message(event)) {
		/* Its own, in order. */
		(void)snprintf(want, sizeof(want), "%d/%d ", o->number,
			       o->chunks % PIECES);
		CHECK_STR(text, want);
		o->chunks++;
	} else {
		o->messages++;
	}
}

static void on_over(void *arg, json_t *result)
{
	struct one *o = arg;
	char want[64];

	(void)snprintf(want, sizeof(want),
		       "user:go talker:all of %d talker:all of %d", o->number,
		       o->number);
	CHECK_STR(field(result, "status"), "completed");
	CHECK_STR(told(json_object_get(result, "messages")), want);
	o->overs++;
	(*o->left)--;
}

static const struct team_events events = { .event = on_event, .over = on_over };

static bool are_over(void *arg)
{
	return *(int *)arg == 0;
}

static void start(struct scene *s, struct one *o)
{
	json_t *config = parse("{\"max_turns\":2}");
	json_t *task = json_pack("[o]", chat_text("user", "go"));
	struct agent *agent = streamer_new(s->loop, o->number);
	struct team_options t = { .runtime = s->runtime,
				  .name = "many",
				  .kind = &team_round_robin,
				  .config = config,
				  .agents = &agent,
				  .n_agents = 1 };

	if (team_new(&t, &o->team, &s->err) < 0 ||
	    team_run(o->team, task, NULL, &events, o, &s->err) < 0) {
		printf("# %s\n", s->err.text);
		exit(1);
	}
	json_decref(config);
	json_decref(task);
}

TEST(a_thousand_stream_at_once)
{
	static struct one all[MANY];
	struct scene s;
	int left = MANY;

	scene_init(&s);
	for (int i = 0; i < MANY; i++) {
		all[i] = (struct one){ .number = i, .left = &left };
		start(&s, &all[i]);
	}
	CHECK(loop_run(s.loop, are_over, &left));
	CHECK_INT(waiting_most, MANY);
	for (int i = 0; i < MANY; i++) {
		CHECK_INT(all[i].chunks, 2 * PIECES);
		CHECK_INT(all[i].messages, 3);
		CHECK_INT(all[i].overs, 1);
		team_free(all[i].team);
	}
	scene_done(&s);
}

TAP_MAIN()
