/* SPDX-License-Identifier: Apache-2.0 */

/* Images without a store: names, entries, documents, one layer. */

#include "tests/tap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/util.h"
#include "box/image-parse.h"
#include "image/config.h"
#include "image/digest.h"
#include "image/entry.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "image/store.h"
#include "image/tree.h"
#include "image/unpack.h"

#define ZEROES                                                                 \
	"0000000000000000000000000000000000000000000000000000000000000000"
#define A_DIGEST "sha256:" ZEROES

TEST(names_are_normalised)
{
	static const struct {
		const char *text, *name, *tag, *digest;
	} rows[] = {
		{ "python", "docker.io/library/python", "latest", "" },
		{ "python:3-slim", "docker.io/library/python", "3-slim", "" },
		{ "a/b", "docker.io/a/b", "latest", "" },
		{ "docker.io/python", "docker.io/library/python", "latest",
		  "" },
		{ "index.docker.io/a/b:1", "docker.io/a/b", "1", "" },
		{ "localhost/x", "localhost/x", "latest", "" },
		{ "localhost:5000/x:y", "localhost:5000/x", "y", "" },
		{ "host.example/a/b/c", "host.example/a/b/c", "latest", "" },
		{ "Host.Example/a", "Host.Example/a", "latest", "" },
		{ "x@" A_DIGEST, "docker.io/library/x", "", A_DIGEST },
		{ "x:t@" A_DIGEST, "docker.io/library/x", "t", A_DIGEST },
		{ "a.b_c__d---e", "docker.io/library/a.b_c__d---e", "latest",
		  "" },
		{ "x:_A.b-C", "docker.io/library/x", "_A.b-C", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct image_ref ref;
		struct err err = { 0 };

		CHECK_INT(image_ref_parse(rows[i].text, &ref, &err), 0);
		CHECK_STR(ref.name, rows[i].name);
		CHECK_STR(ref.tag, rows[i].tag);
		CHECK_STR(ref.digest, rows[i].digest);
	}
	CHECK_STR(image_ref_short("docker.io/library/x:1"), "x:1");
	CHECK_STR(image_ref_short("docker.io/a/b:1"), "a/b:1");
	CHECK_STR(image_ref_short("docker.io/library/a/b:1"), "library/a/b:1");
	CHECK_STR(image_ref_short("docker.io/a.b/c:1"), "docker.io/a.b/c:1");
	CHECK_STR(image_ref_short("other.io/library/x:1"),
		  "other.io/library/x:1");
}

TEST(names_that_are_none)
{
	static const char *const rows[] = {
		"",
		"A",
		"a/",
		"/a",
		"a//b",
		"a b",
		"a:",
		"a:-x",
		"a:.x",
		"a@",
		"a@sha256:00",
		"a@sha512:0",
		"../a",
		"a/../b",
		"a/./b",
		"-a",
		"a-",
		"a..b",
		"a___b",
		"a._b",
		"host.x:/a",
		"host.x:123456/a",
		"host..x/a",
		"-host.x/a",
		"host.-x/a",
		"a\n",
		"a:b\n",
		"a\x1b",
		"\xc3\xa4",
		"a:\xc3\xa4",
		ZEROES,
		"a:b:c",
		"a:b/c:d e",
		":x",
		"a%2f..",
		"a\\b",
		"~/x",
	};
	char tag[200] = "a:";
	struct image_ref ref;
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (image_ref_parse(rows[i], &ref, &err) != -IMAGE_BAD_NAME) {
			printf("# '%s' is taken\n", rows[i]);
			CHECK(false);
		}
	CHECK_INT(image_ref_parse("a@sha256:0" ZEROES, &ref, &err),
		  -IMAGE_BAD_NAME);
	memset(tag + 2, 'x', 128);
	CHECK_INT(image_ref_parse(tag, &ref, &err), 0);
	tag[130] = 'x';
	CHECK_INT(image_ref_parse(tag, &ref, &err), -IMAGE_BAD_NAME);
}

TEST(entries)
{
	static const struct {
		const char *name;
		enum image_entry_kind kind;
		const char *path;
		size_t base;
	} rows[] = {
		{ "", IMAGE_ENTRY_ROOT, "", 0 },
		{ ".", IMAGE_ENTRY_ROOT, "", 0 },
		{ "./", IMAGE_ENTRY_ROOT, "", 0 },
		{ "//", IMAGE_ENTRY_ROOT, "", 0 },
		{ "a", IMAGE_ENTRY_FILE, "a", 0 },
		{ "/a", IMAGE_ENTRY_FILE, "a", 0 },
		{ "./a//b/./c/", IMAGE_ENTRY_FILE, "a/b/c", 4 },
		{ "...", IMAGE_ENTRY_FILE, "...", 0 },
		{ "a/..b", IMAGE_ENTRY_FILE, "a/..b", 2 },
		{ ".wh.a", IMAGE_ENTRY_GONE, "a", 0 },
		{ "a/b/.wh.c", IMAGE_ENTRY_GONE, "a/b/c", 4 },
		{ ".wh....", IMAGE_ENTRY_GONE, "...", 0 },
		{ ".wh..wh..opq", IMAGE_ENTRY_OPAQUE, "", 0 },
		{ "a/.wh..wh..opq", IMAGE_ENTRY_OPAQUE, "a", 0 },
		{ "a/b/.wh..wh..opq", IMAGE_ENTRY_OPAQUE, "a/b", 2 },
		{ ".wh", IMAGE_ENTRY_FILE, ".wh", 0 },
		{ "x.wh.y", IMAGE_ENTRY_FILE, "x.wh.y", 0 },
	};
	static const char *const refused[] = {
		"..",      "../a",      "a/..",           "a/../b", "/..",
		"./..",    ".wh.",      ".wh..",          ".wh...", "a/.wh...",
		".wh.a/b", "a/.wh.b/c", ".wh..wh..opq/a",
	};
	static struct image_entry e;
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECK_INT(image_entry_parse(rows[i].name, &e, &err), 0);
		CHECK_INT(e.kind, rows[i].kind);
		CHECK_STR(e.path, rows[i].path);
		CHECK_INT((long)e.base, (long)rows[i].base);
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (image_entry_parse(refused[i], &e, &err) != -IMAGE_REFUSED) {
			printf("# '%s' is taken\n", refused[i]);
			CHECK(false);
		}
	CHECK_INT(image_entry_parse(".wh..wh.plnk/a/b", &e, &err), 0);
	CHECK_INT(e.kind, IMAGE_ENTRY_NONE);
}

TEST(entries_of_the_longest_names)
{
	static char name[8192];
	static struct image_entry e;
	struct err err = { 0 };

	memset(name, 'x', 255);
	CHECK_INT(image_entry_parse(name, &e, &err), 0);
	name[255] = 'x';
	CHECK_INT(image_entry_parse(name, &e, &err), -IMAGE_REFUSED);
	for (size_t i = 0; i < 20; i++) {
		memset(name + i * 201, 'y', 200);
		name[i * 201 + 200] = '/';
	}
	CHECK_INT(image_entry_parse(name, &e, &err), 0);
	memset(name + 20 * 201, 'z', 100);
	CHECK_INT(image_entry_parse(name, &e, &err), -IMAGE_REFUSED);
	memset(name, 0, sizeof(name));
	for (int i = 0; i < IMAGE_ENTRY_DEPTH; i++)
		(void)strcat(name, "d/");
	CHECK_INT(image_entry_parse(name, &e, &err), 0);
	(void)strcat(name, "d");
	CHECK_INT(image_entry_parse(name, &e, &err), -IMAGE_REFUSED);
}

static const char config_text[] =
	"{\"architecture\":\"amd64\",\"os\":\"linux\",\"created\":"
	"\"2020-01-02T03:04:05.678Z\",\"config\":{\"Env\":[\"A=b\",\"none\","
	"\"=x\",\"C=\"],\"Cmd\":[\"x\",\"y\"],\"Entrypoint\":null,\"User\":"
	"\"me\",\"Labels\":{\"a\":\"b\"},\"ExposedPorts\":{\"80/tcp\":{}},"
	"\"unknown\":[1,2]},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":["
	"\"" A_DIGEST "\"]},\"history\":[{\"created_by\":\"z\","
	"\"empty_layer\":true}]}";

TEST(config_is_read)
{
	struct image_config c;
	struct err err = { 0 };

	CHECK_INT(image_config_parse(config_text, strlen(config_text), &c,
				     &err),
		  0);
	CHECK_INT((long)c.env.n, 2);
	CHECK_STR(c.env.v[1], "C=");
	CHECK_INT((long)c.cmd.n, 2);
	CHECK_INT((long)c.entrypoint.n, 0);
	CHECK_STR(c.user, "me");
	CHECK_STR(c.working_dir, "");
	CHECK_STR(c.labels.v[0], "a=b");
	CHECK_STR(c.exposed_ports.v[0], "80/tcp");
	CHECK_INT((long)c.n_history, 1);
	CHECK(c.history[0].is_empty);
	CHECK_STR(c.diff_ids.v[0], A_DIGEST);
	CHECK_INT(image_time_parse(c.created), 1577934245);
	image_config_done(&c);
}

TEST(config_that_is_wrong)
{
	static const struct {
		const char *text;
		int code;
	} rows[] = {
		{ "", IMAGE_CORRUPT },
		{ "[]", IMAGE_CORRUPT },
		{ "{}", IMAGE_CORRUPT },
		{ "{\"os\":\"linux\",\"rootfs\":[]}", IMAGE_CORRUPT },
		{ "{\"os\":\"plan9\",\"rootfs\":{}}", IMAGE_REFUSED },
		{ "{\"os\":\"linux\",\"rootfs\":{\"diff_ids\":[\"x\"]}}",
		  IMAGE_CORRUPT },
		{ "{\"os\":\"linux\",\"rootfs\":{},\"config\":{\"Env\":{}}}",
		  IMAGE_CORRUPT },
		{ "{\"os\":\"linux\",\"rootfs\":{},\"history\":[1]}",
		  IMAGE_CORRUPT },
		{ "{\"os\":\"linux\",\"rootfs\":{},\"config\":{\"Labels\":"
		  "{\"a=b\":\"c\"}}}",
		  IMAGE_CORRUPT },
		{ "{\"os\":\"li\\u0000nux\",\"rootfs\":{}}", IMAGE_CORRUPT },
	};
	struct image_config c;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = { 0 };

		CHECK_INT(image_config_parse(rows[i].text, strlen(rows[i].text),
					     &c, &err),
			  -rows[i].code);
		CHECK(err.text[0]);
		CHECK(!c.os && !c.env.v);
	}
}

TEST(manifests_for_this_machine)
{
	char text[2048];
	struct image_descs d;
	struct err err = { 0 };

	(void)snprintf(
		text, sizeof(text),
		"{\"manifests\":[{\"mediaType\":\"application/vnd.oci.image."
		"manifest.v1+json\",\"digest\":\"" A_DIGEST
		"\",\"platform\":{\"os\":\"linux\",\"architecture\":\"vax\"}},"
		"{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\""
		",\"digest\":\"" A_DIGEST
		"\",\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"},"
		"\"annotations\":{\"org.opencontainers.image.ref.name\":"
		"\"a/b:1\"}},{\"mediaType\":\"text/plain\",\"digest\":"
		"\"" A_DIGEST "\"}]}",
		image_architecture());
	CHECK_INT(image_descs_parse(text, strlen(text), &d, &err), 0);
	CHECK_INT((long)d.n, 3);
	CHECK_INT(image_descs_choose(&d, false, &err), 0);
	CHECK_INT((long)d.n, 1);
	CHECK_STR(d.v[0].name, "a/b:1");
	/* A single one is taken for whatever machine it is. */
	(void)strcpy(d.v[0].architecture, "vax");
	CHECK_INT(image_descs_choose(&d, true, &err), 0);
	d.v[0].kind = IMAGE_DESC_OTHER;
	CHECK_INT(image_descs_choose(&d, true, &err), -IMAGE_REFUSED);
	CHECK_INT((long)d.n, 0);
	image_descs_done(&d);
}

