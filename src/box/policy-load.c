/* SPDX-License-Identifier: Apache-2.0 */
#include "box/policy-load.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cordon/cordon.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/state.h"
#include "base/util.h"
#include "box/handle.h"
#include "policy/preset.h"

#define MAX_FILE (1U << 20)
#define DESK     "cordon-desk"

/* which file */

/*
 * A file that was found rather than named: in a directory that somebody else
 * wrote it could give that person's permissions to our runs. Not even that it
 * is there is ignored, since it may have been meant to forbid.
 */
static int try_file(const char *path, char **ret, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		return err_errno(err, errno, "look for a policy: '%s'", path);
	}
	if ((st.st_uid != geteuid() && st.st_uid != 0) ||
	    (st.st_mode & S_IWOTH))
		return err_set(err, EPERM,
			       "the policy '%s' was found here, and belongs to "
			       "someone else or may be written by all; name it "
			       "with --policy if it is meant",
			       path);
	*ret = strdup(path);
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

int policy_find(const char *given, char **ret, struct err *err)
{
	const char *xdg = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	char path[4096] = "";
	int r;

	*ret = NULL;
	if (given) {
		*ret = strdup(given);
		return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
	}
	r = try_file("cordon.yaml", ret, err);
	if (xdg && *xdg)
		(void)snprintf(path, sizeof(path), "%s/cordon/cordon.yaml",
			       xdg);
	else if (home && *home)
		(void)snprintf(path, sizeof(path),
			       "%s/.config/cordon/cordon.yaml", home);
	if (r == 0 && !*ret && path[0])
		r = try_file(path, ret, err);
	if (r == 0 && !*ret)
		r = try_file("/etc/cordon/cordon.yaml", ret, err);
	return r;
}

/* hashes */

static void hex_of(const unsigned char hash[SHA256_SIZE], char ret[65])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < SHA256_SIZE; i++) {
		ret[2 * i] = digits[hash[i] >> 4];
		ret[2 * i + 1] = digits[hash[i] & 15];
	}
	ret[64] = '\0';
}

static void hash_bytes(const void *data, size_t len, char ret[65])
{
	unsigned char hash[SHA256_SIZE];
	struct sha256 st;

	sha256_init(&st);
	sha256_add(&st, data, len);
	sha256_end(&st, hash);
	hex_of(hash, ret);
}

static int read_all(int fd, struct buf *ret)
{
	char chunk[16384];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return ret->error;
	}
	return 0;
}

static int hash_file(const char *path, char ret[65])
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	struct buf text;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	buf_init(&text, MAX_FILE);
	r = read_all(fd, &text);
	if (r == 0)
		hash_bytes(text.data ? text.data : "", text.len, ret);
	buf_done(&text);
	return r;
}

/* Whether a source is still what it was when the policy was compiled. */
static bool is_current(const struct flat_source *s)
{
	char now[65] = "";

	if (strncmp(s->name, "preset:", 7) == 0) {
		const struct preset *p = preset_find(s->name + 7);

		if (!p)
			return false;
		hash_bytes(p->text, p->len, now);
	} else if (s->name[0] != '/' || hash_file(s->name, now) < 0) {
		return false;
	}
	return strcmp(now, s->sha256) == 0;
}

static bool are_current(const struct flat *f, const char *path)
{
	if (strcmp(f->version, cordon_version()) != 0 ||
	    strcmp(f->sources[0].name, path) != 0)
		return false;
	for (size_t i = 0; i < f->n_sources; i++)
		if (!is_current(&f->sources[i]))
			return false;
	return true;
}

/* the kept form */

static void cache_name(const char *path, char ret[72])
{
	hash_bytes(path, strlen(path), ret);
	(void)strcpy(ret + 64, ".flat");
}

/* NULL if there is none that can be used: then it is made anew. */
static struct policy *cache_get(int dir, const char *path)
{
	_cleanup_fd_ int fd = NO_FD;
	struct policy *p = NULL;
	struct err ignored = { 0 };
	struct stat st;
	struct buf text;
	char name[72];

	cache_name(path, name);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid() || (st.st_mode & 077))
		return NULL;
	buf_init(&text, FLAT_MAX);
	if (read_all(fd, &text) == 0 && text.len > 0)
		p = policy_parse(text.data, text.len, &ignored);
	buf_done(&text);
	if (p && !are_current(&p->flat, path)) {
		policy_free(p);
		p = NULL;
	}
	return p;
}

static void cache_put(int dir, const char *path, const struct buf *text)
{
	_cleanup_fd_ int fd = NO_FD;
	char name[72];
	char part[104];

	cache_name(path, name);
	(void)snprintf(part, sizeof(part), "%s.%d", name, (int)getpid());
	fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (io_write_all(fd, text->data, text->len) < 0 ||
	    renameat(dir, part, dir, name) < 0)
		(void)unlinkat(dir, part, 0);
}

/* compiling */

