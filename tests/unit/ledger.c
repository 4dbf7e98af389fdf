/* SPDX-License-Identifier: Apache-2.0 */

/* The ledger's parts: lines, hashes, trees, kinds, reading, redaction. */

#include "tests/tap.h"

#include <errno.h>
#include <time.h>

#include "base/util.h"
#include "ledger/kinds.h"
#include "ledger/ledger.h"
#include "ledger/line.h"
#include "ledger/merkle.h"
#include "ledger/read.h"
#include "ledger/redact.h"

static void hash_of(const void *data, size_t len, char ret[65])
{
	unsigned char h[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, data, len);
	sha256_end(&s, h);
	hex_format(h, sizeof(h), ret);
}

/* FIPS 180-4 examples, and both ways of computing agree at each length. */
TEST(sha256)
{
	static char data[400];
	char a[65];
	char b[65];

	hash_of("abc", 3, a);
	CHECK_STR(a, "ba7816bf8f01cfea414140de5dae2223"
		     "b00361a396177a9cb410ff61f20015ad");
	hash_of("", 0, a);
	CHECK_STR(a, "e3b0c44298fc1c149afbf4c8996fb924"
		     "27ae41e4649b934ca495991b7852b855");
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	for (size_t n = 0; n < sizeof(data); n++) {
		sha256_is_plain = false;
		hash_of(data, n, a);
		sha256_is_plain = true;
		hash_of(data, n, b);
		CHECK_STR(a, b);
	}
}

/* The check value of CRC-32C; and both ways agree. */
TEST(crc32c_both_ways)
{
	static char data[100];

	CHECK(crc32c("123456789", 9) == 0xe3069283);
	for (size_t n = 0; n < sizeof(data); n++) {
		uint32_t fast;

		data[n] = (char)(n * 31);
		sha256_is_plain = false;
		fast = crc32c(data, n);
		sha256_is_plain = true;
		CHECK(crc32c(data, n) == fast);
	}
	CHECK(crc32c("123456789", 9) == 0xe3069283);
}

/* The tree of the test data that implementations of RFC 6962 share; checked
 * by a second implementation in another language. */
TEST(a06_merkle_vectors)
{
	static const struct {
		const char *leaf;
		size_t len;
		const char *root;
	} v[] = {
		{ "", 0,
		  "6e340b9cffb37a989ca544e6bb780a2c"
		  "78901d3fb33738768511a30617afa01d" },
		{ "\x00", 1,
		  "fac54203e7cc696cf0dfcb42c92a1d9d"
		  "baf70ad9e621f4bd8d98662f00e3c125" },
		{ "\x10", 1,
		  "aeb6bcfe274b70a14fb067a5e5578264"
		  "db0fa9b51af5e0ba159158f329e06e77" },
		{ "\x20\x21", 2,
		  "d37ee418976dd95753c1c73862b9398f"
		  "a2a2cf9b4ff0fdfe8b30cd95209614b7" },
		{ "\x30\x31", 2,
		  "4e3bbb1f7b478dcfe71fb631631519a3"
		  "bca12c9aefca1612bfce4c13a86264d4" },
		{ "\x40\x41\x42\x43", 4,
		  "76e67dadbcdf1e10e1b74ddc608abd2f"
		  "98dfb16fbce75277b5232a127f2087ef" },
		{ "\x50\x51\x52\x53\x54\x55\x56\x57", 8,
		  "ddb89be403809e325750d3d263cd7892"
		  "9c2942b7942a34b77e122c9594a74c8c" },
		{ "\x60\x61\x62\x63\x64\x65\x66\x67"
		  "\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
		  16,
		  "5dc9da79a70659a9ad559cb701ded9a2"
		  "ab9d823aad2f4960cfe370eff4604328" },
	};
	unsigned char h[SHA256_SIZE];
	char hex[65];
	struct merkle m;

	merkle_init(&m);
	merkle_root(&m, h);
	hex_format(h, sizeof(h), hex);
	CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb924"
		       "27ae41e4649b934ca495991b7852b855");
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		line_hash(v[i].leaf, v[i].len, h);
		merkle_add(&m, h);
		merkle_root(&m, h);
		hex_format(h, sizeof(h), hex);
		CHECK_STR(hex, v[i].root);
	}
}

