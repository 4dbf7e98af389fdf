/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* P01 to P15: what a process in a box is, has and sees. */

#include "posture.h"

static const char zero_caps[] = "0000000000000000";

static void check_no_caps(const char *out)
{
	CHECK_WORD(out, "CapInh", zero_caps);
	CHECK_WORD(out, "CapPrm", zero_caps);
	CHECK_WORD(out, "CapEff", zero_caps);
	CHECK_WORD(out, "CapBnd", zero_caps);
	CHECK_WORD(out, "CapAmb", zero_caps);
}

TEST(p01_no_capabilities)
{
	const char *host = on_host("/", "status", NULL);

	CHECK(strcmp(word(host, "CapBnd"), zero_caps) != 0);
	check_no_caps(in_box(BOX_CMD, "/probe", "status", NULL));
	/* nor for the box's own root */
	check_no_caps(in_box("user=0", BOX_CMD, "/probe", "status", NULL));
}

/* The set-uid file of `dir`, run by a user who is not its owner. */
static const char *run_as_other(const char *file)
{
	const char *argv[] = { "probe", "euid", NULL };
	int fd = open(file, O_PATH | O_CLOEXEC);
	int fds[2];
	const char *out;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		abort();
	pid = fork();
	if (pid == 0) {
		(void)dup2(fds[1], 1);
		if (setresuid(54321, 54321, 54321) == 0)
			(void)syscall(SYS_execveat, fd, "", argv, environ,
				      AT_EMPTY_PATH);
		_exit(127);
	}
	(void)close(fds[1]);
	out = read_all(fds[0]);
	(void)waitpid(pid, NULL, 0);
	return out;
}

static void copy_probe(const char *to, mode_t mode)
{
	char *from = text("%s/tests/probe", getenv("CORDON_BUILD"));
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

	while (copy_file_range(in, NULL, out, NULL, 1 << 20, 0) > 0)
		;
	CHECK(fchmod(out, mode) == 0);
	(void)close(in);
	(void)close(out);
}

TEST(p02_no_new_privileges)
{
	char *dir = temp_dir();
	char *file = text("%s/setuid", dir);
	const char *volume = text("volume=%s:/data:ro", dir);
	const char *out = in_box(BOX_CMD, "/probe", "status", NULL);

	CHECK_WORD(out, "NoNewPrivs", "1");
	CHECK_WORD(on_host("/", "status", NULL), "NoNewPrivs", "0");
	copy_probe(file, 04755);
	if (is_root())
		CHECK_WORD(run_as_other(file), "euid", "0");
	CHECK_WORD(in_box(volume, "user=1000", BOX_CMD, "/data/setuid", "euid",
			  NULL),
		   "euid", "1000");
	CHECK_WORD(in_box(volume, "user=1000", BOX_CMD, "/probe", "exec",
			  "/data/setuid", "euid", NULL),
		   "euid", "1000");
	remove_tree(dir);
}

/* The host's own link of a namespace. */
static bool is_own_namespace(const char *name, const char *link)
{
	char ours[64];
	ssize_t n = readlink(text("/proc/self/ns/%s", name), ours,
			     sizeof(ours) - 1);

	if (n < 0)
		return false;
	ours[n] = '\0';
	return strcmp(ours, link) != 0;
}

static const char *const namespaces[] = { "cgroup", "ipc",  "mnt", "net",
					  "pid",    "user", "uts" };

/* A limit that Cordon sets, which the host may have set lower already. */
static char *normal_limit(const char *name, const char *value)
{
	static const struct {
		const char *name;
		int what;
		unsigned long long value;
	} set[] = {
		{ "fsize", RLIMIT_FSIZE, 1 << 30 },
		{ "memlock", RLIMIT_MEMLOCK, 64 << 10 },
		{ "msgqueue", RLIMIT_MSGQUEUE, 800 << 10 },
		{ "nofile", RLIMIT_NOFILE, 1024 },
		{ "stack", RLIMIT_STACK, 8 << 20 },
		{ "sigpending", RLIMIT_SIGPENDING, 4096 },
		/* 1 where core_pattern is a program: it stops that */
		{ "core", RLIMIT_CORE, 1 },
	};
	unsigned long long v = strtoull(value, NULL, 10);

	for (size_t i = 0; i < ARRAY_SIZE(set); i++) {
		struct rlimit l;

		if (strcmp(name, set[i].name) != 0 ||
		    getrlimit(set[i].what, &l) < 0)
			continue;
		if (v == set[i].value || v == l.rlim_max ||
		    (set[i].what == RLIMIT_CORE && v == 0))
			return text("limit %s %llu", name, set[i].value);
	}
	return text("limit %s %s", name, value);
}

