/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a test of limits and causes needs beside box.h: hog in the box, the
 * numbers of the result document, and what the host shows of a run.
 *
 *	struct cordon_result *r = hog_run("memory=64m", BOX_CMD, HOG, "touch",
 *					  "256", NULL);
 *	CHECK_STR(cordon_result_cause(r), "memory");
 *	CHECK(doc_num(r, "memory_used_mb") <= 64);
 *
 * Where no cgroup can be used (an ordinary user without one), need_limits()
 * skips a test that is about such limits; all other runs are made with
 * best-effort=cgroup there, so that they are still made.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "box.h"
#include "tap.h"

#define HOG "/hog"
#define MIB (1UL << 20)

#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_FACTOR 8
#else
#define MEMORY_FACTOR 1
#endif

/* time */

static inline long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

static inline bool in_vm(void)
{
	const char *v = getenv("CORDON_IN_VM");

	return v && strcmp(v, "1") == 0;
}

/* How late something may be; an emulated machine is slow. */
static inline long late_ms(long ms)
{
	return in_vm() ? ms * 10 : ms;
}

/* running */

/* Whether this machine lets this user limit memory, CPU and processes. */
static inline bool has_limits(void)
{
	static int known = -1;
	struct cordon_result *r;

	if (known < 0) {
		r = box_run_spec(box_spec(BOX_CMD, "true", NULL));
		known = !cordon_result_message(r) ||
			!strstr(cordon_result_message(r), "cannot limit");
		cordon_result_free(r);
	}
	return known;
}

static inline void need_limits(void)
{
	if (!has_limits())
		SKIP("no cgroup that this user may use");
}

static inline struct cordon_spec *hog_spec_va(const char *first, va_list ap)
{
	const char *build = getenv("CORDON_BUILD");
	struct cordon_spec *s = box_spec_va(first, ap);
	char text[4200];

	(void)snprintf(text, sizeof(text), "volume=%s/tests/hog:" HOG ":ro",
		       build ? build : "build");
	box_set(s, text);
	if (!has_limits())
		box_set(s, "best-effort=cgroup");
	return s;
}

static inline struct cordon_spec *hog_spec(const char *first, ...)
{
	struct cordon_spec *s;
	va_list ap;

	va_start(ap, first);
	s = hog_spec_va(first, ap);
	va_end(ap);
	return s;
}

static inline struct cordon_result *hog_run(const char *first, ...)
{
	struct cordon_spec *s;
	va_list ap;

	va_start(ap, first);
	s = hog_spec_va(first, ap);
	va_end(ap);
	return box_run_spec(s);
}

/* Steps the job until it ends or `ms` have passed; true when it ended. */
static inline bool job_wait(struct cordon_job *j, long ms)
{
	struct pollfd p = { .fd = cordon_job_fd(j), .events = POLLIN };
	long end = now_ms() + ms;

	while (!cordon_job_step(j)) {
		long left = end - now_ms();

		if (left <= 0)
			return false;
		(void)poll(&p, 1, (int)left);
	}
	return true;
}

static inline struct cordon_job *job_start(struct cordon_spec *s,
					   const struct cordon_events *events,
					   void *arg)
{
	struct cordon_error err = { 0 };
	struct cordon_job *j = cordon_start(box_open(), s, events, arg, &err);

	if (!j) {
		printf("# cannot start: %s\n", err.text);
		(void)fflush(NULL);
		_exit(1);
	}
	return j;
}

/* Output of a job as it comes, up to a size, as a string. */
struct said {
	char text[4096];
	size_t len;
};

static inline void said_more(void *arg, int stream, const void *data,
			     size_t len)
{
	struct said *s = arg;
	size_t room = sizeof(s->text) - 1 - s->len;

	(void)stream;
	len = len < room ? len : room;
	memcpy(s->text + s->len, data, len);
	s->len += len;
	s->text[s->len] = '\0';
}

static const struct cordon_events said_events = { .output = said_more };

