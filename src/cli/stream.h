/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The streams of a program in the daemon, on ours.
 *
 * Frames are taken apart to standard output and error; raw bytes go to standard
 * output. With input, our standard input goes the other way, and its end is
 * passed on.
 */

#include <stdbool.h>

#include "base/err.h"
#include "client/daemon.h"
#include "client/frames.h"

/* The answer's body on our streams, to its end. */
int stream_show(struct daemon *d, struct err *err);

struct stream_want {
	bool input;
	bool tty;
	/* Where the terminal's size is told, "" if nowhere. */
	char resize[256];
};
/* After an upgrade. */
int stream_join(struct daemon *d, const struct stream_want *w, struct err *err);
