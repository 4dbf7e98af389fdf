/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A front that does as it is told, for tests/serve.c.
 *
 * On its own socket it takes connections, one after the other. Each sends one
 * request, which is everything up to the end of its writing: a word, and after
 * a newline the rest. The answer is text. Nothing here is careful: what the
 * daemon must stand is a front that somebody else has taken over.
 *
 *	status          what it was born with
 *	prepare         the rest is the document; the peer is the connection
 *	prepare-as FD   the peer is another descriptor, by number
 *	prepare-few     with one descriptor only
 *	prepare-pipe    a pipe instead of a document
 *	many N          so many at once
 *	record KIND     the rest is the record
 *	run             as prepare, and then it is run, by the keeper
 *	gates N         as prepare, one after the other; their gates are kept
 *	drop-gate       the first of these is not needed any more
 *	gate-box N      gives the gate a box of its own, that connects to PORT
 *	                (the rest) of 127.0.0.1, and says what comes of it
 *	gate-answer N   says yes to what that gate asks, as its client
 *	gate-say N      the rest, to that gate; says what the gate does
 *	order TYPE      that order, with two descriptors
 *	image           the rest are the words, one a line
 *	policy          the last note
 *	garbage         a message that is none
 *	exit
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/util.h"
#include "box/session.h"
#include "gate/wire.h"
#include "os/netlink.h"
#include "serve/orders.h"

static uint32_t number;
static int client = NO_FD;
static int kept[3]; /* of the last answer, where `keeps` */
static int n_kept;
static bool keeps;
static int gates[1024]; /* the front's end of their sockets */
static int gate_boxes[1024];
static uint32_t gate_numbers[1024];
static int n_gates;
static struct sessions *sessions;
static struct buf policy_note;
static unsigned int notes;

static void put(const char *text)
{
	(void)!write(client, text, strlen(text));
}

static int doc(const char *text, size_t len)
{
	int fd = memfd_create("doc", MFD_CLOEXEC);

	(void)io_write_all(fd, text, len);
	return fd;
}

static int twin(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static void put_doc(int fd)
{
	char chunk[4096];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, chunk, sizeof(chunk), at)) > 0) {
		(void)io_write_all(client, chunk, (size_t)n);
		at += n;
	}
}

/* Something of the parent's that is no answer. */
static void on_order(const struct order *o, int *fds, int n)
{
	const struct order done = { .type = ORDER_DRAINED };

	if (o->type == ORDER_DRAIN && !getenv("CORDON_TEST_NO_DRAIN"))
		(void)io_send(FRONT_FD_PARENT, &done, sizeof(done), NULL, 0);
	if (o->type == ORDER_POLICY && n == 1) {
		char chunk[4096];
		ssize_t len = pread(fds[0], chunk, sizeof(chunk), 0);

		buf_done(&policy_note);
		buf_init(&policy_note, 65536);
		if (len > 0)
			(void)buf_add(&policy_note, chunk, (size_t)len);
		notes++;
	}
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
}

/* Box, work, the gate's two and the document. */
static void keep_gate(const struct order_answer *a, int *fds, int n)
{
	if (!a->has_gate || n < 3 || n_gates == ARRAY_SIZE(gates))
		return;
	gate_numbers[n_gates] = a->number;
	gate_boxes[n_gates] = twin(fds[n - 2]);
	gates[n_gates++] = twin(fds[n - 3]);
}

static void drop_gate(void)
{
	struct order o = { .type = ORDER_GATE_END, .number = gate_numbers[0] };

	if (n_gates == 0)
		return;
	(void)close(gates[0]);
	(void)close(gate_boxes[0]);
	n_gates--;
	memmove(gates, gates + 1, sizeof(gates[0]) * (size_t)n_gates);
	memmove(gate_boxes, gate_boxes + 1,
		sizeof(gate_boxes[0]) * (size_t)n_gates);
	memmove(gate_numbers, gate_numbers + 1,
		sizeof(gate_numbers[0]) * (size_t)n_gates);
	(void)io_send(FRONT_FD_PARENT, &o, sizeof(o), NULL, 0);
}

static void show(const struct order_answer *a, int *fds, int n)
{
	char line[800];

	keep_gate(a, fds, n);
	(void)snprintf(line, sizeof(line),
		       "refused %d exit %d fds %d code %d\n%s\n", a->refused,
		       a->exit_code, n, a->err.code, a->err.text);
	put(line);
	if (n > 0)
		put_doc(fds[n - 1]);
	put("\n");
	n_kept = keeps && n == 3 ? 3 : 0;
	memcpy(kept, fds, sizeof(int) * (size_t)n_kept);
	for (int i = n_kept; i < n; i++)
		(void)close(fds[i]);
}

