/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A log that another daemon left: its reader ends, gives nothing that is not
 * in the file, and what is added afterwards is found.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front/front.h"
#include "fuzz.h"

const unsigned int fuzz_doors = 1;
static unsigned int entered;
static char place[64];
static int dir = -1;

unsigned int fuzz_entered(void)
{
	return entered;
}

/* After each input: whoever replays them may not end by exit(). */
static void clean(void)
{
	log_remove(dir, "x");
	(void)close(dir);
	(void)rmdir(place);
}

static void make_place(void)
{
	(void)snprintf(place, sizeof(place), "/tmp/cordon-fuzz-log-XXXXXX");
	MUST(mkdtemp(place));
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void lay_down(const char *name, const uint8_t *data, size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0600);

	MUST(write(fd, data, size) == (ssize_t)size);
	(void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char buf[FRONT_SCRATCH];
	struct log_entry e;
	struct log_pos p;
	struct log *l;
	size_t bytes = 0, n = 0, last = 0;

	make_place();
	lay_down("x.0", data, size / 2);
	lay_down("x.1", data + size / 2, size - size / 2);
	entered = 0;
	l = log_new(dir, "x", 1 << 20);
	MUST(l);
	MUST(log_add(l, 2, 7, "sentinel", 8) == 0);
	for (p = log_start(l); log_get(l, &p, &e, buf) == 1; log_next(&p, &e)) {
		MUST(e.stream == 1 || e.stream == 2);
		MUST(e.len > 0 && e.len <= FRONT_SCRATCH);
		bytes += e.len + LOG_HEAD;
		last = e.len == 8 && memcmp(buf, "sentinel", 8) == 0;
		n++;
	}
	MUST(last);
	MUST(bytes <= size + 8 + LOG_HEAD);
	if (n > 1)
		entered = 1;
	log_free(l);
	clean();
	return 0;
}
