/* SPDX-License-Identifier: Apache-2.0 */

/* What programs need, read from their headers. */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/elf.h"
#include "box/programs.h"

static char *own_file(size_t *ret_size)
{
	_cleanup_fd_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st = { 0 };
	char *data;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	data = malloc((size_t)st.st_size + 1);
	CHECK_INT(io_read_full(fd, data, (size_t)st.st_size), st.st_size);
	*ret_size = (size_t)st.st_size;
	return data;
}

static bool has(const struct strv *list, const char *end)
{
	for (size_t i = 0; i < list->n; i++) {
		size_t len = strlen(list->v[i]);

		if (len >= strlen(end) &&
		    strcmp(list->v[i] + len - strlen(end), end) == 0)
			return true;
	}
	return false;
}

TEST(a_program_names_its_loader_and_libraries)
{
	struct elf_needs n;
	size_t size;
	char *data = own_file(&size);

	CHECK_INT(elf_read(data, size, &n), 0);
	CHECK(n.loader[0] == '/');
	CHECK(has(&n.libraries, "libc.so.6"));
	elf_needs_done(&n);
	free(data);
}

/* Each length and each changed byte of the headers: an answer, no crash. */
TEST(a_damaged_program_is_no_danger)
{
	struct elf_needs n;
	size_t size;
	char *data = own_file(&size);

	for (size_t len = 0; len < 4096 && len < size; len++) {
		char *copy = malloc(len ? len : 1);

		memcpy(copy, data, len);
		(void)elf_read(copy, len, &n);
		elf_needs_done(&n);
		free(copy);
	}
	for (size_t i = 0; i < 4096 && i < size; i++)
		for (int bit = 0; bit < 8; bit++) {
			data[i] ^= (char)(1 << bit);
			(void)elf_read(data, size, &n);
			elf_needs_done(&n);
			data[i] ^= (char)(1 << bit);
		}
	free(data);
}

static int look(const char *path, struct elf_needs *n, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = elf_look(fd < 0 ? -errno : fd, path, n, err);

	if (fd >= 0)
		(void)close(fd);
	return r;
}

TEST(what_is_no_program_is_refused)
{
	struct err err = { 0 };
	struct elf_needs n;

	CHECK_INT(elf_read("#!/bin/sh\n", 10, &n), -ENOEXEC);
	elf_needs_done(&n);
	CHECK(look("/etc/passwd", &n, &err) < 0);
	CHECK_HAS(err.text, "script");
	elf_needs_done(&n);
	CHECK(look("/no/such/file", &n, &err) < 0);
	elf_needs_done(&n);
}

TEST(programs_come_with_what_they_need)
{
	struct err err = { 0 };
	struct programs p = { 0 };
	struct strv names = { 0 };

	CHECK_INT(strv_add(&names, "cat"), 0);
	CHECK_INT(strv_add(&names, "no-such-program"), 0);
	CHECK_INT(programs_find(&names, "/usr/bin:/bin", NULL, &p, &err), 0);
	CHECK(has(&p.files, "/cat"));
	CHECK(has(&p.files, ".so.2") || has(&p.files, ".so.1"));
	CHECK(has(&p.code, "/libc.so.6"));
	CHECK_INT(p.files.n, 2);
	programs_done(&p);
	strv_done(&names);
}

TAP_MAIN()
