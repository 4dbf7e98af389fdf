/* SPDX-License-Identifier: Apache-2.0 */

/* cordon audit verify, seal. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "desk/audit.h"
#include "desk/desk.h"
#include "desk/seal.h"
#include "ledger/verify.h"

struct watch {
	struct seal_chain chain;
	bool has_head; /* --head was given */
	bool is_found; /* and its seal is there */
	struct line head;
	unsigned char hash[SHA256_SIZE];
};

static int on_seal(void *arg, const struct verify_seal *s, struct err *err)
{
	struct watch *w = arg;

	return seal_check(&w->chain, s, err);
}

static int on_record(void *arg, const struct line *line,
		     const unsigned char hash[SHA256_SIZE], uint32_t file,
		     uint64_t offset)
{
	struct watch *w = arg;

	(void)file;
	(void)offset;
	if (w->has_head && line->seq == w->head.seq)
		w->is_found = memcmp(hash, w->hash, SHA256_SIZE) == 0;
	return 0;
}

/* A head is the line of a seal, kept elsewhere. */
static int load_head(struct watch *w, const char *path, char **ret,
		     struct err *err)
{
	ssize_t n;

	*ret = malloc(8192);
	if (!*ret)
		return err_errno(err, ENOMEM, "read '%s'", path);
	n = io_read_file(AT_FDCWD, path, *ret, 8192);
	if (n < 0)
		return err_errno(err, (int)-n, "read '%s'", path);
	if (n > 0 && (*ret)[n - 1] == '\n')
		n--;
	if (line_parse(*ret, (size_t)n, &w->head) < 0 ||
	    w->head.kind_len != 4 || memcmp(w->head.kind, "seal", 4) != 0)
		return err_set(err, EBADMSG,
			       "'%s' is not a head made by 'cordon audit seal "
			       "--export'",
			       path);
	line_hash(w->head.text, w->head.len, w->hash);
	w->has_head = true;
	return 0;
}

/*
 * The secret key: its number is that of the next seal. More than one beyond
 * the seals in the ledger means that some are gone; another key than the one
 * that the last seal names could not make the next.
 *
 * The number is read before the ledger, since seals are made meanwhile.
 */
static void check_epoch(const struct audit_options *o, const struct watch *w,
			uint64_t before, struct verify_result *v)
{
	struct seal_key key;

	if (before > w->chain.epoch) {
		v->fault = VERIFY_TRUNCATED;
		v->bad = v->records + 1;
		(void)snprintf(v->text, sizeof(v->text),
			       "%llu seals were made and %llu are there; the "
			       "ledger ends with record %llu",
			       (unsigned long long)before - 1,
			       (unsigned long long)v->seals,
			       (unsigned long long)v->records);
		return;
	}
	/* A copy kept elsewhere has no secret key, and a key to check it by. */
	if (o->key || o->head || v->seals == 0)
		return;
	/* Its place is taken by the next one while we look. */
	for (int tries = 0; tries < 3; tries++) {
		seal_key_look(o->dir, &w->chain, &key);
		if (key.is_there && (key.fits || key.epoch > w->chain.epoch))
			return;
	}
	v->fault = VERIFY_SEAL;
	v->bad = v->records + 1;
	(void)snprintf(v->text, sizeof(v->text),
		       key.is_there ? "the file 'key' is not the key that the "
				      "last seal names"
				    : "the file 'key' is gone: whether seals "
				      "are missing at the end is not known");
}

/* Without it nobody knows what was acknowledged. */
static void check_marks(const struct audit_options *o, struct verify_result *v)
{
	if (v->has_head || v->records == 0 || o->key || o->head)
		return;
	v->fault = VERIFY_TRUNCATED;
	v->bad = v->records + 1;
	(void)snprintf(v->text, sizeof(v->text),
		       "the file 'head' is gone: whether records are missing "
		       "behind record %llu is not known",
		       (unsigned long long)v->records);
}

static void check_head(const struct audit_options *o, const struct watch *w,
		       struct verify_result *v)
{
	if (!w->has_head || w->is_found)
		return;
	v->bad = MIN(w->head.seq, v->records + 1);
	if (w->head.seq > v->records) {
		v->fault = VERIFY_TRUNCATED;
		(void)snprintf(v->text, sizeof(v->text),
			       "the head in '%.100s' is record %llu, and the "
			       "ledger ends with record %llu",
			       o->head, (unsigned long long)w->head.seq,
			       (unsigned long long)v->records);
		return;
	}
	v->fault = VERIFY_SEAL;
	(void)snprintf(v->text, sizeof(v->text),
		       "record %llu is not the head in '%.100s': the ledger "
		       "was written anew",
		       (unsigned long long)w->head.seq, o->head);
}

