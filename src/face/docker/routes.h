/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handlers; docker.c has the table. `ctx` is the struct docker. */

#include "face/http.h"

#define HANDLER(name) void name(struct http_request *r, void *ctx)

/* system.c */
HANDLER(get_ping);
HANDLER(get_version);
HANDLER(get_info);
HANDLER(get_df);
HANDLER(get_networks);
HANDLER(get_network);
HANDLER(get_volumes);
HANDLER(get_volume);
HANDLER(get_plugin);
/* create.c, inspect.c, list.c */
HANDLER(post_create);
HANDLER(get_container);
HANDLER(get_containers);
/* life.c */
HANDLER(post_start);
HANDLER(post_stop);
HANDLER(post_restart);
HANDLER(post_kill);
HANDLER(post_wait);
HANDLER(post_resize);
HANDLER(post_rename);
HANDLER(post_pause);
HANDLER(post_unpause);
HANDLER(delete_container);
HANDLER(post_prune);
/* attach.c, logs.c */
HANDLER(post_attach);
HANDLER(get_logs);
/* figures.c */
HANDLER(get_top);
HANDLER(get_stats);
HANDLER(get_changes);
/* archive.c */
HANDLER(head_archive);
HANDLER(get_archive);
HANDLER(put_archive);
HANDLER(get_export);
/* exec.c */
HANDLER(post_exec);
HANDLER(post_exec_start);
HANDLER(get_exec);
HANDLER(post_exec_resize);
/* events.c */
HANDLER(get_events);
/* images.c, image-move.c */
HANDLER(get_images);
HANDLER(get_image);
HANDLER(get_image_history);
HANDLER(post_image_create);
HANDLER(post_image_load);
HANDLER(get_images_save);
HANDLER(get_image_save);
HANDLER(post_image_tag);
HANDLER(delete_image);
HANDLER(post_images_prune);
