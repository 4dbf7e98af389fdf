/* SPDX-License-Identifier: Apache-2.0 */
#include "box/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "box/egress-parts.h"
#include "box/handle.h"
#include "os/clone.h"
#include "os/slice.h"
#include "os/uapi.h"

#define GATE "cordon-gate"

/* How long a gate may take to make its authority, and to end. */
#define CA_MS  5000
#define END_MS 1500

#define MAX_CA (64U << 10)

/* the process */

struct birth {
	const char *path;
	char parent[16]; /* our pid, in digits */
	int client, box, desk;
	volatile int error;
};

/* In the child, with our memory, until it is the gate. */
static void become_gate(void *arg)
{
	static const char *const env[] = { NULL };
	struct birth *b = arg;
	bool asks = b->desk >= 0;
	const char *argv[] = { GATE, b->parent, asks ? GATE_HAS_DESK : NULL,
			       NULL };
	unsigned int n = asks ? GATE_FD_DESK + 1 : GATE_FD_BOX + 1;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	slice_usual();
	(void)sigemptyset(&none);
	if (null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 &&
	    dup2(null, 2) >= 0 && dup2(b->client, GATE_FD_CLIENT) >= 0 &&
	    dup2(b->box, GATE_FD_BOX) >= 0 &&
	    (!asks || dup2(b->desk, GATE_FD_DESK) >= 0) &&
	    sys_close_range(n, ~0U) == 0 && chdir("/") == 0 &&
	    /* Ctrl-C is for the client, which ends it in order. */
	    setsid() >= 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		(void)execve(b->path, (char **)argv, (char **)env);
	b->error = errno;
	_exit(127);
}

/* Out of the way of the numbers that they get; NO_FD stays that. */
static int twin(int fd)
{
	return fd < 0 ? NO_FD : fcntl(fd, F_DUPFD_CLOEXEC, 10);
}

static int spawn(const char *path, const int *fds, pid_t *ret_pid,
		 int *ret_pidfd)
{
	struct uapi_clone_args args = {
		.flags = UAPI_CLONE_CLEAR_SIGHAND | UAPI_CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};
	_cleanup_fd_ int client = twin(fds[0]);
	_cleanup_fd_ int box = twin(fds[1]);
	_cleanup_fd_ int desk = twin(fds[2]);
	struct birth birth = {
		.path = path, .client = client, .box = box, .desk = desk
	};
	sigset_t all;
	sigset_t before;
	pid_t pid;

	if (client < 0 || box < 0 || (fds[2] >= 0 && desk < 0))
		return -errno;
	(void)snprintf(birth.parent, sizeof(birth.parent), "%d", getpid());
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone_vfork(&args, become_gate, &birth);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid < 0) {
		*ret_pidfd = NO_FD; /* the kernel may have said a number */
		return pid;
	}
	*ret_pid = pid;
	return birth.error ? -birth.error : 0;
}

int egress_spawn(int client, int box, int desk, pid_t *ret_pid, int *ret_pidfd,
		 struct err *err)
{
	const int fds[] = { client, box, desk };
	char path[PATH_MAX];
	int r;

	if (program_find(GATE, path, sizeof(path), err) < 0)
		return -err->code;
	r = spawn(path, fds, ret_pid, ret_pidfd);
	return r < 0 ? err_errno(err, -r, "start '%s'", path) : 0;
}

/* It ends with its socket; one that does not is killed. */
static void reap(struct egress *e, int patience_ms)
{
	struct pollfd gone = { .fd = e->pidfd, .events = POLLIN };

	if (e->pid <= 0)
		return;
	if (poll(&gone, 1, patience_ms) <= 0)
		(void)sys_pidfd_kill(e->pidfd, SIGKILL);
	while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
		;
	e->pid = 0;
	fd_close(&e->pidfd);
}

