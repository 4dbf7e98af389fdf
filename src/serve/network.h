/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way out of a box (box/egress.h), as far as a preparer makes it: which
 * hosts, by the policy and the request, and a gate that knows them. The front
 * gets its socket; the values of secrets only the gate.
 */

#include "base/err.h"
#include "base/json.h"
#include "base/strv.h"
#include "box/egress.h"
#include "box/guard.h"
#include "box/result.h"
#include "serve/request.h"

struct network {
	int sock; /* to the parent */
	const struct request *of;
	struct egress egress;
	struct spec_egress again; /* of a program in a box that has one */
	struct cordon_result told;
	struct strv values; /* NAME=VALUE, of the policy's secrets */
};

void network_init(struct network *n, int sock);
/*
 * Sets aside what the policy names as secrets, while our environment is the
 * daemon's. Nothing else may take a variable from it.
 */
int network_keep_values(struct network *n, const struct policy *p,
			struct err *err);
/*
 * After the judgement: g->spec gets what a box with a network is made with.
 * The gate is there where the box must know its authority.
 */
int network_open(struct network *n, const struct request *q, struct guard *g,
		 struct err *err);
/* The gate, if it is not there yet. */
int network_start(struct network *n, struct err *err);
/* The member `gate` of an answer, where there is one. */
void network_put(struct json *j, const struct network *n);
