/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/create.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/cli.h"
#include "client/daemon.h"
#include "client/want.h"

static int fail(const struct err *err)
{
	say("%s", err->text);
	if (err->code == DAEMON_DENIED || err->code == DAEMON_NOT_EXECUTABLE)
		return 126;
	return err->code == DAEMON_NO_PROGRAM ? 127 : EXIT_OURS;
}

static int show(const struct buf *answer)
{
	struct value v = { answer->data, answer->len };
	struct value list, name, item;
	char text[512];

	if (!*member_text(&v, "id", text, sizeof(text))) {
		say("the daemon's answer names no id");
		return EXIT_OURS;
	}
	printf("%s\n", text);
	if (!value_get(&v, "warnings", &list))
		return 0;
	for (struct walk w = walk_start(&list); walk_next(&w, &name, &item);) {
		struct buf b;

		buf_init(&b, 4096);
		if (value_text(&item, &b) == 0 && b.len)
			say("warning: %s", b.data);
		buf_done(&b);
	}
	return 0;
}

int create_box(struct cordon_spec *spec, const struct run_flags *f, char **rest,
	       bool has_dashes, bool start)
{
	struct cordon_error why = { 0 };
	struct err err = { 0 };
	struct buf body, answer;
	int r;

	if (f->lang || f->code || f->json || f->dry_run) {
		say("a box that stays takes a command: leave out --lang, -c, "
		    "--json and --dry-run");
		return EXIT_OURS;
	}
	if (*rest && !has_dashes) {
		say("write '--' before the command: -- %s ...", *rest);
		return EXIT_OURS;
	}
	if (*rest &&
	    cordon_spec_command(spec, (const char *const *)rest, &why) < 0) {
		say("%s", why.text);
		return EXIT_OURS;
	}
	r = want_box(&body, spec, start, &err);
	if (r == 0)
		r = daemon_call("POST", "/v1/boxes", body.data, &answer, &err);
	buf_done(&body);
	if (r < 0)
		return fail(&err);
	r = show(&answer);
	buf_done(&answer);
	return r;
}

int cmd_create(int argc, char **argv)
{
	struct run_flags f = { 0 };
	struct err err = { 0 };
	struct cordon_spec *spec = cordon_spec_new();
	char **rest;
	bool has_dashes;
	int code = EXIT_OURS;

	if (!spec)
		say("out of memory");
	else if (flags_parse(argc, argv, spec, &f, &rest, &has_dashes, &err) <
		 0)
		say("%s", err.text);
	else if (f.help) {
		flags_help();
		code = 0;
	} else
		code = create_box(spec, &f, rest, has_dashes, false);
	cordon_spec_free(spec);
	return code;
}