static int spawn_desk(const char *verb, const char *arg, const int fds[2],
		      pid_t *ret, struct err *err)
{
	char program[4096];
	const char *const argv[] = { DESK, "policy", verb, arg, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	sigset_t all;
	extern char **environ;
	int r;

	if (program_find(DESK, program, sizeof(program), err) < 0)
		return -err->code;
	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null",
					       O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, fds[0], 1);
	(void)posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &all);
	r = posix_spawn(ret, program, &actions, &attr, (char **)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attr);
	return r ? err_errno(err, r, "start '%s'", program) : 0;
}

/* Both pipes at once, so that neither can fill up and block the other. */
static int read_both(int out, int why, struct buf *text, struct buf *words)
{
	struct pollfd fds[] = { { .fd = out, .events = POLLIN },
				{ .fd = why, .events = POLLIN } };
	struct buf *to[] = { text, words };

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (poll(fds, 2, -1) < 0)
			continue;
		for (int i = 0; i < 2; i++) {
			char chunk[16384];
			ssize_t n;

			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			n = read(fds[i].fd, chunk, sizeof(chunk));
			if (n > 0)
				(void)buf_add(to[i], chunk, (size_t)n);
			else if (n == 0 || errno != EINTR)
				fds[i].fd = -1;
		}
	}
	return text->error;
}

/* The desk's own words, which begin with our name. */
static int desk_error(const struct buf *words, int status, struct err *err)
{
	const char *text = words->len > 0 ? words->data : "";

	if (strncmp(text, "cordon: ", 8) == 0)
		text += 8;
	if (!*text)
		return err_set(err, EIO,
			       "the policy could not be compiled: %s ended "
			       "with status %d",
			       DESK, status);
	return err_set(err, EINVAL, "%.*s", (int)strcspn(text, "\n"), text);
}

/* What the desk says to one verb and its argument. */
static int ask_desk(const char *verb, const char *arg, struct buf *ret,
		    struct err *err)
{
	_cleanup_fd_ int out_r = NO_FD;
	_cleanup_fd_ int why_r = NO_FD;
	struct buf words;
	int out[2];
	int why[2];
	int status = 0;
	pid_t pid = 0;
	int r;

	if (pipe2(out, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	out_r = out[0];
	if (pipe2(why, O_CLOEXEC) < 0) {
		(void)close(out[1]);
		return err_errno(err, errno, "make a pipe");
	}
	why_r = why[0];
	r = spawn_desk(verb, arg, (int[]){ out[1], why[1] }, &pid, err);
	(void)close(out[1]);
	(void)close(why[1]);
	if (r < 0)
		return r;
	buf_init(&words, 65536);
	r = read_both(out_r, why_r, ret, &words);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) {
			buf_done(&words);
			return err_set(err, ECHILD,
				       "how %s ended cannot be known: let this "
				       "process not ignore SIGCHLD nor wait "
				       "for children it did not start",
				       DESK);
		}
	if (r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		r = desk_error(&words, status, err);
	buf_done(&words);
	return r;
}

static int make(const char *path, int dir, struct policy **ret, struct err *err)
{
	struct policy *p = NULL;
	struct buf text;
	int r;

	buf_init(&text, FLAT_MAX);
	r = ask_desk("compile", path, &text, err);
	if (r == 0 && text.len > 0)
		p = policy_parse(text.data, text.len, err);
	if (r == 0 && !p)
		r = err->code ? -err->code
			      : err_set(err, EIO, "%s said nothing", DESK);
	if (p && !are_current(&p->flat, path)) {
		policy_free(p);
		p = NULL;
		r = err_set(err, EAGAIN,
			    "'%s' changed while it was read; try again", path);
	}
	if (p && dir >= 0)
		cache_put(dir, path, &text);
	buf_done(&text);
	*ret = p;
	return r;
}

/*
 * A preset's paths start where we are, so what is kept of it holds only here:
 * it is made anew each time.
 */
static int load_preset(const char *name, struct policy **ret, struct err *err)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "preset:%s", name) < 0) {
		path = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	return make(path, NO_FD, ret, err);
}

int policy_load(const char *file, struct policy **ret, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	struct err ignored = { 0 };
	_cleanup_fd_ int dir = NO_FD;
	char cache[4096];

	*ret = NULL;
	if (preset_find(file))
		return load_preset(file, ret, err);
	path = realpath(file, NULL);
	if (!path)
		return err_errno(err, errno, "policy '%s'", file);
	dir = state_open("policies", cache, sizeof(cache), &ignored);
	if (dir >= 0)
		*ret = cache_get(dir, path);
	return *ret ? 0 : make(path, dir, ret, err);
}

int policy_check_host(const char *host, struct err *err)
{
	struct buf nothing;
	int r;

	if (strncmp(host, "*.", 2) != 0)
		return 0;
	buf_init(&nothing, 4096);
	r = ask_desk("host", host, &nothing, err);
	buf_done(&nothing);
	return r;
}
