/* SPDX-License-Identifier: Apache-2.0 */

/* cordon audit show: a run, or one record, in plain words. */

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "desk/audit.h"
#include "desk/desk.h"

#define MAX_RECORDS 10000

struct shown {
	uint64_t seq;
	char kind[24];
	char *line;
};

struct show {
	struct index *x;
	struct shown *v;
	size_t n;
	char run[64]; /* of the first record; another one: not clear */
	bool is_unclear;
	bool is_run; /* all of a run, not one record */
	struct err err;
	bool has_colour;
};

static int collect(void *arg, const struct index_row *row)
{
	struct show *s = arg;
	struct shown *more;

	if (s->n == 0)
		(void)snprintf(s->run, sizeof(s->run), "%s", row->run);
	else if (strcmp(s->run, row->run) != 0)
		s->is_unclear = true;
	if (s->is_unclear || s->n == MAX_RECORDS)
		return 1;
	more = realloc(s->v, (s->n + 1) * sizeof(*more));
	if (!more)
		return 1;
	s->v = more;
	more[s->n] = (struct shown){ .seq = row->seq };
	(void)snprintf(more[s->n].kind, sizeof(more->kind), "%s", row->kind);
	more[s->n].line = index_line(s->x, row, &s->err);
	if (!more[s->n].line)
		return 1;
	s->n++;
	return 0;
}

static void head(const struct show *s, const char *text)
{
	printf("%s%s%s\n", s->has_colour ? "\033[1m" : "", text,
	       s->has_colour ? "\033[0m" : "");
}

static void label(const char *name)
{
	printf("  %-12s", name);
}

static void put(const struct value *v)
{
	struct buf b;

	buf_init(&b, 4U << 20);
	(void)value_text(v, &b);
	if (b.len)
		print_plain(stdout, b.data, b.len);
	buf_done(&b);
}

/* "  name   text" if the record has that member. */
static void field(const struct value *record, const char *member,
		  const char *name)
{
	struct value v;

	if (!value_get(record, member, &v))
		return;
	label(name);
	put(&v);
	(void)putchar('\n');
}

/* The items with `between` between them, or `none`. */
static void put_items(const struct value *list, const char *between,
		      const char *none)
{
	struct value name;
	struct value item;
	bool any = false;

	for (struct walk w = walk_start(list); walk_next(&w, &name, &item);) {
		(void)fputs(any ? between : "", stdout);
		if (name.len) {
			put(&name);
			(void)putchar(' ');
		}
		put(&item);
		any = true;
	}
	(void)fputs(any ? "\n" : none, stdout);
}

static void items(const struct value *record, const char *member,
		  const char *name, const char *between, const char *none)
{
	struct value v;

	if (!value_get(record, member, &v))
		return;
	label(name);
	put_items(&v, between, none);
}

static void show_code(const struct value *record)
{
	struct value list;
	struct value name;
	struct value block;
	struct value v;

	if (!value_get(record, "code", &list))
		return;
	for (struct walk w = walk_start(&list); walk_next(&w, &name, &block);) {
		label("code");
		if (value_get(&block, "lang", &v)) {
			put(&v);
			(void)fputs(", ", stdout);
		}
		if (value_get(&block, "size", &v))
			put(&v);
		(void)fputs(" bytes, SHA-256 ", stdout);
		if (value_get(&block, "sha256", &v))
			put(&v);
		(void)putchar('\n');
	}
}

static void show_policy(const struct value *record)
{
	struct value policy;
	struct value v;

	label("policy");
	if (!value_get(record, "policy", &policy)) {
		(void)puts("none given: the shipped default");
		return;
	}
	if (value_get(&policy, "file", &v))
		put(&v);
	if (value_get(&policy, "sha256", &v)) {
		(void)fputs(", SHA-256 ", stdout);
		put(&v);
	}
	(void)putchar('\n');
}

static void show_mounts(const struct value *record)
{
	struct value list;
	struct value name;
	struct value m;
	struct value v;

	if (!value_get(record, "mounts", &list))
		return;
	if (list.len == 2) {
		label("files");
		(void)puts("nothing of the host was mounted");
	}
	for (struct walk w = walk_start(&list); walk_next(&w, &name, &m);) {
		label("files");
		if (value_get(&m, "target", &v))
			put(&v);
		if (value_get(&m, "mode", &v))
			(void)fputs(value_is(&v, "ro") ? ", read-only"
						       : ", writable",
				    stdout);
		if (value_get(&m, "source", &v)) {
			(void)fputs(", from the host's ", stdout);
			put(&v);
		} else if (value_get(&m, "size", &v)) {
			(void)fputs(", in memory, at most ", stdout);
			put(&v);
			(void)fputs(" bytes, gone with the box", stdout);
		}
		(void)putchar('\n');
	}
}

static void show_network(const struct value *record)
{
	struct value net;
	struct value v;

	if (!value_get(record, "network", &net))
		return;
	label("network");
	if (value_get(&net, "mode", &v) && value_is(&v, "none")) {
		(void)puts("none: no address could be reached");
		return;
	}
	(void)fputs("only ", stdout);
	if (value_get(&net, "allow", &v))
		put_items(&v, ", ", "none\n");
}

static void show_start(struct show *s, const struct value *record)
{
	head(s, "What was asked");
	field(record, "time", "at");
	field(record, "name", "name");
	field(record, "agent", "by agent");
	items(record, "argv", "program", " ", "-\n");
	show_code(record);
	items(record, "env", "environment", ", ", "empty\n");
	field(record, "workdir", "starts in");
	head(s, "What was decided");
	field(record, "decision", "decision");
	field(record, "rule", "rule");
	field(record, "reason", "reason");
	show_policy(record);
	head(s, "The wall");
	field(record, "isolation", "isolation");
	field(record, "image", "root");
	show_mounts(record);
	show_network(record);
	items(record, "user", "user inside", ", ", "-\n");
	items(record, "limits", "limits", ", ", "none\n");
	items(record, "layers", "in force", ", ", "none\n");
	items(record, "not_enforced", "missing", ", ", "none\n");
}