/* The flags of a mount of the host's, without what tells whose it is. */
static char *normal_host(const char *at, char *flags)
{
	char *idmapped = strstr(flags, " idmapped");

	if (idmapped)
		*idmapped = '\0';
	/* of /etc a host may have more or less */
	if (strncmp(at, "/etc/", 5) == 0 &&
	    strcmp(flags, "ro nosuid nodev") == 0)
		return text("mount /etc/* if-there ro nosuid nodev host");
	return text("mount %s %s host", at, flags);
}

/* Mounts that are the host's differ in file system; covers in number. */
static char *normal_mount(const char *at, const char *rest)
{
	static const char *const host[] = { "/usr",        "/dev/null",
					    "/dev/zero",   "/dev/full",
					    "/dev/random", "/dev/urandom",
					    "/probe" };
	const char *root = strrchr(rest, ' ');
	const char *type = root;
	bool is_host = strncmp(at, "/etc/", 5) == 0;

	if (!root)
		return text("%s %s", at, rest);
	while (type > rest && type[-1] != ' ')
		type--;
	if (strncmp(at, "/proc/", 6) == 0 &&
	    (strcmp(root, " /proc/void") == 0 ||
	     strcmp(root, " /proc/empty") == 0))
		return text("mount /proc/* %.*s cover", (int)(root - rest),
			    rest);
	for (size_t i = 0; i < ARRAY_SIZE(host); i++)
		is_host = is_host || strcmp(at, host[i]) == 0;
	if (is_host)
		return normal_host(at,
				   text("%.*s", (int)(type - rest - 1), rest));
	return text("mount %s %s", at, rest);
}

/* "65534 ID 1": any host id but root's is as good as another. */
static char *normal_map(const char *name, const char *value)
{
	unsigned int inside = 0;
	unsigned int outside = 0;
	unsigned int n = 0;

	(void)sscanf(value, "%u %u %u", &inside, &outside, &n);
	return text("%s %u %s %u", name, inside, outside ? "unprivileged" : "0",
		    n);
}

static char *normal_cgroup(const char *value)
{
	for (const char *p = strchr(value, '/'); p; p = strchr(p + 1, '/'))
		if (p[-1] != ':' || (p[1] && p[1] != ' '))
			return text("cgroup %s", value);
	return text("cgroup every-path-is-/");
}

static bool is_limit(const char *name)
{
	return is_one_of(name, strlen(name),
			 "core|fsize|memlock|msgqueue|nice|nofile|rtprio|stack|"
			 "sigpending");
}

/* Each mount must have these whatever its kind. */
static void check_mount(const char *at, const char *rest)
{
	bool device = strncmp(at, "/dev/", 5) == 0 &&
		      strcmp(at, "/dev/shm") != 0;

	if (!strstr(rest, "nosuid") || (!device && !strstr(rest, "nodev"))) {
		printf("# %s: %s\n", at, rest);
		CHECK(!"a mount is nosuid, and nodev unless it is a device");
	}
}

