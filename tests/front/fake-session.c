/* SPDX-License-Identifier: Apache-2.0 */

/* Boxes that are none: each program is a child of ours. See fake.h. */

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include "base/util.h"
#include "box/session.h"
#include "fake.h"
#include "front/doc.h"

void (*fake_files)(int sock);
unsigned int fake_walls;
unsigned int fake_shelves;
bool fake_no_walls;
uint64_t fake_caught = ~0ULL;
uint64_t fake_oom_kills;
uint64_t fake_memory_limit;
unsigned int fake_gated;

struct program {
	struct program *next;
	struct session *s;
	uint32_t number;
	pid_t pid;
	int pidfd;
	int error; /* of exec */
	int tty;
	bool is_killed, is_started, is_over;
	struct session_exec_events events;
	void *arg;
};

struct ask {
	struct ask *next;
	void (*caught)(void *arg, uint64_t mask);
	void (*usage)(void *arg, const struct session_usage *u);
	void *arg;
};

struct session {
	struct session *next;
	struct sessions *all;
	struct session_events events;
	void *arg;
	uint32_t shelf;
	bool is_told, is_closing, keep, is_bad;
	uint32_t held; /* what is to be started when it is let ... */
	int held_work; /* ... and its work */
	struct program *programs;
	struct ask *asks;
};

struct sessions {
	int epoll, wake;
	uint32_t last;
	struct session *list;
	void (*swept)(void *arg, bool is_clean);
	void *swept_arg;
	unsigned char shelves[65536];
};

static struct sessions *the_sessions;

static void wake(struct sessions *all)
{
	uint64_t one = 1;

	(void)!write(all->wake, &one, sizeof(one));
}

struct sessions *sessions_new(int sock, struct err *err)
{
	struct sessions *all = calloc(1, sizeof(*all));
	struct epoll_event e = { .events = EPOLLIN };

	(void)err;
	(void)sock;
	all->epoll = epoll_create1(EPOLL_CLOEXEC);
	all->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)epoll_ctl(all->epoll, EPOLL_CTL_ADD, all->wake, &e);
	the_sessions = all;
	return all;
}

static void kill_program(struct program *p)
{
	if (p->pid > 0) {
		(void)kill(-p->pid, SIGKILL);
		(void)kill(p->pid, SIGKILL);
	}
}

void fake_kill_all(void)
{
	for (struct session *s = the_sessions->list; s; s = s->next)
		for (struct program *p = s->programs; p; p = p->next) {
			kill_program(p);
			if (p->pid > 0 && !p->is_over)
				(void)waitpid(p->pid, NULL, 0);
			p->pid = 0;
		}
}

void sessions_free(struct sessions *all)
{
	fake_kill_all();
	(void)close(all->epoll);
	(void)close(all->wake);
	while (all->list) {
		struct session *s = all->list;

		all->list = s->next;
		while (s->programs) {
			struct program *p = s->programs;

			s->programs = p->next;
			fd_close(&p->pidfd);
			free(p);
		}
		free(s);
	}
	free(all);
}

bool sessions_are_lost(const struct sessions *all)
{
	(void)all;
	return false;
}

int sessions_ask_swept(struct sessions *all,
		       void (*done)(void *arg, bool is_clean), void *arg)
{
	/* Not inside the call, as the real one; fake_open() turns the loop. */
	all->swept = done;
	all->swept_arg = arg;
	wake(all);
	return 0;
}

int sessions_fd(const struct sessions *all)
{
	return all->epoll;
}

struct session *session_open(struct sessions *all,
			     const struct session_want *want,
			     const struct session_events *events, void *arg,
			     struct err *err)
{
	struct session *s = calloc(1, sizeof(*s));

	(void)err;
	s->all = all;
	s->events = *events;
	s->arg = arg;
	s->shelf = want->shelf;
	s->is_bad = fake_no_walls;
	s->next = all->list;
	all->list = s;
	fake_walls++;
	wake(all);
	return s;
}

