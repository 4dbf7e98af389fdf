/* SPDX-License-Identifier: Apache-2.0 */
#include "box/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/io.h"
#include "base/sha256.h"
#include "base/util.h"
#include "box/binds.h"
#include "box/lang.h"
#include "box/pack.h"
#include "box/images.h"
#include "box/root-host.h"
#include "box/root-image.h"
#include "box/root-trust.h"
#include "box/workdir.h"
#include "box/workspace.h"

#define WORKSPACE      ROOT_WORKDIR
#define INODES_PER_MIB 512
#define SCRATCH        (64ULL << 20) /* each of /tmp and /dev/shm */

static int refuse(struct prepared *ret, enum refusal why, struct err *err)
{
	ret->refused = why;
	return -err->code;
}

/* "# filename: x" in the first line, in the comments of most languages. */
static char *directive(const struct spec_block *b)
{
	static const char *const comments[] = { "#", "//", "--", ";" };
	const char *end = memchr(b->code, '\n', b->len);
	size_t len = end ? (size_t)(end - b->code) : b->len;
	const char *p = b->code;
	size_t i;

	while (len > 0 && (p[len - 1] == '\r' || p[len - 1] == ' '))
		len--;
	for (i = 0; i < ARRAY_SIZE(comments); i++) {
		size_t n = strlen(comments[i]);

		if (len >= n && memcmp(p, comments[i], n) == 0) {
			p += n;
			len -= n;
			break;
		}
	}
	while (len > 0 && (*p == ' ' || *p == '\t')) {
		p++;
		len--;
	}
	if (i == ARRAY_SIZE(comments) || len < 9 ||
	    strncasecmp(p, "filename:", 9) != 0)
		return NULL;
	p += 9;
	len -= 9;
	while (len > 0 && (*p == ' ' || *p == '\t')) {
		p++;
		len--;
	}
	return strndup(p, len);
}

/* code_<first 16 hex digits of SHA-256 of language, NUL, code><suffix> */
static char *generated(const struct spec_block *b)
{
	struct sha256 st;
	unsigned char hash[SHA256_SIZE];
	char name[64];

	sha256_init(&st);
	sha256_add(&st, b->lang->names[0], strlen(b->lang->names[0]) + 1);
	sha256_add(&st, b->code, b->len);
	sha256_end(&st, hash);
	(void)strcpy(name, "code_");
	for (int i = 0; i < 8; i++)
		(void)snprintf(name + 5 + 2 * i, 3, "%02x", hash[i]);
	(void)snprintf(name + 21, sizeof(name) - 21, "%s", b->lang->suffix);
	return strdup(name);
}