/* A tar header for a file without content. */
static void put_header(char *block, const char *name, char type,
		       const char *target)
{
	unsigned int sum = 0;

	memset(block, 0, 512);
	(void)snprintf(block, 100, "%s", name);
	(void)snprintf(block + 100, 8, "0000644");
	(void)snprintf(block + 108, 8, "0000000");
	(void)snprintf(block + 116, 8, "0000000");
	(void)snprintf(block + 124, 12, "00000000000");
	(void)snprintf(block + 136, 12, "00000000000");
	memset(block + 148, ' ', 8);
	block[156] = type;
	(void)snprintf(block + 157, 100, "%s", target);
	(void)strcpy(block + 257, "ustar");
	block[263] = '0';
	block[264] = '0';
	for (int i = 0; i < 512; i++)
		sum += (unsigned char)block[i];
	(void)snprintf(block + 148, 8, "%06o", sum);
}

static int unpack_blocks(const char *blocks, size_t len, int dir,
			 struct image_unpacked *sum, struct err *err)
{
	struct image_limits limits;
	int fd = memfd_create("layer", MFD_CLOEXEC);
	int r;

	CHECK(write(fd, blocks, len) == (ssize_t)len);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	image_limits_default(&limits);
	r = image_unpack(fd, dir, &limits, NULL, sum, err);
	(void)close(fd);
	return r;
}

