/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Approvals with processes: terminals, killed askers, answers at the same
 * moment, and the way from the command to the desk. CORDON_BUILD is the build
 * tree.
 */

#define TAP_SECONDS 120
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/clock.h"
#include "base/util.h"
#include "box/approve.h"
#include "cordon/cordon.h"

static char place[] = "/tmp/cordon-approvals-XXXXXX";
static char desk[4096];

static void leave(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", place);
	(void)!system(command); // NOLINT(*-env33-c)
}

static void set_up(void)
{
	const char *build = getenv("CORDON_BUILD");
	char state[64];

	(void)snprintf(desk, sizeof(desk), "%s/cordon-desk",
		       build ? build : "build");
	if (access(desk, X_OK) < 0 || !mkdtemp(place)) {
		printf("# no '%s'\n", desk);
		_exit(1);
	}
	(void)snprintf(state, sizeof(state), "%s/state", place);
	(void)setenv("CORDON_STATE_DIR", state, 1);
	(void)setenv("CORDON_LIBEXEC", build ? build : "build", 1);
	(void)setenv("CORDON_SESSION", "test", 1);
	(void)signal(SIGPIPE, SIG_IGN);
}

#define REQUEST(ask, more)                                                     \
	"{\"version\":1,\"kind\":\"command\",\"programs\":[{\"join\":\"\","    \
	"\"argv\":[\"git\",\"push\",\"\\u001b[2J\\u202e\"" more "]}],"         \
	"\"why\":\"w\",\"rule\":\"r\",\"ask\":[" ask "],\"expire_ms\":20000}"
#define BOTH "\"terminal\",\"store\""

/* The request as a file that can be read from the start. */
static int request_fd(const char *text)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/request", place);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)lseek(fd, 0, SEEK_SET);
	return fd;
}

struct asked {
	pid_t pid;
	int out; /* its answer */
	int tty; /* our end of its terminal, or NO_FD */
	char screen[65536];
	size_t len;
};

/* Starts an asker; with a terminal of its own, or with none. */
static void start(struct asked *a, const char *request, const char *resume,
		  bool terminal, const char *typed_before)
{
	int in = request_fd(request);
	int out[2];
	int ours = NO_FD;
	int theirs = NO_FD;

	*a = (struct asked){ .tty = NO_FD };
	CHECK_INT(pipe2(out, O_CLOEXEC), 0);
	if (terminal) {
		CHECK_INT(openpty(&ours, &theirs, NULL, NULL, NULL), 0);
		(void)fcntl(ours, F_SETFD, FD_CLOEXEC);
		if (typed_before)
			CHECK(write(ours, typed_before, strlen(typed_before)) >
			      0);
	}
	a->pid = fork();
	if (a->pid == 0) {
		(void)setsid();
		if (terminal && ioctl(theirs, TIOCSCTTY, 0) < 0)
			_exit(99);
		(void)dup2(in, 0);
		(void)dup2(out[1], 1);
		if (terminal)
			(void)dup2(theirs, 2);
		(void)execl(desk, desk, "approvals", "ask",
			    resume ? "--resume" : NULL, resume, NULL);
		_exit(98);
	}
	(void)close(in);
	(void)close(out[1]);
	if (theirs >= 0)
		(void)close(theirs);
	a->out = out[0];
	a->tty = ours;
}

/* Reads the screen until it shows this, or for some seconds. */
static bool sees(struct asked *a, const char *what)
{
	int64_t deadline = clock_us() + 8000000;

	for (;;) {
		struct pollfd p = { .fd = a->tty, .events = POLLIN };
		ssize_t n;

		a->screen[a->len] = '\0';
		if (strstr(a->screen, what))
			return true;
		if (clock_us() > deadline || poll(&p, 1, 200) < 0)
			return false;
		if (!p.revents)
			continue;
		n = read(a->tty, a->screen + a->len,
			 sizeof(a->screen) - 1 - a->len);
		if (n <= 0)
			return false;
		a->len += (size_t)n;
	}
}

