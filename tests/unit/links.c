/* SPDX-License-Identifier: Apache-2.0 */

/* Links that lead out of a writable directory, when its box is dead. */

#undef _FORTIFY_SOURCE /* openat() is ours */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "box/guard-parts.h"

static char top[64];
static struct guard_watch watch;

/* Directories "odd.*" cannot be opened: the first for EACCES, others are gone.
 */
static int n_odd;

int openat(int dir, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	if (strncmp(name, "odd.", 4) == 0) {
		errno = n_odd++ ? ENOENT : EACCES;
		return -1;
	}
	va_start(more, flags);
	if (flags & O_CREAT)
		mode = va_arg(more, mode_t);
	va_end(more);
	return (int)syscall(SYS_openat, dir, name, flags, mode);
}

static const char *at(const char *name)
{
	static char paths[4][4096];
	static int i;

	i = (i + 1) % 4;
	(void)snprintf(paths[i], sizeof(paths[i]), "%s/%s", top, name);
	return paths[i];
}

static void make(const char *name)
{
	CHECK_INT(mkdir(at(name), 0700), 0);
}

static void put(const char *name, const char *text)
{
	CHECK_INT(symlink(text, at(name)), 0);
}

static bool is_there(const char *name)
{
	struct stat st;

	return lstat(at(name), &st) == 0;
}

/* Later than the kernel's tick. */
static void wait_a_bit(void)
{
	const struct timespec t = { .tv_nsec = 30000000 };

	(void)nanosleep(&t, NULL);
}

static void begin(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/cordon-links-XXXXXX");
	CHECK(mkdtemp(top));
	make("a");
	make("a/b");
}

/* From here on it is the box's. */
static void box(void)
{
	wait_a_bit();
	memset(&watch, 0, sizeof(watch));
	watch.dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	watch.source = top;
	CHECK(watch.dir >= 0);
	guard_links_begin(&watch);
	wait_a_bit();
}

static void sweep(struct strv *told)
{
	memset(told, 0, sizeof(*told));
	guard_sweep_dir(&watch, told);
}

static void end(struct strv *told)
{
	char command[128];

	strv_done(told);
	(void)close(watch.dir);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", top);
	CHECK_INT(system(command), 0); /* NOLINT(cert-env33-c) */
}

TEST(what_leads_out_is_removed_and_told)
{
	struct strv told;

	begin();
	box();
	put("absolute", "/etc/passwd");
	put("up", "..");
	put("a/up", "../../x");
	put("a/b/up", "./.././../../x");
	put("through", "a/b/../../..");
	put("missing", "no/../../x");
	sweep(&told);
	CHECK_INT(told.n, 6);
	for (size_t i = 0; i < told.n; i++) {
		CHECK_HAS(told.v[i], "violation: the link '");
		CHECK_HAS(told.v[i], "was removed");
	}
	CHECK(!is_there("absolute"));
	CHECK(!is_there("up"));
	CHECK(!is_there("a/up"));
	CHECK(!is_there("a/b/up"));
	CHECK(!is_there("through"));
	CHECK(!is_there("missing"));
	end(&told);
}

TEST(what_stays_inside_is_left)
{
	struct strv told;

	begin();
	box();
	put("file", "a/file");
	put("a/b/top", "../..");
	put("a/b/file", "../../a/b/../x");
	put("none", "no/such/place");
	put("dot", ".");
	put("chain", "a/b/top/dot/file");
	sweep(&told);
	CHECK_INT(told.n, 0);
	CHECK(is_there("file"));
	CHECK(is_there("a/b/top"));
	CHECK(is_there("a/b/file"));
	CHECK(is_there("none"));
	CHECK(is_there("dot"));
	CHECK(is_there("chain"));
	end(&told);
}

/* No text of its own leads out, and still none may be left that does. */
TEST(links_through_links)
{
	struct strv told;

	begin();
	make("a/b/c");
	box();
	put("a/b/c/top", "../../..");
	put("one", "a/b/c/top/..");
	put("a/b/deep", "c/top");
	put("two", "a/b/deep/../x");
	put("x1", "x2");
	put("x2", "x3");
	put("x3", "/etc");
	put("loop1", "loop2");
	put("loop2", "loop1");
	sweep(&told);
	CHECK(!is_there("one"));
	CHECK(!is_there("two"));
	CHECK(!is_there("x3"));
	CHECK(!is_there("loop1") || !is_there("loop2"));
	CHECK(is_there("a/b/c/top"));
	CHECK(access(at("x1"), F_OK) < 0);
	end(&told);
}

