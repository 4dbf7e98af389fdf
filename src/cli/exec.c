/* SPDX-License-Identifier: Apache-2.0 */

/* cordon exec, attach, logs: streams of boxes that the daemon keeps. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/num.h"
#include "base/util.h"
#include "cli/cli.h"
#include "client/daemon.h"
#include "cli/box-commands.h"
#include "cli/opts.h"
#include "cli/stream.h"

static int exit_of(const struct err *err)
{
	switch (err->code) {
	case ECANCELED:
		return 0;
	case DAEMON_DENIED:
	case DAEMON_NOT_EXECUTABLE:
		return 126;
	case DAEMON_NO_PROGRAM:
		return 127;
	default:
		return EXIT_OURS;
	}
}

static int fail(const struct err *err)
{
	say("%s", err->text);
	return exit_of(err);
}

struct exec_flags {
	bool interactive, tty, detach;
	struct strv env;
	const char *workdir, *user, *timeout;
};

#define AT(member) offsetof(struct exec_flags, member)

static const struct opt exec_table[] = {
	{ "interactive", 'i', NULL, "pass standard input on", OPT_SWITCH,
	  AT(interactive) },
	{ "tty", 't', NULL, "give it a terminal", OPT_SWITCH, AT(tty) },
	{ "detach", 'd', NULL, "print its id and leave it", OPT_SWITCH,
	  AT(detach) },
	{ "env", 'e', "K=V", "a variable; repeats", OPT_LIST, AT(env) },
	{ "workdir", 'w', "DIR", "where it starts", OPT_TEXT, AT(workdir) },
	{ "user", 'u', "UID[:GID]|NAME", "whom it runs as", OPT_TEXT,
	  AT(user) },
	{ "timeout", 0, "D", "killed after this time: 30s, 2m", OPT_TEXT,
	  AT(timeout) },
};

const struct opts exec_opts = {
	.usage = "[FLAGS] BOX CMD [ARG...]",
	.v = exec_table,
	.n = ARRAY_SIZE(exec_table),
	.min = 2,
	.max = -1,
	.stops = true,
};

static void put_list(struct json *j, const char *name, char *const *v)
{
	json_open(j, name, '[');
	for (; v && *v; v++)
		json_str(j, NULL, *v);
	json_close(j, ']');
}

static void put_want(struct buf *b, const struct exec_flags *f, char **command)
{
	struct json j = { .out = b };
	struct winsize size;

	json_open(&j, NULL, '{');
	put_list(&j, "command", command);
	if (f->env.n)
		put_list(&j, "env", f->env.v);
	if (f->workdir)
		json_str(&j, "workdir", f->workdir);
	if (f->user)
		json_str(&j, "user", f->user);
	if (f->timeout)
		json_str(&j, "timeout", f->timeout);
	json_bool(&j, "tty", f->tty);
	json_bool(&j, "stdin", f->interactive);
	json_bool(&j, "detach", f->detach);
	if (f->tty && ioctl(0, TIOCGWINSZ, &size) == 0) {
		json_int(&j, "rows", size.ws_row);
		json_int(&j, "cols", size.ws_col);
	}
	json_close(&j, '}');
}

/* Whether a name that no box has is the id of a program in one. */
bool may_be_exec(const char *name, struct err *err)
{
	struct err unused = { 0 };
	char path[128];
	struct buf b;

	if (err->code != DAEMON_NOT_FOUND || strlen(name) != 64 ||
	    strspn(name, "0123456789abcdef") != 64 ||
	    daemon_format(path, sizeof(path), &unused, "/v1/execs/%s", name) <
		    0 ||
	    daemon_call("GET", path, NULL, &b, &unused) < 0)
		return false;
	buf_done(&b);
	*err = (struct err){ 0 };
	return true;
}

/* How it ended, asked for when its streams have. */
static int exit_code(const char *id, struct err *err)
{
	char path[128];
	struct value v;
	struct buf b;
	int code;

	if (daemon_format(path, sizeof(path), err, "/v1/execs/%s", id) < 0 ||
	    daemon_call("GET", path, NULL, &b, err) < 0)
		return fail(err);
	v = (struct value){ b.data, b.len };
	code = (int)member_int(&v, "exit_code", EXIT_OURS);
	buf_done(&b);
	return code;
}

