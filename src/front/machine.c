/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is told of the machine itself. The front sees no file once it has shut
 * itself in: what does not change is read before, and what does (the CPU time
 * of all, of which clients make percentages) from a descriptor that it keeps.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "base/visible.h"
#include "front/front.h"

#define TICKS 100 /* USER_HZ, of every machine that we run on */

/*
 * By which clients tell daemons apart: the same as long as the machine is the
 * same. Its own id is to stay with it (machine-id(5)), so a hash is told.
 */
static void make_id(char ret[65])
{
	static const char *const files[] = {
		"/etc/machine-id", "/proc/sys/kernel/random/boot_id"
	};
	char name[80] = "";
	char text[128];

	for (size_t i = 0; i < ARRAY_SIZE(files) && !name[0]; i++)
		if (io_read_file(AT_FDCWD, files[i], name, sizeof(name)) <= 0)
			name[0] = '\0';
	(void)snprintf(text, sizeof(text), "cordon: daemon of %s", name);
	visible_sha256(text, strlen(text), ret);
}

void machine_open(struct manager *m)
{
	char text[8] = "";

	make_id(m->machine.id);

	m->machine.stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	m->machine.cgroup_version = access("/sys/fs/cgroup/cgroup.controllers",
					   F_OK) == 0
					    ? 2
					    : 1;
	if (io_read_file(AT_FDCWD, "/proc/sys/net/ipv4/ip_forward", text,
			 sizeof(text)) > 0)
		m->machine.forwards_ipv4 = text[0] == '1';
}

void machine_close(struct manager *m)
{
	fd_close(&m->machine.stat_fd);
}

/* "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ ..." */
bool machine_stat_parse(const char *text, uint64_t *ret_ns)
{
	uint64_t ticks = 0;

	if (strncmp(text, "cpu ", 4) != 0)
		return false;
	text += 4;
	/* Time of guests is in that of users; Docker leaves out the stolen. */
	for (int i = 0; i < 7; i++) {
		char *end;

		ticks += strtoull(text, &end, 10);
		if (end == text)
			return false;
		text = end;
	}
	*ret_ns = ticks * (1000000000 / TICKS);
	return true;
}

uint64_t machine_cpu_ns(const struct manager *m)
{
	struct timespec up = { 0 };
	char text[512];
	ssize_t n = m->machine.stat_fd < 0 ? -1
					   : pread(m->machine.stat_fd, text,
						   sizeof(text) - 1, 0);
	uint64_t ns;

	text[n > 0 ? n : 0] = '\0';
	if (machine_stat_parse(text, &ns))
		return ns;
	/* What there was to be had is nearly the same. */
	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	return ((uint64_t)up.tv_sec * 1000000000 + (uint64_t)up.tv_nsec) *
	       m->cpus;
}
