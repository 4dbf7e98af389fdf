/* SPDX-License-Identifier: Apache-2.0 */
#include "box/root-image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "box/images.h"
#include "box/root-host.h"
#include "box/root-trust.h"
#include "box/workdir.h"
#include "image/digest.h"

#define OWN WIRE_OWN_LAYER

/* Inodes of a layer for changes: as many as any other place has. */
#define INODES_PER_MIB 512

void root_upper(struct pack *p, struct wire_box *box,
		const struct cordon_spec *s)
{
	struct wire_mount *m = pack_mount(p, box, WIRE_UPPER, 0, NULL, "/");

	m->size = s->disk;
	m->inodes = MAX(s->disk >> 20, 4) * INODES_PER_MIB;
}

static void pack_upper(struct pack *p, struct wire_box *box,
		       const struct cordon_spec *s)
{
	root_upper(p, box, s);
	/*
	 * Copying a file up keeps its owner, whom the box must know. An
	 * ordinary user can show that to it only by being it. For volumes,
	 * which an image can ask for, that would be too high a price.
	 */
	if (s->writable_root)
		box->blob.flags |= WIRE_CALLER_UID;
}

static bool has_volume(const struct cordon_spec *s)
{
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (s->tmpfs[i].is_volume)
			return true;
	return false;
}

static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return strncmp(path, top, len) == 0 &&
	       (path[len] == '/' || path[len] == '\0');
}

/* What is mapped as code must not lie where the box can write. */
static int pack_code(struct pack *p, struct wire_box *box,
		     const struct cordon_spec *s, const char *path, int flags,
		     struct err *err)
{
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (s->tmpfs[i].is_volume && is_below(path, s->tmpfs[i].target))
			return err_set(err, EINVAL,
				       "'%s' cannot be writable: '%s' of the "
				       "list of commands is there",
				       s->tmpfs[i].target, path);
	(void)pack_mount(p, box, WIRE_CODE, WIRE_MNT_RO | flags, NULL, path);
	return 0;
}

static int pack_programs(struct pack *p, struct wire_box *box,
			 const struct cordon_spec *s,
			 const struct programs *only, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < only->files.n; i++)
		r = pack_code(p, box, s, only->files.v[i],
			      WIRE_MNT_FILE | WIRE_MNT_PROGRAM, err);
	for (size_t i = 0; r == 0 && i < only->code.n; i++) {
		struct image_real real;
		bool is_dir = box_image_real(s->root, only->code.v[i], false,
					     &real) == 0 &&
			      S_ISDIR(real.mode);

		r = pack_code(p, box, s, only->code.v[i],
			      is_dir ? 0 : WIRE_MNT_FILE, err);
	}
	return r;
}

int root_image_mounts(struct pack *p, struct wire_box *box,
		      const struct cordon_spec *s, const struct programs *only,
		      struct err *err)
{
	const struct box_image *m = s->root;

	box->image = pack_string(p, image_digest_hex(m->id));
	for (size_t i = 0; i < m->layers.n; i++)
		(void)pack_mount(p, box, WIRE_LAYER, WIRE_MNT_RO,
				 m->layers.v[i], "/");
	if (s->writable_root || has_volume(s))
		pack_upper(p, box, s);
	root_devices(p, box, s);
	return only ? pack_programs(p, box, s, only, err) : 0;
}

void root_places(struct pack *p, struct wire_box *box,
		 const struct cordon_spec *s)
{
	if (s->workdir && strcmp(s->workdir, "/") != 0 && workdir_is_in_root(s))
		(void)pack_mount(p, box, WIRE_PLACE, 0, NULL, s->workdir);
}

void root_image_files(struct pack *p, const struct cordon_spec *s)
{
	/* Real directories, whatever the image has there. */
	static const char *const dirs[] = {
		OWN,        OWN "/dev", OWN "/proc",      OWN "/sys",
		OWN "/tmp", OWN "/etc", OWN "/workspace",
	};
	char text[80];

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		root_dir(p, dirs[i]);
	root_hosts(p, s, OWN "/etc/hosts");
	(void)snprintf(text, sizeof(text), "%s\n", root_hostname(s));
	root_file(p, OWN "/etc/hostname", text);
	root_resolver(p, s, OWN "/etc/resolv.conf");
	if (root_has_trust(s))
		root_trust_image(p, s);
	root_kernel_files(p, s);
}
