/* SPDX-License-Identifier: Apache-2.0 */
#include "box/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/lang.h"
#include "box/settings.h"

#define MAX_INPUT (64ULL << 20)

int error_out(struct cordon_error *out, const struct err *err)
{
	if (out) {
		out->code = err->code;
		(void)snprintf(out->text, sizeof(out->text), "%s", err->text);
	}
	return -err->code;
}

struct cordon_spec *cordon_spec_new(void)
{
	struct cordon_spec *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->timeout_us = 30000000;
	s->total_us = 600000000;
	s->memory = 256 << 20;
	s->cpu_period_us = 100000;
	s->cpu_quota_us = 50000;
	s->pids = 128;
	s->output = 1 << 20;
	s->disk = 64 << 20;
	s->nofile = 1024;
	s->fsize = 1ULL << 30;
	s->oom_score_adj = WIRE_OOM_SCORE;
	s->uid = 65534;
	s->gid = 65534;
	s->tty_rows = 24;
	s->tty_cols = 80;
	return s;
}

int spec_add_line(struct cordon_spec *s, uint32_t join, const char *const *argv,
		  size_t n, struct err *err)
{
	struct spec_line *l = &s->line[s->n_line];

	if (s->n_line == SPEC_MAX_LINE)
		return err_set(err, E2BIG, "more than %d programs in one line",
			       SPEC_MAX_LINE);
	s->n_line++;
	l->join = join;
	for (size_t i = 0; i < n; i++)
		if (strv_add(&l->argv, argv[i]) < 0)
			return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static void block_done(struct spec_block *b)
{
	free(b->lang_name);
	free(b->code);
	free(b->filename);
	strv_done(&b->args);
	free(b->input);
}

void cordon_spec_free(struct cordon_spec *s)
{
	if (!s)
		return;
	/* One past the last may be half filled by a setter that failed. */
	for (size_t i = 0; i < SPEC_MAX_ITEMS; i++) {
		free(s->binds[i].source);
		free(s->binds[i].target);
		free(s->tmpfs[i].target);
		free(s->copies[i].glob);
		free(s->copies[i].dir);
	}
	for (size_t i = 0; i < s->n_blocks; i++)
		block_done(&s->blocks[i]);
	strv_done(&s->gate_used);
	strv_done(&s->asked);
	strv_done(&s->asked_lists);
	strv_done(&s->env);
	strv_done(&s->env_from_host);
	strv_done(&s->labels);
	strv_done(&s->command);
	strv_done(&s->args);
	for (size_t i = 0; i < s->n_line; i++)
		strv_done(&s->line[i].argv);
	strv_done(&s->programs);
	strv_done(&s->allowed);
	free(s->command_line);
	strv_done(&s->entrypoint);
	free(s->image);
	free(s->user);
	strv_done(&s->group_add);
	free(s->workdir);
	free(s->work_dir);
	free(s->bind_dir);
	free(s->container_dir);
	free(s->workspace);
	free(s->policy);
	free(s->name);
	free(s->cpuset);
	free(s->hostname);
	free(s->domainname);
	strv_done(&s->hosts);
	strv_done(&s->allow_hosts);
	strv_done(&s->secrets);
	free(s->term);
	free(s->input);
	free(s);
}

int spec_asked(struct cordon_spec *s, const char *name, const char *value,
	       struct err *err)
{
	/* Both or none, or what follows would be taken for the other. */
	if (strv_add(&s->asked, name) == 0) {
		if (strv_add(&s->asked, value ? value : "true") == 0)
			return 0;
		s->asked.n--;
		free(s->asked.v[s->asked.n]);
		s->asked.v[s->asked.n] = NULL;
	}
	return err_set(err, ENOMEM, "out of memory");
}

int spec_set(struct cordon_spec *s, const char *name, const char *value,
	     struct err *err)
{
	const struct setting *setting = setting_find(name);

	if (!setting)
		return setting_unknown(name, err);
	if (!value && setting->value)
		return err_set(err, EINVAL, "%s takes %s", setting->name,
			       setting->value);
	if (setting_put(setting, s, value, err) < 0)
		return err_wrap(err, "%s", setting_said(setting, name));
	return spec_asked(s, setting->name, value, err);
}

int cordon_spec_set(struct cordon_spec *s, const char *name, const char *value,
		    struct cordon_error *out)
{
	struct err err = { 0 };

	return spec_set(s, name, value, &err) < 0 ? error_out(out, &err) : 0;
}

uint64_t spec_total_us(const struct cordon_spec *s)
{
	if (s->stated & SPEC_STATED_TOTAL)
		return s->total_us;
	return MAX(s->total_us, s->timeout_us);
}

uint64_t spec_workspace_size(const struct cordon_spec *s)
{
	for (size_t i = 0; i < s->n_binds; i++)
		if (strcmp(s->binds[i].target, "/workspace") == 0)
			return 0;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, "/workspace") == 0)
			return s->tmpfs[i].size;
	return s->disk;
}

