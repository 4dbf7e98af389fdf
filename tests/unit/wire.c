/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two blobs of a run: what the packer writes passes the reader's checks
 * and says the same; what is cut or spoiled is refused or harmless.
 *
 * Copies end at the end of a mapping that is followed by one without access,
 * so that a read past the end is a fault.
 */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cordon/cordon.h>

#include "base/io.h"
#include "base/util.h"
#include "box/pack.h"
#include "box/prepare.h"
#include "box/spec.h"
#include "box/wire.h"

/* A copy of `len` bytes at the end of its pages, with a wall behind. */
static char *walled(const char *data, size_t len, size_t room)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages = (room + page - 1) / page * page;
	char *map = mmap(NULL, pages + page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED || mprotect(map + pages, page, PROT_NONE) < 0)
		abort();
	map += (pages - len) & ~7ULL;
	memcpy(map, data, len);
	return map;
}

static char *read_blob(int fd, size_t *ret_len)
{
	struct stat st;
	char *data;

	CHECK_INT(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size);
	*ret_len = (size_t)st.st_size;
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	CHECK_INT(io_read_full(fd, data, *ret_len), st.st_size);
	return data;
}

static void prepare_one(struct prepared *p)
{
	struct cordon_spec *s = cordon_spec_new();
	struct err err = { 0 };

	CHECK_INT(cordon_spec_set(s, "env", "A=1", NULL), 0);
	CHECK_INT(cordon_spec_set(s, "name", "box", NULL), 0);
	CHECK_INT(cordon_spec_set(s, "tmpfs", "/x:size=1m", NULL), 0);
	CHECK_INT(cordon_spec_code(s, "sh", "echo hi", 7, "sub/a.sh", NULL), 0);
	CHECK_INT(prepare(s, p, &err), 0);
	if (err.code)
		printf("# %s\n", err.text);
	cordon_spec_free(s);
}

static const struct wire_blob *blob_of(const char *data)
{
	return (const struct wire_blob *)(const void *)data;
}

TEST(wire_round_trip_of_the_work)
{
	struct prepared p;
	size_t len;
	char *data;
	const struct wire_work *w;
	struct err err = { 0 };

	prepare_one(&p);
	data = read_blob(p.work, &len);
	w = (const struct wire_work *)(const void *)data;
	CHECK_INT(wire_check_work(w, len, &err), 0);
	CHECK_INT(w->n_steps, 1);
	CHECK_INT(w->steps[0].argv.count, 2);
	CHECK_STR(wire_str(blob_of(data), w->steps[0].argv.off), "sh");
	CHECK_STR(wire_str(blob_of(data), w->steps[0].argv.off + 3),
		  "/workspace/sub/a.sh");
	CHECK_STR(wire_str(blob_of(data), w->workdir), "/workspace");
	CHECK_INT((long long)w->times.timeout_us, 30000000);
	/* The directory above the file, and the file. */
	CHECK_INT((long long)w->records.count, 2);
	free(data);
	prepared_done(&p);
}

TEST(wire_round_trip_of_the_box)
{
	struct prepared p;
	size_t len;
	char *data;
	const struct wire_box *b;
	struct err err = { 0 };
	bool seen = false;

	prepare_one(&p);
	data = read_blob(p.box, &len);
	b = (const struct wire_box *)(const void *)data;
	CHECK_INT(wire_check_box(b, len, &err), 0);
	CHECK_STR(wire_str(blob_of(data), b->hostname), "box");
	CHECK_INT(b->uid, 65534);
	CHECK_INT((long long)b->limits.memory, 256 << 20);
	for (uint32_t i = 0; i < b->n_mounts; i++)
		if (strcmp(wire_str(blob_of(data), b->mounts[i].target),
			   "/x") == 0) {
			CHECK_INT(b->mounts[i].kind, WIRE_TMPFS);
			CHECK_INT((long long)b->mounts[i].size, 1 << 20);
			seen = true;
		}
	CHECK(seen);
	free(data);
	prepared_done(&p);
}

