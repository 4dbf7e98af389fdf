/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/checkpoint.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/chat.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/util.h"

#define VERSION  1
#define KEEP     20
#define ID_LEN   (CHECKPOINT_ID - 1)
#define NAME_LEN (ID_LEN + 1 + ID_LEN + 5) /* RUN.ID.json */
#define MAX_FILE (256 << 20)

struct checkpoints {
	int dir;
	unsigned int keep;
	int64_t last_ms; /* of the last id, and its place in that one */
	unsigned int sequence;
};

/* What is in the directory, by name: "RUN.ID.json". */
struct entry {
	char name[NAME_LEN + 1];
};

struct entries {
	struct entry *list;
	size_t n, cap;
};

static bool is_id(const char *text)
{
	return strspn(text, "0123456789abcdef-") >= ID_LEN;
}

static bool is_name(const char *name)
{
	return strlen(name) == NAME_LEN && is_id(name) && name[ID_LEN] == '.' &&
	       is_id(name + ID_LEN + 1) &&
	       strcmp(name + NAME_LEN - 5, ".json") == 0;
}

static const char *id_of(const struct entry *e)
{
	return e->name + ID_LEN + 1;
}

int checkpoints_open(const char *dir, unsigned int keep,
		     struct checkpoints **ret, struct err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	_cleanup_fd_ int fd = NO_FD;
	struct checkpoints *c;
	struct stat st;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", dir);
	fd = open(dir, flags);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", dir);
	/* Whoever can write there can say what agents remember. */
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		return err_set(err, EPERM,
			       "'%s' can be written by others; use a directory "
			       "of your own with mode 0700",
			       dir);
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, ENOMEM, "out of memory");
	c->dir = take_fd(&fd);
	c->keep = keep ? keep : KEEP;
	*ret = c;
	return 0;
}

void checkpoints_close(struct checkpoints *c)
{
	if (!c)
		return;
	fd_close(&c->dir);
	free(c);
}

/* RFC 9562, version 7: 48 bits of time, 12 of a sequence, 62 of chance. */
static int make_id(struct checkpoints *c, char ret[CHECKPOINT_ID])
{
	unsigned char b[16];
	char hex[33];
	int64_t now = chat_now();

	c->sequence = now <= c->last_ms ? c->sequence + 1 : 0;
	c->last_ms = MAX(now, c->last_ms) + (c->sequence >> 12);
	c->sequence &= 0xfff;
	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
		return -errno;
	for (int i = 0; i < 6; i++)
		b[i] = (unsigned char)(c->last_ms >> (40 - 8 * i));
	b[6] = (unsigned char)(0x70 | (c->sequence >> 8));
	b[7] = (unsigned char)c->sequence;
	b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));
	hex_format(b, sizeof(b), hex);
	(void)snprintf(ret, CHECKPOINT_ID, "%.8s-%.4s-%.4s-%.4s-%.12s", hex,
		       hex + 8, hex + 12, hex + 16, hex + 20);
	return 0;
}

static int add_entry(struct entries *e, const char *name)
{
	if (e->n == e->cap) {
		size_t cap = e->cap ? e->cap * 2 : 64;
		struct entry *list = realloc(e->list, cap * sizeof(*list));

		if (!list)
			return -ENOMEM;
		e->list = list;
		e->cap = cap;
	}
	memcpy(e->list[e->n++].name, name, NAME_LEN + 1);
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	return strcmp(id_of(b), id_of(a));
}

/* What is there, the newest first. The caller frees the list. */
static int look(struct checkpoints *c, struct entries *ret)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	*ret = (struct entries){ 0 };
	if (!d) {
		r = -errno;
		fd_close(&fd);
		return r;
	}
	for (struct dirent *e = readdir(d); e && r == 0; e = readdir(d))
		if (is_name(e->d_name))
			r = add_entry(ret, e->d_name);
	closedir(d);
	if (r < 0)
		free(take_ptr(ret->list));
	else if (ret->n > 0)
		qsort(ret->list, ret->n, sizeof(*ret->list), newest_first);
	return r;
}

/* Older ones go; one that cannot be removed now is tried again next time. */
static void prune(struct checkpoints *c, const char *run)
{
	struct entries all;
	unsigned int mine = 0;

	if (look(c, &all) < 0)
		return;
	for (size_t i = 0; i < all.n; i++) {
		bool is_mine = strncmp(all.list[i].name, run, ID_LEN) == 0;

		mine += is_mine;
		if ((is_mine && mine > c->keep) || i >= CHECKPOINTS_MAX)
			(void)unlinkat(c->dir, all.list[i].name, 0);
	}
	free(all.list);
}