static int block_name(const struct spec_block *b, char **ret, struct err *err)
{
	_cleanup_free_ char *said = b->filename ? strdup(b->filename)
						: directive(b);

	if (said)
		return spec_plain_filename(said, ret, err);
	*ret = b->filename ? NULL : generated(b);
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* Whether the list has a variable of the same name. */
static const char *names_env(const struct strv *list, const char *entry)
{
	size_t len = strcspn(entry, "=");

	for (size_t i = 0; i < list->n; i++)
		if (strcspn(list->v[i], "=") == len &&
		    strncmp(list->v[i], entry, len) == 0)
			return list->v[i];
	return NULL;
}

/*
 * Where programs are: in the box, where its PATH says; the request's or else
 * the image's. Where only listed programs exist, our own way leads to them.
 */
static const char *search_path(const struct cordon_spec *s)
{
	const char *path = NULL;

	if (s->root || !s->has_programs)
		path = names_env(&s->env, "PATH");
	if (s->root && !path)
		path = names_env(&s->root->env, "PATH");
	return path && path[4] ? path + 5 : ROOT_PATH;
}

static bool has_program(const struct cordon_spec *s, const char *program)
{
	const char *path = search_path(s);

	if (s->root)
		return box_image_has(s->root, path, program);
	/* Another way may lead to what is mounted: the box will see. */
	return root_host_has(program) || strcmp(path, ROOT_PATH) != 0;
}

/* The program that the root must have for this language. */
static const char *needed(const struct cordon_spec *s,
			  const struct spec_block *b)
{
	const struct lang *l = b->lang;

	if (b->program)
		return b->program;
	if (l->compile[0])
		return strcmp(l->compile[0], "env") == 0 ? l->compile[2]
							 : l->compile[0];
	if (lang_exact_program(b->lang_name))
		return b->lang_name;
	for (size_t i = 1; i < ARRAY_SIZE(l->programs); i++)
		if (l->programs[i] && !has_program(s, l->programs[i - 1]) &&
		    has_program(s, l->programs[i]))
			return l->programs[i];
	return l->programs[0];
}

static int check_blocks(const struct cordon_spec *s, struct prepared *ret,
			struct err *err)
{
	for (size_t i = 0; i < s->n_blocks; i++) {
		const struct spec_block *b = &s->blocks[i];
		_cleanup_free_ char *name = NULL;

		ret->block = i + 1;
		if (!b->lang) {
			err_set(err, ENOENT, "unknown language %s",
				b->lang_name);
			return refuse(ret, REFUSED_NOT_FOUND, err);
		}
		if (block_name(b, &name, err) < 0) {
			if (err->code == ENOMEM)
				return -err->code;
			ret->exit_code = 1;
			return refuse(ret, REFUSED_DENIED, err);
		}
		if (!b->program && !has_program(s, needed(s, b))) {
			err_set(err, ENOENT,
				s->root ? "%s needs '%s', which the image does "
					  "not have"
					: "%s needs '%s', which this machine's "
					  "/usr does not have; install it",
				b->lang_name, needed(s, b));
			return refuse(ret, REFUSED_NOT_FOUND, err);
		}
	}
	ret->block = 0;
	return 0;
}

const char *prepare_code_dir(const struct cordon_spec *s)
{
	for (size_t i = 0; i < s->n_binds; i++)
		if (strcmp(s->binds[i].target, WORKSPACE) == 0 &&
		    s->binds[i].mode == BIND_RO)
			return "/tmp";
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, WORKSPACE) == 0 &&
		    s->tmpfs[i].is_ro)
			return "/tmp";
	return WORKSPACE;
}

