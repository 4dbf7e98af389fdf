/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any script or program as a tool: PATH, and beside it PATH.json, which says
 * what it is:
 *
 *	{"name": "word_count", "description": "...", "parameters": {schema},
 *	 "language": "python", "timeout": 10, "approval": "policy",
 *	 "idempotent": true, "result": "text"}
 *
 * The first three are needed. It runs in a box, reads its arguments as one
 * JSON object on standard input, and what it writes to standard output is the
 * result; an exit status other than 0 makes it an error. With "result":
 * "parts" that is a JSON list of texts, images and values (image.c).
 *
 * A script is given to the box as code, as it was when the tool was made; its
 * language is said, or known by its ending or its first line. Anything else is
 * mounted into the box, read-only, which a policy must give (mount_roots);
 * it is the one that was there when the tool was made, or it does not run.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/util.h"
#include "base/visible.h"
#include "box/lang.h"
#include "box/spec.h"
#include "tool/box.h"

#define MAX_SCRIPT (1U << 20)
#define MAX_SCHEMA (256U << 10)
#define MAX_BINARY ((uint64_t)256 << 20)
#define IN_BOX     "/tool"

struct program {
	struct box_tool box;
	char *path;     /* absolute */
	char *language; /* NULL: not a script */
	char *text;
	size_t len;
	char sum[65];
};

/* reading */

static char *read_all(const char *path, size_t max, size_t *ret_len,
		      struct err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *text = malloc(max + 2);
	struct stat st;
	ssize_t n;

	if (!text) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)err_errno(err, errno, "open '%s'", path);
		return NULL;
	}
	n = S_ISREG(st.st_mode) ? io_read_full(fd, text, max + 1) : -EINVAL;
	if (n < 0 || (size_t)n > max) {
		(void)err_set(err, n < 0 ? (int)-n : E2BIG,
			      n < 0 ? "'%s' is not a file that can be read"
				    : "'%s' is too large",
			      path);
		return NULL;
	}
	text[n] = '\0';
	*ret_len = (size_t)n;
	return take_ptr(text);
}

