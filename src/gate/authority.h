/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The box's own authority, and what it signs. Its key lives in the gate's
 * memory alone and ends with it; gate/inspect.h has what others see of it.
 */

#include <openssl/ssl.h>

/* The context of our side towards the box; NULL before authority_make(). */
SSL_CTX *authority_ctx(void);

/*
 * Gives `ssl` a certificate for `host`, a name or an address in its usual
 * text. 0 or -errno.
 */
int authority_dress(SSL *ssl, const char *host);