/* The next message of a socket; false: it is gone. */
static bool hear(int sock, bool *ret_answer)
{
	union {
		struct order o;
		struct order_answer a;
	} m;
	int fds[IO_MAX_FDS];
	int n = 0;
	ssize_t len = io_recv(sock, &m, sizeof(m), 0, fds, &n);

	*ret_answer = false;
	if (len <= 0)
		return false;
	if (len == sizeof(m.a) && m.a.type == ORDER_ANSWER) {
		*ret_answer = true;
		show(&m.a, fds, n);
	} else if (len == sizeof(m.o)) {
		on_order(&m.o, fds, n);
	}
	return true;
}

static void wait_answers(int sock, int n)
{
	while (n > 0) {
		bool is_answer;

		if (!hear(sock, &is_answer))
			exit(0);
		n -= is_answer;
	}
}

static void order(uint32_t type, const int *fds, int n)
{
	const struct order o = { .type = type, .number = ++number };

	(void)io_send(FRONT_FD_PARENT, &o, sizeof(o), fds, n);
}

static void show_file(const char *path)
{
	char text[4096];
	ssize_t n = io_read_file(AT_FDCWD, path, text, sizeof(text));

	put(path);
	put(":\n");
	if (n > 0)
		for (ssize_t i = 0; i < n; i++)
			if (!text[i])
				text[i] = '\n';
	if (n > 0)
		(void)!write(client, text, (size_t)n);
	put("\n");
}

static void show_status(void)
{
	char line[200];
	struct stat st;
	int note;

	show_file("/proc/self/status");
	show_file("/proc/self/environ");
	show_file("/proc/self/cmdline");
	for (int fd = 0; fd < 256; fd++)
		if (fstat(fd, &st) == 0 && fd != client) {
			(void)snprintf(line, sizeof(line), "fd %d %o\n", fd,
				       st.st_mode & S_IFMT);
			put(line);
		}
	(void)snprintf(line, sizeof(line), "state %o %u\n",
		       fstat(FRONT_FD_STATE, &st) == 0 ? st.st_mode & 0777 : 0,
		       (unsigned int)st.st_uid);
	put(line);
	(void)snprintf(line, sizeof(line), "notes %u\n", notes);
	put(line);
	note = openat(FRONT_FD_STATE, "note", O_CREAT | O_WRONLY | O_CLOEXEC,
		      0600);
	(void)snprintf(line, sizeof(line), "may make a file: %s\n",
		       note >= 0 ? "yes" : "no");
	fd_close(&note);
	put(line);
}

static void run_image(char *rest)
{
	int words;
	int streams[3] = { open("/dev/null", O_RDWR | O_CLOEXEC), client,
			   client };
	size_t len = strlen(rest);

	for (char *p = rest; *p; p++)
		if (*p == '\n')
			*p = '\0';
	words = doc(rest, len);
	order(ORDER_IMAGE,
	      (const int[]){ words, streams[0], client, client, client }, 5);
	(void)close(words);
	(void)close(streams[0]);
	wait_answers(FRONT_FD_PARENT, 1);
}

static void record(const char *kind, const char *rest)
{
	struct order o = { .type = ORDER_RECORD, .number = ++number };
	int fd = doc(rest, strlen(rest));

	(void)snprintf(o.kind, sizeof(o.kind), "%s", kind);
	(void)io_send(FRONT_FD_CLERK, &o, sizeof(o), &fd, 1);
	(void)close(fd);
	wait_answers(FRONT_FD_CLERK, 1);
}

static void prepare_with(int request, int peer)
{
	order(ORDER_PREPARE, (const int[]){ request, peer }, 2);
	(void)close(request);
}

struct ran {
	bool is_ready, is_over, is_gone;
};

static void on_ready(void *arg)
{
	((struct ran *)arg)->is_ready = true;
}

static void tell(const char *what, const struct wire_outcome *o)
{
	char line[800];

	(void)snprintf(line, sizeof(line), "%s: status %d, exec %d, %s\n", what,
		       o->wait_status, o->exec_errno, o->err.text);
	put(line);
}

static void on_gone(void *arg, const struct wire_outcome *o)
{
	((struct ran *)arg)->is_gone = true;
	tell("box", o);
}

static void on_started(void *arg, int tty)
{
	(void)arg;
	(void)tty;
}

static void on_over(void *arg, const struct wire_outcome *o)
{
	((struct ran *)arg)->is_over = true;
	tell("program", o);
}

