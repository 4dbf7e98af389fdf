/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon-desk approvals ask: asks, waits, and says what was answered.
 *
 * Theory of operation
 *
 * The request is recorded first, also when it is then asked on the terminal:
 * both ways end in the same row, so that one answer holds whoever gives it.
 * The loop looks at the row, at the terminal, at signals and at the clock;
 * inotify tells when the store was written, and without it the row is looked
 * at twice a second. A row that says "allowed" is taken (store_take) before it
 * is told, so a second asker with the same id is not allowed by it.
 *
 * Whatever fails is a denial that says why: status 1 where somebody or the
 * clock decided, 125 where the asking itself failed.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "desk/approvals.h"
#include "desk/asker.h"
#include "desk/desk.h"
#include "desk/rules.h"
#include "desk/terminal.h"

/* Pauses between looks at the row. */
#define SOON_MS 2
#define LOOK_MS 500

struct asking {
	struct store store;
	struct request request;
	struct asker asker;
	struct entry entry; /* as it was last read */
	struct terminal terminal;
	char id[STORE_ID + 1];
	char content[65];
	const char *session;
	int signals;
	int watch;
	int64_t deadline; /* clock_us() */
	int pause;        /* ms */
	bool is_told;     /* that it waits */
};

/* The one line that the asker reads; the exit status. */
static int tell(const char *id, bool allow, const char *scope,
		const char *reason, const char *by)
{
	struct buf out;
	struct json j = { .out = &out };
	int r;

	buf_init(&out, 65536);
	json_open(&j, NULL, '{');
	json_str(&j, "id", id);
	json_str(&j, "decision", allow ? "allow" : "deny");
	json_str(&j, "scope", scope);
	json_str(&j, "reason", reason);
	json_str(&j, "by", by);
	json_close(&j, '}');
	buf_puts(&out, "\n");
	r = out.error ? out.error : io_write_all(1, out.data, out.len);
	buf_done(&out);
	if (r < 0)
		return EXIT_OURS;
	return allow ? EXIT_ALLOWED : EXIT_DENIED;
}

static int deny(const struct asking *a, const char *reason)
{
	return tell(a->id, false, "once", reason, "cordon");
}

/* The asking failed; that is said to both who asks and who looks. */
static int fail(const struct asking *a, const struct err *err)
{
	(void)tell(a->id, false, "once", err->text, "cordon");
	say("not approved: %s", err->text);
	return EXIT_OURS;
}

/* the request */