static void print_json(const struct verify_result *v)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, 4096);
	json_open(&j, NULL, '{');
	json_bool(&j, "intact", v->fault == VERIFY_INTACT);
	json_str(&j, "fault", v->fault ? verify_fault_name(v->fault) : NULL);
	if (v->fault) {
		json_int(&j, "record", (int64_t)v->bad);
		json_int(&j, "file", v->file);
		json_int(&j, "offset", (int64_t)v->offset);
		json_str(&j, "what", v->text);
	}
	json_int(&j, "records", (int64_t)v->records);
	json_int(&j, "bytes", (int64_t)v->bytes);
	json_int(&j, "seals", (int64_t)v->seals);
	json_int(&j, "sealed_to", (int64_t)v->sealed);
	/* A seal itself is not under one, and needs none. */
	json_int(&j, "unsealed",
		 (int64_t)(v->records - v->sealed - (v->seals ? 1 : 0)));
	json_bool(&j, "has_head", v->has_head);
	json_close(&j, '}');
	if (!out.error)
		(void)puts(out.data);
	buf_done(&out);
}

static void print_words(const struct audit_options *o,
			const struct verify_result *v)
{
	uint64_t tail = v->records - v->sealed - (v->seals ? 1 : 0);

	if (v->fault) {
		printf("%s: %s\n", verify_fault_name(v->fault), v->text);
		if (v->file)
			printf("in '%s/%06u.jsonl' at byte %llu\n", o->dir,
			       v->file, (unsigned long long)v->offset);
		if (!v->file && tail > 0)
			printf("unsealed tail: %llu records\n",
			       (unsigned long long)tail);
		return;
	}
	if (o->quiet)
		return;
	printf("intact: %llu records, %llu seals\n",
	       (unsigned long long)v->records, (unsigned long long)v->seals);
	if (tail > 0)
		printf("unsealed tail: %llu records are not under a seal yet; "
		       "'cordon audit seal' signs them\n",
		       (unsigned long long)tail);
	if (!v->has_head && v->records > 0)
		printf("no file 'head': whether records are missing at the end "
		       "is not known\n");
}

int audit_verify(struct audit_options *o)
{
	struct watch w = { 0 };
	struct verify_options options = { .dir = o->dir,
					  .on_seal = on_seal,
					  .on_record = on_record,
					  .arg = &w };
	_cleanup_free_ char *head = NULL;
	struct verify_result v = { 0 };
	struct err err = { 0 };
	struct seal_key key;
	int r;

	r = seal_chain_init(&w.chain, o->dir, o->key, &err);
	seal_key_look(o->dir, &w.chain, &key);
	if (r == -EBADMSG && !o->key) {
		/* Part of the ledger, and changed. */
		v.fault = VERIFY_SEAL;
		(void)snprintf(v.text, sizeof(v.text), "%.390s", err.text);
		if (o->json)
			print_json(&v);
		else
			print_words(o, &v);
		return EXIT_ALTERED;
	}
	if (r == 0 && o->head)
		r = load_head(&w, o->head, &head, &err);
	if (r == 0)
		r = verify(&options, &v, &err);
	if (r < 0) {
		say("%s", err.text);
		return EXIT_OURS;
	}
	if (v.fault == VERIFY_INTACT)
		check_head(o, &w, &v);
	if (v.fault == VERIFY_INTACT)
		check_epoch(o, &w, key.epoch, &v);
	if (v.fault == VERIFY_INTACT)
		check_marks(o, &v);
	if (o->json)
		print_json(&v);
	else
		print_words(o, &v);
	return v.fault ? EXIT_ALTERED : 0;
}

static int export_line(const char *path, const char *line)
{
	_cleanup_fd_ int fd = NO_FD;
	int r;

	if (strcmp(path, "-") == 0)
		return puts(line) < 0 ? -EIO : 0;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, line, strlen(line));
	if (r == 0)
		r = io_write_all(fd, "\n", 1);
	if (r == 0 && fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		r = -errno;
	return r;
}

int audit_seal(struct audit_options *o)
{
	struct seal_result s = { 0 };
	struct err err = { 0 };
	int r = seal_make(o->dir, &s, &err);

	if (r == 0 && o->export) {
		r = s.line ? export_line(o->export, s.line) : -ENODATA;
		if (r < 0)
			(void)err_errno(&err, -r, "write '%s'", o->export);
	}
	if (r < 0) {
		say("%s", err.text);
		seal_result_done(&s);
		return EXIT_OURS;
	}
	if (o->json)
		printf("{\"seal\":%llu,\"from\":%llu,\"to\":%llu,"
		       "\"epoch\":%llu}\n",
		       (unsigned long long)s.seq, (unsigned long long)s.from,
		       (unsigned long long)s.to, (unsigned long long)s.epoch);
	else if (!o->quiet && !(o->export && strcmp(o->export, "-") == 0))
		printf(s.seq ? "sealed records %llu to %llu, epoch %llu\n"
			     : "nothing to seal\n",
		       (unsigned long long)s.from, (unsigned long long)s.to,
		       (unsigned long long)s.epoch);
	seal_result_done(&s);
	return 0;
}