/* A record that consists of two hashes is not the node above them. */
TEST(a06_leaf_is_no_node)
{
	unsigned char two[2 * SHA256_SIZE];
	unsigned char root[SHA256_SIZE];
	unsigned char leaf[SHA256_SIZE];
	struct merkle m;

	merkle_init(&m);
	for (int i = 0; i < 2; i++) {
		line_hash(i ? "b" : "a", 1, two + (size_t)i * SHA256_SIZE);
		merkle_add(&m, two + (size_t)i * SHA256_SIZE);
	}
	merkle_root(&m, root);
	line_hash((char *)two, sizeof(two), leaf);
	CHECK(memcmp(root, leaf, sizeof(leaf)) != 0);
}

static void a_line(struct buf *b)
{
	struct line_head head = { .seq = 42, .kind = "run.end" };

	memset(head.prev, 0xab, sizeof(head.prev));
	buf_init(b, 4096);
	CHECK_INT(line_format(b, &head, "\"run\":\"x\"", 9), 0);
}

TEST(line_is_read_as_written)
{
	struct line line;
	struct buf b;

	a_line(&b);
	CHECK(b.data[b.len - 1] == '\n');
	CHECK_INT(line_parse(b.data, b.len - 1, &line), 0);
	CHECK_INT((long long)line.seq, 42);
	CHECK(line.kind_len == 7 && memcmp(line.kind, "run.end", 7) == 0);
	CHECK(line.members_len == 9 &&
	      memcmp(line.members, "\"run\":\"x\"", 9) == 0);
	CHECK(line.prev[0] == 0xab && line.prev[31] == 0xab);
	CHECK(line_time_us(line.time) / 1000000 - time(NULL) < 5);
}

