/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An image's configuration (the OCI image specification, config.md): read, and
 * for an import, made.
 */

#include "base/buf.h"
#include "image/image.h"

/* On failure *ret is empty. Nothing in it is believed: it is foreign text. */
int image_config_parse(const char *text, size_t len, struct image_config *ret,
		       struct err *err);

/* "CMD ...", "ENV ..." and so on, as in a Dockerfile; see docs/images.md. */
int image_config_change(struct image_config *config, const char *line,
			struct err *err);

/* Seconds since 1970 from "2026-11-16T02:00:00Z"; 0 if it is not understood. */
int64_t image_time_parse(const char *text);

/* The document. */
void image_config_format(const struct image_config *config, struct buf *out);

/* What this machine runs, in the words of images: "amd64". */
const char *image_architecture(void);
