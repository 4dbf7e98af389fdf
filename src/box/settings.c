/* SPDX-License-Identifier: Apache-2.0 */
#include "box/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/util.h"
#include "box/images.h"
#include "box/settings-more.h"
#include "box/spec.h"
#include "box/wire.h"
#include "policy/policy.h"
#include "policy/values.h"

#define SETTER(name)                                                           \
	static int name(struct cordon_spec *s, const char *v, struct err *err)

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

static int copy(char **to, const char *text, struct err *err)
{
	char *dup = strdup(text);

	if (!dup)
		return no_memory(err);
	free(*to);
	*to = dup;
	return 0;
}

static int duration(const char *v, uint64_t min_us, uint64_t *to,
		    struct err *err)
{
	uint64_t us;

	if (num_parse_duration(v, &us) < 0)
		return err_set(err, EINVAL,
			       "'%s' is not a time; write 30s, 500ms or 2m", v);
	if (us < min_us)
		return err_set(err, EINVAL, "'%s' is too short", v);
	*to = us;
	return 0;
}

static int size(const char *v, uint64_t min, uint64_t *to, struct err *err)
{
	uint64_t n;

	if (num_parse_size(v, &n) < 0)
		return err_set(err, EINVAL,
			       "'%s' is not a size; write 64m, 1g or bytes", v);
	if (n < min)
		return err_set(err, EINVAL, "'%s' is less than %llu bytes", v,
			       (unsigned long long)min);
	*to = n;
	return 0;
}

static int count(const char *v, uint64_t min, uint64_t max, uint64_t *to,
		 struct err *err)
{
	uint64_t n;

	if (num_parse(v, max, &n) < 0 || n < min)
		return err_set(err, EINVAL,
			       "'%s' is not a number from %llu to %llu", v,
			       (unsigned long long)min,
			       (unsigned long long)max);
	*to = n;
	return 0;
}

static int boolean(const char *v, bool *to, struct err *err)
{
	if (!v || strcasecmp(v, "true") == 0 || strcmp(v, "1") == 0 ||
	    strcasecmp(v, "yes") == 0)
		*to = true;
	else if (strcasecmp(v, "false") == 0 || strcmp(v, "0") == 0 ||
		 strcasecmp(v, "no") == 0)
		*to = false;
	else
		return err_set(err, EINVAL, "'%s' is neither true nor false",
			       v);
	return 0;
}

static int later(struct err *err)
{
	return err_set(err, EOPNOTSUPP, "not in this build");
}

SETTER(set_image)
{
	if (strcmp(v, "host") != 0 && images_check_name(v, err) < 0)
		return -err->code;
	s->stated |= SPEC_STATED_IMAGE;
	if (strcmp(v, "host") != 0)
		return copy(&s->image, v, err);
	free(s->image);
	s->image = NULL;
	return 0;
}

/* Given again, it adds a word; empty, the image's is not used. */
SETTER(set_entrypoint)
{
	s->has_entrypoint = true;
	s->drops_cmd = true;
	if (!*v) {
		strv_done(&s->entrypoint);
		return 0;
	}
	return strv_add(&s->entrypoint, v) < 0 ? no_memory(err) : 0;
}

/*
 * A number without a unit is seconds, and then at least one: the words are
 * those that users of other executors know.
 */
SETTER(set_timeout)
{
	uint64_t us = 0;

	s->stated |= 1U << POLICY_TIMEOUT;
	if (num_parse_duration(v, &us) == 0 && us < 1000000 &&
	    strspn(v, "0123456789.") == strlen(v))
		return err_set(err, EINVAL,
			       "Timeout must be greater than or equal to 1.");
	return duration(v, 1000, &s->timeout_us, err);
}

SETTER(set_total)
{
	return duration(v, 1000, &s->total_us, err);
}

SETTER(set_cpu_time)
{
	s->stated |= 1U << POLICY_CPU_TIME;
	return duration(v, 1000, &s->cpu_time_us, err);
}

SETTER(set_grace)
{
	return duration(v, 0, &s->grace_us, err);
}

SETTER(set_memory)
{
	s->stated |= 1U << POLICY_MEMORY;
	return size(v, 1 << 20, &s->memory, err);
}