/* One line of a snapshot, without what differs between two good boxes. */
static char *normal(const char *line)
{
	char *name = text("%.*s", (int)strcspn(line, " "), line);
	const char *value = line + strlen(name);

	value += *value == ' ';
	if (*name == '/') {
		check_mount(name, value);
		return normal_mount(name, value);
	}
	if (is_limit(name))
		return normal_limit(name, value);
	if (strcmp(name, "uid_map") == 0 || strcmp(name, "gid_map") == 0)
		return normal_map(name, value);
	if (strcmp(name, "cgroup") == 0 && strstr(value, ":/"))
		return normal_cgroup(value);
	/* groups of the caller that no map names show as this number */
	if (strcasecmp(name, "groups") == 0 &&
	    strspn(value, "65534 ,") == strlen(value))
		return text("%s none", name);
	if (strstr(value, ":["))
		return text("namespace %s %s", name,
			    is_own_namespace(name, value) ? "own" : "shared");
	return text("%s", line);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a snapshot, normal, in order, each once. */
static char *normal_snapshot(const char *from, const char *to)
{
	char *lines[1024] = { text("mount /etc/* if-there ro nosuid nodev "
				   "host") };
	size_t n = 1;
	char *out = text("%s", "");
	char *last = NULL;

	for (const char *p = from; p < to && n < ARRAY_SIZE(lines);) {
		int len = (int)strcspn(p, "\n");

		lines[n++] = normal(text("%.*s", len, p));
		p += len + 1;
	}
	qsort(lines, n, sizeof(lines[0]), by_text);
	for (size_t i = 0; i < n; i++) {
		if (last && strcmp(last, lines[i]) == 0)
			continue;
		last = lines[i];
		out = text("%s%s\n", out, last);
	}
	return out;
}

/*
 * The whole posture, compared exactly: identity, capabilities, namespaces,
 * mounts, descriptors, environment, limits; alone, then beside four threads.
 */
TEST(p03_every_thread_and_the_whole_posture)
{
	static const char alone[] = "--- alone\n";
	static const char threads[] = "--- threads\n";
	static const char task[] = "--- task\n";
	const char *out = in_box(BOX_CMD, "/probe", "snapshot", NULL);
	const char *a = strstr(out, alone);
	const char *b = strstr(out, threads);
	const char *t = strstr(out, task);
	char *before;
	int n = 0;

	CHECK(a && b && t);
	if (!a || !b || !t)
		return;
	before = normal_snapshot(a + strlen(alone), b);
	check_golden("posture", before);
	CHECK_STR(normal_snapshot(b + strlen(threads), t), before);
	for (; t; t = strstr(t + 1, task), n++) {
		CHECK_WORD(t, "Seccomp", "2");
		CHECK_WORD(t, "NoNewPrivs", "1");
		check_no_caps(t);
	}
	CHECK_INT(n, 5);
	CHECK_WORD(on_host("/", "status", NULL), "Seccomp", "0");
}

static unsigned int outer_id(const char *out)
{
	unsigned int id = 0;

	(void)sscanf(word(out, "uid_map"), "%*u %u", &id);
	return id;
}

TEST(p04_uid_of_its_own)
{
	char *dir = temp_dir();
	struct running *b = run_until_ready(BOX_CMD, "/bin/sh", "-c",
					    "/probe ids; echo ready; sleep 20",
					    NULL);
	struct cordon_result *r = result_of(BOX_CMD, "/probe", "ids", NULL);
	const char *out = cordon_result_stdout(r, NULL);
	struct stat st = { 0 };

	CHECK(outer_id(b->out) != 0);
	CHECK(outer_id(out) != 0);
	if (lacks(r, "own-uid")) {
		CHECK(!is_root());
		CHECK_INT(outer_id(out), geteuid());
	} else {
		CHECK(outer_id(b->out) != outer_id(out));
		CHECK(outer_id(out) != geteuid());
		CHECK(outer_id(out) > 65535);
	}
	running_end(b);
	if (is_root())
		CHECK(chown(dir, 54321, 54322) == 0);
	CHECK_ALL(in_box(text("volume=%s:/data:rw", dir), BOX_CMD, "/probe",
			 "create", "/data/new", NULL),
		  "OK");
	CHECK(stat(text("%s/new", dir), &st) == 0);
	CHECK_INT(st.st_uid, is_root() ? 54321 : geteuid());
	CHECK_INT(st.st_gid, is_root() ? 54322 : getegid());
	/* the control: here, too, an id can be seen */
	CHECK_INT(outer_id(on_host("/", "ids", NULL)),
		  is_root() ? 0 : geteuid());
	remove_tree(dir);
}

TEST(p05_no_groups)
{
	static const gid_t some[] = { 4, 20, 24 };
	struct cordon_result *r;
	const char *out;

	/* groups to lose, where we may have them */
	if (is_root()) {
		CHECK(setgroups(3, some) == 0);
		CHECK_WORD(on_host("/", "ids", NULL), "groups", "4 20 24");
	}
	r = result_of(BOX_CMD, "/probe", "ids", NULL);
	out = cordon_result_stdout(r, NULL);
	CHECK_WORD(out, "setgroups", "deny");
	if (lacks(r, "own-uid"))
		/* a user without a range cannot drop them, only unname them */
		CHECK_INT((int)strspn(word(out, "groups"), "65534 none"),
			  (int)strlen(word(out, "groups")));
	else
		CHECK_WORD(out, "groups", "none");
}

TEST(p06_namespaces)
{
	const char *out = in_box(BOX_CMD, "/probe", "ns", NULL);
	const char *host = on_host("/", "ns", NULL);

	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		const char *name = namespaces[i];

		CHECK(*word(out, name));
		if (!is_own_namespace(name, word(out, name)))
			printf("# %s is the host's\n", name);
		CHECK(is_own_namespace(name, word(out, name)));
	}
	/* the control has the host's, where it was given none of its own */
	CHECK(!is_own_namespace("pid", word(host, "pid")));
	CHECK(!is_own_namespace("cgroup", word(host, "cgroup")));
}

