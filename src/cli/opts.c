/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/opts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

static void help(const struct opts *o, const char *command)
{
	printf("usage: cordon %s %s\n%s", command, o->usage, o->n ? "\n" : "");
	for (size_t i = 0; i < o->n; i++) {
		char left[48];

		(void)snprintf(left, sizeof(left), "%c%c%s --%s%s%s",
			       o->v[i].letter ? '-' : ' ',
			       o->v[i].letter ? o->v[i].letter : ' ',
			       o->v[i].letter ? "," : " ", o->v[i].name,
			       o->v[i].value ? " " : "",
			       o->v[i].value ? o->v[i].value : "");
		printf("  %-28s %s\n", left, o->v[i].help);
	}
}

static const struct opt *find_name(const struct opts *o, const char *word,
				   size_t len)
{
	for (size_t i = 0; i < o->n; i++)
		if (strlen(o->v[i].name) == len &&
		    memcmp(o->v[i].name, word, len) == 0)
			return &o->v[i];
	return NULL;
}

static const struct opt *find_letter(const struct opts *o, char letter)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->v[i].letter == letter)
			return &o->v[i];
	return NULL;
}

static int set(const struct opt *f, const char *value, void *ret)
{
	char *at = (char *)ret + f->offset;

	switch (f->kind) {
	case OPT_SWITCH:
		*(bool *)at = true;
		return 0;
	case OPT_TEXT:
		*(const char **)(void *)at = value;
		return 0;
	case OPT_LIST:
		return strv_add((struct strv *)(void *)at, value);
	}
	return -EINVAL;
}

struct words {
	const struct opts *o;
	char **at;
	void *ret;
	struct err *err;
};

static int no_flag(struct words *w, const char *word, int len)
{
	return err_set(w->err, EINVAL,
		       "there is no flag '%.*s'; --help lists "
		       "them",
		       len, word);
}

static int take(struct words *w, const struct opt *f, const char *flag, int len,
		const char *value)
{
	if (!f->value && value)
		return err_set(w->err, EINVAL, "%.*s takes no value", len,
			       flag);
	if (f->value && !value) {
		value = *w->at;
		if (!value)
			return err_set(w->err, EINVAL, "%.*s takes %s", len,
				       flag, f->value);
		w->at++;
	}
	if (set(f, value, w->ret) < 0)
		return err_set(w->err, ENOMEM, "out of memory");
	return 0;
}

static int read_long(struct words *w, const char *word)
{
	const char *eq = strchr(word, '=');
	size_t len = eq ? (size_t)(eq - word) : strlen(word);
	const struct opt *f = find_name(w->o, word + 2, len - 2);

	if (!f)
		return no_flag(w, word, (int)MIN(len, 60));
	return take(w, f, word, (int)len, eq ? eq + 1 : NULL);
}

static int read_short(struct words *w, const char *word)
{
	for (const char *p = word + 1; *p; p++) {
		const char flag[] = { '-', *p };
		const struct opt *f = find_letter(w->o, *p);
		int r;

		if (!f)
			return no_flag(w, flag, 2);
		r = take(w, f, flag, 2, f->value && p[1] ? p + 1 : NULL);
		if (r < 0 || f->value)
			return r;
	}
	return 0;
}

int opts_read(const struct opts *o, char **argv, void *ret, struct err *err)
{
	struct words w = { .o = o, .at = argv + 1, .ret = ret, .err = err };
	bool are_over = false;
	int n = 0;

	while (*w.at) {
		char *word = *w.at++;
		bool is_flag = !are_over && word[0] == '-' && word[1];
		int r = 0;

		if (is_flag && strcmp(word, "--") == 0) {
			are_over = true;
		} else if (is_flag && (strcmp(word, "--help") == 0 ||
				       strcmp(word, "-h") == 0)) {
			help(o, argv[0]);
			return -ECANCELED;
		} else if (is_flag) {
			r = word[1] == '-' ? read_long(&w, word)
					   : read_short(&w, word);
		} else {
			argv[1 + n++] = word;
			are_over |= o->stops;
		}
		if (r < 0)
			return r;
	}
	argv[1 + n] = NULL;
	if (n < o->min || (o->max >= 0 && n > o->max))
		return err_set(err, EINVAL, "usage: cordon %s %s", argv[0],
			       o->usage);
	return n;
}
