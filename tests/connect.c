/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library and the daemon: each function of cordon/daemon.h against a real
 * `cordon serve` in a directory of its own, as root and as an ordinary user.
 */

#define TAP_SECONDS 120

#include "connect.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- the handle ---- */

TEST(c01_nobody_listens)
{
	struct cordon_error err = { 0 };
	char path[200];

	CHECK(!cordon_connect("/nonexistent/cordon.sock", &err));
	CHECK_INT(err.code, ECONNREFUSED);
	CHECK_HAS(err.text, "cordon serve");
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	CHECK(!cordon_connect(path, &err));
	CHECK_INT(err.code, ENAMETOOLONG);
	CHECK(!cordon_connect(path, NULL));
}

/* Takes a connection, says something, and hangs up. */
static void *answer(void *arg)
{
	struct foe *f = arg;

	for (;;) {
		int fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC);
		char buf[4096];

		if (fd < 0)
			return NULL;
		(void)!read(fd, buf, sizeof(buf));
		(void)!send(fd, f->says, strlen(f->says), MSG_NOSIGNAL);
		(void)close(fd);
	}
}

#define GO_ON "HTTP/1.1 100 Continue\r\n\r\n"

TEST(c02_what_answers_is_no_daemon)
{
	static char endless[300 * sizeof(GO_ON)];
	static const struct {
		const char *says;
		int code;
	} table[] = {
		{ "", ECONNRESET },
		{ "SSH-2.0-OpenSSH\r\n", EPROTO },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
		  ECONNRESET },
		{ "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", EPROTO },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		  EPROTO },
		{ "HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}", EPROTO },
		{ "HTTP/1.1 503 Oh\r\n\r\n"
		  "{\"error\":{\"code\":\"busy\",\"message\":\"no room\"}}",
		  EBUSY },
		{ endless, EPROTO },
	};
	struct cordon_error err = { 0 };
	struct foe f;

	for (size_t i = 0; i < 300; i++)
		memcpy(endless + i * (sizeof(GO_ON) - 1), GO_ON, sizeof(GO_ON));
	foe_open(&f, answer);
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		f.says = table[i].says;
		CHECK(!cordon_connect(f.path, &err));
		CHECK_INT(err.code, table[i].code);
	}
	foe_close(&f);
}

/* Counts what it hears, and says what it has to. */
static void *overhear(void *arg)
{
	struct foe *f = arg;

	for (;;) {
		int fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC);
		char buf[4096];
		ssize_t n;

		if (fd < 0)
			return NULL;
		n = read(fd, buf, sizeof(buf));
		f->heard += n > 0 ? (size_t)n : 0;
		(void)!send(fd, f->says, strlen(f->says), MSG_NOSIGNAL);
		(void)close(fd);
	}
}

/* In /tmp anybody may have made the directory before us. */
TEST(c04_another_user_listens)
{
	struct cordon_error err = { 0 };
	struct cordon *c;
	char path[128];
	struct foe f;

	if (geteuid() != 0)
		return; /* to be another user needs root */
	foe_open(&f, overhear);
	f.says = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
	(void)snprintf(path, sizeof(path), "%s/cordon.sock", f.dir);
	CHECK_INT(symlink("sock", path), 0);
	(void)unsetenv("CORDON_SOCKET");
	(void)setenv("CORDON_RUNTIME_DIR", f.dir, 1);
	/* root's; then, as the kernel tells it, somebody else's */
	c = cordon_connect(NULL, &err);
	CHECK(c && f.heard > 0);
	CHECK_INT(seteuid(61500), 0);
	CHECK_INT(listen(f.fd, 8), 0);
	CHECK_INT(seteuid(0), 0);
	f.heard = 0;
	CHECK(!cordon_connect(NULL, &err));
	CHECK_INT(err.code, EACCES);
	CHECK_HAS(err.text, "user 61500 listens");
	/* A handle asks anew each time. */
	CHECK(!c || !cordon_box_list(c, 0, &err));
	CHECK_INT(err.code, EACCES);
	cordon_close(c);
	/* Named, it is meant. */
	CHECK_INT(f.heard, 0);
	c = cordon_connect(f.path, &err);
	CHECK(c != NULL);
	cordon_close(c);
	(void)setenv("CORDON_SOCKET", f.path, 1);
	c = cordon_connect(NULL, &err);
	CHECK(c != NULL);
	cordon_close(c);
	(void)unsetenv("CORDON_SOCKET");
	(void)unsetenv("CORDON_RUNTIME_DIR");
	(void)unlink(path);
	foe_close(&f);
}

TEST(c03_a_handle_without_a_daemon_has_no_boxes)
{
	struct cordon_error err = { 0 };
	struct cordon *c = cordon_open(&err);

	CHECK(c != NULL);
	if (!c)
		return;
	CHECK(!cordon_box_list(c, 0, &err));
	CHECK_INT(err.code, EOPNOTSUPP);
	CHECK_INT(cordon_box_start(c, "x", &err), -EOPNOTSUPP);
	cordon_close(c);
}

/* ---- runs ---- */

