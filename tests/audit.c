/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ledger under attack and under faults: audit.tsv, and L05, L06, L07 of
 * lifecycle.tsv. What needs the command is in tests/cli/audit.bats.
 *
 * The calls with which the ledger writes pass through here (--wrap): they can
 * be made to fail, and are noted for the test of a power cut.
 */

#include "tests/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <time.h>

#include "base/util.h"
#include "desk/seal.h"
#include "ledger/head.h"
#include "ledger/ledger.h"
#include "ledger/line.h"
#include "ledger/merkle.h"
#include "ledger/verify.h"

#define MEMBERS "{\"run\":\"r\",\"path\":\"p\",\"size\":1}"

/* ---- calls that can fail, and a note of them ---- */

static struct {
	int error;  /* of the next calls; 0: none */
	int which;  /* 'w' write, 'p' pwrite, 's' fdatasync, 't' ftruncate */
	int after;  /* so many calls of that sort succeed first */
	int count;  /* how many fail, -1: all from then on */
	size_t cut; /* a failing write writes so much first; then it is short */
} fault;

enum op_type { OP_WRITE, OP_PWRITE, OP_TRUNCATE, OP_SYNC, OP_ACK };

struct op {
	enum op_type type;
	char name[32];
	off_t at;
	size_t len;
	char *data;
	uint64_t seq; /* OP_ACK */
};

static struct op ops[4096];
static size_t n_ops;
static bool is_noting;

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __real_pwrite64(int fd, const void *data, size_t len, off_t at);
int __real_ftruncate64(int fd, off_t len);
int __real_fdatasync(int fd);
int __real_fsync(int fd);
ssize_t __wrap_write(int fd, const void *data, size_t len);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t at);
int __wrap_ftruncate64(int fd, off_t len);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __real_openat64(int at, const char *name, int flags, mode_t mode);
int __wrap_openat64(int at, const char *name, int flags, mode_t mode);

/* Called once when a reader looks for the second file. */
static void (*before_second)(void);

int __wrap_openat64(int at, const char *name, int flags, mode_t mode)
{
	void (*first)(void) = before_second;

	if (first && (flags & O_ACCMODE) == O_RDONLY &&
	    strcmp(name, "000002.jsonl") == 0) {
		before_second = NULL;
		first();
	}
	return __real_openat64(at, name, flags, mode);
}

static bool fails(int which)
{
	if (!fault.error || fault.which != which)
		return false;
	if (fault.after > 0) {
		fault.after--;
		return false;
	}
	if (fault.count == 0)
		return false;
	if (fault.count > 0)
		fault.count--;
	errno = fault.error;
	return true;
}

static void note(enum op_type type, int fd, off_t at, const void *data,
		 size_t len)
{
	char link[64];
	char path[512] = "";
	struct op *o = &ops[n_ops];

	if (!is_noting || n_ops == ARRAY_SIZE(ops))
		return;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) < 0 || !strstr(path, "/L/"))
		return;
	n_ops++;
	*o = (struct op){ .type = type, .at = at, .len = len };
	(void)snprintf(o->name, sizeof(o->name), "%.31s",
		       strrchr(path, '/') + 1);
	if (data) {
		o->data = malloc(len);
		memcpy(o->data, data, len);
	}
}

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	off_t at = is_noting ? lseek(fd, 0, SEEK_END) : 0;
	ssize_t n;

	if (fails('w')) {
		if (fault.cut == 0)
			return -1;
		return __real_write(fd, data, MIN(fault.cut, len - 1));
	}
	n = __real_write(fd, data, len);
	if (n > 0)
		note(OP_WRITE, fd, at, data, (size_t)n);
	return n;
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t at)
{
	if (fails('p'))
		return -1;
	note(OP_PWRITE, fd, at, data, len);
	return __real_pwrite64(fd, data, len, at);
}

int __wrap_ftruncate64(int fd, off_t len)
{
	if (fails('t'))
		return -1;
	note(OP_TRUNCATE, fd, len, NULL, 0);
	return __real_ftruncate64(fd, len);
}

int __wrap_fdatasync(int fd)
{
	if (fails('s'))
		return -1;
	note(OP_SYNC, fd, 0, NULL, 0);
	return is_noting ? 0 : __real_fdatasync(fd);
}

int __wrap_fsync(int fd)
{
	if (fails('f'))
		return -1;
	note(OP_SYNC, fd, 0, NULL, 0);
	return is_noting ? 0 : __real_fsync(fd);
}

/* ---- a ledger for one test ---- */

static char top[64];
static char dir[80];

static void remove_all(const char *path)
{
	char name[400];
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		if (unlink(name) < 0)
			remove_all(name);
	}
	if (d)
		(void)closedir(d);
	(void)rmdir(path);
}

static void clean_up(void)
{
	remove_all(top);
}

static void begin(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/cordon-audit-XXXXXX");
	if (!mkdtemp(top))
		_exit(1);
	(void)snprintf(dir, sizeof(dir), "%s/L", top);
}

#define LEDGER_TEST(name)                                                      \
	static void name##_body(void);                                         \
	TEST(name)                                                             \
	{                                                                      \
		begin();                                                       \
		name##_body();                                                 \
		clean_up();                                                    \
	}                                                                      \
	static void name##_body(void)

static struct ledger *open_ledger(void)
{
	struct err err = { 0 };
	struct ledger *l = NULL;

	if (ledger_open(dir, &l, &err) < 0)
		printf("# %s\n", err.text);
	CHECK(l != NULL);
	return l;
}

static int add(struct ledger *l)
{
	struct err err = { 0 };
	int r = ledger_append(l, "file.in", MEMBERS, NULL, &err);

	return r < 0 ? r : ledger_sync(l, &err);
}

static void fill(int n)
{
	struct ledger *l = open_ledger();

	for (int i = 0; l && i < n; i++)
		CHECK_INT(add(l), 0);
	ledger_close(l);
}

