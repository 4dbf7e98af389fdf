/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A box whose gate looks into TLS trusts the gate's authority besides those it
 * trusts anyway: its bundles and its directory of certificates have one more,
 * and variables say where, for programs that have bundles of their own.
 */

#include <stdbool.h>

#include "box/pack.h"
#include "box/spec.h"

bool root_has_trust(const struct cordon_spec *s);

/* Records of the root `host`, instead of the machine's /etc/ssl/certs. */
void root_trust_host(struct pack *p, const struct cordon_spec *s);
/* Records that are laid over an image. */
void root_trust_image(struct pack *p, const struct cordon_spec *s);

/* NAME=PATH for each variable; an image's own do not count then. */
int root_trust_env(const struct cordon_spec *s, struct strv *ret);