/* Steps the job until it has said `word`, for at most ten seconds. */
static inline bool job_says(struct cordon_job *j, const struct said *s,
			    const char *word)
{
	long end = now_ms() + 10000;

	while (!strstr(s->text, word) && now_ms() < end)
		if (job_wait(j, 5))
			break;
	return strstr(s->text, word) != NULL;
}

/* the document */

/* The value after the first "key": at the top level, as text. */
static inline const char *doc_find(const char *json, const char *key)
{
	char quoted[80];
	const char *at;

	(void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(json, quoted);
	return at ? at + strlen(quoted) : NULL;
}

static inline double doc_num(const struct cordon_result *r, const char *key)
{
	char *json = cordon_result_json(r);
	const char *at = doc_find(json, key);
	double v = at ? strtod(at, NULL) : -1;

	free(json);
	return v;
}

static inline bool doc_has(const struct cordon_result *r, const char *text)
{
	char *json = cordon_result_json(r);
	bool has = strstr(json, text) != NULL;

	free(json);
	return has;
}

/* The number after a word that hog printed, -1 if it is not there. */
static inline long hog_said(const struct cordon_result *r, const char *name)
{
	const char *text = cordon_result_stdout(r, NULL);
	size_t len = strlen(name);

	for (const char *p = text; (p = strstr(p, name)); p += len)
		if ((p == text || p[-1] == '\n') && p[len] == ' ')
			return strtol(p + len, NULL, 10);
	return -1;
}

static inline bool is_cause(const struct cordon_result *r, const char *cause)
{
	if (strcmp(cordon_result_cause(r), cause) == 0)
		return true;
	box_show(r);
	return false;
}

#define CHECK_CAUSE(r, cause)                                                  \
	do {                                                                   \
		if (!is_cause(r, cause)) {                                     \
			printf("# %s:%d: cause is not '%s'\n", __FILE__,       \
			       __LINE__, cause);                               \
			tap_bad++;                                             \
		}                                                              \
	} while (0)

/* the host */

static inline long file_num(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	char line[512];
	long v = -1;

	while (f && v < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			v = strtol(line + strlen(key), NULL, 10);
	if (f)
		(void)fclose(f);
	return v;
}

static inline long file_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = 0;
	int c;

	while (f && (c = fgetc(f)) != EOF)
		n += c == '\n';
	if (f)
		(void)fclose(f);
	return n;
}

/* Open files of the whole machine. */
static inline long host_files(void)
{
	return file_num("/proc/sys/fs/file-nr", "");
}

/* The most memory this process ever had, in KiB. */
static inline long own_peak_kib(void)
{
	return file_num("/proc/self/status", "VmHWM:");
}

/* The first process whose `status` has that parent and that name. */
static inline pid_t find_child(pid_t parent, const char *name)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	while (d && !found && (e = readdir(d))) {
		char path[300];
		char line[300] = "";
		FILE *f;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/status",
			       e->d_name);
		if (file_num(path, "PPid:") != parent)
			continue;
		f = fopen(path, "re");
		if (f && fgets(line, sizeof(line), f) && strstr(line, name))
			found = (pid_t)strtol(e->d_name, NULL, 10);
		if (f)
			(void)fclose(f);
	}
	if (d)
		(void)closedir(d);
	return found;
}

/* Who waits for an exec goes on before the new program has its name. */
static inline pid_t keeper_pid(void)
{
	pid_t pid = 0;

	(void)box_open();
	for (int i = 0; i < 200 && pid == 0; i++) {
		pid = find_child(getpid(), "cordon-keeper");
		if (pid == 0)
			sleep_ms(10);
	}
	return pid;
}

static inline long keeper_pss_kib(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup",
		       (int)keeper_pid());
	return file_num(path, "Pss:");
}

/* Processes of the machine that have `mark` as one of their arguments. */
static inline long marked(const char *mark)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	long n = 0;

	while (d && (e = readdir(d))) {
		char text[8192];
		char path[300];
		ssize_t len;
		int fd;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline",
			       e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			(void)close(fd);
		if (len <= 0 || strtol(e->d_name, NULL, 10) == getpid())
			continue;
		text[len] = '\0';
		for (char *p = text; p < text + len; p += strlen(p) + 1)
			if (strcmp(p, mark) == 0) {
				n++;
				break;
			}
	}
	if (d)
		(void)closedir(d);
	return n;
}

