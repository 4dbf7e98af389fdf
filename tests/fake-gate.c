/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What tests/egress-run.c puts in the place of cordon-gate: a program that
 * keeps to gate/wire.h, but for what the first host of its table asks of it.
 *
 *	serve.test   answers each connection with "hello PORT", and tells it
 *	die.test     ends when it has the sockets
 *	hang.test    does not end with its client's socket
 *	flood.test   tells of 6,000 names that were refused
 *	sent.test    tells of requests that were let out, after a flood
 *	busy.test    tells of 2,300 connections, then how long that took
 *	lies.test    says what no gate may say, then one thing that is true
 *	ask.test     asks for each connection, answers with what it heard
 *	trust.test   has an authority
 *
 * As the real one it watches the process that started it.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "gate/wire.h"

static const struct gate_table *table;
static int sockets[IO_MAX_FDS];
static int n_sockets;
static int n_watch;
static bool may_hang;

static bool wants(const char *host)
{
	return table && table->n_rules > 0 &&
	       strcmp(gate_str(table, table->rules[0].host), host) == 0;
}

static void tell(uint8_t kind, uint8_t reason, const char *host, uint16_t port)
{
	struct gate_event e = { .head = { GATE_EVENT, 1 },
				.kind = kind,
				.reason = reason,
				.port = port,
				.sent = 3,
				.received = 5,
				.us = 7000 };

	(void)snprintf(e.host, sizeof(e.host), "%s", host);
	(void)io_send(GATE_FD_CLIENT, &e, sizeof(e), NULL, 0);
}

static void flood(void)
{
	char name[32];

	for (int i = 0; i < 6000; i++) {
		(void)snprintf(name, sizeof(name), "n%d.evil.test", i);
		tell(GATE_E_NAME, GATE_R_NO_RULE, name, 0);
	}
}

static void tell_request(uint8_t kind, uint8_t reason, uint32_t flags,
			 const char *host)
{
	struct gate_event e = { .head = { GATE_EVENT, 1 },
				.kind = kind,
				.reason = reason,
				.flags = flags,
				.port = 443,
				.rule = -1,
				.method = "POST",
				.path = "/" };

	(void)snprintf(e.host, sizeof(e.host), "%s", host);
	(void)io_send(GATE_FD_CLIENT, &e, sizeof(e), NULL, 0);
}

static void send_after_flood(void)
{
	const uint32_t both = GATE_EVENT_OUT | GATE_EVENT_AGAIN;

	for (int i = 0; i < 4200; i++)
		tell_request(GATE_E_REQUEST, GATE_R_PATH, 0, "refused.test");
	for (int i = 0; i < 30; i++) {
		tell_request(GATE_E_REQUEST, GATE_R_RESET, both, "reset.test");
		tell_request(GATE_E_REQUEST, GATE_R_LEFT, 0, "left.test");
		tell_request(GATE_E_REQUEST, GATE_R_BYTES, both, "bytes.test");
		tell_request(GATE_E_CLOSE, GATE_R_BYTES, 0, "bytes.test");
		tell_request(GATE_E_SECRET, GATE_R_PLACEHOLDER, GATE_EVENT_OUT,
			     "secret.test");
		tell_request(GATE_E_CLOSE, GATE_R_PLACEHOLDER, GATE_EVENT_AGAIN,
			     "secret.test");
	}
}

static void be_busy(void)
{
	int64_t begin = clock_us();
	char name[64];

	for (int i = 0; i < 2300; i++)
		tell(GATE_E_CLOSE, GATE_OK, "busy.test", 443);
	(void)snprintf(name, sizeof(name), "took-%lld.test",
		       (long long)(clock_us() - begin) / 1000);
	tell(GATE_E_NAME, GATE_R_NO_RULE, name, 0);
}

static void lie(void)
{
	struct gate_event e;

	memset(&e, 'A', sizeof(e));
	e.head = (struct gate_head){ GATE_EVENT, 1 };
	(void)io_send(GATE_FD_CLIENT, &e, sizeof(e), NULL, 0);
	e.kind = GATE_E_DENIED;
	e.reason = GATE_REASONS;
	(void)io_send(GATE_FD_CLIENT, &e, sizeof(e), NULL, 0);
	(void)io_send(GATE_FD_CLIENT, &e, 9, NULL, 0);
	e.head.type = 77;
	(void)io_send(GATE_FD_CLIENT, &e, sizeof(e), NULL, 0);
	/* Texts without an end, a rule that is not there: still one denial. */
	e.head.type = GATE_EVENT;
	e.reason = GATE_R_NO_RULE;
	e.rule = 12345;
	e.port = 1;
	(void)io_send(GATE_FD_CLIENT, &e, sizeof(e), NULL, 0);
}