TEST(p07_only_its_own_processes)
{
	char *us = text("%d", (int)getpid());
	const char *out = in_box(BOX_CMD, "/probe", "procs", us, NULL);
	const char *host = on_host("/", "procs", us, NULL);

	/* init, the probe */
	CHECK_WORD(out, "count", "2");
	CHECK_WORD(out, "self", "2");
	CHECK_WORD(out, us, "ESRCH");
	CHECK(atoi(word(host, "count")) > 2);
	CHECK_WORD(host, us, "OK");
	out = in_box(BOX_CMD, "/probe", "procs", "-1", NULL);
	CHECK_WORD(out, "-1", "ESRCH");
}

TEST(p08_no_inherited_descriptors)
{
	int dir = open("/",
		       O_RDONLY | O_DIRECTORY); /* NOLINT: not closed on exec */
	int high = fcntl(dir, F_DUPFD, 200);
	const char *out;

	CHECK(dir >= 3 && high >= 200);
	CHECK_WORD(on_host("/", "fds", NULL), text("fd%d", high), "directory");
	out = in_box(BOX_CMD, "/probe", "fds", NULL);
	CHECK_STR(out, "fd0 device\nfd1 pipe\nfd2 pipe\n");
	out = in_box("interactive=true", BOX_CMD, "/probe", "fds", NULL);
	CHECK_STR(out, "fd0 pipe\nfd1 pipe\nfd2 pipe\n");
}

/* Runs `cordon run` with its output in a file; what the file holds. */
static const char *cli_into_file(const char *dir, const char *box)
{
	char *file = text("%s/out", dir);
	char *cmd = text("exec 3<>%s; %s >%s 2>&1 </dev/null", file, box, file);

	CHECK_INT(system(cmd), 0);
	return get(file);
}

TEST(p09_streams_are_pipes)
{
	char *dir = temp_dir();
	const char *build = getenv("CORDON_BUILD");
	const char *out;

	out = cli_into_file(dir, text("%s/tests/probe reopen", build));
	CHECK_WORD(out, "fd1", "file OK");
	out = cli_into_file(dir, text("%s/cordon run %s-v %s/tests/probe:/probe"
				      " -- /probe reopen",
				      build,
				      is_root() ? "" : "--best-effort cgroup ",
				      build));
	/* standard input is the box's own /dev/null, or a pipe */
	CHECK(strncmp(word(out, "fd0"), "file", 4) != 0);
	CHECK(strncmp(word(out, "fd1"), "pipe", 4) == 0);
	CHECK(strncmp(word(out, "fd2"), "pipe", 4) == 0);
	remove_tree(dir);
}