TEST(times)
{
	static const struct {
		const char *text;
		int64_t us;
	} v[] = {
		{ "1970-01-01T00:00:00.000000Z", 0 },
		{ "2000-02-29T12:34:56.000001Z", 951827696000001 },
		{ "2026-11-15T23:52:12.123456Z", 1794786732123456 },
		{ "2100-03-01T00:00:00.000000Z", 4107542400000000 },
		{ "2026-13-15T23:52:12.123456Z", -1 },
		{ "2026-11-15 23:52:12.123456Z", -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		CHECK_INT(line_time_us(v[i].text), v[i].us);
}

/* Every byte counts: one more, one less, one other. */
TEST(line_counts_every_byte)
{
	struct line line;
	char copy[4096];
	struct buf b;

	a_line(&b);
	CHECK(line_parse(b.data, b.len, &line) < 0);
	for (size_t n = 0; n < b.len - 1; n++)
		CHECK(line_parse(b.data, n, &line) < 0);
	for (size_t i = 0; i < b.len - 1; i++)
		for (int bit = 0; bit < 8; bit++) {
			memcpy(copy, b.data, b.len);
			copy[i] = (char)(copy[i] ^ 1 << bit);
			CHECK(line_parse(copy, b.len - 1, &line) < 0);
		}
	for (size_t i = 0; i < b.len - 1; i++) {
		memcpy(copy, b.data, i);
		copy[i] = ' ';
		memcpy(copy + i + 1, b.data + i, b.len - i);
		CHECK(line_parse(copy, b.len, &line) < 0);
	}
}

TEST(kinds_are_checked)
{
	static const struct {
		const char *kind, *members, *says; /* NULL: good */
	} v[] = {
		{ "file.in", "{\"run\":\"a\",\"path\":\"p\",\"size\":1}",
		  NULL },
		{ "file.in",
		  "{\"run\":\"a\",\"path\":\"p\",\"size\":1,"
		  "\"host_path\":\"/x\"}",
		  NULL },
		{ "nonsense", "{}", "no kind" },
		{ "file.in", "{\"run\":\"a\",\"path\":\"p\"}", "missing" },
		{ "file.in", "{\"run\":1,\"path\":\"p\",\"size\":1}",
		  "another type" },
		{ "file.in", "{\"run\":\"a\",\"path\":\"p\",\"size\":1.5}",
		  "another type" },
		{ "file.in",
		  "{\"run\":\"a\",\"path\":\"p\",\"size\":1,\"x\":1}",
		  "unknown" },
		{ "file.in",
		  "{\"run\":\"a\",\"run\":\"b\",\"path\":\"p\",\"size\":1}",
		  "twice" },
		{ "file.in",
		  "{\"run\":\"a\",\"path\":\"p\",\"size\":1,\"sha256\":\"z\"}",
		  "another type" },
		{ "file.in", "{\"run\":\"a\nb\",\"path\":\"p\",\"size\":1}",
		  "control" },
		{ "file.in", "{\"run\":\"a\x01\",\"path\":\"p\",\"size\":1}",
		  "control" },
		{ "file.in", "{\"run\":\"a\",\"path\":\"p\",\"size\":1}\n",
		  "control" },
		{ "file.in", "{\"run\":\"a\",\"path\":\"p\",\"size\":1",
		  "not one" },
		{ "file.in", "", "not one" },
		{ "file.in", "[]", "not one" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct err err = { 0 };
		int r = kind_check(v[i].kind, v[i].members,
				   strlen(v[i].members), &err);

		CHECK_INT(r, v[i].says ? -EINVAL : 0);
		if (v[i].says)
			CHECK_HAS(err.text, v[i].says);
	}
}

TEST(values_are_checked)
{
	static const char *const good[] = {
		"1",
		"-1",
		"0",
		"0.50",
		"\"\"",
		"[]",
		"{}",
		"true",
		"null",
		"[1,[2,{\"a\":[]}]]",
		"{\"a\":{\"b\":1},\"c\":[]}",
		"\"\\u00e9\\n\\\"\"",
		"\"\xc3\xa9\"",
	};
	static const char *const bad[] = {
		"",         "01",
		"1.",       "-",
		"[1,]",     "{,}",
		"{\"a\"}",  "{\"a\":}",
		"[1 2]",    "[}",
		"{]",       "\"",
		"\"\\x\"",  "\"\\u12g4\"",
		"\"\xff\"", "\"\n\"",
		"tru",      "[[]",
		"[]]",      " 1",
		"1 ",       "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK(value_check(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(!value_check(bad[i], strlen(bad[i])));
}

TEST(values_are_read)
{
	static const char text[] =
		"{\"a\":1,\"b\":{\"c\":\"x\\ny\\u00e9\\\"\"},\"d\":[1,2]}";
	struct value object = { text, sizeof(text) - 1 };
	struct value v;
	struct value c;
	struct buf b;

	buf_init(&b, 100);
	CHECK(value_get(&object, "a", &v) && value_int(&v, -1) == 1);
	CHECK(value_get(&object, "b", &v) && value_get(&v, "c", &c));
	CHECK_INT(value_text(&c, &b), 0);
	CHECK_STR(b.data, "x\ny\xc3\xa9\"");
	CHECK(!value_get(&object, "c", &v) && v.len == 0);
	CHECK(value_get(&object, "d", &v) && value_type(&v) == '[');
	CHECK(!value_get(&v, "d", &c));
}

/* A11 */
static const struct {
	const char *in, *out;
} redactions[] = {
	{ "ls -l /tmp", "ls -l /tmp" },
	{ "", "" },
	{ "ghp_0123456789abcdefghij0123456789abcdef", "ghp_[redacted]" },
	{ "x ghp_0123456789abcdefghij. y", "x ghp_[redacted]. y" },
	{ "a-ghp_0123456789abcdefghij", "a-ghp_[redacted]" },
	{ "ghp_short", "ghp_short" },
	{ "sk-proj-0123456789abcdefghij", "sk-[redacted]" },
	{ "task-0123456789abcdefghij", "task-0123456789abcdefghij" },
	{ "AKIAIOSFODNN7EXAMPLE", "AKIA[redacted]" },
	{ "xoxb-123456789012-abcdef", "xoxb-[redacted]" },
	{ "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def_123", "eyJ[redacted]" },
	{ "Authorization: Bearer abc.def", "Authorization: Bearer [redacted]" },
	{ "Authorization: Basic dXNlcjpwYXNz",
	  "Authorization: Basic [redacted]" },
	{ "authorization: Digest username=\"u\", x",
	  "authorization: [redacted]" },
	{ "curl -H 'Authorization: token abc' x",
	  "curl -H 'Authorization: token [redacted]' x" },
	{ "bearer xyz", "bearer [redacted]" },
	{ "password=hunter2 next", "password=[redacted] next" },
	{ "--password=hunter2", "--password=[redacted]" },
	{ "DB_PASSWORD=\"a b\" x", "DB_PASSWORD=[redacted] x" },
	{ "token=abc&x=1", "token=[redacted]&x=1" },
	{ "{\"api_key\":\"abc\",\"n\":1}", "{\"api_key\":[redacted],\"n\":1}" },
	{ "client_secret: abc def", "client_secret: [redacted]" },
	{ "PWD=/home/me", "PWD=/home/me" },
	{ "https://user:pw@host/path", "https://[redacted]@host/path" },
	{ "https://tok@host", "https://[redacted]@host" },
	{ "https://a@b:c@host/x", "https://[redacted]@host/x" },
	{ "https://host/p?q=secretvalue&z=1 tail",
	  "https://host/p?[redacted] tail" },
	{ "https://host/p#frag", "https://host/p#[redacted]" },
	{ "https://host/hook/xoxb-123456789012",
	  "https://host/hook/xoxb-[redacted]" },
	{ "what? no query", "what? no query" },
	{ "postgres://u:p@db:5432/x", "postgres://[redacted]@db:5432/x" },
	{ "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n"
	  "-----END RSA PRIVATE KEY-----\nrest",
	  "-----BEGIN RSA PRIVATE KEY-----[redacted]\nrest" },
	{ "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
	  "-----BEGIN OPENSSH PRIVATE KEY-----[redacted]" },
	{ "-----BEGIN CERTIFICATE-----\nabc",
	  "-----BEGIN CERTIFICATE-----\nabc" },
	{ "tokenizer: fast", "tokenizer: [redacted]" },
	{ "aws_secret_access_key = abc/def+1 x",
	  "aws_secret_access_key = [redacted] x" },
	{ "password=a,b;c(d)|e x", "password=[redacted] x" },
	{ "password=a&b x", "password=[redacted] x" },
	{ "{\"password\":\"a\\\"b\",\"n\":1}",
	  "{\"password\":[redacted],\"n\":1}" },
	{ "{\\\"token\\\":\\\"abc\\\"}", "{\\\"token\\\":[redacted]}" },
	{ "private_key=-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n"
	  "-----END RSA PRIVATE KEY-----",
	  "private_key=-----BEGIN RSA PRIVATE KEY-----[redacted]" },
	{ "private_key: \"-----BEGIN PRIVATE KEY-----\nMIIabc",
	  "private_key: \"-----BEGIN PRIVATE KEY-----[redacted]" },
	{ "DB_PASS=hunter2", "DB_PASS=[redacted]" },
	{ "dbPass: hunter2", "dbPass: [redacted]" },
	{ "pass:hunter2", "pass:[redacted]" },
	{ "bypass=1 compass=2", "bypass=1 compass=2" },
	{ "SIGNING_KEY=abc", "SIGNING_KEY=[redacted]" },
	{ "AccountKey=abc==;x", "AccountKey=[redacted]" },
	{ "key=abc monkey=1 OLDPWD=/x", "key=abc monkey=1 OLDPWD=/x" },
	{ "client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk+/=",
	  "client-key-data: [redacted]" },
	{ "x LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk+/= y",
	  "x LS0tLS1CRUdJTi[redacted] y" },
	{ "host/p?code=abc&x=1 y", "host/p?[redacted] y" },
	{ "me:hunter2@host:path", "me:[redacted]@host:path" },
	{ "git@host:a/b", "git@host:a/b" },
	{ "image:tag@sha256:abc", "image:tag@sha256:abc" },
	{ "e2b_0123456789abcdef0123", "e2b_[redacted]" },
	{ "Cookie: a=b; c=\"d\"", "Cookie: [redacted]" },
	{ "curl --token abc -u me:hunter2 h",
	  "curl --token [redacted] -u me:[redacted] h" },
	{ "mysql --password 'a b' x", "mysql --password [redacted] x" },
	{ "docker run -u 1000:1000 x", "docker run -u 1000:1000 x" },
	{ "x --token -v", "x --token -v" },
};

TEST(a11_redaction)
{
	for (size_t i = 0; i < ARRAY_SIZE(redactions); i++) {
		struct buf b;

		buf_init(&b, 4096);
		CHECK_INT(redact(&b, redactions[i].in,
				 strlen(redactions[i].in)),
			  0);
		CHECK_STR(b.len ? b.data : "", redactions[i].out);
		buf_done(&b);
	}
}

TEST(a11_variables_and_flags)
{
	struct buf b;

	buf_init(&b, 4096);
	redact_variable(&b, "GITHUB_TOKEN", 12, "plain", 5);
	buf_puts(&b, " ");
	redact_variable(&b, "LANG", 4, "C.UTF-8", 7);
	CHECK_STR(b.data, "[redacted] C.UTF-8");
	CHECK(redact_is_secret_flag("--password"));
	CHECK(redact_is_secret_flag("--api-key"));
	CHECK(!redact_is_secret_flag("--password=x"));
	CHECK(!redact_is_secret_flag("-H"));
	CHECK(!redact_is_secret_flag("password"));
	CHECK(redact_is_secret_flag("--pass"));
	CHECK(redact_is_secret_flag("aws_secret_access_key"));
	/* It would hide what follows it. */
	CHECK(!redact_is_secret_flag("my_token.txt"));
	buf_done(&b);
}

TEST(a11_arguments)
{
	static const struct {
		const char *before, *in, *out;
	} v[] = {
		{ "-u", "me:hunter2", "me:[redacted]" },
		{ "-u", "1000:1000", "1000:1000" },
		{ "-u", "me", "me" },
		{ NULL, "--user=me:hunter2", "--user=me:[redacted]" },
		{ NULL, "-u", "-u" },
		{ "--password", "hunter2", "[redacted]" },
		{ "ls", "a:b", "a:b" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct buf b;

		buf_init(&b, 4096);
		CHECK_INT(redact_argument(&b, v[i].before, v[i].in,
					  strlen(v[i].in)),
			  0);
		CHECK_STR(b.data, v[i].out);
		buf_done(&b);
	}
}

/* Variables that find no room are counted; long names are cut. */
TEST(each_variable_is_counted)
{
	static char text[400][16];
	static char wide[400];
	const char *env[402] = { 0 };
	struct ledger_run_start s = { .run = "r",
				      .decision = "allow",
				      .env = env };
	char *m;

	memset(wide, 'W', sizeof(wide) - 1);
	memcpy(wide + 200, "=x", 3);
	env[0] = wide;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		(void)snprintf(text[i], sizeof(text[i]), "V%zu=1", i);
		env[i + 1] = text[i];
	}
	m = ledger_run_start_members(&s);
	if (!m)
		abort();
	CHECK_HAS(m, "WWWW\":\"x\"");
	CHECK_HAS(m, "\"[more]\":145}");
	free(m);
}

/* Kept text that fills the record does not leave a block out of it. */
TEST(each_block_is_on_the_record)
{
	static char text[40000];
	struct ledger_code code[32];
	struct ledger_run_start s = { .run = "r",
				      .decision = "allow",
				      .code = code,
				      .n_code = ARRAY_SIZE(code),
				      .keep_code = true };
	size_t n = 0;
	char *m;

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(code); i++)
		code[i] = (struct ledger_code){ "python", text, sizeof(text) };
	m = ledger_run_start_members(&s);
	if (!m)
		abort();
	for (char *p = m; (p = strstr(p, "\"sha256\"")); p++)
		n++;
	CHECK_INT((long long)n, ARRAY_SIZE(code));
	CHECK_HAS(m, "\"text\"");
	free(m);
}

/* Twice the text takes about twice the time, whatever it is made of. */
TEST(a11_redaction_is_linear)
{
	static const char *const parts[] = {
		"a-",      "a://", "sk-",      "-----BEGIN ",  "password",
		"\"'",     "x=",   "basic \"", "token: ",      "a@",
		"bearer ", "eyJ",  "_-.",      "--token ",     "-u a:",
		"a:b",     "?a",   "\\\"",     "token = \"\\",
	};
	const size_t len = 1 << 20;
	char *text = malloc(len);

	if (!text)
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t n = strlen(parts[i]);
		clock_t start = clock();
		struct buf b;

		for (size_t at = 0; at < len; at++)
			text[at] = parts[i][at % n];
		buf_init(&b, 64U << 20);
		CHECK_INT(redact(&b, text, len), 0);
		/* A quadratic one would take minutes. */
		CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 5.0);
		buf_done(&b);
	}
	free(text);
}

/* What a run writes is what its kind has, and no secret of it is in it. */
TEST(a11_run_records)
{
	static const char *const argv[] = {
		"curl",        "--token",
		"hidden1",     "https://u:hidden2@h/?k=hidden3",
		"line\nbreak", NULL
	};
	static const char *const env[] = { "API_KEY=hidden4", "LANG=C", NULL };
	static const char *const layers[] = { "userns", "seccomp", NULL };
	static const struct ledger_mount mounts[] = {
		{ "/data", "/workspace/data", "ro", 0 },
		{ NULL, "/tmp", "rw", 64 },
	};
	static const struct ledger_limit limits[] = { { "memory", 256 } };
	static const struct ledger_code code[] = { { "python", "x=1", 3 } };
	struct ledger_run_start s = {
		.run = "r",
		.decision = "allow",
		.argv = argv,
		.env = env,
		.mounts = mounts,
		.n_mounts = 2,
		.limits = limits,
		.n_limits = 1,
		.layers = layers,
		.code = code,
		.n_code = 1,
		.policy_file = "cordon.yaml",
		.image = "host",
		.uid = 65534,
	};
	struct ledger_run_end e = { .run = "r",
				    .cause = "exited",
				    .status = "success",
				    .message = "password=hidden5" };
	struct err err = { 0 };
	char *m = ledger_run_start_members(&s);

	if (!m)
		abort();
	CHECK(!strstr(m, "hidden") && !strchr(m, '\n'));
	CHECK_HAS(m, "line\\nbreak");
	CHECK_HAS(m, "\"lang\":\"python\",\"sha256\":\"");
	CHECK(!strstr(m, "x=1"));
	CHECK_INT(kind_check("run.start", m, strlen(m), &err), 0);
	CHECK_STR(err.text, "");
	free(m);
	s.keep_code = true;
	m = ledger_run_start_members(&s);
	CHECK_HAS(m, "\"text\":\"x=1\"");
	free(m);
	m = ledger_run_end_members(&e);
	CHECK(m && !strstr(m, "hidden"));
	CHECK_INT(kind_check("run.end", m, strlen(m), &err), 0);
	CHECK_STR(err.text, "");
	free(m);
}

static void record(struct ledger *l, const char *kind, const char *members)
{
	struct err err = { 0 };

	CHECK_INT(ledger_append(l, kind, members, NULL, &err), 0);
	CHECK_INT(ledger_sync(l, &err), 0);
}

/* A run is found from a place on, and not by what others say of it. */
TEST(one_run_is_found)
{
	static const char *const ids[] = { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
					   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" };
	char dir[] = "/tmp/cordon-find-XXXXXX";
	struct ledger_run_start start = { .run = ids[0], .decision = "allow" };
	struct ledger_run_end end = { .run = ids[0],
				      .status = "error",
				      .cause = "signal",
				      .message = ids[1],
				      .exit_code = 137 };
	struct ledger_found f;
	struct ledger *l = NULL;
	struct err err = { 0 };
	uint64_t at[3];
	char *text;

	CHECK(mkdtemp(dir));
	CHECK_INT(ledger_open(dir, &l, &err), 0);
	ledger_set_file_size(l, 600); /* a file for each */
	CHECK_INT(ledger_where(l, &at[0], &err), 0);
	text = ledger_run_start_members(&start);
	record(l, "run.start", text);
	free(text);
	CHECK_INT(ledger_where(l, &at[1], &err), 0);
	text = ledger_run_end_members(&end);
	record(l, "run.end", text);
	free(text);
	CHECK_INT(ledger_where(l, &at[2], &err), 0);
	CHECK(at[0] < at[1] && at[1] < at[2]);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(ledger_find_run(l, at[i], ids[0], &f, &err), 0);
		CHECK_INT(f.has_start, i == 0);
		CHECK_INT(f.has_end, i < 2);
		CHECK_STR(f.cause, i < 2 ? "signal" : "");
		CHECK_INT(f.exit_code, i < 2 ? 137 : 0);
	}
	CHECK_INT(ledger_find_run(l, LEDGER_START, ids[1], &f, &err), 0);
	CHECK(!f.has_start && !f.has_end);
	ledger_close(l);
	CHECK_INT(chdir(dir), 0);
	(void)unlink("000001.jsonl");
	(void)unlink("000002.jsonl");
	(void)unlink("head");
	(void)rmdir(dir);
}

/* However much is asked for, its record is written. */
TEST(long_runs_fit)
{
	static char big[200000];
	static const char *argv[2001];
	struct ledger_run_start s = {
		.run = "r", .decision = "allow", .argv = argv, .env = argv
	};
	char *m;

	memset(big, 0x01, sizeof(big) - 1);
	big[1] = '=';
	for (size_t i = 0; i < 2000; i++)
		argv[i] = i % 2 ? big : "A=b c";
	m = ledger_run_start_members(&s);
	CHECK(m && strlen(m) < LINE_MAX_SIZE);
	CHECK_HAS(m, "\"argc\":2000");
	CHECK_INT(kind_check("run.start", m, strlen(m), NULL), 0);
	free(m);
}

TAP_MAIN()