static int give_table(struct egress *e, struct egress_table *t, struct err *err)
{
	const struct gate_head head = { GATE_TABLE, ++e->n_tables };
	int r = io_send(e->sock, &head, sizeof(head), &t->fd, 1);

	/* Only the gate has it from here on: it may hold values of secrets. */
	fd_close(&t->fd);
	return r < 0 ? err_errno(err, -r, "give the gate its rules") : 0;
}

int egress_watch(struct egress *e, int fd, uint32_t what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = what };

	return epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int watch_gate(struct egress *e, struct err *err)
{
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (e->epoll < 0 || egress_watch(e, e->sock, FROM_GATE) < 0)
		return err_errno(err, errno, "watch the gate");
	return 0;
}

static void close_ends(struct egress *e)
{
	fd_close(&e->ends[0]);
	fd_close(&e->ends[1]);
}

static int open_ends(struct egress *e, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, errno, "make a socket for the gate");
	e->sock = pair[0];
	e->ends[0] = pair[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, errno, "make a socket for the gate");
	e->box = pair[0];
	e->ends[1] = pair[1];
	return watch_gate(e, err);
}

static int start_gate(struct egress *e, struct err *err)
{
	int r = open_ends(e, err);

	if (r == 0)
		r = e->by.start ? e->by.start(e->by.arg, e->ends[0], e->ends[1],
					      err)
				: egress_spawn(e->ends[0], e->ends[1], NO_FD,
					       &e->pid, &e->pidfd, err);
	close_ends(e);
	return r < 0 ? r : give_table(e, &e->table, err);
}

/*
 * Init gives the gate its sockets as the last thing that it does for the box.
 * Until then all CPUs are busy with that, and a gate would be in its way.
 */
static int plan_gate(struct egress *e, struct err *err)
{
	char path[PATH_MAX];

	if (program_find(GATE, path, sizeof(path), err) < 0 ||
	    open_ends(e, err) < 0 || give_table(e, &e->table, err) < 0)
		return -err->code;
	if (egress_watch(e, e->ends[1], FROM_BOX) < 0)
		return err_errno(err, errno, "watch the box");
	return 0;
}

void egress_start_late(struct egress *e)
{
	if (e->ends[0] < 0)
		return;
	if (egress_spawn(e->ends[0], e->ends[1], NO_FD, &e->pid, &e->pidfd,
			 &e->missing) < 0) {
		(void)err_stage(&e->missing, "gate");
		e->is_ending = true;
	}
	(void)epoll_ctl(e->epoll, EPOLL_CTL_DEL, e->ends[1], NULL);
	close_ends(e);
}

const struct err *egress_missing(const struct egress *e)
{
	return e->missing.code ? &e->missing : NULL;
}

/* its authority */

static int take_ca(struct egress *e, const struct gate_ca *msg, int fd,
		   struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > MAX_CA)
		return err_set(err, EPROTO, "the gate's authority is too long");
	e->ca = calloc(1, (size_t)st.st_size + 1);
	if (!e->ca)
		return err_set(err, ENOMEM, "out of memory");
	if (pread(fd, e->ca, (size_t)st.st_size, 0) != st.st_size)
		return err_errno(err, errno, "read the gate's authority");
	e->spec.ca = e->ca;
	e->spec.ca_hash = msg->subject_hash;
	return 0;
}

static int heard(struct egress *e, const union gate_message *msg, ssize_t n,
		 const int *fds, int n_fds, struct err *err)
{
	if (n <= 0)
		return err_set(err, EPIPE,
			       "the gate ended before it had begun");
	if (n == sizeof(msg->event) && msg->head.type == GATE_FAILED)
		return err_set(err, EIO, "the gate cannot work: %.120s",
			       msg->event.detail);
	if (n == sizeof(msg->ca) && msg->head.type == GATE_CA && n_fds == 1)
		return take_ca(e, &msg->ca, fds[0], err);
	return 0;
}

