/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a program or library needs of others, from its ELF headers: its
 * loader and the names of its libraries. Whether they are there is for the
 * caller to find out. The file is not trusted: every offset is checked.
 */

#include <stddef.h>

#include "base/err.h"
#include "base/strv.h"

struct elf_needs {
	char loader[256];   /* "": a library, or a program that needs none */
	char runpath[1024]; /* "": none */
	struct strv libraries;
};

/* -ENOEXEC: not an ELF file for this machine. `ret` is to be done then too. */
int elf_read(const void *data, size_t size, struct elf_needs *ret);
/*
 * The same of an open file, or of why it could not be opened (-errno); `path`
 * is only for what is said.
 */
int elf_look(int fd, const char *path, struct elf_needs *ret, struct err *err);
void elf_needs_done(struct elf_needs *n);
