/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/util.h"
#include "ledger/ledger.h"
#include "ledger/merkle.h"
#include "ledger/read.h"
#include "ledger/reader.h"

#define SECRET   crypto_sign_SECRETKEYBYTES
#define PUB_HEAD "cordon-ledger-key 1 "

_Static_assert(SEAL_KEY == crypto_sign_PUBLICKEYBYTES, "Ed25519");
_Static_assert(SEAL_SIG == crypto_sign_BYTES, "Ed25519");

struct keys {
	unsigned char now[SECRET]; /* signs */
	unsigned char next[SECRET];
	uint64_t epoch; /* of `now` */
	int dir_fd;
};

static void keys_done(struct keys *k)
{
	sodium_memzero(k->now, sizeof(k->now));
	sodium_memzero(k->next, sizeof(k->next));
	fd_close(&k->dir_fd);
}

/* A public key is the second half of the secret one. */
static const unsigned char *public_of(const unsigned char *secret)
{
	return secret + SECRET - SEAL_KEY;
}

/* A small file that is one, and no link to another. */
static ssize_t read_small(int dir_fd, const char *name, char *text, size_t size,
			  struct stat *ret)
{
	_cleanup_fd_ int fd = openat(dir_fd, name,
				     O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
					     O_NONBLOCK);
	ssize_t n;

	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	if (!S_ISREG(ret->st_mode))
		return -EMEDIUMTYPE;
	n = io_read_full(fd, text, size - 1);
	if (n >= 0)
		text[n] = '\0';
	return n;
}

/* The epoch and the key, as one line of text. */
static int key_parse(const char *name, const char *text, unsigned char *ret,
		     uint64_t *ret_epoch, struct err *err)
{
	unsigned long long epoch = 0;
	int at = 0;

	if (sscanf(text, "%llu %n", &epoch, &at) < 1 || at == 0 ||
	    strlen(text) < (size_t)at + 2 * SECRET ||
	    hex_parse(text + at, ret, SECRET) < 0)
		return err_set(err, EBADMSG, "'%s' is not a key", name);
	*ret_epoch = epoch;
	return 0;
}

/* One line of text with the public key of the first seal. */
static int pub_parse(const char *text, size_t n, unsigned char ret[SEAL_KEY])
{
	size_t len = strlen(PUB_HEAD);

	if (n != len + (size_t)2 * SEAL_KEY + 1 ||
	    memcmp(text, PUB_HEAD, len) != 0 || text[n - 1] != '\n')
		return -EBADMSG;
	return hex_parse(text + len, ret, SEAL_KEY);
}

static int key_load(int dir_fd, const char *name, unsigned char *ret,
		    uint64_t *ret_epoch, struct stat *st, struct err *err)
{
	char text[256] = "";
	ssize_t n = read_small(dir_fd, name, text, sizeof(text), st);
	int r = n < 0 ? err_errno(err, (int)-n, "read '%s'", name)
		      : key_parse(name, text, ret, ret_epoch, err);

	sodium_memzero(text, sizeof(text));
	return r;
}

/* The same for one who will sign with it. */
static int key_read(int dir_fd, const char *name, unsigned char *ret,
		    uint64_t *ret_epoch, struct err *err)
{
	struct stat st = { 0 };
	int r = key_load(dir_fd, name, ret, ret_epoch, &st, err);

	if (r == 0 && ((st.st_mode & 077) || st.st_uid != geteuid()))
		r = err_set(err, EPERM,
			    "'%s' is not ours alone; 'chmod 600' it", name);
	return r;
}

/* Whole and on the disk, or not there. */
static int file_write(int dir_fd, const char *name, const char *text,
		      struct err *err)
{
	char tmp[64];
	_cleanup_fd_ int fd = NO_FD;
	int r;

	(void)snprintf(tmp, sizeof(tmp), "%s.tmp", name);
	fd = openat(dir_fd, tmp,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return err_errno(err, errno, "make '%s'", tmp);
	r = io_write_all(fd, text, strlen(text));
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir_fd, tmp, dir_fd, name) < 0)
		r = -errno;
	if (r == 0 && fsync(dir_fd) < 0)
		r = -errno;
	return r < 0 ? err_errno(err, -r, "write '%s'", name) : 0;
}

