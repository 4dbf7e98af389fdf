/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The state of a runtime, with its envelopes: whatever is found good is run
 * to its end, and what is saved then, and before, can be loaded again.
 */

#include <jansson.h>
#include <stdlib.h>

#include "base/clock.h"
#include "fuzz.h"
#include "runtime/runtime.h"

static void handle(struct actor *a, struct delivery *d)
{
	(void)a;
	delivery_reply(d, message_ref(delivery_message(d)));
}

static json_t *save(struct actor *a)
{
	(void)a;
	return json_object();
}

static int load(struct actor *a, const json_t *state, struct err *err)
{
	(void)a;
	(void)state;
	(void)err;
	return 0;
}

static void drop(struct actor *a)
{
	free(a);
}

static const struct actor_ops ops = {
	.handle = handle, .save = save, .load = load, .free = drop
};

static int make(void *arg, struct runtime *rt, const char *key,
		struct actor **ret, struct err *err)
{
	struct actor *a = calloc(1, sizeof(*a));

	(void)arg;
	(void)rt;
	(void)key;
	(void)err;
	MUST(a != NULL);
	a->ops = &ops;
	*ret = a;
	return 0;
}

static struct runtime *begin(struct loop **ret)
{
	struct actor_type t = { .name = "a", .make = make, .mailbox = 4 };
	struct err err = { 0 };
	struct runtime *rt;

	MUST(loop_new(ret, &err) == 0);
	rt = runtime_new(*ret, NULL, &err);
	MUST(rt && runtime_register(rt, &t, &err) == 0);
	return rt;
}

static json_t *loaded(const json_t *state, bool is_run)
{
	struct loop *l = NULL;
	struct runtime *rt = begin(&l);
	struct err err = { 0 };
	json_t *saved = NULL;

	if (runtime_load(rt, state, &err) == 0) {
		MUST(!is_run ||
		     runtime_wait_idle(rt, clock_us() + 10000000, NULL) == 0);
		saved = runtime_save(rt);
		MUST(saved != NULL);
	} else {
		MUST(err.text[0] != '\0');
	}
	runtime_free(rt);
	loop_free(l);
	return saved;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *state = json_loadb((const char *)data, size,
				   JSON_REJECT_DUPLICATES, NULL);
	json_t *queued = state ? loaded(state, false) : NULL;
	json_t *done = queued ? loaded(queued, true) : NULL;

	MUST(!queued || done);
	MUST(json_array_size(json_object_get(done, "queue")) == 0);
	json_decref(state);
	json_decref(queued);
	json_decref(done);
	return 0;
}