static void seal_it(void)
{
	struct seal_result s;
	struct err err = { 0 };

	CHECK_INT(seal_make(dir, &s, &err), 0);
	CHECK_STR(err.text, "");
	CHECK(s.seq > 0);
	seal_result_done(&s);
}

static int on_seal(void *arg, const struct verify_seal *s, struct err *err)
{
	return seal_check(arg, s, err);
}

static struct verify_result look(void)
{
	struct seal_chain chain;
	struct verify_options o = { .dir = dir,
				    .on_seal = on_seal,
				    .arg = &chain };
	struct verify_result v = { .fault = VERIFY_FAULTS };
	struct err err = { 0 };

	if (seal_chain_init(&chain, dir, NULL, &err) < 0) {
		v.fault = VERIFY_SEAL;
		return v;
	}
	if (verify(&o, &v, &err) < 0) {
		printf("# %s\n", err.text);
		v.fault = VERIFY_FAULTS;
	}
	return v;
}

static void path_of(const char *name, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s/%s", dir, name);
}

static char *load(const char *name, size_t *ret_len)
{
	char path[200];
	char *data = calloc(1, 4 << 20);
	int fd;
	ssize_t n;

	path_of(name, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, data, (4 << 20) - 1);
	if (fd >= 0)
		(void)close(fd);
	*ret_len = n < 0 ? 0 : (size_t)n;
	return data;
}

static void store(const char *name, const char *data, size_t len)
{
	char path[200];
	int fd;

	path_of(name, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && __real_write(fd, data, len) == (ssize_t)len);
	(void)close(fd);
}

/* The lines of the first file, each ended by NUL instead of its newline. */
static size_t split(char *data, size_t len, char **lines, size_t max)
{
	size_t n = 0;

	for (char *p = data; p < data + len && n < max;) {
		char *end = memchr(p, '\n', (size_t)(data + len - p));

		if (!end)
			break;
		*end = '\0';
		lines[n++] = p;
		p = end + 1;
	}
	return n;
}

static void store_lines(char **lines, size_t n)
{
	struct buf b;

	buf_init(&b, 4 << 20);
	for (size_t i = 0; i < n; i++) {
		buf_puts(&b, lines[i]);
		buf_puts(&b, "\n");
	}
	store("000001.jsonl", b.len ? b.data : "", b.len);
	buf_done(&b);
}

static void drop(const char *name)
{
	char path[200];

	path_of(name, path, sizeof(path));
	(void)unlink(path);
}

/* What somebody does who knows the format: checksum and chain are right. */
static void rechain(char **lines, size_t n)
{
	unsigned char prev[SHA256_SIZE] = { 0 };

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(lines[i]);
		char hex[65];
		char crc[9];

		hex_format(prev, sizeof(prev), hex);
		memcpy(lines[i] + 9, hex, 64);
		(void)snprintf(crc, sizeof(crc), "%08x",
			       crc32c(lines[i], len - 18));
		memcpy(lines[i] + len - 10, crc, 8);
		line_hash(lines[i], len, prev);
	}
}

#define CHECK_FAULT(v, what, seq)                                              \
	do {                                                                   \
		CHECK_STR(verify_fault_name((v).fault),                        \
			  verify_fault_name(what));                            \
		CHECK_INT((long long)(v).bad, seq);                            \
		CHECK((v).text[0] != '\0');                                    \
	} while (0)

/* ---- the control ---- */

LEDGER_TEST(a00_control)
{
	struct verify_result v;
	struct stat st;
	char path[200];

	fill(5);
	seal_it();
	fill(2);
	v = look();
	CHECK_INT(v.fault, VERIFY_INTACT);
	CHECK_INT((long long)v.records, 8);
	CHECK_INT((long long)v.sealed, 5);
	CHECK(stat(dir, &st) == 0 && (st.st_mode & 0777) == 0700);
	path_of("000001.jsonl", path, sizeof(path));
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	path_of("key", path, sizeof(path));
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
}

/* ---- A01, A02 ---- */

static char *lines[64];
static char *data;

static size_t load_lines(void)
{
	size_t len;

	data = load("000001.jsonl", &len);
	return split(data, len, lines, ARRAY_SIZE(lines));
}

LEDGER_TEST(a01_one_byte_in_the_middle)
{
	struct verify_result v;
	size_t n;

	fill(6);
	n = load_lines();
	strstr(lines[2], "\"size\":1")[7] = '2';
	store_lines(lines, n);
	v = look();
	CHECK_FAULT(v, VERIFY_EDITED, 3);
}

/* The checksum made to fit: the next record has the hash. */
LEDGER_TEST(a01_with_its_checksum)
{
	struct verify_result v;
	char crc[9];
	size_t n;
	size_t len;

	fill(6);
	n = load_lines();
	strstr(lines[2], "\"size\":1")[7] = '2';
	len = strlen(lines[2]);
	(void)snprintf(crc, sizeof(crc), "%08x", crc32c(lines[2], len - 18));
	memcpy(lines[2] + len - 10, crc, 8);
	store_lines(lines, n);
	v = look();
	CHECK_FAULT(v, VERIFY_EDITED, 3);
}

/* The last record too, though none follows: the file head has its hash. */
LEDGER_TEST(a01_last_record_with_its_checksum)
{
	struct verify_result v;
	size_t n;
	struct ledger *l;

	fill(6);
	n = load_lines();
	strstr(lines[5], "\"size\":1")[7] = '2';
	rechain(lines, n);
	store_lines(lines, n);
	v = look();
	CHECK_FAULT(v, VERIFY_EDITED, 6);
	/* And nobody writes on. */
	l = open_ledger();
	CHECK_INT(add(l), -EBADMSG);
	ledger_close(l);
}

