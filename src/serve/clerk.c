/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The clerk: the only one of the daemon that writes to the ledger.
 *
 * Takes all messages that wait, appends each, makes all of them last with one
 * fdatasync(2), then answers all. While it waits for the disk the next ones
 * gather: the more there are, the less each costs. If the disk fails, every
 * answer says so, and the front starts nothing.
 *
 * It reads what the front wrote (ledger_append() checks it as JSON of the
 * record's kind), so it is shut in: no capability, the ledger's directory, and
 * the calls for that.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/say.h"
#include "base/util.h"
#include "ledger/ledger.h"
#include "os/allow.h"
#include "os/caps.h"
#include "os/landlock.h"
#include "serve/daemon.h"

#define MAX_RECORD (1U << 20)
#define MAX_GROUP  64

/* What a client's wish can lead to; the others are the ledger's own. */
static const char *const kinds_taken[] = {
	"run.start", "run.end",    "decision",        "command",
	"file.in",   "file.out",   "connection",      "approval.request",
	"tool.call", "model.call", "approval.answer",
};

static const int calls[] = {
	SYS_read,
	SYS_write,
	SYS_writev,
	SYS_pread64,
	SYS_pwrite64,
	SYS_lseek,
	SYS_close,
	SYS_openat,
#ifdef SYS_open
	SYS_open,
	SYS_poll,
	SYS_stat,
	SYS_lstat,
#endif
	SYS_ppoll,
	SYS_fstat,
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
	SYS_statx,
	SYS_fcntl,
	SYS_fsync,
	SYS_fdatasync,
	SYS_ftruncate,
	SYS_sendmsg,
	SYS_recvmsg,
	SYS_sendto,
	SYS_recvfrom,
	SYS_getdents64,
	SYS_mmap,
	SYS_munmap,
	SYS_mprotect,
	SYS_madvise,
	SYS_mremap,
	SYS_brk,
	SYS_clock_gettime,
	SYS_getpid,
	SYS_getppid,
	SYS_geteuid,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_restart_syscall,
	SYS_futex,
	SYS_exit,
	SYS_exit_group,
	SYS_fallocate,
};

/* Only the ledger's directory, and in it files. */
static int enter_landlock(struct err *err)
{
	_cleanup_fd_ int dir = NO_FD;
	struct landlock l;
	char path[PATH_MAX];

	if (landlock_abi() == 0)
		return 0; /* the filter and no capabilities stand */
	if (ledger_dir(path, sizeof(path), err) < 0 ||
	    landlock_open(&l, err) < 0)
		return -err->code;
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		fd_close(&l.fd);
		return err_errno(err, errno, "open '%s'", path);
	}
	if (landlock_allow(&l, dir, true, LANDLOCK_WRITE, err) < 0) {
		fd_close(&l.fd);
		return -err->code;
	}
	return landlock_enter(&l, err);
}

static int shut_in(struct err *err)
{
	const struct rlimit no_core = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, errno, "give up new privileges");
	if (enter_landlock(err) < 0 ||
	    (geteuid() == 0 ? caps_drop_all(err) : caps_drop_held(err)) < 0)
		return -err->code;
	return allow_calls(calls, ARRAY_SIZE(calls), NULL, 0, err);
}

static bool is_taken(const struct order *o)
{
	if (o->type != ORDER_RECORD || !memchr(o->kind, 0, sizeof(o->kind)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds_taken); i++)
		if (strcmp(o->kind, kinds_taken[i]) == 0)
			return true;
	return false;
}

static void append(struct ledger *l, const struct order *o, const int *fds,
		   int n, struct err *err)
{
	struct buf text;

	if (!is_taken(o) || n != 1) {
		(void)err_set(err, EPROTO, "that is no record of the front's");
		return;
	}
	buf_init(&text, MAX_RECORD);
	if (doc_read(fds[0], &text, err) == 0 &&
	    (!text.data || strlen(text.data) != text.len))
		(void)err_set(err, EINVAL, "a record has a NUL byte");
	if (!err->code)
		(void)ledger_append(l, o->kind, text.data, NULL, err);
	buf_done(&text);
}