uint64_t spec_held_to(const struct cordon_spec *s, int what, uint64_t usual)
{
	if (!(s->rlimits_set & 1U << what))
		return usual;
	return MIN(usual, MIN(s->rlimits[what].soft, s->rlimits[what].hard));
}

void spec_plain_path(char *path)
{
	char *to = path;

	if (path[0] != '/')
		return;
	for (const char *p = path; *p;) {
		size_t n;

		p += strspn(p, "/");
		n = strcspn(p, "/");
		if (n > 0 && !(n == 1 && *p == '.')) {
			*to++ = '/';
			memmove(to, p, n);
			to += n;
		}
		p += n;
	}
	if (to == path)
		to++; /* the root */
	*to = '\0';
}

int spec_check_path(const char *path, const char *what, struct err *err)
{
	size_t len = strlen(path);

	if (path[0] != '/')
		return err_set(err, EINVAL, "%s '%s' is not absolute", what,
			       path);
	if (len >= 4096)
		return err_set(err, EINVAL, "%s is too long", what);
	for (const char *p = path; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return err_set(err, EINVAL,
				       "%s has a control character", what);
		if (p[0] == '/' && p[1] == '.' && p[2] == '.' &&
		    (p[3] == '/' || !p[3]))
			return err_set(err, EINVAL, "%s '%s' has '..' in it",
				       what, path);
	}
	if (len == 1)
		return err_set(err, EINVAL, "%s cannot be '/'", what);
	return 0;
}

static int bad_name(struct err *err, const char *why)
{
	return err_set(err, EINVAL, "Filename is not valid: %s", why);
}

static int check_component(const char *p, size_t len, struct err *err)
{
	if (len > 255)
		return bad_name(err, "a part of it is longer than 255 bytes");
	if (len == 2 && p[0] == '.' && p[1] == '.')
		return err_set(err, EPERM, "Filename is not in the workspace");
	if (len == 1 && p[0] == '.')
		return bad_name(err, "'.' names no file");
	return 0;
}

int spec_check_filename(const char *name, struct err *err)
{
	size_t len = strlen(name);
	int parts = 0;

	if (len == 0)
		return bad_name(err, "it is empty");
	if (name[0] == '/')
		return err_set(err, EPERM, "Filename is not in the workspace");
	if (len > 4096)
		return bad_name(err, "it is longer than 4096 bytes");
	if (name[len - 1] == '/')
		return bad_name(err, "it ends in '/'");
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return bad_name(err, "it has a control character");
	for (const char *p = name; *p;) {
		size_t n = strcspn(p, "/");

		if (n > 0 && check_component(p, n, err) < 0)
			return -err->code;
		parts += n > 0;
		p += n + (p[n] == '/');
	}
	if (parts > 16)
		return bad_name(err, "it has more than 16 parts");
	return 0;
}

/* Adds a part, or takes the last one away; the new length, or -errno. */
static int walk(char *out, size_t len, const char *p, size_t n, struct err *err)
{
	if (n == 0 || (n == 1 && p[0] == '.'))
		return (int)len;
	if (n == 2 && p[0] == '.' && p[1] == '.') {
		if (len == 0)
			return err_set(err, EPERM,
				       "Filename is not in the workspace");
		while (len > 0 && out[len - 1] != '/')
			len--;
		return (int)(len > 0 ? len - 1 : 0);
	}
	if (len > 0)
		out[len++] = '/';
	memcpy(out + len, p, n);
	return (int)(len + n);
}

int spec_plain_filename(const char *name, char **ret, struct err *err)
{
	size_t size = strlen(name);
	_cleanup_free_ char *out = malloc(size + 2);
	const char *last = strrchr(name, '/');
	int len = 0;

	*ret = NULL;
	if (!out)
		return err_set(err, ENOMEM, "out of memory");
	/* These are wrong in themselves, wherever they lead. */
	if (size == 0 || size > 4096 || name[0] == '/' || name[size - 1] == '/')
		return spec_check_filename(name, err);
	for (const char *p = name; *p;) {
		size_t n = strcspn(p, "/");

		len = walk(out, (size_t)len, p, n, err);
		if (len < 0)
			return len;
		p += n + (p[n] == '/');
	}
	out[len] = '\0';
	last = last ? last + 1 : name;
	if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
		return bad_name(err, "it names a directory");
	if (spec_check_filename(out, err) < 0)
		return -err->code;
	*ret = take_ptr(out);
	return 0;
}

int cordon_spec_command(struct cordon_spec *s, const char *const *argv,
			struct cordon_error *out)
{
	struct err err = { 0 };

	strv_done(&s->command);
	for (; *argv; argv++)
		if (strv_add(&s->command, *argv) < 0) {
			err_set(&err, ENOMEM, "out of memory");
			return error_out(out, &err);
		}
	if (s->command.n == 0 || !s->command.v[0][0]) {
		err_set(&err, EINVAL, "the command is empty");
		return error_out(out, &err);
	}
	return 0;
}

int cordon_spec_code(struct cordon_spec *s, const char *language,
		     const void *code, size_t len, const char *filename,
		     struct cordon_error *out)
{
	struct spec_block *b = &s->blocks[s->n_blocks];
	struct err err = { 0 };