static json_t *document(const struct checkpoint *p, const char *id)
{
	char now[32];

	chat_time(chat_now(), now);
	return json_pack("{s:s, s:i, s:s, s:s, s:s?, s:s, s:s, s:O?, s:O}",
			 "type", "checkpoint", "version", VERSION, "id", id,
			 "run", p->run, "parent", p->parent, "time", now,
			 "reason", p->reason, "about", p->about, "state",
			 p->state);
}

/* What a crash left of this run is taken away by the next one. */
static int write_whole(struct checkpoints *c, const char *name,
		       const char *text)
{
	_cleanup_fd_ int fd = NO_FD;
	char part[NAME_LEN + 8];
	int r;

	(void)snprintf(part, sizeof(part), "%.*s.part", ID_LEN, name);
	(void)unlinkat(c->dir, part, 0);
	fd = openat(c->dir, part,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text, strlen(text));
	if (r == 0 &&
	    (fsync(fd) < 0 || renameat(c->dir, part, c->dir, name) < 0 ||
	     fsync(c->dir) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(c->dir, part, 0);
	return r;
}

int checkpoints_write(struct checkpoints *c, const struct checkpoint *p,
		      char ret_id[CHECKPOINT_ID], struct err *err)
{
	_cleanup_free_ char *text = NULL;
	char name[NAME_LEN + 1];
	json_t *doc;
	int r;

	if (!is_id(p->run) || strlen(p->run) != ID_LEN)
		return err_set(err, EINVAL, "not the id of a run: '%s'",
			       p->run);
	r = make_id(c, ret_id);
	if (r < 0)
		return err_errno(err, -r, "write a checkpoint");
	doc = document(p, ret_id);
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	if (!text)
		return err_set(err, ENOMEM, "out of memory");
	(void)snprintf(name, sizeof(name), "%s.%s.json", p->run, ret_id);
	r = write_whole(c, name, text);
	if (r < 0)
		return err_errno(err, -r, "write the checkpoint '%s'", ret_id);
	prune(c, p->run);
	return 0;
}

static int load(struct checkpoints *c, const char *name, json_t **ret,
		struct err *err)
{
	_cleanup_fd_ int fd = openat(c->dir, name,
				     O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	json_error_t e;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open the checkpoint '%s'", name);
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
		return err_set(err, EINVAL, "'%s' is no checkpoint", name);
	*ret = json_loadfd(fd, JSON_REJECT_DUPLICATES, &e);
	if (!*ret)
		return err_set(err, EINVAL, "checkpoint '%s': %s", name,
			       e.text);
	if (json_integer_value(json_object_get(*ret, "version")) != VERSION ||
	    !json_is_object(json_object_get(*ret, "state"))) {
		json_decref(*ret);
		return err_set(err, EINVAL,
			       "checkpoint '%s': not of version %d", name,
			       VERSION);
	}
	return 0;
}

static const struct entry *find(const struct entries *all, const char *id)
{
	for (size_t i = 0; i < all->n; i++)
		if (strncmp(id_of(&all->list[i]), id, ID_LEN) == 0 ||
		    strncmp(all->list[i].name, id, ID_LEN) == 0)
			return &all->list[i];
	return NULL;
}

int checkpoints_read(struct checkpoints *c, const char *id, json_t **ret,
		     struct err *err)
{
	const struct entry *e;
	struct entries all;
	int r;

	if (!is_id(id) || strlen(id) != ID_LEN)
		return err_set(err, EINVAL, "not the id of a checkpoint: '%s'",
			       id);
	r = look(c, &all);
	if (r < 0)
		return err_errno(err, -r, "read the checkpoints");
	e = find(&all, id);
	r = e ? load(c, e->name, ret, err)
	      : err_set(err, ENOENT, "no checkpoint '%s'", id);
	free(all.list);
	return r;
}

/* One that cannot be read any more is not in the list. */
json_t *checkpoints_list(struct checkpoints *c, struct err *err)
{
	json_t *ret = json_array();
	struct entries all;
	int r = ret ? look(c, &all) : -ENOMEM;

	if (r < 0) {
		json_decref(ret);
		(void)err_errno(err, -r, "read the checkpoints");
		return NULL;
	}
	for (size_t i = 0; i < all.n; i++) {
		json_t *doc = NULL;

		if (load(c, all.list[i].name, &doc, err) < 0)
			continue;
		(void)json_object_del(doc, "state");
		(void)json_array_append_new(ret, doc);
	}
	free(all.list);
	return ret;
}
