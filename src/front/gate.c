/* SPDX-License-Identifier: Apache-2.0 */
#include "front/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "base/util.h"
#include "box/egress.h"
#include "box/result.h"
#include "front/doc.h"

/* How long one waits for a wall, and for its last words. */
#define IDLE_US 30000000
#define END_US  2000000

/* Records of one gate that wait for the clerk: then it is not listened to. */
#define MAX_WAITING 64

struct gate {
	unsigned int refs; /* the box's, and one for each record */
	struct box *box;   /* NULL: it is nobody's any more */
	struct manager *m;
	uint32_t number; /* of the order that brought it */
	struct egress egress;
	struct spout *spout;
	unsigned int n_waiting;
	size_t n_told;                 /* refusals that were an event */
	uint64_t used[GATE_MAX_RULES]; /* bytes, by the rule's number */
	struct alarm *alarm;
};

static void unref(struct gate *g)
{
	if (--g->refs == 0)
		free(g);
}

/* The parent sees to it that nothing is left of the process. */
static void tell_parent(const struct gate *g)
{
	const struct order_want want = { .type = ORDER_GATE_END,
					 .number = g->number };
	struct err unused;

	(void)orders_ask(g->m->parent, &want, NULL, NULL, &unused);
}

/* ---- what it let through, for the gates that the box has after it ---- */

static uint64_t used_of(const json_t *item, const char *rule)
{
	const char *text = json_string_value(item);
	char *at = NULL;
	uint64_t n = text ? strtoull(text, &at, 10) : 0;

	return at && *at == ' ' && strcmp(at + 1, rule) == 0 ? n : 0;
}

/* More rules than a request may have are not remembered. */
static void add_used(json_t *list, const char *rule, uint64_t n)
{
	char text[SPEC_USED_SIZE];
	size_t at = 0;

	while (at < json_array_size(list) &&
	       used_of(json_array_get(list, at), rule) == 0)
		at++;
	if (at == SPEC_USED_MAX || strlen(rule) > sizeof(text) - 24)
		return;
	n += MIN(used_of(json_array_get(list, at), rule), UINT64_MAX - n);
	(void)snprintf(text, sizeof(text), "%llu %s", (unsigned long long)n,
		       rule);
	if (at < json_array_size(list))
		(void)json_array_set_new(list, at, json_string(text));
	else
		(void)json_array_append_new(list, json_string(text));
}

static void keep_used(const struct gate *g)
{
	const struct strv *said = &g->egress.said;
	struct box *b = g->box;
	json_t *list = b->gate_used ? json_loads(b->gate_used, 0, NULL) : NULL;
	char *text;

	if (!list)
		list = json_array();
	for (size_t i = 0; i < said->n && i < GATE_MAX_RULES; i++)
		if (g->used[i] > 0)
			add_used(list, said->v[i], g->used[i]);
	text = json_array_size(list) > 0 ? doc_text(list) : NULL;
	json_decref(list);
	if (!text)
		return;
	free(b->gate_used);
	b->gate_used = text;
}

static void count_used(struct gate *g, const struct gate_event *ev)
{
	uint64_t *used = &g->used[0];
	uint64_t n = ev->sent + MIN(ev->received, UINT64_MAX - ev->sent);

	if (ev->kind != GATE_E_CLOSE || ev->rule < 0 ||
	    ev->rule >= GATE_MAX_RULES)
		return;
	used += ev->rule;
	*used += MIN(n, UINT64_MAX - *used);
}

static void let_go(struct gate *g)
{
	keep_used(g);
	g->box = NULL;
	alarm_clear(&g->alarm);
	spout_close(&g->spout);
	egress_done(&g->egress);
	tell_parent(g);
	unref(g);
}

void gate_drop(struct box *b)
{
	struct gate *g = take_ptr(b->gate);

	if (g)
		let_go(g);
}

bool gate_is_open(const struct box *b)
{
	return b->gate;
}

/* ---- what it says ---- */

/* What it refused first of its kind; the others are counted. */
static void tell_refused(struct gate *g)
{
	const struct cordon_result *net = g->box->net;

	for (; g->n_told < net->n_refused; g->n_told++) {
		const struct refused *r = &net->refused[g->n_told];
		char text[400];

		(void)snprintf(text, sizeof(text), "%s: %s", r->what,
			       r->reason);
		events_cordon(g->box, "egress_deny", text);
	}
}

static void add_warnings(struct box *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < b->net->warnings.n; i++)
		(void)json_array_append_new(list,
					    json_string(b->net->warnings.v[i]));
	if (json_array_size(list) > 0)
		box_warn(b, list);
	json_decref(list);
}

/* It has ended, by itself or not. */
static void is_over(struct gate *g)
{
	struct box *b = box_ref(g->box);

	add_warnings(b);
	gate_drop(b);
	/* Without a wall yet: nobody is to find it shut. */
	if (!b->session && !b->is_ending)
		box_forget_blobs(b);
	box_gate_over(b);
	box_unref(b);
}

