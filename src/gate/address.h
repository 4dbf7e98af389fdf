/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which addresses are public. Pure. All are 16 bytes, IPv4 as ::ffff:a.b.c.d;
 * where IPv6 carries an IPv4 address in any known way, that one is judged.
 */

#include <stdbool.h>
#include <stdint.h>

#include "gate/wire.h"

/* Why a name must not lead there: METADATA, PRIVATE; GATE_OK: it is public. */
enum gate_reason address_judge(const uint8_t address[16]);
/* Never, even if a rule names it. */
bool address_is_metadata(const uint8_t address[16]);
/* The kind of block it lies in ("loopback"), for people; NULL: public. */
const char *address_block(const uint8_t address[16]);
/* As people write it, IPv4 in its own form; at most 46 bytes. */
void address_text(const uint8_t address[16], char ret[64]);
