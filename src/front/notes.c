/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the next daemon is to know.
 *
 * boxes/ID.json   one note a box, written to ID.tmp and renamed. What it says
 *                 of the state is what was last told to clients; a box that
 *                 was running when the daemon ended is lost, which is told by
 *                 the next one, once.
 * open-runs       runs that may be without an end on the ledger (runs.c).
 *
 * Nothing here is synced: after a crash of the machine itself a note may be
 * missing or empty, and such a box is then unknown. The ledger is on the disk.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/say.h"
#include "base/util.h"
#include "box/result.h"
#include "front/doc.h"
#include "front/exec.h"
#include "front/front.h"

#define NOTE_FORM 1

/* The members that are plain copies of one of the box. */
struct member {
	const char *name;
	size_t off;
	char type; /* 's' text, 'b' bool, 'i' int, 'l' int64, 'u' uint64 */
};
#define M(name, field, type)                                                   \
	{                                                                      \
		name, offsetof(struct box, field), type                        \
	}

static const struct member members[] = {
	M("face", face, 's'),
	M("settings", settings, 's'),
	M("extra", extra, 's'),
	M("command", command, 's'),
	M("code", code, 's'),
	M("input", input, 's'),
	M("spec", spec, 's'),
	M("warnings", warnings, 's'),
	M("clamped", clamped, 's'),
	M("watches", watches, 's'),
	M("who", who, 's'),
	M("gate_used", gate_used, 's'),
	M("image", image, 's'),
	M("error", error, 's'),
	M("has_no_main", has_no_main, 'b'),
	M("clamp", clamp, 'b'),
	M("tty", tty, 'b'),
	M("open_stdin", open_stdin, 'b'),
	M("stdin_once", stdin_once, 'b'),
	M("auto_remove", auto_remove, 'b'),
	M("kill_exec_rest", kill_exec_rest, 'b'),
	M("kill_on_disconnect", kill_on_disconnect, 'b'),
	M("shims", shims, 'b'),
	M("oom_killed", oom_killed, 'b'),
	M("is_run_used", is_run_used, 'b'),
	M("stop_signal", stop_signal, 'i'),
	M("stop_timeout_s", stop_timeout_s, 'i'),
	M("exit_code", exit_code, 'i'),
	M("idle_us", idle_us, 'u'),
	M("life_us", life_us, 'u'),
	M("exec_timeout_us", exec_timeout_us, 'u'),
	M("exec_max_output", exec_max_output, 'u'),
	M("log_max", log_max, 'u'),
	M("created_ns", created_ns, 'l'),
	M("started_ns", started_ns, 'l'),
	M("finished_ns", finished_ns, 'l'),
};

static const char *const states[] = {
	[BOX_CREATED] = "created",
	[BOX_RUNNING] = "running",
	[BOX_PAUSED] = "running",
	[BOX_EXITED] = "exited",
};

static void put(struct json *j, const struct box *b, const struct member *m)
{
	const char *at = (const char *)b + m->off;

	switch (m->type) {
	case 's':
		if (*(char *const *)at)
			json_str(j, m->name, *(char *const *)at);
		break;
	case 'b':
		json_bool(j, m->name, *(const bool *)at);
		break;
	case 'i':
		json_int(j, m->name, *(const int *)at);
		break;
	case 'l':
		json_int(j, m->name, *(const int64_t *)at);
		break;
	default:
		json_int(j, m->name, (int64_t) * (const uint64_t *)at);
	}
}

/* Several times in a box's life: written at once, not by way of a tree. */
char *note_dump(const struct box *b)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, 2 * DOC_MAX);
	json_open(&j, NULL, '{');
	json_int(&j, "form", NOTE_FORM);
	json_str(&j, "id", b->id);
	json_str(&j, "name", b->name);
	json_int(&j, "owner", b->owner);
	json_str(&j, "run", b->run);
	json_str(&j, "state", states[b->state]);
	json_int(&j, "restarts", b->restarts);
	if (b->cause)
		json_str(&j, "cause", b->cause);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		put(&j, b, &members[i]);
	json_close(&j, '}');
	if (!out.error)
		return buf_take(&out);
	buf_done(&out);
	return NULL;
}

static void note_name(const struct box *b, const char *end, char ret[80])
{
	(void)snprintf(ret, 80, "%s.%s", b->id, end);
}