static int key_write(int dir_fd, const char *name, const unsigned char *secret,
		     uint64_t epoch, struct err *err)
{
	char text[32 + 2 * SECRET];
	int n = snprintf(text, sizeof(text), "%llu ",
			 (unsigned long long)epoch);
	int r;

	hex_format(secret, SECRET, text + n);
	(void)strcat(text, "\n");
	r = file_write(dir_fd, name, text, err);
	sodium_memzero(text, sizeof(text));
	return r;
}

/* The first key, and the public half that everything is checked by. */
static int first_key(struct keys *k, struct err *err)
{
	unsigned char pub[SEAL_KEY];
	char text[128] = PUB_HEAD;
	int r;

	(void)crypto_sign_keypair(pub, k->now);
	k->epoch = 1;
	hex_format(pub, sizeof(pub), text + strlen(text));
	(void)strcat(text, "\n");
	/* The public one first: a secret key without it would be of no use. */
	r = file_write(k->dir_fd, "key.pub", text, err);
	return r < 0 ? r : key_write(k->dir_fd, "key", k->now, 1, err);
}

/* A seal that key.pub does not check would spoil the ledger for good. */
static int check_first(const struct keys *k, struct err *err)
{
	unsigned char pub[SEAL_KEY];
	char text[256] = "";
	struct stat st;
	ssize_t n = read_small(k->dir_fd, "key.pub", text, sizeof(text), &st);

	if (n < 0 || pub_parse(text, (size_t)n, pub) < 0 ||
	    memcmp(pub, public_of(k->now), SEAL_KEY) != 0)
		return err_set(err, EBADMSG,
			       "the ledger's 'key' does not belong to its "
			       "'key.pub'");
	return 0;
}

/*
 * The key for the next seal. `want` is the public key that the last seal in
 * the ledger names (NULL: there is none). A seal that was appended while its
 * maker died before it could put the next key in place is made up for here.
 */
static int keys_load(struct keys *k, const unsigned char *want, struct err *err)
{
	uint64_t epoch = 0;
	int r = key_read(k->dir_fd, "key", k->now, &k->epoch, err);

	if (r == -ENOENT && !want) {
		*err = (struct err){ 0 };
		return first_key(k, err);
	}
	if (r == 0 && !want)
		r = check_first(k, err);
	if (r < 0)
		return r;
	if (want && memcmp(public_of(k->now), want, SEAL_KEY) != 0) {
		r = key_read(k->dir_fd, "key.next", k->now, &epoch, err);
		if (r < 0 || memcmp(public_of(k->now), want, SEAL_KEY) != 0)
			return err_set(err, EBADMSG,
				       "the key in the ledger's directory is "
				       "not the one that the last seal names");
		k->epoch = epoch;
		if (renameat(k->dir_fd, "key.next", k->dir_fd, "key") < 0)
			return err_errno(err, errno, "rename 'key.next'");
	}
	return 0;
}

/* What is signed: text, so that anybody can make it again. */
static int signed_text(struct buf *out, const struct verify_seal *s,
		       uint64_t epoch, const unsigned char *key,
		       const unsigned char *next)
{
	char root[65];
	char head[65];
	char k[65];
	char n[65];

	hex_format(s->root, SHA256_SIZE, root);
	hex_format(s->head, SHA256_SIZE, head);
	hex_format(key, SEAL_KEY, k);
	hex_format(next, SEAL_KEY, n);
	return buf_printf(out,
			  "cordon-ledger-seal 1\nepoch %llu\nfrom %llu\n"
			  "to %llu\nroot %s\nhead %s\nkey %s\nnext %s\n",
			  (unsigned long long)epoch,
			  (unsigned long long)s->from,
			  (unsigned long long)s->to, root, head, k, n);
}

struct sealer {
	struct keys keys;
	struct reader reader;
	struct merkle tree;
	unsigned char last[SHA256_SIZE];
	uint64_t from; /* the first record in the tree */
	uint64_t seq;  /* the last record in the tree */
	bool has_seal; /* there is a seal to begin at */
	unsigned char want[SEAL_KEY];
	struct seal_result *ret;
};