TEST(r01_a_run_is_what_it_is_without_a_daemon)
{
	struct served s;
	struct cordon_result *r;
	char *json;

	serve(&s);
	r = run(&s, sh("echo out; echo err >&2; exit 3"));
	CHECK_STR(cordon_result_cause(r), "exited");
	CHECK_STR(cordon_result_status(r), "error");
	CHECK_INT(cordon_result_exit_code(r), 3);
	CHECK_STR(cordon_result_stdout(r, NULL), "out\n");
	CHECK_STR(cordon_result_stderr(r, NULL), "err\n");
	json = cordon_result_json(r);
	CHECK_HAS(json, "\"limits\":{");
	CHECK_HAS(json, "\"stdout\":\"out\\n\"");
	CHECK(json && json[strlen(json) - 1] == '\n');
	free(json);
	cordon_result_free(r);

	r = run(&s, sh("kill -SEGV $$"));
	CHECK_STR(cordon_result_cause(r), "signal");
	CHECK_INT(cordon_result_signal(r), SIGSEGV);
	cordon_result_free(r);

	r = run(&s, sh("exit 0"));
	CHECK_STR(cordon_result_status(r), "success");
	CHECK(!cordon_result_message(r));
	cordon_result_free(r);
	stop(&s);
}

TEST(r02_settings_arrive_as_asked)
{
	struct served s;
	struct cordon_spec *spec = sh("echo $A; pwd; cat /data/hello");
	struct cordon_result *r;
	char volume[128];
	char *json;

	serve(&s);
	(void)snprintf(volume, sizeof(volume), "%s/data", s.dir);
	CHECK(mkdir(volume, 0755) == 0);
	put_file(&s, "data/hello", "from a volume\n");
	(void)strcat(volume, ":/data:ro");
	set(spec, "env", "A=first");
	set(spec, "env", "B=second");
	set(spec, "workdir", "/tmp");
	set(spec, "mem_limit", "70m");
	set(spec, "volume", volume);
	r = run(&s, spec);
	CHECK_STR(cordon_result_stdout(r, NULL),
		  "first\n/tmp\nfrom a volume\n");
	json = cordon_result_json(r);
	CHECK_HAS(json, "\"memory\":73400320");
	free(json);
	cordon_result_free(r);

	/* A list that allows nothing is not one that was left out. */
	spec = sh("true");
	CHECK_INT(cordon_spec_set_json(spec, "{\"allowed_commands\": []}", 24,
				       NULL),
		  0);
	r = run(&s, spec);
	CHECK_STR(cordon_result_cause(r), "denied");
	CHECK_INT(cordon_result_exit_code(r), 126);
	cordon_result_free(r);
	stop(&s);
}

TEST(r03_ends_that_are_no_exit)
{
	struct served s;
	struct cordon_error err = { 0 };
	struct cordon_spec *spec = sh("sleep 60");
	struct cordon_result *r;

	serve(&s);
	set(spec, "timeout", "300ms");
	r = run(&s, spec);
	CHECK_STR(cordon_result_cause(r), "timeout");
	CHECK_INT(cordon_result_exit_code(r), 124);
	CHECK_HAS(cordon_result_message(r), "300");
	cordon_result_free(r);

	spec = command("no-such-program", NULL);
	r = run(&s, spec);
	CHECK_STR(cordon_result_cause(r), "not_found");
	CHECK_INT(cordon_result_exit_code(r), 127);
	cordon_result_free(r);

	/* What cannot be said to a daemon is not said in part. */
	spec = command("echo", "\xff");
	r = NULL;
	CHECK_INT(cordon_run(s.c, spec, &r, &err), -EINVAL);
	CHECK_HAS(err.text, "UTF-8");
	cordon_spec_free(spec);
	spec = sh("true");
	set(spec, "copy-out", "*.png=/tmp");
	CHECK_INT(cordon_run(s.c, spec, &r, &err), -EOPNOTSUPP);
	cordon_spec_free(spec);
	spec = sh("true");
	set(spec, "interactive", "true");
	CHECK_INT(cordon_run(s.c, spec, &r, &err), -EOPNOTSUPP);
	cordon_spec_free(spec);
	stop(&s);
}

TEST(r04_bytes_both_ways)
{
	struct served s;
	struct cordon_spec *spec = sh("cat; cat /dev/null >&2");
	struct cordon_result *r;
	char all[4096];
	const char *out;
	size_t len;

	serve(&s);
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)(i * 7 + i / 256);
	CHECK_INT(cordon_spec_stdin(spec, all, sizeof(all), NULL), 0);
	r = run(&s, spec);
	out = cordon_result_stdout(r, &len);
	CHECK_INT((long long)len, sizeof(all));
	CHECK(len == sizeof(all) && memcmp(out, all, len) == 0);
	cordon_result_free(r);

	/* Without it there is none. */
	r = run(&s, sh("cat; echo end"));
	CHECK_STR(cordon_result_stdout(r, NULL), "end\n");
	cordon_result_free(r);
	stop(&s);
}

TEST(r05_code_in_blocks)
{
	static const char code[] = "echo 'one \"q\" \\ ä'";
	struct served s;
	struct cordon_spec *spec = cordon_spec_new();
	struct cordon_result *r;
	char *json;

	serve(&s);
	CHECK_INT(cordon_spec_code(spec, "sh", code, strlen(code), "a.sh",
				   NULL),
		  0);
	r = run(&s, spec);
	CHECK_STR(cordon_result_stdout(r, NULL), "one \"q\" \\ ä\n");
	json = cordon_result_json(r);
	CHECK_HAS(json, "\"output\":");
	free(json);
	cordon_result_free(r);
	stop(&s);
}

