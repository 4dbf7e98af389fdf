/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reasons of a gate in words, in one place for every path. */

#include "gate/wire.h"

/* A short word for programs ("no_rule"), and a sentence for people. */
const char *gate_reason_word(enum gate_reason r);
const char *gate_reason_text(enum gate_reason r);