static void step_until(const bool *is_it, const bool *or_this)
{
	struct pollfd p = { .fd = sessions_fd(sessions), .events = POLLIN };

	while (!*is_it && !*or_this && poll(&p, 1, 10000) > 0 &&
	       sessions_step(sessions) == 0)
		;
}

/* Its output is small, and fits into the pipe. */
static void run_prepared(void)
{
	static const struct session_events events = { on_ready, on_gone };
	static const struct session_exec_events programs = { on_started,
							     on_over };
	const struct session_want want = { .box = kept[0], .peer = client };
	struct err err = { 0 };
	struct ran ran = { 0 };
	struct session *s;
	char text[4096];
	uint32_t id;
	int p[2];
	ssize_t n;

	if (!sessions)
		sessions = sessions_new(FRONT_FD_KEEPER, &err);
	s = sessions ? session_open(sessions, &want, &events, &ran, &err)
		     : NULL;
	if (!s || pipe2(p, O_CLOEXEC) < 0) {
		put(err.text);
		return;
	}
	step_until(&ran.is_ready, &ran.is_gone);
	if (!ran.is_gone) {
		const struct session_exec exec = {
			.work = kept[1],
			.stdio = { open("/dev/null", O_RDONLY | O_CLOEXEC),
				   p[1], twin(p[1]) },
			.kill_rest = true,
		};

		(void)session_exec(s, &exec, &programs, &ran, &id, &err);
		step_until(&ran.is_over, &ran.is_gone);
		(void)fcntl(p[0], F_SETFL, O_NONBLOCK);
		n = read(p[0], text, sizeof(text));
		if (n > 0)
			(void)io_write_all(client, text, (size_t)n);
	}
	if (!ran.is_gone)
		session_close(s, false);
	step_until(&ran.is_gone, &ran.is_gone);
	(void)close(p[0]);
}

static void make_gates(int n, int request)
{
	for (; n > 0; n--) {
		prepare_with(twin(request), client);
		wait_answers(FRONT_FD_PARENT, 1);
	}
}

static struct sockaddr_in local(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(
					     INADDR_LOOPBACK) };
}

static int listen_on(uint16_t port, int type)
{
	struct sockaddr_in a = local(port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 8) < 0))
		_exit(1);
	return fd;
}

/* A network of our own, as a box has one. */
static void enter_network(void)
{
	struct err err = { 0 };
	int nl;

	if (unshare(CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNET) < 0)
		_exit(1);
	nl = netlink_open(&err);
	if (nl < 0 || netlink_up(nl, &err) < 0)
		_exit(1);
}

/* In a child, since it may have to wait for a person. */
static void be_box(int sock, uint16_t port)
{
	const struct gate_sockets s = { .head = { GATE_SOCKETS, 0 },
					.n_ports = 1 };
	struct sockaddr_in a = local(port);
	char said[16] = "";
	int fds[3];
	int fd;

	(void)alarm(60); /* a test that failed leaves nobody */
	enter_network();
	fds[0] = listen_on(53, SOCK_DGRAM);
	fds[1] = listen_on(53, SOCK_STREAM);
	fds[2] = listen_on(port, SOCK_STREAM);
	(void)io_send(sock, &s, sizeof(s), fds, 3);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	put(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ? "asks "
							       : "none ");
	put(read(fd, said, sizeof(said) - 1) > 0 ? said : "refused");
	_exit(0);
}

static void gate_box(int i, int request)
{
	char port[16] = "";
	pid_t pid;

	(void)!pread(request, port, sizeof(port) - 1, 0);
	pid = fork();
	if (pid == 0)
		be_box(gate_boxes[i], (uint16_t)atoi(port));
}

static void gate_answer(int i)
{
	const struct gate_answer a = { { GATE_ANSWER, 1 }, .is_allowed = 1 };

	(void)io_send(gates[i], &a, sizeof(a), NULL, 0);
}

/* For tests/lying-gate.c. */
static void gate_say(int i, int request)
{
	char text[512];
	ssize_t n = pread(request, text, sizeof(text), 0);
	struct pollfd p = { .fd = gates[i], .events = POLLIN };
	int fds[IO_MAX_FDS];
	int n_fds = 0;

	(void)io_send(gates[i], text, n < 0 ? 0 : (size_t)n, NULL, 0);
	if (poll(&p, 1, 1000) == 0) {
		put("nothing");
		return;
	}
	n = io_recv(gates[i], text, sizeof(text), 0, fds, &n_fds);
	if (n > 0)
		(void)!write(client, text, (size_t)n);
	else
		put("gone");
}

