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
#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "box/guard.h"
#include "box/handle.h"
#include "box/prepare.h"
#include "box/result.h"
#include "box/spec.h"
#include "cli/cli.h"
#include "cli/create.h"
#include "cli/flags.h"
#include "cli/operands.h"
#include "cli/outlet.h"
#include "keeper/keeper.h"

#define MAX_DOCUMENT (2ULL << 30) /* as of cordon_result_json() */
#define MAX_PIPE     (4ULL << 20)

/* How long a reader may take what is left of a run that was ended. */
#define LAST_US 500000

struct session {
	struct cordon_spec *spec;
	struct run_flags flags;
	struct cordon_job *job;
	struct keeper *keeper; /* in this very process */
	int signals;
	int tty; /* the box's terminal */
	bool is_raw;
	struct termios before;    /* our own terminal's settings */
	struct outlet outlets[3]; /* our own 1 and 2 */
	bool is_held[3];          /* the box's waits for ours */
	uint64_t passed[3];       /* bytes of each stream already shown */
	size_t n_shown;           /* blocks that are */
	bool is_deaf;             /* our own output could not be written ... */
	char lost[160];           /* ... and why */
	bool input_open;
	bool input_ends; /* what is left to pass on is its end */
	bool is_in_line; /* what was read last did not end a line */
	char input[16384];
	size_t input_at;
	size_t input_len;
};

static const char *stream_name(int stream)
{
	return stream == 1 ? "standard output" : "standard error";
}

/* What became of our own output, once; then nothing more is written. */
static void look_at_outlet(struct session *s, int stream)
{
	int error = s->outlets[stream].error;

	if (!error || s->is_deaf)
		return;
	/* What follows would not be what the program said. */
	s->is_deaf = true;
	if (error == EPIPE)
		(void)snprintf(s->lost, sizeof(s->lost), "%s was closed",
			       stream_name(stream));
	else
		(void)snprintf(s->lost, sizeof(s->lost),
			       "%s could not be written: %s",
			       stream_name(stream),
			       error == ETIMEDOUT ? "nobody reads it"
						  : strerror(error));
	if (s->job)
		cordon_job_cancel(s->job, s->lost);
}

/* The box's stream waits as long as something of it waits here. */
static void hold(struct session *s, int stream)
{
	bool is_held = outlet_waits(&s->outlets[stream]);

	if (s->is_held[stream] == is_held)
		return;
	s->is_held[stream] = is_held;
	job_hold(s->job, stream, is_held);
}

static void put(struct session *s, int stream, const void *data, size_t len)
{
	if (s->is_deaf)
		return;
	outlet_put(&s->outlets[stream], data, len);
	look_at_outlet(s, stream);
}

/* The parts of streams that could not be passed on while they ran. */
static void show_rest(struct session *s, const struct cordon_result *r)
{
	for (; s->n_shown < r->n_runs; s->n_shown++)
		for (int i = 1; i <= 2; i++) {
			const struct run *run = &r->runs[s->n_shown];
			const struct stream *st = i == 1 ? &run->out
							 : &run->err;

			if (s->passed[i] < st->len)
				put(s, i, st->data + s->passed[i],
				    st->len - (size_t)s->passed[i]);
			s->passed[i] = 0;
		}
}

/* Without --json a stream is passed on at once up to half its limit; its
 * last half is known only at the end. A terminal has no limit. */
