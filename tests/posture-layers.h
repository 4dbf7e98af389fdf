/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* P51 to P53: with a layer gone, with a stage failing, with nothing said. */

#include "posture.h"

/* What must hold whichever layer is missing. */
static void check_walls(void)
{
	char *dir = temp_dir();
	const char *out;

	put(text("%s/file", dir), "x", 0666);
	out = in_box(text("volume=%s:/data:ro", dir), BOX_CMD, "/probe",
		     "create", "/x", "/usr/x", "/etc/x", "/etc/passwd",
		     "/data/new", "/data/file", "/proc/sys/kernel/core_pattern",
		     "/proc/sysrq-trigger", NULL);
	CHECK_ALL(out, "EROFS|EACCES|EPERM|ENOENT");
	CHECK_INT(count_entries(dir), 1);
	out = in_box(BOX_CMD, "/probe", "net", NULL);
	CHECK_ALL(out, "EAFNOSUPPORT|ENETUNREACH|EACCES");
	out = in_box(BOX_CMD, "/probe", "mount", NULL);
	CHECK_ALL(out, "EPERM");
	out = in_box(BOX_CMD, "/probe", "litter", "/workspace", NULL);
	CHECK(strcmp(word(out, "chr"), "OK") != 0);
	CHECK(strcmp(word(out, "blk"), "OK") != 0);
	remove_tree(dir);
}

static const char *layers_seen(void)
{
	return in_box(BOX_CMD, "/bin/sh", "-c",
		      "/probe status && /probe landlock", NULL);
}

TEST(p51_without_seccomp)
{
	use_test_keeper("CORDON_TEST_SKIP", "seccomp");
	CHECK_WORD(layers_seen(), "Seccomp", "0");
	check_walls();
	/* no right is left that these would need */
	CHECK_ALL(in_box(BOX_CMD, "/probe", "calls", "mount", "umount2",
			 "pivot_root", "chroot", "fsopen", "sethostname",
			 "settimeofday", "swapon", "acct", "reboot", NULL),
		  "EPERM|EFAULT");
	CHECK_ALL(in_box(BOX_CMD, "/probe", "namespaces", NULL),
		  "EPERM|ENOSPC|EUSERS");
}

TEST(p51_without_landlock)
{
	const char *all;
	const char *fewer;

	use_test_keeper(NULL, NULL);
	all = layers_seen();
	use_test_keeper("CORDON_TEST_SKIP", "landlock");
	fewer = layers_seen();
	if (strncmp(word(all, "left"), "E", 1) == 0)
		SKIP("this kernel has no Landlock to be without");
	/* one domain more can be entered: ours is not there */
	CHECK_INT(atoi(word(fewer, "left")), atoi(word(all, "left")) + 1);
	CHECK_WORD(fewer, "Seccomp", "2");
	check_walls();
}

TEST(p51_without_dropped_capabilities)
{
	use_test_keeper("CORDON_TEST_SKIP", "caps");
	CHECK(strcmp(word(layers_seen(), "CapEff"), zero_caps) != 0);
	check_walls();
	CHECK_ALL(in_box(BOX_CMD, "/probe", "namespaces", NULL), "EPERM");
	CHECK_ALL(in_box(BOX_CMD, "/probe", "calls", MOUNT_CALLS, NULL),
		  "EPERM");
	CHECK_ALL(in_box(BOX_CMD, "/probe", "open-write",
			 "/proc/sys/kernel/core_pattern",
			 "/proc/sys/vm/panic_on_oom", NULL),
		  "EROFS|EACCES|EPERM");
}

static const char *const stages[] = { "proc",     "user",   "identity",
				      "root",     "mounts", "files",
				      "enter",    "tty",    "limits",
				      "landlock", "caps",   "seccomp" };

TEST(p52_every_stage_fails_closed)
{
	char *dir = temp_dir();
	char *mark = text("%s/ran", dir);
	char *volume = text("volume=%s:/data:rw", dir);
	struct cordon_result *r;

	for (size_t i = 0; i < ARRAY_SIZE(stages); i++) {
		use_test_keeper("CORDON_TEST_FAIL", stages[i]);
		r = result_of(volume, BOX_CMD, "/probe", "create", "/data/ran",
			      NULL);
		CHECK_STR(cordon_result_cause(r), "setup");
		CHECK_INT(cordon_result_exit_code(r), 125);
		CHECK_HAS(cordon_result_message(r), text("'%s'", stages[i]));
		CHECK_STR(cordon_result_stdout(r, NULL), "");
		CHECK(!exists(mark));
	}
	/* the control: with no stage failing it runs and leaves its mark */
	use_test_keeper(NULL, NULL);
	CHECK_ALL(in_box(volume, BOX_CMD, "/probe", "create", "/data/ran",
			 NULL),
		  "OK");
	CHECK(exists(mark));
	remove_tree(dir);
}

/* An ordinary build has no such hooks. */
TEST(p52_hooks_are_only_in_the_test_build)
{
	(void)setenv("CORDON_TEST_SKIP", "seccomp", 1);
	(void)setenv("CORDON_TEST_FAIL", "mounts", 1);
	CHECK_WORD(in_box(BOX_CMD, "/probe", "status", NULL), "Seccomp", "2");
}

TEST(p52_no_keeper_no_run)
{
	struct cordon_error err = { 0 };
	struct cordon_result *r;

	(void)setenv("CORDON_LIBEXEC", "/nonexistent", 1);
	CHECK(!cordon_open(&err));
	CHECK_HAS(err.text, "CORDON_LIBEXEC");
	(void)setenv("CORDON_LIBEXEC", getenv("CORDON_BUILD"), 1);
	(void)setenv("CORDON_RUNTIME_DIR", "/proc/nonexistent", 1);
	r = result_of(BOX_CMD, "/bin/echo", "ran", NULL);
	CHECK_STR(cordon_result_cause(r), "setup");
	CHECK_HAS(cordon_result_message(r), "CORDON_RUNTIME_DIR");
	CHECK_STR(cordon_result_stdout(r, NULL), "");
}

/* Nothing named is nothing allowed; an empty word is no word. */
TEST(p53_empty_means_none)
{
	static const char *const settings[] = {
		"allow-host", "volume", "writable",   "tmpfs",       "copy-out",
		"env",        "user",   "workdir",    "network",     "memory",
		"timeout",    "cpus",   "pids-limit", "best-effort",
	};
	const char *out;

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		if (!is_refused(settings[i], ""))
			printf("# %s takes an empty value\n", settings[i]);
		CHECK(is_refused(settings[i], ""));
	}
	CHECK(is_refused("network", "host"));
	CHECK(is_refused("allow-host", "*"));
	CHECK(!is_refused("network", "none"));
	out = in_box(BOX_CMD, "/probe", "net", NULL);
	CHECK_ALL(out, "EAFNOSUPPORT");
	/* the control has a network namespace too, and sockets in it */
	CHECK_ALL(on_host("/", "net", NULL), "ENETUNREACH");
}
