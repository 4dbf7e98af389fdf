/* SPDX-License-Identifier: Apache-2.0 */
#include "box/wire.h"

#include <errno.h>
#include <string.h>

const char *wire_str(const struct wire_blob *blob, uint32_t off)
{
	const char *base = (const char *)blob;

	if (off < sizeof(*blob) || off >= blob->size ||
	    !memchr(base + off, '\0', blob->size - off))
		return NULL;
	return base + off;
}

bool wire_vec_check(const struct wire_blob *blob, struct wire_vec vec)
{
	const char *base = (const char *)blob;
	uint64_t off = vec.off;

	for (uint32_t i = 0; i < vec.count; i++) {
		const char *end;

		if (off < sizeof(*blob) || off >= blob->size)
			return false;
		end = memchr(base + off, '\0', blob->size - off);
		if (!end)
			return false;
		off = (uint64_t)(end - base) + 1;
	}
	return true;
}

/*
 * A path in the box: absolute, and with no way up. Whoever follows it does so
 * before the host's root is out of reach, and ".." of the root is not the root
 * as long as something is mounted on it.
 */
static bool is_path(const char *path)
{
	if (!path || path[0] != '/' || strlen(path) >= WIRE_MAX_PATH)
		return false;
	for (; (path = strstr(path, "/..")); path += 3)
		if (path[3] == '/' || path[3] == '\0')
			return false;
	return true;
}

/* Of a record: it also has a name. */
static bool is_named_path(const char *path)
{
	const char *name = strrchr(path, '/');

	return is_path(path) && name[1] != '\0' && strcmp(name, "/.") != 0;
}

static bool records_check(const struct wire_blob *blob,
			  struct wire_records records)
{
	const char *base = (const char *)blob;
	uint64_t off = records.off;

	for (uint64_t i = 0; i < records.count; i++) {
		struct wire_record rec;
		uint64_t left;

		if (off % 8 || off < sizeof(*blob) || off > blob->size ||
		    blob->size - off < sizeof(rec))
			return false;
		memcpy(&rec, base + off, sizeof(rec));
		off += sizeof(rec);
		left = blob->size - off;
		if (rec.path_len == 0 || rec.path_len >= left ||
		    base[off + rec.path_len] != '\0' ||
		    strlen(base + off) != rec.path_len)
			return false;
		left -= rec.path_len + 1U;
		if (rec.data_len > left || rec.kind > WIRE_LINK)
			return false;
		off += rec.path_len + 1U + rec.data_len;
		off = (off + 7) & ~7ULL;
	}
	return true;
}

static int check_blob(const struct wire_blob *blob, uint64_t size,
		      uint64_t least, uint32_t magic, struct err *err)
{
	if (size < least || size > WIRE_MAX_SIZE || blob->magic != magic ||
	    blob->size != size)
		return err_set(err, EPROTO, "the spec has another layout");
	return 0;
}

static int outside(struct err *err)
{
	return err_set(err, EPROTO, "the spec points outside itself");
}

/* 64 of them: neither a path nor anything else. */
static bool is_digits(const char *text)
{
	size_t n = 0;

	for (; text && text[n]; n++)
		if (n == 64 || !strchr("0123456789abcdef", text[n]))
			return false;
	return n == 64;
}

/* By now they are known to lie in the blob. */
static bool records_are_in_root(const struct wire_blob *blob,
				struct wire_records records)
{
	const char *base = (const char *)blob;
	uint64_t off = records.off;

	for (uint64_t i = 0; i < records.count; i++) {
		struct wire_record rec;

		memcpy(&rec, base + off, sizeof(rec));
		off += sizeof(rec);
		if (!is_named_path(base + off))
			return false;
		off += rec.path_len + 1U + rec.data_len;
		off = (off + 7) & ~7ULL;
	}
	return true;
}

static bool mount_check(const struct wire_box *box, const struct wire_mount *m)
{
	const char *source = wire_str(&box->blob, m->source);
	const char *target = wire_str(&box->blob, m->target);

	if (!is_path(target))
		return false;
	/* It becomes an option, in which these stand for more than one path. */
	if ((m->flags & WIRE_MNT_OVERLAY) &&
	    (strpbrk(target, ":,\\") || !(box->blob.flags & WIRE_OWN_ROOT)))
		return false;
	switch ((enum wire_mount_kind)m->kind) {
	case WIRE_BIND:
	case WIRE_DEV:
		return source;
	case WIRE_LAYER:
		return box->image && is_digits(source);
	case WIRE_UPPER:
		return wire_has_layers(box);
	case WIRE_VOLUME:
	case WIRE_CODE:
		return box->image;
	case WIRE_PLACE:
	case WIRE_TMPFS:
		return true;
	case WIRE_MOUNT_KINDS:
		break;
	}
	return false;
}

static bool egress_check(const struct wire_egress *e)
{
	if (e->n_ports > WIRE_MAX_PORTS || e->n_blocks > WIRE_MAX_BLOCKS)
		return false;
	for (uint32_t i = 0; i < e->n_ports; i++)
		if (e->ports[i] == 0)
			return false;
	for (uint32_t i = 0; i < e->n_blocks; i++)
		if (e->blocks[i].bits > 128)
			return false;
	return true;
}

int wire_check_box(const struct wire_box *box, uint64_t size, struct err *err)
{
	const struct wire_blob *blob = &box->blob;

	if (check_blob(blob, size, sizeof(*box), WIRE_BOX_MAGIC, err) < 0)
		return -EPROTO;
	if (box->n_mounts > WIRE_MAX_MOUNTS || box->n_ours > box->n_mounts ||
	    box->limits.cpu_period_us == 0 || box->oom_score_adj > 1000 ||
	    box->rlimits_set >> WIRE_RLIMITS || !egress_check(&box->egress))
		return err_set(err, EPROTO, "the spec has bad numbers");
	for (uint32_t i = 0; i < box->n_mounts; i++)
		if (!mount_check(box, &box->mounts[i]))
			return outside(err);
	if (box->image && !is_digits(wire_str(blob, box->image)))
		return outside(err);
	if (!wire_str(blob, box->hostname) ||
	    !wire_str(blob, box->domainname) ||
	    !records_check(blob, box->records) ||
	    !records_are_in_root(blob, box->records))
		return outside(err);
	return 0;
}

static bool step_check(const struct wire_blob *blob, const struct wire_step *s)
{
	return s->argv.count > 0 && s->join <= WIRE_BY_PIPE &&
	       wire_vec_check(blob, s->argv) && records_check(blob, s->files) &&
	       s->input.off <= blob->size &&
	       s->input.len <= blob->size - s->input.off;
}

int wire_check_work(const struct wire_work *work, uint64_t size,
		    struct err *err)
{
	const struct wire_blob *blob = &work->blob;

	if (check_blob(blob, size, sizeof(*work), WIRE_WORK_MAGIC, err) < 0)
		return -EPROTO;
	if (work->n_steps == 0 || work->n_steps > WIRE_MAX_STEPS ||
	    work->n_groups > WIRE_MAX_GROUPS)
		return err_set(err, EPROTO, "the spec has bad numbers");
	for (uint32_t i = 0; i < work->n_steps; i++)
		if (!step_check(blob, &work->steps[i]))
			return outside(err);
	if (!wire_str(blob, work->workdir) || !wire_str(blob, work->path) ||
	    !wire_vec_check(blob, work->env) ||
	    !records_check(blob, work->records))
		return outside(err);
	return 0;
}
