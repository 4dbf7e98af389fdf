/* SPDX-License-Identifier: Apache-2.0 */

/* Files of an image in its layers: what hides what, and where links lead. */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/images.h"

static char top[64];
static struct box_image image;

static void layer(const char *name, const char *commands)
{
	char text[2048];
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	(void)snprintf(text, sizeof(text), "mkdir %s && cd %s && { %s; }", path,
		       path, commands);
	CHECK_INT(system(text), 0); /* NOLINT(cert-env33-c) */
	image.layer_fds[image.n_layer_fds++] = open(path, O_RDONLY |
								  O_DIRECTORY |
								  O_CLOEXEC);
}

static void begin(void)
{
	memset(&image, 0, sizeof(image));
	(void)snprintf(top, sizeof(top), "/tmp/cordon-look-XXXXXX");
	CHECK(mkdtemp(top));
	layer("0", "mkdir -p usr/bin usr/lib etc old/dir link-below && "
		   "ln -s usr/bin bin && ln -s ../../bin/prog usr/lib/p && "
		   "echo 0 >usr/bin/prog && echo 0 >etc/a && echo 0 >old/x && "
		   "ln -s /etc absolute && ln -s ../../../../etc climbs && "
		   "ln -s loop2 loop1 && ln -s loop1 loop2 && "
		   "ln -s usr under && ln -s none/c etc/missing");
	layer("1", "mkdir -p etc under && echo 1 >etc/a && "
		   "mknod old c 0 0 2>/dev/null || mkfifo old");
}

static void end(void)
{
	char text[128];

	for (size_t i = 0; i < image.n_layer_fds; i++)
		(void)close(image.layer_fds[i]);
	(void)snprintf(text, sizeof(text), "rm -rf %s", top);
	CHECK_INT(system(text), 0); /* NOLINT(cert-env33-c) */
}

/* Where it leads, or the error as a number. */
static const char *real_of(const char *path, bool may_miss)
{
	static struct image_real r;
	static char text[16];
	int e = box_image_real(&image, path, may_miss, &r);

	if (e == 0)
		return r.path;
	(void)snprintf(text, sizeof(text), "%d", e);
	return text;
}

static const char *error(int code)
{
	static char text[16];

	(void)snprintf(text, sizeof(text), "%d", -code);
	return text;
}

TEST(links_are_followed_inside_the_image)
{
	begin();
	CHECK_STR(real_of("/bin/prog", false), "/usr/bin/prog");
	CHECK_STR(real_of("//bin/./../bin//prog", false), "/usr/bin/prog");
	CHECK_STR(real_of("/usr/lib/p", false), "/usr/bin/prog");
	CHECK_STR(real_of("/absolute/a", false), "/etc/a");
	CHECK_STR(real_of("/climbs/a", false), "/etc/a");
	CHECK_STR(real_of("/../../etc", false), "/etc");
	CHECK_STR(real_of("/", false), "/");
	CHECK_STR(real_of("/loop1", false), error(ELOOP));
	CHECK_STR(real_of("/etc/a/b", false), error(ENOTDIR));
	CHECK_STR(real_of("/no", false), error(ENOENT));
	end();
}

TEST(the_end_may_be_missing)
{
	begin();
	CHECK_STR(real_of("/no/such", true), "/no/such");
	CHECK_STR(real_of("/bin/no", true), "/usr/bin/no");
	CHECK_STR(real_of("/etc/missing/d", true), "/etc/none/c/d");
	CHECK_STR(real_of("/no/../x", true), error(ENOENT));
	end();
}

/* A file is in the way of that path: it is one, or would be. */
TEST(a_file_on_the_way_is_no_directory)
{
	begin();
	CHECK_STR(real_of("/etc/a/b/c", true), error(ENOTDIR));
	end();
}

TEST(upper_layers_hide_lower_ones)
{
	char text[16];

	begin();
	CHECK_INT(box_image_read(&image, "/etc/a", text, sizeof(text)), 2);
	CHECK_STR(text, "1\n");
	/* Removed; a directory over a link; what is only below. */
	CHECK_STR(real_of("/old/x", false),
		  getuid() == 0 ? error(ENOENT) : error(ENOENT));
	CHECK_STR(real_of("/under/bin", false), error(ENOENT));
	CHECK_STR(real_of("/link-below", false), "/link-below");
	CHECK_INT(box_image_open(&image, "/bin/prog"), -ELOOP);
	end();
}

TAP_MAIN()