TEST(a_layer)
{
	char path[] = "/tmp/cordon-unit-XXXXXX";
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char blocks[5 * 512] = { 0 };
	struct image_unpacked sum;
	struct err err = { 0 };
	char digest[IMAGE_DIGEST];
	struct stat st;
	int dir;

	CHECK(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_header(blocks, "a/b", '0', "");
	put_header(blocks + 512, "c", '2', "/etc/passwd");
	put_header(blocks + 1024, "d", '1', "c");
	CHECK_INT(unpack_blocks(blocks, sizeof(blocks), dir, &sum, &err), 0);
	image_digest_of(blocks, sizeof(blocks), digest);
	CHECK_STR(sum.diff_id, digest);
	CHECK_INT((long)sum.files, 4);
	CHECK_INT(fstatat(dir, "d", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(S_ISLNK(st.st_mode) && st.st_nlink == 2);
	/* The same once more, over what is there. */
	CHECK_INT(unpack_blocks(blocks, sizeof(blocks), dir, &sum, &err), 0);
	put_header(blocks + 1024, "c/x", '0', "");
	CHECK_INT(unpack_blocks(blocks, sizeof(blocks), dir, &sum, &err),
		  -IMAGE_REFUSED);
	CHECK_INT(image_tree_open(dir, "c", O_RDONLY), -ELOOP);
	CHECK_INT(image_tree_open(dir, "..", O_RDONLY), -EXDEV);
	CHECK_INT(image_tree_open(dir, "/etc/passwd", O_RDONLY), -EXDEV);
	CHECK_INT(image_tree_remove(tmp, path + strlen("/tmp/")), 0);
	CHECK(access("/etc/passwd", F_OK) == 0);
	(void)close(dir);
	(void)close(tmp);
}

#define B_DIGEST                                                               \
	"sha256:abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456" \
	"789"

/* An image that came after somebody had a name for its beginning. */
TEST(what_is_a_name_and_an_id_is_neither)
{
	static const char index[] =
		"{\"version\":1,\"images\":[{\"id\":\"" A_DIGEST
		"\",\"names\":[\"docker.io/library/abcdef:latest\","
		"\"docker.io/library/abc:latest\"]},{\"id\":\"" B_DIGEST
		"\",\"names\":[]}]}";
	char first[] = "docker.io/library/abcdef:latest";
	char second[] = "docker.io/library/abc:latest";
	char *names[] = { first, second, NULL };
	struct image v[] = { { .id = A_DIGEST, .names = { names, 2 } },
			     { .id = B_DIGEST } };
	struct image_list list = { v, 2 };
	const struct image *found = NULL;
	static const struct {
		const char *text;
		int code;
		int at;
	} rows[] = { { "abcdef", -IMAGE_AMBIGUOUS, 0 },
		     { "abcdef:latest", 0, 0 },
		     { "abcdef0", 0, 1 },
		     { "abc", 0, 0 },
		     { "sha256:abcdef", 0, 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct image_wanted w;
		struct err err = { 0 };
		char *entry = NULL;
		int r = image_list_find(&list, rows[i].text, &found, &err);

		CHECK_INT(r, rows[i].code);
		CHECK(r < 0 || found == &v[rows[i].at]);
		CHECK_INT(image_wanted_parse(rows[i].text, &w, &err), 0);
		r = image_entry_find(index, sizeof(index) - 1, rows[i].text, &w,
				     &entry, &err);
		CHECK_INT(r, rows[i].code);
		if (r == 0)
			CHECK_HAS(entry, rows[i].at ? B_DIGEST : A_DIGEST);
		free(entry);
	}
}

TEST(the_index_as_text)
{
	char name[] = "docker.io/library/x:1";
	char *names[] = { name, NULL };
	struct image_layer layer = { A_DIGEST, A_DIGEST, 1, 2, 3 };
	struct image m = { .id = A_DIGEST,
			   .run = A_DIGEST,
			   .names = { names, 1 },
			   .layers = &layer,
			   .n_layers = 1,
			   .created = 4,
			   .loaded = 5,
			   .os = "linux",
			   .architecture = "amd64" };
	struct image_list list = { &m, 1 };
	struct image_list again;
	struct err err = { 0 };
	struct buf out;

	buf_init(&out, 1 << 20);
	image_index_format(&list, &out);
	CHECK_INT(image_index_parse(out.data, out.len, &again, &err), 0);
	CHECK_INT((long)again.n, 1);
	CHECK_STR(again.v[0].names.v[0], names[0]);
	CHECK_INT((long)again.v[0].layers[0].files, 3);
	CHECK_INT((long)again.v[0].loaded, 5);
	CHECK_STR(again.v[0].manifest, "");
	image_list_done(&again);
	CHECK_INT(image_index_parse(out.data, out.len - 1, &again, &err),
		  -IMAGE_CORRUPT);
	buf_done(&out);
}

TAP_MAIN()