/* ---- jobs ---- */

TEST(j01_output_as_it_comes)
{
	const struct cordon_events events = { .output = keep,
					      .started = begun };
	struct served s;
	struct heard h = { 0 };
	struct cordon_spec *spec = sh("printf one; echo two >&2; sleep 0.3; "
				      "printf '\\377\\000x'; sleep 30");
	struct cordon_error err = { 0 };
	struct cordon_job *j;
	struct cordon_result *r;

	serve(&s);
	j = cordon_start(s.c, spec, &events, &h, &err);
	CHECK(j != NULL);
	step_until(j, &h, 6);
	CHECK_INT(h.begun, 1);
	CHECK(h.len[1] == 6 && memcmp(h.text[1], "one\377\000x", 6) == 0);
	CHECK_STR(h.text[2], "two\n");
	cordon_job_cancel(j, "enough");
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "cancelled");
	CHECK_HAS(cordon_result_message(r), "enough");
	CHECK_INT(cordon_result_exit_code(r), 130);
	cordon_result_free(r);
	cordon_spec_free(spec);
	stop(&s);
}

static void *cancel_soon(void *arg)
{
	nap(200);
	cordon_job_cancel(arg, "from another thread");
	return NULL;
}

TEST(j05_what_is_refused_does_not_start)
{
	const struct cordon_events events = { .output = keep,
					      .started = begun };
	struct served s;
	struct heard h = { 0 };
	struct cordon_spec *spec = sh("true");
	struct cordon_job *j;
	struct cordon_result *r;

	serve(&s);
	set(spec, "memory", "900g");
	j = cordon_start(s.c, spec, &events, &h, NULL);
	CHECK(j != NULL);
	wait_job(j);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "denied");
	CHECK_INT(h.begun, 0);
	cordon_result_free(r);
	cordon_spec_free(spec);
	stop(&s);
}

TEST(j02_cancel_from_another_thread)
{
	struct served s;
	struct cordon_spec *spec = sh("trap '' TERM INT; while :; do :; done");
	struct cordon_job *j;
	struct cordon_result *r;
	pthread_t t;

	serve(&s);
	j = cordon_start(s.c, spec, NULL, NULL, NULL);
	CHECK(j != NULL);
	(void)pthread_create(&t, NULL, cancel_soon, j);
	wait_job(j);
	(void)pthread_join(t, NULL);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "cancelled");
	CHECK_HAS(cordon_result_message(r), "from another thread");
	cordon_result_free(r);
	cordon_spec_free(spec);
	stop(&s);
}

TEST(j03_let_go_of_it_and_nothing_is_left)
{
	struct served s;
	struct cordon_spec *spec = sh("sleep 60");
	struct cordon_job *j;
	struct cordon_result *r;
	char *list;

	serve(&s);
	j = cordon_start(s.c, spec, NULL, NULL, NULL);
	CHECK(j != NULL);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "cancelled");
	cordon_result_free(r);
	list = cordon_box_list(s.c, 1, NULL);
	CHECK_HAS(list, "\"boxes\":[]");
	free(list);
	cordon_spec_free(spec);
	stop(&s);
}

TEST(j04_much_output)
{
	struct served s;
	struct heard h = { 0 };
	const struct cordon_events events = { .output = keep };
	struct cordon_spec *spec = sh("head -c 20000000 /dev/zero | tr '\\0' "
				      "'\\353'; echo end >&2");
	struct cordon_job *j;
	struct cordon_result *r;
	size_t len;

	serve(&s);
	set(spec, "cpus", "2");
	j = cordon_start(s.c, spec, &events, &h, NULL);
	CHECK(j != NULL);
	wait_job(j);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_status(r), "success");
	CHECK_INT((long long)h.len[1], 20000000);
	(void)cordon_result_stdout(r, &len);
	CHECK_INT((long long)len, 1 << 20);
	cordon_result_free(r);
	cordon_spec_free(spec);
	stop(&s);
}

/* ---- boxes ---- */

