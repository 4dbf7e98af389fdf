/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What no policy and no flag gives, as data. decide.c applies it to every
 * request; `cordon policy show --never` prints it.
 */

#include <stdbool.h>
#include <stddef.h>

struct never_path {
	const char *path;
	bool is_deep;  /* also everything below it */
	bool may_name; /* unless mount_roots names a directory in it */
	const char *why;
};

/* Ended by a NULL path. */
extern const struct never_path never_paths[];

/*
 * Names that hold credentials, relative to the directory that has them. A
 * directory with one of them is not mounted, nor anything in them. Ended by
 * NULL.
 */
extern const char *const never_credentials[];

/*
 * In a directory that is mounted writable, these names are read-only, and
 * must not be made where they are not (CVE-2026-25725): tools of the host
 * run or obey them later. Ended by NULL.
 */
extern const char *const never_made[];

/* Addresses that no rule opens: the metadata services. Ended by NULL. */
extern const char *const never_addresses[];

/* The same by their names, as DNS has them. Ended by NULL. */
extern const char *const never_hosts[];

/*
 * Whether an address is one of them, also where it is wrapped in another:
 * mapped, compatible, NAT64 of any prefix, 6to4, Teredo, ISATAP. IPv4 is
 * ::ffff:a.b.c.d.
 */
bool never_reached(const unsigned char address[16]);
bool never_resolved(const char *name);

/* The rest of the list, in words. Ended by NULL. */
extern const char *const never_words[];

/* The credential that a path lies in, as a name of the list, or NULL. */
const char *never_credential_in(const char *path);

/* The protected name that a path ends with or lies in, or NULL. */
const char *never_made_at(const char *path);

/* The same for each part of a path that begins at a directory of the host. */
const char *never_made_in(const char *relative);