static void show_authority(void)
{
	static const char pem[] = "-----BEGIN CERTIFICATE-----\nfake\n"
				  "-----END CERTIFICATE-----\n";
	struct gate_ca msg = { .head.type = GATE_CA,
			       .subject_hash = 0xabcd1234 };
	int fd = memfd_create("ca", MFD_CLOEXEC);

	if (write(fd, pem, sizeof(pem) - 1) != sizeof(pem) - 1)
		_exit(3);
	(void)io_send(GATE_FD_CLIENT, &msg, sizeof(msg), &fd, 1);
	(void)close(fd);
}

static void take_table(const struct gate_head *head, int fd)
{
	const struct gate_head taken = { GATE_TAKEN, head->number };
	bool is_first = !table;
	struct stat st;

	if (fstat(fd, &st) < 0)
		_exit(3);
	table = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		_exit(3);
	(void)close(fd);
	if (is_first && wants("trust.test"))
		show_authority();
	(void)io_send(GATE_FD_CLIENT, &taken, sizeof(taken), NULL, 0);
	if (!is_first)
		tell(GATE_E_DENIED, GATE_R_REPLACED, "replaced.test", 443);
	may_hang = wants("hang.test");
}

static void ask(void)
{
	struct gate_event e = { .head = { GATE_ASKED, 7 }, .port = 443 };

	(void)snprintf(e.host, sizeof(e.host), "ask.test");
	(void)io_send(GATE_FD_CLIENT, &e, sizeof(e), NULL, 0);
}

static void client_said(void)
{
	union {
		struct gate_head head;
		struct gate_answer answer;
	} msg;
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n = io_recv(GATE_FD_CLIENT, &msg, sizeof(msg), 0, fds, &n_fds);

	if (n <= 0 && may_hang)
		(void)poll(NULL, 0, 30000);
	if (n <= 0)
		exit(0);
	if (msg.head.type == GATE_TABLE && n_fds == 1)
		take_table(&msg.head, fds[0]);
	if (msg.head.type == GATE_ANSWER)
		tell(msg.answer.is_allowed ? GATE_E_CLOSE : GATE_E_DENIED,
		     msg.answer.is_allowed ? GATE_OK : GATE_R_NOT_APPROVED,
		     "ask.test", 443);
}

/* As long as a client may use them, they are open in no other process. */
static void box_said(void)
{
	struct gate_sockets msg;
	ssize_t n = io_recv(GATE_FD_BOX, &msg, sizeof(msg), 0, sockets,
			    &n_sockets);

	(void)close(GATE_FD_BOX);
	if (n != sizeof(msg) || msg.head.type != GATE_SOCKETS ||
	    !msg.has_watch ||
	    n_sockets != (int)((msg.has_ipv6 ? 2 : 1) * (4 + msg.n_ports)))
		_exit(4);
	/* What nobody hears is not ours to serve. */
	n_watch = msg.has_ipv6 ? 4 : 2;
	n_sockets -= n_watch;
	if (wants("die.test"))
		exit(0);
	if (wants("flood.test"))
		flood();
	if (wants("sent.test"))
		send_after_flood();
	if (wants("busy.test"))
		be_busy();
	if (wants("lies.test"))
		lie();
	if (wants("ask.test"))
		ask();
}

static void serve(int fd)
{
	int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	char text[64];

	if (c < 0)
		return;
	(void)snprintf(text, sizeof(text), "hello %d\n", n_sockets + n_watch);
	(void)!write(c, text, strlen(text));
	(void)close(c);
	tell(GATE_E_CLOSE, GATE_OK, "serve.test", 443);
}

int main(int argc, char **argv)
{
	bool has_box = true;
	pid_t parent = argc == 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	int pidfd = (int)syscall(SYS_pidfd_open, parent, 0);

	if (getppid() != parent || pidfd < 0)
		return 5;

	for (;;) {
		struct pollfd p[IO_MAX_FDS + 3] = {
			{ .fd = GATE_FD_CLIENT, .events = POLLIN },
			{ .fd = has_box && table ? GATE_FD_BOX : -1,
			  .events = POLLIN },
			{ .fd = pidfd, .events = POLLIN },
		};

		for (int i = 0; i < n_sockets; i++)
			p[3 + i] = (struct pollfd){ .fd = sockets[i],
						    .events = POLLIN };
		if (poll(p, (nfds_t)n_sockets + 3, -1) < 0)
			return 3;
		if (p[2].revents)
			return 0;
		if (p[0].revents)
			client_said();
		if (p[1].revents) {
			box_said();
			has_box = false;
		}
		for (int i = 0; i < n_sockets; i++)
			if (p[3 + i].revents)
				serve(sockets[i]);
	}
}
