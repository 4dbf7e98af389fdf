/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Boxes that stay, from a test: a keeper of its own, and calls that wait.
 *
 *	struct box_s *b = open_one("memory=64m", NULL);
 *	struct ran *r = run_in(b, "", "sh", "-c", "echo hi", NULL);
 *	CHECK_STR(r->out, "hi\n");
 *	close_one(b, false);
 *
 * A program's output is read into memory while everything is stepped; wait_for
 * steps until something is so.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "tap.h"

#include "base/io.h"
#include "base/util.h"
#include "box.h"
#include "box/images.h"
#include "box/prepare.h"
#include "box/session.h"
#include "box/spec.h"

#define OUT_MAX 65536

struct box_s {
	struct session *s;
	bool ready;
	bool ended;
	struct wire_outcome outcome;
};

struct ran {
	struct ran *next;
	struct box_s *box;
	uint32_t number;
	bool started;
	bool ended;
	int tty;
	int in;
	int fds[2];  /* our ends of stdout and stderr */
	int held[3]; /* the box's ends, while it waits */
	char out[OUT_MAX];
	char err[4096];
	size_t out_len;
	size_t err_len;
	struct wire_outcome outcome;
};

static struct sessions *all;
static pid_t keeper_pid;
static int keeper_sock; /* of `all` */
static struct ran *rans;
static bool best_effort;             /* this user has no cgroups */
static struct box_image *image_root; /* instead of the host's; NULL */
static char runtime_dir[128];

static inline void die(const char *what, const struct err *err)
{
	printf("# %s: %s: %s\n", what, err->stage, err->text);
	(void)fflush(NULL);
	_exit(1);
}

static inline long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline const char *build_dir(void)
{
	const char *build = getenv("CORDON_BUILD");

	return build ? build : "build";
}

static inline void own_runtime(void)
{
	(void)snprintf(runtime_dir, sizeof(runtime_dir),
		       "/tmp/cordon-session-%d", (int)getpid());
	(void)mkdir(runtime_dir, 0700);
	(void)setenv("CORDON_RUNTIME_DIR", runtime_dir, 1);
}

static inline void forget_runtime(void)
{
	char line[200];

	(void)snprintf(line, sizeof(line), "rm -rf %s", runtime_dir);
	(void)!system(line);
}

/* Starts a keeper as the daemon does; its socket becomes `all`. */
static inline void start_keeper(void)
{
	struct err err = { 0 };
	char path[4096];
	int pair[2];

	own_runtime();
	(void)snprintf(path, sizeof(path), "%s/cordon-keeper",
		       getenv("CORDON_LIBEXEC") ? getenv("CORDON_LIBEXEC")
						: build_dir());
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		_exit(1);
	keeper_pid = fork();
	if (keeper_pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		int far = fcntl(pair[1], F_DUPFD, 20);

		(void)dup2(null, 0);
		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)dup2(far, 3);
		for (int i = 4; i < 64; i++)
			(void)close(i);
		(void)execl(path, "cordon-keeper", "session", NULL);
		_exit(127);
	}
	(void)close(pair[1]);
	keeper_sock = pair[0];
	all = sessions_new(pair[0], &err);
	if (!all)
		die("sessions", &err);
}

static inline void stop_keeper(void)
{
	sessions_free(all);
	all = NULL;
	(void)waitpid(keeper_pid, NULL, 0);
	forget_runtime();
}

static inline void read_some(int *fd, char *to, size_t max, size_t *len)
{
	char buf[4096];
	ssize_t n;

	if (*fd < 0)
		return;
	n = read(*fd, buf, sizeof(buf));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fd_close(fd);
		return;
	}
	if ((size_t)n > max - 1 - *len)
		n = (ssize_t)(max - 1 - *len);
	memcpy(to + *len, buf, (size_t)n);
	*len += (size_t)n;
	to[*len] = '\0';
}

