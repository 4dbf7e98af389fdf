/* SPDX-License-Identifier: Apache-2.0 */

/* Records of runs: what the clerk is told. */

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/result.h"
#include "front/doc.h"
#include "front/front.h"
#include "ledger/ledger.h"

#define MAX_DENIALS 256

/* Strings of the list, which must live as long as what is made of them. */
static size_t take_denials(const json_t *list, struct ledger_denial *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(list) && n < MAX_DENIALS; i++) {
		const char *what = json_string_value(json_array_get(list, i));

		if (what)
			ret[n++] = (struct ledger_denial){ "mount", what };
	}
	return n;
}

static size_t take_refused(const struct cordon_result *net,
			   const struct wire_outcome *o, size_t n,
			   struct ledger_denial *ret)
{
	if (!net)
		return n;
	if (o && o->net_refused && n < MAX_DENIALS)
		ret[n++] = (struct ledger_denial){ "net", "address" };
	for (size_t i = 0; i < net->n_refused && n < MAX_DENIALS; i++)
		ret[n++] = (struct ledger_denial){ "net",
						   net->refused[i].what };
	return n;
}

/* Its first and last part, which the record then has in one piece. */
static void take_kept(struct capture *c, struct ledger_stream *ret)
{
	size_t cut = 0;

	ret->kept = capture_take(c, &ret->len, &cut);
}

char *record_end(const struct end_facts *f)
{
	json_t *list = f->violations ? json_loads(f->violations, 0, NULL)
				     : NULL;
	struct ledger_denial denials[MAX_DENIALS];
	const struct wire_outcome *o = f->outcome;
	const char *missing[WIRE_LAYERS + 1];
	size_t n = 0;
	struct ledger_run_end end = {
		.run = f->run,
		.box = f->box ? f->box->id : NULL,
		.face = f->box ? f->box->face : NULL,
		.peer = f->box ? (int64_t)f->box->owner : -1,
		.status = f->status,
		.cause = f->cause,
		.exit_code = f->exit_code,
		.signal = f->signal,
		.message = f->message,
		.out = { .bytes = f->out_bytes },
		.err = { .bytes = f->err_bytes },
		.not_enforced = missing,
		.denials = denials,
		.n_denials = take_denials(list, denials),
	};
	char *members;

	end.n_denials = take_refused(f->net, o, end.n_denials, denials);
	if (f->kept) {
		take_kept(&f->kept[0], &end.out);
		take_kept(&f->kept[1], &end.err);
		end.keep_output = true;
	}
	if (o) {
		end.wall_ms = o->wall_us / 1000;
		end.cpu_ms = o->cpu_us / 1000;
		end.memory_peak = o->memory_peak;
		end.pids_peak = o->pids_peak;
		end.oom_kills = o->oom_kills;
		end.pids_refused = o->pids_refused;
	}
	for (int i = 0; o && i < WIRE_LAYERS; i++)
		if (o->not_enforced & 1U << i)
			missing[n++] = layer_name((enum wire_layer)i);
	missing[n] = NULL;
	members = ledger_run_end_members(&end);
	free((void *)end.out.kept);
	free((void *)end.err.kept);
	json_decref(list);
	return members;
}

char *record_start(const char *start, const char *run)
{
	struct err unused;
	json_t *o;
	char *text = NULL;

	if (!start)
		return NULL;
	o = doc_parse(start, strlen(start), &unused);
	if (o && json_object_set_new(o, "run", json_string(run)) == 0)
		text = doc_text(o);
	json_decref(o);
	return text;
}
