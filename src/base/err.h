/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Errors as plain values.
 *
 * A function that can fail returns 0 (or something useful) on success and
 * -errno on failure, and explains the failure in a struct err that its caller
 * owns. A struct err holds no pointers and needs no release, so it can cross
 * a socket in one write and be filled in between fork and exec.
 *
 * The innermost function says what failed ("open '/dev/null'"), each level
 * above may put its own subject in front with err_wrap(). `stage` names the
 * step of a box's set-up that failed and is empty everywhere else.
 *
 * Every function here accepts err == NULL and then only returns the code.
 */

struct err {
	int code; /* a positive errno value, 0 when nothing failed */
	char stage[20];
	char text[480];
};

#define PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Sets code and text; returns -code. */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF(3, 4);

/* As err_set(), with ": " and the system's words for `code` at the end. */
int err_errno(struct err *err, int code, const char *fmt, ...) PRINTF(3, 4);

/* Puts "subject: " in front of the text; returns -err->code. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF(2, 3);

/* Names the stage unless one is named already; returns -err->code. */
int err_stage(struct err *err, const char *stage);