static int name_blocks(const struct cordon_spec *s, struct prepared *ret,
		       struct err *err)
{
	for (size_t i = 0; i < s->n_blocks; i++) {
		_cleanup_free_ char *name = NULL;

		if (block_name(&s->blocks[i], &name, err) < 0)
			return -err->code;
		if (asprintf(&ret->code_files[i], "%s/%s", prepare_code_dir(s),
			     name) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

#define MAX_ARGS 1024

/* Interpreter, fixed options, the file, further arguments. */
static void block_steps(struct pack *p, struct wire_work *work,
			const struct cordon_spec *s, const struct spec_block *b,
			const char *path)
{
	const struct lang *l = b->lang;
	const char *argv[MAX_ARGS];
	size_t n = 0;

	if (l->compile[0]) {
		for (; n < ARRAY_SIZE(l->compile) && l->compile[n]; n++)
			argv[n] = strcmp(l->compile[n], "@") == 0
					  ? path
					  : l->compile[n];
		argv[n] = NULL;
		pack_step(p, work, argv, 0);
		n = 0;
		argv[n++] = l->programs[0];
	} else {
		argv[n++] = needed(s, b);
		for (size_t i = 0; i < ARRAY_SIZE(l->args) && l->args[i]; i++)
			argv[n++] = l->args[i];
		argv[n++] = path;
	}
	for (size_t i = 0; i < b->args.n && n < MAX_ARGS - 1; i++)
		argv[n++] = b->args.v[i];
	for (size_t i = 0; i < s->args.n && n < MAX_ARGS - 1; i++)
		argv[n++] = s->args.v[i];
	argv[n] = NULL;
	pack_step(p, work, argv, WIRE_STEP_END_BLOCK);
	if (b->input)
		pack_step_input(p, work, b->input, b->input_len);
}

/* Those that none of the others names. */
static int add_others(struct strv *ret, const char *const *v, size_t n,
		      const struct strv *const others[3])
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		bool is_named = false;

		for (size_t k = 0; k < 3; k++)
			is_named |= others[k] && names_env(others[k], v[i]);
		if (!is_named)
			r = strv_add(ret, v[i]);
	}
	return r;
}

int prepare_env(const struct cordon_spec *s, struct strv *ret)
{
	static const char *const defaults[] = {
		"PATH=" ROOT_PATH,
		"HOME=" WORKSPACE,
		"LANG=C.UTF-8",
		"TMPDIR=/tmp",
		"PIP_QUIET=3",
		"PIP_NO_INPUT=1",
		"PIP_DISABLE_PIP_VERSION_CHECK=1",
		"PYTHONUNBUFFERED=1",
		"PYTHONDONTWRITEBYTECODE=1",
	};
	const struct strv none = { 0 };
	const struct strv *image = s->root ? &s->root->env : &none;
	/* Placeholders stand for secrets, whatever else has that name. */
	const struct strv *own = s->egress ? s->egress->env : &none;
	struct strv trust = { 0 };
	int r = root_has_trust(s) ? root_trust_env(s, &trust) : 0;

	if (r == 0)
		r = add_others(ret, defaults, ARRAY_SIZE(defaults),
			       (const struct strv *const[]){ &s->env, image,
							     NULL });
	for (size_t i = 0; r == 0 && i < own->n; i++)
		r = strv_add(ret, own->v[i]);
	if (r == 0)
		r = add_others(ret, (const char *const *)trust.v, trust.n,
			       (const struct strv *const[]){ &s->env, NULL,
							     NULL });
	if (r == 0 && s->tty && s->term)
		r = strv_add(ret, s->term);
	if (r == 0)
		r = add_others(ret, (const char *const *)image->v, image->n,
			       (const struct strv *const[]){ &s->env, own,
							     &trust });
	strv_done(&trust);
	/* A name alone only takes away. */
	for (size_t k = 0; r == 0 && k < s->env.n; k++)
		if (strchr(s->env.v[k], '=') && !names_env(own, s->env.v[k]))
			r = strv_add(ret, s->env.v[k]);
	return r;
}

static struct wire_mount *pack_disk(struct pack *p, struct wire_box *box,
				    const char *target, uint64_t size,
				    int flags)
{
	struct wire_mount *m = pack_mount(p, box, WIRE_TMPFS, flags, NULL,
					  target);

	m->size = size;
	m->inodes = MAX(size >> 20, 4) * INODES_PER_MIB;
	return m;
}

/* In a box that may have further users it is everybody's, as usual. */
static void pack_shared_disk(struct pack *p, struct wire_box *box,
			     const struct cordon_spec *s, const char *target,
			     int flags)
{
	struct wire_mount *m = pack_disk(p, box, target, SCRATCH, flags);

	m->mode = s->stays ? 01777 : 0;
}

/* Whether the caller has put something of its own at that place. */
static bool is_taken(const struct cordon_spec *s, const char *target)
{
	for (size_t i = 0; i < s->n_binds; i++)
		if (strcmp(s->binds[i].target, target) == 0)
			return true;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, target) == 0)
			return true;
	return false;
}

uint64_t prepare_scratch(const struct cordon_spec *s, const char *target)
{
	if (is_taken(s, target))
		return 0;
	return strcmp(target, WORKSPACE) == 0 ? s->disk : SCRATCH;
}

static void pack_disks(struct pack *p, struct wire_box *box,
		       const struct cordon_spec *s)
{
	int flags = s->has_programs ? WIRE_MNT_NOEXEC : 0;

	if (!is_taken(s, "/tmp"))
		pack_shared_disk(p, box, s, "/tmp",
				 flags | (s->no_tmp ? WIRE_MNT_RO : 0));
	if (!is_taken(s, "/dev/shm"))
		pack_shared_disk(p, box, s, "/dev/shm",
				 flags | (s->no_shm ? WIRE_MNT_RO : 0));
	if (!is_taken(s, WORKSPACE))
		(void)pack_disk(p, box, WORKSPACE, s->disk,
				WIRE_MNT_WORK | flags |
					(s->no_workspace ? WIRE_MNT_RO : 0));
}

