/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * probe: a static program that tries one thing and says what came of it.
 *
 * It runs inside a box, and outside of it as the control. Each line of output
 * is "WHAT RESULT", RESULT being a value, "OK" or the name of an errno, so
 * that a test compares words. probe.c looks at files and at the process,
 * probe-calls.c makes system calls.
 */

#include <errno.h>
#include <stddef.h>

struct probe {
	const char *name;
	int (*run)(int argc, char **argv); /* without the name */
};

/* "OK" for r >= 0, else the name of errno. */
const char *probe_word(long r);

/* Prints "what word". */
void probe_say(const char *what, long r);

extern const struct probe probe_calls[]; /* ended by a NULL name */
