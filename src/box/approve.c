/* SPDX-License-Identifier: Apache-2.0 */
#include "box/approve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/util.h"
#include "box/approve-parts.h"
#include "box/handle.h"

#define MAX_TEXT      (256U << 10) /* shown; the rest goes by its hash */
#define MAX_ARGUMENTS (64U << 10)
#define GRACE_US      2000000 /* for a desk that was told to end */

/* the request */

static void put(struct json *j, const char *name, const char *text)
{
	if (text)
		json_exact(j, name, text, strlen(text));
}

static void put_list(struct json *j, const char *name, const char *const *list)
{
	json_open(j, name, '[');
	for (; list && *list; list++)
		put(j, NULL, *list);
	json_close(j, ']');
}

static void put_text(struct json *j, const struct approve_request *req)
{
	unsigned char sum[SHA256_SIZE];
	char hex[2 * SHA256_SIZE + 1];
	struct sha256 s;

	if (!req->text)
		return;
	sha256_init(&s);
	sha256_add(&s, req->text, req->text_len);
	sha256_end(&s, sum);
	hex_format(sum, sizeof(sum), hex);
	json_exact(j, "text", req->text, MIN(req->text_len, MAX_TEXT));
	json_int(j, "bytes", (int64_t)req->text_len);
	json_str(j, "sha256", hex);
}

/* What is said of a tool's call. Large arguments go by the text's hash. */
static void put_call(struct json *j, const struct approve_request *req)
{
	if (req->arguments && strlen(req->arguments) <= MAX_ARGUMENTS)
		put(j, "arguments", req->arguments);
	if (req->code && *req->code)
		put_list(j, "code", req->code);
	put(j, "class", req->class);
	if (req->n_told > 0)
		json_int(j, "told", req->n_told);
	put(j, "team", req->team);
	put(j, "context", req->context);
	put(j, "digest", req->digest);
}

void approve_format(const struct approve_request *req, struct buf *out)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_int(&j, "version", 1);
	put(&j, "kind", req->kind);
	if (req->n_programs > 0) {
		json_open(&j, "programs", '[');
		for (size_t i = 0; i < req->n_programs; i++) {
			json_open(&j, NULL, '{');
			put(&j, "join",
			    req->programs[i].join ? req->programs[i].join : "");
			put_list(&j, "argv", req->programs[i].argv);
			json_close(&j, '}');
		}
		json_close(&j, ']');
	}
	put(&j, "language", req->language);
	put_text(&j, req);
	put(&j, "target", req->target);
	put(&j, "agent", req->agent);
	put(&j, "session", req->session);
	put(&j, "why", req->why);
	put(&j, "rule", req->rule);
	put(&j, "file", req->file);
	json_int(&j, "line", req->line);
	put_list(&j, "changes", req->changes);
	if (req->expire_ms > 0)
		json_int(&j, "expire_ms", (int64_t)req->expire_ms);
	json_open(&j, "ask", '[');
	if (req->may_terminal)
		json_str(&j, NULL, "terminal");
	if (req->may_store)
		json_str(&j, NULL, "store");
	json_close(&j, ']');
	if (req->hide_text)
		json_int(&j, "hide_text", 1);
	put(&j, "run", req->run);
	put(&j, "box", req->box);
	put(&j, "face", req->face);
	put_call(&j, req);
	json_close(&j, '}');
}

/* the answer: one flat object of strings, each key once, nothing else */

struct reader {
	const char *p;
	const char *end;
};

static bool skip(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* \uXXXX of a control, which is all that json_bytes() escapes so. */
static int read_code(struct reader *r)
{
	unsigned int v = 0;

	if (r->end - r->p < 4)
		return -1;
	for (int i = 0; i < 4; i++, r->p++) {
		static const char digits[] = "0123456789abcdef";
		const char *at = *r->p ? strchr(digits, *r->p) : NULL;

		if (!at)
			return -1;
		v = v << 4 | (unsigned int)(at - digits);
	}
	return v > 0 && v < 0x80 ? (int)v : -1;
}

static int read_escape(struct reader *r)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char meant[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (r->p == r->end)
		return -1;
	if (skip(r, 'u'))
		return read_code(r);
	at = *r->p ? strchr(letters, *r->p) : NULL;
	r->p++;
	return at ? meant[at - letters] : -1;
}

/* What does not fit is an error: half an answer is none. */
static bool read_string(struct reader *r, char *ret, size_t size)
{
	size_t n = 0;

	if (!skip(r, '"'))
		return false;
	while (r->p < r->end && *r->p != '"') {
		int c = (unsigned char)*r->p++;

		if (c < 0x20)
			return false;
		if (c == '\\')
			c = read_escape(r);
		if (c < 0 || n + 1 >= size)
			return false;
		ret[n++] = (char)c;
	}
	ret[n] = '\0';
	return skip(r, '"');
}

int approve_parse(const char *text, size_t len, struct approve_answer *ret)
{
	struct approve_answer a = { 0 };
	char decision[8] = "";
	const struct {
		const char *name;
		char *to;
		size_t size;
	} keys[] = {
		{ "id", a.id, sizeof(a.id) },
		{ "decision", decision, sizeof(decision) },
		{ "scope", a.scope, sizeof(a.scope) },
		{ "reason", a.reason, sizeof(a.reason) },
		{ "by", a.by, sizeof(a.by) },
	};
	struct reader r = { .p = text, .end = text + len };
	char name[16];

	/* In this order, as the desk writes it. */
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!skip(&r, i == 0 ? '{' : ',') ||
		    !read_string(&r, name, sizeof(name)) ||
		    strcmp(name, keys[i].name) != 0 || !skip(&r, ':') ||
		    !read_string(&r, keys[i].to, keys[i].size))
			return -EBADMSG;
	if (!skip(&r, '}') || !skip(&r, '\n') || r.p != r.end)
		return -EBADMSG;
	if (strcmp(a.scope, "once") != 0 && strcmp(a.scope, "session") != 0 &&
	    strcmp(a.scope, "always") != 0)
		return -EBADMSG;
	a.is_allowed = strcmp(decision, "allow") == 0;
	if (!a.is_allowed && strcmp(decision, "deny") != 0)
		return -EBADMSG;
	*ret = a;
	return 0;
}

