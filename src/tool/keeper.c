/* SPDX-License-Identifier: Apache-2.0 */

/* The keeper that boxed tools run under, alone or together. */

#include <stdlib.h>

#include "base/util.h"
#include "tool/box.h"

struct keeper {
	unsigned int refs, runs;
	struct cordon *cordon;
	bool is_given, is_lost;
};

struct keeper *keeper_new(struct cordon *given)
{
	struct keeper *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->refs = 1;
	k->cordon = given;
	k->is_given = given != NULL;
	return k;
}

struct keeper *keeper_ref(struct keeper *k)
{
	k->refs++;
	return k;
}

void keeper_unref(struct keeper *k)
{
	if (!k || --k->refs > 0)
		return;
	keeper_close(k);
	free(k);
}

int keeper_open(struct keeper *k, struct err *err)
{
	struct cordon_error e = { 0 };

	if (k->cordon)
		return 0;
	k->cordon = cordon_open(&e);
	k->is_lost = false;
	return k->cordon ? 0 : err_set(err, e.code, "%s", e.text);
}

void keeper_close(struct keeper *k)
{
	if (k->runs == 0 && k->cordon && !k->is_given)
		cordon_close(take_ptr(k->cordon));
}

struct cordon *keeper_cordon(const struct keeper *k)
{
	return k->cordon;
}

void keeper_entered(struct keeper *k)
{
	k->runs++;
}

void keeper_left(struct keeper *k, bool is_lost)
{
	k->runs--;
	k->is_lost |= is_lost;
	if (k->is_lost)
		keeper_close(k);
}