SETTER(set_memory_mb)
{
	uint64_t mb = 0;

	s->stated |= 1U << POLICY_MEMORY;
	if (count(v, 1, 1 << 24, &mb, err) < 0)
		return -err->code;
	s->memory = mb << 20;
	return 0;
}

SETTER(set_cpus)
{
	uint64_t milli;

	s->stated |= 1U << POLICY_CPUS;
	if (num_parse_milli(v, &milli) < 0 || milli < 10 || milli > 4096000)
		return err_set(err, EINVAL,
			       "'%s' is not a number of CPUs; write 0.5 or 2",
			       v);
	s->stated &= ~SPEC_STATED_QUOTA;
	s->cpu_quota_us = milli * s->cpu_period_us / 1000;
	return 0;
}

SETTER(set_cpu_percent)
{
	uint64_t milli;

	s->stated |= 1U << POLICY_CPUS;
	if (num_parse_milli(v, &milli) < 0 || milli < 1000)
		return err_set(err, EINVAL, "'%s' is not a percentage", v);
	s->stated &= ~SPEC_STATED_QUOTA;
	s->cpu_quota_us = milli * s->cpu_period_us / 100000;
	return 0;
}

SETTER(set_cpu_period)
{
	uint64_t period = 0;

	s->stated |= 1U << POLICY_CPUS;
	if (count(v, 1000, 1000000, &period, err) < 0)
		return -err->code;
	/* A quota that was given is in each period, as in Docker. */
	if (!(s->stated & SPEC_STATED_QUOTA))
		s->cpu_quota_us = s->cpu_quota_us * period / s->cpu_period_us;
	s->cpu_period_us = period;
	return 0;
}

SETTER(set_cpu_quota)
{
	s->stated |= 1U << POLICY_CPUS | SPEC_STATED_QUOTA;
	return count(v, 1000, 4096000000ULL, &s->cpu_quota_us, err);
}

SETTER(set_pids)
{
	s->stated |= 1U << POLICY_PIDS;
	return count(v, 2, 4194304, &s->pids, err);
}

SETTER(set_output)
{
	s->stated |= 1U << POLICY_OUTPUT;
	return size(v, 0, &s->output, err);
}

SETTER(set_hard_output)
{
	return size(v, 1, &s->hard_output, err);
}

SETTER(set_disk)
{
	s->stated |= 1U << POLICY_DISK;
	return size(v, 65536, &s->disk, err);
}

SETTER(set_files)
{
	s->stated |= 1U << POLICY_FILES;
	return count(v, 16, 1048576, &s->nofile, err);
}

SETTER(set_fsize)
{
	return size(v, 1, &s->fsize, err);
}

SETTER(set_network)
{
	(void)s;
	if (strcmp(v, "none") == 0)
		return 0;
	return err_set(err, EINVAL,
		       "network '%s': only 'none' is there; single hosts are "
		       "opened with --allow-host, which is not in this build",
		       v);
}

SETTER(set_network_disabled)
{
	bool disabled = false;

	(void)s;
	if (boolean(v, &disabled, err) < 0)
		return -err->code;
	return disabled ? 0 : later(err);
}

SETTER(set_network_enabled)
{
	bool enabled = false;

	(void)s;
	if (boolean(v, &enabled, err) < 0)
		return -err->code;
	return enabled ? later(err) : 0;
}

SETTER(set_allow_host)
{
	(void)s;
	(void)v;
	return later(err);
}

SETTER(set_secret)
{
	(void)s;
	(void)v;
	return later(err);
}

SETTER(set_policy)
{
	if (!*v)
		return err_set(err, EINVAL, "the name of a file is missing");
	return copy(&s->policy, v, err);
}

SETTER(set_command_line)
{
	if (!*v)
		return err_set(err, EINVAL, "the command line is empty");
	return copy(&s->command_line, v, err);
}

SETTER(set_ledger)
{
	if (strcmp(v, "on") != 0 && strcmp(v, "off") != 0)
		return err_set(err, EINVAL, "'%s' is neither on nor off", v);
	s->no_ledger = strcmp(v, "off") == 0;
	return 0;
}

SETTER(set_program)
{
	if (!*v)
		return err_set(err, EINVAL, "a program has a name");
	s->has_programs = true;
	return strv_add(&s->programs, v) < 0 ? no_memory(err) : 0;
}

