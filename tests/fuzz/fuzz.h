/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A fuzz target is one function over bytes. Built with clang and
 * -Dfuzz=true it is a libFuzzer program; in every ordinary build replay.c
 * feeds it the files of tests/fuzz/corpus/NAME and what it makes of them.
 */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Only where most bytes are refused at a door: which doors there are, as bits
 * below 64, and which the last input came through. The replay fails if one
 * of them lets no seed in, as after a change of layout.
 */
extern const unsigned int fuzz_doors __attribute__((weak));
unsigned int fuzz_entered(void) __attribute__((weak));

/* Stops at once, so that the fuzzer keeps the input. */
#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond))                                                   \
			__builtin_trap();                                      \
	} while (0)
