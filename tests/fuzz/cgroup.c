/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The texts of /proc that say where control groups are: mountinfo, cgroup and
 * lists of CPUs, separated by NUL. In a container somebody else may have
 * written them.
 */

/* Its parsers are static. */
#include "os/cgroup.c" /* NOLINT(bugprone-suspicious-include) */

#include <stdlib.h>

#include "fuzz.h"

static void take(char *to, size_t room, const char **p, size_t *left)
{
	size_t n = strnlen(*p, *left);
	size_t kept = n < room - 1 ? n : room - 1;

	memcpy(to, *p, kept);
	to[kept] = '\0';
	*p += n + (n < *left);
	*left -= n + (n < *left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const controllers[] = { "", "memory", "cpu" };
	static struct scan scan;
	static struct cg_tree tree;
	const char *p = (const char *)data;
	char cpus[4096];

	take(scan.text, sizeof(scan.text), &p, &size);
	take(scan.groups, sizeof(scan.groups), &p, &size);
	take(cpus, sizeof(cpus), &p, &size);
	scan.n_mounts = 0;
	parse_mounts(&scan);
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
		char dir[CG_PATH_MAX];

		if (own_dir(&scan, controllers[i], dir, sizeof(dir)))
			MUST(strlen(dir) < sizeof(dir));
	}
	memset(&tree, 0, sizeof(tree));
	parse_cpus(&tree, cpus);
	MUST(tree.n_cpus <= CG_MAX_CPUS);
	return 0;
}
