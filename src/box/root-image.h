/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A root that is an image of the store: its layers, and over them what is
 * Cordon's own in every box.
 */

#include "box/pack.h"
#include "box/programs.h"
#include "box/spec.h"

/*
 * First the root itself; after all other mounts the places it must have. With
 * `only` nothing else of it can be executed, or mapped as code.
 */
int root_image_mounts(struct pack *p, struct wire_box *box,
		      const struct cordon_spec *s, const struct programs *only,
		      struct err *err);
/* After pack_records_begin(). */
void root_image_files(struct pack *p, const struct cordon_spec *s);

/* Of any root: the layer for its changes; the place where programs start. */
void root_upper(struct pack *p, struct wire_box *box,
		const struct cordon_spec *s);
void root_places(struct pack *p, struct wire_box *box,
		 const struct cordon_spec *s);