/* the desk */

struct desk {
	struct desk_process process;
	int in;  /* its standard input */
	int out; /* its standard output */
	struct buf answer;
};

/*
 * In the child: only what is needed, and the signals of a process that starts
 * anew. It goes when we go, and the request waits on.
 */
static void become_desk(const char *path, const char *const *argv, int in,
			int out, pid_t parent)
{
	sigset_t none;

	(void)sigemptyset(&none);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent ||
	    dup2(in, 0) < 0 || dup2(out, 1) < 0)
		_exit(125);
	(void)syscall(SYS_close_range, 3U, ~0U, 0);
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execv(path, (char *const *)argv);
	_exit(125);
}

static int spawn(const char **argv, int in, int out, struct desk_process *ret,
		 struct err *err)
{
	char path[4096];
	pid_t self = getpid();

	if (program_find("cordon-desk", path, sizeof(path), err) < 0)
		return -err->code;
	argv[0] = "cordon-desk";
	ret->pid = fork();
	if (ret->pid == 0)
		become_desk(path, argv, in, out, self);
	if (ret->pid < 0)
		return err_errno(err, errno, "start '%s'", path);
	ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0U);
	return ret->pidfd < 0 ? err_errno(err, errno, "watch '%s'", path) : 0;
}

int desk_spawn(const struct approve_request *req, int in, int out,
	       struct desk_process *ret, struct err *err)
{
	const char *argv[7] = { "", "approvals", "ask" };
	size_t n = 3;

	if (req->suspends)
		argv[n++] = "--suspend";
	if (req->resume) {
		argv[n++] = "--resume";
		argv[n++] = req->resume;
	}
	return spawn(argv, in, out, ret, err);
}

static int start(struct desk *d, const struct approve_request *req,
		 struct err *err)
{
	_cleanup_fd_ int in = NO_FD;
	_cleanup_fd_ int out = NO_FD;
	int a[2];
	int b[2];

