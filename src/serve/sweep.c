/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "base/util.h"
#include "box/guard-facts.h"
#include "os/uapi.h"

static void digest(const unsigned char *key, const void *data, size_t len,
		   unsigned char ret[SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, key, SWEEP_KEY);
	sha256_add(&s, data, len);
	sha256_end(&s, ret);
}

/* Twice, so that nobody can lengthen what was sealed. */
static void make_seal(const struct request_watch *w, const unsigned char *key,
		      int64_t peer, char ret[65])
{
	unsigned char sum[SHA256_SIZE];
	char text[PATH_MAX + 192];
	int n = snprintf(text, sizeof(text),
			 "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			 " %" PRIu64 " %" PRIu64 " %s",
			 peer, w->dev, w->ino, w->missing, w->since, w->clock,
			 w->source);

	digest(key, text, MIN((size_t)n, sizeof(text) - 1), sum);
	digest(key, sum, sizeof(sum), sum);
	hex_format(sum, sizeof(sum), ret);
}

static bool is_sealed(const struct request_watch *w, const unsigned char *key,
		      int64_t peer)
{
	char seal[65];
	unsigned int differs = 0;

	make_seal(w, key, peer, seal);
	for (size_t i = 0; i < sizeof(seal); i++)
		differs |= (unsigned int)(seal[i] ^ w->seal[i]);
	return !differs;
}

/* As text: a number of JSON need not hold 64 bits. */
static void put_bits(struct json *j, const char *name, uint64_t bits)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, bits);
	json_str(j, name, text);
}

static void put_one(struct json *j, const struct guard_watch *g,
		    const unsigned char *key, int64_t peer)
{
	char path[PATH_MAX];
	struct request_watch w = { .source = path,
				   .missing = g->missing,
				   .since = g->since,
				   .clock = g->clock };
	struct stat st;

	/* What has no name is told as not looked for when the box is dead. */
	if (fd_path(g->dir, path, sizeof(path)) < 0)
		(void)snprintf(path, sizeof(path), "%s", g->source);
	if (fstat(g->dir, &st) == 0) {
		w.dev = st.st_dev;
		w.ino = st.st_ino;
	}
	make_seal(&w, key, peer, w.seal);
	json_open(j, NULL, '{');
	json_str(j, "source", path);
	put_bits(j, "dev", w.dev);
	put_bits(j, "ino", w.ino);
	put_bits(j, "missing", w.missing);
	put_bits(j, "since", w.since);
	put_bits(j, "clock", w.clock);
	json_str(j, "seal", w.seal);
	json_close(j, '}');
}

/* Opaque to the front, which gives it back as it is. */
static void put_who(struct json *j, const struct sweep_who *who)
{
	const unsigned char *bytes = (const unsigned char *)who;
	char text[2 * sizeof(*who) + 1];

	for (size_t i = 0; i < sizeof(*who); i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	json_str(j, "who", text);
}

void sweep_put(struct json *j, const struct guard *g, const struct sweep_by *by)
{
	json_open(j, "watches", '[');
	for (size_t i = 0; i < g->n_watches; i++)
		put_one(j, &g->watches[i], by->key, by->peer);
	json_close(j, ']');
	if (g->n_watches > 0 && by->who)
		put_who(j, by->who);
}

/* Never the same as the seal of a watch, which begins with a number. */
static void seal_of(const struct sweep_who *who, const unsigned char *key,
		    unsigned char ret[SHA256_SIZE])
{
	char text[4 + offsetof(struct sweep_who, seal)] = "who ";

	memcpy(text + 4, who, offsetof(struct sweep_who, seal));
	digest(key, text, sizeof(text), ret);
	digest(key, ret, SHA256_SIZE, ret);
}

void sweep_who_seal(struct sweep_who *who, const unsigned char *key)
{
	seal_of(who, key, who->seal);
}

bool sweep_who_check(const struct sweep_who *who, const unsigned char *key)
{
	unsigned char seal[SHA256_SIZE];
	unsigned int differs = 0;

	seal_of(who, key, seal);
	for (size_t i = 0; i < sizeof(seal); i++)
		differs |= (unsigned int)(seal[i] ^ who->seal[i]);
	return !differs && who->n_groups <= SWEEP_GROUPS;
}

int sweep_who_read(int fd, const unsigned char *key, struct sweep_who *ret,
		   struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size != sizeof(*ret) ||
	    pread(fd, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret) ||
	    !sweep_who_check(ret, key))
		return err_set(err, EPERM,
			       "who had the box is not under this daemon's "
			       "seal");
	return 0;
}

#define KEY_NAME "sweep.key"

static int make_key(int state_fd, unsigned char *ret, struct err *err)
{
	static const char tmp[] = KEY_NAME ".tmp";
	_cleanup_fd_ int fd = NO_FD;

	(void)unlinkat(state_fd, tmp, 0);
	fd = openat(state_fd, tmp,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || getrandom(ret, SWEEP_KEY, 0) != SWEEP_KEY ||
	    write(fd, ret, SWEEP_KEY) != SWEEP_KEY || fsync(fd) < 0 ||
	    renameat(state_fd, tmp, state_fd, KEY_NAME) < 0)
		return err_errno(err, errno, "make '" KEY_NAME "'");
	return 0;
}

int sweep_key_load(int state_fd, unsigned char *ret, struct err *err)
{
	_cleanup_fd_ int fd = openat(state_fd, KEY_NAME,
				     O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	/* One that others could have read or made is none. */
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && (st.st_mode & 077) == 0 &&
	    read(fd, ret, SWEEP_KEY) == SWEEP_KEY)
		return 0;
	return make_key(state_fd, ret, err);
}

static int open_again(const struct request_watch *w, const unsigned char *key,
		      int64_t peer, struct err *err)
{
	const struct uapi_open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_NO_SYMLINKS |
			   UAPI_RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_fd_ int fd = NO_FD;
	struct stat st;

	if (!is_sealed(w, key, peer))
		return err_set(err, EPERM, "it was not mounted by this daemon");
	fd = sys_openat2(AT_FDCWD, w->source, &how);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if (st.st_dev != w->dev || st.st_ino != w->ino)
		return err_set(err, ESTALE, "another directory is there now");
	return take_fd(&fd);
}

void sweep_all(const struct request *r, const unsigned char *key, int64_t peer,
	       struct strv *ret)
{
	for (size_t i = 0; i < r->n_watches; i++) {
		const struct request_watch *w = &r->watches[i];
		struct err err = { 0 };
		_cleanup_fd_ int dir = open_again(w, key, peer, &err);
		char line[800];

		if (dir >= 0) {
			const struct guard_watch g = { .dir = dir,
						       .source = w->source,
						       .missing = w->missing,
						       .since = w->since,
						       .clock = w->clock,
						       .is_late = r->is_late };

			guard_sweep_dir(&g, ret);
			continue;
		}
		(void)snprintf(line, sizeof(line),
			       "violation: protected names in '%.300s' could "
			       "not be looked for: %.300s",
			       w->source, err.text);
		(void)strv_add(ret, line);
	}
}
