/* SPDX-License-Identifier: Apache-2.0 */

/* cordon run: one run, its streams passed on, its end told. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/util.h"
#include "box/guard.h"
#include "box/handle.h"
#include "box/lang.h"
#include "box/result.h"
#include "box/spec.h"
#include "cli/cli.h"
#include "cli/create.h"
#include "cli/flags.h"
#include "keeper/keeper.h"

#define MAX_CODE (64ULL << 20)

struct session {
	struct cordon_spec *spec;
	struct run_flags flags;
	struct cordon_job *job;
	struct keeper *keeper; /* in this very process */
	int signals;
	int tty; /* the box's terminal */
	bool is_raw;
	struct termios before; /* our own terminal's settings */
	uint64_t passed[3];    /* bytes of each stream already shown */
	bool is_deaf;          /* our own output could not be written */
	bool input_open;
	char input[16384];
	size_t input_at;
	size_t input_len;
};

/* Without --json a stream is passed on at once up to half its limit; its
 * last half is known only at the end. A terminal has no limit. */
static void on_output(void *arg, int stream, const void *data, size_t len)
{
	struct session *s = arg;
	const struct cordon_spec *spec = job_spec(s->job);
	uint64_t limit = spec->tty ? UINT64_MAX : spec->output / 2;
	uint64_t room = limit - MIN(limit, s->passed[stream]);
	size_t n = (size_t)MIN(len, room);

	if (s->flags.json || s->is_deaf || n == 0)
		return;
	s->passed[stream] += n;
	if (io_write_all(stream, data, n) < 0) {
		/* What follows would not be what the program said. */
		s->is_deaf = true;
		cordon_job_cancel(s->job, "standard output was closed");
	}
}

static void copy_size(struct session *s)
{
	struct winsize size;

	if (s->tty >= 0 && ioctl(0, TIOCGWINSZ, &size) == 0)
		(void)ioctl(s->tty, TIOCSWINSZ, &size);
}

static void go_raw(struct session *s)
{
	struct termios raw;

	if (tcgetattr(0, &s->before) < 0)
		return;
	raw = s->before;
	cfmakeraw(&raw);
	s->is_raw = tcsetattr(0, TCSADRAIN, &raw) == 0;
}

static void on_started(void *arg, int tty)
{
	struct session *s = arg;

	if (tty < 0)
		return;
	s->tty = tty;
	copy_size(s);
	go_raw(s);
}

static void on_signal(struct session *s)
{
	static const char *const names[] = { [SIGHUP] = "SIGHUP",
					     [SIGINT] = "SIGINT",
					     [SIGQUIT] = "SIGQUIT",
					     [SIGTERM] = "SIGTERM" };
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		copy_size(s);
		return;
	}
	cordon_job_cancel(s->job, names[info.ssi_signo]);
}

/* Takes from our standard input and gives to the box's, without blocking. */
static void pass_input(struct session *s, bool is_ready)
{
	if (s->input_at == s->input_len && is_ready) {
		ssize_t n = read(0, s->input, sizeof(s->input));

		if (n <= 0) {
			s->input_open = false;
			if (!s->spec->tty)
				(void)cordon_job_write(s->job, NULL, 0);
			return;
		}
		s->input_at = 0;
		s->input_len = (size_t)n;
	}
	if (s->input_at < s->input_len) {
		long n = cordon_job_write(s->job, s->input + s->input_at,
					  s->input_len - s->input_at);

		if (n < 0)
			s->input_open = false;
		else
			s->input_at += (size_t)n;
	}
}

/* The keeper's turn; when it is done it goes, and the job hears of it. */
static void keep(struct keeper *k)
{
	if (!k->is_over)
		keeper_step(k, 0);
	if (k->is_over)
		keeper_close(k);
}

static void watch(struct session *s)
{
	struct pollfd fds[] = {
		{ .fd = cordon_job_fd(s->job), .events = POLLIN },
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = 0, .events = POLLIN },
		{ .fd = keeper_fd(s->keeper), .events = POLLIN },
	};

	while (!cordon_job_step(s->job)) {
		bool pending = s->input_at < s->input_len;
		bool wants = s->input_open && !pending &&
			     (!s->spec->tty || s->tty >= 0);
		int timeout = keeper_timeout_ms(s->keeper);

		fds[2].fd = wants ? 0 : -1;
		if (s->input_open && pending && (timeout < 0 || timeout > 5))
			timeout = 5;
		if (poll(fds, ARRAY_SIZE(fds), timeout) < 0)
			continue;
		keep(s->keeper);
		if (fds[1].revents)
			on_signal(s);
		if (s->input_open && (pending || (wants && fds[2].revents)))
			pass_input(s, fds[2].revents != 0);
	}
}

