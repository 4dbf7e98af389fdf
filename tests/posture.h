/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the posture tests share: the probe run in a box and outside of it,
 * its lines as words, golden files, temporary directories.
 *
 * Strings that these functions return live until the test ends.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "box.h"
#include "tap.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The build tree is where this program is, unless the runner says. */
__attribute__((constructor)) static void find_build(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	for (int i = 0; n > 0 && i < 2; i++) {
		path[n] = '\0';
		n = strrchr(path, '/') - path;
		path[n] = '\0';
	}
	if (n > 0)
		(void)setenv("CORDON_BUILD", path, 0);
}

__attribute__((format(printf, 1, 2))) static char *text(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		abort();
	va_end(ap);
	return s;
}

static bool is_root(void)
{
	return geteuid() == 0;
}

/* In a box */

static struct cordon_result *box_with_probe(struct cordon_spec *s)
{
	box_set(s, BOX_PROBE);
	/* Limits are not what is tested here, and a user may have none. */
	if (!is_root())
		box_set(s, "best-effort=cgroup");
	return box_run_spec(s);
}

/* box_run() with the probe at /probe, whatever comes of it. */
static struct cordon_result *result_of(const char *first, ...)
{
	struct cordon_spec *s;
	va_list ap;

	va_start(ap, first);
	s = box_spec_va(first, ap);
	va_end(ap);
	return box_with_probe(s);
}

/* The same; what it wrote, after it ended well. */
static const char *in_box(const char *first, ...)
{
	struct cordon_result *r;
	struct cordon_spec *s;
	va_list ap;

	va_start(ap, first);
	s = box_spec_va(first, ap);
	va_end(ap);
	r = box_with_probe(s);
	if (strcmp(cordon_result_cause(r), "exited") != 0 ||
	    cordon_result_exit_code(r) != 0) {
		box_show(r);
		CHECK(!"the probe ended well");
	}
	return cordon_result_stdout(r, NULL);
}

/* True if the result says that it could not enforce this. */
static bool lacks(const struct cordon_result *r, const char *layer)
{
	char *json = cordon_result_json(r);
	char *list = json ? strstr(json, "\"not_enforced\":[") : NULL;
	char *end = list ? strchr(list, ']') : NULL;

	if (end)
		*end = '\0';
	return list && strstr(list, text("\"%s\"", layer));
}

/* The next box comes from another keeper, with this variable set. */
static void new_keeper(const char *libexec, const char *name, const char *value)
{
	static const char *const hooks[] = { "CORDON_TEST_SKIP",
					     "CORDON_TEST_FAIL" };

	cordon_close(box_handle);
	box_handle = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++)
		(void)unsetenv(hooks[i]);
	(void)setenv("CORDON_LIBEXEC", libexec, 1);
	if (name)
		(void)setenv(name, value, 1);
}

static void use_test_keeper(const char *name, const char *value)
{
	new_keeper(text("%s/tests", getenv("CORDON_BUILD")), name, value);
}

/* A box that goes on while others are started. */
struct running {
	struct cordon_job *job;
	char out[4096];
	size_t len;
};

static void running_output(void *arg, int stream, const void *data, size_t len)
{
	struct running *b = arg;

	if (stream != 1 || len >= sizeof(b->out) - b->len)
		return;
	memcpy(b->out + b->len, data, len);
	b->len += len;
	b->out[b->len] = '\0';
}

/* Starts it and waits, up to ten seconds, for it to say "ready". */
static struct running *run_until_ready(const char *first, ...)
{
	static const struct cordon_events events = { .output = running_output };
	struct running *b = calloc(1, sizeof(*b));
	struct cordon_error err = { 0 };
	struct cordon_spec *s;
	va_list ap;

	va_start(ap, first);
	s = box_spec_va(first, ap);
	va_end(ap);
	box_set(s, BOX_PROBE);
	if (!is_root())
		box_set(s, "best-effort=cgroup");
	b->job = cordon_start(box_open(), s, &events, b, &err);
	for (int i = 0; b->job && i < 1000 && !strstr(b->out, "ready"); i++) {
		struct pollfd p = { cordon_job_fd(b->job), POLLIN, 0 };

		(void)poll(&p, 1, 10);
		if (cordon_job_step(b->job) != 0)
			break;
	}
	CHECK(strstr(b->out, "ready"));
	return b;
}

static void running_end(struct running *b)
{
	cordon_job_cancel(b->job, "the test has seen it");
	cordon_result_free(cordon_job_end(b->job));
}

/* Outside */

/* As a user: rights over new namespaces, in which the user is `inside`. */
static int become_capable(int flags, uid_t inside, gid_t gid_inside)
{
	const char *lines[][2] = {
		{ "/proc/self/setgroups", "deny" },
		{ "/proc/self/uid_map", text("%u %u 1", inside, geteuid()) },
		{ "/proc/self/gid_map",
		  text("%u %u 1", gid_inside, getegid()) },
	};

	if (unshare(flags | CLONE_NEWUSER) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		int fd = open(lines[i][0], O_WRONLY | O_CLOEXEC);

		if (write(fd, lines[i][1], strlen(lines[i][1])) < 0)
			return -1;
		(void)close(fd);
	}
	return 0;
}

/* Namespaces of its own, so that nothing of the machine is changed, and for
 * a user the rights that root has, over those. */
