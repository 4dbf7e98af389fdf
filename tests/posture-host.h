/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* P34 to P50, P55: between the box, the host's files and other boxes. */

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "posture.h"

/* The file shows `content` instead of what is there. */
static void cover_file(const char *dir, const char *path, const char *content)
{
	char *fake = text("%s/fake", dir);

	put(fake, content, 0666);
	CHECK(mount(fake, path, NULL, MS_BIND, NULL) == 0);
}

TEST(p34_no_core_dumps)
{
	char *dir = temp_dir();
	const char *out;
	struct rlimit l;

	out = in_box(BOX_CMD, "/bin/sh", "-c",
		     "/probe abort && /probe ls /workspace", NULL);
	CHECK_STR(out, "signal 6\ndumped no\n");
	CHECK_WORD(in_box(BOX_CMD, "/probe", "limits", NULL), "core", "0 0");
	if (getrlimit(RLIMIT_CORE, &l) == 0 && l.rlim_max > 0)
		CHECK_WORD(on_host(dir, "abort", NULL), "dumped", "yes");
	if (is_root()) {
		/* a program as core_pattern ignores 0, and only 1 stops it */
		private_mounts();
		cover_file(dir, "/proc/sys/kernel/core_pattern",
			   "|/usr/bin/false %P\n");
		CHECK_WORD(in_box(BOX_CMD, "/probe", "limits", NULL), "core",
			   "1 1");
		CHECK(umount("/proc/sys/kernel/core_pattern") == 0);
	}
	remove_tree(dir);
}

TEST(p35_cgroups_out_of_reach)
{
	const char *mounts = in_box(BOX_CMD, "/probe", "mounts", NULL);
	const char *where = in_box(BOX_CMD, "/probe", "where", NULL);

	CHECK(!strstr(mounts, " cgroup"));
	CHECK(*word(where, "cgroup"));
	CHECK_STR(normal_cgroup(word(where, "cgroup")),
		  "cgroup every-path-is-/");
	CHECK_ALL(in_box("user=0", BOX_CMD, "/probe", "open-write",
			 "/sys/fs/cgroup/cgroup.procs",
			 "/sys/fs/cgroup/release_agent",
			 "/sys/fs/cgroup/notify_on_release",
			 "/sys/fs/cgroup/memory/release_agent",
			 "/sys/fs/cgroup/memory/memory.limit_in_bytes",
			 "/sys/fs/cgroup/devices/devices.allow",
			 "/sys/fs/cgroup/unified/cgroup.procs", NULL),
		  "ENOENT");
	CHECK_WORD(in_box("user=0", BOX_CMD, "/probe", "mount", NULL), "cgroup",
		   "EPERM");
	CHECK(strstr(on_host("/", "mounts", NULL), " cgroup"));
}

static const char *describe(const char *path)
{
	struct stat st = { 0 };

	(void)stat(path, &st);
	return text("%llu %lld %lld.%ld", (unsigned long long)st.st_ino,
		    (long long)st.st_size, (long long)st.st_mtim.tv_sec,
		    st.st_mtim.tv_nsec);
}

TEST(p36_helpers_cannot_be_overwritten)
{
	char *dir = temp_dir();
	char *keeper = text("%s/cordon-keeper", getenv("CORDON_BUILD"));
	const char *before = describe(keeper);
	struct cordon_result *r;
	const char *out;

	out = in_box("user=0", BOX_CMD, "/probe", "open-write",
		     "/proc/self/exe", "/proc/1/exe", "/proc/1/mem",
		     "/proc/1/fd/3", "/proc/1/root/x", NULL);
	CHECK_ALL(out, "ETXTBSY|EROFS|EACCES|EPERM|ENOENT");
	CHECK_ALL(in_box("user=0", BOX_CMD, "/probe", "readlink", "/proc/1/exe",
			 "/proc/1/cwd", "/proc/1/root", "/proc/1/fd/3", NULL),
		  "EACCES|EPERM|ENOENT");
	/* run by init's own image: ends, is not trusted, changes nothing */
	put(text("%s/s", dir), "#!/proc/self/exe\n", 0755);
	r = result_of("user=0", text("workspace=%s", dir), BOX_CMD,
		      "/workspace/s", NULL);
	CHECK(strcmp(cordon_result_status(r), "success") != 0);
	CHECK_STR(describe(keeper), before);
	CHECK_ALL(in_box(BOX_CMD, "/probe", "create", "/workspace/x", NULL),
		  "OK");
	CHECK_WORD(on_host(dir, "open-write", "s", NULL), "s", "OK");
	remove_tree(dir);
}

