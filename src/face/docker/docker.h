/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Docker's API on the box manager.
 *
 * A container is a box, its settings are judged by the policy as those of
 * `cordon run` are. What a client asks for is honoured, refused with a text
 * that names the field, or listed in Warnings; nothing is passed over in
 * silence (fields.h).
 */

#include "face/http.h"

/* One for the life of the process; NULL when there is no memory. */
const struct http_face *docker_face(struct manager *m);