	if (pipe2(a, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	in = a[0];
	d->in = a[1];
	if (pipe2(b, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	d->out = b[0];
	out = b[1];
	/* What it does not read must not stop us. */
	(void)fcntl(d->in, F_SETFL, O_NONBLOCK);
	return desk_spawn(req, in, out, &d->process, err);
}

/* Writes what can be written; SIGPIPE is held back for a moment. */
static void feed(struct desk *d, const struct buf *request, size_t *at)
{
	struct timespec now = { 0 };
	sigset_t pipe_only;
	sigset_t before;
	ssize_t n;

	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &pipe_only, &before);
	n = write(d->in, request->data + *at, request->len - *at);
	if (n < 0 && errno == EPIPE && !sigismember(&before, SIGPIPE))
		(void)sigtimedwait(&pipe_only, NULL, &now);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (n > 0)
		*at += (size_t)n;
	if (*at == request->len || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_close(&d->in);
}

static void drink(struct desk *d)
{
	char chunk[4096];
	ssize_t n = read(d->out, chunk, sizeof(chunk));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	/* Too long is remembered in the buffer, and not understood. */
	if (n <= 0 || buf_add(&d->answer, chunk, (size_t)n) < 0)
		fd_close(&d->out);
}

/* Until it has ended; -ECANCELED when the caller wants no more. */
static int converse(struct desk *d, const struct buf *request, int cancel)
{
	size_t at = 0;

	for (;;) {
		struct pollfd fds[] = {
			{ .fd = cancel, .events = POLLIN },
			{ .fd = d->in, .events = POLLOUT },
			{ .fd = d->out, .events = POLLIN },
			{ .fd = d->process.pidfd, .events = POLLIN },
		};

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (fds[0].revents)
			return -ECANCELED;
		if (fds[1].revents)
			feed(d, request, &at);
		if (fds[2].revents)
			drink(d);
		else if (fds[3].revents)
			return 0;
	}
}

/*
 * How it is told to end: a person's interrupt withdraws the request, the end
 * of a process leaves it for who takes it up again.
 */
static int ending_signal(int r)
{
	sigset_t waiting;

	if (r == -ECANCELED && sigpending(&waiting) == 0 &&
	    (sigismember(&waiting, SIGINT) == 1 ||
	     sigismember(&waiting, SIGQUIT) == 1))
		return SIGINT;
	return SIGTERM;
}

int desk_reap(struct desk_process *d, int sig)
{
	int64_t deadline = clock_us() + GRACE_US;
	struct pollfd gone = { .fd = d->pidfd, .events = POLLIN };
	int status = -1;

	if (d->pid <= 0)
		return -1;
	if (sig) {
		(void)kill(d->pid, sig);
		while (d->pidfd >= 0 && clock_us() < deadline &&
		       poll(&gone, 1, 50) == 0)
			;
		(void)kill(d->pid, SIGKILL);
	}
	while (waitpid(d->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	d->pid = 0;
	return status;
}

void approve_refuse(struct approve_answer *ret, const char *why)
{
	*ret = (struct approve_answer){ .scope = "once", .by = "cordon" };
	(void)snprintf(ret->reason, sizeof(ret->reason), "%s", why);
}

/* Only a whole answer that fits how the desk ended. */
int approve_understand(const struct buf *said, int status,
		       struct approve_answer *ret, struct err *err)
{
	struct approve_answer a;

	approve_refuse(ret, "it was not asked");
	if (said->error || !said->data ||
	    approve_parse(said->data, said->len, &a) < 0)
		return err_set(err, EBADMSG,
			       "cordon-desk ended without an answer");
	if (WIFEXITED(status) && !a.is_allowed &&
	    WEXITSTATUS(status) == APPROVE_BUSY)
		return err_set(err, EAGAIN, "busy: %s", a.reason);
	if (WIFEXITED(status) && !a.is_allowed &&
	    WEXITSTATUS(status) == APPROVE_WAITS) {
		*ret = a;
		return err_set(err, ETIME, "%s", a.reason);
	}
	if (!WIFEXITED(status) ||
	    WEXITSTATUS(status) != (a.is_allowed ? 0 : 1)) {
		if (a.is_allowed || !WIFEXITED(status))
			return err_set(err, EBADMSG,
				       "cordon-desk ended otherwise than its "
				       "answer");
		return err_set(err, EIO, "%s", a.reason);
	}
	*ret = a;
	return 0;
}

int approve_ask(const struct approve_request *req, struct approve_answer *ret,
		struct err *err)
{
	struct desk d = { .process = { .pidfd = NO_FD },
			  .in = NO_FD,
			  .out = NO_FD };
	struct buf request;
	int status;
	int r;

	approve_refuse(ret, "it was not asked");
	buf_init(&d.answer, APPROVE_MAX_ANSWER);
	buf_init(&request, APPROVE_MAX_REQUEST);
	approve_format(req, &request);
	if (request.error)
		r = err_set(err, E2BIG,
			    "the request is too large to be shown to a person");
	else
		r = start(&d, req, err);
	if (r == 0)
		r = converse(&d, &request, req->cancel);
	status = desk_reap(&d.process, r < 0 ? ending_signal(r) : 0);
	if (r == 0)
		r = approve_understand(&d.answer, status, ret, err);
	else if (r == -ECANCELED)
		(void)err_set(err, ECANCELED, "the asking was cancelled");
	/* One that still waits has its id. */
	if (r < 0 && r != -ETIME) {
		approve_refuse(ret, err ? err->text : "the asking failed");
		ret->is_cancelled = r == -ECANCELED;
	}
	fd_close(&d.in);
	fd_close(&d.out);
	fd_close(&d.process.pidfd);
	buf_done(&d.answer);
	buf_done(&request);
	return r;
}

/* withdrawing */

/* Its status: 0, or 1 where it was too late; both with a word of the desk's. */
static int withdrawn(int status, const char *id, struct err *err)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		return err_set(err, EALREADY,
			       "request '%s' was answered and used, or is over",
			       id);
	return err_set(err, EIO, "request '%s' could not be withdrawn", id);
}

int approve_withdraw_id(const char *id, const char *reason, struct err *err)
{
	const char *argv[] = { "",         "approvals", "withdraw", id,
			       "--reason", reason,      NULL };
	struct desk_process desk = { .pidfd = NO_FD };
	_cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int status;
	int r;

	/* An id of the store's, and never a flag. */
	if (!*id ||
	    strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz") != strlen(id))
		return err_set(err, EINVAL, "'%.64s' is no id of a request",
			       id);
	if (null < 0)
		return err_errno(err, errno, "open '/dev/null'");
	r = spawn(argv, null, null, &desk, err);
	status = desk_reap(&desk, r < 0 ? SIGTERM : 0);
	fd_close(&desk.pidfd);
	return r < 0 ? r : withdrawn(status, id, err);
}