static char **read_command(int fd)
{
	struct err err;
	char *text = doc_read(fd, &err);
	json_t *list = json_loads(text, 0, NULL);
	char **v = calloc(json_array_size(list) + 1, sizeof(*v));

	for (size_t i = 0; i < json_array_size(list); i++)
		v[i] = strdup(json_string_value(json_array_get(list, i)));
	json_decref(list);
	free(text);
	return v;
}

static void become(char **argv, const int stdio[3], int slave, int report)
{
	int error;

	(void)setsid();
	if (slave >= 0)
		(void)login_tty(slave);
	for (int i = 0; slave < 0 && i < 3; i++)
		(void)dup2(stdio[i], i);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)execvp(argv[0], argv);
	error = errno;
	(void)!write(report, &error, sizeof(error));
	_exit(127);
}

int session_exec(struct session *s, const struct session_exec *exec,
		 const struct session_exec_events *events, void *arg,
		 uint32_t *ret_number, struct err *err)
{
	struct program *p = calloc(1, sizeof(*p));
	struct epoll_event e = { .events = EPOLLIN };
	char **argv = read_command(exec->work);
	int report[2];
	int slave = -1;

	(void)err;
	p->tty = NO_FD;
	if (exec->tty)
		(void)openpty(&p->tty, &slave, NULL, NULL, NULL);
	(void)!pipe2(report, O_CLOEXEC);
	p->pid = fork();
	if (p->pid == 0)
		become(argv, exec->stdio, slave, report[1]);
	(void)close(report[1]);
	(void)!read(report[0], &p->error, sizeof(p->error));
	(void)close(report[0]);
	if (slave >= 0)
		(void)close(slave);
	for (int i = 0; i < 3 && !exec->tty; i++)
		(void)close(exec->stdio[i]);
	for (size_t i = 0; argv[i]; i++)
		free(argv[i]);
	free(argv);
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	(void)epoll_ctl(s->all->epoll, EPOLL_CTL_ADD, p->pidfd, &e);
	p->s = s;
	p->events = *events;
	p->arg = arg;
	p->number = *ret_number = ++s->all->last;
	p->next = s->programs;
	s->programs = p;
	wake(s->all);
	return 0;
}

static struct program *find(struct session *s, uint32_t number)
{
	struct program *p = s->programs;

	while (p && p->number != number)
		p = p->next;
	return p;
}

int session_hold(struct session *s, int work, bool is_last,
		 uint32_t *ret_number)
{
	(void)is_last;
	if (s->held)
		(void)close(s->held_work);
	s->held_work = fcntl(work, F_DUPFD_CLOEXEC, 3);
	s->held = *ret_number = ++s->all->last;
	return 0;
}

int session_let(struct session *s, uint32_t number, const int stdio[3],
		const struct session_exec_events *events, void *arg)
{
	const struct session_exec exec = {
		.work = s->held_work, .stdio = { stdio[0], stdio[1], stdio[2] }
	};
	uint32_t unused;

	if (!s->held || s->held != number)
		return -ESRCH;
	(void)session_exec(s, &exec, events, arg, &unused, NULL);
	s->programs->number = number;
	(void)close(s->held_work);
	s->held = 0;
	return 0;
}

int session_signal(struct session *s, uint32_t number, int signal)
{
	struct program *p = find(s, number);

	if (p && !p->is_over)
		(void)kill(p->pid, signal);
	return 0;
}

int session_kill_exec(struct session *s, uint32_t number)
{
	struct program *p = find(s, number);

	if (p) {
		p->is_killed = true;
		kill_program(p);
	}
	return 0;
}

int session_freeze(struct session *s, bool is_frozen)
{
	for (struct program *p = s->programs; p; p = p->next)
		if (!p->is_over)
			(void)kill(-p->pid, is_frozen ? SIGSTOP : SIGCONT);
	return 0;
}

static struct ask *ask(struct session *s, void *arg)
{
	struct ask *a = calloc(1, sizeof(*a));

	a->arg = arg;
	a->next = s->asks;
	s->asks = a;
	wake(s->all);
	return a;
}

int session_ask_caught(struct session *s, uint32_t number,
		       void (*done)(void *arg, uint64_t mask), void *arg)
{
	(void)number;
	ask(s, arg)->caught = done;
	return 0;
}