/* Nothing ran: the box could not be built, or was not to be. */
static bool was_refused(const struct cordon_result *r)
{
	const char *cause = cordon_result_cause(r);

	return is_one_of(cause, strlen(cause), "setup|denied|invalid") &&
	       *cordon_result_message(r) && !*cordon_result_stdout(r, NULL);
}

static bool is_refused(const char *name, const char *value)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error err = { 0 };
	int r = cordon_spec_set(s, name, value, &err);

	cordon_spec_free(s);
	return r < 0 && err.text[0];
}

TEST(p37_workdir_through_a_descriptor)
{
	static const char *const dirs[] = {
		"/proc/self/fd/7", "/proc/thread-self/fd/7",
		"/proc/1/cwd",     "/proc/self/root",
		"/proc",           "/tmp/../proc",
		"relative",        ""
	};
	char *dir = temp_dir();
	struct cordon_result *r;

	CHECK(dup2(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 7) == 7);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		CHECK(is_refused("workdir", dirs[i]));
	CHECK(!is_refused("workdir", "/tmp"));
	/* by way of links that the request brings */
	for (int fd = 3; fd < 12; fd++) {
		CHECK(symlink(text("/proc/self/fd/%d", fd),
			      text("%s/l%d", dir, fd)) == 0);
		r = result_of(text("workspace=%s", dir),
			      text("workdir=/workspace/l%d", fd), BOX_CMD,
			      "/probe", "where", NULL);
		/* refused, or a directory of the box's own root */
		if (!was_refused(r))
			CHECK(is_one_of(word(cordon_result_stdout(r, NULL),
					     "cwd"),
					1, "/") &&
			      !strstr(cordon_result_stdout(r, NULL),
				      "root rw"));
	}
	remove_tree(dir);
}

/* Nothing ran, and the message says so. */
static void check_not_started(const struct cordon_result *r, const char *about)
{
	CHECK_STR(cordon_result_cause(r), "setup");
	CHECK_INT(cordon_result_exit_code(r), 125);
	CHECK_HAS(cordon_result_message(r), about);
	CHECK_STR(cordon_result_stdout(r, NULL), "");
}

static struct cordon_result *say_hello(void)
{
	return result_of(BOX_CMD, "/bin/echo", "hello", NULL);
}

TEST(p38_device_that_is_none)
{
	char *dir;
	char *dev;

	private_mounts();
	dir = temp_dir();
	dev = text("%s/dev", dir);
	CHECK_STR(cordon_result_stdout(say_hello(), NULL), "hello\n");
	/* a file, and another device; the keeper is running already */
	cover_file(dir, "/dev/null", "");
	new_keeper(getenv("CORDON_BUILD"), NULL, NULL);
	check_not_started(say_hello(), "/dev/null");
	CHECK(umount2("/dev/null", MNT_DETACH) == 0);
	CHECK(mount("/dev/full", "/dev/urandom", NULL, MS_BIND, NULL) == 0);
	new_keeper(getenv("CORDON_BUILD"), NULL, NULL);
	check_not_started(say_hello(), "/dev/urandom");
	CHECK(umount2("/dev/urandom", MNT_DETACH) == 0);
	/* a link to the right device is not that device */
	CHECK(mkdir(dev, 0755) == 0);
	CHECK(mount("/dev", dev, NULL, MS_BIND | MS_REC, NULL) == 0);
	CHECK(mount("none", "/dev", "tmpfs", 0, NULL) == 0);
	for (const char *const *n =
		     (const char *const[]){ "zero", "full", "random", "urandom",
					    NULL };
	     *n; n++) {
		put(text("/dev/%s", *n), "", 0600);
		CHECK(mount(text("%s/%s", dev, *n), text("/dev/%s", *n), NULL,
			    MS_BIND, NULL) == 0);
	}
	CHECK(symlink(text("%s/null", dev), "/dev/null") == 0);
	new_keeper(getenv("CORDON_BUILD"), NULL, NULL);
	check_not_started(say_hello(), "/dev/null");
	CHECK(umount2("/dev", MNT_DETACH) == 0);
	new_keeper(getenv("CORDON_BUILD"), NULL, NULL);
	CHECK_STR(cordon_result_stdout(say_hello(), NULL), "hello\n");
	CHECK(umount2(dev, MNT_DETACH) == 0);
	remove_tree(dir);
}

