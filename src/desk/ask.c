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
 *
 * For a daemon (--peer) the one who asks is somebody else: whose uid it is says
 * the daemon, who knows it from the kernel; the document is that user's, and
 * cannot. There is no terminal. Request and answer are recorded here, the
 * request before anybody sees it, the answer before it holds. Who no longer
 * listens withdraws the request; SIGTERM leaves it, and the same request made
 * again finds the answer that was given meanwhile.
 *
 * With --suspend nobody waits, here or there: what has no answer yet is told
 * by its id (status 76) and stays in the store; --resume ID comes back for it.
 */

#include "desk/ask.h"

#include <errno.h>
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
#include "base/num.h"
#include "desk/desk.h"

int asking_tell(const char *id, bool allow, const char *scope,
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

/* For a daemon: on the ledger first. A yes that cannot be is none. */
int asking_conclude(struct asking *a, const struct entry *e)
{
	bool allow = e->state == ENTRY_ALLOWED;
	unsigned int what = a->is_recorded ? RECORD_ANSWER
					   : RECORD_REQUEST | RECORD_ANSWER;
	struct err err = { 0 };

	if (a->is_peer &&
	    approvals_record(e, &a->request, what, NULL, &err) < 0) {
		say("%s", err.text);
		if (allow)
			(void)asking_tell(e->id, false, "once", err.text,
					  "cordon");
		if (allow)
			return EXIT_OURS;
	}
	return asking_tell(e->id, allow, scope_name(e->scope), e->reason,
			   e->by);
}

int asking_deny(struct asking *a, const char *reason)
{
	struct entry e = { .state = ENTRY_DENIED,
			   .reason = (char *)reason,
			   .by = (char *)"cordon" };

	(void)strcpy(e.id, a->id);
	(void)strcpy(e.content, a->content);
	return asking_conclude(a, &e);
}

int asking_fail(struct asking *a, const struct err *err)
{
	if (a->is_recorded)
		(void)asking_deny(a, err->text);
	else
		(void)asking_tell(a->id, false, "once", err->text, "cordon");
	say("not approved: %s", err->text);
	return a->is_peer && err->code == EBUSY ? EXIT_BUSY : EXIT_OURS;
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
	if (r == 0 && (a->request.has_peer || a->request.is_cut))
		return err_set(err, EINVAL,
			       "request: 'peer' and 'cut' are not the "
			       "asker's to say");
	if (r == 0 && a->is_peer) {
		a->request.has_peer = true;
		a->request.peer = a->peer;
		a->request.may_terminal = false;
	}
	if (r == 0)
		request_content(&a->request, a->content);
	return r;
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

	/* What is stored is read again: the limit is of that. */
	buf_init(&document, REQUEST_MAX);
	request_format(&a->request, &document);
	e.document = document.data;
	e.expires = e.made + (int64_t)a->request.expire_ms;
	(void)strcpy(e.content, a->content);
	if (document.error)
		r = err_set(err, -document.error,
			    "the request is larger than %u bytes", REQUEST_MAX);
	else
		/* Who suspends knows its own by their ids, and no other's. */
		r = a->suspends ? -ENOENT : store_adopt(&a->store, &e, err);
	if (r == -ENOENT)
		r = store_add(&a->store, &e, a->is_peer ? STORE_PEER : 0, err);
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

/* Nobody is to answer what is not on the ledger. */
static int record_or_withdraw(struct asking *a, struct err *err)
{
	struct err ignored = { 0 };

	if (!a->is_peer)
		return 0;
	if (approvals_record(&a->entry, &a->request, RECORD_REQUEST, NULL,
			     err) < 0) {
		(void)store_expire(&a->store, a->id, &ignored);
		return -err->code;
	}
	a->is_recorded = true;
	return 0;
}

static int begin(struct asking *a, struct err *err)
{
	int64_t left;
	int r = asking_look(a, err);

	if (r < 0)
		return r;
	r = record_or_withdraw(a, err);
	if (r < 0)
		return r;
	left = a->entry.expires - store_now();
	a->deadline = clock_us() + MAX(left, 0) * 1000;
	a->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (a->watch >= 0 &&
	    inotify_add_watch(a->watch, a->store.state.path,
			      IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
		fd_close(&a->watch);
	a->pause = ASK_SOON_MS;
	if (a->request.may_terminal && !a->suspends)
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
		return asking_fail(a, &err);
	if (a->is_peer)
		asker_init_peer(&a->asker, a->peer, a->peer_pid);
	else
		asker_init(&a->asker);
	a->session = a->request.session && !a->is_peer ? a->request.session
						       : a->asker.session;
	if (a->is_peer && !a->request.may_store)
		return asking_deny(
			a, "the policy asks on a terminal alone, and the "
			   "daemon has none");
	r = asking_standing(a, &status, &err);
	if (r < 0)
		return asking_fail(a, &err);
	if (r > 0)
		return status;
	err = (struct err){ 0 };
	r = hold_signals(a, &err);
	if (r == 0)
		r = id ? resume(a, id, &err) : record(a, &err);
	if (r == 0)
		r = begin(a, &err);
	return r < 0 ? asking_fail(a, &err) : asking_wait(a);
}

static int take_peer(int argc, char **argv, struct asking *a)
{
	uint64_t uid;
	uint64_t pid;

	if (argc != 4 || strcmp(argv[1], "--peer") != 0 ||
	    num_parse(argv[2], UINT32_MAX - 1, &uid) < 0 ||
	    num_parse(argv[3], INT32_MAX, &pid) < 0)
		return -EINVAL;
	a->is_peer = true;
	a->peer = (uid_t)uid;
	a->peer_pid = (pid_t)pid;
	return 0;
}

int approvals_ask(int argc, char **argv)
{
	struct asking a = { .signals = NO_FD,
			    .watch = NO_FD,
			    .terminal = { .fd = NO_FD, .lock = NO_FD },
			    .store = { .state.fd = NO_FD } };
	const char *id = NULL;
	int status;

	if (argc > 1 && strcmp(argv[1], "--suspend") == 0) {
		a.suspends = true;
		argv++;
		argc--;
	}
	if (argc == 3 && strcmp(argv[1], "--resume") == 0) {
		id = argv[2];
	} else if (argc != 1 && (a.suspends || take_peer(argc, argv, &a) < 0)) {
		say("approvals ask takes a request on standard input, and "
		    "--suspend, --resume ID, or of a daemon --peer UID PID");
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