/* Of a file of any size that a program has. */
static int sum_of(const char *path, char ret[65], struct err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned char sum[SHA256_SIZE];
	char block[16384];
	struct sha256 s;
	ssize_t n = fd < 0 ? -errno : 0;

	sha256_init(&s);
	while (n >= 0 && s.len <= MAX_BINARY &&
	       (n = io_read_full(fd, block, sizeof(block))) > 0)
		sha256_add(&s, block, (size_t)n);
	if (n < 0 || s.len > MAX_BINARY)
		return err_set(err, n < 0 ? (int)-n : E2BIG, "read '%s'", path);
	sha256_end(&s, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", sum[i]);
	return 0;
}

/* The interpreter of "#!/usr/bin/env python3", as the name of a language. */
static const struct lang *lang_of_first_line(const char *text)
{
	char line[200];
	char *word;
	char *save = NULL;
	const char *name = NULL;
	const char *slash;

	if (strncmp(text, "#!", 2) != 0)
		return NULL;
	(void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\r\n"),
		       text);
	for (word = strtok_r(line + 2, " \t", &save); word;
	     word = strtok_r(NULL, " \t", &save)) {
		slash = strrchr(word, '/');
		name = slash ? slash + 1 : word;
		if (strcmp(name, "env") != 0 && *word != '-')
			break;
	}
	return name ? lang_find(name) : NULL;
}

static int find_language(struct program *p, const json_t *about,
			 struct err *err)
{
	const char *said = json_string_value(
		json_object_get(about, "language"));
	const struct lang *l = said ? lang_find(said) : lang_of_file(p->path);

	if (said && !l && !lang_exact_program(said))
		return err_set(err, EINVAL, "the language '%.40s' is not known",
			       said);
	if (!said && !l && p->text)
		l = lang_of_first_line(p->text);
	if (!said && !l)
		return 0;
	p->language = strdup(said ? said : l->names[0]);
	return p->language ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int read_program(struct program *p, const char *path,
			const json_t *about, struct err *err)
{
	struct err why = { 0 };

	p->path = realpath(path, NULL);
	if (!p->path)
		return err_errno(err, errno, "open '%s'", path);
	/* What is too large to be a script may be a program still. */
	p->text = read_all(p->path, MAX_SCRIPT, &p->len, &why);
	if (!p->text && why.code != E2BIG) {
		*err = why;
		return -err->code;
	}
	if (find_language(p, about, err) < 0)
		return -err->code;
	if (p->language && !p->text) {
		*err = why;
		return -err->code;
	}
	if (!p->language)
		return sum_of(p->path, p->sum, err);
	visible_sha256(p->text, p->len, p->sum);
	return 0;
}

static json_t *read_about(const char *path, struct err *err)
{
	static const char *const keys =
		" name description parameters language timeout approval "
		"idempotent result ";
	_cleanup_free_ char *text = NULL;
	json_error_t why;
	const char *key;
	json_t *v;
	json_t *o;
	size_t len;
	char word[80];

	text = read_all(path, MAX_SCHEMA, &len, err);
	o = text ? json_loadb(text, len, JSON_REJECT_DUPLICATES, &why) : NULL;
	if (text && !o)
		(void)err_set(err, EINVAL, "%s:%d: %s", path, why.line,
			      why.text);
	if (o && !json_is_object(o))
		(void)err_set(err, EINVAL, "%s: not an object", path);
	json_object_foreach(o, key, v)
	{
		(void)snprintf(word, sizeof(word), " %.70s ", key);
		if (!strstr(keys, word))
			(void)err_set(err, EINVAL, "%s: '%.60s' is not known",
				      path, key);
	}
	if (err->code) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* what is run */

static int error_in(struct err *err, const struct cordon_error *e)
{
	return err_set(err, e->code, "%s", e->text);
}

static int fill_mounted(const struct program *p, struct cordon_spec *s,
			struct err *err)
{
	const char *slash = strrchr(p->path, '/');
	_cleanup_free_ char *inside = NULL;
	_cleanup_free_ char *text = NULL;
	struct cordon_error e = { 0 };
	const char *argv[2] = { NULL, NULL };
	char sum[65] = "";
	json_t *o;

	if (sum_of(p->path, sum, err) < 0)
		return -err->code;
	if (strcmp(sum, p->sum) != 0)
		return err_set(err, EPERM,
			       "'%s' is not what it was when the agent began",
			       p->path);
	if (asprintf(&inside, IN_BOX "/%s", slash ? slash + 1 : p->path) < 0) {
		inside = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	argv[0] = inside;
	o = json_pack("{s:{s:{s:s, s:s}}}", "volumes", p->path, "bind", inside,
		      "mode", "ro");
	text = o ? json_dumps(o, 0) : NULL;
	json_decref(o);
	if (!text)
		return err_set(err, ENOMEM, "out of memory");
	if (cordon_spec_set_json(s, text, strlen(text), &e) < 0 ||
	    cordon_spec_command(s, argv, &e) < 0)
		return error_in(err, &e);
	return 0;
}

static int fill(struct box_tool *b, const json_t *args, struct cordon_spec *s,
		struct err *err)
{
	const struct program *p = (const struct program *)b;
	_cleanup_free_ char *input = json_dumps(args, JSON_COMPACT);
	const char *slash = strrchr(p->path, '/');
	const char *name = slash ? slash + 1 : p->path;
	struct cordon_error e = { 0 };

	if (!input)
		return err_set(err, ENOMEM, "out of memory");
	if (cordon_spec_stdin(s, input, strlen(input), &e) < 0)
		return error_in(err, &e);
	if (!p->language)
		return fill_mounted(p, s, err);
	if (spec_check_filename(name, NULL) < 0)
		name = NULL;
	return cordon_spec_code(s, p->language, p->text, p->len, name, &e) < 0
		       ? error_in(err, &e)
		       : 0;
}

static int changes(struct box_tool *b, const json_t *args, struct strv *ret)
{
	const struct program *p = (const struct program *)b;
	_cleanup_free_ char *line = NULL;

	(void)args;
	if (asprintf(&line, "program %s, sha256 %s", p->path, p->sum) < 0) {
		line = NULL;
		return -ENOMEM;
	}
	return strv_add(ret, line);
}

static char *report(struct box_tool *b, const json_t *doc)
{
	const char *status = json_string_value(json_object_get(doc, "status"));
	const char *out = json_string_value(json_object_get(doc, "stdout"));

	if (status && strcmp(status, "success") == 0)
		return strdup(out ? out : "");
	return box_report(b, doc);
}

static void free_program(struct box_tool *b)
{
	struct program *p = (struct program *)b;

	free(p->path);
	free(p->language);
	free(p->text);
}

static const struct box_kind kind = {
	.fill = fill, .changes = changes, .report = report, .free = free_program
};

/* making one */

static int take_settings(struct tool *t, const json_t *about, struct err *err)
{
	static const char *const names[] = { "policy", "always", "never" };
	const json_t *approval = json_object_get(about, "approval");
	const json_t *timeout = json_object_get(about, "timeout");
	const json_t *idempotent = json_object_get(about, "idempotent");
	const char *said = json_string_value(approval);
	const json_t *result = json_object_get(about, "result");
	const char *form = json_string_value(result);

	if (result && (!form || (strcmp(form, "text") != 0 &&
				 strcmp(form, "parts") != 0)))
		return err_set(err, EINVAL, "result: not text or parts");
	t->gives_parts = form && strcmp(form, "parts") == 0;
	if (timeout &&
	    (!json_is_number(timeout) || json_number_value(timeout) < 0.001 ||
	     json_number_value(timeout) > 86400))
		return err_set(err, EINVAL, "timeout: not a number of seconds");
	if (idempotent && !json_is_boolean(idempotent))
		return err_set(err, EINVAL, "idempotent: not true or false");
	if (timeout)
		t->timeout = (int64_t)(json_number_value(timeout) * 1e6);
	t->is_idempotent = json_is_true(idempotent);
	for (size_t i = 0; said && i < ARRAY_SIZE(names); i++)
		if (strcmp(said, names[i]) == 0) {
			t->approval = (enum tool_approval)i;
			return 0;
		}
	return approval ? err_set(err, EINVAL,
				  "approval: not policy, always or never")
			: 0;
}

static int make(struct program *p, const struct tool_box *box, const char *path,
		const json_t *about, struct err *err)
{
	const char *name = json_string_value(json_object_get(about, "name"));
	const char *what = json_string_value(
		json_object_get(about, "description"));
	const json_t *schema = json_object_get(about, "parameters");

	if (!name || !what || !json_is_object(schema))
		return err_set(err, EINVAL,
			       "'name', 'description' and 'parameters' must "
			       "be there");
	if (schema_check(schema, err) < 0 ||
	    take_settings(&p->box.tool, about, err) < 0 ||
	    read_program(p, path, about, err) < 0)
		return -err->code;
	return box_tool_init(&p->box, box, &kind, name, what, schema, err);
}

int tool_program(const struct tool_box *box, const char *path,
		 struct tool **ret, struct err *err)
{
	_cleanup_free_ char *beside = NULL;
	struct program *p;
	json_t *about;
	int r;

	if (asprintf(&beside, "%s.json", path) < 0) {
		beside = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	*err = (struct err){ 0 };
	about = read_about(beside, err);
	if (!about)
		return err_wrap(err, "tool");
	p = calloc(1, sizeof(*p));
	r = p ? make(p, box, path, about, err)
	      : err_set(err, ENOMEM, "out of memory");
	json_decref(about);
	if (r < 0 && p)
		free_program(&p->box);
	if (r < 0) {
		free(p);
		return err_wrap(err, "tool '%s'", beside);
	}
	*ret = &p->box.tool;
	return 0;
}