/* The box's terminal is of a devpts of its own: the host's is not used. */
TEST(p39_console_that_is_a_link)
{
	struct cordon_result *r;
	char *dir;

	private_mounts();
	dir = temp_dir();
	put(text("%s/0", dir), "untouched", 0600);
	put(text("%s/ptmx", dir), "untouched", 0600);
	CHECK(mount(dir, "/dev/pts", NULL, MS_BIND, NULL) == 0);
	r = result_of("tty=true", BOX_CMD, "/bin/sh", "-c",
		      "[ -t 1 ] && /probe ls /dev/pts", NULL);
	CHECK_INT(cordon_result_exit_code(r), 0);
	CHECK_HAS(cordon_result_stdout(r, NULL), "0 device 136:0");
	CHECK_STR(get(text("%s/0", dir)), "untouched");
	CHECK_STR(get(text("%s/ptmx", dir)), "untouched");
	CHECK(umount("/dev/pts") == 0);
	remove_tree(dir);
}

TEST(p40_procfs_that_is_none)
{
	static const char *const files[] = { "cgroup", "mountinfo", "status" };
	const char *content[ARRAY_SIZE(files)];

	private_mounts();
	CHECK_STR(cordon_result_stdout(say_hello(), NULL), "hello\n");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		content[i] = get(text("/proc/self/%s", files[i]));
	new_keeper(getenv("CORDON_BUILD"), NULL, NULL);
	CHECK(mount("none", "/proc", "tmpfs", 0, NULL) == 0);
	CHECK(mkdir("/proc/1", 0755) == 0 && symlink("1", "/proc/self") == 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		put(text("/proc/1/%s", files[i]), content[i], 0644);
	check_not_started(box_run(BOX_CMD, "/bin/echo", "hello", NULL),
			  "/proc is not a procfs");
	CHECK(umount2("/proc", MNT_DETACH) == 0);
}

/* A mount's place, through links: inside the box's root, or refused. */
TEST(p41_mount_point_through_links)
{
	static const char *const links[] = { "/etc", "../../../../..",
					     "/dangling/place", "/proc/self/fd",
					     "/dev" };
	char *dir = temp_dir();
	char *data = text("%s/data", dir);
	char *inner = text("%s/inner", dir);

	CHECK(mkdir(data, 0755) == 0 && mkdir(inner, 0755) == 0);
	put(text("%s/mark", inner), "inner", 0644);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		CHECK(symlink(links[i], text("%s/l%zu", data, i)) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		struct cordon_result *r = result_of(
			text("volume=%s:/data:rw", data),
			text("volume=%s:/data/l%zu/x:ro", inner, i), BOX_CMD,
			"/probe", "cat", text("/data/l%zu/x/mark", i), NULL);

		if (!was_refused(r))
			CHECK_HAS(cordon_result_stdout(r, NULL), "inner");
	}
	/* a place that is missing in a directory of the host */
	(void)result_of(text("volume=%s:/data:rw", data),
			text("volume=%s:/data/missing:ro", inner), BOX_CMD,
			"/bin/true", NULL);
	CHECK(!exists(text("%s/missing", data)));
	CHECK_INT(count_entries(data), ARRAY_SIZE(links));
	CHECK(!exists("/etc/x") && !exists("/dangling") && !exists("/x"));
	remove_tree(dir);
}

struct swapper {
	const char *a;
	const char *b;
	volatile bool stop;
	long swaps;
};

static void *swap_main(void *arg)
{
	struct swapper *s = arg;

	while (!s->stop) {
		s->swaps += renameat2(AT_FDCWD, s->a, AT_FDCWD, s->b,
				      RENAME_EXCHANGE) == 0;
		(void)usleep(50);
	}
	return NULL;
}

struct tally {
	int inside;
	int refused;
	int bad;
};

/* A run saw the directory, or was refused; anything else is wrong. */
static void tally_add(struct tally *t, int r, const struct cordon_result *res)
{
	const char *out = r == 0 ? cordon_result_stdout(res, NULL) : "";

	if (strcmp(out, "/data/d/mark inside\n") == 0)
		t->inside++;
	else if (r < 0 || was_refused(res) ||
		 strcmp(out, "/data/d/mark ENOENT\n") == 0)
		t->refused++;
	else if (t->bad++ < 5)
		printf("# %s '%s' %s\n", cordon_result_cause(res), out,
		       cordon_result_message(res));
}

/* Starts boxes on volumes while a directory in them turns into a link. */
static struct tally race(int n, const char *volume, const char *other)
{
	struct tally t = { 0 };

	for (int i = 0; i < n; i++) {
		struct cordon_spec *s = box_spec(volume, BOX_CMD, "/probe",
						 "cat", "/data/d/mark", NULL);
		struct cordon_error err = { 0 };
		struct cordon_result *res = NULL;
		int r;

		box_set(s, BOX_PROBE);
		if (other)
			box_set(s, other);
		if (!is_root())
			box_set(s, "best-effort=cgroup");
		r = cordon_run(box_open(), s, &res, &err);
		tally_add(&t, r, res);
		cordon_result_free(res);
		cordon_spec_free(s);
	}
	return t;
}

/* One kind of race; the link leads to `to`. */
static void race_on(int n, const char *to, bool on_target)
{
	char *dir = temp_dir();
	char *data = text("%s/data", dir);
	char *mark = text("%s/mark", dir);
	struct swapper s = { .a = text("%s/d", data), .b = text("%s/l", data) };
	char *volume = on_target ? text("volume=%s:/data:rw", data)
				 : text("volume=%s:/data/d:ro", s.a);
	char *other = on_target ? text("volume=%s:/data/d:ro", mark) : NULL;
	struct tally t;
	pthread_t thread;

	CHECK(mkdir(data, 0755) == 0 && mkdir(s.a, 0755) == 0 &&
	      mkdir(mark, 0755) == 0);
	put(text("%s/mark", s.a), "inside", 0644);
	put(text("%s/mark", mark), "inside", 0644);
	CHECK(symlink(to, s.b) == 0);
	CHECK_INT(race(1, volume, other).inside, 1);
	CHECK(pthread_create(&thread, NULL, swap_main, &s) == 0);
	t = race(n, volume, other);
	s.stop = true;
	(void)pthread_join(thread, NULL);
	printf("# %ld swaps: %d inside, %d refused\n", s.swaps, t.inside,
	       t.refused);
	CHECK_INT(t.bad, 0);
	CHECK_INT(t.inside + t.refused, n);
	CHECK(t.refused > 0 && s.swaps > n / 2);
	CHECK(!strstr(get("/proc/self/mountinfo"), dir));
	CHECK_INT(count_entries(data), 2);
	remove_tree(dir);
}

TEST(p42_mount_race)
{
	int n = getenv("CORDON_LONG") ? 10000 : 2000;

	/* without hardware's help each start takes a tenth of a second */
	if (getenv("CORDON_IN_VM"))
		n = 80;
	(void)alarm(getenv("CORDON_LONG") ? 1200 : 300);
	/* a source that becomes a link to what is never mounted */
	race_on(n / 4, "/", false);
	race_on(n / 4, "/proc/self", false);
	/* a target that becomes a link to somewhere else */
	race_on(n / 4, "/etc", true);
	race_on(n / 4, "../../../../../../..", true);
}

TEST(p43_links_in_the_workspace)
{
	char *dir = temp_dir();
	char *out = text("%s/out", dir);
	char *work = text("%s/work", dir);
	char *victim = text("%s/victim", dir);
	const char *seen;
	struct stat st;

	CHECK(mkdir(out, 0755) == 0 && mkdir(work, 0755) == 0 &&
	      mkdir(victim, 0755) == 0);
	put(text("%s/file", victim), "untouched", 0644);
	/* where the files go to, others have been before */
	CHECK(symlink(text("%s/file", victim), text("%s/file", out)) == 0);
	CHECK(symlink(victim, text("%s/sub", out)) == 0);
	(void)in_box(text("copy-out=**/*=%s", out), BOX_CMD, "/bin/sh", "-c",
		     "/probe litter /workspace && mkdir sub && echo x >file &&"
		     " echo x >sub/file && echo x >sub/other",
		     NULL);
	CHECK_STR(get(text("%s/file", out)), "x\n");
	CHECK(lstat(text("%s/file", out), &st) == 0 && S_ISREG(st.st_mode));
	CHECK(exists(text("%s/plain.txt", out)));
	CHECK(!exists(text("%s/link", out)));
	CHECK(!exists(text("%s/dirlink", out)));
	CHECK(!exists(text("%s/upward", out)));
	CHECK_STR(get(text("%s/file", victim)), "untouched");
	CHECK(!exists(text("%s/other", victim)));
	/* links that are brought in are links there, to the box's files */
	CHECK(symlink("/etc/passwd", text("%s/link", work)) == 0);
	CHECK(symlink("/etc/shadow", text("%s/shadow", work)) == 0);
	seen = in_box(text("workspace=%s", work), BOX_CMD, "/probe", "cat",
		      "/workspace/link", "/workspace/shadow", NULL);
	CHECK_HAS(seen, "nobody:x:65534:65534:nobody:/workspace:/bin/sh");
	CHECK_HAS(seen, "/workspace/shadow ENOENT");
	/* the control: followed here, it is this machine's file */
	CHECK(!strstr(on_host(work, "cat", "link", NULL), ":/workspace:"));
	remove_tree(dir);
}

/*
 * Without a policy the only protected place is a read-only bind. One that
 * does not exist is refused; it is not left out and made by the box.
 */
TEST(p44_protected_path_that_is_missing)
{
	char *dir = temp_dir();
	struct cordon_result *r;

	r = result_of(text("volume=%s:/data:rw", dir),
		      text("volume=%s/.git:/data/.git:ro", dir), BOX_CMD,
		      "/bin/mkdir", "/data/.git", NULL);
	CHECK(was_refused(r));
	CHECK_HAS(cordon_result_message(r), ".git");
	CHECK(!exists(text("%s/.git", dir)));
	CHECK(mkdir(text("%s/.git", dir), 0755) == 0);
	CHECK_ALL(in_box(text("volume=%s:/data:rw", dir),
			 text("volume=%s/.git:/data/.git:ro", dir), BOX_CMD,
			 "/probe", "create", "/data/.git/config", NULL),
		  "EROFS|EACCES");
	CHECK_ALL(in_box(text("volume=%s:/data:ro", dir), BOX_CMD, "/probe",
			 "create", "/data/.bashrc", NULL),
		  "EROFS|EACCES");
	CHECK_ALL(in_box(text("volume=%s:/data:rw", dir), BOX_CMD, "/probe",
			 "create", "/data/.bashrc", NULL),
		  "OK");
	remove_tree(dir);
}

/* A listening unix socket; "@name" is an abstract one. */
static int listen_on(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(un.sun_path, name, len);
	if (*name == '@')
		un.sun_path[0] = '\0';
	len += offsetof(struct sockaddr_un, sun_path);
	CHECK(bind(fd, (struct sockaddr *)&un, (socklen_t)len) == 0 &&
	      listen(fd, 4) == 0);
	return fd;
}

TEST(p45_sockets_of_the_host)
{
	char *dir = temp_dir();
	char *path = text("%s/sock", dir);
	struct cordon_result *r;

	(void)listen_on(path);
	CHECK(chmod(path, 0777) == 0 && chmod(dir, 0755) == 0);
	CHECK_WORD(on_host("/", "connect", path, NULL), path, "OK");
	CHECK_ALL(in_box(text("volume=%s:/data:ro", dir), BOX_CMD, "/probe",
			 "connect", "/data/sock", NULL),
		  "EAFNOSUPPORT");
	CHECK_ALL(in_box(text("volume=%s:/data:rw", dir), BOX_CMD, "/probe",
			 "connect", "/data/sock", NULL),
		  "EAFNOSUPPORT");
	/* the socket itself is never mounted */
	r = result_of(text("volume=%s:/sock:ro", path), BOX_CMD, "/bin/true",
		      NULL);
	CHECK(was_refused(r));
	CHECK_HAS(cordon_result_message(r), "socket");
	remove_tree(dir);
}

/* connect() here, in the network namespace that the name belongs to. */
static int connect_here(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(un.sun_path, name, len);
	un.sun_path[0] = '\0';
	len += offsetof(struct sockaddr_un, sun_path);
	return connect(fd, (struct sockaddr *)&un, (socklen_t)len);
}

TEST(p46_abstract_sockets_and_signals)
{
	char *name = text("@cordon-posture-%d", (int)getpid());
	char *us = text("%d", (int)getpid());
	const char *out;

	(void)listen_on(name);
	CHECK_INT(connect_here(name), 0);
	CHECK_ALL(in_box(BOX_CMD, "/probe", "connect", name, NULL),
		  "EAFNOSUPPORT");
	out = in_box(BOX_CMD, "/probe", "procs", us, NULL);
	CHECK_WORD(out, us, "ESRCH");
	/* without the filter: another network namespace, another domain */
	use_test_keeper("CORDON_TEST_SKIP", "seccomp");
	CHECK_ALL(in_box(BOX_CMD, "/probe", "connect", name, NULL),
		  "ECONNREFUSED|EPERM");
}

TEST(p47_nothing_shared_between_boxes)
{
	struct running *b;
	const char *out;

	b = run_until_ready(BOX_CMD, "/probe", "ipc", "make", NULL);
	out = in_box(BOX_CMD, "/probe", "ipc", "see", NULL);
	/* "ready now"; message queues by name are in no box */
	CHECK_INT(lines_with(out, "ENOENT|EACCES", true), 1);
	running_end(b);
	/* in one box they are seen */
	out = in_box(BOX_CMD, "/probe", "ipc", "make", "see", NULL);
	CHECK_INT(lines_with(out, "OK|EACCES", true), 2);
	CHECK_WORD(strstr(out, "ready"), "shm", "OK");
	CHECK_WORD(strstr(out, "ready"), "/dev/shm", "OK");
}

/*
 * A file of the host that several boxes see: its locks are theirs to take
 * (docs/security/residuals.md), but no lease may hold up those who write it.
 */
TEST(p48_locks_on_shared_files)
{
	char *dir = temp_dir();
	char *file = text("%s/file", dir);
	char *volume = text("volume=%s:/data:ro", dir);
	const char *out;

	put(file, "x", 0644);
	CHECK_WORD(on_host("/", "locks", file, "/usr", NULL), "lease", "OK");
	out = in_box(volume, BOX_CMD, "/probe", "locks", "/data/file", "/data",
		     NULL);
	CHECK_WORD(out, "open", "OK");
	CHECK_WORD(out, "setlk", "EBADF");
	CHECK(strcmp(word(out, "lease"), "OK") != 0);
	CHECK(strcmp(word(out, "notify"), "OK") != 0);
	out = in_box(BOX_CMD, "/probe", "locks", "/usr/bin/true", "/usr", NULL);
	CHECK(strcmp(word(out, "lease"), "OK") != 0);
	CHECK(strcmp(word(out, "notify"), "OK") != 0);
	remove_tree(dir);
}

/* Set-id files below a directory. */
static int count_setid(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		struct stat st;

		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			n += S_ISREG(st.st_mode) &&
			     (st.st_mode & (S_ISUID | S_ISGID));
	}
	if (d)
		(void)closedir(d);
	return n;
}