static void box_numbers(struct wire_box *box, const struct cordon_spec *s)
{
	struct wire_limits *l = &box->limits;

	l->memory = s->memory;
	l->cpu_quota_us = s->cpu_quota_us;
	l->cpu_period_us = s->cpu_period_us;
	l->pids = s->pids;
	l->nofile = s->nofile;
	l->fsize = s->fsize;
	l->disk = s->disk;
	l->memory_low = s->memory_low;
	l->cpu_shares = s->cpu_shares;
	memcpy(l->cpus, s->cpus, sizeof(l->cpus));
	box->oom_score_adj = s->oom_score_adj;
	box->rlimits_set = s->rlimits_set;
	memcpy(box->rlimits, s->rlimits, sizeof(box->rlimits));
	box->uid = s->uid;
	box->gid = s->gid;
	box->best_effort = s->best_effort;
	box->require = s->require;
	box->tty_rows = s->tty_rows;
	box->tty_cols = s->tty_cols;
	if (s->tty)
		box->blob.flags |= WIRE_TTY;
	if (s->writable_root)
		box->blob.flags |= WIRE_ROOT_RW;
	if (s->witness)
		box->blob.flags |= WIRE_WITNESS;
	if (s->egress) {
		box->blob.flags |= WIRE_EGRESS;
		box->egress = s->egress->net;
	}
	if (s->stays && s->may_be_root)
		box->blob.flags |= WIRE_ROOT_USER;
}

/* Who runs it: the box's user, unless a program is to be another's. */
static void work_user(struct wire_work *work, const struct cordon_spec *s)
{
	bool is_other = s->as_user && !s->is_root_replaced;

	work->uid = is_other ? s->uid : WIRE_OWN_ID;
	work->gid = is_other ? s->gid : WIRE_OWN_ID;
	work->n_groups = s->n_groups;
	memcpy(work->groups, s->groups, sizeof(work->groups));
	if (s->group_add.n > 0)
		work->blob.flags |= WIRE_GROUPS_ASKED;
}

/* A program that takes cores would run as root of the host: see P34. */
static void look_at_cores(struct wire_box *box, struct prepared *ret)
{
	char first[8];

	if (io_read_file(AT_FDCWD, "/proc/sys/kernel/core_pattern", first,
			 sizeof(first)) > 0 &&
	    first[0] == '|') {
		box->blob.flags |= WIRE_CORE_PIPE;
		(void)strv_add(&ret->warnings,
			       "core_pattern of this machine is a program; "
			       "the box's core limit is set to 1 to keep it "
			       "from being started");
	}
}

/* One program of a command line. */
static void pack_joined(struct pack *p, struct wire_work *work,
			const struct spec_line *l, bool is_last)
{
	uint32_t at = work->n_steps;

	pack_step(p, work, (const char *const *)l->argv.v,
		  is_last ? WIRE_STEP_END_BLOCK : 0);
	if (at < work->n_steps)
		work->steps[at].join = l->join;
}

static int pack_steps(struct pack *p, struct wire_work *work,
		      const struct cordon_spec *s, struct prepared *ret,
		      struct err *err)
{
	struct strv env = { 0 };

	if (prepare_env(s, &env) < 0) {
		strv_done(&env);
		return err_set(err, ENOMEM, "out of memory");
	}
	work->env = pack_vector(p, &env);
	work->path = pack_string(p, search_path(s));
	strv_done(&env);
	work->workdir = pack_string(p, s->workdir ? s->workdir : WORKSPACE);
	if (s->command.n > 0)
		pack_step(p, work, (const char *const *)s->command.v,
			  WIRE_STEP_END_BLOCK);
	for (size_t i = 0; i < s->n_line; i++)
		pack_joined(p, work, &s->line[i], i + 1 == s->n_line);
	for (size_t i = 0; i < s->n_blocks; i++)
		block_steps(p, work, s, &s->blocks[i], ret->code_files[i]);
	return 0;
}