/* Nobody can change it afterwards. */
TEST(wire_blobs_are_sealed)
{
	struct prepared p;

	prepare_one(&p);
	CHECK_INT(fcntl(p.box, F_GET_SEALS),
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	CHECK_INT(fcntl(p.work, F_GET_SEALS),
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	CHECK(pwrite(p.work, "x", 1, 0) < 0 && errno == EPERM);
	prepared_done(&p);
}

static int check(bool box, const char *data, size_t len)
{
	const void *p = data;

	return box ? wire_check_box(p, len, NULL)
		   : wire_check_work(p, len, NULL);
}

/* In memory of exactly that size. */
static int check_cut(bool box, const char *data, size_t len)
{
	char *copy = malloc(len ? len : 1);
	int r;

	memcpy(copy, data, len);
	r = check(box, copy, len);
	free(copy);
	return r;
}

/* A blob that was cut anywhere is refused: its size is in it. */
TEST(wire_cut_anywhere_is_refused)
{
	struct prepared p;

	prepare_one(&p);
	for (int box = 0; box < 2; box++) {
		size_t len;
		char *data = read_blob(box ? p.box : p.work, &len);

		for (size_t n = 0; n < len; n += 1 + n / 64)
			CHECK_INT(check_cut(box, data, n), -EPROTO);
		CHECK_INT(check_cut(box, data, len), 0);
		free(data);
	}
	prepared_done(&p);
}

/* Reads all that a reader would read, after the check said yes. */
static size_t touch_vec(const struct wire_blob *b, struct wire_vec vec)
{
	size_t sum = 0;
	uint32_t off = vec.off;

	for (uint32_t i = 0; i < vec.count; i++) {
		const char *s = wire_str(b, off);

		sum += strlen(s);
		off += (uint32_t)strlen(s) + 1;
	}
	return sum;
}

static size_t touch_records(const struct wire_blob *b, struct wire_records r)
{
	const char *base = (const char *)b;
	uint64_t off = r.off;
	size_t sum = 0;

	for (uint64_t i = 0; i < r.count; i++) {
		struct wire_record rec;

		memcpy(&rec, base + off, sizeof(rec));
		off += sizeof(rec);
		sum += strlen(base + off);
		off += rec.path_len + 1U;
		for (uint64_t k = 0; k < rec.data_len; k++)
			sum += (unsigned char)base[off + k];
		off = (off + rec.data_len + 7) & ~7ULL;
	}
	return sum;
}

static size_t touch_bytes(const char *base, struct wire_bytes b)
{
	size_t sum = 0;

	for (uint64_t k = 0; k < b.len; k++)
		sum += (unsigned char)base[b.off + k];
	return sum;
}

static size_t touch_all(bool box, const char *data)
{
	const struct wire_blob *b = blob_of(data);
	size_t sum = 0;

	if (box) {
		const struct wire_box *x = (const void *)data;

		for (uint32_t i = 0; i < x->n_mounts; i++) {
			sum += strlen(wire_str(b, x->mounts[i].target));
			if (x->mounts[i].kind != WIRE_TMPFS)
				sum += strlen(wire_str(b, x->mounts[i].source));
		}
		return sum + strlen(wire_str(b, x->hostname)) +
		       touch_records(b, x->records);
	} else {
		const struct wire_work *w = (const void *)data;

		for (uint32_t i = 0; i < w->n_steps; i++)
			sum += touch_vec(b, w->steps[i].argv) +
			       touch_records(b, w->steps[i].files) +
			       touch_bytes(data, w->steps[i].input);
		return sum + touch_vec(b, w->env) +
		       strlen(wire_str(b, w->workdir)) +
		       strlen(wire_str(b, w->path)) +
		       touch_records(b, w->records);
	}
}

#define HEAD 1024 /* where the numbers and offsets are */

/*
 * Spoiled in a few places, many times: the check refuses it, or everything
 * that it says can be read without leaving it.
 */
/* What init will listen on and route, from a client that is not believed. */
TEST(wire_egress_is_checked)
{
	struct prepared p;
	struct err err = { 0 };
	struct wire_egress good = { .n_ports = 1,
				    .n_blocks = 1,
				    .ports = { 443 },
				    .blocks = { { .bits = 128 } } };
	struct wire_box *b;
	size_t len;
	char *data;

	prepare_one(&p);
	data = read_blob(p.box, &len);
	b = (struct wire_box *)(void *)data;
	b->egress = good;
	CHECK_INT(wire_check_box(b, len, &err), 0);
	b->egress.n_ports = WIRE_MAX_PORTS + 1;
	CHECK_INT(wire_check_box(b, len, &err), -EPROTO);
	b->egress = good;
	b->egress.n_ports = 2; /* the second is 0 */
	CHECK_INT(wire_check_box(b, len, &err), -EPROTO);
	b->egress = good;
	b->egress.n_blocks = WIRE_MAX_BLOCKS + 1;
	CHECK_INT(wire_check_box(b, len, &err), -EPROTO);
	b->egress = good;
	b->egress.blocks[0].bits = 129;
	CHECK_INT(wire_check_box(b, len, &err), -EPROTO);
	free(data);
	prepared_done(&p);
}

TEST(wire_spoiled_is_refused_or_harmless)
{
	static const uint64_t edges[] = {
		0, 1, 7, 0xff, 0xffffffff, UINT64_MAX, UINT64_MAX - 7, INT64_MAX
	};
	struct prepared p;
	uint32_t seed = 7;
	int accepted = 0;

	prepare_one(&p);
	for (int i = 0; i < 40000; i++) {
		bool box = i & 1;
		static char *data[2];
		static size_t len[2];
		static char *copy[2];

		if (!data[box]) {
			data[box] = read_blob(box ? p.box : p.work, &len[box]);
			copy[box] = walled(data[box], len[box], len[box]);
		}
		memcpy(copy[box], data[box], len[box]);
		for (int k = 0; k < 1 + i % 3; k++) {
			size_t at;
			size_t n;

			seed = seed * 1664525 + 1013904223;
			at = (seed >> 4) % ((i & 8 ? len[box] : HEAD) - 8);
			n = i & 2 ? 1 : i & 4 ? 4 : 8;
			at &= ~(n - 1);
			memcpy(copy[box] + at, &edges[seed >> 29], n);
		}
		if (check(box, copy[box], len[box]) == 0)
			accepted += touch_all(box, copy[box]) < SIZE_MAX;
	}
	/* Otherwise the loop above would have tested nothing. */
	CHECK(accepted > 100 && accepted < 39000);
	printf("# %d of 40000 were still good\n", accepted);
	prepared_done(&p);
}

TEST(wire_records_far_outside_are_refused)
{
	struct prepared p;
	size_t len;
	char *data;
	struct wire_work *w;

	prepare_one(&p);
	data = read_blob(p.work, &len);
	w = (struct wire_work *)(void *)data;
	for (int shift = 3; shift < 64; shift++) {
		w->records.off = UINT64_MAX - (1ULL << shift) + 1;
		CHECK_INT(wire_check_work(w, len, NULL), -EPROTO);
	}
	w->records.off = sizeof(*w);
	w->records.count = UINT64_MAX;
	CHECK_INT(wire_check_work(w, len, NULL), -EPROTO);
	free(data);
	prepared_done(&p);
}

/* A box of one record and one mount. */
static uint32_t box_flags;

static int check_paths(const char *record, const char *target, uint8_t flags)
{
	struct pack *p = malloc(sizeof(*p));
	struct wire_box box = { .limits.cpu_period_us = 100000,
				.blob.flags = box_flags };
	const struct wire_record rec = { .kind = WIRE_DIR, .mode = 0755 };
	struct err err = { 0 };
	size_t len;
	char *data;
	int fd;
	int r;

	CHECK_INT(pack_init(p, sizeof(box), &err), 0);
	box.hostname = pack_string(p, "x");
	box.domainname = box.hostname;
	(void)pack_mount(p, &box, WIRE_BIND, flags, "/usr", target);
	pack_records_begin(p);
	pack_record(p, &rec, record, NULL);
	box.records = p->records;
	fd = pack_seal(p, &box.blob, WIRE_BOX_MAGIC, &err);
	CHECK(fd >= 0);
	data = read_blob(fd, &len);
	r = wire_check_box((const void *)data, len, &err);
	free(data);
	(void)close(fd);
	pack_done(p);
	free(p);
	return r;
}

TEST(wire_paths_that_lead_out_are_refused)
{
	static const char *const bad[] = {
		"x",     "../x",    "..",      "/..",     "/../x",
		"/x/..", "/x/../y", "/.../..", "/..x/..", "//../x",
	};
	static const char *const good[] = { "/x",   "/..x",     "/x..",
					    "/...", "/x/..y/z", "/.own/a" };
	static char text[WIRE_MAX_PATH + 1] = "/";

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK_INT(check_paths(bad[i], "/x", 0), -EPROTO);
		CHECK_INT(check_paths("/x", bad[i], 0), -EPROTO);
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CHECK_INT(check_paths(good[i], "/x", 0), 0);
		CHECK_INT(check_paths("/x", good[i], 0), 0);
	}
	/* A mount may be at the root or at nothing with a name. */
	CHECK_INT(check_paths("/x", "/", 0), 0);
	CHECK_INT(check_paths("/x", "", 0), -EPROTO);
	CHECK_INT(check_paths("/", "/x", 0), -EPROTO);
	CHECK_INT(check_paths("/x/", "/x", 0), -EPROTO);
	CHECK_INT(check_paths("/x/.", "/x", 0), -EPROTO);
	memset(text + 1, 'x', WIRE_MAX_PATH - 2);
	CHECK_INT(check_paths(text, text, 0), 0);
	text[WIRE_MAX_PATH - 1] = 'x';
	CHECK_INT(check_paths(text, "/x", 0), -EPROTO);
	CHECK_INT(check_paths("/x", text, 0), -EPROTO);
}

/* In an option for overlayfs they separate paths, or hide that. */
TEST(wire_layers_over_several_paths_are_refused)
{
	static const char *const bad[] = { "/a:/b", "/a,b", "/a\\b" };

	/* Only a root that has a layer for changes may have one more. */
	CHECK_INT(check_paths("/x", "/a", WIRE_MNT_OVERLAY), -EPROTO);
	box_flags = WIRE_OWN_ROOT;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK_INT(check_paths("/x", bad[i], WIRE_MNT_OVERLAY), -EPROTO);
		CHECK_INT(check_paths("/x", bad[i], WIRE_MNT_RO), 0);
	}
	CHECK_INT(check_paths("/x", "/a", WIRE_MNT_OVERLAY), 0);
	box_flags = 0;
}

