/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/settings.h"
#include "box/spec.h"

static const struct own_flag own[] = {
	{ "lang", 0, "LANG", "run code in this language",
	  offsetof(struct run_flags, lang) },
	{ "code", 'c', "CODE",
	  "the code itself, instead of a file; again for a further block",
	  offsetof(struct run_flags, code) },
	{ "json", 0, NULL, "the result document instead of the streams",
	  offsetof(struct run_flags, json) },
	{ "dry-run", 0, NULL, "print what would be run, run nothing",
	  offsetof(struct run_flags, dry_run) },
	{ "detach", 'd', NULL,
	  "leave it to the daemon ('cordon serve'); print its id",
	  offsetof(struct run_flags, detach) },
	{ "help", 'h', NULL, "this list", offsetof(struct run_flags, help) },
};

const struct own_flag *own_flag_at(size_t i)
{
	return i < ARRAY_SIZE(own) ? &own[i] : NULL;
}

static const struct own_flag *find_own(const char *name, char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if ((name && strcmp(own[i].name, name) == 0) ||
		    (letter && own[i].letter == letter))
			return &own[i];
	return NULL;
}

struct reader {
	char **at; /* the next word */
	struct cordon_spec *spec;
	struct run_flags *flags;
	struct err *err;
};

/* The flag's value: after '=', attached, or the next word. */
static int need_value(struct reader *r, const char *flag, const char *takes,
		      const char **value)
{
	if (*value)
		return 0;
	if (!*r->at)
		return err_set(r->err, EINVAL, "%s takes %s", flag, takes);
	*value = *r->at++;
	return 0;
}

/* Each -c is one more. */
static int add_code(struct run_flags *f, struct err *err)
{
	if (f->n_codes == ARRAY_SIZE(f->codes))
		return err_set(err, E2BIG, "-c: at most %zu blocks can be run",
			       ARRAY_SIZE(f->codes));
	f->codes[f->n_codes].lang = f->lang;
	f->codes[f->n_codes].code = f->code;
	f->n_codes++;
	return 0;
}

static int set_own(struct reader *r, const struct own_flag *f, const char *flag,
		   const char *value)
{
	char *base = (char *)r->flags + f->offset;

	if (!f->value) {
		if (value)
			return err_set(r->err, EINVAL, "%s takes no value",
				       flag);
		*(bool *)base = true;
		return 0;
	}
	if (need_value(r, flag, f->value, &value) < 0)
		return -r->err->code;
	*(const char **)base = value;
	return f->offset == offsetof(struct run_flags, code)
		       ? add_code(r->flags, r->err)
		       : 0;
}

static int set_setting(struct reader *r, const struct setting *s,
		       const char *flag, const char *value)
{
	if (s->value && need_value(r, flag, s->value, &value) < 0)
		return -r->err->code;
	if (setting_put(s, r->spec, value, r->err) < 0)
		return err_wrap(r->err, "%s", flag);
	return spec_asked(r->spec, s->name, value, r->err);
}

static int long_flag(struct reader *r, const char *word)
{
	char name[64];
	char flag[80];
	const char *eq = strchr(word, '=');
	size_t len = eq ? (size_t)(eq - word) : strlen(word);
	const struct own_flag *f;
	const struct setting *s;

	if (len >= sizeof(name))
		return err_set(r->err, EINVAL, "there is no flag '--%.40s...'",
			       word);
	memcpy(name, word, len);
	name[len] = '\0';
	(void)snprintf(flag, sizeof(flag), "--%s", name);
	f = find_own(name, 0);
	if (f)
		return set_own(r, f, flag, eq ? eq + 1 : NULL);
	s = setting_find(name);
	if (!s)
		return err_set(r->err, EINVAL,
			       "there is no flag '%s'; 'cordon run --help' "
			       "lists them",
			       flag);
	return set_setting(r, s, flag, eq ? eq + 1 : NULL);
}

/* -it, -m 1g, -m1g */
static int short_flags(struct reader *r, const char *word)
{
	for (; *word; word++) {
		const struct own_flag *f = find_own(NULL, *word);
		const struct setting *s = setting_find_letter(*word);
		const char flag[] = { '-', *word, '\0' };
		bool takes = f ? f->value != NULL : s && s->value;
		const char *value = takes && word[1] ? word + 1 : NULL;
		int n;

		if (!f && !s)
			return err_set(r->err, EINVAL,
				       "there is no flag '%s'; 'cordon run "
				       "--help' lists them",
				       flag);
		n = f ? set_own(r, f, flag, value)
		      : set_setting(r, s, flag, value);
		if (n < 0)
			return n;
		if (takes)
			return 0;
	}
	return 0;
}

/* CORDON_MEMORY=1g is as --memory 1g, and a flag comes after it. */
static int from_environment(struct cordon_spec *spec, struct err *err)
{
	const struct setting *s;

	for (size_t i = 0; (s = setting_at(i)); i++) {
		char name[64] = "CORDON_";
		const char *value;
		size_t at = strlen(name);

		for (const char *p = s->name; *p; p++)
			name[at++] =
				(char)(*p == '-' ? '_'
						 : toupper((unsigned char)*p));
		name[at] = '\0';
		value = getenv(name);
		if (!value || !*value)
			continue;
		if (setting_put(s, spec, value, err) < 0)
			return err_wrap(err, "%s", name);
		if (spec_asked(spec, s->name, value, err) < 0)
			return -err->code;
	}
	return 0;
}

int flags_parse(int argc, char **argv, struct cordon_spec *s,
		struct run_flags *ret, char ***ret_rest, bool *ret_dashes,
		struct err *err)
{
	struct reader r = {
		.at = argv + 1, .spec = s, .flags = ret, .err = err
	};

	(void)argc;
	*ret_dashes = false;
	if (from_environment(s, err) < 0)
		return -err->code;
	while (*r.at && (*r.at)[0] == '-' && (*r.at)[1]) {
		const char *word = *r.at++;
		int n;

		if (strcmp(word, "--") == 0) {
			*ret_dashes = true;
			break;
		}
		n = word[1] == '-' ? long_flag(&r, word + 2)
				   : short_flags(&r, word + 1);
		if (n < 0)
			return n;
	}
	*ret_rest = r.at;
	return 0;
}

static void help_line(char letter, const char *name, const char *value,
		      const char *help)
{
	char left[64];

	(void)snprintf(left, sizeof(left), "%c%c%s --%s%s%s",
		       letter ? '-' : ' ', letter ? letter : ' ',
		       letter ? "," : " ", name, value ? " " : "",
		       value ? value : "");
	printf("  %-32s %s\n", left, help);
}

void flags_help(void)
{
	const struct setting *s;

	printf("usage: cordon run [FLAGS] -- CMD [ARG...]\n"
	       "       cordon run [FLAGS] --lang LANG -c CODE [ARG...]\n"
	       "       cordon run [FLAGS] [--lang LANG] FILE|- [ARG...]\n"
	       "CORDON_MEMORY=1g in the environment is as --memory 1g, and so "
	       "on.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		help_line(own[i].letter, own[i].name, own[i].value,
			  own[i].help);
	for (size_t i = 0; (s = setting_at(i)); i++)
		if (s->help)
			help_line(s->letter, s->name, s->value, s->help);
}
