/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * WebSockets (RFC 6455), as much of them as a gate has to know: whether one is
 * asked for, whether the server agreed to that very question, and where frames
 * begin and end.
 *
 * Pure: slices point into the bytes that were given.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/http.h"

/* 20 bytes in base64, with the end. */
#define WS_ACCEPT_SIZE 32

/* *ret_accept: what the server must answer; empty if it is not asked for so. */
bool ws_is_asked(const struct http_head *h, char ret_accept[WS_ACCEPT_SIZE]);
/* `may_extend`: frames may have another form than that of the RFC. */
bool ws_is_agreed(const struct http_head *h, const char *accept,
		  bool may_extend);

/* The frames of one direction. */
struct ws_frames {
	bool is_masked; /* as all are that come from a client, and no other */
	bool may_extend;
	uint8_t head[14];
	unsigned int n_head; /* of the next frame's, bytes that came */
	bool is_control;     /* this frame: it may stand inside a message */
	uint8_t mask[4];
	uint64_t at, left; /* of its payload: taken, to come */
};

/*
 * Takes bytes of a frame's head, or of its payload, never both; *ret is the
 * payload in them, which may be empty. How many were taken, or -EINVAL.
 */
ssize_t ws_frames_take(struct ws_frames *f, const char *data, size_t len,
		       struct http_slice *ret);
/* The payload that was taken last, as it is meant. */
void ws_unmask(const struct ws_frames *f, struct http_slice s, char *ret);
