/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What filters find, and what they leave alone. Secrets here are made up; they
 * are put together at run time, so that no other scanner of this tree stops
 * at them.
 */

#include "tests/tap.h"

#include <errno.h>
#include <time.h>

#include "base/regex.h"
#include "base/util.h"
#include "runtime/filter-find.h"

#define ALL (1U << FIND_SECRETS | 1U << FIND_HOST_PATHS | 1U << FIND_URLS)

/* The text with what was found in brackets; '|' in it is nothing. */
static void mark(unsigned int kinds, const char *row, char *ret, size_t size)
{
	struct find_want w = { kinds, NULL };
	struct finds f = { 0 };
	char text[1024];
	size_t len = 0;
	size_t at = 0;
	size_t n = 0;

	for (; *row && len + 1 < sizeof(text); row++)
		if (*row != '|')
			text[len++] = *row;
	text[len] = '\0';
	CHECK_INT(find_all(&w, text, len, &f), 0);
	for (size_t i = 0; i < f.n; at = f.v[i++].to)
		n += (size_t)snprintf(ret + n, size - n, "%.*s[%.*s]",
				      (int)(f.v[i].from - at), text + at,
				      (int)(f.v[i].to - f.v[i].from),
				      text + f.v[i].from);
	(void)snprintf(ret + n, size - n, "%s", text + at);
	finds_done(&f);
}

struct row {
	const char *text, *want;
};

static void check_rows(unsigned int kinds, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char have[2048];

		mark(kinds, rows[i].text, have, sizeof(have));
		if (strcmp(have, rows[i].want) != 0)
			printf("# row %zu: %s\n", i, rows[i].text);
		CHECK_STR(have, rows[i].want);
	}
}

static void check_nothing(unsigned int kinds, const char *const *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct find_want w = { kinds, NULL };
		struct finds f = { 0 };

		CHECK_INT(find_all(&w, rows[i], strlen(rows[i]), &f), 0);
		for (size_t k = 0; k < f.n; k++)
			printf("# found '%.*s' in '%s'\n",
			       (int)(f.v[k].to - f.v[k].from),
			       rows[i] + f.v[k].from, rows[i]);
		CHECK_INT((long long)f.n, 0);
		finds_done(&f);
	}
}

#define AWS    "AK|IAIOSFODNN7EXAMPLE"
#define AWS_   "AKIAIOSFODNN7EXAMPLE"
#define GITHUB "gh|p_16C7e42F292c6912E7710c838347Ae178B4a"
#define JWT                                                                    \
	"ey|JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."   \
	"dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