static int write_note(struct box *b, const char *text)
{
	char tmp[80], name[80];
	_cleanup_fd_ int fd = NO_FD;
	int r;

	note_name(b, "tmp", tmp);
	note_name(b, "json", name);
	fd = openat(b->m->boxes_fd, tmp,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text, strlen(text));
	if (r == 0 && renameat(b->m->boxes_fd, tmp, b->m->boxes_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(b->m->boxes_fd, tmp, 0);
	return r;
}

int notes_store(struct box *b)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (b->state == BOX_GONE)
		return 0;
	text = note_dump(b);
	r = text ? write_note(b, text) : -ENOMEM;
	if (r < 0)
		say("the note of box %.12s could not be written: %s", b->id,
		    strerror(-r));
	return r;
}

void notes_remove(struct box *b)
{
	char name[80];

	note_name(b, "json", name);
	(void)unlinkat(b->m->boxes_fd, name, 0);
	exec_notes_remove(b);
}

/* ---- reading ---- */

static bool get(struct box *b, const struct member *m, const json_t *o)
{
	const json_t *v = json_object_get(o, m->name);
	char *at = (char *)b + m->off;

	if (!v)
		return true;
	if (m->type == 's') {
		if (!json_is_string(v))
			return false;
		*(char **)at = strdup(json_string_value(v));
		return *(char **)at;
	}
	if (m->type == 'b') {
		*(bool *)at = json_is_true(v);
		return json_is_boolean(v);
	}
	if (!json_is_integer(v))
		return false;
	if (m->type == 'i')
		*(int *)at = (int)json_integer_value(v);
	else
		*(int64_t *)at = json_integer_value(v);
	return true;
}

const char *cause_name_find(const char *name)
{
	enum cause cause = name ? cause_parse(name) : CAUSES;

	return cause < CAUSES ? cause_name(cause) : NULL;
}

static bool is_json(const char *text, bool is_list)
{
	json_t *v = text ? json_loads(text, 0, NULL) : NULL;
	bool is_good = is_list ? json_is_array(v) : json_is_object(v);

	json_decref(v);
	return !text || is_good;
}

/* Values that others will rely on. */
static bool is_sound(const struct box *b)
{
	return b->face && b->settings && is_json(b->settings, false) &&
	       is_json(b->extra, false) && is_json(b->spec, false) &&
	       is_json(b->command, true) && is_json(b->code, true) &&
	       is_json(b->warnings, true) && is_json(b->clamped, true) &&
	       is_json(b->watches, true) && is_json(b->gate_used, true) &&
	       b->stop_signal > 0 && b->stop_signal <= 64 &&
	       b->stop_timeout_s >= 0 && b->log_max > 0 &&
	       b->log_max <= (uint64_t)1 << 40;
}

static bool fill(struct box *b, const json_t *o)
{
	const char *id = doc_str(o, "id");
	const char *name = doc_str(o, "name");
	const char *run = doc_str(o, "run");
	const char *state = doc_str(o, "state");
	int64_t owner = doc_int(o, "owner", -1);
	int64_t restarts = doc_int(o, "restarts", 0);

	if (doc_int(o, "form", 0) != NOTE_FORM || !id_check(id, 64) || !name ||
	    !name_check(name) || !id_check(run, 32) || !state || owner < 0 ||
	    owner >= UINT32_MAX || restarts < 0 || restarts > INT32_MAX)
		return false;
	memcpy(b->id, id, 65);
	memcpy(b->run, run, 33);
	(void)snprintf(b->name, sizeof(b->name), "%s", name);
	b->owner = (uid_t)owner;
	b->restarts = (unsigned int)restarts;
	b->cause = cause_name_find(doc_str(o, "cause"));
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (!get(b, &members[i], o))
			return false;
	for (int i = 0; i < (int)ARRAY_SIZE(states); i++)
		if (strcmp(state, states[i]) == 0) {
			b->state = (enum box_state)i;
			return is_sound(b);
		}
	return false;
}

struct box *note_parse(struct manager *m, const char *text, size_t len)
{
	struct err unused;
	json_t *o = doc_parse(text, len, &unused);
	struct box *b = o ? box_new(m) : NULL;

	if (b && fill(b, o)) {
		b->is_made = true;
		(void)box_hold(b, NULL);
	} else if (b) {
		box_unref(b);
		b = NULL;
	}
	json_decref(o);
	return b;
}

static struct box *load_one(struct manager *m, const char *name)
{
	_cleanup_fd_ int fd = openat(m->boxes_fd, name,
				     O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };
	struct box *b;

	if (fd >= 0)
		text = doc_read(fd, &err);
	b = text ? note_parse(m, text, strlen(text)) : NULL;
	if (b && strncmp(name, b->id, 64) != 0) {
		box_unref(b);
		b = NULL;
	}
	if (!b)
		say("the note '%s' is not readable and left out", name);
	return b;
}

/* Newest first, as box_list() wants it. */
static void add_sorted(struct box *b)
{
	struct box **p = &b->m->boxes;

	while (*p && (*p)->created_ns > b->created_ns)
		p = &(*p)->next;
	b->next = *p;
	*p = b;
	b->m->n_boxes++;
	b->shelf = ++b->m->next_shelf;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n > k && strcmp(name + n - k, end) == 0;
}

static void load_all(struct manager *m, DIR *d)
{
	struct dirent *e;

	while ((e = readdir(d)) && m->n_boxes < FRONT_MAX_BOXES) {
		struct box *b;

		if (ends_in(e->d_name, ".tmp"))
			(void)unlinkat(m->boxes_fd, e->d_name, 0);
		if (!ends_in(e->d_name, ".json"))
			continue;
		b = load_one(m, e->d_name);
		if (b && (box_by_name(m, b->owner, b->name))) {
			box_unref(b);
			b = NULL;
		}
		if (b)
			add_sorted(b);
	}
}

/*
 * What is kept of boxes that no note tells of, in a directory where names begin
 * with the box's id: all that `is_ours` says yes to.
 */
static void sweep(struct manager *m, int dir, bool (*is_ours)(const char *name))
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d) {
		fd_close(&fd);
		return;
	}
	while ((e = readdir(d))) {
		const struct box *b = m->boxes;

		while (b && strncmp(b->id, e->d_name, 64) != 0)
			b = b->next;
		if (!b && is_ours(e->d_name))
			(void)unlinkat(dir, e->d_name, 0);
	}
	(void)closedir(d);
}

static bool is_log(const char *name)
{
	return name[0] != '.';
}

int notes_load(struct manager *m, struct err *err)
{
	int fd = openat(m->boxes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d) {
		fd_close(&fd);
		return err_errno(err, errno, "read the notes of boxes");
	}
	load_all(m, d);
	(void)closedir(d);
	sweep(m, m->logs_fd, is_log);
	sweep(m, m->boxes_fd, exec_notes_name);
	for (struct box *b = m->boxes; b; b = b->next)
		exec_notes_load(b);
	return 0;
}
