/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Cordon's own face: api/openapi.yaml says what its routes take and give.
 */

#include "face/http.h"

/* One for the life of the process. */
const struct http_face *own_face(struct manager *m);
