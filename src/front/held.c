/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that are held for a peer: what boxes and programs were asked for, in
 * our memory and in blobs. A number of boxes or programs is no bound on them,
 * since each can be as large as a request. Above the limit of one peer, or of
 * all, nothing more is taken.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "front/exec.h"

#define OF_EACH 1024 /* the structure itself, and its note */

struct held {
	struct held *next;
	uid_t uid;
	size_t n;
};

static struct held **find(struct manager *m, uid_t uid)
{
	struct held **p = &m->held;

	while (*p && (*p)->uid != uid)
		p = &(*p)->next;
	return p;
}

static struct held *find_or_make(struct manager *m, uid_t uid)
{
	struct held **p = find(m, uid);

	if (!*p)
		*p = calloc(1, sizeof(**p));
	if (*p)
		(*p)->uid = uid;
	return *p;
}

static int add(struct manager *m, uid_t uid, size_t n, struct err *err)
{
	struct held *h = find_or_make(m, uid);

	if (!h)
		return err_set(err, ENOMEM, "out of memory");
	if (err && h->n + n > m->limits.bytes_a_peer)
		return err_set(err, MGR_BUSY,
			       "%zu MiB are held for this user, which is the "
			       "limit; remove some boxes or programs",
			       h->n >> 20);
	if (err && m->held_bytes + n > m->limits.bytes)
		return err_set(err, MGR_BUSY,
			       "%zu MiB are held for all users, which is the "
			       "limit",
			       m->held_bytes >> 20);
	h->n += n;
	m->held_bytes += n;
	return 0;
}

static void drop(struct manager *m, uid_t uid, size_t n)
{
	struct held **p = find(m, uid);
	struct held *h = *p;

	if (!h || n == 0)
		return;
	h->n -= MIN(n, h->n);
	m->held_bytes -= MIN(n, m->held_bytes);
	if (h->n > 0)
		return;
	*p = h->next;
	free(h);
}

void held_free(struct manager *m)
{
	while (m->held) {
		struct held *next = m->held->next;

		free(m->held);
		m->held = next;
	}
}

/* What was counted for it before becomes this. */
static int change(struct manager *m, uid_t uid, size_t *held, size_t now,
		  struct err *err)
{
	if (now > *held && add(m, uid, now - *held, err) < 0)
		return err ? -err->code : -ENOMEM;
	if (now < *held)
		drop(m, uid, *held - now);
	*held = now;
	return 0;
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static size_t words_size(const struct strv *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += strlen(v->v[i]) + 1 + sizeof(char *);
	return n;
}

static size_t blob_size(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
}

int box_hold(struct box *b, struct err *err)
{
	const char *const texts[] = { b->settings, b->extra,      b->command,
				      b->code,     b->spec,       b->warnings,
				      b->clamped,  b->start,      b->watches,
				      b->who,      b->violations, b->gate_again,
				      b->gate_used };
	size_t n = OF_EACH + sizeof(*b);

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		n += text_size(texts[i]);
	n += blob_size(b->box_fd) + blob_size(b->work_fd);
	return change(b->m, b->owner, &b->held, n, err);
}

void box_let_go(struct box *b)
{
	(void)change(b->m, b->owner, &b->held, 0, NULL);
}

int exec_hold(struct exec *e, struct err *err)
{
	size_t n = OF_EACH + sizeof(*e) + words_size(&e->command) +
		   words_size(&e->env) + text_size(e->workdir) +
		   text_size(e->user) + text_size(e->code) +
		   text_size(e->start) + blob_size(e->work_fd);

	return change(e->m, e->owner, &e->held, n, err);
}

void exec_let_go(struct exec *e)
{
	(void)change(e->m, e->owner, &e->held, 0, NULL);
}