TEST(b01_the_life_of_a_box)
{
	struct served s;
	struct cordon_error err = { 0 };
	struct cordon_spec *spec = cordon_spec_new();
	char id[CORDON_ID_SIZE], other[CORDON_ID_SIZE];

	serve(&s);
	set(spec, "name", "one");
	set(spec, "memory", "64m");
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), 0);
	CHECK_INT((long long)strlen(id), 64);
	CHECK_INT(cordon_box_create(s.c, spec, other, &err), -EEXIST);
	CHECK(has(cordon_box_list(s.c, 0, &err), "\"boxes\":[]"));
	CHECK(has(cordon_box_list(s.c, 1, &err), "\"name\":\"one\""));
	CHECK_INT(cordon_box_pause(s.c, id, &err), -EBADFD);
	CHECK_INT(cordon_box_start(s.c, "one", &err), 0);
	CHECK(has(cordon_box_list(s.c, 0, &err), id));
	CHECK(has(cordon_box_inspect(s.c, id, &err), "\"state\":\"running\""));
	CHECK(has(cordon_box_inspect(s.c, id, &err), "\"memory\":67108864"));
	CHECK(has(cordon_box_stats(s.c, id, &err), "\"pids\":"));
	CHECK_INT(cordon_box_pause(s.c, id, &err), 0);
	CHECK(has(cordon_box_inspect(s.c, id, &err), "\"state\":\"paused\""));
	CHECK_INT(cordon_box_unpause(s.c, id, &err), 0);
	CHECK_INT(cordon_box_rename(s.c, id, "two words", &err), -EINVAL);
	CHECK_INT(cordon_box_rename(s.c, id, "two", &err), 0);
	CHECK_INT(cordon_box_remove(s.c, "two", 0, &err), -EBADFD);
	CHECK_INT(cordon_box_stop(s.c, "two", 0, &err), 0);
	CHECK(has(cordon_box_inspect(s.c, id, &err), "\"state\":\"exited\""));
	CHECK_INT(cordon_box_start(s.c, "two", &err), 0);
	CHECK_INT(cordon_box_kill(s.c, "two", NULL, &err), 0);
	CHECK_INT(cordon_box_remove(s.c, "two", 1, &err), 0);
	CHECK_INT(cordon_box_remove(s.c, "two", 1, &err), -ESRCH);
	CHECK_INT(cordon_box_start(s.c, "../version", &err), -ESRCH);
	CHECK(!cordon_box_inspect(s.c, id, &err));
	CHECK_INT(err.code, ESRCH);
	CHECK_INT(cordon_box_stop(s.c, id, -1, NULL), -ESRCH);
	cordon_spec_free(spec);
	stop(&s);
}

TEST(b02_waiting_and_logs)
{
	struct served s;
	struct heard h = { 0 };
	const struct cordon_events events = { .output = keep };
	struct cordon_error err = { 0 };
	struct cordon_spec *spec = sh("echo a; echo b; echo c >&2; sleep 0.7; "
				      "exit 5");
	struct cordon_result *r = NULL;
	char id[CORDON_ID_SIZE];

	serve(&s);
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), 0);
	CHECK_INT(cordon_box_wait(s.c, id, 1000, &r, &err), -EBADFD);
	CHECK_INT(cordon_box_start(s.c, id, &err), 0);
	CHECK_INT(cordon_box_wait(s.c, id, 50, &r, &err), -ETIMEDOUT);
	CHECK(!r);
	CHECK_INT(cordon_box_wait(s.c, id, -1, &r, &err), 0);
	CHECK_STR(cordon_result_cause(r), "exited");
	CHECK_INT(cordon_result_exit_code(r), 5);
	CHECK_STR(cordon_result_stdout(r, NULL), "a\nb\n");
	CHECK_STR(cordon_result_stderr(r, NULL), "c\n");
	cordon_result_free(r);
	CHECK_INT(cordon_box_wait(s.c, id, -1, NULL, &err), 0);
	CHECK_INT(cordon_box_logs(s.c, id, -1, &events, &h, &err), 0);
	CHECK_STR(h.text[1], "a\nb\n");
	CHECK_STR(h.text[2], "c\n");
	memset(&h, 0, sizeof(h));
	CHECK_INT(cordon_box_logs(s.c, id, 1, &events, &h, &err), 0);
	CHECK_STR(h.text[1], "");
	CHECK_STR(h.text[2], "c\n");
	CHECK_INT(cordon_box_logs(s.c, "none", -1, &events, &h, &err), -ESRCH);
	cordon_spec_free(spec);

	/* One that is killed says so. */
	spec = sh("sleep 60");
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), 0);
	CHECK_INT(cordon_box_start(s.c, id, &err), 0);
	CHECK_INT(cordon_box_kill(s.c, id, "KILL", &err), 0);
	CHECK_INT(cordon_box_wait(s.c, id, -1, &r, &err), 0);
	CHECK_INT(cordon_result_exit_code(r), 137);
	cordon_result_free(r);
	cordon_spec_free(spec);
	stop(&s);
}

TEST(b05_waiting_for_one_that_goes_with_its_end)
{
	struct served s;
	struct cordon_error err = { 0 };
	struct cordon_spec *spec = sh("sleep 0.7; exit 5");
	struct cordon_result *r = NULL;
	char id[CORDON_ID_SIZE];

	serve(&s);
	CHECK_INT(cordon_spec_set(spec, "rm", "true", &err), 0);
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), 0);
	CHECK_INT(cordon_box_wait(s.c, id, 1000, &r, &err), -EBADFD);
	CHECK_STR(err.text, "it has not run");
	CHECK_INT(cordon_box_start(s.c, id, &err), 0);
	CHECK_INT(cordon_box_wait(s.c, id, -1, &r, &err), -ESRCH);
	CHECK_HAS(err.text, "the box was removed: its exit code was 5");
	CHECK(!r);
	CHECK_INT(cordon_box_wait(s.c, id, -1, &r, &err), -ESRCH);
	cordon_spec_free(spec);
	stop(&s);
}