TEST(p10_environment)
{
	static const char *const secrets[] = { "AWS_SECRET_ACCESS_KEY",
					       "HTTPS_PROXY", "LD_PRELOAD_X",
					       "CORDON_TEST_X" };
	const char *names = "PATH|HOME|LANG|TMPDIR|PIP_QUIET|PIP_NO_INPUT|"
			    "PIP_DISABLE_PIP_VERSION_CHECK|PYTHONUNBUFFERED|"
			    "PYTHONDONTWRITEBYTECODE|MINE";
	const char *out;

	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		(void)setenv(secrets[i], "s3cret", 1);
	CHECK_WORD(on_host("/", "env", NULL), secrets[0], "s3cret");
	out = in_box("env=MINE=given", BOX_CMD, "/probe", "env", NULL);
	CHECK(!strstr(out, "s3cret"));
	CHECK_WORD(out, "MINE", "given");
	for (const char *p = out; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t len = strcspn(p, " ");

		if (!is_one_of(p, len, names))
			printf("# %.*s\n", (int)len, p);
		CHECK(is_one_of(p, len, names));
	}
}

TEST(p11_root_and_mounts)
{
	const char *out = in_box(BOX_CMD, "/probe", "where", NULL);
	const char *host = on_host("/", "where", NULL);
	const char *mounts = in_box(BOX_CMD, "/probe", "mounts", NULL);
	int n = 0;

	CHECK_WORD(out, "root", "ro");
	CHECK_WORD(out, "cwd", "/workspace");
	CHECK_WORD(host, "cwd", "/");
	/* the exact list is in p03's golden file */
	for (const char *p = mounts; *p; n++) {
		char *line = text("%.*s", (int)strcspn(p, "\n"), p);
		char *blank = strchr(line, ' ');

		*blank = '\0';
		check_mount(line, blank + 1);
		p += strcspn(p, "\n");
		p += *p == '\n';
	}
	CHECK(n > 10);
	CHECK_ALL(in_box(BOX_CMD, "/probe", "create", "/x", "/usr/x", "/etc/x",
			 "/dev/x", "/usr/bin/x", "/var/x", "/home/x", "/sys/x",
			 "/proc/x", NULL),
		  "EROFS|EACCES|ENOENT");
	CHECK_ALL(in_box(BOX_CMD, "/probe", "create", "/workspace/x", "/tmp/x",
			 "/dev/shm/x", "/var/tmp/y", NULL),
		  "OK");
}

#define SYS_FILES                                                              \
	"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",          \
		"/proc/sys/vm/panic_on_oom", "/proc/sys/net/ipv4/ip_forward",  \
		"/proc/sys/kernel/hostname", "/proc/sys/fs/file-max",          \
		"/proc/sys/user/max_user_namespaces", "/proc/sysrq-trigger",   \
		"/proc/sys/fs/binfmt_misc/register",                           \
		"/proc/irq/0/smp_affinity", "/proc/self/oom_score_adj",        \
		"/proc/1/oom_score_adj", "/proc/1/mem", "/proc/latency_stats"

TEST(p12_kernel_settings_cannot_be_written)
{
	const char *out;

	CHECK_ALL(in_box(BOX_CMD, "/probe", "open-write", SYS_FILES, NULL),
		  "EROFS|EACCES|ENOENT|EPERM");
	/* also not as the box's root */
	CHECK_ALL(in_box("user=0", BOX_CMD, "/probe", "open-write", SYS_FILES,
			 NULL),
		  "EROFS|EACCES|ENOENT|EPERM");
	if (is_root()) {
		/* opened, nothing written */
		out = on_host("/", "open-write", SYS_FILES, NULL);
		CHECK_WORD(out, "/proc/sys/kernel/core_pattern", "OK");
		CHECK_WORD(out, "/proc/sys/net/ipv4/ip_forward", "OK");
	}
}

#define SECRETS                                                                \
	"/proc/kcore", "/proc/kmsg", "/proc/keys", "/proc/key-users",          \
		"/proc/kallsyms", "/proc/timer_list", "/proc/sched_debug",     \
		"/proc/interrupts", "/proc/config.gz", "/proc/latency_stats",  \
		"/proc/acpi", "/proc/scsi", "/proc/cmdline", "/proc/modules",  \
		"/proc/iomem", "/proc/swaps", "/proc/partitions",              \
		"/proc/diskstats", "/proc/vmstat", "/proc/sysvipc",            \
		"/proc/bus", "/proc/driver", "/proc/fs", "/proc/pressure",     \
		"/sys/firmware", "/sys/class", "/sys/block", "/sys/kernel",    \
		"/sys/fs/cgroup", "/sys/devices/virtual/powercap",             \
		"/sys/devices/system/cpu/cpu0/thermal_throttle",               \
		"/sys/devices/system/cpu/vulnerabilities", "/boot",            \
		"/lost"                                                        \
		"+found",                                                      \
		"/etc/shadow", "/etc/machine-id", "/var/log", "/var/lib",      \
		"/root/.ssh", "/run/systemd"

