/* SPDX-License-Identifier: Apache-2.0 */

/* The store through its interface, as the daemon uses it. */

#include "tests/tap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/util.h"
#include "image/image.h"
#include "image/tree.h"

static struct image_store *s;
static char dir[] = "/tmp/cordon-unit-XXXXXX";

static void open_store(void)
{
	struct err err = { 0 };

	CHECK(mkdtemp(dir));
	(void)setenv("CORDON_STATE_DIR", dir, 1);
	CHECK_INT(image_store_open(&s, &err), 0);
}

static void close_store(void)
{
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	image_store_close(s);
	CHECK_INT(image_tree_remove(tmp, dir + strlen("/tmp/")), 0);
	(void)close(tmp);
}

/* A tar of one empty file. */
static int make_tar(const char *name)
{
	char blocks[3 * 512] = { 0 };
	unsigned int sum = 0;
	int fd = memfd_create("tar", MFD_CLOEXEC);

	(void)snprintf(blocks, 100, "%s", name);
	(void)strcpy(blocks + 100, "0000644");
	(void)strcpy(blocks + 124, "00000000000");
	(void)strcpy(blocks + 136, "00000000000");
	memset(blocks + 148, ' ', 8);
	blocks[156] = '0';
	(void)strcpy(blocks + 257, "ustar");
	for (int i = 0; i < 512; i++)
		sum += (unsigned char)blocks[i];
	(void)snprintf(blocks + 148, 8, "%06o", sum);
	CHECK(write(fd, blocks, sizeof(blocks)) == sizeof(blocks));
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static struct image *import_from(int fd, const char *name)
{
	char change[] = "ENV A=b";
	char *changes[] = { change };
	struct image_take take = {
		.fd = fd, .name = name, .changes = changes, .n_changes = 1
	};
	struct image *m = NULL;
	struct err err = { 0 };

	image_limits_default(&take.limits);
	CHECK_INT(image_import(s, &take, &m, &err), 0);
	(void)close(fd);
	return m;
}

static struct image *import(const char *file, const char *name)
{
	return import_from(make_tar(file), name);
}

static int remove_image(const char *text, bool force)
{
	struct image_removed gone;
	struct err err = { 0 };
	int r = image_remove(s, text, force, &gone, &err);

	image_removed_done(&gone);
	CHECK(r == 0 || err.text[0]);
	return r;
}

TEST(found_and_read)
{
	struct image_config c;
	struct image *m;
	struct image *found = NULL;
	struct err err = { 0 };
	char path[4096];
	struct stat st;
	int fd;

	open_store();
	CHECK_INT(image_find(s, "x", &found, &err), -IMAGE_NOT_FOUND);
	CHECK_INT(image_find(s, "X Y", &found, &err), -IMAGE_BAD_NAME);
	err = (struct err){ 0 };
	m = import("hello", "x");
	CHECK_INT(image_find(s, "docker.io/library/x", &found, &err), 0);
	CHECK_STR(found->id, m->id);
	CHECK_INT((long)found->n_layers, 1);
	CHECK_INT((long)image_size(found), 0);
	CHECK_INT(image_config_load(s, found, &c, &err), 0);
	CHECK_STR(c.env.v[0], "A=b");
	CHECK_STR(c.diff_ids.v[0], found->layers[0].diff_id);
	image_config_done(&c);
	fd = image_layer_open(s, found, 0, &err);
	CHECK(fd >= 0 && fstatat(fd, "hello", &st, 0) == 0);
	(void)close(fd);
	CHECK_INT(image_layer_path(s, found, 0, path, sizeof(path), &err), 0);
	CHECK(strncmp(path, dir, strlen(dir)) == 0 && access(path, X_OK) == 0);
	image_free(found);
	image_free(m);
	close_store();
}

TEST(held_images_stay)
{
	struct image_removed gone;
	struct err err = { 0 };
	struct image *m;
	int hold;
	int copy;

	open_store();
	m = import("a", "x:1");
	hold = image_hold(s, m, &err);
	CHECK(hold >= 0);
	copy = fcntl(hold, F_DUPFD_CLOEXEC, 3);
	CHECK_INT(remove_image("x:1", true), -IMAGE_IN_USE);
	(void)close(hold);
	/* A copy holds it too. */
	CHECK_INT(remove_image("x:1", true), -IMAGE_IN_USE);
	CHECK_INT(image_prune(s, true, &gone, &err), 0);
	CHECK_INT((long)gone.deleted.n, 0);
	image_removed_done(&gone);
	(void)close(copy);
	CHECK_INT(remove_image("x:1", false), 0);
	CHECK_INT(image_hold(s, m, &err), -IMAGE_NOT_FOUND);
	image_free(m);
	close_store();
}

TEST(names_come_and_go)
{
	struct image_list list;
	struct err err = { 0 };
	struct image *a;
	struct image *b;

	open_store();
	a = import("a", "x");
	b = import("b", NULL);
	CHECK_INT(image_tag(s, b->id, "y:2", &err), 0);
	CHECK_INT(image_tag(s, "y:2", "x", &err), 0);
	CHECK_INT(image_list_load(s, &list, &err), 0);
	CHECK_INT((long)list.n, 2);
	for (size_t i = 0; i < list.n; i++)
		CHECK_INT((long)list.v[i].names.n,
			  strcmp(list.v[i].id, a->id) == 0 ? 0 : 2);
	image_list_done(&list);
	CHECK_INT(remove_image(b->id, false), -IMAGE_IN_USE);
	CHECK_INT(remove_image("x", false), 0);
	CHECK_INT(remove_image(b->id, false), 0);
	CHECK_INT(remove_image("y:2", false), -IMAGE_NOT_FOUND);
	CHECK_INT(image_tag(s, a->id, "host", &err), -IMAGE_REFUSED);
	CHECK_INT(image_tag(s, a->id, "Host", &err), -IMAGE_BAD_NAME);
	CHECK_INT(image_tag(s, "none", "z", &err), -IMAGE_NOT_FOUND);
	image_free(a);
	image_free(b);
	close_store();
}

/* 0, or what went wrong, as somebody else than whose store it is. */
static int as(uint32_t who, int (*what)(const char *a, const char *b),
	      const char *a, const char *b)
{
	int r;

	image_store_for(s, who);
	r = what(a, b);
	image_store_for(s, geteuid());
	return r;
}

static int tag(const char *a, const char *b)
{
	struct err err = { 0 };

	return image_tag(s, a, b, &err);
}

static int untag(const char *a, const char *b)
{
	return remove_image(a, b != NULL);
}

static int import_as(const char *file, const char *name)
{
	struct image_take take = { .fd = make_tar(file), .name = name };
	struct image *m = NULL;
	struct err err = { 0 };
	int r;

	image_limits_default(&take.limits);
	r = image_import(s, &take, &m, &err);
	(void)close(take.fd);
	image_free(m);
	return r;
}

static int prune(const char *a, const char *b)
{
	struct image_removed removed;
	struct err err = { 0 };
	int r = image_prune(s, true, &removed, &err);

	(void)a;
	(void)b;
	if (r == 0)
		r = (int)removed.deleted.n;
	image_removed_done(&removed);
	return r;
}

TEST(names_have_owners)
{
	const uint32_t x = geteuid() + 1001;
	const uint32_t y = geteuid() + 1002;
	struct err err = { 0 };
	struct image *a;
	struct image *b = NULL;

	open_store();
	a = import("a", "plain:1");
	/* Not moved, by a tag or by what comes in, and not removed. */
	CHECK_INT(as(x, untag, "plain:1", NULL), -IMAGE_NOT_YOURS);
	CHECK_INT(as(x, untag, a->id, "force"), -IMAGE_NOT_YOURS);
	CHECK_INT(as(x, import_as, "evil", "plain:1"), -IMAGE_NOT_YOURS);
	CHECK_INT(as(x, prune, NULL, NULL), 0);
	CHECK_INT(as(x, import_as, "mine", "mine:1"), 0);
	CHECK_INT(as(x, tag, "mine:1", "plain:1"), -IMAGE_NOT_YOURS);
	CHECK_INT(as(y, tag, "plain:1", "mine:1"), -IMAGE_NOT_YOURS);
	CHECK_INT(image_find(s, "plain:1", &b, &err), 0);
	CHECK_STR(b->id, a->id);
	image_free(b);
	/* Another name is whose gave it; what it names stays. */
	CHECK_INT(as(x, tag, "plain:1", "other:1"), 0);
	CHECK_INT(as(y, untag, "other:1", NULL), -IMAGE_NOT_YOURS);
	CHECK_INT(as(x, untag, "other:1", NULL), 0);
	CHECK_INT(as(x, tag, "plain:1", "last:1"), 0);
	CHECK_INT(untag("plain:1", NULL), 0);
	CHECK_INT(as(x, untag, "last:1", NULL), 0);
	CHECK_INT(as(x, untag, a->id, "force"), -IMAGE_NOT_YOURS);
	CHECK_INT(untag(a->id, NULL), 0);
	/* The store's own user may do all of it. */
	CHECK_INT(as(x, import_as, "more", "mine:2"), 0);
	CHECK_INT(untag("mine:1", NULL), 0);
	CHECK_INT(as(x, prune, NULL, NULL), 1);
	image_free(a);
	close_store();
}

/* By the beginning of an id its image is meant, whoever gives names. */
TEST(names_are_no_ids)
{
	struct image *m;
	struct image *found = NULL;
	struct err err = { 0 };
	char start[16];

	open_store();
	m = import("one", "a");
	image_free(import("two", "b"));
	(void)snprintf(start, sizeof(start), "%.12s", m->id + 7);
	CHECK_INT(tag("b", start), -IMAGE_REFUSED);
	CHECK_INT(import_as("three", start), -IMAGE_REFUSED);
	CHECK_INT(tag("b", "sha256"), -IMAGE_REFUSED);
	CHECK_INT(tag("b", "docker.io/library/sha256:1"), -IMAGE_REFUSED);
	CHECK_INT(import_as("three", "sha256:1"), -IMAGE_REFUSED);
	CHECK_INT(tag("b", "x/sha256"), 0);
	/* What is no id of anything is a name. */
	CHECK_INT(tag("b", "ffffffffffff0"), 0);
	CHECK_INT(image_find(s, start, &found, &err), 0);
	CHECK_STR(found->id, m->id);
	image_free(found);
	image_free(m);
	close_store();
}

TEST(codes_of_failures)
{
	struct image_take take = { .fd = make_tar("../x") };
	struct image_list list;
	struct image *m = NULL;
	struct err err = { 0 };

	open_store();
	image_limits_default(&take.limits);
	CHECK_INT(image_import(s, &take, &m, &err), -IMAGE_REFUSED);
	(void)close(take.fd);
	take.fd = make_tar("x");
	err = (struct err){ 0 };
	CHECK_INT(image_load(s, &take, &list, &err), -IMAGE_CORRUPT);
	CHECK_INT(lseek(take.fd, 0, SEEK_SET), 0);
	take.limits.archive = 100;
	err = (struct err){ 0 };
	CHECK_INT(image_import(s, &take, &m, &err), -IMAGE_TOO_LARGE);
	CHECK_INT(ftruncate(take.fd, 700), 0);
	CHECK_INT(lseek(take.fd, 100, SEEK_SET), 100);
	image_limits_default(&take.limits);
	err = (struct err){ 0 };
	CHECK_INT(image_import(s, &take, &m, &err), -IMAGE_CORRUPT);
	CHECK(!m);
	(void)close(take.fd);
	close_store();
}

static void in_child(void (*run)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		run();
		(void)fflush(NULL);
		_exit(tap_bad ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Each of these works before, and not any more. */
static void try_all(void)
{
	struct err err = { 0 };
	int tar = make_tar("b");
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	char out[] = "/tmp/cordon-unit-out-XXXXXX";

	CHECK(fd >= 0);
	(void)close(fd);
	fd = mkostemp(out, O_CLOEXEC);
	CHECK(fd >= 0 && unlink(out) == 0);
	(void)close(fd);
	CHECK_INT(image_confine(s, NO_FD, false, &err), 0);
	CHECK(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0);
	CHECK(open(out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0);
	CHECK(fork() < 0);
	CHECK(execl("/bin/true", "true", (char *)NULL) < 0);
	/* Not even another descriptor of nothing. */
	CHECK(memfd_create("x", MFD_CLOEXEC) < 0);
	image_free(import_from(tar, "y"));
	CHECK_INT(remove_image("x", false), 0);
}

TEST(shut_in_it_still_works)
{
	struct image *m = NULL;
	struct err err = { 0 };

	open_store();
	/* No name that could begin an id. */
	image_free(import("a", "x"));
	in_child(try_all);
	CHECK_INT(image_find(s, "x", &m, &err), -IMAGE_NOT_FOUND);
	err = (struct err){ 0 };
	CHECK_INT(image_find(s, "y", &m, &err), 0);
	image_free(m);
	close_store();
}

TAP_MAIN()