static void pack_block(struct pack *p, const struct cordon_spec *s,
		       const struct spec_block *b, const char *path)
{
	const struct wire_record rec = { .kind = WIRE_FILE,
					 .mode = 0600,
					 .data_len = b->len };
	const char *q = strchr(path + strlen(prepare_code_dir(s)) + 1, '/');

	/* Missing directories above it. */
	for (; q; q = strchr(q + 1, '/')) {
		const struct wire_record d = { .kind = WIRE_DIR, .mode = 0755 };
		_cleanup_free_ char *dir = strndup(path, (size_t)(q - path));

		if (dir)
			pack_record(p, &d, dir, NULL);
	}
	pack_record(p, &rec, path, b->code);
}

/*
 * The first block's file goes with what else is laid down; each of the others
 * with its first step, or a block could write the next one's.
 */
static void pack_code(struct pack *p, struct wire_work *work,
		      const struct cordon_spec *s, const struct prepared *ret)
{
	uint32_t step = 0;

	if (s->n_blocks > 0)
		pack_block(p, s, &s->blocks[0], ret->code_files[0]);
	work->records = p->records;
	for (size_t i = 1; i < s->n_blocks; i++) {
		while (step < work->n_steps &&
		       !(work->steps[step].flags & WIRE_STEP_END_BLOCK))
			step++;
		if (++step >= work->n_steps)
			return; /* too many steps, which the pack knows */
		pack_records_begin(p);
		pack_block(p, s, &s->blocks[i], ret->code_files[i]);
		work->steps[step].files = p->records;
	}
}

/* What whoever asked will be told, and did not ask for. */
static void take_notes(const struct cordon_spec *s, struct prepared *ret)
{
	if (s->is_root_replaced)
		(void)strv_add(
			&ret->warnings,
			"user 0 is replaced by the policy's user "
			"(sandbox.user, or 65534): docker.allow_root_inside "
			"is false");
	for (size_t i = 0; s->notes && i < s->notes->n; i++)
		(void)strv_add(&ret->warnings, s->notes->v[i]);
}

/* The root, and of it only the programs on the list, if there is one. */
static int pack_root(struct pack *p, struct wire_box *box,
		     const struct cordon_spec *s, struct programs *only,
		     struct err *err)
{
	const struct programs *list = s->has_programs ? only : NULL;

	if (list) {
		box->blob.flags |= WIRE_COMMANDS;
		if (programs_find(&s->programs,
				  s->root ? search_path(s) : ROOT_PATH, s->root,
				  only, err) < 0)
			return -err->code;
	}
	if (s->root)
		return root_image_mounts(p, box, s, list, err);
	root_host_mounts(p, box, s, list);
	return 0;
}

static int pack_box(struct pack *p, const struct cordon_spec *s,
		    struct programs *only, struct prepared *ret,
		    struct err *err)
{
	struct wire_box box = { 0 };

	if (pack_init(p, sizeof(box), err) < 0)
		return -err->code;
	box_numbers(&box, s);
	look_at_cores(&box, ret);
	take_notes(s, ret);
	box.hostname = pack_string(p, root_hostname(s));
	box.domainname = pack_string(p, s->domainname ? s->domainname : "");
	if (pack_root(p, &box, s, only, err) < 0)
		return refuse(ret, REFUSED_INVALID, err);
	if (workdir_check(s, err) < 0)
		return refuse(ret, REFUSED_INVALID, err);
	pack_disks(p, &box, s);
	if (!s->root && !s->has_programs)
		box.n_ours = box.n_mounts;
	if (binds_pack(p, &box, s, err) < 0)
		return refuse(ret,
			      err->code == EPERM ? REFUSED_DENIED
						 : REFUSED_INVALID,
			      err);
	root_places(p, &box, s);
	pack_records_begin(p);
	if (s->root)
		root_image_files(p, s);
	else
		root_host_files(p, s, s->has_programs ? only : NULL);
	box.records = p->records;
	ret->box = pack_seal(p, &box.blob, WIRE_BOX_MAGIC, err);
	return ret->box < 0 ? ret->box : 0;
}

static int pack_work(struct pack *p, const struct cordon_spec *s,
		     struct prepared *ret, struct err *err)
{
	struct wire_work work = { 0 };

