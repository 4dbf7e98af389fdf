/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/create.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/daemon.h"

/* Those that are the box's, not settings of what runs in it. */
static bool is_box_member(const char *name)
{
	return strcmp(name, "name") == 0 || strcmp(name, "tty") == 0 ||
	       strcmp(name, "interactive") == 0 || strcmp(name, "rm") == 0;
}

static bool is_first(const struct strv *asked, size_t i)
{
	for (size_t k = 0; k < i; k += 2)
		if (strcmp(asked->v[k], asked->v[i]) == 0)
			return false;
	return true;
}

/* Each setting as the list of its values, in their order. */
static void put_settings(struct json *j, const struct strv *asked)
{
	json_open(j, "settings", '{');
	for (size_t i = 0; i < asked->n; i += 2) {
		if (is_box_member(asked->v[i]) || !is_first(asked, i))
			continue;
		json_open(j, asked->v[i], '[');
		for (size_t k = i; k < asked->n; k += 2)
			if (strcmp(asked->v[k], asked->v[i]) == 0)
				json_str(j, NULL, asked->v[k + 1]);
		json_close(j, ']');
	}
	json_close(j, '}');
}

static const char *asked_for(const struct strv *asked, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < asked->n; i += 2)
		if (strcmp(asked->v[i], name) == 0)
			value = asked->v[i + 1];
	return value;
}

static bool is_on(const struct strv *asked, const char *name)
{
	const char *value = asked_for(asked, name);

	return value && strcmp(value, "false") != 0 && strcmp(value, "0") != 0;
}

static void put_want(struct buf *b, const struct run_flags *f, char **rest,
		     bool start)
{
	const char *name = asked_for(&f->asked, "name");
	struct json j = { .out = b };

	json_open(&j, NULL, '{');
	if (name)
		json_str(&j, "name", name);
	put_settings(&j, &f->asked);
	if (*rest) {
		json_open(&j, "command", '[');
		for (; *rest; rest++)
			json_str(&j, NULL, *rest);
		json_close(&j, ']');
	}
	json_bool(&j, "tty", is_on(&f->asked, "tty"));
	json_bool(&j, "stdin", is_on(&f->asked, "interactive"));
	json_bool(&j, "auto_remove", is_on(&f->asked, "rm"));
	json_bool(&j, "start", start);
	json_close(&j, '}');
}

static int fail(const struct err *err)
{
	say("%s", err->text);
	if (err->code == DAEMON_DENIED || err->code == DAEMON_NOT_EXECUTABLE)
		return 126;
	return err->code == DAEMON_NO_PROGRAM ? 127 : EXIT_OURS;
}

static void show(const struct buf *answer)
{
	struct value v = { answer->data, answer->len };
	struct value list, name, item;
	char text[512];

	printf("%s\n", member_text(&v, "id", text, sizeof(text)));
	if (!value_get(&v, "warnings", &list))
		return;
	for (struct walk w = walk_start(&list); walk_next(&w, &name, &item);) {
		struct buf b;

		buf_init(&b, 4096);
		if (value_text(&item, &b) == 0 && b.len)
			say("warning: %s", b.data);
		buf_done(&b);
	}
}

int create_box(const struct run_flags *f, char **rest, bool has_dashes,
	       bool start)
{
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
	buf_init(&body, (size_t)4 << 20);
	put_want(&body, f, rest, start);
	r = body.error ? err_set(&err, E2BIG, "the command is too long")
		       : daemon_call("POST", "/v1/boxes", body.data, &answer,
				     &err);
	buf_done(&body);
	if (r < 0)
		return fail(&err);
	show(&answer);
	buf_done(&answer);
	return 0;
}

int cmd_create(int argc, char **argv)
{
	struct run_flags f = { 0 };
	struct err err = { 0 };
	struct cordon_spec *spec = cordon_spec_new();
	char **rest;
	bool has_dashes;
	int code = EXIT_OURS;

	/* The spec is only there to have the settings looked at. */
	if (!spec)
		say("out of memory");
	else if (flags_parse(argc, argv, spec, &f, &rest, &has_dashes, &err) <
		 0)
		say("%s", err.text);
	else if (f.help) {
		flags_help();
		code = 0;
	} else
		code = create_box(&f, rest, has_dashes, false);
	cordon_spec_free(spec);
	strv_done(&f.asked);
	return code;
}