static int open_signals(void)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT,
				      SIGWINCH };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		(void)sigaddset(&set, wanted[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The part of a stream that could not be passed on while it ran. */
static void show_rest(struct session *s, const struct cordon_result *r,
		      int stream)
{
	size_t len;
	const char *data = stream == 1 ? cordon_result_stdout(r, &len)
				       : cordon_result_stderr(r, &len);

	if (!s->is_deaf && s->passed[stream] < len &&
	    io_write_all(stream, data + s->passed[stream],
			 len - s->passed[stream]) < 0)
		s->is_deaf = true;
}

static void show(struct session *s, const struct cordon_result *r)
{
	const char *message = cordon_result_message(r);

	if (s->flags.json) {
		_cleanup_free_ char *json = cordon_result_json(r);

		if (json)
			s->is_deaf = io_write_all(1, json, strlen(json)) < 0;
		else
			say("out of memory for the result document");
		return;
	}
	show_rest(s, r, 1);
	show_rest(s, r, 2);
	for (size_t i = 0; i < r->warnings.n; i++)
		say("warning: %s", r->warnings.v[i]);
	for (size_t i = 0; i < r->violations.n; i++)
		say("%s", r->violations.v[i]);
	for (int i = 0; i < WIRE_LAYERS; i++)
		if (r->not_enforced & s->spec->best_effort & 1U << i)
			say("warning: %s is not enforced on this machine",
			    layer_name((enum wire_layer)i));
	if (message)
		say("%s: %s", cordon_result_cause(r), message);
}

static void take_turn(void *arg)
{
	keeper_step(arg, 0);
}

static struct cordon *open_handle(struct session *s, struct err *err)
{
	struct cordon *c;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		(void)err_errno(err, errno, "make a socket");
		return NULL;
	}
	keeper_open(s->keeper, pair[1], 0, false);
	if (s->keeper->is_over) {
		*err = s->keeper->refusal;
		return NULL;
	}
	c = handle_on(pair[0], err);
	if (c) {
		c->turn = take_turn;
		c->turn_arg = s->keeper;
	}
	return c;
}

static int run(struct session *s)
{
	const struct cordon_events events = { .started = on_started,
					      .output = on_output };
	struct cordon_error why = { 0 };
	struct err err = { 0 };
	struct cordon *c = open_handle(s, &err);
	struct cordon_result *r;
	int code = EXIT_OURS;

	if (!c) {
		say("%s", err.text);
		return code;
	}
	s->signals = open_signals();
	s->tty = -1;
	s->input_open = s->spec->interactive || s->spec->tty;
	s->job = cordon_start(c, s->spec, &events, s, &why);
	if (s->job) {
		watch(s);
		if (s->is_raw)
			(void)tcsetattr(0, TCSADRAIN, &s->before);
		r = cordon_job_end(s->job);
		show(s, r);
		code = cordon_result_exit_code(r);
		if (s->is_deaf) {
			say("standard output could not be written");
			code = code ? code : EXIT_OURS;
		}
		cordon_result_free(r);
	} else {
		say("%s", why.text);
	}
	cordon_close(c);
	return code;
}

/* what to run */

static int read_code(const char *path, struct buf *ret, struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	char chunk[65536];
	ssize_t n;

	buf_init(ret, MAX_CODE);
	if (strcmp(path, "-") != 0) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return err_errno(err, errno, "open '%s'", path);
	}
	while ((n = read(fd < 0 ? 0 : fd, chunk, sizeof(chunk))) > 0)
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return err_set(err, EFBIG, "'%s' is too large", path);
	if (n < 0)
		return err_errno(err, errno, "read '%s'", path);
	return 0;
}

static int take_args(struct cordon_spec *s, char **rest, struct err *err)
{
	for (; *rest; rest++)
		if (spec_set(s, "arg", *rest, err) < 0)
			return -err->code;
	return 0;
}