	if (pack_init(p, sizeof(work), err) < 0)
		return -err->code;
	work.times.timeout_us = s->timeout_us;
	work.times.total_us = spec_total_us(s);
	work.times.cpu_time_us = s->cpu_time_us;
	work.times.grace_us = s->grace_us;
	if (s->continue_on_error)
		work.blob.flags |= WIRE_CONTINUE;
	work_user(&work, s);
	if (pack_steps(p, &work, s, ret, err) < 0)
		return -err->code;
	pack_records_begin(p);
	if (s->workspace && workspace_pack(p, s, ret, err) < 0)
		return refuse(ret, REFUSED_INVALID, err);
	workdir_pack_work(p, s);
	pack_code(p, &work, s, ret);
	ret->work = pack_seal(p, &work.blob, WIRE_WORK_MAGIC, err);
	return ret->work < 0 ? ret->work : 0;
}

int prepare_check(const struct cordon_spec *s, struct prepared *ret,
		  struct err *err)
{
	memset(ret, 0, sizeof(*ret));
	ret->box = NO_FD;
	ret->work = NO_FD;
	if (spec_check(s, err) < 0)
		return refuse(ret, REFUSED_INVALID, err);
	return check_blocks(s, ret, err);
}

enum { HALF_BOX = 1, HALF_WORK = 2 };

static int prepare_halves(const struct cordon_spec *s, int halves,
			  struct prepared *ret, struct err *err)
{
	_cleanup_free_ struct pack *p = NULL;
	struct programs only = { 0 };
	int r = 0;

	if (prepare_check(s, ret, err) < 0 || name_blocks(s, ret, err) < 0)
		return -err->code;
	p = malloc(sizeof(*p));
	if (!p)
		return err_set(err, ENOMEM, "out of memory");
	if (halves & HALF_BOX) {
		r = pack_box(p, s, &only, ret, err);
		programs_done(&only);
		pack_done(p);
	}
	if (r == 0 && (halves & HALF_WORK)) {
		r = pack_work(p, s, ret, err);
		pack_done(p);
	}
	return r;
}

int prepare(const struct cordon_spec *s, struct prepared *ret, struct err *err)
{
	return prepare_halves(s, HALF_BOX | HALF_WORK, ret, err);
}

int prepare_box(const struct cordon_spec *s, struct prepared *ret,
		struct err *err)
{
	return prepare_halves(s, HALF_BOX, ret, err);
}

int prepare_work(const struct cordon_spec *s, struct prepared *ret,
		 struct err *err)
{
	return prepare_halves(s, HALF_WORK, ret, err);
}

/* What this machine has there is what the box has. */
static bool is_hosts(const char *path)
{
	static const char *const tops[] = { "/usr/", "/bin/", "/sbin/" };

	for (size_t i = 0; i < ARRAY_SIZE(tops); i++)
		if (strncmp(path, tops[i], strlen(tops[i])) == 0)
			return true;
	return false;
}

static bool may_have(const struct cordon_spec *s, const char *program)
{
	if (strchr(program, '/'))
		return s->root || !is_hosts(program) ||
		       access(program, F_OK) == 0;
	if (!s->root && strcmp(program, "python") == 0)
		return has_program(s, program) || has_program(s, "python3");
	/* A volume may lie on the way. */
	return has_program(s, program) || s->n_binds > 0;
}

int prepare_find(const struct cordon_spec *s, struct prepared *ret,
		 struct err *err)
{
	const char *program = s->command.n > 0 ? s->command.v[0]
			      : s->n_line > 0  ? s->line[0].argv.v[0]
					       : NULL;

	if (!program || may_have(s, program))
		return 0;
	(void)err_set(err, ENOENT,
		      "'%.300s' was not found in the box; its "
		      "root is %s, and PATH is the box's own",
		      program, s->root ? "the image" : "this machine's /usr");
	return refuse(ret, REFUSED_NOT_FOUND, err);
}

void prepared_done(struct prepared *p)
{
	fd_close(&p->box);
	fd_close(&p->work);
	for (size_t i = 0; i < ARRAY_SIZE(p->code_files); i++)
		free(p->code_files[i]);
	for (size_t i = 0; i < p->n_placed; i++)
		free(p->placed[i].path);
	free(p->placed);
	strv_done(&p->warnings);
	memset(p, 0, sizeof(*p));
	p->box = NO_FD;
	p->work = NO_FD;
}