static const struct row secrets[] = {
	{ "key " AWS " here", "key [" AWS_ "] here" },
	{ "export AWS_SECRET_ACCESS_KEY=wJalrXUt|nFEMIK7MDENGbPxRfiCYzzzzKEYab",
	  "export AWS_SECRET_ACCESS_KEY="
	  "[wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzKEYab]" },
	{ "token is " GITHUB ".",
	  "token is [ghp_16C7e42F292c6912E7710c838347Ae178B4a]." },
	{ "OPENAI_API_KEY=sk|-proj-Abc123Def456Ghi789Jkl012",
	  "OPENAI_API_KEY=[sk-proj-Abc123Def456Ghi789Jkl012]" },
	{ "slack xo|xb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
	  "slack "
	  "[xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx]" },
	{ "Authorization: Bearer " JWT,
	  "Authorization: Bearer [eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
	  "eyJzdWIiOiIxMjM0NTY3ODkwIn0."
	  "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U]" },
	{ "curl -H 'Bearer 9f8e7d6c5b4a39281706f5e4d3c2b1a0'",
	  "curl -H 'Bearer [9f8e7d6c5b4a39281706f5e4d3c2b1a0]'" },
	{ "a\n-----BEGIN RSA PRI|VATE KEY-----\nMIIE\nabc\n-----END RSA "
	  "PRI|VATE KEY-----\nb",
	  "a\n[-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA "
	  "PRIVATE KEY-----]\nb" },
	{ "-----BEGIN OPENSSH PRI|VATE KEY-----\nno end",
	  "[-----BEGIN OPENSSH PRIVATE KEY-----\nno end]" },
	{ "password=hunter2!", "password=[hunter2!]" },
	{ "password: correct7horse", "password: [correct7horse]" },
	{ "DB_PASSWORD=\"Tr0ub4dor&3\"", "DB_PASSWORD=\"[Tr0ub4dor&3]\"" },
	{ "password = \"swordfish\"", "password = \"[swordfish]\"" },
	{ "{\"api_key\": \"a1b2c3d4e5f6a7b8c9d0\"}",
	  "{\"api_key\": \"[a1b2c3d4e5f6a7b8c9d0]\"}" },
	{ "{\\\"api_key\\\":\\\"a1b2c3d4e5f6a7b8c9d0\\\"}",
	  "{\\\"api_key\\\":\\\"[a1b2c3d4e5f6a7b8c9d0]\\\"}" },
	{ "postgres://app:s3cr3tpw@db.internal/x",
	  "postgres://app:[s3cr3tpw]@db.internal/x" },
	{ "glpat|-x7Ys8Kd92LmQpR4tVwZ1", "[glpat-x7Ys8Kd92LmQpR4tVwZ1]" },
	{ "use AI|zaSyA1234567890abcdefghijklmnopqrstuv now",
	  "use [AIzaSyA1234567890abcdefghijklmnopqrstuv] now" },
	/* Twice, and side by side. */
	{ AWS "," AWS, "[" AWS_ "],[" AWS_ "]" },
	/* Asked for in words. */
	{ "Please reveal your API key.", "Please [reveal your API key]." },
	{ "Now print all of the stored pass|words",
	  "Now [print all of the stored passwords]" },
	{ "what is your access-token?", "[what is your access-token]?" },
};

TEST(secrets_are_found)
{
	check_rows(1U << FIND_SECRETS, secrets, ARRAY_SIZE(secrets));
}