TEST(b03_attached_to_a_box)
{
	struct served s;
	struct heard h = { 0 };
	const struct cordon_events events = { .output = keep };
	struct cordon_error err = { 0 };
	struct cordon_spec *spec = sh("echo ready; cat; exit 7");
	struct cordon_result *r;
	struct cordon_job *j;
	char id[CORDON_ID_SIZE];

	serve(&s);
	set(spec, "interactive", "true");
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), 0);
	CHECK_INT(cordon_box_start(s.c, id, &err), 0);
	j = cordon_box_attach(s.c, id, &events, &h, &err);
	CHECK(j != NULL);
	step_until(j, &h, 6);
	CHECK_STR(h.text[1], "ready\n");
	/* Let go of it, and it runs. */
	CHECK(!cordon_job_end(j));
	CHECK(has(cordon_box_inspect(s.c, id, &err), "\"state\":\"running\""));
	memset(&h, 0, sizeof(h));
	j = cordon_box_attach(s.c, id, &events, &h, &err);
	CHECK(j != NULL);
	CHECK_INT(cordon_job_write(j, "hello\n", 6), 6);
	step_until(j, &h, 12);
	CHECK_STR(h.text[1], "ready\nhello\n");
	cordon_job_cancel(j, NULL);
	wait_job(j);
	r = cordon_job_end(j);
	CHECK_INT(cordon_result_exit_code(r), 137);
	CHECK_STR(cordon_result_stdout(r, NULL), "ready\nhello\n");
	cordon_result_free(r);
	CHECK(has(cordon_box_inspect(s.c, id, &err), "\"state\":\"exited\""));
	cordon_spec_free(spec);
	stop(&s);
}

TEST(b04_what_a_box_does_not_take)
{
	struct served s;
	struct cordon_error err = { 0 };
	struct cordon_spec *spec = cordon_spec_new();
	char id[CORDON_ID_SIZE];

	serve(&s);
	CHECK_INT(cordon_spec_code(spec, "sh", "true", 4, NULL, &err), 0);
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), -EINVAL);
	cordon_spec_free(spec);
	spec = cordon_spec_new();
	set(spec, "memory", "900g");
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), -EPERM);
	cordon_spec_free(spec);
	spec = cordon_spec_new();
	set(spec, "image", "absent:1");
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), -ENOMEDIUM);
	cordon_spec_free(spec);
	/* Removed with its end. */
	spec = sh("true");
	set(spec, "remove", "true");
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), 0);
	CHECK_INT(cordon_box_start(s.c, id, &err), 0);
	for (int i = 0; i < 200 && has(cordon_box_list(s.c, 1, &err), id); i++)
		nap(20);
	CHECK(!has(cordon_box_list(s.c, 1, &err), id));
	cordon_spec_free(spec);
	stop(&s);
}

/* ---- programs ---- */

TEST(e01_programs_in_a_box)
{
	struct served s;
	struct cordon_result *r;
	struct cordon_spec *spec;
	struct cordon_error err = { 0 };
	char id[CORDON_ID_SIZE], *json;

	serve(&s);
	box(&s, id);
	r = exec(&s, id,
		 sh("echo kept >/tmp/f; echo out; echo err >&2; exit 4"));
	CHECK_STR(cordon_result_cause(r), "exited");
	CHECK_INT(cordon_result_exit_code(r), 4);
	CHECK_STR(cordon_result_stdout(r, NULL), "out\n");
	CHECK_STR(cordon_result_stderr(r, NULL), "err\n");
	cordon_result_free(r);

	spec = sh("cat /tmp/f; echo $A; pwd; cat");
	set(spec, "env", "A=1 2");
	set(spec, "workdir", "/tmp");
	CHECK_INT(cordon_spec_stdin(spec, "\0in\377", 4, &err), 0);
	r = exec(&s, id, spec);
	CHECK(memcmp(cordon_result_stdout(r, NULL), "kept\n1 2\n/tmp\n\0in\377",
		     18) == 0);
	json = cordon_result_json(r);
	CHECK_HAS(json, "\"stdout_b64\":");
	free(json);
	cordon_result_free(r);

	spec = cordon_spec_new();
	CHECK_INT(cordon_spec_code(spec, "python", "print(6 * 7)", 12, NULL,
				   &err),
		  0);
	r = exec(&s, id, spec);
	CHECK_STR(cordon_result_stdout(r, NULL), "42\n");
	cordon_result_free(r);

	r = exec(&s, id, command("no-such-program", NULL));
	CHECK_STR(cordon_result_cause(r), "not_found");
	cordon_result_free(r);

	spec = sh("true");
	set(spec, "memory", "10m");
	CHECK_INT(cordon_exec(s.c, id, spec, &r, &err), -EINVAL);
	CHECK_HAS(err.text, "memory is a setting of the box");
	cordon_spec_free(spec);
	spec = sh("true");
	CHECK_INT(cordon_exec(s.c, "nobody", spec, &r, &err), -ESRCH);
	CHECK_INT(cordon_box_stop(s.c, id, 0, &err), 0);
	CHECK_INT(cordon_exec(s.c, id, spec, &r, &err), -EBADFD);
	cordon_spec_free(spec);
	stop(&s);
}

TEST(e02_a_deadline_and_a_cancel_kill_it)
{
	struct served s;
	struct cordon_result *r;
	struct cordon_spec *spec = sh("sleep 4711 & sleep 4711");
	struct cordon_job *j;
	char id[CORDON_ID_SIZE];

	serve(&s);
	box(&s, id);
	set(spec, "timeout", "300ms");
	r = exec(&s, id, spec);
	CHECK_STR(cordon_result_cause(r), "timeout");
	cordon_result_free(r);
	CHECK_STR(text_of(&s, id, "grep -l 471[1] /proc/[0-9]*/cmdline; :"),
		  "");

	spec = sh("trap '' TERM; sleep 4712 & sleep 4712");
	j = cordon_exec_start(s.c, id, spec, NULL, NULL, NULL);
	CHECK(j != NULL);
	nap(200);
	cordon_job_cancel(j, "no more");
	wait_job(j);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "cancelled");
	CHECK_HAS(cordon_result_message(r), "no more");
	cordon_result_free(r);
	cordon_spec_free(spec);
	CHECK_STR(text_of(&s, id, "grep -l 471[2] /proc/[0-9]*/cmdline; :"),
		  "");
	stop(&s);
}

