/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon policy show: what is in force, in the form of a policy file, each
 * value with the place it comes from.
 */

#include "desk/desk.h"

#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "desk/policy-cmd.h"
#include "policy/keys.h"
#include "policy/never.h"
#include "policy/steer.h"
#include "policy/values.h"

#define DEPTH 8
#define PART  1024

struct printer {
	char open[DEPTH][PART]; /* the parts of the last path */
	int depth;
	bool colour;
	const struct flat *flat;
};

/* Whether YAML would read it as something else than this text. */
static bool needs_quotes(const char *v)
{
	return !*v || strpbrk(v, ":#{}[],&*!|>'\"%@`\n\t\\") ||
	       strchr(" -?", v[0]) || v[strlen(v) - 1] == ' ' ||
	       strcmp(v, "true") == 0 || strcmp(v, "false") == 0 ||
	       strcmp(v, "null") == 0 || strcmp(v, "~") == 0;
}

static void put_value(struct buf *b, const char *v, bool is_bool)
{
	if (is_bool || !needs_quotes(v) ||
	    (v[0] == '-' && v[1] && !strpbrk(v, ":#{}[],'\" \n\t"))) {
		(void)buf_puts(b, v);
		return;
	}
	(void)buf_puts(b, "\"");
	for (; *v; v++) {
		if (*v == '\n')
			(void)buf_puts(b, "\\n");
		else if (*v == '\t')
			(void)buf_puts(b, "\\t");
		else if ((unsigned char)*v < 0x20 || *v == 0x7f)
			(void)buf_printf(b, "\\x%02x", (unsigned char)*v);
		else
			(void)buf_printf(b, "%s%c",
					 strchr("\"\\", *v) ? "\\" : "", *v);
	}
	(void)buf_puts(b, "\"");
}

/* What a wildcard means, in words. */
static const char *in_words(const char *path, const char *v)
{
	unsigned char address[16];
	unsigned int bits;

	if (strncmp(v, "*.", 2) == 0)
		return "; subdomains only, not the name itself";
	if (strncmp(path, "network.", 8) == 0 && strstr(path, ".host") &&
	    value_cidr(v, address, &bits) == 0)
		return bits == 128 ? "; this address, also if it is private"
				   : "; these addresses, also if they are "
				     "private; never a metadata service";
	if (strstr(path, ".agents") && strcmp(v, "*") == 0)
		return "; every agent";
	if (strncmp(path, "tools.*", 7) == 0)
		return "; every tool";
	return "";
}

static void put_row(const struct printer *p, const struct buf *left,
		    const struct flat_line *l, const char *note)
{
	const char *dim = p->colour ? "\033[2m" : "";
	const char *off = p->colour ? "\033[0m" : "";

	printf("%-44s %s# %s:%u%s%s\n", left->data ? left->data : "", dim,
	       l->file, l->line, note, off);
}

static bool is_index(const char *part)
{
	return *part && strspn(part, "0123456789") == strlen(part);
}

/* A list of plain words goes on one line, if it is one. */
static size_t put_words(const struct printer *p, size_t first,
			const struct grammar *list, size_t len, struct buf *b,
			struct buf *note)
{
	const struct flat_line *l = &p->flat->lines[first];
	const char *path = l->path;
	size_t n = 0;

	(void)buf_puts(b, "[");
	while (first + n < p->flat->n_lines) {
		const struct flat_line *now = &p->flat->lines[first + n];

		if (strncmp(now->path, path, len) != 0 || now->path[len] != '.')
			break;
		(void)buf_puts(b, n ? ", " : "");
		put_value(b, now->value, list->item->is_bool);
		if (n > 0 && strcmp(now->file, now[-1].file) != 0)
			(void)buf_printf(note, "; from '%s' on %s:%u",
					 now->value, now->file, now->line);
		n++;
	}
	(void)buf_puts(b, "]");
	return n;
}

/* A path taken apart. */
struct parts {
	char v[DEPTH][PART];
	size_t ends[DEPTH]; /* where each ends in the path */
	int n;
	int same; /* so many are as in the row before */
};

