/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of a directory that is to be mounted; without means, too. */

#include "tests/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "box/guard-facts.h"

static bool is_home(const char *dir)
{
	const struct mount_ask ask = { .source = dir,
				       .target = "/x",
				       .state = "/nowhere" };
	static struct mount_facts facts;
	struct request_mount m;
	struct err err = { 0 };

	CHECK_INT(mount_look(&ask, &facts, &m, &err), 0);
	return m.is_home;
}

/* A user may lower the limits of what is prepared as this user. */
TEST(without_descriptors_each_directory_is_a_home)
{
	char dir[] = "/tmp/cordon-facts-XXXXXX";
	struct rlimit was;
	struct rlimit one;
	int next;

	CHECK(mkdtemp(dir));
	CHECK(!is_home(dir));
	next = open("/", O_PATH | O_CLOEXEC);
	(void)close(next);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &was), 0);
	one = was;
	one.rlim_cur = (rlim_t)next + 1; /* for the directory itself */
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &one), 0);
	CHECK(is_home(dir));
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), 0);
	(void)rmdir(dir);
}

TAP_MAIN()