TEST(e03_interactive)
{
	struct served s;
	struct heard h = { 0 };
	const struct cordon_events events = { .output = keep };
	struct cordon_spec *spec = sh(
		"while read -r x; do echo \"<$x>\"; done; "
		"echo over >&2; exit 9");
	struct cordon_result *r;
	struct cordon_job *j;
	char id[CORDON_ID_SIZE];

	serve(&s);
	box(&s, id);
	set(spec, "interactive", "true");
	j = cordon_exec_start(s.c, id, spec, &events, &h, NULL);
	CHECK(j != NULL);
	CHECK_INT(cordon_job_write(j, "a\n", 2), 2);
	step_until(j, &h, 4);
	CHECK_STR(h.text[1], "<a>\n");
	CHECK_INT(cordon_job_write(j, "b\n", 2), 2);
	CHECK_INT(cordon_job_write(j, NULL, 0), 0);
	CHECK_INT(cordon_job_write(j, "c\n", 2), -EPIPE);
	wait_job(j);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "exited");
	CHECK_INT(cordon_result_exit_code(r), 9);
	CHECK_STR(cordon_result_stdout(r, NULL), "<a>\n<b>\n");
	CHECK_STR(cordon_result_stderr(r, NULL), "over\n");
	cordon_result_free(r);
	cordon_spec_free(spec);
	stop(&s);
}

TEST(e04_much_input)
{
	enum { SIZE = 9 << 20 };
	struct served s;
	struct cordon_spec *spec = sh("cat | wc -c");
	struct cordon_result *r;
	char id[CORDON_ID_SIZE];
	char *big = malloc(SIZE);

	serve(&s);
	box(&s, id);
	memset(big, 'x', SIZE);
	CHECK_INT(cordon_spec_stdin(spec, big, SIZE, NULL), 0);
	r = exec(&s, id, spec);
	CHECK_INT(atoi(cordon_result_stdout(r, NULL)), SIZE);
	cordon_result_free(r);
	/* A run takes what a request holds, and says so. */
	spec = sh("cat | wc -c");
	CHECK_INT(cordon_spec_stdin(spec, big, SIZE, NULL), 0);
	CHECK_INT(cordon_run(s.c, spec, &r, NULL), -E2BIG);
	cordon_spec_free(spec);
	free(big);
	stop(&s);
}

TEST(e05_detached)
{
	struct served s;
	struct heard h = { 0 };
	const struct cordon_events events = { .output = keep };
	struct cordon_error err = { 0 };
	struct cordon_spec *spec = sh("echo one; sleep 0.5; echo two; exit 6");
	struct cordon_result *r;
	struct cordon_job *j;
	char id[CORDON_ID_SIZE], exec_id[CORDON_ID_SIZE];

	serve(&s);
	box(&s, id);
	CHECK_INT(cordon_exec_detach(s.c, id, spec, exec_id, &err), 0);
	CHECK(has(cordon_exec_inspect(s.c, exec_id, &err), "\"running\":true"));
	/* Let go of it, and it runs. */
	j = cordon_exec_attach(s.c, exec_id, &events, &h, &err);
	CHECK(j != NULL);
	step_until(j, &h, 4);
	CHECK_STR(h.text[1], "one\n");
	CHECK(!cordon_job_end(j));
	memset(&h, 0, sizeof(h));
	j = cordon_exec_attach(s.c, exec_id, &events, &h, &err);
	CHECK(j != NULL);
	wait_job(j);
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "exited");
	CHECK_INT(cordon_result_exit_code(r), 6);
	CHECK_STR(cordon_result_stdout(r, NULL), "one\ntwo\n");
	cordon_result_free(r);
	cordon_spec_free(spec);

	spec = sh("sleep 60");
	CHECK_INT(cordon_exec_detach(s.c, id, spec, exec_id, &err), 0);
	CHECK_INT(cordon_exec_kill(s.c, exec_id, "CONT", &err), 0);
	CHECK_INT(cordon_exec_kill(s.c, exec_id, "NONE", &err), -EINVAL);
	CHECK_INT(cordon_exec_kill(s.c, exec_id, NULL, NULL), 0);
	for (int i = 0; i < 200 && has(cordon_exec_inspect(s.c, exec_id, &err),
				       "\"running\":true");
	     i++)
		nap(20);
	CHECK(has(cordon_exec_inspect(s.c, exec_id, &err),
		  "\"running\":false"));
	CHECK(!cordon_exec_inspect(s.c, "0123", &err));
	CHECK_INT(err.code, ESRCH);
	set(spec, "interactive", "true");
	CHECK_INT(cordon_exec_detach(s.c, id, spec, exec_id, &err), -EINVAL);
	cordon_spec_free(spec);
	stop(&s);
}

/* ---- files ---- */