static int read_request(struct asking *a, struct err *err)
{
	struct buf in;
	char chunk[65536];
	ssize_t n;
	int r = 0;

	buf_init(&in, REQUEST_MAX);
	while ((n = read(0, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = err_errno(err, errno, "read the request");
		else if (buf_add(&in, chunk, (size_t)n) < 0)
			r = err_set(err, E2BIG,
				    "the request is larger than %u bytes",
				    REQUEST_MAX);
		if (r < 0)
			break;
	}
	if (r == 0)
		r = request_parse(in.data, in.len, &a->request, err);
	buf_done(&in);
	if (r == 0)
		request_content(&a->request, a->content);
	return r;
}

/* A standing answer: 1 and it was told, 0: there is none. */
static int find_standing(struct asking *a, int *ret_status, struct err *err)
{
	struct rules rules;
	struct grant grant;
	const struct rule *rule;
	int r = rules_load(&a->store.state, &rules, err);

	if (r < 0)
		say("%s; nothing is allowed by it", err->text);
	rule = r == 0 ? rules_find(&rules, a->content) : NULL;
	if (rule)
		*ret_status = tell(rule->id, true, "always", rule->reason,
				   rule->by);
	if (r == 0)
		rules_done(&rules);
	if (rule)
		return 1;
	r = grant_find(&a->store, a->session, a->content, &grant, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	*ret_status = tell(grant.id, true, "session", grant.reason, grant.by);
	grant_done(&grant);
	return 1;
}

/* One that its asker left behind is taken up rather than asked twice. */
static int record(struct asking *a, struct err *err)
{
	struct buf document;
	struct entry e = { .session = (char *)a->session,
			   .user = a->asker.user,
			   .program = a->asker.program,
			   .pid = a->asker.pid,
			   .waiter = getpid(),
			   .started = process_start(getpid()),
			   .made = store_now() };
	int r;

	buf_init(&document, 4 * REQUEST_MAX);
	request_format(&a->request, &document);
	e.document = document.data;
	e.expires = e.made + (int64_t)a->request.expire_ms;
	(void)strcpy(e.content, a->content);
	if (document.error)
		r = err_set(err, E2BIG, "the request is too large");
	else
		r = store_adopt(&a->store, &e, err);
	if (r == -ENOENT)
		r = store_add(&a->store, &e, err);
	buf_done(&document);
	if (r == 0)
		(void)strcpy(a->id, e.id);
	return r;
}

/* Takes up a request that was made before. */
static int resume(struct asking *a, const char *id, struct err *err)
{
	struct entry e = { 0 };
	int r;

	if (strlen(id) != STORE_ID)
		return err_set(err, EINVAL, "--resume takes a whole id");
	r = store_get(&a->store, id, &e, err);
	if (r < 0)
		return r;
	if (strcmp(e.content, a->content) != 0)
		r = err_set(err, EPERM, "request '%s' was for something else",
			    id);
	else
		(void)strcpy(a->id, id);
	entry_done(&e);
	return r;
}

/* waiting */

static int look(struct asking *a, struct err *err)
{
	entry_done(&a->entry);
	return store_get(&a->store, a->id, &a->entry, err);
}

/* Whether somebody is left to read our answer. */
static bool has_reader(void)
{
	struct pollfd out = { .fd = 1 };

	return poll(&out, 1, 0) <= 0 || !(out.revents & (POLLERR | POLLNVAL));
}

/* The row has been decided: -1 if not, else the status. */
static int decided(struct asking *a, struct err *err)
{
	const struct entry *e = &a->entry;
	int r;

	switch (e->state) {
	case ENTRY_WAITING:
		return -1;
	case ENTRY_EXPIRED:
		return deny(a, "nobody answered in time");
	case ENTRY_DENIED:
		return tell(a->id, false, "once",
			    *e->reason ? e->reason : "denied", e->by);
	case ENTRY_ALLOWED:
		break;
	}
	if (!has_reader())
		return EXIT_OURS;
	r = store_take(&a->store, a->id, err);
	if (r == -EALREADY || r == -ETIME)
		return deny(a, err->text);
	if (r < 0)
		return fail(a, err);
	return tell(a->id, true, scope_name(e->scope), e->reason, e->by);
}

static int expire(struct asking *a, struct err *err)
{
	int r = store_expire(&a->store, a->id, err);

	if (r < 0 && r != -EALREADY)
		return fail(a, err);
	r = look(a, err);
	if (r < 0)
		return fail(a, err);
	r = decided(a, err);
	return r >= 0 ? r : deny(a, "nobody answered in time");
}

/* the terminal */

static void show_question(struct asking *a, size_t max)
{
	struct err err = { 0 };
	struct buf text;
	bool has_session = *a->entry.session != '\0';

	buf_init(&text, SHOW_MAX);
	buf_puts(&text, "\ncordon: this needs your answer\n");
	if (approvals_describe(&a->entry, max, &text, &err) < 0 || text.error) {
		say("the request cannot be shown: %s", err.text);
		terminal_close(&a->terminal);
	} else {
		(void)terminal_ask(&a->terminal, text.data, text.len,
				   has_session);
	}
	buf_done(&text);
}

/* Gives the answer that was typed; 0, or the request is asked again. */
static void reply_with(struct asking *a, bool allow, enum scope scope)
{
	char by[160];
	struct store_answer answer = { .is_allowed = allow,
				       .scope = scope,
				       .reason = a->terminal.reason,
				       .by = by };
	bool has_session = *a->entry.session != '\0';
	struct entry now = { 0 };
	struct err err = { 0 };
	int r;

	(void)snprintf(by, sizeof(by), "%s on %s", a->asker.user,
		       a->terminal.name);
	r = approvals_answer(&a->store, a->id, &answer, &now, &err);
	entry_done(&now);
	/* Another's answer or the end of its time is seen in the row. */
	if (r < 0 && r != -EALREADY && r != -ETIME)
		terminal_prompt(&a->terminal, err.text, has_session);
}

static void on_reply(struct asking *a)
{
	switch (terminal_read(&a->terminal)) {
	case REPLY_NONE:
		break;
	case REPLY_ONCE:
		reply_with(a, true, SCOPE_ONCE);
		break;
	case REPLY_SESSION:
		reply_with(a, true, SCOPE_SESSION);
		break;
	case REPLY_ALWAYS:
		reply_with(a, true, SCOPE_ALWAYS);
		break;
	case REPLY_DENY:
		reply_with(a, false, SCOPE_ONCE);
		break;
	case REPLY_VIEW:
		show_question(a, REQUEST_MAX);
		break;
	case REPLY_GONE:
		terminal_close(&a->terminal);
		break;
	}
}

/* the loop */

/*
 * A person's interrupt is an answer. An end of the process is none: the
 * request waits on, and `ask --resume` takes it up.
 */
static int on_signal(struct asking *a)
{
	struct signalfd_siginfo info;
	struct store_answer no = { .reason = "interrupted",
				   .by = a->asker.user };
	struct entry now = { 0 };
	struct err err = { 0 };
	char reason[160];

	if (read(a->signals, &info, sizeof(info)) != sizeof(info))
		return -1;
	if (info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT) {
		if (approvals_answer(&a->store, a->id, &no, &now, &err) < 0)
			say("%s", err.text);
		entry_done(&now);
		return deny(a, "interrupted");
	}
	(void)snprintf(reason, sizeof(reason),
		       "the asking was ended by a signal; request %s still "
		       "waits",
		       a->id);
	return deny(a, reason);
}

/*
 * The store is written before what was written can be seen (the WAL's index
 * comes last), so after an event it is looked at soon, then ever more rarely.
 */
static void pace(struct asking *a, bool has_event)
{
	char events[4096];

	while (has_event && read(a->watch, events, sizeof(events)) > 0)
		;
	a->pause = has_event ? SOON_MS : MIN(a->pause * 2, LOOK_MS);
}

/* Until something happens; -1, or the status with which it ends. */
static int wait_for_it(struct asking *a)
{
	struct pollfd fds[] = {
		{ .fd = a->signals, .events = POLLIN },
		{ .fd = a->watch, .events = POLLIN },
		{ .fd = a->terminal.is_asking ? a->terminal.fd : -1,
		  .events = POLLIN },
		{ .fd = 1 },
	};
	int64_t left = (a->deadline - clock_us()) / 1000 + 1;
	int timeout = (int)MAX(0, MIN(left, a->pause));

	if (poll(fds, ARRAY_SIZE(fds), timeout) < 0)
		return -1;
	if (fds[0].revents)
		return on_signal(a);
	if (fds[3].revents & (POLLERR | POLLNVAL))
		return EXIT_OURS; /* nobody listens; it can be resumed */
	pace(a, fds[1].revents != 0);
	if (a->terminal.is_asking && fds[2].revents)
		on_reply(a);
	return -1;
}

static void tell_waiting(struct asking *a)
{
	char left[32];

	if (a->is_told || a->terminal.fd >= 0)
		return;
	a->is_told = true;
	approvals_age(a->entry.expires - store_now(), left);
	say("waits for an answer: cordon approvals show %s (%s left)", a->id,
	    left);
}

static int wait_for_answer(struct asking *a)
{
	struct err err = { 0 };
	int status;

	for (;;) {
		if (look(a, &err) < 0)
			return fail(a, &err);
		status = decided(a, &err);
		if (status >= 0)
			return status;
		if (clock_us() >= a->deadline ||
		    entry_is_over(&a->entry, store_now()))
			return expire(a, &err);
		if (a->terminal.fd >= 0 && !a->terminal.is_asking)
			show_question(a, SHOW_TEXT);
		if (a->terminal.fd < 0 && !a->request.may_store) {
			(void)store_expire(&a->store, a->id, &err);
			return deny(a, "there is no terminal to ask on, and "
				       "the policy asks nowhere else");
		}
		tell_waiting(a);
		status = wait_for_it(a);
		if (status >= 0)
			return status;
	}
}

/* Before the request is recorded: who is interrupted then withdraws it. */
static int hold_signals(struct asking *a, struct err *err)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		(void)sigaddset(&set, wanted[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->signals < 0 ? err_errno(err, errno, "wait for signals") : 0;
}

static int begin(struct asking *a, struct err *err)
{
	int64_t left;
	int r = look(a, err);

	if (r < 0)
		return r;
	left = a->entry.expires - store_now();
	a->deadline = clock_us() + MAX(left, 0) * 1000;
	a->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (a->watch >= 0 &&
	    inotify_add_watch(a->watch, a->store.state.path,
			      IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
		fd_close(&a->watch);
	a->pause = SOON_MS;
	if (a->request.may_terminal)
		(void)terminal_open(&a->terminal, &a->store.state);
	return 0;
}

static int ask(struct asking *a, const char *id)
{
	struct err err = { 0 };
	int status = EXIT_OURS;
	int r = read_request(a, &err);

	if (r == 0)
		r = store_open(&a->store, &err);
	if (r < 0)
		return fail(a, &err);
	asker_init(&a->asker);
	a->session = a->request.session ? a->request.session : a->asker.session;
	r = find_standing(a, &status, &err);
	if (r < 0)
		return fail(a, &err);
	if (r > 0)
		return status;
	err = (struct err){ 0 };
	r = hold_signals(a, &err);
	if (r == 0)
		r = id ? resume(a, id, &err) : record(a, &err);
	if (r == 0)
		r = begin(a, &err);
	return r < 0 ? fail(a, &err) : wait_for_answer(a);
}

int approvals_ask(int argc, char **argv)
{
	struct asking a = { .signals = NO_FD,
			    .watch = NO_FD,
			    .terminal = { .fd = NO_FD, .lock = NO_FD },
			    .store = { .state.fd = NO_FD } };
	const char *id = NULL;
	int status;

	if (argc == 3 && strcmp(argv[1], "--resume") == 0) {
		id = argv[2];
	} else if (argc != 1) {
		say("approvals ask takes a request on standard input, and "
		    "--resume ID");
		return EXIT_OURS;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	status = ask(&a, id);
	terminal_close(&a.terminal);
	fd_close(&a.signals);
	fd_close(&a.watch);
	entry_done(&a.entry);
	store_close(&a.store);
	request_done(&a.request);
	return status;
}