SETTER(set_isolation)
{
	s->stated |= SPEC_STATED_ISOLATION;
	if (strcmp(v, "native") == 0)
		return 0;
	return err_set(err, EOPNOTSUPP,
		       "isolation '%s' is not in this build; 'native' is", v);
}

SETTER(set_read_only)
{
	bool ro = false;

	s->stated |= SPEC_STATED_ROOT;
	if (boolean(v, &ro, err) < 0)
		return -err->code;
	s->writable_root = !ro;
	return 0;
}

/* SRC:DST[:ro|rw] */
SETTER(set_volume)
{
	struct spec_bind *b = &s->binds[s->n_binds];
	char text[8192];
	char *target;
	char *mode;

	if (s->n_binds == SPEC_MAX_ITEMS)
		return err_set(err, E2BIG, "more than %d volumes",
			       SPEC_MAX_ITEMS);
	if ((size_t)snprintf(text, sizeof(text), "%s", v) >= sizeof(text))
		return err_set(err, EINVAL, "the path is too long");
	target = strchr(text, ':');
	if (!target || target == text)
		return err_set(err, EINVAL,
			       "'%s' is not SRC:DST[:ro|rw], such as "
			       "./data:/data:ro",
			       v);
	*target++ = '\0';
	mode = strchr(target, ':');
	if (mode)
		*mode++ = '\0';
	if (mode && strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0)
		return err_set(err, EINVAL, "mode '%s' is neither ro nor rw",
			       mode);
	if (s->is_served && text[0] != '/')
		return err_set(err, EINVAL, "'%s' is not an absolute path",
			       text);
	if (spec_check_path(target, "DST", err) < 0)
		return -err->code;
	b->mode = mode && strcmp(mode, "rw") == 0 ? BIND_RW : BIND_RO;
	if (copy(&b->source, text, err) < 0 ||
	    copy(&b->target, target, err) < 0)
		return -err->code;
	s->n_binds++;
	return 0;
}

static int add_tmpfs(struct cordon_spec *s, const char *target, uint64_t bytes,
		     struct err *err)
{
	struct spec_tmpfs *t = &s->tmpfs[s->n_tmpfs];

	if (spec_check_path(target, "the place", err) < 0)
		return -err->code;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, target) == 0) {
			s->tmpfs[i].size = bytes;
			return 0;
		}
	if (s->n_tmpfs == SPEC_MAX_ITEMS - 12)
		return err_set(err, E2BIG, "too many writable places");
	if (copy(&t->target, target, err) < 0)
		return -err->code;
	t->size = bytes;
	s->n_tmpfs++;
	return 0;
}

static bool is_octal(const char *v, uint32_t *ret)
{
	size_t len = strlen(v);

	if (len == 0 || len > 4 || strspn(v, "01234567") != len)
		return false;
	*ret = (uint32_t)strtoul(v, NULL, 8);
	return *ret != 0 && !(*ret & 06000);
}

/* One option of a place in memory; it never gives more than is there anyway. */
static int tmpfs_option(const char *o, struct spec_tmpfs *t, struct err *err)
{
	static const char *const granted[] = { "rw", "nosuid", "nodev", "exec",
					       "" };

	if (strncmp(o, "size=", 5) == 0)
		return size(o + 5, 4096, &t->size, err);
	if (strncmp(o, "mode=", 5) == 0 && is_octal(o + 5, &t->mode))
		return 0;
	if (strcmp(o, "ro") == 0)
		t->is_ro = true;
	else if (strcmp(o, "noexec") == 0)
		t->is_noexec = true;
	else {
		for (size_t i = 0; i < ARRAY_SIZE(granted); i++)
			if (strcmp(o, granted[i]) == 0)
				return 0;
		return err_set(err, EINVAL,
			       "'%s' is none of size=SIZE, mode=MODE, ro and "
			       "noexec",
			       o);
	}
	return 0;
}

/* DST[:size=SIZE[,...]] */
SETTER(set_tmpfs)
{
	struct spec_tmpfs t = { .size = 64 << 20 };
	char text[4096];
	char *options;
	char *save;

	if ((size_t)snprintf(text, sizeof(text), "%s", v) >= sizeof(text))
		return err_set(err, EINVAL, "the path is too long");
	options = strchr(text, ':');
	if (options)
		*options++ = '\0';
	for (char *o = options ? strtok_r(options, ",", &save) : NULL; o;
	     o = strtok_r(NULL, ",", &save))
		if (tmpfs_option(o, &t, err) < 0)
			return -err->code;
	if (add_tmpfs(s, text, t.size, err) < 0)
		return -err->code;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, text) == 0) {
			s->tmpfs[i].mode = t.mode;
			s->tmpfs[i].is_ro = t.is_ro;
			s->tmpfs[i].is_noexec = t.is_noexec;
		}
	return 0;
}