static int member_hex(const struct line *line, const char *name,
		      unsigned char *ret, size_t len)
{
	struct buf b;
	struct value object;
	struct value v;
	int r = -EBADMSG;

	buf_init(&b, LINE_MAX_SIZE + 2);
	buf_puts(&b, "{");
	buf_add(&b, line->members, line->members_len);
	buf_puts(&b, "}");
	object = (struct value){ b.data, b.len };
	if (!b.error && value_get(&object, name, &v) && value_type(&v) == '"' &&
	    v.len == 2 * len + 2)
		r = hex_parse(v.p + 1, ret, len) < 0 ? -EBADMSG : 0;
	buf_done(&b);
	return r;
}

static int64_t member_int(const struct line *line, const char *name)
{
	struct buf b;
	struct value object;
	struct value v;
	int64_t n = -1;

	buf_init(&b, LINE_MAX_SIZE + 2);
	buf_puts(&b, "{");
	buf_add(&b, line->members, line->members_len);
	buf_puts(&b, "}");
	object = (struct value){ b.data, b.len };
	if (!b.error && value_get(&object, name, &v))
		n = value_int(&v, -1);
	buf_done(&b);
	return n;
}

static int keep_line(struct sealer *s, const struct line *line)
{
	free(s->ret->line);
	s->ret->line = strndup(line->text, line->len);
	return s->ret->line ? 0 : -ENOMEM;
}

static int take(struct sealer *s, const struct raw_line *raw, struct err *err)
{
	struct line line;
	bool is_first = s->seq == 0;

	if (raw->is_torn || line_parse(raw->text, raw->len, &line) < 0 ||
	    (!is_first && (line.seq != s->seq + 1 ||
			   memcmp(line.prev, s->last, SHA256_SIZE) != 0)))
		return err_set(err, EBADMSG,
			       "record %llu is not as it was written; look "
			       "with 'cordon audit verify'",
			       (unsigned long long)s->seq + 1);
	if (is_first && s->has_seal &&
	    (member_hex(&line, "next", s->want, SEAL_KEY) < 0 ||
	     keep_line(s, &line) < 0))
		return err_set(err, EBADMSG, "the last seal is damaged");
	if (is_first)
		s->from = line.seq;
	s->seq = line.seq;
	line_hash(raw->text, raw->len, s->last);
	merkle_add(&s->tree, s->last);
	return 0;
}

/* Reads up to the end. A torn line is the last writer's business. */
static int read_on(struct sealer *s, struct err *err)
{
	struct raw_line raw;
	int n;

	while ((n = reader_next(&s->reader, &raw)) > 0) {
		if (raw.is_torn) {
			reader_again(&s->reader, &raw);
			return 0;
		}
		n = take(s, &raw, err);
		if (n < 0)
			return n;
	}
	return n < 0 ? err_errno(err, -n, "read the ledger") : 0;
}

/* Nobody appends while this runs: what came meanwhile is read, and signed. */
static int make(void *arg, uint64_t seq, const unsigned char prev[SHA256_SIZE],
		struct buf *out, struct err *err)
{
	struct sealer *s = arg;
	unsigned char root[SHA256_SIZE];
	unsigned char sig[SEAL_SIG];
	struct verify_seal seal = { .root = root, .head = s->last };
	struct json j = { .out = out };
	char hex[2 * SEAL_SIG + 1];
	struct buf text;
	int r = read_on(s, err);