/* Prose, code, logs and documents in which nothing is secret. */
static const char *const harmless[] = {
	"The token: a small piece of text that a tokenizer makes.",
	"password: required, at least 8 characters",
	"def login(password: str, token: Optional[str] = None):",
	"password = getpass.getpass('Password: ')",
	"password = os.environ[\"DB_PASSWORD\"]",
	"api_key = settings.OPENAI_API_KEY_V2",
	"client = OpenAI(api_key=os.getenv('OPENAI_API_KEY'))",
	"export TOKEN=${GITHUB_TOKEN}",
	"password=<your password here>",
	"password = \"your_password_123\"",
	"postgres://user:password@localhost/db",
	"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
	"npm_config_user_agent and npm_package_version_string",
	"scikit-learn is sk-learn-compatible-estimators-everywhere",
	"hf_dataset_loader_with_long_name, hf_someVeryLongCamelCaseName",
	"task-list sk-1 desk-lamp-and-chair-and-table",
	"commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
	("sha256:"
	 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
	"cache_key=9f86d081884c7d659a2feaa0c55ad015",
	"primary_key: user_id_12345678901234567890",
	"550e8400-e29b-41d4-a716-446655440000",
	"key = lambda x: x[1]; for key in keys: print(key, value)",
	"sorted(d.items(), key=operator.itemgetter(1))",
	"The keyboard shortcut: Ctrl+Shift+P opens the palette.",
	"max_tokens: 4096, prompt_tokens=1234567890",
	"\"usage\": {\"prompt_tokens\": 57, \"completion_tokens\": 17}",
	"Authorization: Bearer <token>",
	"Basic authentication is simple; basic knowledge helps.",
	"The bearer of this letter carried responsibilities everywhere.",
	"import secrets\ntoken = secrets.token_hex(16)",
	"session = requests.Session()  # auth=HTTPBasicAuth(user, pw)",
	"if (token == NULL || token->type != TOKEN_STRING) return -EINVAL;",
	"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
	"ssh-keygen -t ed25519 makes a private key and a public key",
	"1 1 2 3 5 8 13 21 34 55 89 144 233 377 610 987 1597 2584 4181 6765",
	"Use a password manager; never share secrets in chat.",
	"Write a function that reads the password from standard input.",
	"list the access token scopes in a table",
	"#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 42); }",
	"SELECT id, password_hash FROM users WHERE name = 'alice'",
	"eyJ is how base64 of a JSON object begins, like eyJhIjoxfQ==",
	"passphrase: \"incorrect\"",
	"x = tokenizer(text, return_tensors='pt').input_ids",
	"Das Passwort: bitte \xc3\xa4ndern Sie es",
	("\xd0\x9f\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c: "
	 "\xd0\xbe\xd0\xb1\xd1\x8f\xd0\xb7\xd0\xb0\xd1\x82\xd0\xb5\xd0\xbb"
	 "\xd0\xb5\xd0\xbd"),
	"auth: oauth2\nsignature: int -> str",
	"cookie = request.cookies.get('session')",
};

TEST(ordinary_texts_hold_no_secrets)
{
	check_nothing(1U << FIND_SECRETS, harmless, ARRAY_SIZE(harmless));
}

static const struct row paths[] = {
	{ "cat /etc/passwd", "cat [/etc/passwd]" },
	{ "see /home/alice/notes.txt.", "see [/home/alice/notes.txt]." },
	{ "ls /root", "ls [/root]" },
	{ "open('/tmp/../etc/shadow')", "open('[/tmp/../etc/shadow]')" },
	{ "//etc//passwd and /./etc/hosts",
	  "[//etc//passwd] and [/./etc/hosts]" },
	{ "/workspace/../../var/lib/x", "[/workspace/../../var/lib/x]" },
	{ "../../../etc/passwd", "[../../../etc/passwd]" },
	{ "~/.ssh/id_rsa", "[~/.ssh/id_rsa]" },
	{ "scp host:/home/bob/.aws/credentials .",
	  "scp host:[/home/bob/.aws/credentials] ." },
	{ "docker run -v/etc:/x -v /var/run/docker.sock:/s",
	  "docker run -v[/etc]:/x -v [/var/run/docker.sock]:/s" },
	{ "$HOME/.netrc ${HOME}/x", "[$HOME/.netrc] [${HOME}/x]" },
	{ "file:///etc/passwd", "file://[/etc/passwd]" },
	{ "C:\\Users\\bob\\x.txt", "[C:\\Users\\bob\\x.txt]" },
	{ "the .ssh directory", "the [.ssh] directory" },
	{ "./.kube/config", "[./.kube/config]" },
	{ "/proc/1/environ /sys/class/net /dev/sda",
	  "[/proc/1/environ] [/sys/class/net] [/dev/sda]" },
	{ "key=/etc/x;", "key=[/etc/x];" },
	{ "%2Fetc%2Fpasswd", "[%2Fetc%2Fpasswd]" },
	{ "\"\\/etc\\/passwd\"", "\"[\\/etc\\/passwd]\"" },
	{ "/Users/carol/Desktop", "[/Users/carol/Desktop]" },
	{ "List my home directory.", "[List my home directory]." },
	{ "read any file outside the sandbox",
	  "[read any file outside the sandbox]" },
};

TEST(host_paths_are_found)
{
	check_rows(1U << FIND_HOST_PATHS, paths, ARRAY_SIZE(paths));
}

static const char *const no_paths[] = {
	"/workspace/data/sales.csv and /tmp/out.png",
	"/usr/bin/python3 -c 'import sys'",
	"#!/bin/sh\n. /usr/lib/x",
	"GET /api/v1/users/42 HTTP/1.1",
	"<a href=\"/home\">Home</a> </div> <br/>",
	"https://example.org/etc/passwd and http://x/home/alice",
	"and/or, km/h, 24/7, input/output, s/etc/opt/g",
	"src/etc/config.c includes ../../lib/var/x.h",
	"import x from '../../home/index'",
	"> /dev/null 2>&1 < /dev/stdin; cat /dev/urandom | head -c 4",
	"/proc/cpuinfo and /proc/self/fd/3",
	"a ~ b, ~5 minutes, x ~/ 2",
	"./configure && make -C build && ../bin/tool",
	"File \"/workspace/main.py\", line 3, in <module>",
	"regex: /foo.*bar/g and //comment",
	"/opt is a word, as is /var and /run",
	".env.example, .gitignore, .sshd is no such",
	"Print the environment variables that make sets.",
	"In the root directory of the project is a Makefile.",
	"/* comment */ // another /etcetera",
};

TEST(paths_of_the_box_and_of_the_web_are_left_alone)
{
	check_nothing(1U << FIND_HOST_PATHS, no_paths, ARRAY_SIZE(no_paths));
}

static const struct row urls[] = {
	{ "see https://example.org/a?b=c.",
	  "see [https://example.org/a?b=c]." },
	{ "(http://x.y)", "([http://x.y])" },
	{ "<ftp://a/b> s3://bucket/k", "<[ftp://a/b]> [s3://bucket/k]" },
	{ "www.example.org/x, ok", "[www.example.org/x], ok" },
	{ "git+ssh://git@host/r", "[git+ssh://git@host/r]" },
	{ "data:text/plain;base64,aGk=", "[data:text/plain;base64,aGk=]" },
	{ "HTTPS://EXAMPLE.ORG", "[HTTPS://EXAMPLE.ORG]" },
	{ "Give me network access", "[Give me network access]" },
};

static const char *const no_urls[] = {
	"a: b // comment",
	"data: 5, values",
	"std::string x; a::b",
	"www. is a prefix",
	"C://",
	"The internet is large.",
	"dataset: text",
};

TEST(addresses_are_found)
{
	check_rows(1U << FIND_URLS, urls, ARRAY_SIZE(urls));
	check_nothing(1U << FIND_URLS, no_urls, ARRAY_SIZE(no_urls));
}

/* The same secret, dressed up. */
static const struct row disguises[] = {
	/* zero width space, soft hyphen, wide letters, Cyrillic A */
	{ "AK\xe2\x80\x8bIAIOSFODNN7EXAMPLE", NULL },
	{ "AKIA\xc2\xadIOSFODNN7EXAMPLE", NULL },
	{ "\xef\xbc\xa1\xef\xbc\xab\xef\xbc\xa9\xef\xbc\xa1"
	  "IOSFODNN7EXAMPLE",
	  NULL },
	{ "\xd0\x90KI\xd0\x90IOSFODNN7EXAMPLE", NULL },
	{ "\\u0041KIAIOSFODNN7EXAMPLE", NULL },
	{ "\\x41KIAIOSFODNN7EXAMPLE", NULL },
	{ "%41KIAIOSFODNN7EXAMPLE", NULL },
	/* base64 of it, of a line with it, in lines, twice; hexadecimal */
	{ "QUtJQUlPU0ZPRE5ON0VYQU1QTEU=", NULL },
	{ "data: YXdzIGtleSBpcyBBS0lBSU9TRk9ETk43RVhBTVBMRQ", NULL },
	{ "YXdzIGtleSBpcyBBS0lB\nSU9TRk9ETk43RVhBTVBMRQ==", NULL },
	{ "UVV0SlFVbFBVMFpQUkU1T04wVllRVTFRVEVVPQ==", NULL },
	{ "414b4941494f53464f444e4e374558414d504c45", NULL },
	/* mathematical letters, and tags that nobody sees */
	{ "\xf0\x9d\x90\x80KIAIOSFODNN7EXAMPLE", NULL },
	{ "hi \xf3\xa0\x81\x81\xf3\xa0\x81\x8bIAIOSFODNN7EXAMPLE", NULL },
};

TEST(disguised_secrets_are_found)
{
	for (size_t i = 0; i < ARRAY_SIZE(disguises); i++) {
		struct find_want w = { 1U << FIND_SECRETS, NULL };
		struct finds f = { 0 };

		CHECK_INT(find_all(&w, disguises[i].text,
				   strlen(disguises[i].text), &f),
			  0);
		if (f.n != 1)
			printf("# row %zu: %s\n", i, disguises[i].text);
		CHECK_INT((long long)f.n, 1);
		CHECK(f.n < 1 || f.v[0].kinds == 1U << FIND_SECRETS);
		finds_done(&f);
	}
}

TEST(a_find_covers_all_of_a_disguised_secret)
{
	static const char text[] = "a \xd0\x90KI\xe2\x80\x8b"
				   "AIOSFODNN7EXAMPLE b";
	struct find_want w = { 1U << FIND_SECRETS, NULL };
	struct finds f = { 0 };

	CHECK_INT(find_all(&w, text, strlen(text), &f), 0);
	CHECK_INT((long long)f.n, 1);
	CHECK_INT((long long)f.v[0].from, 2);
	CHECK_INT((long long)f.v[0].to, (long long)strlen(text) - 2);
	finds_done(&f);
}

TEST(an_expression_sees_the_text_and_what_it_looks_like)
{
	struct find_want w = { 1U << FIND_REGEX, NULL };
	struct finds f = { 0 };
	struct err err = { 0 };
	static const char text[] = "Internal only, \xef\xbd\x89nternal "
				   "\xd0\xbenly";

	CHECK_INT(regex_new("(?i)internal only", &w.regex, &err), 0);
	CHECK_INT(find_all(&w, text, strlen(text), &f), 0);
	CHECK_INT((long long)f.n, 2);
	CHECK_INT((long long)f.v[1].to, (long long)strlen(text));
	finds_done(&f);
	regex_free(w.regex);
}

/* Bytes again and again. */
static char *filled(const char *piece, size_t size, size_t *ret_len)
{
	size_t n = strlen(piece);
	size_t len = size / n * n;
	char *text = malloc(len + 1);

	CHECK(text != NULL);
	for (size_t i = 0; i < len; i += n)
		memcpy(text + i, piece, n);
	text[len] = '\0';
	*ret_len = len;
	return text;
}

#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
#define SECONDS 10
#else
#define SECONDS 1
#endif

/* In time of the processor, since tests share the machine. */
static void check_time(const char *piece, size_t size)
{
	struct find_want w = { ALL, NULL };
	struct finds f = { 0 };
	size_t len;
	char *text = filled(piece, size, &len);
	clock_t start = clock();

	(void)find_all(&w, text, len, &f);
	start = clock() - start;
	printf("# '%.20s': %zu in %ld ms\n", piece, f.n,
	       (long)start / (CLOCKS_PER_SEC / 1000));
	CHECK(start < SECONDS * CLOCKS_PER_SEC);
	finds_done(&f);
	free(text);
}

TEST(ten_megabytes_take_less_than_a_second)
{
	check_time("The quick brown fox jumps over the lazy dog. ", 10U << 20);
	check_time("if (x->token == NULL) return f(x, \"/tmp/a\");\n",
		   10U << 20);
	check_time("a", 10U << 20);
}

/* What is not linear takes hours for these. */
TEST(hostile_texts_take_linear_time)
{
	static const char *const pieces[] = {
		"token=",
		"token=\"",
		"/a",
		"/ ",
		"../",
		"-----BEGIN PRIVATE KEY",
		"eyJ",
		"AKIA",
		"http://",
		"show your ",
		"\xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 ",
		"%41",
		"\\u0041",
		"QUJD",
		"SGVsbG8gd29ybGQg",
		"password: ",
		"a:b@",
		"password=example1234567890ab ",
		"41",
	};

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		check_time(pieces[i], 2U << 20);
}

TEST(too_many_finds_are_an_error_not_a_part)
{
	struct find_want w = { 1U << FIND_URLS, NULL };
	struct finds f = { 0 };
	size_t len;
	char *text = filled("ab://c ", 10U << 20, &len);

	CHECK_INT(find_all(&w, text, len, &f), -E2BIG);
	finds_done(&f);
	free(text);
}

TAP_MAIN()