/* One turn of the loop, of at most `ms`. */
static inline int step(int ms)
{
	static struct pollfd p[1024];
	struct ran *who[1024];
	int n = 0;
	int r = 0;

	p[n++] = (struct pollfd){ .fd = sessions_fd(all), .events = POLLIN };
	for (struct ran *x = rans; x && n < 1020; x = x->next)
		for (int i = 0; i < 3; i++) {
			int fd = i < 2 ? x->fds[i] : x->tty;

			if (fd < 0)
				continue;
			who[n] = x;
			p[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
		}
	(void)poll(p, (nfds_t)n, ms);
	for (int i = 1; i < n; i++) {
		struct ran *x = who[i];

		if (!p[i].revents)
			continue;
		if (p[i].fd == x->tty)
			read_some(&x->tty, x->out, OUT_MAX, &x->out_len);
		else if (p[i].fd == x->fds[0])
			read_some(&x->fds[0], x->out, OUT_MAX, &x->out_len);
		else
			read_some(&x->fds[1], x->err, sizeof(x->err),
				  &x->err_len);
	}
	if (p[0].revents)
		r = sessions_step(all);
	return r;
}

/* Steps until it is so, for at most `ms`; whether it became so. */
#define WAIT_FOR(cond, ms)                                                     \
	({                                                                     \
		long end_ = now_ms() +                                         \
			    (getenv("CORDON_IN_VM") ? 10 : 1) * (ms);          \
		while (!(cond) && now_ms() < end_)                             \
			(void)step(20);                                        \
		(bool)(cond);                                                  \
	})

static inline void on_ready(void *arg)
{
	((struct box_s *)arg)->ready = true;
}

static inline void on_ended(void *arg, const struct wire_outcome *o)
{
	struct box_s *b = arg;

	b->ended = true;
	b->outcome = *o;
	b->s = NULL;
}

static inline void on_started(void *arg, int tty)
{
	struct ran *r = arg;

	r->started = true;
	r->tty = tty;
	if (tty >= 0)
		(void)fcntl(tty, F_SETFL, O_RDWR | O_NONBLOCK);
}

static inline void on_done(void *arg, const struct wire_outcome *o)
{
	struct ran *r = arg;

	r->ended = true;
	r->outcome = *o;
}

/* Words in pairs instead of a command: "@LANGUAGE", "CODE", and so on. */
static inline int add_code(struct cordon_spec *s, const char *const *argv)
{
	struct cordon_error err = { 0 };
	int r = 0;

	for (int i = 0; r == 0 && argv[i]; i += 2)
		r = cordon_spec_code(s, argv[i] + 1, argv[i + 1],
				     strlen(argv[i + 1]), NULL, &err);
	return r;
}

/* Of a program: as the user of its settings, and with this group (0: none). */
static bool prepare_as_user;
static uint32_t prepare_group;
static bool prepare_root_user; /* of a box: there is one */

/* The two blobs of settings and a command. */
static inline struct prepared prepare_va(const char *settings,
					 const char *const *argv)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error cerr = { 0 };
	struct prepared p;
	struct err err = { 0 };
	char copy[4096];
	char *save = NULL;

	(void)snprintf(copy, sizeof(copy), "%s", settings ? settings : "");
	for (char *w = strtok_r(copy, " ", &save); w;
	     w = strtok_r(NULL, " ", &save))
		box_set(s, w);
	if (best_effort)
		box_set(s, "best-effort=cgroup");
	s->root = image_root;
	s->stays = true;
	s->as_user = prepare_as_user;
	s->may_be_root = prepare_root_user;
	if (prepare_group) {
		box_set(s, "group-add=x");
		s->groups[s->n_groups++] = prepare_group;
	}
	if (argv[0][0] == '@' ? add_code(s, argv)
			      : cordon_spec_command(s, argv, &cerr) < 0) {
		printf("# %s\n", cerr.text);
		_exit(1);
	}
	if (prepare(s, &p, &err) < 0)
		die("prepare", &err);
	cordon_spec_free(s);
	return p;
}

static inline struct prepared prepare_for(const char *settings)
{
	const char *const argv[] = { "true", NULL };

	return prepare_va(settings, argv);
}

static inline struct box_s *open_want(const char *settings, int peer,
				      uint32_t shelf)
{
	static const struct session_events events = { on_ready, on_ended };
	struct prepared p = prepare_for(settings);
	const struct session_want want = { .box = p.box,
					   .peer = peer,
					   .shelf = shelf };
	struct box_s *b = calloc(1, sizeof(*b));
	struct err err = { 0 };

	b->s = session_open(all, &want, &events, b, &err);
	if (!b->s)
		die("open", &err);
	prepared_done(&p);
	return b;
}