SETTER(set_shm_size)
{
	uint64_t bytes = 0;

	if (size(v, 4096, &bytes, err) < 0)
		return -err->code;
	return add_tmpfs(s, "/dev/shm", bytes, err);
}

SETTER(set_writable)
{
	return add_tmpfs(s, v, s->disk, err);
}

/*
 * The only writable places: those that are there anyway are not, unless this
 * names them.
 */
SETTER(set_writable_only)
{
	const struct {
		const char *path;
		bool *no;
	} usual[] = { { "/tmp", &s->no_tmp },
		      { "/workspace", &s->no_workspace },
		      { "/dev/shm", &s->no_shm } };

	if (!s->has_writable)
		s->no_tmp = s->no_workspace = s->no_shm = true;
	s->has_writable = true;
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (strcmp(usual[i].path, v) == 0) {
			*usual[i].no = false;
			return 0;
		}
	return set_writable(s, v, err);
}

SETTER(set_allowed)
{
	if (!value_is_program(v))
		return err_set(err, EINVAL,
			       "'%s' is not the name of a program, without a "
			       "directory",
			       v);
	s->has_allowed = true;
	return strv_add(&s->allowed, v) < 0 ? no_memory(err) : 0;
}

SETTER(set_workspace)
{
	if (s->is_served && v[0] != '/')
		return err_set(err, EINVAL, "'%s' is not an absolute path", v);
	return copy(&s->workspace, v, err);
}

/* GLOB=DIR */
SETTER(set_copy_out)
{
	struct spec_copy *c = &s->copies[s->n_copies];
	const char *eq = strrchr(v, '=');
	char *glob;

	if (!eq || eq == v || !eq[1])
		return err_set(err, EINVAL,
			       "'%s' is not GLOB=DIR, such as '*.png=./out'",
			       v);
	if (s->n_copies == SPEC_MAX_ITEMS)
		return err_set(err, E2BIG, "more than %d", SPEC_MAX_ITEMS);
	glob = strndup(v, (size_t)(eq - v));
	if (!glob)
		return no_memory(err);
	free(c->glob);
	c->glob = glob;
	if (copy(&c->dir, eq + 1, err) < 0)
		return -err->code;
	s->n_copies++;
	return 0;
}

SETTER(set_workdir)
{
	if (strcmp(v, "/") != 0 && spec_check_path(v, "the directory", err) < 0)
		return -err->code;
	if (strncmp(v, "/proc", 5) == 0 && (v[5] == '/' || !v[5]))
		return err_set(err, EINVAL,
			       "the working directory cannot be in /proc");
	return copy(&s->workdir, v, err);
}

static int id(const char *text, uint32_t *to)
{
	uint64_t n;

	if (num_parse(text, UINT32_MAX - 1, &n) < 0)
		return -EINVAL;
	*to = (uint32_t)n;
	return 0;
}

/* A name that an image may have. */
static bool is_user_name(const char *v)
{
	size_t len = strlen(v);

	return len > 0 && len < 64 &&
	       strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789_.-$") == len &&
	       v[0] != '-' && strspn(v, "0123456789") != len;
}

/* UID[:GID], or names: of the root's passwd, which is ours, or an image's. */
SETTER(set_user)
{
	static const struct {
		const char *name;
		uint32_t id;
	} names[] = { { "root", 0 },
		      { "nobody", 65534 },
		      { "nogroup", 65534 } };
	char text[64];
	const char *part[2] = { text, NULL };
	uint32_t ids[2] = { 65534, 65534 };
	bool is_ours = true;
	char *colon;

	if ((size_t)snprintf(text, sizeof(text), "%s", v) >= sizeof(text))
		return err_set(err, EINVAL, "the name is too long");
	colon = strchr(text, ':');
	if (colon) {
		*colon = '\0';
		part[1] = colon + 1;
	}
	for (int i = 0; i < 2 && part[i]; i++) {
		int r = id(part[i], &ids[i]);

		for (size_t k = 0; r < 0 && k < ARRAY_SIZE(names); k++)
			if (strcmp(part[i], names[k].name) == 0) {
				ids[i] = names[k].id;
				r = 0;
			}
		if (r < 0 && !is_user_name(part[i]))
			return err_set(err, EINVAL,
				       "'%s' is neither a number nor a name in "
				       "the box's passwd (root, nobody)",
				       part[i]);
		is_ours &= r == 0;
	}
	s->stated |= SPEC_STATED_USER;
	if (copy(&s->user, v, err) < 0)
		return -err->code;
	s->is_user_ours = is_ours;
	s->uid = ids[0];
	s->gid = part[1] ? ids[1] : ids[0];
	return 0;
}

