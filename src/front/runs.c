/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs that may be without an end on the ledger: the file `open-runs`.
 *
 * Each has a slot of 64 bytes, from before its start is recorded until its end
 * is known to be on the disk:
 *
 *	0   32  the run's id; zeros: a free slot
 *	32   1  'n': its start may be on the ledger, and more
 *	        'r': its start is there, and nothing else
 *	        'e': its end may be there
 *	33   1  a space
 *	34  16  for 'n' and 'e': from where on, hex (orders.h: position)
 *	50  13  zeros
 *	63   1  a newline
 *
 * The clerk's answer and what we note of it are two moments, and we can be
 * killed in between. So the next front does not guess: of a run that is 'n' or
 * 'e' it has the clerk look from that place on whether there is an end, and
 *only where there is none one is recorded, `lost`. That is exact, and costs no
 *more than what was recorded since the end was sent. A slot stays until it was
 * answered, so that any number of deaths leave one end.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "base/util.h"
#include "box/result.h"
#include "front/front.h"

#define RUN_SIZE   32
#define SLOT_SIZE  64
#define MAX_RUNS   65536
#define AT_ONCE    64
#define ALL_OF_IT  (1ULL << 32) /* the ledger's first byte */
#define STATE_AT   32
#define PLACE_AT   34
#define PLACE_SIZE 16

/* One that an earlier front has left. */
struct left {
	char run[RUN_SIZE + 1];
	char state;
	uint64_t from;
	int slot;
	bool is_of_box; /* which tells it */
};

struct runs {
	int fd;
	unsigned char used[MAX_RUNS / 8];
	struct left *left;
	size_t n_left, next_left, under_way;
};

/* ---- slots ---- */

static uint64_t position(const struct manager *m)
{
	uint64_t p = orders_position(m->clerk);

	return p ? p : ALL_OF_IT;
}

static int write_slot(struct manager *m, int slot, const char *run, char state)
{
	char bytes[SLOT_SIZE] = { 0 };

	(void)snprintf(bytes, sizeof(bytes), "%.32s%c %016llx", run, state,
		       (unsigned long long)position(m));
	bytes[SLOT_SIZE - 1] = '\n';
	if (pwrite(m->runs->fd, bytes, SLOT_SIZE, (off_t)slot * SLOT_SIZE) !=
	    SLOT_SIZE)
		return -EIO;
	return 0;
}

static bool is_used(const struct runs *r, int slot)
{
	return r->used[slot / 8] & 1U << slot % 8;
}

int runs_add(struct manager *m, const char *run, struct err *err)
{
	for (int i = 0; i < MAX_RUNS; i++) {
		if (is_used(m->runs, i))
			continue;
		/* Without it nobody would tell its end, if we die. */
		if (write_slot(m, i, run, 'n') < 0)
			return err_set(err, MGR_SETUP,
				       "'open-runs' cannot be written");
		m->runs->used[i / 8] |= (unsigned char)(1U << i % 8);
		return i;
	}
	return err_set(err, MGR_BUSY, "%d programs run, which is the limit",
		       MAX_RUNS);
}

void runs_began(struct manager *m, int slot, const char *run)
{
	if (slot >= 0)
		(void)write_slot(m, slot, run, 'r');
}

void runs_ending(struct manager *m, int slot, const char *run)
{
	/* If it cannot be written the run is still 'r': two ends, not none. */
	if (slot >= 0)
		(void)write_slot(m, slot, run, 'e');
}

void runs_drop(struct manager *m, int slot)
{
	static const char zeros[SLOT_SIZE];

	if (slot < 0)
		return;
	(void)!pwrite(m->runs->fd, zeros, SLOT_SIZE, (off_t)slot * SLOT_SIZE);
	m->runs->used[slot / 8] &= (unsigned char)~(1U << slot % 8);
}

struct ended {
	struct manager *m;
	int slot;
};

static void was_ended(void *arg, const struct order_answer *a, int *fds, int n)
{
	struct ended *e = arg;

	(void)fds;
	(void)n;
	e->m->n_records--;
	if (!a->err.code)
		runs_drop(e->m, e->slot);
	free(e);
}

void runs_end(struct manager *m, int slot, const struct end_facts *facts)
{
	_cleanup_free_ char *members = record_end(facts);
	struct ended *e = malloc(sizeof(*e));
	struct err unused;

	runs_ending(m, slot, facts->run);
	if (!e)
		return;
	*e = (struct ended){ m, slot };
	m->n_records++;
	if (orders_record(m->clerk, "run.end", members, was_ended, e, &unused) <
	    0) {
		m->n_records--;
		free(e);
	}
}

/* ---- what an earlier front has left ---- */

static struct box *box_of(const struct manager *m, const char *run)
{
	struct box *b = m->boxes;

	while (b && strcmp(b->run, run) != 0)
		b = b->next;
	return b;
}

static bool parse_slot(const char bytes[SLOT_SIZE], struct left *ret)
{
	char place[PLACE_SIZE + 1] = "";

	memcpy(ret->run, bytes, RUN_SIZE);
	ret->run[RUN_SIZE] = '\0';
	ret->state = bytes[STATE_AT];
	memcpy(place, bytes + PLACE_AT, PLACE_SIZE);
	if (!id_check(ret->run, RUN_SIZE))
		return false;
	/* What is not as we write it is looked for everywhere. */
	ret->from = id_check(place, PLACE_SIZE) ? strtoull(place, NULL, 16) : 0;
	if (ret->from < ALL_OF_IT || !strchr("nre", ret->state)) {
		ret->from = ALL_OF_IT;
		ret->state = 'n';
	}
	return true;
}