/* Waits until it is ready; dies if it never is. */
static inline struct box_s *open_one(const char *settings)
{
	struct box_s *b = open_want(settings, NO_FD, 0);

	if (!WAIT_FOR(b->ready || b->ended, 10000) || b->ended)
		die("box", &b->outcome.err);
	return b;
}

static inline void close_one(struct box_s *b, bool keep)
{
	if (b->s)
		session_close(b->s, keep);
	CHECK(WAIT_FOR(b->ended, 10000));
}

struct how {
	bool tty;
	bool kill_rest;
	bool input;
	bool may_fail; /* the keeper may be dead by now */
	bool is_last;
	bool is_held; /* until let_go() */
	uint16_t rows, cols;
	const char *settings;
};

static inline struct ran *start_argv(struct box_s *b, const struct how *how,
				     const char *const *argv)
{
	static const struct session_exec_events events = { on_started,
							   on_done };
	struct prepared p = prepare_va(how->settings, argv);
	struct session_exec x = { .work = p.work,
				  .tty = how->tty,
				  .rows = how->rows,
				  .cols = how->cols,
				  .kill_rest = how->kill_rest,
				  .is_last = how->is_last };
	struct ran *r = calloc(1, sizeof(*r));
	struct err err = { 0 };
	int out[2];
	int err_pipe[2];
	int in[2];

	r->tty = r->in = r->fds[0] = r->fds[1] = NO_FD;
	r->box = b;
	if (!how->tty) {
		if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err_pipe, O_CLOEXEC) < 0)
			_exit(1);
		x.stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (how->input && pipe2(in, O_CLOEXEC) == 0) {
			(void)close(x.stdio[0]);
			x.stdio[0] = in[0];
			r->in = in[1];
		}
		x.stdio[1] = out[1];
		x.stdio[2] = err_pipe[1];
		r->fds[0] = out[0];
		r->fds[1] = err_pipe[0];
		(void)fcntl(out[0], F_SETFL, O_NONBLOCK);
		(void)fcntl(err_pipe[0], F_SETFL, O_NONBLOCK);
	}
	r->next = rans;
	rans = r;
	if (how->is_held) {
		if (session_hold(b->s, p.work, how->is_last, &r->number) < 0)
			die("hold", &err);
		memcpy(r->held, x.stdio, sizeof(r->held));
	} else if (session_exec(b->s, &x, &events, r, &r->number, &err) < 0 &&
		   !how->may_fail) {
		die("exec", &err);
	}
	prepared_done(&p);
	return r;
}

/* 0, or why what is on hold does not begin. */
static inline int let_go(struct ran *r)
{
	static const struct session_exec_events events = { on_started,
							   on_done };

	return session_let(r->box->s, r->number, r->held, &events, r);
}

static inline struct ran *start_va(struct box_s *b, const struct how *how,
				   va_list ap)
{
	const char *argv[32];
	int n = 0;

	while (n < 31 && (argv[n] = va_arg(ap, const char *)))
		n++;
	argv[n] = NULL;
	return start_argv(b, how, argv);
}

static inline struct ran *start_in(struct box_s *b, const struct how *how, ...)
{
	struct ran *r;
	va_list ap;

	va_start(ap, how);
	r = start_va(b, how, ap);
	va_end(ap);
	return r;
}

#define NOT_HOW (&(const struct how){ .settings = "timeout=20s" })

static inline bool is_over(const struct ran *r)
{
	return r->ended && r->fds[0] < 0 && r->fds[1] < 0;
}

/* Runs it to its end, output and all. */
static inline struct ran *run_sh(struct box_s *b, const char *script)
{
	struct ran *r = start_in(b, NOT_HOW, "sh", "-c", script, NULL);

	if (!WAIT_FOR(is_over(r), 20000)) {
		printf("# '%s' did not end\n", script);
		tap_bad++;
	}
	return r;
}

static inline int exit_of(const struct ran *r)
{
	if (r->outcome.err.code)
		printf("# %s: %s\n", r->outcome.err.stage, r->outcome.err.text);
	if (r->outcome.exec_errno)
		printf("# exec: %s\n", strerror(r->outcome.exec_errno));
	if (r->outcome.err.code || r->outcome.exec_errno)
		return -1;
	return WIFEXITED(r->outcome.wait_status)
		       ? WEXITSTATUS(r->outcome.wait_status)
		       : 1000 + WTERMSIG(r->outcome.wait_status);
}