static void on_output(void *arg, int stream, const void *data, size_t len)
{
	struct session *s = arg;
	const struct cordon_spec *spec = job_spec(s->job);
	uint64_t limit = spec->tty ? UINT64_MAX : spec->output / 2;
	size_t n;

	if (s->flags.json)
		return;
	/* What is left of the block before comes first. */
	show_rest(s, job_result(s->job));
	n = (size_t)MIN(len, limit - MIN(limit, s->passed[stream]));
	s->passed[stream] += n;
	if (n > 0)
		put(s, stream, data, n);
	hold(s, 1);
	hold(s, 2);
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
	/* What nobody passes on stays our own terminal's to understand. */
	if (s->spec->interactive)
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

/*
 * A terminal has no end; its reader hears of one by a character, as from a
 * keyboard. In the midst of a line the first only hands on what there is.
 */
static size_t end_of_input(struct session *s)
{
	struct termios now;

	if (tcgetattr(s->tty, &now) < 0 || !(now.c_lflag & ICANON) ||
	    now.c_cc[VEOF] == _POSIX_VDISABLE)
		return 0;
	s->input[0] = (char)now.c_cc[VEOF];
	s->input[1] = s->input[0];
	return s->is_in_line ? 2 : 1;
}

/* Takes from our standard input and gives to the box's, without blocking. */
static void pass_input(struct session *s, bool is_ready)
{
	if (s->input_at == s->input_len && is_ready) {
		ssize_t n = read(0, s->input, sizeof(s->input));

		/* It may be another's too, who does not want to wait. */
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			say("warning: read standard input: %s",
			    strerror(errno));
		if (n <= 0 && !s->spec->tty) {
			s->input_open = false;
			(void)cordon_job_write(s->job, NULL, 0);
			return;
		}
		if (n <= 0) {
			s->input_ends = true;
			n = (ssize_t)end_of_input(s);
		} else {
			s->is_in_line = s->input[n - 1] != '\n';
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
	if (s->input_ends && s->input_at == s->input_len)
		s->input_open = false;
}

/* The keeper's turn; when it is done it goes, and the job hears of it. */
static void keep(struct keeper *k)
{
	if (!k->is_over)
		keeper_step(k, 0);
	if (k->is_over)
		keeper_close(k);
}

static void push(struct session *s, int stream, short revents)
{
	if (!s->is_held[stream] || !revents)
		return;
	outlet_push(&s->outlets[stream]);
	look_at_outlet(s, stream);
	hold(s, stream);
}

static void watch(struct session *s)
{
	struct pollfd fds[] = {
		{ .fd = cordon_job_fd(s->job), .events = POLLIN },
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = 0, .events = POLLIN },
		{ .fd = keeper_fd(s->keeper), .events = POLLIN },
		{ .events = POLLOUT },
		{ .events = POLLOUT },
	};

	while (!cordon_job_step(s->job)) {
		bool pending = s->input_at < s->input_len;
		bool wants = s->input_open && !pending &&
			     (!s->spec->tty || s->tty >= 0);
		int timeout = keeper_timeout_ms(s->keeper);

		fds[2].fd = wants ? 0 : -1;
		fds[4].fd = s->is_held[1] ? 1 : -1;
		fds[5].fd = s->is_held[2] ? 2 : -1;
		if (s->input_open && pending && (timeout < 0 || timeout > 5))
			timeout = 5;
		if (poll(fds, ARRAY_SIZE(fds), timeout) < 0)
			continue;
		keep(s->keeper);
		if (fds[1].revents)
			on_signal(s);
		push(s, 1, fds[4].revents);
		push(s, 2, fds[5].revents);
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

/* One that asks us to go; others are taken away. */
static bool has_signal(const struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGWINCH)
			return true;
	return false;
}

static bool has_waiting(const struct session *s)
{
	return !s->is_deaf &&
	       (outlet_waits(&s->outlets[1]) || outlet_waits(&s->outlets[2]));
}

/* Those that still wait will not be written. */
static void give_up(struct session *s)
{
	for (int i = 1; i <= 2; i++)
		if (outlet_waits(&s->outlets[i]))
			outlet_fail(&s->outlets[i], ETIMEDOUT);
}

/*
 * What is left, to a reader who may take as long as it likes; after a run that
 * was ended, only a little longer. A signal ends that.
 */
static void flush(struct session *s, bool is_short)
{
	int64_t until = clock_us() + LAST_US;
	struct pollfd fds[] = {
		{ .fd = s->signals, .events = POLLIN },
		{ .events = POLLOUT },
		{ .events = POLLOUT },
	};

	while (has_waiting(s)) {
		int64_t left = MAX(until - clock_us(), 0);

		for (int i = 1; i <= 2; i++)
			fds[i].fd = outlet_waits(&s->outlets[i]) ? i : -1;
		if (poll(fds, ARRAY_SIZE(fds),
			 is_short ? (int)(left / 1000) : -1) < 0)
			continue;
		for (int i = 1; i <= 2; i++)
			if (fds[i].revents)
				outlet_push(&s->outlets[i]);
		if ((is_short && left == 0) ||
		    (fds[0].revents && has_signal(s)))
			give_up(s);
		look_at_outlet(s, 1);
		look_at_outlet(s, 2);
	}
}

/*
 * Words go to standard error, which may stand still too: from here on a signal
 * ends us as it does others, and where time was up, nobody is waited for.
 */
static bool may_speak(const struct session *s, bool is_short)
{
	struct pollfd p = { .fd = 2, .events = POLLOUT };
	sigset_t none;

	/* Those that came before have had their effect. */
	while (has_signal(s))
		;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	return s->outlets[2].error != ETIMEDOUT &&
	       (!is_short || poll(&p, 1, LAST_US / 1000) != 0);
}

static void tell(struct session *s, const struct cordon_result *r)
{
	const char *message = cordon_result_message(r);

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

/* Whether there is more to say than that it was ended for this. */
static bool is_lost_news(const struct session *s, const struct cordon_result *r)
{
	return !r->cancel_reason || strcmp(r->cancel_reason, s->lost) != 0;
}

static void show(struct session *s, const struct cordon_result *r)
{
	enum cause cause = r->runs[r->n_runs - 1].verdict.cause;
	bool is_short = !s->flags.json &&
			(cause == CAUSE_TIMEOUT || cause == CAUSE_CANCELLED);

	if (s->flags.json) {
		_cleanup_free_ char *json = cordon_result_json(r);

		if (json)
			put(s, 1, json, strlen(json));
		else
			say("out of memory for the result document");
	} else {
		show_rest(s, r);
	}
	flush(s, is_short);
	if ((s->is_deaf || r->message || r->warnings.n || r->violations.n ||
	     r->not_enforced) &&
	    may_speak(s, is_short)) {
		if (!s->flags.json)
			tell(s, r);
		if (s->is_deaf && is_lost_news(s, r))
			say("%s", s->lost);
	}
}

/* Nothing was run; with --json the document says that too. */
static void fail(const struct session *s, enum cause cause, const char *why)
{
	_cleanup_free_ char *json = NULL;

	say("%s", why);
	if (!s->flags.json)
		return;
	json = result_json_of(cause, EXIT_OURS, why);
	if (json)
		(void)io_write_all(1, json, strlen(json));
}

static bool has_json(char **argv)
{
	for (argv++; *argv && strcmp(*argv, "--") != 0; argv++)
		if (strcmp(*argv, "--json") == 0)
			return true;
	return false;
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
		fail(s, CAUSE_SETUP, err.text);
		return code;
	}
	s->signals = open_signals();
	/* Each block's, which is kept by the job too, and what a pipe holds. */
	for (int i = 1; i <= 2; i++)
		outlet_init(&s->outlets[i], i,
			    s->flags.json
				    ? MAX_DOCUMENT
				    : (size_t)s->spec->output *
						      (SPEC_MAX_BLOCKS + 1) +
					      MAX_PIPE);
	s->tty = -1;
	s->input_open = s->spec->interactive;
	s->job = cordon_start(c, s->spec, &events, s, &why);
	if (s->job) {
		watch(s);
		if (s->is_raw)
			(void)tcsetattr(0, TCSADRAIN, &s->before);
		r = cordon_job_end(take_ptr(s->job));
		show(s, r);
		code = cordon_result_exit_code(r);
		if (s->is_deaf)
			code = code ? code : EXIT_OURS;
		cordon_result_free(r);
	} else {
		fail(s, CAUSE_SETUP, why.text);
	}
	for (int i = 1; i <= 2; i++)
		outlet_done(&s->outlets[i]);
	cordon_close(c);
	return code;
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
	static const int codes[] = { [REFUSED_NOT] = EXIT_OURS,
				     [REFUSED_DENIED] = 126,
				     [REFUSED_NOT_FOUND] = 127,
				     [REFUSED_INVALID] = EXIT_OURS };
	struct prepared prep;
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
	guard.spec->is_dry = true;
	if (prepare(guard.spec, &prep, &err) < 0 ||
	    prepare_find(guard.spec, &prep, &err) < 0) {
		say("%s%s", prep.refused == REFUSED_DENIED ? "denied: " : "",
		    err.text);
		code = prep.exit_code ? prep.exit_code : codes[prep.refused];
		prepared_done(&prep);
		guard_done(&guard);
		return code;
	}
	prepared_done(&prep);
	if (guard.verdict.decision == DECISION_ASK)
		say("a person would be asked: %s", guard.verdict.why);
	json = cordon_spec_json(guard.spec);
	guard_done(&guard);
	if (!json)
		say("out of memory");
	else if (!stream_is_missing(1) &&
		 io_write_all(1, json, strlen(json)) == 0)
		code = 0;
	else
		say("standard output could not be written");
	return code;
}

/* Whether its text has a word about the network. */
static bool has_network(const char *policy)
{
	_cleanup_fd_ int fd = open(policy, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	char text[4096];
	ssize_t n = -1;

	/* Of a pipe there would be nothing left for who reads it. */
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = io_read_full(fd, text, sizeof(text));
	return n > 0 && memmem(text, (size_t)n, "network:", 8);
}

/*
 * Whether the box will probably have a way out: a guess before anything is
 * read. Where it is wrong the box is the same, and takes longer to make.
 */
static bool expects_way_out(char **argv)
{
	bool ret = false;

	for (; *argv && strcmp(*argv, "--") != 0; argv++) {
		if (strncmp(*argv, "--network", 9) == 0)
			return false;
		if (strncmp(*argv, "--allow-host", 12) == 0)
			ret = true;
		else if (strcmp(*argv, "--policy") == 0 && argv[1])
			ret = ret || has_network(argv[1]);
	}
	return ret;
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
	/* A low `ulimit -f` is an error that can be told; a box has its own. */
	(void)signal(SIGXFSZ, SIG_IGN);
	keeper_ahead(&keeper, expects_way_out(argv));
	io_hold_below(KEEPER_FIRST_FD); /* it has not opened anything */
	s.spec = cordon_spec_new();
	if (!s.spec) {
		say("out of memory");
		return code;
	}
	if (flags_parse(argc, argv, s.spec, &s.flags, &rest, &dashes, &err) <
	    0) {
		/* It may stand behind what is wrong. */
		s.flags.json = s.flags.json || has_json(argv);
		fail(&s, CAUSE_INVALID, err.text);
	} else if (s.flags.help) {
		flags_help();
		code = 0;
	} else if (s.flags.detach) {
		code = create_box(s.spec, &s.flags, rest, dashes, true);
	} else if (operands_take(s.spec, &s.flags, rest, dashes, &err) < 0 ||
		   take_terminal(s.spec, &err) < 0 ||
		   spec_check(s.spec, &err) < 0) {
		fail(&s, CAUSE_INVALID, err.text);
	} else {
		s.spec->no_files = !s.flags.json;
		code = s.flags.dry_run ? dry_run(s.spec) : run(&s);
	}
	cordon_spec_free(s.spec);
	keeper_close(&keeper);
	return code;
}