LEDGER_TEST(a02_deleted)
{
	struct verify_result v;
	size_t n;

	fill(6);
	n = load_lines();
	for (size_t i = 3; i + 1 < n; i++)
		lines[i] = lines[i + 1];
	store_lines(lines, n - 1);
	v = look();
	CHECK_FAULT(v, VERIFY_MISSING, 4);
}

LEDGER_TEST(a02_swapped)
{
	struct verify_result v;
	size_t n;
	char *swap;

	fill(6);
	n = load_lines();
	swap = lines[2];
	lines[2] = lines[3];
	lines[3] = swap;
	store_lines(lines, n);
	v = look();
	CHECK_FAULT(v, VERIFY_REORDERED, 3);
}

LEDGER_TEST(a02_duplicated)
{
	struct verify_result v;
	size_t n;

	fill(6);
	n = load_lines();
	for (size_t i = n; i > 3; i--)
		lines[i] = lines[i - 1];
	store_lines(lines, n + 1);
	v = look();
	CHECK_FAULT(v, VERIFY_DUPLICATED, 4);
}

LEDGER_TEST(a02_first_deleted)
{
	struct verify_result v;
	size_t n;

	fill(6);
	n = load_lines();
	store_lines(lines + 1, n - 1);
	v = look();
	CHECK_FAULT(v, VERIFY_MISSING, 1);
}

LEDGER_TEST(a02_a_file_deleted)
{
	struct verify_result v;
	struct ledger *l = open_ledger();

	ledger_set_file_size(l, 600);
	for (int i = 0; i < 12; i++)
		CHECK_INT(add(l), 0);
	CHECK(ledger_take_seal_due(l)); /* there is a new file */
	ledger_close(l);
	v = look();
	CHECK_INT(v.fault, VERIFY_INTACT);
	CHECK(v.files > 3);
	drop("000002.jsonl");
	v = look();
	CHECK_STR(verify_fault_name(v.fault), "missing");
	drop("000001.jsonl");
	v = look();
	CHECK_FAULT(v, VERIFY_MISSING, 1);
}

/* How often a writer that stays hears that a seal is due, in n records. */
static int count_due(struct ledger *l, int n)
{
	int due = 0;

	for (int i = 0; i < n; i++) {
		CHECK_INT(add(l), 0);
		due += ledger_take_seal_due(l);
	}
	return due;
}

LEDGER_TEST(a07_a_seal_is_due_once)
{
	struct ledger *l = open_ledger();

	CHECK_INT(count_due(l, LEDGER_SEAL_EVERY - 1), 0);
	/* Nobody signs: it is said again when as many again wait. */
	CHECK_INT(count_due(l, LEDGER_SEAL_EVERY), 1);
	CHECK_INT(count_due(l, LEDGER_SEAL_EVERY), 1);
	/* Signed, it counts from there. */
	seal_it();
	CHECK_INT(count_due(l, LEDGER_SEAL_EVERY - 1), 0);
	CHECK_INT(count_due(l, LEDGER_SEAL_EVERY / 2), 1);
	ledger_close(l);
}

/* A link, a pipe, a device: what has a file's name and is none. */
LEDGER_TEST(a02_not_a_file)
{
	struct verify_result v;
	struct ledger *l = open_ledger();
	char path[200];
	char other[300];

	ledger_set_file_size(l, 600);
	for (int i = 0; i < 12; i++)
		CHECK_INT(add(l), 0);
	ledger_close(l);
	/* The same bytes, elsewhere. */
	path_of("000002.jsonl", path, sizeof(path));
	(void)snprintf(other, sizeof(other), "%s/other", top);
	CHECK(rename(path, other) == 0 && symlink(other, path) == 0);
	v = look();
	CHECK_STR(verify_fault_name(v.fault), "missing");
	CHECK_HAS(v.text, "'000002.jsonl' is not a file");
	CHECK(unlink(path) == 0 && rename(other, path) == 0);
	CHECK_INT(look().fault, VERIFY_INTACT);
	path_of("000001.jsonl", path, sizeof(path));
	CHECK(rename(path, other) == 0 && mkfifo(path, 0600) == 0);
	v = look();
	CHECK_FAULT(v, VERIFY_MISSING, 1);
	CHECK_HAS(v.text, "'000001.jsonl' is not a file");
	CHECK(unlink(path) == 0 && rename(other, path) == 0);
	path_of("head", path, sizeof(path));
	CHECK(rename(path, other) == 0 && mkfifo(path, 0600) == 0);
	CHECK_FAULT(look(), VERIFY_EDITED, 0);
	CHECK(unlink(path) == 0 && symlink(other, path) == 0);
	CHECK_FAULT(look(), VERIFY_EDITED, 0);
	CHECK(unlink(path) == 0);
	(void)unlink(other);
}

/* One more in the first file, then one in the second. */
static void write_on(void)
{
	struct ledger *l = open_ledger();

	CHECK_INT(add(l), 0);
	ledger_set_file_size(l, 10);
	CHECK_INT(add(l), 0);
	ledger_close(l);
}

/* A reader that has seen a file's end while the next one is made. */
LEDGER_TEST(a12_read_while_files_change)
{
	struct verify_result v;

	fill(2);
	before_second = write_on;
	v = look();
	CHECK(!before_second);
	CHECK_STR(v.text, "");
	CHECK_INT(v.fault, VERIFY_INTACT);
	CHECK_INT((long long)v.records, 4);
}

/* ---- A03, A04, A05, A07 ---- */

LEDGER_TEST(a03_truncated_tail)
{
	struct verify_result v;
	size_t n;

	fill(6);
	n = load_lines();
	store_lines(lines, n - 2);
	v = look();
	CHECK_FAULT(v, VERIFY_TRUNCATED, 5);
	/* Who also takes the file head leaves an unsealed tail: only a head
	 * that is kept elsewhere tells (audit.bats). */
	drop("head");
	v = look();
	CHECK_INT(v.fault, VERIFY_INTACT);
	CHECK(!v.has_head);
	CHECK_INT((long long)v.sealed, 0);
}

