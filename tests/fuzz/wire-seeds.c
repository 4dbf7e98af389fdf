/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the corpus of the wire target: blobs as this build packs them.
 *
 *	wire-seeds tests/fuzz/corpus/wire
 *
 * Run it when the layout in wire.h has changed: the replay fails as soon as
 * no seed of one kind passes the reader's check.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cordon/cordon.h>

#include "base/io.h"
#include "base/util.h"
#include "box/images.h"
#include "box/prepare.h"
#include "box/spec.h"

#define MOST (1 << 20)

/* Settings of one seed, NAME=VALUE, ended by NULL; then code or a program. */
static const struct {
	const char *name;
	const char *settings[8];
	const char *lang;
	const char *text;
} seeds[] = {
	{ "plain", { NULL }, NULL, NULL },
	{ "code",
	  { "env=A=1", "name=box", "tmpfs=/x:size=1m",
	    "continue-on-error=true" },
	  "sh",
	  "echo hi" },
	{ "binds",
	  { "volume=/usr/share:/a", "volume=/usr/lib:/b:ro", "read-only=false",
	    "workdir=/tmp", "user=1000:1000", "best-effort=cgroup" },
	  NULL,
	  NULL },
	{ "programs", { "program=true", "program=echo" }, NULL, NULL },
	{ "limits",
	  { "ulimit=nofile=64", "cpuset-cpus=0-3", "add-host=a:1.2.3.4",
	    "hostname=h", "domainname=d", "tmpfs=/t:mode=1777,ro" },
	  NULL,
	  NULL },
	{ "image",
	  { "image=thing", "read-only=false", "workdir=/a/b",
	    "volume=/usr/share:/c" },
	  NULL,
	  NULL },
	{ "compiled", { "timeout=1s", "cpu-time=1s" }, "c", "int main;" },
};

/* An image that is nowhere: only its digests travel. */
static struct box_image thing = {
	.id = "sha256:0123456789abcdef0123456789abcdef"
	      "0123456789abcdef0123456789abcdef",
	.hold = NO_FD,
};

static int fill(struct cordon_spec *s, size_t i)
{
	static const char *const argv[] = { "true", "--flag", "", NULL };

	for (size_t k = 0; seeds[i].settings[k]; k++) {
		char name[64];
		const char *eq = strchr(seeds[i].settings[k], '=');

		(void)snprintf(name, sizeof(name), "%.*s",
			       (int)(eq - seeds[i].settings[k]),
			       seeds[i].settings[k]);
		if (cordon_spec_set(s, name, eq + 1, NULL) < 0)
			return -1;
	}
	if (s->image) {
		if (thing.layers.n == 0 &&
		    strv_add(&thing.layers, thing.id + 7) < 0)
			return -1;
		s->root = &thing;
	}
	/* Of two blocks the second one's file goes with its step. */
	if (seeds[i].lang &&
	    cordon_spec_code(s, seeds[i].lang, "", 0, "first", NULL) < 0)
		return -1;
	if (seeds[i].lang)
		return cordon_spec_code(s, seeds[i].lang, seeds[i].text,
					strlen(seeds[i].text), "dir/file",
					NULL);
	return cordon_spec_command(s, argv, NULL);
}

/* The selector that wire.c reads, then the blob. */
static int put(const char *dir, const char *kind, const char *name, int fd)
{
	static char data[MOST];
	char head[8] = { strcmp(kind, "box") == 0 };
	char path[4096];
	struct stat st;
	FILE *f;
	int r = -1;

	(void)snprintf(path, sizeof(path), "%s/%s-%s", dir, kind, name);
	f = fopen(path, "we");
	if (!f)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_size <= MOST &&
	    lseek(fd, 0, SEEK_SET) == 0 &&
	    io_read_full(fd, data, (size_t)st.st_size) == st.st_size &&
	    fwrite(head, sizeof(head), 1, f) == 1 &&
	    fwrite(data, (size_t)st.st_size, 1, f) == 1)
		r = 0;
	return fclose(f) == 0 ? r : -1;
}

int main(int argc, char **argv)
{
	int failed = argc != 2;

	for (size_t i = 0; !failed && i < ARRAY_SIZE(seeds); i++) {
		struct cordon_spec *s = cordon_spec_new();
		struct prepared p = { 0 };
		struct err err = { 0 };

		if (!s || fill(s, i) < 0 || prepare(s, &p, &err) < 0 ||
		    put(argv[1], "box", seeds[i].name, p.box) < 0 ||
		    put(argv[1], "work", seeds[i].name, p.work) < 0) {
			(void)fprintf(stderr, "%s: %s\n", seeds[i].name,
				      err.text);
			failed = 1;
		} else {
			prepared_done(&p);
		}
		cordon_spec_free(s);
	}
	return failed;
}
