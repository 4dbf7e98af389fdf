/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The image of a request: found before the policy is asked, so that what it
 * says (a command, a user) is judged like the rest of the request.
 */

#include "box/guard.h"

/*
 * Finds it and merges what it says into g->spec. An image that is not there is
 * kept for later in g->image_err: the policy may have more to say.
 */
int guard_image(struct guard *g, struct err *err);

/* The names under which a policy may know it; ended by NULL. */
int guard_image_names(struct guard *g, struct strv *ret, struct err *err);

/*
 * Supplementary groups, those that were asked for and those of the image; for
 * a root that is none too. When it is decided who the user is.
 */
int guard_groups(struct guard *g, struct err *err);

void guard_image_done(struct guard *g);
