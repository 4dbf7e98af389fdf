/* SPDX-License-Identifier: Apache-2.0 */
#include "box/root-image.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "box/images.h"
#include "box/root-host.h"
#include "image/digest.h"

#define OWN WIRE_OWN_LAYER

/* Inodes of a layer for changes: as many as any other place has. */
#define INODES_PER_MIB 512

static void pack_upper(struct pack *p, struct wire_box *box,
		       const struct cordon_spec *s)
{
	struct wire_mount *m = pack_mount(p, box, WIRE_UPPER, 0, NULL, "/");

	m->size = s->disk;
	m->inodes = MAX(s->disk >> 20, 4) * INODES_PER_MIB;
	/*
	 * Copying a file up keeps its owner, whom the box must know. An
	 * ordinary user can show that to it only by being it.
	 */
	box->blob.flags |= WIRE_CALLER_UID;
}

void root_image_mounts(struct pack *p, struct wire_box *box,
		       const struct cordon_spec *s)
{
	const struct box_image *m = s->root;

	box->image = pack_string(p, image_digest_hex(m->id));
	for (size_t i = 0; i < m->layers.n; i++)
		(void)pack_mount(p, box, WIRE_LAYER, WIRE_MNT_RO,
				 m->layers.v[i], "/");
	if (s->writable_root)
		pack_upper(p, box, s);
	root_devices(p, box, s);
}

void root_image_places(struct pack *p, struct wire_box *box,
		       const struct cordon_spec *s)
{
	if (s->workdir && strcmp(s->workdir, "/") != 0)
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
	root_file(p, OWN "/etc/resolv.conf", "# no network\n");
	root_kernel_files(p, s);
}
