/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the tests of connect.c share: a daemon of their own, and short words. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include <cordon/daemon.h>

#include "tap.h"

struct served {
	pid_t pid;
	char dir[64];
	char socket[96];
	struct cordon *c;
};

static void nap(int ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL);
}

static void put_file(const struct served *s, const char *name, const char *text)
{
	char path[160];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	f = fopen(path, "we");
	CHECK(f != NULL);
	if (!f)
		return;
	(void)fputs(text, f);
	(void)fclose(f);
	(void)chmod(path, 0644);
}

static void be_daemon(const struct served *s)
{
	char path[4096], name[96];
	int log;

	(void)snprintf(name, sizeof(name), "%s/log", s->dir);
	log = open(name, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	(void)dup2(log, 1);
	(void)dup2(log, 2);
	(void)snprintf(name, sizeof(name), "%s/state", s->dir);
	(void)setenv("CORDON_STATE_DIR", name, 1);
	(void)snprintf(name, sizeof(name), "%s/run", s->dir);
	(void)setenv("CORDON_RUNTIME_DIR", name, 1);
	(void)snprintf(name, sizeof(name), "%s/policy.yaml", s->dir);
	(void)setenv("CORDON_POLICY", name, 1);
	(void)snprintf(path, sizeof(path), "%s/cordon", getenv("CORDON_BUILD"));
	(void)execl(path, "cordon", "serve", "--socket", s->socket, NULL);
	_exit(127);
}

static void show_log(const struct served *s)
{
	char text[160];

	(void)fflush(stdout);
	(void)snprintf(text, sizeof(text), "sed 's/^/# /' '%s/log'", s->dir);
	(void)!system(text);
}

static void launch(struct served *s)
{
	struct cordon_error err = { 0 };

	s->pid = fork();
	if (s->pid == 0)
		be_daemon(s);
	for (int i = 0; i < 500 && !s->c; i++) {
		s->c = cordon_connect(s->socket, &err);
		if (!s->c)
			nap(20);
	}
	if (!s->c) {
		printf("# no daemon: %s\n", err.text);
		(void)kill(s->pid, SIGTERM);
		show_log(s);
		_exit(1);
	}
}

/* A daemon with that policy, and a handle on it. */
static void serve_by(struct served *s, const char *policy)
{
	memset(s, 0, sizeof(*s));
	(void)strcpy(s->dir, "/tmp/cordon-connect-XXXXXX");
	if (!getenv("CORDON_BUILD") || !mkdtemp(s->dir)) {
		printf("# CORDON_BUILD is not set, or no directory\n");
		(void)fflush(stdout);
		_exit(1);
	}
	(void)chmod(s->dir, 0755);
	(void)snprintf(s->socket, sizeof(s->socket), "%s/own.sock", s->dir);
	put_file(s, "policy.yaml", policy);
	launch(s);
}

static void serve(struct served *s)
{
	serve_by(s, "version: 1\nsandbox: {memory: 512m, images: [host, "
		    "'absent:1'], mount_roots: [/tmp]}\n");
}

/* With ASan; NOLINTNEXTLINE(bugprone-reserved-identifier) */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* The signal that it died of, 0: none. */
static int end(const struct served *s)
{
	int status = 0;

	(void)kill(s->pid, SIGTERM);
	while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void stop(struct served *s)
{
	char text[160];

	cordon_close(s->c);
	/* Nothing of the library is left. */
	if (__lsan_do_recoverable_leak_check)
		CHECK_INT(__lsan_do_recoverable_leak_check(), 0);
	s->c = NULL;
	/* What one that was killed has left, the next one removes. */
	if (end(s) == SIGKILL) {
		launch(s);
		cordon_close(s->c);
		CHECK_INT(end(s), 0);
	}
	(void)snprintf(text, sizeof(text), "rm -rf '%s'", s->dir);
	CHECK(system(text) == 0);
}

/* ---- specs ---- */

static struct cordon_spec *command(const char *program, const char *word)
{
	const char *const argv[] = { program, word, NULL };
	struct cordon_spec *s = cordon_spec_new();

	CHECK_INT(cordon_spec_command(s, argv, NULL), 0);
	return s;
}

static struct cordon_spec *sh(const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct cordon_spec *s = cordon_spec_new();

	CHECK_INT(cordon_spec_command(s, argv, NULL), 0);
	return s;
}

static void set(struct cordon_spec *s, const char *name, const char *value)
{
	struct cordon_error err = { 0 };

	CHECK_INT(cordon_spec_set(s, name, value, &err), 0);
	if (err.code)
		printf("# %s\n", err.text);
}

/* ---- boxes and programs; specs are freed ---- */

static void give_up(struct served *s, const char *what,
		    const struct cordon_error *err)
{
	printf("# %s: %s (%d)\n", what, err->text, err->code);
	tap_bad++;
	stop(s);
	(void)fflush(NULL);
	_exit(1);
}

static struct cordon_result *run(struct served *s, struct cordon_spec *spec)
{
	struct cordon_result *r = NULL;
	struct cordon_error err = { 0 };

	if (cordon_run(s->c, spec, &r, &err) < 0)
		give_up(s, "run", &err);
	cordon_spec_free(spec);
	return r;
}

static struct cordon_result *exec(struct served *s, const char *box,
				  struct cordon_spec *spec)
{
	struct cordon_result *r = NULL;
	struct cordon_error err = { 0 };

	if (cordon_exec(s->c, box, spec, &r, &err) < 0)
		give_up(s, "exec", &err);
	cordon_spec_free(spec);
	return r;
}

/* One that runs and has no main program. */
static void box(struct served *s, char id[CORDON_ID_SIZE])
{
	struct cordon_error err = { 0 };
	struct cordon_spec *spec = cordon_spec_new();

	if (cordon_box_create(s->c, spec, id, &err) < 0 ||
	    cordon_box_start(s->c, id, &err) < 0)
		give_up(s, "make a box", &err);
	cordon_spec_free(spec);
}

/* What a script in a box prints, until the next call. */
static const char *text_of(struct served *s, const char *id, const char *script)
{
	static struct cordon_result *last;

	cordon_result_free(last);
	last = exec(s, id, sh(script));
	return cordon_result_stdout(last, NULL);
}

/* Whether a document has this; frees it. */
static bool has(char *document, const char *part)
{
	bool is_in = document && strstr(document, part);

	free(document);
	return is_in;
}

/* ---- jobs ---- */

struct heard {
	char text[3][64]; /* by stream: the first of it */
	size_t len[3];
	int begun;
};

static void keep(void *arg, int stream, const void *data, size_t len)
{
	struct heard *h = arg;
	size_t room = sizeof(h->text[0]) - 1;
	size_t at = h->len[stream];

	if (at < room)
		memcpy(h->text[stream] + at, data,
		       len < room - at ? len : room - at);
	h->len[stream] += len;
}

static void begun(void *arg, int tty_fd)
{
	struct heard *h = arg;

	CHECK_INT(tty_fd, -1);
	h->begun++;
}

/* Until so many bytes of standard output are there; 20 s at most. */
static void step_until(struct cordon_job *j, struct heard *h, size_t len)
{
	struct pollfd p = { .fd = cordon_job_fd(j), .events = POLLIN };

	for (int i = 0; h->len[1] < len && i < 200; i++) {
		(void)poll(&p, 1, 100);
		if (cordon_job_step(j))
			break;
	}
	CHECK_INT((long long)h->len[1], (long long)len);
}

static void wait_job(struct cordon_job *j)
{
	struct pollfd p = { .fd = cordon_job_fd(j), .events = POLLIN };

	for (int i = 0; i < 600; i++) {
		if (cordon_job_step(j))
			return;
		(void)poll(&p, 1, 100);
	}
	printf("# a job does not end\n");
	tap_bad++;
}

/* ---- somebody else on a socket ---- */

struct foe {
	int fd;
	char dir[64];
	char path[96];
	const char *volatile says;
	volatile size_t heard;
	pthread_t thread;
};

static void foe_open(struct foe *f, void *(*run_it)(void *arg))
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	memset(f, 0, sizeof(*f));
	(void)strcpy(f->dir, "/tmp/cordon-foe-XXXXXX");
	CHECK(mkdtemp(f->dir) != NULL);
	(void)snprintf(f->path, sizeof(f->path), "%s/sock", f->dir);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f->path);
	f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(bind(f->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	CHECK(listen(f->fd, 8) == 0);
	(void)pthread_create(&f->thread, NULL, run_it, f);
}

static void foe_close(struct foe *f)
{
	(void)shutdown(f->fd, SHUT_RDWR);
	(void)pthread_join(f->thread, NULL);
	(void)close(f->fd);
	(void)unlink(f->path);
	(void)rmdir(f->dir);
}
