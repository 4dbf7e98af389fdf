/* SPDX-License-Identifier: Apache-2.0 */
#include "box/wire.h"

#include <errno.h>
#include <string.h>

const char *wire_str(const struct wire_spec *spec, uint32_t off)
{
	const char *base = (const char *)spec;

	if (off < sizeof(*spec) || off >= spec->size ||
	    !memchr(base + off, '\0', spec->size - off))
		return NULL;
	return base + off;
}

bool wire_vec_check(const struct wire_spec *spec, struct wire_vec vec)
{
	uint64_t off = vec.off;

	for (uint32_t i = 0; i < vec.count; i++) {
		const char *s;

		if (off > UINT32_MAX)
			return false;
		s = wire_str(spec, (uint32_t)off);
		if (!s)
			return false;
		off += strlen(s) + 1;
	}
	return true;
}

static bool records_check(const struct wire_spec *spec)
{
	uint64_t off = spec->records_off;

	for (uint32_t i = 0; i < spec->n_records; i++) {
		struct wire_record rec;
		uint64_t left;

		if (off % 8 || off < sizeof(*spec) ||
		    off + sizeof(rec) > spec->size)
			return false;
		memcpy(&rec, (const char *)spec + off, sizeof(rec));
		off += sizeof(rec);
		left = spec->size - off;
		if (rec.path_len == 0 || rec.path_len >= left ||
		    ((const char *)spec)[off + rec.path_len] != '\0' ||
		    strlen((const char *)spec + off) != rec.path_len)
			return false;
		left -= rec.path_len + 1U;
		if (rec.data_len > left || rec.kind > WIRE_LINK)
			return false;
		off += rec.path_len + 1U + rec.data_len;
		off = (off + 7) & ~7ULL;
	}
	return true;
}

static bool strings_check(const struct wire_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_mounts; i++) {
		const struct wire_mount *m = &spec->mounts[i];

		if (!wire_str(spec, m->target) || m->kind > WIRE_TMPFS ||
		    (m->kind != WIRE_TMPFS && !wire_str(spec, m->source)))
			return false;
	}
	for (uint32_t i = 0; i < spec->n_steps; i++)
		if (spec->steps[i].argv.count == 0 ||
		    !wire_vec_check(spec, spec->steps[i].argv))
			return false;
	return wire_str(spec, spec->hostname) && wire_str(spec, spec->workdir) &&
	       wire_str(spec, spec->path) && wire_vec_check(spec, spec->env);
}

int wire_check(const struct wire_spec *spec, uint64_t size, struct err *err)
{
	if (size < sizeof(*spec) || size > WIRE_MAX_SIZE ||
	    spec->magic != WIRE_MAGIC || spec->size != size)
		return err_set(err, EPROTO, "the spec has another layout");
	if (spec->n_mounts > WIRE_MAX_MOUNTS || spec->n_steps == 0 ||
	    spec->n_steps > WIRE_MAX_STEPS)
		return err_set(err, EPROTO, "the spec has too many parts");
	if (!strings_check(spec) || !records_check(spec))
		return err_set(err, EPROTO, "the spec points outside itself");
	return 0;
}