/* False: it is not about gates. */
static bool do_gates(const char *word, const char *arg, int request)
{
	int i = atoi(arg);

	if (strcmp(word, "gates") == 0)
		make_gates(i, request);
	else if (strcmp(word, "drop-gate") == 0)
		drop_gate();
	else if (strcmp(word, "gate-box") == 0 && i < n_gates)
		gate_box(i, request);
	else if (strcmp(word, "gate-answer") == 0 && i < n_gates)
		gate_answer(i);
	else if (strcmp(word, "gate-say") == 0 && i < n_gates)
		gate_say(i, request);
	else if (strcmp(word, "order") == 0)
		order((uint32_t)i, (const int[]){ request, client }, 2);
	else
		return false;
	return true;
}

static void do_it(const char *word, const char *arg, char *rest)
{
	int request;
	int n = 1;
	int p[2];

	if (strcmp(word, "status") == 0) {
		show_status();
		return;
	}
	request = doc(rest, strlen(rest));
	if (do_gates(word, arg, request)) {
		;
	} else if (strcmp(word, "prepare") == 0 || strcmp(word, "many") == 0) {
		n = *arg ? atoi(arg) : 1;
		for (int i = 0; i < n; i++)
			prepare_with(twin(request), client);
		wait_answers(FRONT_FD_PARENT, n);
	} else if (strcmp(word, "prepare-as") == 0) {
		prepare_with(twin(request), atoi(arg));
		wait_answers(FRONT_FD_PARENT, 1);
	} else if (strcmp(word, "prepare-few") == 0) {
		order(ORDER_PREPARE, &request, 1);
		wait_answers(FRONT_FD_PARENT, 1);
	} else if (strcmp(word, "prepare-pipe") == 0) {
		if (pipe2(p, O_CLOEXEC) < 0)
			exit(1);
		prepare_with(p[0], client);
		wait_answers(FRONT_FD_PARENT, 1);
		(void)close(p[1]);
	} else if (strcmp(word, "run") == 0) {
		keeps = true;
		prepare_with(twin(request), client);
		wait_answers(FRONT_FD_PARENT, 1);
		keeps = false;
		if (n_kept == 3)
			run_prepared();
		for (int i = 0; i < n_kept; i++)
			(void)close(kept[i]);
	} else if (strcmp(word, "record") == 0) {
		record(arg, rest);
	} else if (strcmp(word, "image") == 0) {
		run_image(rest);
	} else if (strcmp(word, "policy") == 0) {
		put(policy_note.data ? policy_note.data : "");
	} else if (strcmp(word, "garbage") == 0) {
		(void)io_send(FRONT_FD_PARENT, "garbage", 7, NULL, 0);
	} else if (strcmp(word, "exit") == 0) {
		exit(0);
	}
	(void)close(request);
}

static void serve_one(int listener)
{
	static char text[40U << 20];
	size_t len = 0;
	ssize_t n;
	char *rest;
	char *arg;

	client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (client < 0)
		return;
	while ((n = read(client, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	rest = strchr(text, '\n');
	if (rest)
		*rest++ = '\0';
	else
		rest = text + len;
	arg = strchr(text, ' ');
	if (arg)
		*arg++ = '\0';
	do_it(text, arg ? arg : text + strlen(text), rest);
	(void)close(client);
	client = NO_FD;
}

int main(void)
{
	const struct order ready = { .type = ORDER_READY };
	struct pollfd fds[] = { { .fd = FRONT_FD_PARENT, .events = POLLIN },
				{ .fd = FRONT_FD_OWN, .events = POLLIN },
				{ .fd = FRONT_FD_DOCKER, .events = POLLIN } };
	bool is_answer;

	if (getenv("CORDON_TEST_FRONT_DIES"))
		return 3;
	buf_init(&policy_note, 65536);
	if (fcntl(FRONT_FD_DOCKER, F_GETFD) < 0)
		fds[2].fd = -1;
	(void)io_send(FRONT_FD_PARENT, &ready, sizeof(ready), NULL, 0);
	for (;;) {
		/* The first note comes before anybody is served. */
		if (poll(fds, notes ? 3 : 1, -1) < 0)
			continue;
		if (!notes)
			fds[1].revents = fds[2].revents = 0;
		if (fds[0].revents && !hear(FRONT_FD_PARENT, &is_answer))
			return 0;
		for (int i = 1; i < 3; i++)
			if (fds[i].revents)
				serve_one(fds[i].fd);
	}
}