static void types(struct asked *a, const char *text)
{
	CHECK(write(a->tty, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Its answer and status; the terminal is read meanwhile. */
static int ended(struct asked *a, char *answer, size_t size)
{
	size_t n = 0;
	int status = -1;

	for (;;) {
		struct pollfd p[] = { { .fd = a->out, .events = POLLIN },
				      { .fd = a->tty, .events = POLLIN } };
		ssize_t r;

		if (poll(p, 2, 15000) <= 0)
			break;
		if (p[1].revents) {
			r = read(a->tty, a->screen + a->len,
				 sizeof(a->screen) - 1 - a->len);
			if (r <= 0)
				p[1].revents = 0;
			else
				a->len += (size_t)r;
		}
		if (!p[0].revents)
			continue;
		r = read(a->out, answer + n, size - 1 - n);
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	answer[n] = '\0';
	a->screen[a->len] = '\0';
	(void)waitpid(a->pid, &status, 0);
	(void)close(a->out);
	if (a->tty >= 0)
		(void)close(a->tty);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs the desk with these arguments; its output; its status. */
static int run(char *ret, size_t size, const char *const *args)
{
	const char *argv[8] = { desk, "approvals" };
	int out[2];
	int status = -1;
	size_t n = 0;
	ssize_t r;
	pid_t pid;

	for (int i = 0; args[i]; i++)
		argv[i + 2] = args[i];
	CHECK_INT(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(out[1], 1);
		(void)dup2(out[1], 2);
		(void)execv(desk, (char *const *)argv);
		_exit(98);
	}
	(void)close(out[1]);
	while ((r = read(out[0], ret + n, size - 1 - n)) > 0)
		n += (size_t)r;
	ret[n] = '\0';
	(void)close(out[0]);
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#define RUN(ret, ...)                                                          \
	run(ret, sizeof(ret), (const char *const[]){ __VA_ARGS__, NULL })

/* The one that waits. */
static void waiting(char id[7])
{
	int64_t deadline = clock_us() + 8000000;
	static char list[1 << 20];
	const char *at = NULL;

	while (!at && clock_us() < deadline) {
		(void)RUN(list, "list", "--json");
		at = strstr(list, "\"id\":\"");
	}
	CHECK(at != NULL);
	(void)snprintf(id, 7, "%s", at ? at + 6 : "");
}

/* on a terminal */

static const struct {
	const char *typed;
	int status;
	const char *answer;
} replies[] = {
	{ "y\n", 0, "\"decision\":\"allow\",\"scope\":\"once\"" },
	{ "yes\n", 0, "\"decision\":\"allow\",\"scope\":\"once\"" },
	{ "\n", 1, "\"decision\":\"deny\"" },
	{ "\004", 1, "end of input" },
	{ "\003", 1, "interrupted" },
	{ "Y\n", -2, NULL },
	{ "yy\n", -2, NULL },
	{ "zzz\ny\n", -2, NULL },
	{ " y\n", -2, NULL },
};

static void reply_with(size_t i)
{
	struct asked a;
	char answer[4096];

	start(&a, REQUEST(BOTH, ""), NULL, true, NULL);
	CHECK(sees(&a, "Allow this?"));
	types(&a, replies[i].typed);
	if (replies[i].status == -2) {
		/* Not understood is asked again, then denied. */
		CHECK(sees(&a, "y, n, a, s or v: "));
		types(&a, "\n");
		CHECK_INT(ended(&a, answer, sizeof(answer)), 1);
		CHECK_HAS(answer, "\"decision\":\"deny\"");
		return;
	}
	CHECK_INT(ended(&a, answer, sizeof(answer)), replies[i].status);
	CHECK_HAS(answer, replies[i].answer);
}

TEST(terminal_answers)
{
	set_up();
	for (size_t i = 0; i < ARRAY_SIZE(replies); i++)
		reply_with(i);
	leave();
}

TEST(terminal_shows_all_and_nothing_raw)
{
	struct asked a;
	char answer[4096];

	set_up();
	start(&a, REQUEST(BOTH, ""), NULL, true, NULL);
	CHECK(sees(&a, "Allow this?"));
	CHECK_HAS(a.screen, "git push $'\\x1b[2J\\u202e'");
	CHECK_HAS(a.screen, "why        w");
	CHECK_HAS(a.screen, "rule       r");
	CHECK(!strchr(a.screen, '\033'));
	CHECK(!strstr(a.screen, "\xe2\x80\xae"));
	types(&a, "n\n");
	CHECK(sees(&a, "Why not"));
	types(&a, "too early\n");
	CHECK_INT(ended(&a, answer, sizeof(answer)), 1);
	CHECK_HAS(answer, "\"reason\":\"too early\"");
	leave();
}

TEST(terminal_always_and_session_stand)
{
	struct asked a;
	char answer[4096];

	set_up();
	start(&a, REQUEST(BOTH, ""), NULL, true, NULL);
	CHECK(sees(&a, "Allow this?"));
	types(&a, "s\n");
	CHECK_INT(ended(&a, answer, sizeof(answer)), 0);
	CHECK_HAS(answer, "\"scope\":\"session\"");
	start(&a, REQUEST(BOTH, ""), NULL, false, NULL);
	CHECK_INT(ended(&a, answer, sizeof(answer)), 0);
	CHECK_HAS(answer, "\"scope\":\"session\"");
	start(&a, REQUEST(BOTH, ",\"x\""), NULL, true, NULL);
	CHECK(sees(&a, "Allow this?"));
	types(&a, "a\n");
	CHECK_INT(ended(&a, answer, sizeof(answer)), 0);
	CHECK_HAS(answer, "\"scope\":\"always\"");
	(void)setenv("CORDON_SESSION", "other", 1);
	start(&a, REQUEST(BOTH, ",\"x\""), NULL, false, NULL);
	CHECK_INT(ended(&a, answer, sizeof(answer)), 0);
	CHECK_HAS(answer, "\"scope\":\"always\"");
	leave();
}

TEST(terminal_what_was_typed_before_the_question_is_no_answer)
{
	struct asked a;
	char answer[4096];

	set_up();
	start(&a, REQUEST(BOTH, ""), NULL, true, "y\ny\ny\n");
	CHECK(sees(&a, "Allow this?"));
	(void)usleep(300000);
	CHECK_INT(kill(a.pid, 0), 0);
	types(&a, "n\n\n");
	CHECK_INT(ended(&a, answer, sizeof(answer)), 1);
	CHECK_HAS(answer, "\"decision\":\"deny\"");
	leave();
}

TEST(terminal_another_process_may_answer_first)
{
	struct asked a;
	char answer[4096];
	char said[4096];
	char id[7];

	set_up();
	start(&a, REQUEST(BOTH, ""), NULL, true, NULL);
	CHECK(sees(&a, "Allow this?"));
	waiting(id);
	CHECK_INT(RUN(said, "approve", id, "--reason", "from afar"), 0);
	CHECK_INT(ended(&a, answer, sizeof(answer)), 0);
	CHECK_HAS(answer, "from afar");
	leave();
}

TEST(terminal_alone_is_not_answered_from_elsewhere)
{
	struct asked a;
	char answer[4096];
	char said[4096];
	char id[7];

	set_up();
	start(&a, REQUEST("\"terminal\"", ""), NULL, true, NULL);
	CHECK(sees(&a, "Allow this?"));
	waiting(id);
	CHECK_INT(RUN(said, "approve", id), 125);
	CHECK_HAS(said, "terminal only");
	types(&a, "y\n");
	CHECK_INT(ended(&a, answer, sizeof(answer)), 0);
	leave();
}

TEST(terminal_settings_are_as_before)
{
	struct asked a;
	char answer[4096];
	struct termios before;
	struct termios after;
	int held;

	set_up();
	start(&a, REQUEST(BOTH, ""), NULL, true, NULL);
	held = fcntl(a.tty, F_DUPFD_CLOEXEC, 0);
	CHECK(sees(&a, "Allow this?"));
	CHECK_INT(tcgetattr(held, &before), 0);
	types(&a, "y\n");
	CHECK_INT(ended(&a, answer, sizeof(answer)), 0);
	CHECK_INT(tcgetattr(held, &after), 0);
	CHECK(before.c_lflag == after.c_lflag);
	(void)close(held);
	leave();
}

/* killed, and at the same time */

TEST(killed_askers_lose_no_answer_and_none_is_used_twice)
{
	set_up();
	for (int round = 0; round < 12; round++) {
		struct asked a;
		struct asked b;
		char answer[4096];
		char said[4096];
		char id[7];
		int first;
		int second;
		int third;

		start(&a, REQUEST("\"store\"", ""), NULL, false, NULL);
		waiting(id);
		if (round % 2)
			CHECK_INT(RUN(said, "approve", id), 0);
		(void)kill(a.pid, SIGKILL);
		first = ended(&a, answer, sizeof(answer));
		CHECK(first == -1 || first == 0);
		first = strstr(answer, "\"decision\":\"allow\"") ? 1 : 0;
		if (round % 2 == 0)
			CHECK_INT(RUN(said, "approve", id), 0);
		/* Two resume at once: the answer is for one of them. */
		start(&a, REQUEST("\"store\"", ""), id, false, NULL);
		start(&b, REQUEST("\"store\"", ""), id, false, NULL);
		second = ended(&a, answer, sizeof(answer)) == 0;
		third = ended(&b, answer, sizeof(answer)) == 0;
		if (round % 2 == 0)
			CHECK_INT(first + second + third, 1);
		CHECK(first + second + third <= 1);
	}
	leave();
}

/* An approver in the background; its pid. */
static pid_t answer_with(const char *verb, const char *id)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)execl(desk, desk, "approvals", verb, id, NULL);
		_exit(98);
	}
	return pid;
}

TEST(of_two_approvers_exactly_one_wins)
{
	set_up();
	for (int round = 0; round < 25; round++) {
		struct asked a;
		char answer[4096];
		char id[7];
		int yes = -1;
		int no = -1;
		pid_t y;
		pid_t n;
		int got;

		start(&a, REQUEST("\"store\"", ""), NULL, false, NULL);
		waiting(id);
		y = round % 2 ? answer_with("approve", id) : 0;
		n = answer_with("deny", id);
		if (!y)
			y = answer_with("approve", id);
		CHECK(waitpid(y, &yes, 0) == y && waitpid(n, &no, 0) == n);
		CHECK(WIFEXITED(yes) && WIFEXITED(no));
		CHECK_INT(WEXITSTATUS(yes) + WEXITSTATUS(no), 1);
		got = ended(&a, answer, sizeof(answer));
		CHECK_INT(got, WEXITSTATUS(yes));
	}
	leave();
}

/* the command's way */

static const char *const argv_push[] = { "git", "push", NULL };
static const struct approve_program push[] = { { "", argv_push } };

static struct approve_request some_request(void)
{
	return (struct approve_request){ .kind = "command",
					 .programs = push,
					 .n_programs = 1,
					 .why = "w",
					 .rule = "r",
					 .expire_ms = 10000,
					 .may_store = true,
					 .cancel = NO_FD };
}

static pid_t answer_soon(const char *verb, const char *reason)
{
	pid_t pid = fork();

	if (pid == 0) {
		char id[7];
		char said[4096];

		waiting(id);
		_exit(RUN(said, verb, id, "--reason", reason));
	}
	return pid;
}

TEST(approve_ask_brings_the_answer_back)
{
	struct approve_request req = some_request();
	struct approve_answer a;
	struct err err = { 0 };
	int status;

	set_up();
	(void)answer_soon("approve", "fine \"so\"");
	CHECK_INT(approve_ask(&req, &a, &err), 0);
	CHECK(a.is_allowed);
	CHECK_STR(a.reason, "fine \"so\"");
	CHECK_STR(a.scope, "once");
	CHECK_INT((long long)strlen(a.id), 6);
	CHECK(wait(&status) > 0);
	(void)answer_soon("deny", "no");
	CHECK_INT(approve_ask(&req, &a, &err), 0);
	CHECK(!a.is_allowed);
	CHECK_STR(a.reason, "no");
	CHECK(wait(&status) > 0);
	/* Nothing is left of it. */
	CHECK_INT(wait(&status), -1);
	CHECK_INT(errno, ECHILD);
	req.expire_ms = 100;
	CHECK_INT(approve_ask(&req, &a, &err), 0);
	CHECK(!a.is_allowed);
	CHECK_HAS(a.reason, "in time");
	leave();
}

TEST(approve_ask_can_be_cancelled_and_resumed)
{
	struct approve_request req = some_request();
	struct approve_answer a;
	struct err err = { 0 };
	char said[4096];
	char id[7];
	uint64_t one = 1;
	int status;
	pid_t pid;

	set_up();
	req.cancel = eventfd(0, EFD_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		waiting(id);
		_exit(write(req.cancel, &one, sizeof(one)) != sizeof(one));
	}
	CHECK_INT(approve_ask(&req, &a, &err), -ECANCELED);
	CHECK(!a.is_allowed && a.is_cancelled);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_INT(wait(&status), -1);
	waiting(id);
	CHECK_INT(RUN(said, "approve", id), 0);
	(void)close(req.cancel);
	req.cancel = NO_FD;
	req.resume = id;
	CHECK_INT(approve_ask(&req, &a, &err), 0);
	CHECK(a.is_allowed);
	CHECK_INT(approve_ask(&req, &a, &err), 0);
	CHECK(!a.is_allowed);
	leave();
}

/* The same bytes in other languages, or divided otherwise, are another thing.
 */
TEST(several_blocks_are_asked_about_as_such)
{
	static const char policy[] = "version: 1\nextends: cautious\n"
				     "approvals: {expire: 300ms}\n";
	struct cordon_error err = { 0 };
	struct cordon_result *r = NULL;
	struct cordon_spec *s;
	struct cordon *c;
	char said[4096];
	char path[128];
	FILE *f;

	set_up();
	(void)snprintf(path, sizeof(path), "%s/p.yaml", place);
	f = fopen(path, "we");
	CHECK(f && fputs(policy, f) >= 0 && fclose(f) == 0);
	c = cordon_open(&err);
	s = cordon_spec_new();
	CHECK(c && s);
	CHECK_INT(cordon_spec_set(s, "policy", path, &err), 0);
	CHECK_INT(cordon_spec_code(s, "python", "a=1", 3, "h.py", &err), 0);
	CHECK_INT(cordon_spec_code(s, "sh", "true", 4, NULL, &err), 0);
	CHECK_INT(cordon_spec_stdin(s, "abc", 3, &err), 0);
	CHECK_INT(cordon_run(c, s, &r, &err), 0);
	CHECK_STR(r ? cordon_result_cause(r) : err.text, "denied");
	CHECK_INT(RUN(said, "list", "--all", "--json"), 0);
	CHECK_HAS(said, "python (3 bytes), sh (4 bytes)");
	CHECK_HAS(said,
		  "\"changes\":[\"file 1 h.py\",\"stdin 3 ba7816bf8f01cf");
	cordon_result_free(r);
	cordon_spec_free(s);
	cordon_close(c);
	leave();
}

static const struct {
	const char *script;
	int status; /* of approve_ask() */
	bool is_allowed;
} desks[] = {
#define SAY(d)                                                                 \
	"echo '{\"id\":\"x\",\"decision\":\"" d "\",\"scope\":\"once\","       \
	"\"reason\":\"\",\"by\":\"\"}'\n"
	{ "cat >/dev/null\n" SAY("allow"), 0, true }, /* the control */
	{ SAY("allow"), 0, true },                    /* that reads nothing */
	{ SAY("allow") "exit 1\n", -EBADMSG, false },
	{ SAY("allow") "exit 125\n", -EBADMSG, false },
	{ SAY("allow") "kill -9 $$\n", -EBADMSG, false },
	{ SAY("allow") SAY("allow"), -EBADMSG, false },
	{ SAY("deny"), -EIO, false },
	{ SAY("deny") "exit 1\n", 0, false },
	{ "exit 0\n", -EBADMSG, false },
	{ "echo allow\n", -EBADMSG, false },
	{ "yes | head -c 200000\n", -EBADMSG, false },
	{ "exec 1>&-\nsleep 0.2\n", -EBADMSG, false },
};

static void ask_desk(const struct approve_request *req, const char *path,
		     size_t i)
{
	struct approve_answer a;
	struct err err = { 0 };
	FILE *f = fopen(path, "we");

	CHECK(f && fprintf(f, "#!/bin/sh\n%s", desks[i].script) > 0);
	(void)fchmod(fileno(f), 0700);
	(void)fclose(f);
	CHECK_INT(approve_ask(req, &a, &err), desks[i].status);
	if (a.is_allowed != desks[i].is_allowed) {
		printf("# %s\n", desks[i].script);
		CHECK(!"the script above");
	}
	(void)unlink(path);
}

TEST(approve_ask_believes_only_a_whole_answer)
{
	static char code[200 << 10];
	struct approve_request req = some_request();
	char path[128];

	set_up();
	memset(code, 'x', sizeof(code));
	req.kind = "code";
	req.language = "sh";
	req.text = code;
	req.text_len = sizeof(code);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setenv("CORDON_LIBEXEC", place, 1);
	(void)snprintf(path, sizeof(path), "%s/cordon-desk", place);
	for (size_t i = 0; i < ARRAY_SIZE(desks); i++)
		ask_desk(&req, path, i);
	leave();
}

TEST(approve_ask_without_a_desk_or_with_too_much_is_a_denial)
{
	static const char *words[300000];
	struct approve_program program = { "", words };
	struct approve_request req = some_request();
	struct approve_answer a;
	struct err err = { 0 };

	set_up();
	req.programs = &program;
	for (size_t i = 0; i + 1 < ARRAY_SIZE(words); i++)
		words[i] = "0123456789";
	CHECK_INT(approve_ask(&req, &a, &err), -E2BIG);
	CHECK(!a.is_allowed);
	CHECK_HAS(a.reason, "too large");
	words[1] = NULL;
	(void)setenv("CORDON_LIBEXEC", "/nonexistent", 1);
	CHECK(approve_ask(&req, &a, &err) < 0);
	CHECK(!a.is_allowed);
	CHECK_HAS(a.reason, "cordon-desk");
	leave();
}

TAP_MAIN()
