/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Feeds a fuzz target each file of a directory, then what comes of each when
 * it is cut short and when single bytes are changed; one TAP line a file.
 */

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

#define MOST (1 << 20)

/* In memory of exactly that size, so that ASan sees a read past the end. */
static void feed(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void feed_variants(uint8_t *data, size_t size)
{
	static const uint8_t bytes[] = { 0x00, 0xff, 0x7f, 0x80, '\n', '/' };

	for (size_t i = 0; i < 64; i++)
		feed(data, size * i / 64);
	for (size_t i = 0; i < 512 && size; i++) {
		size_t at = size <= 512 ? i % size : size / 512 * i;
		uint8_t kept = data[at];

		data[at] = bytes[i % sizeof(bytes)];
		feed(data, size);
		data[at] = kept;
	}
}

#define PASSED                                                                 \
	100 /* status of a child, and the doors that its seed entered          \
	     */

static int replay(const char *path)
{
	static uint8_t data[MOST];
	FILE *f = fopen(path, "re");
	size_t size = f ? fread(data, 1, sizeof(data), f) : 0;
	int status = -1;
	pid_t pid;

	if (!f)
		return -1;
	(void)fclose(f);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)alarm(60);
		unsigned int entered;

		feed(data, size);
		entered = fuzz_entered ? fuzz_entered() : 0;
		feed_variants(data, size);
		_exit(PASSED + (int)entered);
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	return status;
}

int main(int argc, char **argv)
{
	struct dirent **names;
	int found = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
	int n = 0;
	unsigned int entered = 0;
	int failed = 0;

	for (int i = 0; i < found; i++) {
		char path[4096];
		const char *name = names[i]->d_name;

		if (name[0] != '.') {
			int status;

			(void)snprintf(path, sizeof(path), "%s/%s", argv[1],
				       name);
			status = replay(path);
			n++;
			if (WIFEXITED(status) &&
			    WEXITSTATUS(status) >= PASSED) {
				entered |= (unsigned int)WEXITSTATUS(status) -
					   PASSED;
				status = 0;
			} else {
				status = 1;
			}
			failed += status != 0;
			printf("%s %d - %s\n", status ? "not ok" : "ok", n,
			       path);
		}
		free(names[i]);
	}
	if (found >= 0)
		free(names);
	if (fuzz_entered) {
		bool all = entered == fuzz_doors;

		n++;
		failed += !all;
		printf("%s %d - seeds enter by doors %#x of %#x\n",
		       all ? "ok" : "not ok", n, entered, fuzz_doors);
	}
	printf("1..%d\n", n);
	/* An empty corpus proves nothing. */
	return n == 0 || failed ? 1 : 0;
}