static void split(const struct printer *p, const char *path, struct parts *ret)
{
	const char *at = path;
	int n = 0;

	ret->same = 0;
	while (at && n < DEPTH) {
		const char *next;

		if (flat_part(at, ret->v[n], PART, &next) < 0)
			break;
		ret->ends[n++] = next ? (size_t)(next - path) - 1
				      : strlen(path);
		at = next;
	}
	ret->n = n;
	while (ret->same < n - 1 && ret->same < p->depth &&
	       strcmp(ret->v[ret->same], p->open[ret->same]) == 0)
		ret->same++;
}

static void put_key(struct buf *b, const char *part)
{
	put_value(b, part, false);
	(void)buf_puts(b, ":");
}

/* A row of the output while it is made. */
struct row {
	struct buf text;
	struct buf note;
	int indent;
	bool is_dashed; /* it began with one: what follows stands beside it */
	size_t used;    /* lines of the flat form */
};

static void put_dash(struct row *w)
{
	(void)buf_printf(&w->text, "%*s- ", w->indent, "");
	w->is_dashed = true;
	w->indent += 2;
}

static void put_name(struct row *w, const char *name, bool has_more)
{
	if (!w->is_dashed)
		(void)buf_printf(&w->text, "%*s", w->indent, "");
	w->is_dashed = false;
	put_key(&w->text, name);
	w->indent += 2;
	if (!has_more) {
		(void)buf_puts(&w->text, " ");
		return;
	}
	printf("%s\n", w->text.data);
	w->text.len = 0;
	w->text.data[0] = '\0';
}

static bool is_list_of_words(const struct grammar *g)
{
	return g->kind == GRAMMAR_LIST && g->item->kind == GRAMMAR_SCALAR;
}

/* What is new in a path; returns the grammar of its last part. */
static const struct grammar *put_parts(struct printer *p, size_t at,
				       const struct parts *parts, struct row *w)
{
	const struct grammar *g = &grammar_policy;

	for (int i = 0; i < parts->n; i++) {
		bool is_item = g->kind == GRAMMAR_LIST && is_index(parts->v[i]);
		const struct grammar *list = g;

		g = grammar_step(g, parts->v[i]);
		if (!g)
			break;
		if (i < parts->same) {
			w->indent += 2;
		} else if (is_item && i == parts->n - 1) {
			if (i > 0 && is_list_of_words(list))
				w->used = put_words(p, at, list,
						    parts->ends[i - 1],
						    &w->text, &w->note);
			break;
		} else if (is_item) {
			put_dash(w);
		} else {
			/* On a line of its own, unless it ends here. */
			put_name(w, parts->v[i],
				 i < parts->n - 1 && !(i == parts->n - 2 &&
						       is_list_of_words(g)));
		}
	}
	return g;
}

/* Writes what is new in this path; returns the lines it has used. */
static size_t put_line(struct printer *p, size_t at)
{
	const struct flat_line *l = &p->flat->lines[at];
	const struct grammar *g;
	struct parts parts;
	struct row w = { .used = 1 };

	split(p, l->path, &parts);
	buf_init(&w.text, 1 << 20);
	buf_init(&w.note, 1 << 16);
	(void)buf_puts(&w.note, in_words(l->path, l->value));
	g = put_parts(p, at, &parts, &w);
	if (w.used == 1 && w.text.len > 0 &&
	    w.text.data[w.text.len - 1] == ' ') {
		bool is_marker = g && g->kind != GRAMMAR_SCALAR &&
				 (strcmp(l->value, "[]") == 0 ||
				  strcmp(l->value, "{}") == 0);

		put_value(&w.text, l->value, is_marker || (g && g->is_bool));
	}
	put_row(p, &w.text, l, w.note.data);
	buf_done(&w.note);
	buf_done(&w.text);
	memcpy(p->open, parts.v, sizeof(parts.v));
	p->depth = parts.n;
	return w.used;
}

static void show_json(const struct flat *f)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, 64 << 20);
	json_open(&j, NULL, '{');
	json_open(&j, "sources", '[');
	for (size_t i = 0; i < f->n_sources; i++) {
		json_open(&j, NULL, '{');
		json_str(&j, "name", f->sources[i].name);
		json_str(&j, "sha256", f->sources[i].sha256);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "values", '[');
	for (size_t i = 0; i < f->n_lines; i++) {
		json_open(&j, NULL, '{');
		json_str(&j, "path", f->lines[i].path);
		json_str(&j, "value", f->lines[i].value);
		json_str(&j, "file", f->lines[i].file);
		json_int(&j, "line", f->lines[i].line);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	(void)buf_puts(&out, "\n");
	if (!out.error)
		(void)io_write_all(1, out.data, out.len);
	buf_done(&out);
}

