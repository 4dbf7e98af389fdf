/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a box says of its files. First byte: how it is read. Whole, as of
 * FILES_STAT and FILES_PS, whose lines are read too; or as a stream that
 * becomes a tar, which has no name that leaves its root.
 */

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "front/files.h"
#include "front/tar.h"
#include "fuzz.h"

const unsigned int fuzz_doors = 7;
static unsigned int entered;

unsigned int fuzz_entered(void)
{
	return entered;
}

static void whole(const uint8_t *data, size_t size, bool is_stat)
{
	struct files_list l;
	struct err err = { 0 };
	struct box_process p;
	int r = files_parse(data, size, is_stat, &l, &err);

	if (r < 0) {
		struct err ours = { 0 };

		MUST(l.n == 0 && err.code);
		MUST(files_map_error(&err, "/x", &ours) < 0);
		return;
	}
	entered |= is_stat ? 2U : 1U;
	for (size_t i = 0; i < l.n; i++)
		if (process_parse(l.v[i].name, &p))
			MUST(strlen(p.comm) < size && strlen(p.args) < size);
	files_list_done(&l);
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	MUST(write(fd, data, size) == (ssize_t)size);
	MUST(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void check_tar(int fd)
{
	struct archive *a = archive_read_new();
	struct archive_entry *e;

	(void)archive_read_support_format_tar(a);
	(void)archive_read_support_format_empty(a);
	MUST(lseek(fd, 0, SEEK_SET) == 0);
	MUST(archive_read_open_fd(a, fd, 4096) == ARCHIVE_OK);
	while (archive_read_next_header(a, &e) == ARCHIVE_OK) {
		const char *name = archive_entry_pathname(e);

		MUST(!name || strncmp(name, "root", 4) == 0);
		MUST(!name || files_name_check(name, strlen(name)));
	}
	(void)archive_read_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct left_out left;
	int in, out;

	entered = 0;
	if (size < 1)
		return 0;
	if (data[0] % 3 < 2) {
		whole(data + 1, size - 1, data[0] % 3);
		return 0;
	}
	in = file_of(data + 1, size - 1);
	out = memfd_create("tar", MFD_CLOEXEC);
	if (tar_from_box(in, out, "root", &left, &err) == 0)
		entered = 4;
	check_tar(out);
	(void)close(in);
	(void)close(out);
	return 0;
}
