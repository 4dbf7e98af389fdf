/* SPDX-License-Identifier: Apache-2.0 */
#include "box/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"

int pack_init(struct pack *p, size_t head, struct err *err)
{
	p->err.code = 0;
	p->used = 0;
	p->head = head;
	p->end = head;
	p->records = (struct wire_records){ 0 };
	p->below = NULL;
	p->budget = WIRE_MAX_SIZE / 2;
	p->fd = memfd_create("cordon-spec", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->fd < 0)
		return err_errno(err, errno, "make a memfd");
	if (lseek(p->fd, (off_t)head, SEEK_SET) < 0)
		return err_errno(err, errno, "seek in a memfd");
	return 0;
}

void pack_done(struct pack *p)
{
	fd_close(&p->fd);
}

static void flush(struct pack *p)
{
	int r = p->err.code ? 0 : io_write_all(p->fd, p->buffer, p->used);

	if (r < 0)
		err_errno(&p->err, -r, "write the spec");
	p->used = 0;
}

static void add(struct pack *p, const void *data, size_t len)
{
	p->end += len;
	if (p->end > WIRE_MAX_SIZE) {
		err_set(&p->err, E2BIG,
			"the command, its environment and its files are "
			"larger than %llu MiB",
			WIRE_MAX_SIZE >> 20);
		return;
	}
	if (len > sizeof(p->buffer) - p->used)
		flush(p);
	if (len > sizeof(p->buffer)) {
		int r = p->err.code ? 0 : io_write_all(p->fd, data, len);

		if (r < 0)
			err_errno(&p->err, -r, "write the spec");
		return;
	}
	if (len > 0)
		memcpy(p->buffer + p->used, data, len);
	p->used += len;
}

uint32_t pack_string(struct pack *p, const char *text)
{
	uint64_t at = p->end;

	add(p, text, strlen(text) + 1);
	return (uint32_t)at;
}

struct wire_vec pack_vector(struct pack *p, const struct strv *list)
{
	struct wire_vec vec = { .off = (uint32_t)p->end,
				.count = (uint32_t)list->n };

	for (size_t i = 0; i < list->n; i++)
		pack_string(p, list->v[i]);
	return vec;
}

struct wire_mount *pack_mount(struct pack *p, struct wire_box *box,
			      enum wire_mount_kind kind, int flags,
			      const char *source, const char *target)
{
	static struct wire_mount nowhere;
	struct wire_mount *m = &box->mounts[box->n_mounts];

	if (box->n_mounts == WIRE_MAX_MOUNTS) {
		err_set(&p->err, E2BIG, "more than %d mounts", WIRE_MAX_MOUNTS);
		return &nowhere;
	}
	box->n_mounts++;
	m->kind = (uint8_t)kind;
	m->flags = (uint8_t)flags;
	m->source = source ? pack_string(p, source) : 0;
	m->target = pack_string(p, target);
	return m;
}

void pack_step(struct pack *p, struct wire_work *work, const char *const *argv,
	       int flags)
{
	struct wire_step *step = &work->steps[work->n_steps];

	if (work->n_steps == WIRE_MAX_STEPS) {
		err_set(&p->err, E2BIG, "more than %d steps", WIRE_MAX_STEPS);
		return;
	}
	work->n_steps++;
	step->flags = (uint32_t)flags;
	step->argv.off = (uint32_t)p->end;
	for (; argv[step->argv.count]; step->argv.count++)
		pack_string(p, argv[step->argv.count]);
}

void pack_step_input(struct pack *p, struct wire_work *work, const void *data,
		     size_t len)
{
	struct wire_step *step = &work->steps[work->n_steps - 1];

	step->flags |= WIRE_STEP_INPUT;
	step->input = (struct wire_bytes){ .off = p->end, .len = len };
	add(p, data, len);
}

static void align(struct pack *p)
{
	static const char zero[8];

	add(p, zero, (8 - p->end % 8) % 8);
}

void pack_records_begin(struct pack *p)
{
	align(p);
	p->records = (struct wire_records){ .off = p->end };
}

static void record_head(struct pack *p, const struct wire_record *rec,
			const char *path)
{
	struct wire_record head = *rec;
	const char *below = p->below ? p->below : "";
	size_t len = strlen(path);

	head.path_len = (uint32_t)(strlen(below) + len);
	add(p, &head, sizeof(head));
	add(p, below, head.path_len - len);
	add(p, path, len + 1U);
	p->records.count++;
}

void pack_record(struct pack *p, const struct wire_record *rec,
		 const char *path, const void *data)
{
	record_head(p, rec, path);
	add(p, data, rec->data_len);
	align(p);
}

uint64_t pack_record_fd(struct pack *p, const struct wire_record *rec,
			const char *path, int fd)
{
	uint64_t left = rec->data_len;
	uint64_t at;

	record_head(p, rec, path);
	flush(p);
	at = p->end;
	while (left > 0 && !p->err.code) {
		ssize_t n = sendfile(p->fd, fd, NULL, MIN(left, 1U << 30));

		if (n < 0)
			err_errno(&p->err, errno, "read '%s'", path);
		else if (n == 0)
			err_set(&p->err, EIO,
				"'%s' became shorter while it was read", path);
		else
			left -= (uint64_t)n;
	}
	p->end += rec->data_len;
	align(p);
	return at;
}

int pack_seal(struct pack *p, struct wire_blob *head, uint32_t magic,
	      struct err *err)
{
	flush(p);
	head->magic = magic;
	head->size = p->end;
	if (!p->err.code &&
	    (pwrite(p->fd, head, p->head, 0) != (ssize_t)p->head ||
	     io_seal(p->fd) < 0))
		err_errno(&p->err, errno, "seal the spec");
	if (p->err.code) {
		*err = p->err;
		pack_done(p);
		return -err->code;
	}
	return take_fd(&p->fd);
}
