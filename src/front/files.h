/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Questions to a box about its files (ask.c), for files.c too. */

#include "front/front.h"
#include "front/tar.h"

typedef void ask_done_fn(void *arg, const struct files_list *l,
			 const struct err *err);
/* Asks, and calls back once when the whole answer is there. */
int box_ask(struct box *b, uint32_t op, const char *path, ask_done_fn *done,
	    void *arg, struct err *err);

/* Whether files can be asked for at all; and a connection for it. */
int files_check(const struct box *b, struct err *err);
int files_connect(struct box *b, int *ret, struct err *err);

void files_last_part(const char *path, char ret[256]);
void files_fill_stat(const struct files_list *l, const char *name,
		     struct file_stat *ret);

/* Pure: a line of FILES_PS. */
bool process_parse(char *line, struct box_process *ret);
