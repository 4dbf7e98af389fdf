/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "serve/daemon.h"

void network_init(struct network *n, int sock)
{
	memset(n, 0, sizeof(*n));
	egress_init(&n->egress);
	n->sock = sock;
}

/* ---- secrets ---- */

static int keep_value(struct network *n, const struct policy_host *h,
		      struct err *err)
{
	const char *value = h->secret_env ? getenv(h->secret_env) : NULL;
	char *text;
	int r;

	if (!value)
		return 0;
	if (asprintf(&text, "%s=%s", h->secret_env, value) < 0)
		return err_set(err, ENOMEM, "out of memory");
	r = strv_add(&n->values, text);
	explicit_bzero(text, strlen(text));
	free(text);
	return r < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

int network_keep_values(struct network *n, const struct policy *p,
			struct err *err)
{
	for (size_t i = 0; i < p->n_ask_hosts; i++)
		if (keep_value(n, &p->ask_hosts[i], err) < 0)
			return -err->code;
	for (size_t i = 0; i < p->n_allow_hosts; i++)
		if (keep_value(n, &p->allow_hosts[i], err) < 0)
			return -err->code;
	return 0;
}

/*
 * Its value would have to come through the front, which reads what others
 * send it.
 */
static int refuse_secrets(const struct cordon_spec *s, struct guard *g,
			  struct err *err)
{
	if (s->secrets.n == 0)
		return 0;
	g->refused = REFUSED_INVALID;
	return err_set(err, EOPNOTSUPP,
		       "secret '%.100s': a box of the daemon has the secrets "
		       "that the daemon's policy names, with values of the "
		       "daemon's environment; a request brings none",
		       s->secrets.v[0]);
}

/* ---- the gate ---- */

static bool has_asking(const struct gate_table *t)
{
	for (uint32_t i = 0; i < t->n_rules; i++)
		if (t->rules[i].flags & GATE_RULE_ASK)
			return true;
	return false;
}

/* It is to outlive us, so the parent starts it. */
static int ask_parent(void *arg, int client, int box, struct err *err)
{
	const struct network *n = arg;
	struct gate_want want = { .type = ORDER_GATE,
				  .asks = has_asking(n->egress.table.table) };
	const int fds[] = { client, box };
	struct ask_end end;
	int more[IO_MAX_FDS];
	int n_more = 0;

	(void)strcpy(want.run, n->of->run);
	(void)strcpy(want.box, n->of->box);
	(void)strcpy(want.face, n->of->face);
	if (n->of->spec->policy)
		(void)snprintf(want.policy, sizeof(want.policy), "%s",
			       n->of->spec->policy);
	if (io_send(n->sock, &want, sizeof(want), fds, 2) < 0 ||
	    io_recv(n->sock, &end, sizeof(end), 0, more, &n_more) !=
		    sizeof(end))
		return err_set(err, EPIPE, "the daemon does not answer");
	for (int i = 0; i < n_more; i++)
		(void)close(more[i]);
	if (!end.err.code)
		return 0;
	end.err.text[sizeof(end.err.text) - 1] = '\0';
	*err = end.err;
	return -err->code;
}

/* Where nobody will be asked, that is said before. */
static int note_asking(struct network *n, const struct policy *p,
		       struct err *err)
{
	if (!has_asking(n->egress.table.table) || !p->ask.is_stated ||
	    policy_list_has(&p->ask, "store"))
		return 0;
	return strv_add(&n->told.warnings,
			"network.ask: its hosts are denied in a box of the "
			"daemon, since 'approvals.ask' has no 'store'") < 0
		       ? err_set(err, ENOMEM, "out of memory")
		       : 0;
}

/* What a program of a box gets that has a gate already. */
static void open_again(struct network *n, const struct request *q,
		       struct cordon_spec *s)
{
	s->has_network = q->has_gate;
	if (!q->has_gate)
		return;
	n->again.env = &q->gate_env;
	n->again.hosts = &n->egress.hosts;
	n->again.ca = q->gate_trust ? "" : NULL;
	s->egress = &n->again;
}

int network_open(struct network *n, const struct request *q, struct guard *g,
		 struct err *err)
{
	struct cordon_spec *s = g->spec;
	struct egress *e = &n->egress;

	if (refuse_secrets(s, g, err) < 0)
		return -err->code;
	if (q->exec) {
		open_again(n, q, s);
		return 0;
	}
	if (!s->has_network)
		return 0;
	(void)snprintf(n->told.id, sizeof(n->told.id), "%s", q->run);
	s->secret_values = &n->values;
	n->of = q;
	e->by = (struct egress_by){ .start = ask_parent, .arg = n };
	if (egress_open(e, g->policy, s, NULL, &n->told, err) < 0)
		return err_stage(err, "gate");
	s->egress = &e->spec;
	return note_asking(n, g->policy, err);
}

int network_start(struct network *n, struct err *err)
{
	return egress_start(&n->egress, false, err) < 0 ? err_stage(err, "gate")
							: 0;
}

/* ---- the answer ---- */

void network_put(struct json *j, const struct network *n)
{
	const struct egress *e = &n->egress;
	const struct gate_table *t = e->table.table;

	if (!e->is_open)
		return;
	json_open(j, "gate", '{');
	json_open(j, "rules", '[');
	for (uint32_t i = 0; i < t->n_rules; i++)
		json_str(j, NULL, gate_str(t, t->rules[i].said));
	json_close(j, ']');
	json_open(j, "env", '[');
	for (size_t i = 0; i < e->table.env.n; i++)
		json_str(j, NULL, e->table.env.v[i]);
	json_close(j, ']');
	json_bool(j, "trust", e->ca != NULL);
	json_close(j, '}');
}