	if (s->n_blocks == SPEC_MAX_BLOCKS || len > MAX_INPUT) {
		err_set(&err, E2BIG,
			"at most %d blocks of at most 64 MiB can be run",
			SPEC_MAX_BLOCKS);
		return error_out(out, &err);
	}
	memset(b, 0, sizeof(*b));
	b->lang_name = lang_trimmed(language);
	b->lang = b->lang_name ? lang_find(b->lang_name) : NULL;
	b->code = malloc(len + 1);
	b->filename = filename ? strdup(filename) : NULL;
	if (!b->lang_name || !b->code || (filename && !b->filename)) {
		block_done(b);
		err_set(&err, ENOMEM, "out of memory");
		return error_out(out, &err);
	}
	memcpy(b->code, code, len);
	b->code[len] = '\0';
	b->len = len;
	s->n_blocks++;
	return 0;
}

int cordon_spec_stdin(struct cordon_spec *s, const void *data, size_t len,
		      struct cordon_error *out)
{
	struct err err = { 0 };
	char *copy = len > MAX_INPUT ? NULL : malloc(len + 1);

	if (!copy) {
		err_set(&err, ENOMEM, "standard input is too large");
		return error_out(out, &err);
	}
	memcpy(copy, data, len);
	free(s->input);
	s->input = copy;
	s->input_len = len;
	s->has_input = true;
	return 0;
}

/* For one run a box has one group on the host, and no right to have more. */
static int check_groups(const struct cordon_spec *s, struct err *err)
{
	if (s->stays || s->group_add.n == 0)
		return 0;
	for (uint32_t i = 0; i < s->n_groups; i++)
		if (s->groups[i] != s->gid)
			return err_set(
				err, EOPNOTSUPP,
				"group '%u' is refused: a box of 'cordon "
				"run' has one group; give it with --user "
				"UID:GID, or use a box of the daemon",
				s->groups[i]);
	return 0;
}

static bool has_any_input(const struct cordon_spec *s)
{
	bool has = s->has_input;

	for (size_t i = 0; i < s->n_blocks; i++)
		has |= s->blocks[i].input != NULL;
	return has;
}

/* As docker says it: one would hide the other. */
static int check_targets(const struct cordon_spec *s, struct err *err)
{
	for (size_t i = 0; i < s->n_binds; i++) {
		const char *target = s->binds[i].target;
		bool is_twice = false;

		for (size_t k = 0; k < i; k++)
			is_twice |= strcmp(s->binds[k].target, target) == 0;
		for (size_t k = 0; k < s->n_tmpfs; k++)
			is_twice |= strcmp(s->tmpfs[k].target, target) == 0;
		if (is_twice)
			return err_set(err, EINVAL,
				       "volume: duplicate mount point "
				       "'%.300s'; give one of them",
				       target);
	}
	return 0;
}

int spec_check(const struct cordon_spec *s, struct err *err)
{
	if (!s->is_empty && s->command.n == 0 && s->n_blocks == 0 &&
	    !s->command_line && !s->image)
		return err_set(err, EINVAL,
			       "nothing to run: give a command or code");
	if ((s->command.n > 0) + (s->n_blocks > 0) + !!s->command_line > 1)
		return err_set(err, EINVAL,
			       "a command and code cannot both be run");
	if (s->has_programs && s->writable_root)
		return err_set(err, EINVAL,
			       "a writable root would hold programs that are "
			       "not on the list of commands");
	if (s->has_entrypoint && !s->image && !s->root)
		return err_set(err, EINVAL, "entrypoint goes with an image");
	if (s->user && !s->is_user_ours && !s->image && !s->root)
		return err_set(
			err, EINVAL,
			"--user '%.64s' is neither a number nor a name in "
			"the box's passwd (root, nobody)",
			s->user);
	if (check_groups(s, err) < 0 || check_targets(s, err) < 0)
		return -err->code;
	for (size_t i = 0; i < s->env.n; i++)
		if (!strchr(s->env.v[i], '=') && !s->image && !s->root &&
		    !s->may_unset_env)
			return err_set(err, EINVAL,
				       "--env: '%s' is not NAME=VALUE; the "
				       "host's own variables are not passed in",
				       s->env.v[i]);
	for (size_t i = 0; s->n_copies && i < s->n_binds; i++)
		if (strcmp(s->binds[i].target, "/workspace") == 0)
			return err_set(err, EINVAL,
				       "copy-out: /workspace is a volume; what "
				       "is written there is in '%.200s' "
				       "already",
				       s->binds[i].source);
	if (s->no_network && (s->allow_hosts.n || s->secrets.n))
		return err_set(err, EINVAL,
			       "network 'none' and hosts that may be reached "
			       "exclude each other");
	if (s->memory_low > s->memory)
		return err_set(err, EINVAL,
			       "memory-reservation is more than memory");
	if (s->tty && has_any_input(s))
		return err_set(err, EINVAL,
			       "a terminal and given input exclude each other");
	return 0;
}
