/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Host directories that the caller wants in the box. */

#include "base/err.h"
#include "box/pack.h"
#include "box/spec.h"

/*
 * Resolves each source once and adds it with its identity; the keeper will
 * refuse anything else that it finds there. -EPERM for what is never mounted.
 */
int binds_pack(struct pack *p, struct wire_box *box,
	       const struct cordon_spec *s, struct err *err);