SETTER(set_env)
{
	size_t len = strcspn(v, "=");

	if (len == 0)
		return err_set(err, EINVAL,
			       "'%s' is not NAME=VALUE; the host's own "
			       "variables are not passed in",
			       v);
	/* A name alone takes away what an image sets; see spec_check(). */
	for (size_t i = 0; i < s->env.n; i++)
		if (strcspn(s->env.v[i], "=") == len &&
		    strncmp(s->env.v[i], v, len) == 0)
			return copy(&s->env.v[i], v, err);
	if (s->env.n >= 4096)
		return err_set(err, E2BIG, "more than 4096 variables");
	return strv_add(&s->env, v) < 0 ? no_memory(err) : 0;
}

SETTER(set_env_from_host)
{
	if (!value_is_env_name(v))
		return err_set(err, EINVAL, "'%s' is not a variable's name", v);
	if (s->env_from_host.n >= 4096)
		return err_set(err, E2BIG, "more than 4096 variables");
	return strv_add(&s->env_from_host, v) < 0 ? no_memory(err) : 0;
}

/* NAME=VALUE lines; '#' starts a comment line. */
SETTER(set_env_file)
{
	FILE *f = s->is_served ? NULL : fopen(v, "re");
	char *line = NULL;
	size_t cap = 0;
	int number = 0;
	int r = 0;

	if (s->is_served)
		return err_set(err, EINVAL,
			       "the daemon reads no file for a client; send "
			       "the variables");
	if (!f)
		return err_errno(err, errno, "open '%s'", v);
	while (r == 0 && getline(&line, &cap, f) >= 0) {
		number++;
		line[strcspn(line, "\r\n")] = '\0';
		if (!line[0] || line[0] == '#')
			continue;
		r = strchr(line, '=') ? set_env(s, line, err)
				      : err_set(err, EINVAL,
						"'%s' is not NAME=VALUE", line);
	}
	free(line);
	(void)fclose(f);
	return r < 0 ? err_wrap(err, "%s:%d", v, number) : 0;
}

SETTER(set_interactive)
{
	return boolean(v, &s->interactive, err);
}

SETTER(set_tty)
{
	return boolean(v, &s->tty, err);
}

SETTER(set_continue)
{
	return boolean(v, &s->continue_on_error, err);
}

SETTER(set_name)
{
	size_t len = strlen(v);

	if (len == 0 || len > 63 ||
	    strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		      "0123456789_.-") != len ||
	    v[0] == '-' || v[0] == '.')
		return err_set(err, EINVAL,
			       "'%s' is not a name: letters, digits, '_', '.' "
			       "and '-', at most 63",
			       v);
	return copy(&s->name, v, err);
}

SETTER(set_label)
{
	if (!strchr(v, '=') || v[0] == '=')
		return err_set(err, EINVAL, "'%s' is not KEY=VALUE", v);
	return strv_add(&s->labels, v) < 0 ? no_memory(err) : 0;
}

SETTER(set_arg)
{
	return strv_add(&s->args, v) < 0 ? no_memory(err) : 0;
}

SETTER(set_best_effort)
{
	static const struct {
		const char *name;
		uint32_t bits;
	} layers[] = {
		{ "cgroup",
		  1U << WIRE_L_MEMORY | 1U << WIRE_L_CPU | 1U << WIRE_L_PIDS },
		{ "memory", 1U << WIRE_L_MEMORY },
		{ "cpu", 1U << WIRE_L_CPU },
		{ "pids", 1U << WIRE_L_PIDS },
		{ "landlock", 1U << WIRE_L_LANDLOCK },
	};

	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		if (strcmp(v, layers[i].name) == 0) {
			s->best_effort |= layers[i].bits;
			return 0;
		}
	return err_set(err, EINVAL,
		       "'%s' is not a layer that can be missing: cgroup, "
		       "memory, cpu, pids, landlock",
		       v);
}