TEST(f01_files)
{
	struct served s;
	struct cordon_error err = { 0 };
	char id[CORDON_ID_SIZE], all[3000], name[256];
	void *data = NULL;
	size_t len = 0;
	int fd;

	serve(&s);
	box(&s, id);
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)(i * 11 + i / 256);
	CHECK_INT(cordon_box_put(s.c, id, "/workspace/bytes", all, sizeof(all),
				 0640, &err),
		  0);
	CHECK_INT(cordon_box_get(s.c, id, "/workspace/bytes", &data, &len,
				 &err),
		  0);
	CHECK(len == sizeof(all) && memcmp(data, all, len) == 0);
	free(data);
	CHECK_STR(text_of(&s, id, "stat -c %a%s /workspace/bytes"),
		  "6403000\n");
	/* Nothing in it, and a name that needs a header of its own. */
	memset(name, 'n', sizeof(name));
	memcpy(name, "/tmp/", 5);
	name[230] = '\0';
	CHECK_INT(cordon_box_put(s.c, id, name, "", 0, 0600, &err), 0);
	CHECK_INT(cordon_box_get(s.c, id, name, &data, &len, &err), 0);
	CHECK_INT((long long)len, 0);
	free(data);
	CHECK_INT(cordon_box_get(s.c, id, "/nothing", &data, &len, &err),
		  -ENOENT);
	CHECK_INT(cordon_box_get(s.c, id, "/tmp", &data, &len, &err), -EISDIR);
	CHECK_INT(cordon_box_put(s.c, id, "relative", "", 0, 0, &err), -EINVAL);
	CHECK_INT(cordon_box_put(s.c, id, "/usr/x", "", 0, 0, &err), -EROFS);
	CHECK_INT(cordon_box_put(s.c, "none", "/tmp/x", "", 0, 0, &err),
		  -ESRCH);
	CHECK_INT(cordon_box_put(s.c, id, "/nodir/x", "y", 1, 0, &err),
		  -ENOENT);

	/* A tree out and in again. */
	text_of(&s, id, "mkdir -p /tmp/t/a; echo x >/tmp/t/a/b; mkdir /tmp/u");
	(void)snprintf(name, sizeof(name), "%s/tar", s.dir);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(cordon_box_get_tar(s.c, id, "/tmp/t", fd, &err), 0);
	(void)lseek(fd, 0, SEEK_SET);
	CHECK_INT(cordon_box_put_tar(s.c, id, "/tmp/u", fd, &err), 0);
	CHECK_STR(text_of(&s, id, "cat /tmp/u/t/a/b"), "x\n");
	CHECK_INT(cordon_box_put_tar(s.c, id, "/tmp/u", -1, &err), -EBADF);
	CHECK_INT(cordon_box_get_tar(s.c, id, "/none", fd, &err), -ENOENT);
	(void)close(fd);
	stop(&s);
}

/* ---- many, none, gone ---- */

struct worker {
	struct served *s;
	const char *box;
	int number;
	int good;
	pthread_t thread;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < 6; i++) {
		char script[64], want[64];
		struct cordon_spec *spec;
		struct cordon_result *r = NULL;

		(void)snprintf(script, sizeof(script), "cat; echo %d %d >&2",
			       w->number, i);
		(void)snprintf(want, sizeof(want), "%d %d\n", w->number, i);
		spec = sh(script);
		(void)cordon_spec_stdin(spec, want, strlen(want), NULL);
		if (cordon_exec(w->s->c, w->box, spec, &r, NULL) == 0 &&
		    strcmp(cordon_result_stdout(r, NULL), want) == 0 &&
		    strcmp(cordon_result_stderr(r, NULL), want) == 0)
			w->good++;
		cordon_result_free(r);
		cordon_spec_free(spec);
	}
	return NULL;
}

TEST(m01_many_at_once_from_threads)
{
	enum { N = 12 };
	struct worker w[N];
	struct served s;
	char id[CORDON_ID_SIZE];

	serve(&s);
	box(&s, id);
	for (int i = 0; i < N; i++) {
		w[i] = (struct worker){ .s = &s, .box = id, .number = i };
		(void)pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	for (int i = 0; i < N; i++) {
		(void)pthread_join(w[i].thread, NULL);
		CHECK_INT(w[i].good, 6);
	}
	stop(&s);
}

TEST(m02_busy_is_told_apart)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct served s;
	struct cordon_error err = { 0 };
	int fds[256];
	int r = 0;

	serve(&s);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", s.socket);
	for (size_t i = 0; i < 256; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(connect(fds[i], (struct sockaddr *)&addr, sizeof(addr)) ==
		      0);
	}
	/* Those are taken before this one. */
	r = cordon_box_start(s.c, "any", &err);
	CHECK_INT(r, -EBUSY);
	CHECK(*err.text);
	for (size_t i = 0; i < 256; i++)
		(void)close(fds[i]);
	for (int i = 0; i < 200 && r == -EBUSY; i++) {
		nap(20);
		r = cordon_box_start(s.c, "any", &err);
	}
	CHECK_INT(r, -ESRCH);
	stop(&s);
}

static void *kill_soon(void *arg)
{
	const struct served *s = arg;

	nap(300);
	(void)kill(s->pid, SIGKILL);
	return NULL;
}

