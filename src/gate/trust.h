/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whom the gate believes upstream; gate/inspect.h has trust_init(). */

#include <openssl/ssl.h>

/*
 * A client's TLS for `host`, a name or an address in its usual text: it is
 * asked for, and the certificate must be for it. NULL: no memory.
 */
SSL *trust_new(const char *host);

/* Why a handshake failed, if it was the certificate; else NULL. */
const char *trust_complaint(const SSL *ssl);
