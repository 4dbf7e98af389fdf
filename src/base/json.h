/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writing JSON.
 *
 * The writer puts commas where they belong; the caller opens and closes:
 *
 *	struct json j = { .out = &buf };
 *
 *	json_open(&j, NULL, '{');
 *	json_int(&j, "exit_code", 0);
 *	json_open(&j, "files", '[');
 *	json_str(&j, NULL, "plot.png");
 *	json_close(&j, ']');
 *	json_close(&j, '}');
 *
 * Strings may hold any bytes: what is not valid UTF-8 becomes U+FFFD, and
 * control bytes are escaped, so the document is always valid. Errors of the
 * buffer are kept there (buf->error).
 *
 * No name here is one of jansson's: a program that has both would call the
 * wrong one, and only crash.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json {
	struct buf *out;
	bool comma;
};

/* `name` is NULL inside arrays and for the outermost value. */
void json_open(struct json *j, const char *name, char bracket);
void json_close(struct json *j, char bracket);
void json_int(struct json *j, const char *name, int64_t value);
void json_decimal(struct json *j, const char *name, double value);
void json_bool(struct json *j, const char *name, bool value);
void json_none(struct json *j, const char *name);
void json_str(struct json *j, const char *name, const char *text);
void json_bytes(struct json *j, const char *name, const void *data, size_t len);
void json_base64(struct json *j, const char *name, const void *data,
		 size_t len);
/*
 * A value that is JSON already, such as another document of ours; a newline
 * at its end is left out.
 */
void json_raw(struct json *j, const char *name, const char *text);
/*
 * For a reader that needs the very bytes: a string where they are printable
 * ASCII, else {"base64": "..."}.
 */
void json_exact(struct json *j, const char *name, const void *data, size_t len);

/* The length of the valid UTF-8 sequence at p, 0 if there is none. */
size_t utf8_len(const unsigned char *p, size_t len);

/* Whether all of it is valid UTF-8. */
bool utf8_check(const void *data, size_t len);

/* Appends it with U+FFFD for every byte that is no UTF-8. */
void utf8_repair(struct buf *out, const void *data, size_t len);