TEST(p49_set_id_files)
{
	char *dir = temp_dir();
	char *out = text("%s/out", dir);
	char *data = text("%s/data", dir);
	const char *said;

	CHECK(mkdir(data, 0755) == 0);
	(void)on_host(data, "setid", ".", NULL);
	CHECK(count_setid(data) > 0);
	remove_tree(data);
	CHECK(mkdir(data, 0755) == 0);
	said = in_box(text("volume=%s:/data:rw", data), BOX_CMD, "/probe",
		      "setid", "/data", NULL);
	CHECK_WORD(said, "plain", "OK");
	CHECK_INT(lines_with(said, "EPERM|ENOSYS", true), 1);
	CHECK(exists(text("%s/plain", data)));
	CHECK_INT(count_setid(data), 0);
	/* a directory of its own gives no group away either */
	(void)in_box(text("copy-out=*=%s", out), BOX_CMD, "/probe", "setid",
		     "/workspace", NULL);
	CHECK(exists(text("%s/plain", out)));
	CHECK_INT(count_setid(out), 0);
	/* executed from a bind, a set-id file gives nothing: p02 */
	remove_tree(dir);
}

TEST(p50_special_files)
{
	char *dir = temp_dir();
	char *out = text("%s/out", dir);
	char *data = text("%s/data", dir);
	const char *said;
	struct stat st = { 0 };

	CHECK(mkdir(data, 0755) == 0);
	(void)alarm(20);
	said = in_box(text("copy-out=*=%s", out), BOX_CMD, "/probe", "litter",
		      "/workspace", NULL);
	CHECK_WORD(said, "fifo", "OK");
	CHECK_WORD(said, "socket", "OK");
	CHECK_ALL(word(said, "chr"), "EPERM|EACCES");
	CHECK_ALL(word(said, "blk"), "EPERM|EACCES");
	CHECK_WORD(said, "chr-is-there", "ENOENT");
	CHECK_INT(count_entries(out), 2); /* file, plain.txt */
	/* in a directory of the host, and brought back in from there */
	said = in_box(text("volume=%s:/data:rw", data), BOX_CMD, "/probe",
		      "litter", "/data", NULL);
	CHECK_WORD(said, "fifo", "OK");
	CHECK(!exists(text("%s/chr", data)) && !exists(text("%s/blk", data)));
	CHECK(lstat(text("%s/fifo", data), &st) == 0 && S_ISFIFO(st.st_mode));
	said = in_box(text("workspace=%s", data), BOX_CMD, "/probe", "ls",
		      "/workspace", NULL);
	CHECK_WORD(said, "file", "file 0:0");
	CHECK_WORD(said, "link", "link 0:0");
	CHECK_WORD(said, "fifo", "");
	CHECK_WORD(said, "socket", "");
	remove_tree(dir);
}