static void show_stream(const struct value *record, const char *name)
{
	struct value v;
	struct value bytes;

	if (!value_get(record, name, &v) || !value_get(&v, "bytes", &bytes))
		return;
	label(name);
	put(&bytes);
	(void)fputs(" bytes", stdout);
	if (value_get(&v, "sha256", &bytes)) {
		(void)fputs(", SHA-256 of what was kept ", stdout);
		put(&bytes);
	}
	(void)putchar('\n');
}

static void show_end(struct show *s, const struct value *record)
{
	struct value list;
	struct value name;
	struct value d;
	struct value v;

	head(s, "How it ended");
	field(record, "time", "at");
	field(record, "status", "status");
	field(record, "cause", "cause");
	field(record, "exit_code", "exit status");
	field(record, "signal", "signal");
	field(record, "message", "because");
	items(record, "usage", "used", ", ", "-\n");
	show_stream(record, "stdout");
	show_stream(record, "stderr");
	items(record, "not_enforced", "missing", ", ", "none\n");
	if (!value_get(record, "denials", &list))
		return;
	for (struct walk w = walk_start(&list); walk_next(&w, &name, &d);) {
		label("denied");
		if (value_get(&d, "what", &v))
			put(&v);
		if (value_get(&d, "layer", &v)) {
			(void)fputs(", by ", stdout);
			put(&v);
		}
		(void)putchar('\n');
	}
}

static void show_any(struct show *s, const struct shown *r,
		     const struct value *record)
{
	struct value name;
	struct value v;

	head(s, r->kind);
	for (struct walk w = walk_start(record); walk_next(&w, &name, &v);) {
		struct buf b;

		buf_init(&b, 256);
		(void)value_text(&name, &b);
		if (b.len && strcmp(b.data, "kind") != 0) {
			label(b.data);
			(void)putchar(' ');
			put(&v);
			(void)putchar('\n');
		}
		buf_done(&b);
	}
}

static int first_seal(void *arg, const struct index_row *row)
{
	*(uint64_t *)arg = row->seq;
	return 1;
}

static void show_proof(struct show *s)
{
	uint64_t last = s->v[s->n - 1].seq;
	struct index_filter f = { .kind = "seal", .above = last };
	uint64_t seal = 0;
	struct err err = { 0 };

	head(s, "The proof");
	label("records");
	for (size_t i = 0; i < s->n; i++)
		printf("%s%llu %s", i ? ", " : "",
		       (unsigned long long)s->v[i].seq, s->v[i].kind);
	(void)putchar('\n');
	label("seal");
	if (index_list(s->x, &f, first_seal, &seal, &err) == 0 && seal)
		printf("under the seal in record %llu; 'cordon audit verify' "
		       "checks it\n",
		       (unsigned long long)seal);
	else
		(void)puts("not under a seal yet; 'cordon audit seal' signs");
}

static void show_words(struct show *s)
{
	bool has_end = false;

	if (s->run[0])
		printf("Run %s\n", s->run);
	for (size_t i = 0; i < s->n; i++) {
		struct value record = { s->v[i].line, strlen(s->v[i].line) };

		has_end |= strcmp(s->v[i].kind, "run.end") == 0;
		if (strcmp(s->v[i].kind, "run.start") == 0)
			show_start(s, &record);
		else if (strcmp(s->v[i].kind, "run.end") == 0)
			show_end(s, &record);
		else
			show_any(s, &s->v[i], &record);
	}
	if (s->is_run && !has_end)
		(void)puts("  no end is recorded (yet)");
	show_proof(s);
}

static int find(struct show *s, const char *id)
{
	struct index_filter f = { 0 };
	uint64_t seq = 0;

	/* A short number is a record; an id has 32 digits. */
	if (strlen(id) < 19 && num_parse(id, 1ULL << 60, &seq) == 0)
		f.seq = seq;
	else
		f.run = id;
	s->is_run = f.run != NULL;
	if (index_list(s->x, &f, collect, s, &s->err) < 0)
		return -1;
	/* Digits may also be the beginning of an id. */
	if (s->n == 0 && f.seq) {
		f.seq = 0;
		f.run = id;
		s->is_run = true;
		return index_list(s->x, &f, collect, s, &s->err);
	}
	return 0;
}

int audit_show(struct audit_options *o)
{
	struct index x;
	struct show s = { .x = &x };
	int status = EXIT_OURS;

	if (index_open(&x, o->dir, false, &s.err) < 0) {
		say("%s", s.err.text);
		return EXIT_OURS;
	}
	s.has_colour = use_colour(STDOUT_FILENO);
	if (find(&s, o->operand) < 0 || s.err.code)
		say("%s", s.err.text);
	else if (s.is_unclear)
		say("more than one run begins with '%.64s'", o->operand);
	else if (s.n == 0)
		say("no run or record '%.64s' is on the ledger", o->operand);
	else
		status = 0;
	if (status == 0 && o->json)
		for (size_t i = 0; i < s.n; i++)
			(void)puts(s.v[i].line);
	else if (status == 0)
		show_words(&s);
	if (x.is_stopped)
		say("%s", x.note);
	for (size_t i = 0; i < s.n; i++)
		free(s.v[i].line);
	free(s.v);
	index_close(&x);
	return status;
}