LEDGER_TEST(a04_rewritten_between_seals)
{
	struct verify_result v;
	size_t n;

	fill(4);
	seal_it();
	fill(2);
	drop("head");
	v = look();
	CHECK_INT(v.fault, VERIFY_INTACT); /* the control */
	n = load_lines();
	strstr(lines[1], "\"size\":1")[7] = '2';
	rechain(lines, n);
	store_lines(lines, n);
	v = look();
	CHECK_FAULT(v, VERIFY_SEAL, 5);
	CHECK_HAS(v.text, "not those that were sealed");
}

/* A07: every element between two seals counts, also in the last stretch. */
LEDGER_TEST(a07_each_record_under_a_seal)
{
	fill(3);
	seal_it();
	fill(3);
	seal_it();
	drop("head");
	for (size_t i = 0; i < 8; i++) {
		struct verify_result v;
		size_t n = load_lines();
		char *size = strstr(lines[i], "\"size\":1");

		if (size) {
			size[7] = '2';
			rechain(lines, n);
		}
		CHECK_INT((long long)n, 8);
		store_lines(lines, n);
		v = look();
		CHECK_INT(v.fault, size ? VERIFY_SEAL : VERIFY_INTACT);
		/* and back */
		if (size) {
			size[7] = '1';
			rechain(lines, n);
			store_lines(lines, n);
		}
		CHECK_INT(look().fault, VERIFY_INTACT);
		free(data);
	}
}

/* A seal as its format says, made by somebody with a key. */
static void forge(char *line, const unsigned char *secret, int epoch,
		  const char *root, const char *head)
{
	unsigned char sig[SEAL_SIG];
	char key[65];
	char next[65];
	char hex[129];
	char text[1024];
	unsigned long long from = 0;
	unsigned long long to = 0;
	char *p = strstr(line, "\"from\":");

	(void)sscanf(p, "\"from\":%llu,\"to\":%llu", &from, &to);
	hex_format(secret + 32, 32, key);
	memcpy(next, strstr(line, "\"next\":\"") + 8, 64);
	next[64] = '\0';
	(void)snprintf(text, sizeof(text),
		       "cordon-ledger-seal 1\nepoch %d\nfrom %llu\nto %llu\n"
		       "root %s\nhead %s\nkey %s\nnext %s\n",
		       epoch, from, to, root, head, key, next);
	(void)crypto_sign_detached(sig, NULL, (unsigned char *)text,
				   strlen(text), secret);
	hex_format(sig, sizeof(sig), hex);
	strstr(line, "\"epoch\":")[8] = (char)('0' + epoch);
	memcpy(strstr(line, "\"root\":\"") + 8, root, 64);
	memcpy(strstr(line, "\"head\":\"") + 8, head, 64);
	memcpy(strstr(line, "\"key\":\"") + 7, key, 64);
	memcpy(strstr(line, "\"signature\":\"") + 13, hex, 128);
}

/* The root and head of lines[from..to], as a seal has them. */
static void tree_of(size_t from, size_t to, char root[65], char head[65])
{
	unsigned char h[SHA256_SIZE];
	struct merkle m;

	merkle_init(&m);
	for (size_t i = from; i <= to; i++) {
		line_hash(lines[i], strlen(lines[i]), h);
		merkle_add(&m, h);
	}
	hex_format(h, sizeof(h), head);
	merkle_root(&m, h);
	hex_format(h, sizeof(h), root);
}

static void load_key(const char *name, unsigned char secret[64])
{
	size_t len;
	char *text = load(name, &len);
	char *p = strchr(text, ' ');

	CHECK(p && hex_parse(p + 1, secret, 64) == 0);
	free(text);
}

/*
 * A05: who has today's key changes an old record and seals it again. The
 * control shows that the forgery itself is good: with the key of that epoch,
 * kept from before, nothing would be seen.
 */
LEDGER_TEST(a05_sealed_again_with_a_newer_key)
{
	unsigned char first[64];
	unsigned char now[64];
	char root[65];
	char head[65];
	struct verify_result v;
	size_t n;

	/* A key is made with the first seal; take epoch 2's before it goes. */
	fill(2);
	seal_it();
	load_key("key", first);
	fill(2);
	seal_it();
	fill(2);
	seal_it();
	load_key("key", now);
	CHECK(memcmp(first, now, sizeof(now)) != 0);
	drop("head");
	n = load_lines();
	CHECK_INT((long long)n, 9);
	/* records 3 (seal) 4 5 under seal 6; record 6 to 8 under seal 9 */
	strstr(lines[3], "\"size\":1")[7] = '2';
	rechain(lines, n);
	tree_of(2, 4, root, head);
	forge(lines[5], first, 2, root, head);
	rechain(lines, n);
	store_lines(lines, 6);
	v = look();
	CHECK_INT(v.fault, VERIFY_INTACT); /* the control */
	CHECK_INT((long long)v.seals, 2);

	forge(lines[5], now, 2, root, head);
	rechain(lines, n);
	store_lines(lines, 6);
	v = look();
	CHECK_FAULT(v, VERIFY_SEAL, 6);
	CHECK_HAS(v.text, "another key");
	forge(lines[5], now, 4, root, head);
	rechain(lines, n);
	store_lines(lines, 6);
	v = look();
	CHECK_FAULT(v, VERIFY_SEAL, 6);
	CHECK_HAS(v.text, "another epoch");
	/* The old key is nowhere any more. */
	load_key("key", first);
	CHECK(memcmp(first, now, sizeof(now)) == 0);
}