static void show_defaults(const struct policy *p)
{
	static const char *const defaults[POLICY_NUMBERS] = {
		[POLICY_TIMEOUT] = "30s", [POLICY_CPU_TIME] = "none",
		[POLICY_MEMORY] = "256m", [POLICY_CPUS] = "0.5",
		[POLICY_PIDS] = "128",    [POLICY_OUTPUT] = "1m",
		[POLICY_DISK] = "64m",    [POLICY_FILES] = "1024",
	};
	bool any = false;

	for (int i = 0; i < POLICY_NUMBERS; i++)
		if (!p->numbers[i].is_stated) {
			printf("%s %s %s",
			       any ? ","
				   : "\n# not stated, so "
				     "defaults and no "
				     "ceilings:",
			       policy_number_name((enum policy_number)i),
			       defaults[i]);
			any = true;
		}
	printf("%s", any ? "\n" : "");
}

int policy_cmd_show(const struct compiled *c, bool as_json)
{
	const struct flat *f = &c->policy->flat;
	static struct printer p;

	if (as_json) {
		show_json(f);
		return 0;
	}
	p.flat = f;
	p.colour = use_colour(1);
	printf("# in force by %s; what is not listed is not given, and "
	       "'cordon policy show --never' lists what nothing gives\n",
	       c->file);
	for (size_t i = 0; i < f->n_lines;) {
		size_t used = put_line(&p, i);

		i += used ? used : 1;
	}
	show_defaults(c->policy);
	return 0;
}

static void put_strings(struct json *j, const char *name,
			const char *const *list)
{
	json_open(j, name, '[');
	for (; *list; list++)
		json_str(j, NULL, *list);
	json_close(j, ']');
}

static void never_json(void)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, 1 << 20);
	json_open(&j, NULL, '{');
	json_open(&j, "paths", '[');
	for (const struct never_path *n = never_paths; n->path; n++) {
		json_open(&j, NULL, '{');
		json_str(&j, "path", n->path);
		json_bool(&j, "below_too", n->is_deep);
		json_bool(&j, "unless_mount_roots_names_it", n->may_name);
		json_str(&j, "why", n->why);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	put_strings(&j, "credentials", never_credentials);
	put_strings(&j, "read_only_in_writable_mounts", never_made);
	put_strings(&j, "addresses", never_addresses);
	put_strings(&j, "hosts", never_hosts);
	put_strings(&j, "further", never_words);
	json_close(&j, '}');
	(void)buf_puts(&out, "\n");
	(void)io_write_all(1, out.data, out.len);
	buf_done(&out);
}

static void put_columns(const char *title, const char *const *list)
{
	printf("\n%s\n", title);
	for (; *list; list++)
		printf("  %s\n", *list);
}

void policy_cmd_never(bool as_json)
{
	if (as_json) {
		never_json();
		return;
	}
	printf("Never, whatever a policy or a flag says:\n");
	for (const char *const *w = never_words; *w; w++)
		printf("  %s\n", *w);
	printf("\nNever mounted (or copied in):\n");
	for (const struct never_path *n = never_paths; n->path; n++)
		printf("  %-14s%s%s%s\n", n->path, n->why,
		       n->is_deep ? ", and all below" : "",
		       n->may_name ? " (unless mount_roots names it)" : "");
	put_columns("Credentials: a directory that holds one of these is not "
		    "mounted, nor anything in them\n(unless mount_roots names "
		    "that directory, exactly):",
		    never_credentials);
	put_columns("Read-only in a directory that is mounted writable, and "
		    "moved away if the box makes one:",
		    never_made);
	put_columns("Addresses that no rule opens:", never_addresses);
	put_columns("Names that no rule opens:", never_hosts);
	put_columns("Variables that no flag sets where a policy lists commands "
		    "(only its sandbox.env does):",
		    steering);
}
