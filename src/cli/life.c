/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon start, stop, restart, kill, rm, pause, unpause, wait, rename: one
 * request for each box that is named.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"
#include "cli/cli.h"
#include "client/daemon.h"
#include "cli/box-commands.h"
#include "cli/opts.h"

struct life_flags {
	bool force, attach;
	const char *signal, *time;
};

#define AT(member) offsetof(struct life_flags, member)

static const struct opt signal_flag[] = {
	{ "signal", 's', "SIGNAL", "instead of KILL", OPT_TEXT, AT(signal) },
};

static const struct opt stop_flags[] = {
	{ "time", 't', "SECONDS", "until it is killed; -1 for no limit",
	  OPT_TEXT, AT(time) },
	{ "signal", 's', "SIGNAL", "instead of its own", OPT_TEXT, AT(signal) },
};

static const struct opt rm_flags[] = {
	{ "force", 'f', NULL, "also if it runs", OPT_SWITCH, AT(force) },
};

static const struct verb {
	const char *name;
	const char *method, *path; /* %s: the box */
	const char *usage;
	const struct opt *flags;
	size_t n_flags;
	const char *exec_path; /* of a program in a box; NULL: it has none */
} verbs[] = {
	{ "start", "POST", "/v1/boxes/%s/start", "BOX...", NULL, 0, NULL },
	{ "stop", "POST", "/v1/boxes/%s/stop", "[FLAGS] BOX...", stop_flags,
	  ARRAY_SIZE(stop_flags), NULL },
	{ "restart", "POST", "/v1/boxes/%s/restart", "[FLAGS] BOX...",
	  stop_flags, ARRAY_SIZE(stop_flags), NULL },
	{ "kill", "POST", "/v1/boxes/%s/kill", "[FLAGS] BOX|EXEC...",
	  signal_flag, ARRAY_SIZE(signal_flag), "/v1/execs/%s/kill" },
	{ "rm", "DELETE", "/v1/boxes/%s", "[FLAGS] BOX...", rm_flags,
	  ARRAY_SIZE(rm_flags), NULL },
	{ "pause", "POST", "/v1/boxes/%s/pause", "BOX...", NULL, 0, NULL },
	{ "unpause", "POST", "/v1/boxes/%s/resume", "BOX...", NULL, 0, NULL },
	{ "wait", "POST", "/v1/boxes/%s/wait", "BOX...", NULL, 0, NULL },
};

bool life_opts(size_t i, const char **ret_name, struct opts *ret)
{
	if (i >= ARRAY_SIZE(verbs))
		return false;
	*ret_name = verbs[i].name;
	*ret = (struct opts){ .usage = verbs[i].usage,
			      .v = verbs[i].flags,
			      .n = verbs[i].n_flags,
			      .min = 1,
			      .max = -1 };
	return true;
}

static int add_query(char *path, size_t size, const struct life_flags *f,
		     struct err *err)
{
	char query[200];
	size_t len = strlen(path);
	uint64_t n;

	if (f->force)
		(void)snprintf(path + len, size - len, "?force=1");
	if (f->time && strcmp(f->time, "-1") != 0 &&
	    num_parse(f->time, INT32_MAX, &n) < 0)
		return err_set(err, EINVAL, "--time takes seconds");
	if (!f->signal && !f->time)
		return 0;
	if (f->signal && f->time) {
		if (daemon_format(query, sizeof(query), err,
				  "?signal=%s&timeout=%s", f->signal,
				  f->time) < 0)
			return -err->code;
	} else if (daemon_format(query, sizeof(query), err,
				 f->signal ? "?signal=%s" : "?timeout=%s",
				 f->signal ? f->signal : f->time) < 0) {
		return -err->code;
	}
	(void)snprintf(path + len, size - len, "%s", query);
	return 0;
}

static int ask(const struct verb *v, const char *form,
	       const struct life_flags *f, const char *box, struct buf *ret,
	       struct err *err)
{
	char path[1400];

	if (daemon_format(path, 1024, err, form, box) < 0 ||
	    add_query(path, sizeof(path), f, err) < 0)
		return -err->code;
	return daemon_call(v->method, path, NULL, ret, err);
}

/* Tells the box's name as Docker does, or what wait answered. */
static int do_one(const struct verb *v, const struct life_flags *f,
		  const char *box, struct err *err)
{
	struct value root;
	int64_t code;
	struct buf b = { 0 };
	int r = ask(v, v->path, f, box, &b, err);

	if (r < 0 && v->exec_path && may_be_exec(box, err))
		r = ask(v, v->exec_path, f, box, &b, err);
	if (r < 0)
		return r;
	root = (struct value){ b.data, b.len };
	code = member_int(&root, "exit_code", -1);
	if (b.len && code < 0)
		(void)err_set(err, DAEMON_BROKEN, "the daemon tells of no end");
	else if (b.len)
		printf("%lld\n", (long long)code);
	else
		printf("%s\n", box);
	buf_done(&b);
	return -err->code;
}

int cmd_life(int argc, char **argv)
{
	struct life_flags f = { 0 };
	struct err err = { 0 };
	const struct verb *v;
	const char *name;
	struct opts opts;
	size_t at = 0;
	int code = 0;
	int n;

	(void)argc;
	while (life_opts(at, &name, &opts) && strcmp(name, argv[0]) != 0)
		at++;
	v = &verbs[at];
	n = opts_read(&opts, argv, &f, &err);
	if (n < 0) {
		if (err.text[0])
			say("%s", err.text);
		return err.text[0] ? EXIT_OURS : 0;
	}
	for (int i = 1; i <= n; i++) {
		err = (struct err){ 0 };
		if (do_one(v, &f, argv[i], &err) < 0) {
			bool is_named = err.code == DAEMON_ABSENT ||
					err.code == EACCES ||
					strstr(err.text, argv[i]);

			say("%s%s%s", is_named ? "" : argv[i],
			    is_named ? "" : ": ", err.text);
			code = EXIT_OURS;
		}
		if (err.code == DAEMON_ABSENT || err.code == EACCES)
			break;
	}
	return code;
}

const struct opts rename_opts = { .usage = "BOX NAME", .min = 2, .max = 2 };

int cmd_rename(int argc, char **argv)
{
	struct err err = { 0 };
	char path[1400];

	(void)argc;
	if (opts_read(&rename_opts, argv, NULL, &err) >= 0 &&
	    daemon_format(path, sizeof(path), &err,
			  "/v1/boxes/%s/rename?name=%s", argv[1],
			  argv[2]) == 0 &&
	    daemon_call("POST", path, NULL, NULL, &err) == 0)
		return 0;
	if (!err.text[0])
		return 0;
	say("%s", err.text);
	return EXIT_OURS;
}