/* An end for a run that may have one: it gets no second one. */
static void settle_run(struct ledger *l, const struct order *o, const int *fds,
		       int n, struct order_answer *a)
{
	struct order record = { .type = ORDER_RECORD, .kind = "run.end" };
	struct ledger_found found = { .has_start = true };

	if (strnlen(o->run, sizeof(o->run)) != 32 ||
	    (o->from && o->from < LEDGER_START)) {
		(void)err_set(&a->err, EPROTO, "that is no run of the front's");
		return;
	}
	if (o->from && ledger_find_run(l, o->from, o->run, &found, &a->err) < 0)
		return;
	if (found.has_end) {
		a->settled = SETTLED_BEFORE;
		a->exit_code = found.exit_code;
		memcpy(a->cause, found.cause, sizeof(a->cause));
	} else if (o->may_be_new && !found.has_start) {
		a->settled = SETTLED_NEVER;
	} else {
		append(l, &record, fds, n, &a->err);
	}
}

static void obey(struct ledger *l, const struct order *o, const int *fds, int n,
		 struct order_answer *a)
{
	memset(a, 0, sizeof(*a));
	a->type = ORDER_ANSWER;
	a->number = o->number;
	if (o->type == ORDER_SETTLE)
		settle_run(l, o, fds, n, a);
	else if (o->type != ORDER_WHERE || n != 0)
		append(l, o, fds, n, &a->err);
}

struct group {
	struct order_answer answers[MAX_GROUP];
	int n;
};

/* All that wait, up to a number; false: the front is gone. */
static bool gather(struct ledger *l, int sock, struct group *g)
{
	g->n = 0;
	while (g->n < MAX_GROUP) {
		struct order_answer *a = &g->answers[g->n];
		struct order o;
		int fds[IO_MAX_FDS];
		int n = 0;
		ssize_t len = io_recv(sock, &o, sizeof(o), MSG_DONTWAIT, fds,
				      &n);

		if (len == -EAGAIN)
			return true;
		if (len == sizeof(o)) {
			obey(l, &o, fds, n, a);
			g->n++;
		}
		for (int i = 0; i < n; i++)
			fd_close(&fds[i]);
		if (len != sizeof(o))
			return false;
	}
	return true;
}

static void settle(struct ledger *l, int sock, struct group *g)
{
	struct err err = { 0 };
	uint64_t position = 0;
	bool has_any = false;

	for (int i = 0; i < g->n; i++)
		has_any |= g->answers[i].err.code == 0;
	if (has_any && ledger_sync(l, &err) < 0) {
		say("the ledger: %s", err.text);
		for (int i = 0; i < g->n; i++)
			if (g->answers[i].err.code == 0)
				g->answers[i].err = err;
	}
	/* Without it the front looks for runs in all of the ledger. */
	if (g->n > 0)
		(void)ledger_where(l, &position, &err);
	for (int i = 0; i < g->n; i++) {
		g->answers[i].position = position;
		(void)answer_send(sock, &g->answers[i], NULL, 0);
	}
}

static void keep_books(struct ledger *l, int sock, int parent)
{
	static struct group g;
	struct pollfd fds[] = { { .fd = sock, .events = POLLIN },
				{ .fd = parent, .events = POLLIN } };
	bool goes_on = true;

	while (goes_on) {
		/* The parent says nothing; it can only go. */
		if (poll(fds, 2, -1) < 0)
			continue;
		goes_on = !fds[1].revents;
		do {
			goes_on &= gather(l, sock, &g);
			settle(l, sock, &g);
		} while (g.n == MAX_GROUP);
		if (ledger_take_seal_due(l))
			(void)send(parent, "s", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

void clerk_run(int sock, int parent)
{
	struct ledger *l = NULL;
	struct err err = { 0 };
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (ledger_open(NULL, &l, &err) < 0 || shut_in(&err) < 0) {
		say("the clerk: %s", err.text);
		_exit(1);
	}
	keep_books(l, sock, parent);
	ledger_close(l);
	_exit(0);
}