/* An argument by which the processes of this test are known. */
static inline const char *mark(void)
{
	static char text[32];

	if (!text[0])
		(void)snprintf(text, sizeof(text), "mark-%d", (int)getpid());
	return text;
}

/* The groups of this test's keeper: where they are made and their names. */
struct groups {
	char prefix[64];
	char parents[4096];
};

/* From the record that the keeper holds open; false where it has none. */
static inline bool groups_find(struct groups *g)
{
	char dir[64];
	DIR *d;
	struct dirent *e;
	bool found = false;

	*g = (struct groups){ 0 };
	(void)snprintf(dir, sizeof(dir), "/proc/%d/fd", (int)keeper_pid());
	d = opendir(dir);
	while (d && !found && (e = readdir(d))) {
		char to[4096] = "";
		const char *id;
		int fd;

		if (readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1) < 0)
			continue;
		id = strstr(to, "/keepers/");
		if (!id)
			continue;
		(void)snprintf(g->prefix, sizeof(g->prefix), "cordon-%.40s-",
			       id + strlen("/keepers/"));
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC);
		found = fd >= 0 &&
			pread(fd, g->parents, sizeof(g->parents) - 1, 0) > 0;
		if (fd >= 0)
			(void)close(fd);
	}
	if (d)
		(void)closedir(d);
	return found;
}

/* How many there are now, in all hierarchies. */
static inline long groups_count(const struct groups *g)
{
	char copy[sizeof(g->parents)];
	char *save = NULL;
	long n = 0;

	memcpy(copy, g->parents, sizeof(copy));
	for (char *p = strtok_r(copy, "\n", &save); p;
	     p = strtok_r(NULL, "\n", &save)) {
		DIR *d = opendir(p);
		struct dirent *e;

		while (d && (e = readdir(d)))
			n += strncmp(e->d_name, g->prefix, strlen(g->prefix)) ==
			     0;
		if (d)
			(void)closedir(d);
	}
	return n;
}

/* Closes the handle and checks that nothing of it is left. */
static inline void check_nothing_left(void)
{
	struct cordon_spec *s = hog_spec(BOX_CMD, HOG, "sleep", "20000", NULL);
	struct cordon_job *j = job_start(s, NULL, NULL);
	struct groups g;
	bool known;

	/* With a box there are groups, or there would be nothing to see. */
	known = groups_find(&g);
	/* A keeper that is making a box hides its descriptors for a moment. */
	for (int i = 0; !known && has_limits() && i < 100; i++) {
		(void)job_wait(j, 20);
		known = groups_find(&g);
	}
	CHECK(known || !has_limits());
	for (int i = 0; known && i < 100 && groups_count(&g) == 0; i++)
		(void)job_wait(j, 20);
	if (known)
		CHECK(groups_count(&g) > 0);
	cordon_result_free(cordon_job_end(j));
	cordon_spec_free(s);
	cordon_close(box_handle);
	box_handle = NULL;
	if (known)
		CHECK_INT(groups_count(&g), 0);
	CHECK_INT(marked(mark()), 0);
	CHECK_INT(find_child(getpid(), "cordon-keeper"), 0);
}

/* a directory of the test's own */

static inline int remove_one(const char *path, const struct stat *st, int flag,
			     struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	(void)remove(path);
	return 0;
}

static inline const char *dir_new(void)
{
	static char path[256];
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(path, sizeof(path), "%s/cordon-test-XXXXXX",
		       tmp ? tmp : "/tmp");
	if (!mkdtemp(path)) {
		printf("# cannot make %s: %s\n", path, strerror(errno));
		(void)fflush(NULL);
		_exit(1);
	}
	return path;
}

static inline void dir_remove(const char *path)
{
	(void)nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}