/* The box will trust it, so nothing is begun before it is known. */
static int await_ca(struct egress *e, struct err *err)
{
	int64_t end = clock_us() + CA_MS * 1000LL;
	int r = 0;

	while (r == 0 && !e->ca) {
		struct pollfd p = { .fd = e->sock, .events = POLLIN };
		int64_t left = (end - clock_us()) / 1000;
		union gate_message msg;
		int fds[IO_MAX_FDS];
		int n_fds = 0;
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			return err_set(err, ETIME,
				       "the gate has no authority after %d s",
				       CA_MS / 1000);
		n = io_recv(e->sock, &msg, sizeof(msg), MSG_DONTWAIT, fds,
			    &n_fds);
		if (n != -EAGAIN)
			r = heard(e, &msg, n, fds, n_fds, err);
		for (int i = 0; i < n_fds; i++)
			(void)close(fds[i]);
	}
	return r;
}

/* the life */

void egress_init(struct egress *e)
{
	memset(e, 0, sizeof(*e));
	e->table.fd = NO_FD;
	e->sock = NO_FD;
	e->box = NO_FD;
	e->epoll = NO_FD;
	e->pidfd = NO_FD;
	e->pause = NO_FD;
	e->ends[0] = NO_FD;
	e->ends[1] = NO_FD;
}

static void describe(struct egress *e)
{
	const struct gate_table *t = e->table.table;
	struct spec_egress *s = &e->spec;

	s->net.n_ports = t->n_ports;
	memcpy(s->net.ports, t->ports, t->n_ports * sizeof(t->ports[0]));
	s->net.n_blocks = (uint32_t)e->table.n_blocks;
	for (size_t i = 0; i < e->table.n_blocks; i++) {
		s->net.blocks[i].bits = e->table.blocks[i].bits;
		memcpy(s->net.blocks[i].address, e->table.blocks[i].address,
		       16);
	}
	s->env = &e->table.env;
	s->hosts = &e->hosts;
}

static int check_table(const struct egress_table *t, struct err *err)
{
	if (t->n_blocks > WIRE_MAX_BLOCKS)
		return err_set(err, E2BIG,
			       "network: %zu blocks of addresses; at most %d "
			       "can be named",
			       t->n_blocks, WIRE_MAX_BLOCKS);
	for (uint32_t i = 0; i < t->table->n_ports; i++)
		if (t->table->ports[i] == 53)
			return err_set(err, EINVAL,
				       "network: port 53 cannot be allowed; "
				       "names are resolved by the gate");
	return 0;
}

int egress_open(struct egress *e, const struct policy *p,
		const struct cordon_spec *s, struct recorder *recorder,
		struct cordon_result *result, struct err *err)
{
	if (!egress_is_wanted(p, s))
		return 0;
	if (egress_table_make(p, s, result->id, NULL, &e->table, err) < 0)
		return -err->code;
	e->is_open = true;
	e->policy = p;
	e->of = s;
	e->recorder = recorder;
	e->result = result;
	result->has_gate = true;
	if (check_table(&e->table, err) < 0)
		return -err->code;
	describe(e);
	if (egress_table_hosts(&e->table, &e->hosts) < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < e->table.notes.n; i++)
		(void)strv_add(&result->warnings, e->table.notes.v[i]);
	if (!e->table.inspects)
		return 0;
	if (start_gate(e, err) < 0)
		return -err->code;
	return await_ca(e, err);
}

int egress_start(struct egress *e, bool is_late, struct err *err)
{
	if (!e->is_open || e->sock >= 0)
		return 0;
	return is_late ? plan_gate(e, err) : start_gate(e, err);
}

int egress_adopt(struct egress *e, int sock, struct strv *said,
		 struct cordon_result *result, struct err *err)
{
	e->sock = sock;
	e->said = *said;
	*said = (struct strv){ 0 };
	e->result = result;
	e->is_open = true;
	result->has_gate = true;
	return watch_gate(e, err);
}

int egress_take_box(struct egress *e)
{
	return take_fd(&e->box);
}