static int take_left(struct manager *m, const char bytes[SLOT_SIZE], int slot)
{
	struct runs *r = m->runs;
	struct left one = { .slot = slot };
	struct left *all;
	struct box *b;

	if (!parse_slot(bytes, &one))
		return 0;
	all = realloc(r->left, (r->n_left + 1) * sizeof(one));
	if (!all)
		return -ENOMEM;
	r->left = all;
	r->used[slot / 8] |= (unsigned char)(1U << slot % 8);
	b = box_of(m, one.run);
	if (b) {
		/* Maybe it had begun, and its note does not tell. */
		b->is_run_used = true;
		one.is_of_box = b->state == BOX_RUNNING;
		if (one.is_of_box)
			b->slot = slot;
	}
	all[r->n_left++] = one;
	return 0;
}

int runs_open(struct manager *m, struct err *err)
{
	char bytes[SLOT_SIZE];

	m->runs = calloc(1, sizeof(*m->runs));
	if (!m->runs)
		return err_set(err, ENOMEM, "out of memory");
	m->runs->fd = openat(m->state_fd, "open-runs",
			     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (m->runs->fd < 0)
		return err_errno(err, errno, "open 'open-runs'");
	for (int i = 0; i < MAX_RUNS; i++) {
		if (pread(m->runs->fd, bytes, SLOT_SIZE,
			  (off_t)i * SLOT_SIZE) != SLOT_SIZE)
			break;
		if (take_left(m, bytes, i) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

void runs_close(struct manager *m)
{
	if (m->runs) {
		fd_close(&m->runs->fd);
		free(m->runs->left);
	}
	free(take_ptr(m->runs));
}

static const struct left *find_left(const struct runs *r, int slot)
{
	for (size_t i = 0; i < r->n_left; i++)
		if (r->left[i].slot == slot)
			return &r->left[i];
	return NULL;
}

int runs_settle(struct manager *m, int slot, const struct end_facts *facts,
		order_done_fn *done, void *arg, struct err *err)
{
	const struct left *left = slot >= 0 ? find_left(m->runs, slot) : NULL;
	_cleanup_free_ char *members = record_end(facts);
	struct order_want want = { .type = ORDER_SETTLE,
				   .run = facts->run,
				   .from = left ? left->from : ALL_OF_IT,
				   .may_be_new = left && left->state == 'n' };

	if (left && left->state == 'r') {
		want.from = 0;
		runs_ending(m, slot, facts->run);
	}
	return orders_send_text(m->clerk, &want, members, done, arg, err);
}

static void settle_next(struct manager *m);

static void was_settled(void *arg, const struct order_answer *a, int *fds,
			int n)
{
	struct ended *e = arg;
	struct manager *m = e->m;

	(void)fds;
	(void)n;
	if (!a->err.code)
		runs_drop(m, e->slot);
	else
		say("the end of a lost program is not on the ledger: %s",
		    a->err.text);
	free(e);
	m->n_records--;
	m->runs->under_way--;
	settle_next(m);
}

static void settle_one(struct manager *m, const struct left *l)
{
	const struct end_facts facts = { .run = l->run,
					 .cause = cause_name(CAUSE_LOST),
					 .status = "error",
					 .message = "lost: the daemon ended",
					 .exit_code = 125 };
	struct ended *e = malloc(sizeof(*e));
	struct err unused;

	if (!e)
		return; /* its slot stays, for the next front */
	*e = (struct ended){ m, l->slot };
	m->n_records++;
	m->runs->under_way++;
	if (runs_settle(m, l->slot, &facts, was_settled, e, &unused) == 0)
		return;
	m->n_records--;
	m->runs->under_way--;
	free(e);
}

static void settle_next(struct manager *m)
{
	struct runs *r = m->runs;

	while (r->next_left < r->n_left && r->under_way < AT_ONCE) {
		const struct left *l = &r->left[r->next_left++];

		if (!l->is_of_box)
			settle_one(m, l);
	}
}

/* From here on it is known where the ledger ends. */
static void is_known(void *arg, const struct order_answer *a, int *fds, int n)
{
	struct manager *m = arg;
	struct box *next;

	(void)fds;
	(void)n;
	m->n_records--;
	/* The clerk is gone, and so will we be. */
	if (a->err.code == EPIPE)
		return;
	settle_next(m);
	for (struct box *b = m->boxes; b; b = next) {
		next = b->next;
		if (b->is_lost && b->is_ending)
			box_lost(b);
	}
}

/* Nothing of an earlier keeper is alive: what it left can be looked at. */
static void is_clean(void *arg, bool clean)
{
	const struct order_want want = { .type = ORDER_WHERE };
	struct manager *m = arg;
	struct err unused;

	m->is_unclean = !clean;
	if (orders_ask(m->clerk, &want, is_known, m, &unused) < 0)
		m->n_records--;
}

int runs_reconcile(struct manager *m, struct err *err)
{
	int r;

	bool has_any = m->runs->n_left > 0;

	for (struct box *b = m->boxes; b; b = b->next)
		if (b->state == BOX_RUNNING) {
			b->is_lost = b->is_ending = true;
			has_any = true;
		}
	if (!has_any)
		return 0;
	m->n_records++;
	r = sessions_ask_swept(m->sessions, is_clean, m);
	return r < 0 ? err_errno(err, -r, "ask the keeper") : 0;
}
