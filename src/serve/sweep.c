/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
	char text[PATH_MAX + 128];
	int n = snprintf(text, sizeof(text),
			 "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s",
			 peer, w->dev, w->ino, w->missing, w->source);

	digest(key, text, MIN((size_t)n, sizeof(text) - 1), sum);
	digest(key, sum, sizeof(sum), sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", sum[i]);
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
	struct request_watch w = { .source = path, .missing = g->missing };
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
	json_str(j, "seal", w.seal);
	json_close(j, '}');
}

void sweep_put(struct json *j, const struct guard *g, const unsigned char *key,
	       int64_t peer)
{
	json_open(j, "watches", '[');
	for (size_t i = 0; i < g->n_watches; i++)
		put_one(j, &g->watches[i], key, peer);
	json_close(j, ']');
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
		return err_set(err, EPERM,
			       "it was not mounted by this daemon since it "
			       "was started");
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
			guard_sweep_dir(dir, w->source, w->missing, ret);
			continue;
		}
		(void)snprintf(line, sizeof(line),
			       "violation: protected names in '%.300s' could "
			       "not be looked for: %.300s",
			       w->source, err.text);
		(void)strv_add(ret, line);
	}
}
