/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The root `host`: this machine's /usr, read-only, with just enough around it
 * for programs to start. Everything else is Cordon's own. Where the root can
 * be written, all of it is below a layer for the changes, as an image is.
 */

#include "base/err.h"
#include "box/pack.h"
#include "box/programs.h"
#include "box/spec.h"

#define ROOT_PATH                                                              \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:"        \
	"/usr/local/go/bin:/opt/cordon/bin"
#define ROOT_WORKDIR "/workspace" /* where programs start there */

/*
 * Mounts, then (after pack_records_begin) the files. With `only` nothing else
 * of /usr is executable, and its directories of programs hold just those.
 */
void root_host_mounts(struct pack *p, struct wire_box *box,
		      const struct cordon_spec *s, const struct programs *only);
void root_host_files(struct pack *p, const struct cordon_spec *s,
		     const struct programs *only);

/*
 * What every root has: devices, then the files of /dev, /proc and /sys; and
 * the text of /etc/hosts.
 */
void root_devices(struct pack *p, struct wire_box *box,
		  const struct cordon_spec *s);
void root_kernel_files(struct pack *p, const struct cordon_spec *s);
void root_resolver(struct pack *p, const struct cordon_spec *s,
		   const char *path);
void root_hosts(struct pack *p, const struct cordon_spec *s, const char *path);

/*
 * What the host says of its processors, read now and used from then on by this
 * process and its children: the kernel takes its time to write it.
 */
void root_keep_cpus(void);

/* Single records. */
void root_dir(struct pack *p, const char *path);
void root_file(struct pack *p, const char *path, const char *text);

/* The name that the box has for itself. */
const char *root_hostname(const struct cordon_spec *s);

/* Whether the root has a program of that name along ROOT_PATH. */
int root_host_has(const char *program);