TEST(pack_too_many_parts_is_an_error_at_the_end)
{
	struct pack *p = malloc(sizeof(*p));
	struct wire_box box = { 0 };
	struct err err = { 0 };

	CHECK_INT(pack_init(p, sizeof(box), &err), 0);
	for (int i = 0; i < WIRE_MAX_MOUNTS + 1; i++)
		pack_mount(p, &box, WIRE_TMPFS, 0, NULL, "/x")->size = 1;
	CHECK_INT(box.n_mounts, WIRE_MAX_MOUNTS);
	CHECK_INT(pack_seal(p, &box.blob, WIRE_BOX_MAGIC, &err), -E2BIG);
	pack_done(p);
	free(p);
}

/* Longer than the packer's buffer, and beside short ones. */
TEST(pack_long_and_short_strings)
{
	enum { LONG = 100000 };
	struct pack *p = malloc(sizeof(*p));
	struct wire_work work = { 0 };
	char *text = malloc(LONG + 1);
	uint32_t at[3];
	struct err err = { 0 };
	size_t len;
	char *data;
	int fd;

	memset(text, 'x', LONG);
	text[LONG] = '\0';
	CHECK_INT(pack_init(p, sizeof(work), &err), 0);
	at[0] = pack_string(p, "first");
	at[1] = pack_string(p, text);
	at[2] = pack_string(p, "last");
	fd = pack_seal(p, &work.blob, WIRE_WORK_MAGIC, &err);
	CHECK(fd >= 0);
	data = read_blob(fd, &len);
	CHECK_STR(wire_str(blob_of(data), at[0]), "first");
	CHECK_STR(wire_str(blob_of(data), at[1]), text);
	CHECK_STR(wire_str(blob_of(data), at[2]), "last");
	CHECK(!wire_str(blob_of(data), 0));
	CHECK(!wire_str(blob_of(data), (uint32_t)len));
	(void)close(fd);
	pack_done(p);
	free(p);
	free(data);
	free(text);
}

TAP_MAIN()