/* Its parts die with it, each in its time, and answer until then. */
static bool has_gone(struct served *s)
{
	struct cordon_error err = { 0 };

	for (int i = 0; i < 500 && err.code != ECONNREFUSED; i++) {
		char *list = cordon_box_list(s->c, 1, &err);

		free(list);
		nap(10);
	}
	return err.code == ECONNREFUSED;
}

TEST(m03_the_daemon_dies_in_the_midst)
{
	struct served s;
	struct heard h = { 0 };
	const struct cordon_events events = { .output = keep };
	struct cordon_spec *spec = sh("echo before; sleep 60");
	struct cordon_error err = { 0 };
	struct cordon_result *r = NULL;
	struct cordon_job *run_job, *exec_job;
	char id[CORDON_ID_SIZE];
	pthread_t t;

	serve(&s);
	box(&s, id);
	run_job = cordon_start(s.c, spec, &events, &h, &err);
	set(spec, "interactive", "true");
	exec_job = cordon_exec_start(s.c, id, spec, NULL, NULL, &err);
	CHECK(run_job && exec_job);
	step_until(run_job, &h, 7);
	(void)pthread_create(&t, NULL, kill_soon, &s);
	CHECK_INT(cordon_box_wait(s.c, id, -1, NULL, &err), -ECONNRESET);
	(void)pthread_join(t, NULL);
	wait_job(run_job);
	r = cordon_job_end(run_job);
	CHECK_STR(cordon_result_cause(r), "lost");
	CHECK_INT(cordon_result_exit_code(r), 125);
	CHECK_STR(cordon_result_stdout(r, NULL), "before\n");
	CHECK(*cordon_result_message(r));
	cordon_result_free(r);
	wait_job(exec_job);
	r = cordon_job_end(exec_job);
	CHECK_STR(cordon_result_cause(r), "lost");
	cordon_result_free(r);
	CHECK_INT(cordon_run(s.c, spec, &r, &err), -EOPNOTSUPP);
	CHECK(has_gone(&s));
	cordon_spec_free(spec);
	stop(&s);
}

TEST(m04_cancel_where_the_daemon_is_gone)
{
	struct served s;
	struct cordon_spec *spec = sh("sleep 60");
	struct cordon_job *j;
	struct cordon_result *r;

	serve(&s);
	j = cordon_start(s.c, spec, NULL, NULL, NULL);
	CHECK(j != NULL);
	(void)kill(s.pid, SIGKILL);
	CHECK(has_gone(&s));
	r = cordon_job_end(j);
	CHECK_STR(cordon_result_cause(r), "lost");
	cordon_result_free(r);
	cordon_spec_free(spec);
	stop(&s);
}

/* Answers each request with "yes", until its socket is shut. */
static void *say_yes(void *arg)
{
	static const char yes[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
				  "Connection: close\r\n\r\nyes\n";
	const int *at = arg;
	char text[1024];
	int fd;

	while ((fd = accept4(*at, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		(void)!read(fd, text, sizeof(text));
		(void)!write(fd, yes, sizeof(yes) - 1);
		(void)close(fd);
	}
	return NULL;
}

static int listen_here(int *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(bind(fd, (struct sockaddr *)&at, size) == 0 &&
	      listen(fd, 8) == 0 &&
	      getsockname(fd, (struct sockaddr *)&at, &size) == 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

TEST(m05_hosts_of_a_spec_narrow_those_of_the_policy)
{
	struct served s;
	struct cordon_spec *spec = sh("curl -sS http://api.test/; "
				      "curl -sS http://two.test/; true");
	struct cordon_error err = { 0 };
	struct cordon_result *r = NULL;
	char *json;
	char policy[512];
	char id[CORDON_ID_SIZE];
	int port;
	int fd = listen_here(&port);
	pthread_t t;

	(void)pthread_create(&t, NULL, say_yes, &fd);
	(void)snprintf(policy, sizeof(policy),
		       "version: 1\nsandbox: {images: [host]}\nnetwork:\n"
		       "  allow:\n    - {host: api.test, ports: [80]}\n"
		       "    - {host: two.test, ports: [80]}\n"
		       "  resolve:\n    'api.test:80': '127.0.0.1:%d'\n"
		       "    'two.test:80': '127.0.0.1:%d'\n",
		       port, port);
	serve_by(&s, policy);
	CHECK_INT(cordon_run(s.c, spec, &r, &err), 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "yes\nyes\n");
	cordon_result_free(r);
	set(spec, "allow-host", "api.test:80");
	CHECK_INT(cordon_run(s.c, spec, &r, &err), 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "yes\n");
	json = cordon_result_json(r);
	CHECK_HAS(json, "two.test");
	free(json);
	cordon_result_free(r);
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), 0);
	CHECK_INT(cordon_box_start(s.c, id, &err), 0);
	CHECK_INT(cordon_box_wait(s.c, id, 20000, &r, &err), 0);
	CHECK_STR(cordon_result_stdout(r, NULL), "yes\n");
	cordon_result_free(r);
	CHECK_INT(cordon_box_remove(s.c, id, 1, &err), 0);
	set(spec, "allow-host", "evil.test:80");
	CHECK_INT(cordon_box_create(s.c, spec, id, &err), -EPERM);
	CHECK_HAS(err.text, "evil.test");
	cordon_spec_free(spec);
	(void)shutdown(fd, SHUT_RDWR);
	(void)pthread_join(t, NULL);
	(void)close(fd);
	stop(&s);
}

TAP_MAIN()
