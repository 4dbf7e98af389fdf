/* SPDX-License-Identifier: Apache-2.0 */

/* cordon image load, import, save: what moves bytes, and shows that it does. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "imagecmd/imagecmd.h"
#include "image/reference.h"

#define TELL_US 100000

struct teller {
	bool is_shown;
	int64_t next;
	uint64_t skipped;
};

/* One line, written over; at most ten times a second. */
static void tell(void *arg, enum image_step step, const char *what,
		 uint64_t done, uint64_t total)
{
	static const char *const verbs[] = { [IMAGE_READING] = "reading",
					     [IMAGE_UNPACKING] = "unpacking",
					     [IMAGE_WRITING] = "writing" };
	struct teller *t = arg;
	char have[24];
	char all[24];

	if (step == IMAGE_SKIPPED) {
		t->skipped++;
		return;
	}
	if (!t->is_shown || clock_us() < t->next)
		return;
	t->next = clock_us() + TELL_US;
	format_size(done, have, sizeof(have));
	format_size(total, all, sizeof(all));
	(void)fprintf(stderr, "\r\033[K%s%s%.12s %s%s%s", verbs[step],
		      what && strlen(what) > 7 ? " " : "",
		      what && strlen(what) > 7 ? what + 7 : "", have,
		      total ? " of " : "", total ? all : "");
}

static void tell_done(struct teller *t)
{
	if (t->is_shown && t->next)
		(void)fprintf(stderr, "\r\033[K");
	if (t->skipped)
		say("%llu devices, pipes or sockets were left out",
		    (unsigned long long)t->skipped);
}

static struct teller make_teller(const struct call *c)
{
	return (struct teller){ .is_shown = !c->quiet && !c->json &&
					    isatty(STDERR_FILENO) };
}

/* A file, a directory, or standard input ("-" or NULL). */
static int open_input(const char *name, bool *ret_is_dir, struct err *err)
{
	struct stat st;
	int fd;

	if (!name || strcmp(name, "-") == 0) {
		if (isatty(STDIN_FILENO))
			return err_set(err, EINVAL,
				       "standard input is a terminal; name a "
				       "file or use '<'");
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	} else {
		fd = open(name, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", name ? name : "-");
	*ret_is_dir = S_ISDIR(st.st_mode);
	return fd;
}

static void print_loaded(const struct image_list *list, const struct call *c)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct image *m = &list->v[i];

		if (c->quiet) {
			printf("%s\n", m->id);
			continue;
		}
		for (size_t k = 0; k < m->names.n; k++)
			printf("Loaded image: %s\n",
			       image_ref_short(m->names.v[k]));
		if (m->names.n == 0)
			printf("Loaded image ID: %s\n", m->id);
	}
}

static void print_json(const struct image_list *list, uint64_t skipped)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, (size_t)8 << 20);
	json_open(&j, NULL, '{');
	json_open(&j, "images", '[');
	for (size_t i = 0; i < list->n; i++) {
		const struct image *m = &list->v[i];

		json_open(&j, NULL, '{');
		json_str(&j, "id", m->id);
		json_open(&j, "names", '[');
		for (size_t k = 0; k < m->names.n; k++)
			json_str(&j, NULL, image_ref_short(m->names.v[k]));
		json_close(&j, ']');
		json_int(&j, "size", (int64_t)image_size(m));
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_int(&j, "skipped", (int64_t)skipped);
	json_close(&j, '}');
	if (!out.error)
		printf("%s\n", out.data);
	buf_done(&out);
}

int run_load(struct call *c, struct err *err)
{
	struct teller t = make_teller(c);
	struct image_list list = { 0 };
	bool is_dir = false;
	_cleanup_fd_ int fd = NO_FD;
	struct image_take take = { .limits = c->limits,
				   .progress = { tell, &t },
				   .name = c->name };
	int r;

	if (c->n > 0 && c->input)
		return err_set(err, EINVAL, "one archive at a time");
	fd = open_input(c->n > 0 ? c->operands[0] : c->input, &is_dir, err);
	if (fd < 0 || shut_in(c, is_dir ? fd : NO_FD, err) < 0)
		return -err->code;
	take.fd = fd;
	r = image_load(c->store, &take, &list, err);
	tell_done(&t);
	if (r == 0 && c->json)
		print_json(&list, t.skipped);
	else if (r == 0)
		print_loaded(&list, c);
	image_list_done(&list);
	return r;
}

int run_import(struct call *c, struct err *err)
{
	struct teller t = make_teller(c);
	struct image *m = NULL;
	bool is_dir = false;
	_cleanup_fd_ int fd = open_input(c->operands[0], &is_dir, err);
	struct image_take take = { .fd = fd,
				   .limits = c->limits,
				   .progress = { tell, &t },
				   .name = c->n > 1 ? c->operands[1] : NULL,
				   .changes = c->changes.v,
				   .n_changes = c->changes.n,
				   .message = c->message };
	int r;

	if (fd < 0)
		return -err->code;
	if (is_dir)
		return err_set(err, EISDIR,
			       "'%s' is a directory; import takes a tar "
			       "archive",
			       c->operands[0]);
	if (shut_in(c, NO_FD, err) < 0)
		return -err->code;
	r = image_import(c->store, &take, &m, err);
	tell_done(&t);
	if (r == 0 && c->json) {
		struct image_list one = { m, 1 };

		print_json(&one, t.skipped);
	} else if (r == 0) {
		printf("%s\n", m->id);
	}
	image_free(m);
	return r;
}

static int save_to(struct call *c, int fd, struct err *err)
{
	struct teller t = make_teller(c);
	struct image_progress progress = { tell, &t };
	int r = shut_in(c, NO_FD, err);

	if (r == 0)
		r = image_save(c->store, c->operands, c->n, fd, &progress, err);
	if (r == 0 && c->output && fsync(fd) < 0)
		r = err_errno(err, errno, "write '%s'", c->output);
	tell_done(&t);
	return r;
}

/*
 * The file appears whole or not at all. It is a child that shuts itself in and
 * writes; this process can still rename.
 */
static int save_to_file(struct call *c, struct err *err)
{
	char part[4096];
	int status = 0;
	pid_t pid;
	_cleanup_fd_ int fd = NO_FD;

	if (snprintf(part, sizeof(part), "%s.XXXXXX", c->output) >=
	    (int)sizeof(part))
		return err_set(err, ENAMETOOLONG, "'%.60s...' is too long",
			       c->output);
	fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "make '%s'", c->output);
	pid = fork();
	if (pid == 0) {
		int r = save_to(c, fd, err);

		if (r < 0)
			say("%s", err->text);
		_exit(r == 0 ? 0 : r == -IMAGE_NOT_FOUND ? EXIT_NO : EXIT_OURS);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && status == 0 &&
	    (fchmod(fd, 0644) < 0 || rename(part, c->output) < 0))
		err_errno(err, errno, "make '%s'", c->output);
	if (pid < 0)
		err_errno(err, errno, "start a process");
	if (pid < 0 || status != 0 || err->code)
		(void)unlink(part);
	/* It has said why. */
	if (pid > 0 && status != 0)
		err->code = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO
				    ? IMAGE_NOT_FOUND
				    : ECHILD;
	return -err->code;
}

int run_save(struct call *c, struct err *err)
{
	if (c->output && strcmp(c->output, "-") != 0)
		return save_to_file(c, err);
	c->output = NULL;
	if (isatty(STDOUT_FILENO))
		return err_set(err, EINVAL,
			       "standard output is a terminal; use --output "
			       "or '>'");
	return save_to(c, STDOUT_FILENO, err);
}