/* A key that key.pub does not check seals nothing. */
LEDGER_TEST(a05_key_replaced_before_the_first_seal)
{
	struct seal_result s;
	struct err err = { 0 };
	size_t len;
	char *pub;

	fill(2);
	seal_it();
	pub = load("key.pub", &len);
	pub[30] = pub[30] == '0' ? '1' : '0';
	drop("head");
	drop("000001.jsonl");
	fill(2);
	store("key.pub", pub, len);
	free(pub);
	CHECK_INT(seal_make(dir, &s, &err), -EBADMSG);
	CHECK_HAS(err.text, "key.pub");
	seal_result_done(&s);
	CHECK_INT(look().fault, VERIFY_INTACT);
}

/* A head of nothing but zeros, beside seals. */
LEDGER_TEST(a03_head_emptied)
{
	static const char none[HEAD_SIZE];
	struct verify_result v;

	fill(4);
	seal_it();
	fill(2);
	store("head", none, sizeof(none));
	v = look();
	CHECK_STR(verify_fault_name(v.fault), "edited");
	CHECK_HAS(v.text, "emptied");
}

/* A maker of seals that died before its next key was in place. */
LEDGER_TEST(a05_key_after_a_crash)
{
	size_t len;
	char *key;
	char *next;
	char from[200];
	char to[200];

	fill(2);
	seal_it();
	key = load("key", &len);
	fill(2);
	seal_it();
	next = load("key", &len);
	path_of("key", from, sizeof(from));
	path_of("key.next", to, sizeof(to));
	CHECK(rename(from, to) == 0);
	store("key", key, len);
	fill(1);
	seal_it();
	CHECK_INT(look().fault, VERIFY_INTACT);
	CHECK_INT((long long)look().seals, 3);
	/* And one whose next key is lost says so. */
	store("key", next, len);
	fill(1);
	{
		struct seal_result s;
		struct err err = { 0 };

		CHECK(seal_make(dir, &s, &err) < 0);
		CHECK_HAS(err.text, "key");
		seal_result_done(&s);
	}
}

/* ---- A08, A12: killed writers ---- */

static int writer(int out, unsigned int seed)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };

	ledger_set_file_size(l, 2000 + seed % 3000);
	for (;;) {
		uint64_t seq = 0;

		if (ledger_append(l, "file.in", MEMBERS, &seq, &err) < 0 ||
		    ledger_sync(l, &err) < 0) {
			printf("# %s\n", err.text);
			return 1;
		}
		if (__real_write(out, &seq, sizeof(seq)) != sizeof(seq))
			return 1;
	}
}

static unsigned char seen[1 << 20];

/* Starts eight, kills them after a while, reads what they told. */
static uint64_t kill_writers(unsigned int round, uint64_t *ret_most)
{
	pid_t pids[8];
	uint64_t seq;
	uint64_t told = 0;
	int out[2];

	CHECK(pipe2(out, O_CLOEXEC) == 0);
	(void)fflush(stdout);
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(writer(out[1], round * 8 + i));
	}
	(void)close(out[1]);
	(void)usleep(20000 + round * 7000);
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		CHECK(kill(pids[i], SIGKILL) == 0);
		(void)waitpid(pids[i], NULL, 0);
	}
	for (; read(out[0], &seq, sizeof(seq)) == sizeof(seq); told++) {
		CHECK(seq < sizeof(seen) && !seen[seq]);
		seen[seq] = 1;
		*ret_most = MAX(*ret_most, seq);
	}
	(void)close(out[0]);
	return told;
}

/* Each number that was told is there once; nothing is there twice. */
LEDGER_TEST(a08_a12_writers_killed)
{
	struct verify_result v = { 0 };
	uint64_t most = 0;
	uint64_t told = 0;

	for (unsigned int round = 0; round < 12; round++) {
		told += kill_writers(round, &most);
		/* What the last one left half done, the next one mends. */
		fill(1);
		v = look();
		CHECK_INT(v.fault, VERIFY_INTACT);
		CHECK(v.records >= most);
		if (v.fault)
			printf("# %s\n", v.text);
		most = MAX(most, v.records);
	}
	printf("# %llu records told of, %llu there\n", (unsigned long long)told,
	       (unsigned long long)v.records);
	CHECK(told > 20);
}

LEDGER_TEST(a12_torn_write)
{
	static const char *const tails[] = { "{", "{\"prev\":\"00", "x\n", "\n",
					     "{}\n{}\n" };

	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		struct verify_result v;
		size_t len;
		char *text;
		char *last;

		fill(2);
		text = load("000001.jsonl", &len);
		(void)strcpy(text + len, tails[i]);
		store("000001.jsonl", text, len + strlen(tails[i]));
		v = look();
		CHECK(v.fault != VERIFY_INTACT);
		fill(1);
		v = look();
		CHECK_INT(v.fault, VERIFY_INTACT);
		free(text);
		text = load("000001.jsonl", &len);
		last = strstr(text, "\"kind\":\"recovery\"");
		CHECK(last && strstr(last, "a write did not finish"));
		free(text);
		drop("000001.jsonl");
		drop("head");
	}
}

/* What was cut is not forgotten where there is no room to say so. */
LEDGER_TEST(a12_torn_write_and_a_full_disk)
{
	static const char which[] = "wpt";
	static const char torn[13] = "{\"prev\":\"torn";

	fill(2);
	for (size_t i = 0; i < 3; i++) {
		struct ledger *l = open_ledger();
		size_t len;
		char *text = load("000001.jsonl", &len);
		size_t had = 0;
		size_t have = 0;

		for (char *p = text; (p = strstr(p, "\"recovery\"")); p++)
			had++;
		memcpy(text + len, torn, sizeof(torn));
		store("000001.jsonl", text, len + sizeof(torn));
		free(text);
		fault.error = ENOSPC;
		fault.which = (unsigned char)which[i];
		fault.after = 0;
		fault.count = 1;
		CHECK(add(l) < 0);
		fault.error = 0;
		CHECK_INT(add(l), 0);
		ledger_close(l);
		text = load("000001.jsonl", &len);
		for (char *p = text; (p = strstr(p, "\"recovery\"")); p++)
			have++;
		CHECK(have > had);
		free(text);
		CHECK_INT(look().fault, VERIFY_INTACT);
	}
}