	if (r < 0)
		return r;
	if (s->seq + 1 != seq || memcmp(prev, s->last, SHA256_SIZE) != 0)
		return err_set(err, EBADMSG,
			       "the ledger does not end with record %llu",
			       (unsigned long long)seq - 1);
	merkle_root(&s->tree, root);
	seal.from = s->from;
	seal.to = s->seq;
	buf_init(&text, 1024);
	r = signed_text(&text, &seal, s->keys.epoch, public_of(s->keys.now),
			public_of(s->keys.next));
	if (r == 0)
		(void)crypto_sign_detached(sig, NULL,
					   (unsigned char *)text.data, text.len,
					   s->keys.now);
	buf_done(&text);
	if (r < 0)
		return err_errno(err, -r, "seal");
	json_open(&j, NULL, '{');
	json_int(&j, "epoch", (int64_t)s->keys.epoch);
	json_int(&j, "from", (int64_t)seal.from);
	json_int(&j, "to", (int64_t)seal.to);
	hex_format(root, sizeof(root), hex);
	json_str(&j, "root", hex);
	hex_format(s->last, sizeof(s->last), hex);
	json_str(&j, "head", hex);
	hex_format(public_of(s->keys.now), SEAL_KEY, hex);
	json_str(&j, "key", hex);
	hex_format(public_of(s->keys.next), SEAL_KEY, hex);
	json_str(&j, "next", hex);
	hex_format(sig, sizeof(sig), hex);
	json_str(&j, "signature", hex);
	json_close(&j, '}');
	s->ret->from = seal.from;
	s->ret->to = seal.to;
	s->ret->epoch = s->keys.epoch;
	return 0;
}

/* The seal as it was appended. */
static int fetch_line(struct sealer *s, struct err *err)
{
	struct raw_line raw;
	struct line line;
	int n = reader_next(&s->reader, &raw);

	if (n <= 0 || line_parse(raw.text, raw.len, &line) < 0 ||
	    keep_line(s, &line) < 0)
		return err_set(err, EIO, "read the seal that was written");
	return 0;
}

static int seal_all(struct sealer *s, struct ledger *l, struct err *err)
{
	unsigned char pub[SEAL_KEY];
	uint64_t after;
	int r = read_on(s, err);

	if (r < 0)
		return r;
	/* Only the last seal itself, or nothing at all, is new. */
	if (s->seq == 0 || (s->has_seal && s->seq == s->from))
		return 0;
	r = keys_load(&s->keys, s->has_seal ? s->want : NULL, err);
	if (r < 0)
		return r;
	(void)crypto_sign_keypair(pub, s->keys.next);
	after = s->keys.epoch + 1;
	r = key_write(s->keys.dir_fd, "key.next", s->keys.next, after, err);
	if (r == 0)
		r = ledger_append_made(l, "seal", make, s, &s->ret->seq, err);
	if (r == 0)
		r = ledger_sync(l, err);
	if (r == 0 &&
	    renameat(s->keys.dir_fd, "key.next", s->keys.dir_fd, "key") < 0)
		r = err_errno(err, errno, "rename 'key.next'");
	if (r == 0 && fsync(s->keys.dir_fd) < 0)
		r = err_errno(err, errno, "sync the ledger's directory");
	return r < 0 ? r : fetch_line(s, err);
}

int seal_make(const char *dir, struct seal_result *ret, struct err *err)
{
	struct sealer s = { .keys = { .dir_fd = NO_FD }, .ret = ret };
	struct ledger *l = NULL;
	uint64_t seq = 0;
	uint64_t offset = 0;
	uint32_t file = 1;
	int r;

	*ret = (struct seal_result){ 0 };
	if (sodium_init() < 0)
		return err_set(err, EIO, "start libsodium");
	r = ledger_open(dir, &l, err);
	if (r < 0)
		return r;
	r = ledger_lock_seal(l);
	if (r < 0)
		r = err_errno(err, -r, "lock '%s/head'", dir);
	else
		r = ledger_last_seal(l, &seq, &file, &offset, err);
	if (r == 0)
		r = reader_open(&s.reader, dir, file, offset, err);
	if (r < 0) {
		ledger_close(l);
		return r;
	}
	s.has_seal = seq > 0;
	merkle_init(&s.tree);
	s.keys.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = s.keys.dir_fd < 0 ? err_errno(err, errno, "open '%s'", dir)
			      : seal_all(&s, l, err);
	keys_done(&s.keys);
	reader_close(&s.reader);
	ledger_close(l);
	return r;
}

void seal_result_done(struct seal_result *r)
{
	free(r->line);
	r->line = NULL;
}

int seal_chain_init(struct seal_chain *c, const char *dir, const char *key_file,
		    struct err *err)
{
	char path[4200];
	char text[256] = "";
	struct stat st;
	ssize_t n;