static void control_namespaces(void)
{
	int flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET;

	(void)setsid();
	if ((is_root() ? unshare(flags) : become_capable(flags, 0, 0)) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(3);
}

static const char *read_all(int fd)
{
	char *buf = malloc(1 << 18);
	size_t len = 0;
	ssize_t n;

	while (len < (1 << 18) - 1 &&
	       (n = read(fd, buf + len, (1 << 18) - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	(void)close(fd);
	return buf;
}

/* The probe, run here in `cwd`, as the control. */
static const char *on_host(const char *cwd, ...)
{
	const char *argv[64] = { "probe" };
	const char *out;
	int n = 1;
	int fds[2];
	int status = 0;
	pid_t pid;
	va_list ap;

	va_start(ap, cwd);
	while (n < 63 && (argv[n] = va_arg(ap, const char *)))
		n++;
	va_end(ap);
	if (pipe2(fds, O_CLOEXEC) < 0)
		abort();
	pid = fork();
	if (pid == 0) {
		control_namespaces();
		(void)dup2(fds[1], 1);
		if (chdir(cwd) == 0)
			(void)execv(text("%s/tests/probe",
					 getenv("CORDON_BUILD")),
				    (char **)argv);
		_exit(127);
	}
	(void)close(fds[1]);
	out = read_all(fds[0]);
	(void)waitpid(pid, &status, 0);
	CHECK_INT(status, 0);
	return out;
}

/* Words */

/* What follows the first word `key` of a line, or "". */
static const char *word(const char *out, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = out; p && *p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, len) == 0 && p[len] == ' ')
			return text("%.*s", (int)strcspn(p + len + 1, "\n"),
				    p + len + 1);
	}
	return "";
}

/* True if the word is one of a list such as "EPERM|ENOSYS". */
static bool is_one_of(const char *w, size_t len, const char *set)
{
	while (*set) {
		size_t n = strcspn(set, "|");

		if (n == len && strncmp(w, set, n) == 0)
			return true;
		set += n + (set[n] == '|');
	}
	return false;
}

/* How many lines do (or do not) end in a word of the set; those are shown. */
static int lines_with(const char *out, const char *set, bool wanted)
{
	int n = 0;

	for (const char *p = out; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t len = strcspn(p, "\n");
		size_t at = len;

		while (at > 0 && p[at - 1] != ' ')
			at--;
		if (is_one_of(p + at, len - at, set) == wanted)
			continue;
		printf("# %.*s\n", (int)len, p);
		n++;
	}
	return n;
}

static void check_lines(int line, const char *out, const char *set, bool wanted)
{
	int n = lines_with(out, set, wanted);

	if (n == 0 && *out)
		return;
	printf("# line %d: %d lines %s %s\n", line, n,
	       wanted ? "are not" : "are", set);
	tap_bad++;
}

static void check_word(int line, const char *out, const char *key,
		       const char *want)
{
	const char *have = word(out, key);

	if (strcmp(have, want) == 0)
		return;
	printf("# line %d: %s is '%s', not '%s'\n", line, key, have, want);
	tap_bad++;
}

/* Every line ends in one of the words, and there are lines. */
#define CHECK_ALL(out, set) check_lines(__LINE__, out, set, true)

/* No line does. */
#define CHECK_NONE(out, set) check_lines(__LINE__, out, set, false)

#define CHECK_WORD(out, key, want) check_word(__LINE__, out, key, want)

/* Files */

static char *temp_dir(void)
{
	char *dir = text("/tmp/cordon-posture-XXXXXX");

	/* a box of an ordinary user may be anybody */
	if (!mkdtemp(dir) || chmod(dir, 0755) < 0)
		abort();
	return dir;
}

static void remove_tree_at(int at, const char *name)
{
	int fd = openat(at, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_tree_at(dirfd(d), e->d_name);
	if (d)
		(void)closedir(d);
	(void)unlinkat(at, name, d ? AT_REMOVEDIR : 0);
}

static void remove_tree(const char *dir)
{
	remove_tree_at(AT_FDCWD, dir);
}

static void put(const char *path, const char *content, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t len = strlen(content);

	if (fd < 0 || write(fd, content, len) != (ssize_t)len ||
	    fchmod(fd, mode) < 0)
		CHECK(!"the test could write its file");
	(void)close(fd);
}

/* Content of a file, or NULL. */
static const char *get(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? NULL : read_all(fd);
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* Names in a directory. */
static int count_entries(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 &&
		     strcmp(e->d_name, "..") != 0;
	if (d)
		(void)closedir(d);
	return n;
}

/*
 * Compares with tests/golden/NAME. CORDON_GOLDEN_UPDATE=1 writes it instead;
 * then read the difference before you keep it.
 */
static void check_golden(const char *name, const char *have)
{
	const char *top = getenv("CORDON_TOP");
	char *path = text("%s/tests/golden/%s", top ? top : SOURCE_TOP, name);
	const char *want;
	int shown = 0;

	if (getenv("CORDON_GOLDEN_UPDATE")) {
		put(path, have, 0644);
		return;
	}
	want = get(path);
	CHECK(want && *want);
	for (const char *a = have, *b = want ? want : ""; *a || *b;) {
		size_t la = strcspn(a, "\n");
		size_t lb = strcspn(b, "\n");

		if ((la != lb || strncmp(a, b, la) != 0) && shown++ < 20)
			printf("# have '%.*s', %s wants '%.*s'\n", (int)la, a,
			       name, (int)lb, b);
		a += la + (a[la] == '\n');
		b += lb + (b[lb] == '\n');
	}
	CHECK_INT(shown, 0);
}

/* A mount namespace of the test's own, in which it may cover things. */
static void private_mounts(void)
{
	int r = is_root() ? unshare(CLONE_NEWNS)
			  : become_capable(CLONE_NEWNS, geteuid(), getegid());

	if (r < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		CHECK(!"the test has mounts of its own");
}