TEST(p55_names_of_the_host)
{
	char host[256] = "";
	const char *out = in_box(BOX_CMD, "/probe", "where", NULL);
	const char *mounts = in_box(BOX_CMD, "/probe", "mounts", NULL);

	(void)gethostname(host, sizeof(host) - 1);
	CHECK_WORD(out, "host", "cordon");
	CHECK_WORD(out, "domain", "none");
	CHECK_WORD(in_box("name=mine", BOX_CMD, "/probe", "where", NULL),
		   "host", "mine");
	CHECK_WORD(on_host("/", "where", NULL), "host", host);
	/* of the host's paths, those that are the same in the box */
	for (const char *p = mounts; *p;
	     p += strcspn(p, "\n"), p += *p == '\n') {
		char *line = text("%.*s", (int)strcspn(p, "\n"), p);
		const char *root = strrchr(line, ' ') + 1;
		size_t n = strcspn(line, " ");

		if (strncmp(line, "/proc", 5) == 0 || strcmp(root, "/") == 0 ||
		    strncmp(line, "/probe ", 7) == 0 ||
		    strncmp(line, "/dev/", 5) == 0)
			continue;
		if (strlen(root) < n ||
		    strncmp(root + strlen(root) - n, line, n) != 0)
			printf("# %s\n", line);
		CHECK(strlen(root) >= n &&
		      strncmp(root + strlen(root) - n, line, n) == 0);
	}
}