	*c = (struct seal_chain){ .epoch = 1 };
	if (sodium_init() < 0)
		return err_set(err, EIO, "start libsodium");
	if (key_file)
		(void)snprintf(path, sizeof(path), "%s", key_file);
	else
		(void)snprintf(path, sizeof(path), "%s/key.pub", dir);
	/* One that was kept elsewhere may be reached in any way. */
	n = key_file ? io_read_file(AT_FDCWD, path, text, sizeof(text))
		     : read_small(AT_FDCWD, path, text, sizeof(text), &st);
	if (n == -ENOENT && !key_file)
		return 0;
	if ((n == -EMEDIUMTYPE || n == -ELOOP) && !key_file)
		return err_set(err, EBADMSG, "'%s' is not a file", path);
	if (n < 0)
		return err_errno(err, (int)-n, "read '%s'", path);
	if (pub_parse(text, (size_t)n, c->key) < 0)
		return err_set(err, EBADMSG, "'%s' is not a public key", path);
	c->has_key = true;
	return 0;
}

void seal_key_look(const char *dir, const struct seal_chain *c,
		   struct seal_key *ret)
{
	static const char *const names[] = { "key", "key.next" };
	_cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned char secret[SECRET];

	*ret = (struct seal_key){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct err unused = { 0 };
		struct stat st = { 0 };
		uint64_t epoch = 0;

		int r;

		/* Its mode is the sealer's business. */
		r = key_load(fd, names[i], secret, &epoch, &st, &unused);
		/* One that only its owner can look at is not judged. */
		ret->is_there |= r == 0 || r == -EACCES;
		ret->fits |= r == -EACCES;
		if (r < 0)
			continue;
		ret->fits |= epoch == c->epoch &&
			     memcmp(public_of(secret), c->key, SEAL_KEY) == 0;
		/* One that is not in place yet says nothing about seals. */
		if (i == 0)
			ret->epoch = epoch;
	}
	sodium_memzero(secret, sizeof(secret));
}

/* What is wrong with a seal, NULL if nothing is. */
static const char *seal_fault(struct seal_chain *c, const struct verify_seal *s)
{
	unsigned char root[SHA256_SIZE];
	unsigned char head[SHA256_SIZE];
	unsigned char key[SEAL_KEY];
	unsigned char next[SEAL_KEY];
	unsigned char sig[SEAL_SIG];
	struct buf text;
	int r;

	if (!c->has_key)
		return "the public key ('key.pub') is gone";
	if (member_hex(s->line, "root", root, sizeof(root)) < 0 ||
	    member_hex(s->line, "head", head, sizeof(head)) < 0 ||
	    member_hex(s->line, "key", key, sizeof(key)) < 0 ||
	    member_hex(s->line, "next", next, sizeof(next)) < 0 ||
	    member_hex(s->line, "signature", sig, sizeof(sig)) < 0)
		return "it does not have the members of a seal";
	if (member_int(s->line, "epoch") != (int64_t)c->epoch)
		return "it is of another epoch than its place";
	if (memcmp(key, c->key, sizeof(key)) != 0)
		return "it was made with another key than the one in force "
		       "there";
	if (member_int(s->line, "from") != (int64_t)s->from ||
	    member_int(s->line, "to") != (int64_t)s->to)
		return "it is about other records than those before it";
	if (memcmp(root, s->root, sizeof(root)) != 0 ||
	    memcmp(head, s->head, sizeof(head)) != 0)
		return "the records before it are not those that were sealed";
	buf_init(&text, 1024);
	r = signed_text(&text, s, c->epoch, key, next);
	if (r == 0)
		r = crypto_sign_verify_detached(sig, (unsigned char *)text.data,
						text.len, key);
	buf_done(&text);
	if (r != 0)
		return "its signature is wrong";
	memcpy(c->key, next, sizeof(next));
	c->epoch++;
	return NULL;
}

int seal_check(struct seal_chain *c, const struct verify_seal *s,
	       struct err *err)
{
	const char *what = seal_fault(c, s);

	return what ? err_set(err, EBADMSG, "%s", what) : 0;
}