TEST(p13_masked_reads)
{
	const char *own = "cpuinfo|meminfo|stat|uptime|loadavg";
	const char *kept = "self|thread-self|mounts|net|filesystems|version|"
			   "sys";
	const char *out = in_box(BOX_CMD, "/probe", "content", SECRETS, NULL);

	CHECK_ALL(out, "absent|empty");
	out = in_box(BOX_CMD, "/probe", "proc-top", NULL);
	CHECK(*out);
	/* every entry, also those that nobody thought of */
	for (const char *p = out; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t len = strcspn(p, " ");

		if (is_one_of(p, len, own) || is_one_of(p, len, kept))
			continue;
		if (strncmp(p + len, " empty\n", 7) != 0)
			printf("# /proc/%.*s\n", (int)strcspn(p, "\n"), p);
		CHECK(strncmp(p + len, " empty\n", 7) == 0);
	}
	CHECK_WORD(on_host("/", "proc-top", NULL), "interrupts", "bytes");
	CHECK_WORD(on_host("/", "content", "/proc/cmdline", NULL),
		   "/proc/cmdline", "bytes");
	/* its own files do not tell how the host is doing */
	CHECK_STR(word(in_box(BOX_CMD, "/probe", "cat", "/proc/uptime", NULL),
		       "/proc/uptime"),
		  "0.00 0.00");
}

TEST(p14_devices)
{
	static const char *const devices[][2] = {
		{ "null", "device 1:3" },    { "zero", "device 1:5" },
		{ "full", "device 1:7" },    { "random", "device 1:8" },
		{ "urandom", "device 1:9" }, { "shm", "directory 0:0" },
		{ "fd", "link 0:0" },        { "stdin", "link 0:0" },
		{ "stdout", "link 0:0" },    { "stderr", "link 0:0" },
	};
	const char *out = in_box(BOX_CMD, "/probe", "ls", "/dev", NULL);
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		CHECK_WORD(out, devices[i][0], devices[i][1]);
	for (const char *p = out; *p; p++)
		n += *p == '\n';
	CHECK_INT(n, ARRAY_SIZE(devices));
	CHECK_ALL(in_box(BOX_CMD, "/probe", "open-read", "/dev/kvm",
			 "/dev/fuse", "/dev/net/tun", "/dev/vsock", "/dev/mem",
			 "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/loop0",
			 "/dev/loop-control", "/dev/tty", "/dev/ptmx",
			 "/dev/console", "/dev/mapper/control", NULL),
		  "ENOENT");
	CHECK_WORD(on_host("/", "open-read", "/dev/tty", "/dev/null", NULL),
		   "/dev/null", "OK");
	CHECK(strcmp(word(on_host("/", "ls", "/dev", NULL), "tty"),
		     "device 5:0") == 0);
}

TEST(p15_terminal_injection)
{
	const char *out = in_box(BOX_CMD, "/probe", "tty", NULL);

	CHECK_ALL(out, "EPERM");
	CHECK_ALL(on_host("/", "tty", NULL), "EBADF");
	CHECK_WORD(in_box(BOX_CMD, "/probe", "open-read", "/dev/tty", NULL),
		   "/dev/tty", "ENOENT");
	/* with a terminal, on that terminal */
	out = in_box("tty=true", BOX_CMD, "/probe", "tty", "0", NULL);
	CHECK_HAS(out, "TIOCSTI EPERM");
	CHECK_HAS(out, "TIOCSTI-high EPERM");
	CHECK_HAS(out, "TIOCSETD-high EPERM");
	CHECK(!strstr(out, "OK"));
}