static int run_exec(struct daemon *d, const struct exec_flags *f, char **argv,
		    struct err *err)
{
	struct stream_want want = { .input = f->interactive, .tty = f->tty };
	char path[1024];
	struct buf body;
	int r;

	if (daemon_format(path, sizeof(path), err, "/v1/boxes/%s/execs",
			  argv[1]) < 0)
		return -err->code;
	buf_init(&body, (size_t)4 << 20);
	put_want(&body, f, argv + 2);
	r = body.error ? err_set(err, E2BIG, "the command is too long")
		       : daemon_ask(d, "POST", path, body.data,
				    f->detach ? 0 : DAEMON_UPGRADE, err);
	buf_done(&body);
	if (r < 0 || f->detach)
		return r;
	if (f->tty)
		(void)snprintf(want.resize, sizeof(want.resize),
			       "/v1/execs/%s/resize", d->answer.exec);
	return stream_join(d, &want, err);
}

static int print_id(struct daemon *d, struct err *err)
{
	struct value v;
	struct buf b;
	char id[80];
	int r = daemon_body(d, &b, err);

	v = (struct value){ b.data, b.len };
	if (r == 0)
		printf("%s\n", member_text(&v, "id", id, sizeof(id)));
	buf_done(&b);
	return r;
}

int cmd_exec(int argc, char **argv)
{
	static struct daemon d;
	struct exec_flags f = { 0 };
	struct err err = { 0 };
	int code = 0;

	(void)argc;
	if (opts_read(&exec_opts, argv, &f, &err) < 0)
		return err.text[0] ? fail(&err) : 0;
	if (f.tty && !isatty(0)) {
		say("-t needs a terminal on standard input");
		return EXIT_OURS;
	}
	d.fd = NO_FD;
	if (run_exec(&d, &f, argv, &err) < 0)
		code = fail(&err);
	else if (f.detach)
		code = print_id(&d, &err) < 0 ? fail(&err) : 0;
	else
		code = exit_code(d.answer.exec, &err);
	daemon_done(&d);
	strv_done(&f.env);
	return code;
}

/* attach */

struct attach_flags {
	bool no_stdin, logs;
};

static const struct opt attach_table[] = {
	{ "no-stdin", 0, NULL, "do not pass standard input on", OPT_SWITCH,
	  offsetof(struct attach_flags, no_stdin) },
	{ "logs", 0, NULL, "from the start", OPT_SWITCH,
	  offsetof(struct attach_flags, logs) },
};

const struct opts attach_opts = {
	.usage = "[FLAGS] BOX|EXEC",
	.v = attach_table,
	.n = ARRAY_SIZE(attach_table),
	.min = 1,
	.max = 1,
};

/* The exit code of a box's main program, when it has ended. */
int wait_box(const char *box, struct err *err)
{
	char path[1024];
	struct value v;
	struct buf b;
	int code;

	if (daemon_format(path, sizeof(path), err, "/v1/boxes/%s/wait", box) <
		    0 ||
	    daemon_call("POST", path, NULL, &b, err) < 0)
		return fail(err);
	v = (struct value){ b.data, b.len };
	code = (int)member_int(&v, "exit_code", EXIT_OURS);
	buf_done(&b);
	return code;
}

/* Forms of the paths to attach and to resize. */
static int attach_to(const char *name, const char *form, const char *resize,
		     bool has_input, struct err *err)
{
	static struct daemon d;
	struct stream_want want = { .input = has_input };
	char path[1024];
	int r;

	if (daemon_format(path, sizeof(path), err, form, name) < 0)
		return -err->code;
	r = daemon_ask(&d, "POST", path, NULL, DAEMON_UPGRADE, err);
	if (r == 0) {
		want.tty = d.answer.is_raw && has_input && isatty(0);
		if (want.tty)
			(void)daemon_format(want.resize, sizeof(want.resize),
					    err, resize, name);
		r = stream_join(&d, &want, err);
	}
	daemon_done(&d);
	return r;
}

int attach_box(const char *box, bool has_input, bool has_logs, struct err *err)
{
	return attach_to(box,
			 has_logs ? "/v1/boxes/%s/attach?stdin=1&logs=1"
				  : "/v1/boxes/%s/attach?stdin=1",
			 "/v1/boxes/%s/resize", has_input, err);
}

static int attach_exec(const char *id, bool has_input, struct err *err)
{
	if (attach_to(id, "/v1/execs/%s/attach", "/v1/execs/%s/resize",
		      has_input, err) < 0)
		return fail(err);
	return exit_code(id, err);
}