static int take_code(struct session *s, char **rest, struct err *err)
{
	const char *lang = s->flags.lang;
	struct cordon_error why = { 0 };
	struct buf code;
	int r;

	buf_init(&code, MAX_CODE);
	if (s->flags.code && buf_puts(&code, s->flags.code) < 0) {
		buf_done(&code);
		return err_set(err, EFBIG, "the code is too large");
	}
	if (!s->flags.code) {
		r = read_code(*rest, &code, err);
		if (r < 0) {
			buf_done(&code);
			return r;
		}
		if (!lang) {
			const struct lang *l = lang_of_file(*rest);

			lang = l ? l->names[0] : "";
		}
		rest++;
	}
	r = cordon_spec_code(s->spec, lang, code.data ? code.data : "",
			     code.len, NULL, &why);
	buf_done(&code);
	if (r < 0)
		return err_set(err, why.code, "%s", why.text);
	return take_args(s->spec, rest, err);
}

static int take_operands(struct session *s, char **rest, bool dashes,
			 struct err *err)
{
	struct cordon_error why = { 0 };

	if (s->flags.code && !s->flags.lang)
		return err_set(err, EINVAL,
			       "-c needs --lang, such as --lang python");
	if (s->flags.code || (s->flags.lang && *rest))
		return take_code(s, rest, err);
	if (s->flags.lang)
		return err_set(err, EINVAL,
			       "--lang needs code: -c CODE, a file, or - for "
			       "standard input");
	if (s->spec->command_line && *rest)
		return err_set(err, EINVAL,
			       "--command takes the whole line; nothing can "
			       "follow it");
	if (s->spec->command_line)
		return 0;
	if (!*rest && s->spec->image)
		return 0;
	if (!*rest)
		return err_set(err, EINVAL,
			       "nothing to run; write 'cordon run -- CMD' or "
			       "'cordon run --lang python -c CODE'");
	if (!dashes && lang_of_file(*rest))
		return take_code(s, rest, err);
	if (!dashes)
		return err_set(err, EINVAL,
			       "'%s' has no ending that names a language; for "
			       "a program write 'cordon run -- %s'",
			       *rest, *rest);
	if (cordon_spec_command(s->spec, (const char *const *)rest, &why) < 0)
		return err_set(err, why.code, "%s", why.text);
	return 0;
}

/* Our own terminal's kind and size go with -t. */
static int take_terminal(struct cordon_spec *s, struct err *err)
{
	const char *term = getenv("TERM");
	struct winsize size;

	if (!s->tty)
		return 0;
	if (ioctl(0, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
		s->tty_rows = size.ws_row;
		s->tty_cols = size.ws_col;
	}
	if (asprintf(&s->term, "TERM=%s", term ? term : "dumb") < 0) {
		s->term = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

static int dry_run(const struct cordon_spec *s)
{
	struct guard guard;
	struct err err = { 0 };
	_cleanup_free_ char *json = NULL;
	int code = EXIT_OURS;

	if (guard_judge(s, &guard, &err) < 0) {
		bool is_denied = guard.refused == REFUSED_DENIED;

		say("%s%s", is_denied ? "denied: " : "", err.text);
		guard_done(&guard);
		return is_denied ? 126 : EXIT_OURS;
	}
	if (guard.verdict.decision == DECISION_ASK)
		say("a person would be asked: %s", guard.verdict.why);
	json = cordon_spec_json(guard.spec);
	guard_done(&guard);
	if (!json)
		say("out of memory");
	else if (io_write_all(1, json, strlen(json)) == 0)
		code = 0;
	return code;
}

int cmd_run(int argc, char **argv)
{
	static struct session s;
	static struct keeper keeper;
	struct err err = { 0 };
	char **rest;
	bool dashes;
	int code = EXIT_OURS;

	s.keeper = &keeper;
	keeper_ahead(&keeper);
	s.spec = cordon_spec_new();
	if (!s.spec) {
		say("out of memory");
		return code;
	}
	if (flags_parse(argc, argv, s.spec, &s.flags, &rest, &dashes, &err) <
	    0) {
		say("%s", err.text);
	} else if (s.flags.help) {
		flags_help();
		code = 0;
	} else if (s.flags.detach) {
		code = create_box(s.spec, &s.flags, rest, dashes, true);
	} else if (take_operands(&s, rest, dashes, &err) < 0 ||
		   take_terminal(s.spec, &err) < 0 ||
		   spec_check(s.spec, &err) < 0) {
		say("%s", err.text);
	} else {
		s.spec->no_files = !s.flags.json;
		code = s.flags.dry_run ? dry_run(s.spec) : run(&s);
	}
	cordon_spec_free(s.spec);
	keeper_close(&keeper);
	return code;
}