/* ---- A09 ---- */

LEDGER_TEST(a09_injection)
{
	static const char *const argv[] = {
		"echo",          "x\n{\"seq\":2,\"kind\":\"run.end\"}\n",
		"\"},{\"a\":\"", "\x1b[2J\x7f\x01",
		"\xff\xfe",      NULL
	};
	struct ledger_run_start s = { .run = "r\n1",
				      .decision = "allow",
				      .agent = "a\"b\\c\nd",
				      .argv = argv };
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	struct verify_result v;
	size_t len;
	char *text;

	CHECK_INT(ledger_run_start(l, &s, &err), 0);
	CHECK_STR(err.text, "");
	/* Somebody who writes members by hand is refused. */
	CHECK_INT(ledger_append(l, "file.in",
				"{\"run\":\"a\nb\",\"path\":\"p\",\"size\":1}",
				NULL, &err),
		  -EINVAL);
	CHECK_INT(ledger_append(l, "file.in",
				"{\"run\":\"a\",\"path\":\"p\",\"size\":1},"
				"{\"x\":1}",
				NULL, &err),
		  -EINVAL);
	ledger_close(l);
	v = look();
	CHECK_INT(v.fault, VERIFY_INTACT);
	CHECK_INT((long long)v.records, 1);
	text = load("000001.jsonl", &len);
	for (size_t i = 0; i + 1 < len; i++)
		CHECK((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
	CHECK(text[len - 1] == '\n');
}

/* ---- A10, L05: the disk fails ---- */

static const int disk_errors[] = { ENOSPC, EIO, EBADF, EDQUOT, EROFS };

/* One append and sync with this fault: it must fail, and afterwards work. */
static void with_fault(int which, int error, size_t cut, int after)
{
	struct ledger *l = open_ledger();
	struct verify_result before = look();
	struct verify_result v;
	struct err err = { 0 };
	int r;

	memset(&fault, 0, sizeof(fault));
	fault.which = which;
	fault.error = error;
	fault.cut = cut;
	fault.after = after;
	fault.count = 1;
	r = ledger_append(l, "file.in", MEMBERS, NULL, &err);
	if (r == 0)
		r = ledger_sync(l, &err);
	CHECK(r < 0);
	CHECK(err.text[0]);
	CHECK_INT(fault.count, 0); /* it was met */
	memset(&fault, 0, sizeof(fault));
	v = look();
	CHECK(v.records >= before.records);
	CHECK(v.fault == VERIFY_INTACT || v.is_torn);
	CHECK_INT(add(l), 0);
	v = look();
	CHECK_INT(v.fault, VERIFY_INTACT);
	if (v.fault)
		printf("# %s\n", v.text);
	CHECK(v.records > before.records);
	ledger_close(l);
}

LEDGER_TEST(a10_l05_each_call_fails)
{
	fill(3);
	for (size_t i = 0; i < ARRAY_SIZE(disk_errors); i++) {
		with_fault('w', disk_errors[i], 0, 0);
		with_fault('p', disk_errors[i], 0, 0); /* mark appended */
		with_fault('p', disk_errors[i], 0, 1); /* mark synced */
		with_fault('s', disk_errors[i], 0, 0);
	}
}

LEDGER_TEST(a10_l05_short_writes)
{
	fill(3);
	for (size_t cut = 1; cut < 200; cut += 13)
		with_fault('w', ENOSPC, cut, 0);
}

/* Short, and the half line cannot be taken back either. */
LEDGER_TEST(a10_l05_short_and_stuck)
{
	struct ledger *l;
	size_t len;
	char *text;

	fill(3);
	l = open_ledger();
	/* The line is longer than this: what was written stays. */
	text = load("000001.jsonl", &len);
	memset(&fault, 0, sizeof(fault));
	fault.which = 't';
	fault.error = EIO;
	fault.count = -1;
	text[len] = '{';
	store("000001.jsonl", text, len + 1);
	CHECK(add(l) < 0); /* it cannot be cut */
	memset(&fault, 0, sizeof(fault));
	CHECK_INT(add(l), 0);
	CHECK_INT(look().fault, VERIFY_INTACT);
	ledger_close(l);
}

/* After a failed fdatasync the same bytes are written once more. */
LEDGER_TEST(l05_failed_sync_is_not_forgotten)
{
	struct ledger *a;
	struct ledger *b;
	struct err err = { 0 };
	size_t len;
	char *text;

	fill(2);
	a = open_ledger();
	b = open_ledger();
	CHECK_INT(ledger_append(a, "file.in", MEMBERS, NULL, &err), 0);
	CHECK_INT(ledger_append(b, "file.in", MEMBERS, NULL, &err), 0);
	fault.which = 's';
	fault.error = EIO;
	fault.count = 1;
	CHECK_INT(ledger_sync(a, &err), -EIO);
	/* The kernel would say yes now; the ledger does not. */
	CHECK_INT(ledger_sync(b, &err), -EIO);
	CHECK_INT(ledger_sync(a, &err), -EIO);
	CHECK_INT(add(a), 0);
	CHECK_INT(ledger_sync(b, &err), 0);
	text = load("000001.jsonl", &len);
	CHECK_HAS(text, "\"rewritten\":");
	CHECK_INT(look().fault, VERIFY_INTACT);
	ledger_close(a);
	ledger_close(b);
}

/* Somebody else's, or writable for others: not written to. */
LEDGER_TEST(a10_not_ours)
{
	struct ledger *l = NULL;
	struct err err = { 0 };

	fill(1);
	CHECK(chmod(dir, 0777) == 0);
	CHECK_INT(ledger_open(dir, &l, &err), -EPERM);
	CHECK(chmod(dir, 0700) == 0);
	CHECK(chmod(top, 0777) == 0);
	CHECK_INT(ledger_open(dir, &l, &err), -EPERM);
	CHECK_HAS(err.text, "above");
	CHECK(chmod(top, 0700) == 0);
	drop("head");
	CHECK_INT(ledger_open(dir, &l, &err), -EBADMSG);
	CHECK_HAS(err.text, "head");
}

/* The same for one file of it, and for what is no file. */
LEDGER_TEST(a10_a_file_not_ours)
{
	struct ledger *l;
	struct err err = { 0 };
	char path[200];

	fill(1);
	path_of("000001.jsonl", path, sizeof(path));
	CHECK(chmod(path, 0666) == 0);
	l = open_ledger();
	CHECK_INT(ledger_append(l, "file.in", MEMBERS, NULL, &err), -EPERM);
	CHECK_HAS(err.text, "not ours alone");
	if (geteuid() == 0) {
		CHECK(chmod(path, 0600) == 0 && chown(path, 65534, 0) == 0);
		CHECK_INT(add(l), -EPERM);
		CHECK(chown(path, 0, 0) == 0);
	}
	CHECK(chmod(path, 0600) == 0);
	CHECK_INT(add(l), 0);
	/* The next one is there already, and not ours to write to. */
	path_of("000002.jsonl", path, sizeof(path));
	CHECK(mkfifo(path, 0600) == 0);
	ledger_set_file_size(l, 200);
	CHECK_INT(add(l), -EPERM);
	CHECK(unlink(path) == 0);
	CHECK_INT(add(l), 0);
	ledger_close(l);
	CHECK_INT(look().fault, VERIFY_INTACT);
}

/* A handle that is open when its file is taken away or put in again. */
LEDGER_TEST(a10_replaced_under_a_handle)
{
	struct ledger *l;
	char path[200];
	char other[300];
	size_t len;
	char *copy;

	fill(3);
	l = open_ledger();
	CHECK_INT(add(l), 0);
	path_of("000001.jsonl", path, sizeof(path));
	(void)snprintf(other, sizeof(other), "%s/other", top);
	CHECK(rename(path, other) == 0);
	CHECK_INT(add(l), -EBADMSG);
	/* A copy is as good as the file itself. */
	CHECK(rename(other, path) == 0);
	copy = load("000001.jsonl", &len);
	drop("000001.jsonl");
	store("000001.jsonl", copy, len);
	free(copy);
	CHECK_INT(add(l), 0);
	ledger_close(l);
	CHECK_INT(look().fault, VERIFY_INTACT);
	CHECK_INT((long long)look().records, 5);
}

/* What was acknowledged and is gone is not written over. */
LEDGER_TEST(a10_lost_records_stop_it)
{
	struct ledger *l;
	size_t n;

	fill(4);
	n = load_lines();
	store_lines(lines, n - 1);
	l = open_ledger();
	CHECK_INT(add(l), -EBADMSG);
	ledger_close(l);
	CHECK_FAULT(look(), VERIFY_TRUNCATED, 4);
}

/* ---- L06: the power fails ---- */

static struct image {
	char name[32];
	char *data;
	size_t len;
} images[16];
static size_t n_images;

static struct image *image_of(const char *name)
{
	for (size_t i = 0; i < n_images; i++)
		if (strcmp(images[i].name, name) == 0)
			return &images[i];
	(void)snprintf(images[n_images].name, sizeof(images[0].name), "%s",
		       name);
	images[n_images].data = calloc(1, 1 << 18);
	images[n_images].len = 0;
	return &images[n_images++];
}

static void apply(const struct op *o, size_t len)
{
	struct image *m = image_of(o->name);

	if (o->type == OP_TRUNCATE) {
		m->len = (size_t)o->at;
		return;
	}
	memcpy(m->data + o->at, o->data, len);
	m->len = MAX(m->len, (size_t)o->at + len);
}

/*
 * The disk after a power cut behind the first k calls: of each file what was
 * synced, then, by chance, some of the calls since, the last one in part.
 */
static void disk_at(size_t k, unsigned int *seed)
{
	for (size_t i = 0; i < n_images; i++)
		free(images[i].data);
	n_images = 0;
	for (size_t i = 0; i < k; i++)
		if (ops[i].type != OP_ACK && ops[i].type != OP_SYNC)
			(void)image_of(ops[i].name);
	for (size_t f = 0; f < n_images; f++) {
		size_t safe = 0;
		size_t more;

		for (size_t i = 0; i < k; i++)
			if (ops[i].type == OP_SYNC &&
			    strcmp(ops[i].name, images[f].name) == 0)
				safe = i;
		more = safe + (size_t)rand_r(seed) % (k - safe + 1);
		for (size_t i = 0; i < k && i <= more; i++) {
			size_t len = ops[i].len;

			if (ops[i].type == OP_ACK || ops[i].type == OP_SYNC ||
			    strcmp(ops[i].name, images[f].name) != 0)
				continue;
			/* A place of `head` is less than a sector. */
			if (i == more && i > safe && ops[i].type == OP_WRITE)
				len = (size_t)rand_r(seed) % (len + 1);
			apply(&ops[i], len);
		}
	}
}

static uint64_t acknowledged(size_t k)
{
	uint64_t seq = 0;

	for (size_t i = 0; i < k; i++)
		if (ops[i].type == OP_ACK)
			seq = MAX(seq, ops[i].seq);
	return seq;
}

static int keep_hash(void *arg, const struct line *line,
		     const unsigned char hash[SHA256_SIZE], uint32_t file,
		     uint64_t offset)
{
	unsigned char(*all)[SHA256_SIZE] = arg;

	(void)file;
	(void)offset;
	if (line->seq < 1000)
		memcpy(all[line->seq], hash, SHA256_SIZE);
	return 0;
}

static void hashes(unsigned char all[1000][SHA256_SIZE])
{
	struct verify_options o = { .dir = dir,
				    .on_record = keep_hash,
				    .arg = all };
	struct verify_result v;

	memset(all, 0, 1000 * (size_t)SHA256_SIZE);
	CHECK_INT(verify(&o, &v, NULL), 0);
	CHECK_INT(v.fault, VERIFY_INTACT);
	if (v.fault)
		printf("# %s\n", v.text);
}

static void write_ledger(void)
{
	struct ledger *two[2] = { open_ledger(), open_ledger() };

	for (int i = 0; i < 40; i++) {
		struct ledger *l = two[i % 2];
		uint64_t seq = 0;

		ledger_set_file_size(l, 2500);
		CHECK_INT(ledger_append(l, "file.in", MEMBERS, &seq, NULL), 0);
		if (i % 3 == 0)
			continue;
		CHECK_INT(ledger_sync(l, NULL), 0);
		ops[n_ops++] = (struct op){ .type = OP_ACK, .seq = seq };
	}
	ledger_close(two[0]);
	ledger_close(two[1]);
}

LEDGER_TEST(l06_power_cut)
{
	static unsigned char want[1000][SHA256_SIZE];
	static unsigned char have[1000][SHA256_SIZE];
	unsigned int seed = 6;
	size_t total;
	unsigned int cases = 0;
	unsigned int cut = 0;

	is_noting = true;
	write_ledger();
	is_noting = false;
	hashes(want);
	total = n_ops;
	CHECK(total > 100);
	for (size_t k = 1; k <= total && tap_bad < 5; k++)
		for (int again = 0; again < 4; again++) {
			uint64_t acked = acknowledged(k);
			struct verify_result v;
			size_t len;
			char *text;

			remove_all(dir);
			CHECK(mkdir(dir, 0700) == 0);
			disk_at(k, &seed);
			for (size_t i = 0; i < n_images; i++)
				store(images[i].name, images[i].data,
				      images[i].len);
			v = look();
			CHECK(v.fault == VERIFY_INTACT || v.is_torn);
			if (v.fault && !v.is_torn)
				printf("# %zu: %s\n", k, v.text);
			fill(1);
			hashes(have);
			for (uint64_t s = 1; s <= acked; s++)
				CHECK(memcmp(want[s], have[s], SHA256_SIZE) ==
				      0);
			text = load("000001.jsonl", &len);
			cut += strstr(text, "\"recovery\"") != NULL;
			free(text);
			cases++;
		}
	printf("# %u power cuts, %u with something to cut in file 1\n", cases,
	       cut);
	CHECK(cut > 10);
}

/* ---- L07: bits flip, files end early ---- */

static const char *const state_files[] = { "000001.jsonl", "000002.jsonl",
					   "head", "key.pub" };

static void small_ledger(void)
{
	struct ledger *l = open_ledger();

	ledger_set_file_size(l, 1500);
	for (int i = 0; i < 4; i++)
		CHECK_INT(add(l), 0);
	ledger_close(l);
	seal_it();
	l = open_ledger();
	ledger_set_file_size(l, 1500);
	for (int i = 0; i < 2; i++)
		CHECK_INT(add(l), 0);
	ledger_close(l);
	CHECK_INT(look().fault, VERIFY_INTACT);
}

/* With this content of one file something is wrong, and that is said. */
static void must_see(const char *name, const char *text, size_t len, size_t at)
{
	struct verify_result v;

	store(name, text, len);
	v = look();
	CHECK(v.fault != VERIFY_INTACT && v.fault != VERIFY_FAULTS);
	if (v.fault == VERIFY_INTACT)
		printf("# not seen: %s at %zu\n", name, at);
}

LEDGER_TEST(l07_each_byte_flipped)
{
	size_t n = 0;

	small_ledger();
	for (size_t f = 0; f < ARRAY_SIZE(state_files); f++) {
		size_t len;
		char *text = load(state_files[f], &len);

		CHECK(len > 0);
		for (size_t i = 0; i < len && tap_bad < 5; i++) {
			char was = text[i];

			text[i] = (char)(was ^ 1 << i % 8);
			must_see(state_files[f], text, len, i);
			text[i] = was;
		}
		n += len;
		store(state_files[f], text, len);
		free(text);
	}
	CHECK_INT(look().fault, VERIFY_INTACT);
	printf("# %zu flips\n", n);
}

LEDGER_TEST(l07_each_length)
{
	size_t n = 0;

	small_ledger();
	for (size_t f = 0; f < ARRAY_SIZE(state_files); f++) {
		size_t len;
		char *text = load(state_files[f], &len);

		for (size_t i = 0; i < len && tap_bad < 5; i++)
			must_see(state_files[f], text, i, i);
		n += len;
		/* One byte more, of any sort. */
		text[len] = '\n';
		must_see(state_files[f], text, len + 1, len);
		text[len] = '\0';
		must_see(state_files[f], text, len + 1, len);
		store(state_files[f], text, len);
		free(text);
	}
	CHECK_INT(look().fault, VERIFY_INTACT);
	printf("# %zu lengths\n", n);
}

/* The bad record is named, not just its presence. */
LEDGER_TEST(l07_the_right_record_is_named)
{
	size_t n;

	fill(9);
	n = load_lines();
	for (size_t i = 0; i < n; i++) {
		char *at = lines[i] + strlen(lines[i]) / 2;
		struct verify_result v;

		*at = (char)(*at ^ 1);
		store_lines(lines, n);
		*at = (char)(*at ^ 1);
		v = look();
		CHECK_INT(v.fault, VERIFY_EDITED);
		CHECK_INT((long long)v.bad, (long long)i + 1);
	}
}

TAP_MAIN()