/* The caller's own, unless the box has moved it to where it leads out. */
TEST(older_ones_are_the_callers)
{
	struct strv told;

	begin();
	make("a/b/c");
	put("old", "/etc/passwd");
	put("a/old", "../../elsewhere");
	put("a/b/old", "../../../elsewhere");
	put("a/b/c/inside", "../../../data");
	put("moved", "/etc/hosts");
	box();
	CHECK_INT(rename(at("a/b/c"), at("c")), 0);
	CHECK_INT(rename(at("moved"), at("renamed")), 0);
	sweep(&told);
	CHECK_INT(told.n, 3);
	CHECK(is_there("old"));
	CHECK(is_there("a/old"));
	/* The box was at work in `b`, and may have moved that too. */
	CHECK(!is_there("a/b/old"));
	CHECK(!is_there("c/inside"));
	CHECK(!is_there("renamed"));
	end(&told);
}

/* Where it leads is the next box's doing, though the link is not. */
TEST(older_ones_are_not_led_elsewhere)
{
	struct strv told;

	begin();
	make("p");
	make("p/q");
	make("r");
	put("out", "p/q/../victim");
	put("a/far", "../s/../../victim");
	put("s", "a/b");
	put("callers", "r/../../elsewhere");
	put("inside", "p/q/../../r");
	box();
	CHECK_INT(rmdir(at("p/q")), 0);
	put("p/q", "..");
	CHECK_INT(unlink(at("s")), 0);
	put("s", "a");
	sweep(&told);
	CHECK_INT(told.n, 3);
	CHECK(!is_there("out"));
	CHECK(!is_there("a/far"));
	CHECK(!is_there("inside")); /* now it is ../../r from the top */
	CHECK(is_there("p/q"));
	CHECK(is_there("s"));
	CHECK(is_there("callers")); /* it led out before, and as now */
	end(&told);
}

/* Nobody knows then which are the caller's: none may be lost. */
TEST(a_clock_that_was_set_makes_all_of_them_told)
{
	struct strv told;

	begin();
	put("old", "/etc/passwd");
	box();
	put("new", "/etc/passwd");
	watch.clock -= 3600ULL * 1000000000ULL;
	sweep(&told);
	CHECK_INT(told.n, 2);
	CHECK_HAS(told.v[0], "was left, since it may be older");
	CHECK(is_there("old"));
	CHECK(is_there("new"));
	end(&told);
}

TEST(a_late_sweep_removes_none)
{
	struct strv told;

	begin();
	put("old", "/etc/passwd");
	box();
	put("new", "/etc/passwd");
	watch.is_late = true;
	sweep(&told);
	CHECK_INT(told.n, 1);
	CHECK_HAS(told.v[0], "the link 'new'");
	CHECK_HAS(told.v[0], "was left");
	CHECK(is_there("old"));
	CHECK(is_there("new"));
	end(&told);
}

TEST(nothing_is_hidden_by_modes_or_depth)
{
	struct strv told;
	char path[8192] = "";
	int dir;

	begin();
	box();
	make("locked");
	put("locked/link", "/etc");
	CHECK_INT(chmod(at("locked"), 0), 0);
	/* Deeper than we go, by names that make a path too long. */
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memset(path, 'd', 100);
	path[100] = '\0';
	for (int i = 0; i < 210; i++) {
		int next;

		CHECK_INT(mkdirat(dir, path, 0700), 0);
		next = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (i == 150)
			CHECK_INT(symlinkat("/etc", dir, "link"), 0);
		(void)close(dir);
		dir = next;
	}
	(void)close(dir);
	sweep(&told);
	CHECK_INT(told.n, 3);
	CHECK_HAS(told.v[2], "not all of");
	CHECK_INT(chmod(at("locked"), 0700), 0);
	CHECK(!is_there("locked/link"));
	end(&told);
}

/* A name that the box could guess is one that it has taken. */
TEST(a_name_that_is_taken_keeps_no_link)
{
	struct strv told;
	struct stat st;
	char name[64];

	begin();
	box();
	put("link", "/etc");
	CHECK_INT(lstat(at("link"), &st), 0);
	(void)snprintf(name, sizeof(name), ".cordon-swept-%d-%llu",
		       (int)getpid(), (unsigned long long)st.st_ino);
	make(name);
	sweep(&told);
	CHECK_INT(told.n, 1);
	CHECK_HAS(told.v[0], "was removed");
	CHECK(!is_there("link"));
	end(&told);
}

/* What goes away while we look does not make up for what was not seen. */
TEST(what_was_not_seen_is_told_in_any_case)
{
	struct strv told;

	begin();
	box();
	make("odd.1");
	make("odd.2");
	make("odd.3");
	n_odd = 0;
	sweep(&told);
	CHECK_INT(n_odd, 3);
	CHECK_INT(told.n, 1);
	if (told.n == 1)
		CHECK_HAS(told.v[0], "not all of");
	end(&told);
}

TEST(many_are_counted_not_listed)
{
	struct strv told;
	char name[32];

	begin();
	box();
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "link\x1b%d", i);
		put(name, "/etc");
	}
	sweep(&told);
	CHECK_INT(told.n, 33);
	CHECK_HAS(told.v[0], "<U+001B>");
	CHECK_HAS(told.v[32], "68 more links");
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "link\x1b%d", i);
		CHECK(!is_there(name));
	}
	end(&told);
}

TAP_MAIN()