int session_ask_usage(struct session *s,
		      void (*done)(void *arg, const struct session_usage *u),
		      void *arg)
{
	ask(s, arg)->usage = done;
	return 0;
}

int session_gate(struct session *s, int sock)
{
	(void)s;
	(void)close(sock);
	fake_gated++;
	return 0;
}

int session_files(struct session *s, int sock)
{
	(void)s;
	if (fake_files && fork() == 0) {
		(void)setpgid(0, 0);
		for (int i = 3; i < 1024; i++)
			if (i != sock)
				(void)close(i);
		(void)alarm(20);
		fake_files(sock);
		_exit(0);
	}
	(void)close(sock);
	return 0;
}

void session_close(struct session *s, bool keep)
{
	s->is_closing = true;
	s->keep = keep;
	for (struct program *p = s->programs; p; p = p->next) {
		p->is_killed = true;
		kill_program(p);
	}
	wake(s->all);
}

void sessions_forget(struct sessions *all, uint32_t shelf)
{
	if (all->shelves[shelf]) {
		all->shelves[shelf] = 0;
		fake_shelves--;
	}
}

/* ---- what has happened ---- */

static void step_program(struct program *p)
{
	struct wire_outcome o = { 0 };
	int status;

	if (!p->is_started && !p->error) {
		p->is_started = true;
		p->events.started(p->arg, take_fd(&p->tty));
	}
	if (p->is_over || waitpid(p->pid, &status, WNOHANG) != p->pid)
		return;
	p->is_over = true;
	fd_close(&p->pidfd);
	fd_close(&p->tty);
	o.wait_status = status;
	o.exec_errno = p->error;
	o.wall_us = 1000;
	o.oom_kills = fake_oom_kills;
	if (p->is_killed) {
		o.end = WIRE_BY_CANCEL;
		kill_program(p);
	}
	p->events.ended(p->arg, &o);
}

static bool is_empty(const struct session *s)
{
	for (const struct program *p = s->programs; p; p = p->next)
		if (!p->is_over)
			return false;
	return true;
}

static void end_session(struct session *s)
{
	struct session **p = &s->all->list;
	struct wire_outcome o = { .end = WIRE_BY_CANCEL };

	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	fake_walls--;
	if (s->keep && s->shelf && !s->all->shelves[s->shelf]) {
		s->all->shelves[s->shelf] = 1;
		fake_shelves++;
	}
	if (s->is_bad)
		(void)err_set(&o.err, EPERM, "no wall today");
	s->events.ended(s->arg, &o);
	while (s->programs) {
		struct program *next = s->programs->next;

		free(s->programs);
		s->programs = next;
	}
	if (s->held)
		(void)close(s->held_work);
	free(s);
}

static void answer(struct session *s)
{
	struct session_usage u = { .memory = 5 << 20,
				   .memory_limit = fake_memory_limit,
				   .inactive_file = 3 << 20,
				   .active_file = 1 << 20,
				   .pids = 1 };

	while (s->asks) {
		struct ask *a = s->asks;

		s->asks = a->next;
		if (a->caught)
			a->caught(a->arg, fake_caught);
		else
			a->usage(a->arg, &u);
		free(a);
	}
}

static void step_session(struct session *s)
{
	struct program *next;

	if (!s->is_told && !s->is_bad) {
		s->is_told = true;
		s->events.ready(s->arg);
	}
	answer(s);
	for (struct program *p = s->programs; p; p = next) {
		next = p->next;
		step_program(p);
	}
	if (s->is_bad || (s->is_closing && is_empty(s)))
		end_session(s);
}

int sessions_step(struct sessions *all)
{
	struct session *next;
	uint64_t n;

	(void)!read(all->wake, &n, sizeof(n));
	if (all->swept) {
		void (*done)(void *arg, bool is_clean) = all->swept;

		all->swept = NULL;
		done(all->swept_arg, true);
	}
	for (struct session *s = all->list; s; s = next) {
		next = s->next;
		step_session(s);
	}
	return 0;
}