static void look(void *arg)
{
	struct gate *g = arg;

	egress_step(&g->egress);
	tell_refused(g);
	if (egress_is_over(&g->egress))
		is_over(g);
	else if (g->n_waiting >= MAX_WAITING)
		spout_go(g->spout, false);
}

static void recorded(void *arg, const struct order_answer *a, int *fds, int n)
{
	struct gate *g = arg;

	(void)fds;
	(void)n;
	g->n_waiting--;
	if (g->box && a->err.code) {
		say("box %.12s: its gate is closed: a connection is not on the "
		    "ledger: %s",
		    g->box->id, a->err.text);
		(void)strv_add(&g->box->net->warnings,
			       "the gate was closed: a connection could not be "
			       "recorded");
		is_over(g);
	} else if (g->box && g->n_waiting < MAX_WAITING) {
		spout_go(g->spout, true);
	}
	unref(g);
}

/* For egress-events.c: what was decided, to the clerk. */
static int record(void *arg, const struct record_connection *c, struct err *err)
{
	struct gate *g = arg;
	struct record_connection with = *c;
	_cleanup_free_ char *members = NULL;

	count_used(g, c->event);
	with.run = g->box->run;
	with.box = g->box->id;
	members = recorder_connection_members(&with);
	if (orders_record(g->m->clerk, "connection", members, recorded, g,
			  err) < 0)
		return -err->code;
	g->refs++;
	g->n_waiting++;
	return 0;
}

/* ---- its life ---- */

static void not_used(void *arg)
{
	struct gate *g = arg;
	struct box *b = g->box;

	if (b->session)
		return;
	if (b->needs || b->is_queued) {
		alarm_set(g->m, &g->alarm, IDLE_US, not_used, g);
		return;
	}
	box_forget_blobs(b);
}

static int take_rules(const json_t *doc, struct strv *ret)
{
	const json_t *list = json_object_get(doc, "rules");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (!text || strv_add(ret, text) < 0)
			return -EINVAL;
	}
	return 0;
}

/* What programs of the box are to be told of it again. */
static char *dump_again(const json_t *doc)
{
	json_t *o = json_pack("{s:O?,s:O?}", "env", json_object_get(doc, "env"),
			      "trust", json_object_get(doc, "trust"));
	char *text = doc_text(o);

	json_decref(o);
	return text;
}

static int adopt(struct gate *g, int sock, struct strv *rules, struct err *err)
{
	struct box *b = g->box;
	int fd;

	egress_init(&g->egress);
	g->egress.by = (struct egress_by){ .record = record, .arg = g };
	if (egress_adopt(&g->egress, sock, rules, b->net, err) < 0)
		return -err->code;
	fd = fcntl(egress_fd(&g->egress), F_DUPFD_CLOEXEC, 3);
	g->spout = fd < 0 ? NULL : spout_new(g->m, fd, look, g);
	return g->spout ? 0 : err_set(err, ENOMEM, "watch the gate");
}

int gate_take(struct box *b, uint32_t number, int *socks, const json_t *doc,
	      struct err *err)
{
	struct cordon_result *net = calloc(1, sizeof(*net));
	struct gate *g = calloc(1, sizeof(*g));
	struct strv rules = { 0 };

	gate_drop(b);
	free(b->gate_again);
	b->gate_again = dump_again(doc);
	if (!net || !g || !b->gate_again || take_rules(doc, &rules) < 0) {
		strv_done(&rules);
		cordon_result_free(net);
		free(g);
		return err_set(err, ENOMEM, "out of memory");
	}
	cordon_result_free(b->net);
	b->net = net;
	(void)snprintf(net->id, sizeof(net->id), "%s", b->run);
	*g = (struct gate){ .refs = 1, .box = b, .m = b->m, .number = number };
	b->gate = g;
	if (adopt(g, take_fd(&socks[0]), &rules, err) < 0) {
		strv_done(&rules);
		gate_drop(b);
		return -err->code;
	}
	g->egress.box = take_fd(&socks[1]);
	alarm_set(b->m, &g->alarm, IDLE_US, not_used, g);
	return 0;
}

int gate_begin(struct box *b, struct err *err)
{
	int fd;
	int r;

	if (!b->gate)
		return 0;
	alarm_clear(&b->gate->alarm);
	fd = egress_take_box(&b->gate->egress);
	if (fd < 0)
		return 0;
	r = session_gate(b->session, fd);
	if (r == 0)
		return 0;
	fd_close(&fd);
	return err_errno(err, -r, "talk to the keeper");
}

static void takes_too_long(void *arg)
{
	struct gate *g = arg;

	egress_give_up(&g->egress);
	is_over(g);
}

void gate_unrouted(struct box *b, uint64_t n)
{
	if (b->gate)
		egress_unrouted(&b->gate->egress, n);
}

void gate_close(struct box *b, bool is_cut)
{
	struct gate *g = b->gate;

	if (!g)
		return;
	egress_close(&g->egress, is_cut);
	alarm_set(b->m, &g->alarm, END_US, takes_too_long, g);
}
