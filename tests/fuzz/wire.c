/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two blobs of a run. What the check accepts is then read as keeper and
 * init read it; nothing may be outside. The first byte chooses the blob; its
 * size and magic are put right, or nothing would ever pass.
 */

#include <stdlib.h>
#include <string.h>

#include "box/wire.h"
#include "fuzz.h"

static size_t sum; /* so that no read is left out */
static unsigned int entered;

enum { DOOR_BOX = 1, DOOR_WORK = 2 };

const unsigned int fuzz_doors = DOOR_BOX | DOOR_WORK;

unsigned int fuzz_entered(void)
{
	return entered;
}

static void read_string(const struct wire_blob *b, uint32_t off)
{
	const char *s = wire_str(b, off);

	MUST(s);
	sum += strlen(s);
}

static void read_vector(const struct wire_blob *b, struct wire_vec vec)
{
	uint32_t off = vec.off;

	for (uint32_t i = 0; i < vec.count; i++) {
		const char *s = wire_str(b, off);

		MUST(s);
		sum += strlen(s);
		off += (uint32_t)strlen(s) + 1;
	}
}

static void read_records(const struct wire_blob *b, struct wire_records r)
{
	const char *base = (const char *)b;
	uint64_t off = r.off;

	for (uint64_t i = 0; i < r.count; i++) {
		struct wire_record rec;

		memcpy(&rec, base + off, sizeof(rec));
		off += sizeof(rec);
		MUST(strlen(base + off) == rec.path_len);
		MUST(rec.kind <= WIRE_LINK);
		off += rec.path_len + 1U;
		for (uint64_t k = 0; k < rec.data_len; k++)
			sum += (unsigned char)base[off + k];
		off = (off + rec.data_len + 7) & ~7ULL;
	}
}

static void read_bytes(const struct wire_blob *blob, struct wire_bytes b)
{
	for (uint64_t k = 0; k < b.len; k++)
		sum += ((const unsigned char *)blob)[b.off + k];
}

static void try_box(const struct wire_box *box, size_t size)
{
	if (wire_check_box(box, size, NULL) < 0)
		return;
	entered = DOOR_BOX;
	for (uint32_t i = 0; i < box->n_mounts; i++) {
		uint8_t kind = box->mounts[i].kind;

		MUST(kind < WIRE_MOUNT_KINDS);
		read_string(&box->blob, box->mounts[i].target);
		if (kind == WIRE_BIND || kind == WIRE_DEV || kind == WIRE_LAYER)
			read_string(&box->blob, box->mounts[i].source);
		if (kind == WIRE_LAYER)
			MUST(strlen(wire_str(&box->blob,
					     box->mounts[i].source)) == 64);
	}
	if (box->image)
		MUST(strlen(wire_str(&box->blob, box->image)) == 64);
	read_string(&box->blob, box->hostname);
	read_string(&box->blob, box->domainname);
	read_records(&box->blob, box->records);
}

static void try_work(const struct wire_work *work, size_t size)
{
	if (wire_check_work(work, size, NULL) < 0)
		return;
	entered = DOOR_WORK;
	for (uint32_t i = 0; i < work->n_steps; i++) {
		read_vector(&work->blob, work->steps[i].argv);
		read_records(&work->blob, work->steps[i].files);
		read_bytes(&work->blob, work->steps[i].input);
	}
	read_vector(&work->blob, work->env);
	read_string(&work->blob, work->workdir);
	read_string(&work->blob, work->path);
	read_records(&work->blob, work->records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool box = size && data[0] & 1;
	struct wire_blob head;
	char *copy;

	entered = 0;
	if (size < 8 + sizeof(head))
		return 0;
	size -= 8;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 8, size);
	memcpy(&head, copy, sizeof(head));
	if (!(data[0] & 2)) {
		head.magic = box ? WIRE_BOX_MAGIC : WIRE_WORK_MAGIC;
		head.size = size;
	}
	memcpy(copy, &head, sizeof(head));
	if (box)
		try_box((const void *)copy, size);
	else
		try_work((const void *)copy, size);
	free(copy);
	return 0;
}