int cmd_attach(int argc, char **argv)
{
	struct attach_flags f = { 0 };
	struct err err = { 0 };

	(void)argc;
	if (opts_read(&attach_opts, argv, &f, &err) < 0)
		return err.text[0] ? fail(&err) : 0;
	if (attach_box(argv[1], !f.no_stdin, f.logs, &err) == 0)
		return wait_box(argv[1], &err);
	if (may_be_exec(argv[1], &err))
		return attach_exec(argv[1], !f.no_stdin, &err);
	return fail(&err);
}

/* logs */

struct log_flags {
	bool follow, timestamps;
	const char *since, *until, *tail;
};

static const struct opt log_table[] = {
	{ "follow", 'f', NULL, "what comes, too", OPT_SWITCH,
	  offsetof(struct log_flags, follow) },
	{ "timestamps", 't', NULL, "when each line came", OPT_SWITCH,
	  offsetof(struct log_flags, timestamps) },
	{ "since", 0, "TIME", "10m ago, or seconds since 1970", OPT_TEXT,
	  offsetof(struct log_flags, since) },
	{ "until", 0, "TIME", "the same", OPT_TEXT,
	  offsetof(struct log_flags, until) },
	{ "tail", 'n', "N", "the last N lines", OPT_TEXT,
	  offsetof(struct log_flags, tail) },
};

const struct opts log_opts = {
	.usage = "[FLAGS] BOX",
	.v = log_table,
	.n = ARRAY_SIZE(log_table),
	.min = 1,
	.max = 1,
};

/* "10m" is so long ago, a plain number is a time. Milliseconds. */
static int parse_when(const char *text, int64_t *ret, struct err *err)
{
	struct timespec now;
	uint64_t n;

	if (!text) {
		*ret = 0;
		return 0;
	}
	if (num_parse(text, 1ULL << 40, &n) == 0) {
		*ret = (int64_t)n * 1000;
		return 0;
	}
	if (num_parse_duration(text, &n) < 0)
		return err_set(err, EINVAL,
			       "'%.60s' is no time: write 10m for ten minutes "
			       "ago, or seconds since 1970",
			       text);
	clock_gettime(CLOCK_REALTIME, &now);
	*ret = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 -
	       (int64_t)(n / 1000);
	return 0;
}

static int log_path(const struct log_flags *f, const char *box, char *ret,
		    size_t size, struct err *err)
{
	int64_t since = 0;
	int64_t until = 0;
	uint64_t tail = 0;
	char path[1024];

	if (parse_when(f->since, &since, err) < 0 ||
	    parse_when(f->until, &until, err) < 0)
		return -err->code;
	if (f->tail && strcmp(f->tail, "all") != 0 &&
	    num_parse(f->tail, INT32_MAX, &tail) < 0)
		return err_set(err, EINVAL, "--tail takes a number or 'all'");
	if (daemon_format(path, sizeof(path), err, "/v1/boxes/%s/logs", box) <
	    0)
		return -err->code;
	(void)snprintf(ret, size,
		       "%s?follow=%d&timestamps=%d&since_ms=%lld&until_ms=%lld"
		       "&tail=%lld",
		       path, f->follow, f->timestamps, (long long)since,
		       (long long)until,
		       f->tail && strcmp(f->tail, "all") != 0 ? (long long)tail
							      : -1LL);
	return 0;
}

int cmd_logs(int argc, char **argv)
{
	static struct daemon d;
	struct log_flags f = { 0 };
	struct err err = { 0 };
	char path[1200];
	int r;

	(void)argc;
	if (opts_read(&log_opts, argv, &f, &err) < 0)
		return err.text[0] ? fail(&err) : 0;
	r = log_path(&f, argv[1], path, sizeof(path), &err);
	if (r == 0) {
		r = daemon_ask(&d, "GET", path, NULL, 0, &err);
		if (r == 0)
			r = stream_show(&d, &err);
		daemon_done(&d);
	}
	if (r < 0 && may_be_exec(argv[1], &err))
		(void)err_set(&err, DAEMON_UNSUPPORTED,
			      "'%.12s' is a program in a box, whose output is "
			      "in no log; 'cordon attach %.64s' shows what is "
			      "kept of it",
			      argv[1], argv[1]);
	return r < 0 ? fail(&err) : 0;
}
