/* SPDX-License-Identifier: Apache-2.0 */
#include "box/root-trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/util.h"
#include "box/images.h"
#include "box/root-host.h"
#include "policy/values.h"

#define CERTS      "/etc/ssl/certs"
#define BUNDLE     CERTS "/ca-certificates.crt"
#define OWN_FILE   CERTS "/cordon-gate.pem"
#define MAX_BUNDLE (4U << 20)

/* Where systems keep theirs: Debian and Alpine, Red Hat, SUSE, BSD's way. */
static const char *const bundles[] = {
	BUNDLE,
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
};

bool root_has_trust(const struct cordon_spec *s)
{
	return s->egress && s->egress->ca;
}

static void put_text(struct pack *p, const char *top, const char *path,
		     const char *text)
{
	char full[sizeof(WIRE_OWN_LAYER) + 4096];

	(void)snprintf(full, sizeof(full), "%s%s", top, path);
	root_file(p, full, text);
}

/* What was trusted before (NULL: nothing), and the gate. */
static void put_bundle(struct pack *p, const char *top, const char *path,
		       const char *before, const char *ca)
{
	struct buf text;

	buf_init(&text, MAX_BUNDLE);
	if (before) {
		buf_puts(&text, before);
		buf_puts(&text, "\n");
	}
	buf_puts(&text, ca);
	if (text.error)
		(void)err_set(&p->err, E2BIG, "'%s' is too long", path);
	else
		put_text(p, top, path, text.data);
	buf_done(&text);
}

static void put_own(struct pack *p, const char *top,
		    const struct spec_egress *e)
{
	char path[64];

	put_text(p, top, OWN_FILE, e->ca);
	(void)snprintf(path, sizeof(path), CERTS "/%08x.0", e->ca_hash);
	put_text(p, top, path, e->ca);
}

/* Links of the machine's directory lead into /usr, which the box has. */
static void put_links(struct pack *p)
{
	DIR *dir = opendir(CERTS);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char path[sizeof(CERTS) + NAME_MAX + 2];
		char to[PATH_MAX];
		struct wire_record rec = { .kind = WIRE_LINK };
		ssize_t n = readlinkat(dirfd(dir), d->d_name, to,
				       sizeof(to) - 1);

		if (n <= 0)
			continue;
		to[n] = '\0';
		rec.data_len = (uint64_t)n;
		(void)snprintf(path, sizeof(path), CERTS "/%s", d->d_name);
		if (strcmp(path, BUNDLE) != 0)
			pack_record(p, &rec, path, to);
	}
	if (dir)
		(void)closedir(dir);
}

void root_trust_host(struct pack *p, const struct cordon_spec *s)
{
	_cleanup_free_ char *text = malloc(MAX_BUNDLE);
	ssize_t n = text ? io_read_file(AT_FDCWD, BUNDLE, text, MAX_BUNDLE)
			 : -ENOMEM;

	root_dir(p, "/etc/ssl");
	root_dir(p, CERTS);
	put_links(p);
	put_bundle(p, "", BUNDLE, n > 0 ? text : NULL, s->egress->ca);
	put_own(p, "", s->egress);
}

/* Directories above a path, as real ones. */
static void put_dirs(struct pack *p, const char *path)
{
	char full[sizeof(WIRE_OWN_LAYER) + 4096];

	for (const char *q = strchr(path + 1, '/'); q; q = strchr(q + 1, '/')) {
		(void)snprintf(full, sizeof(full), WIRE_OWN_LAYER "%.*s",
			       (int)(q - path), path);
		root_dir(p, full);
	}
}

/* A bundle that the image has, at its real path; one that is not there: 0. */
static long read_bundle(const struct cordon_spec *s, const char *path,
			struct image_real *real, char *text)
{
	if (box_image_real(s->root, path, false, real) < 0 ||
	    !S_ISREG(real->mode))
		return 0;
	return box_image_read(s->root, real->path, text, MAX_BUNDLE);
}

static const char *first_bundle(const struct cordon_spec *s)
{
	struct image_real real;

	for (size_t i = 0; s->root && i < ARRAY_SIZE(bundles); i++)
		if (box_image_real(s->root, bundles[i], false, &real) == 0 &&
		    S_ISREG(real.mode))
			return bundles[i];
	return BUNDLE;
}

void root_trust_image(struct pack *p, const struct cordon_spec *s)
{
	_cleanup_free_ char *text = malloc(MAX_BUNDLE);
	char done[ARRAY_SIZE(bundles)][256];
	size_t n_done = 0;

	if (!text) {
		(void)err_set(&p->err, ENOMEM, "out of memory");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(bundles); i++) {
		struct image_real real;
		long n = read_bundle(s, bundles[i], &real, text);
		bool is_again = n <= 0 || strlen(real.path) >= sizeof(done[0]);

		for (size_t k = 0; !is_again && k < n_done; k++)
			is_again = strcmp(done[k], real.path) == 0;
		if (is_again)
			continue;
		(void)strcpy(done[n_done++], real.path);
		put_dirs(p, real.path);
		put_bundle(p, WIRE_OWN_LAYER, real.path, text, s->egress->ca);
	}
	put_dirs(p, BUNDLE);
	if (n_done == 0)
		put_bundle(p, WIRE_OWN_LAYER, BUNDLE, NULL, s->egress->ca);
	put_own(p, WIRE_OWN_LAYER, s->egress);
}

int root_trust_env(const struct cordon_spec *s, struct strv *ret)
{
	static const struct {
		const char *name;
		bool is_more; /* than what the program trusts by itself */
	} variables[] = {
#define TRUST_NAME(name_, is_more_) { name_, is_more_ },
		VALUE_TRUST_NAMES(TRUST_NAME)
#undef TRUST_NAME
	};
	const char *bundle = first_bundle(s);
	char text[512];
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(variables); i++) {
		(void)snprintf(text, sizeof(text), "%s=%s", variables[i].name,
			       variables[i].is_more ? OWN_FILE : bundle);
		r = strv_add(ret, text);
	}
	return r;
}