int egress_fd(const struct egress *e)
{
	return e->epoll;
}

int egress_replace(struct egress *e, const struct policy *p, struct err *err)
{
	struct egress_table next = { .fd = NO_FD };
	int r;

	if (!e->is_open || e->sock < 0)
		return err_set(err, ENOTCONN,
			       "this run has no gate; its network cannot be "
			       "changed");
	if (egress_table_make(p, e->of, e->result->id, &e->table, &next, err) <
	    0)
		return -err->code;
	if (next.inspects && !e->table.inspects) {
		egress_table_done(&next);
		return err_set(err, EOPNOTSUPP,
			       "the box does not know the gate's authority: "
			       "rules with methods, paths or secrets must be "
			       "there from its start");
	}
	r = give_table(e, &next, err);
	if (r < 0) {
		egress_table_done(&next);
		return r;
	}
	/* Its environment and its warnings are those it began with. */
	strv_done(&next.env);
	next.env = e->table.env;
	e->table.env = (struct strv){ 0 };
	free(e->before);
	e->before = take_ptr(e->table.table);
	egress_table_done(&e->table);
	e->table = next;
	e->policy = p;
	e->spec.env = &e->table.env;
	return 0;
}

void egress_close(struct egress *e, bool is_cut)
{
	const struct gate_head cut = { GATE_CUT, 0 };

	if (!e->is_open || e->sock < 0 || e->is_ending)
		return;
	fd_close(&e->box);
	egress_withdraw(e);
	if (is_cut)
		(void)io_send_now(e->sock, &cut, sizeof(cut), NULL, 0);
	(void)shutdown(e->sock, SHUT_WR);
	e->is_ending = true;
	egress_listen(e);
}

bool egress_is_over(const struct egress *e)
{
	return e->sock < 0;
}

void egress_give_up(struct egress *e)
{
	(void)strv_add(&e->result->warnings,
		       "the gate did not end in time; its last connections "
		       "are not on the record");
	if (e->pidfd >= 0)
		(void)sys_pidfd_kill(e->pidfd, SIGKILL);
	fd_close(&e->sock);
	egress_note_more(e);
}

/*
 * Its last words are read to the end: each connection that was open is told
 * as closed. A gate that takes too long is killed, and that is told.
 */
void egress_end(struct egress *e, const struct wire_outcome *o)
{
	int64_t end = clock_us() + END_MS * 1000LL;

	egress_unrouted(e, o->net_refused);
	/* Who is to tell of what waits for it? */
	if (o->net_opened > 0)
		egress_start_late(e);
	close_ends(e);
	if (!e->is_open || e->sock < 0)
		return;
	egress_close(e, o->end != WIRE_BY_ITSELF);
	egress_hear(e);
	/*
	 * One that is still coming up has decided nothing yet. What was tried
	 * is known only of a box that ended by itself.
	 */
	if (!e->has_begun && o->net_opened == 0 && o->end == WIRE_BY_ITSELF) {
		(void)sys_pidfd_kill(e->pidfd, SIGKILL);
		fd_close(&e->sock);
	}
	while (e->sock >= 0) {
		struct pollfd p = { .fd = e->sock, .events = POLLIN };
		int64_t left = (end - clock_us()) / 1000;

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			egress_give_up(e);
		else
			egress_hear(e);
	}
	/* It is reaped in egress_done(), while the end is recorded. */
	egress_note_more(e);
}

void egress_done(struct egress *e)
{
	if (!e->is_open)
		return;
	egress_withdraw(e);
	close_ends(e);
	fd_close(&e->box);
	fd_close(&e->sock);
	reap(e, END_MS);
	fd_close(&e->pause);
	fd_close(&e->epoll);
	egress_table_done(&e->table);
	free(e->before);
	e->before = NULL;
	strv_done(&e->hosts);
	strv_done(&e->said);
	free(e->ca);
	e->ca = NULL;
	e->is_open = false;
}