/* Words of others that ask for what is always so, or for what never is. */
SETTER(set_security_opt)
{
	(void)s;
	if (strcmp(v, "no-new-privileges") == 0 ||
	    strcmp(v, "no-new-privileges:true") == 0 ||
	    strcmp(v, "no-new-privileges=true") == 0)
		return 0;
	return err_set(err, EINVAL,
		       "security option '%s' is refused; no-new-privileges is "
		       "always in force",
		       v);
}

SETTER(set_remove)
{
	bool remove = false;

	(void)s;
	if (boolean(v, &remove, err) < 0)
		return -err->code;
	return remove ? 0 : later(err);
}

SETTER(set_refused)
{
	(void)s;
	(void)v;
	return err_set(err, EPERM,
		       "refused: a box has no capabilities, devices or "
		       "namespaces of the host");
}

static const struct setting table[] = {
	{ "image", 0, "NAME", "root file system; 'host' is this machine's /usr",
	  "", set_image },
	{ "entrypoint", 0, "PROGRAM",
	  "instead of the image's; '' for none, again for its arguments", "",
	  set_entrypoint },
	{ "timeout", 0, "TIME", "wall-clock limit (30s)",
	  "max-execution-seconds", set_timeout },
	{ "total-timeout", 0, "TIME", "for all blocks of code together (10m)",
	  "", set_total },
	{ "cpu-time", 0, "TIME", "CPU time limit (none)", "", set_cpu_time },
	{ "kill-grace", 0, "TIME", "SIGTERM this long before the kill (0)", "",
	  set_grace },
	{ "memory", 'm', "SIZE", "memory, without swap (256m)", "mem-limit",
	  set_memory },
	{ "cpus", 0, "N", "CPU quota (0.5)", "", set_cpus },
	{ "cpu-period", 0, "US", "period of the CPU quota (100000)", "",
	  set_cpu_period },
	{ "cpu-quota", 0, "US", "CPU time in each period (50000)", "",
	  set_cpu_quota },
	{ "cpu-shares", 0, "N",
	  "weight against other boxes, 2 to 262144 (1024)", "",
	  set_cpu_shares },
	{ "cpuset-cpus", 0, "LIST", "only these CPUs, such as 0-2,4", "",
	  set_cpuset },
	{ "memory-reservation", 0, "SIZE", "kept for it when memory is short",
	  "", set_memory_low },
	{ "oom-score-adj", 0, "N", "who goes first without memory (300)", "",
	  set_oom_score },
	{ "ulimit", 0, "NAME=SOFT[:HARD]",
	  "a limit of each process; it can only be lower than here", "ulimits",
	  set_ulimit },
	{ "pids-limit", 0, "N", "processes and threads (128)", "pids",
	  set_pids },
	{ "output-limit", 0, "SIZE",
	  "kept of each stream, first and last half (1m)",
	  "max-output max-output-bytes output", set_output },
	{ "hard-output", 0, "SIZE", "kill when a stream has written more", "",
	  set_hard_output },
	{ "disk", 0, "SIZE", "size of the workspace (64m)", "disk-limit",
	  set_disk },
	{ "files", 0, "N", "open files of each process (1024)", "", set_files },
	{ "file-size", 0, "SIZE", "largest file (1g)", "", set_fsize },
	{ "network", 0, "none", "no network; the only value", "net",
	  set_network },
	{ "allow-host", 0, "HOST[:PORT]", "not in this build", "",
	  set_allow_host },
	{ "secret", 0, "NAME@HOST", "not in this build", "", set_secret },
	{ "read-only", 0, NULL,
	  "root file system (true); =false gives a "
	  "throw-away one",
	  "read-only-root", set_read_only },
	{ "volume", 'v', "SRC:DST[:ro|rw]", "bind mount; ro unless said",
	  "extra-volume volumes extra-volumes", set_volume },
	{ "tmpfs", 0, "DST[:OPTIONS]",
	  "a place in memory: size=64m, mode=0755, ro, noexec", "", set_tmpfs },
	{ "shm-size", 0, "SIZE", "size of /dev/shm (64m)", "", set_shm_size },
	{ "workspace", 0, "DIR",
	  "copied to /workspace; nothing is written "
	  "back",
	  "", set_workspace },
	{ "copy-out", 0, "GLOB=DIR", "files of /workspace to copy out", "",
	  set_copy_out },
	{ "workdir", 'w', "DIR", "working directory (/workspace)",
	  "container-work-dir", set_workdir },
	{ "user", 'u', "UID[:GID]|NAME",
	  "user in the box (65534); also a name of the image", "", set_user },
	{ "writable", 0, "PATH", "a further writable place, thrown away",
	  "writable-path", set_writable },
	{ "env", 'e', "NAME=VALUE", "environment variable", "", set_env },
	{ "env-file", 0, "FILE", "environment variables, one a line", "",
	  set_env_file },
	{ "env-from-host", 0, "NAME",
	  "pass a variable in that the policy lets through", "",
	  set_env_from_host },
	{ "interactive", 'i', NULL, "keep standard input open", "",
	  set_interactive },
	{ "tty", 't', NULL, "give it a terminal", "", set_tty },
	{ "name", 0, "NAME", "name, also the host name in the box",
	  "container-name", set_name },
	{ "hostname", 0, "NAME", "host name in the box (its name)", "",
	  set_hostname },
	{ "domainname", 0, "NAME", "domain name in the box", "",
	  set_domainname },
	{ "add-host", 0, "NAME:ADDRESS", "a line in /etc/hosts", "extra-hosts",
	  set_add_host },
	{ "label", 0, "KEY=VALUE", "kept with the result", "", set_label },
	{ "isolation", 0, "LEVEL", "'native' is the one in this build", "",
	  set_isolation },
	{ "policy", 0, "FILE",
	  "what decides, a file or a preset; cordon-policy(5)", "",
	  set_policy },
	{ "command", 0, "STRING",
	  "a command line, without a shell: words, quotes, | && || ;", "",
	  set_command_line },
	{ "ledger", 0, "on|off", "keep a record of the run (on)", "",
	  set_ledger },
	{ "program", 0, "NAME", "only such programs exist in the box", "",
	  set_program },
	{ "best-effort", 0, "LAYER",
	  "accept that cgroup, memory, cpu, pids or "
	  "landlock is missing here",
	  "", set_best_effort },
	{ "continue-on-error", 0, NULL, "run further blocks after a failure",
	  "", set_continue },
	/* Without help: names of others, for the library. */
	{ "arg", 0, "ARG", NULL, "", set_arg },
	{ "max-memory-mb", 0, "N", NULL, "", set_memory_mb },
	{ "max-cpu-percent", 0, "N", NULL, "", set_cpu_percent },
	{ "writable-paths", 0, "PATH", NULL, "", set_writable_only },
	{ "allowed-commands", 0, "PROGRAM", NULL, "", set_allowed },
	{ "network-disabled", 0, "BOOL", NULL, "", set_network_disabled },
	{ "network-enabled", 0, "BOOL", NULL, "", set_network_enabled },
	{ "security-opt", 0, "OPT", NULL, "", set_security_opt },
	{ "group-add", 0, "GROUP", NULL, "", set_group_add },
	{ "memory-swap", 0, "SIZE", NULL, "memswap-limit", set_memory_swap },
	{ "remove", 0, "BOOL", NULL, "auto-remove rm", set_remove },
	{ "cap-add", 0, "CAP", NULL,
	  "privileged device devices pid ipc uts userns cgroupns",
	  set_refused },
};

const struct setting *setting_at(size_t i)
{
	return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

/* Compares up to `len` characters of b, with '_' the same as '-'. */
static bool same_name(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = a[i] == '_' ? '-' : a[i];

		if (c != b[i])
			return false;
	}
	return a[len] == '\0';
}

const struct setting *setting_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (same_name(name, table[i].name, strlen(table[i].name)))
			return &table[i];
		for (const char *p = table[i].aliases; *p;) {
			size_t len = strcspn(p, " ");

			if (same_name(name, p, len))
				return &table[i];
			p += len + (p[len] == ' ');
		}
	}
	return NULL;
}

const struct setting *setting_find_letter(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (letter && table[i].letter == letter)
			return &table[i];
	return NULL;
}
