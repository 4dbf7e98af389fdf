/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the classifier says a line is, against what real shells make of it.
 *
 *	shell-diff [COUNT [SEED]]	COUNT lines that are allowed
 *
 * Random lines are made from an alphabet full of shell syntax. Each one that
 * the preset shell-tools allows is given to dash and to bash, where every
 * program is a stub that writes its name and arguments, with their lengths,
 * to a log. The log must be the classifier's own list, with && || ; |
 * honoured: no program more, none less, no byte different, no message.
 *
 * The lines run many to a shell (`eval LINE`, with functions as stubs,
 * since echo and true are builtins), and each 250th once more as `SHELL -c
 * LINE` with stub programs alone on the PATH; the stub is this program under
 * another name.
 *
 * First the test is tried itself: parsers with one deliberate mistake each,
 * and each mistake must be found.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "policy/commands.h"

#define BATCH        400
#define BATCH_WRONG  50
#define MOST_TEXT    512
#define MOST_LOG     (8 << 20)
#define MOST_ENTRIES 64
#define SHOWN        5
#define EACH_ALONE   250

static const char *const shells[] = { "/bin/dash", "/bin/bash" };
static const char *const builtins[] = { "echo", "true", "false", "pwd" };
static const char *const names[] = {
	"echo", "echo", "echo", "true", "false", "ls",   "cat",
	"grep", "wc",   "head", "sort", "pwd",   "true", "false",
};
/* Not on the list; found on the PATH all the same. */
static const char *const others[] = {
	"touch", "sh",   "a",    "b",      "x",    "ab",   "env",  "xargs",
	"rm",    "bash", "time", "e",      "i",    "cut",  "uniq", "find",
	"awk",   "jq",   "date", "python", "node", "curl", "tail",
};

static char top[64]; /* a temporary directory: bin, work, home, log, ... */
static struct shell_line line;

/* Random numbers: xorshift64*, so that a seed gives the same lines. */
static uint64_t state;

static unsigned int below(unsigned int n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned int)((state * 2685821657736338717ULL >> 33) % n);
}

struct text {
	char data[MOST_TEXT];
	size_t len;
};

static void put(struct text *t, const char *s)
{
	size_t n = strlen(s);

	if (t->len + n >= sizeof(t->data))
		return;
	memcpy(t->data + t->len, s, n);
	t->len += n;
}

#define PICK(list) (list)[below(ARRAY_SIZE(list))]

static const char *const plain_bits[] = {
	"a",
	"b",
	"x",
	"ab",
	"1",
	"2",
	"-",
	"_",
	".",
	"=",
	":",
	",",
	"%",
	"+",
	"]",
	"^",
	"@",
	"a/b",
	"\xc3\xa9",
	"\xc8\x81",
	"\xc4\x82",
	"\xc6\x86",
	"\xc2\xa0",
	"\xe2\x80\xa8",
	"\xc6\x88",
	"a#",
	"x~",
	"a!",
	"if",
	"do",
	"in",
	"e",
	"-n",
	"--",
	"\xe4\xbd\xa0",
};
static const char *const quoted_bits[] = {
	"a",   "b",          " ",  "  ", "\t",    "\n",       "$x",
	"`a`", "$(touch x)", "*",  "?",  "[ab]",  "\\",       "\\\\",
	"\"",  ";",          "&&", "||", "|",     "&",        ">",
	"<",   "#",          "~",  "!",  "{a,b}", "(",        ")",
	"\\n", "\\\"",       "$",  "`",  "=",     "\xc3\xa9",
};
static const char *const double_bits[] = {
	"a",    "b",    " ",        "\t",       "\n",  "\\$", "\\`",
	"\\\"", "\\\\", "\\a",      "\\n",      "'",   "*",   "?",
	"[ab]", ";",    "&&",       "||",       "|",   ">",   "#",
	"~",    "! ",   "{a,b}",    "(",        ")",   "=",   "\\'",
	"\\*",  "\\ ",  "\xc3\xa9", "\xc8\x81", "\\!",
};
static const char *const escaped_bits[] = {
	"\\a", "\\ ",  "\\$", "\\\\", "\\'",        "\\\"", "\\;",
	"\\|", "\\&",  "\\*", "\\?",  "\\[",        "\\#",  "\\~",
	"\\!", "\\{",  "\\}", "\\(",  "\\)",        "\\<",  "\\>",
	"\\`", "\\\t", "\\=", "\\-",  "\\\xc3\xa9", "\\n",  "\\0",
};
/* What must be refused, or separates. */
static const char *const sharp_bits[] = {
	"$x",    "$",     "`a`", "$(a)", "*",     "?",   "[ab]", "~",
	"#",     "{a,b}", "&",   ">",    "<",     "(",   ")",    "!",
	"\\\n",  "=~",    ":~",  "\r",   "\x01",  "\"",  "'",    "\\",
	";",     "|",     "\n",  "!a",   "x=1 ",  "if ", "${x}", "$'a'",
	"<<x\n", "2>x",   "|&",  "&&",   "||",    " #a", " ~",   "{",
	"}",     "\xff",  "a=",  "''#",  "\"\"~",
};
static const char *const joiners[] = {
	";",  " ; ",  "&&",  " && ",  "||",  " || ",    "|",     " | ",
	"\n", "\n\n", ";\n", " &&\n", "|\n", "||\n\n ", "\n \n",
};

static void put_word(struct text *t)
{
	unsigned int n = 1 + below(4);

	for (unsigned int i = 0; i < n; i++) {
		unsigned int kind = below(10);

		if (kind < 4) {
			put(t, PICK(plain_bits));
		} else if (kind < 6) {
			put(t, PICK(escaped_bits));
		} else {
			const char *q = kind < 8 ? "'" : "\"";

			put(t, q);
			for (unsigned int k = below(4); k > 0; k--)
				put(t, kind < 8 ? PICK(quoted_bits)
						: PICK(double_bits));
			put(t, q);
		}
	}
}

static void put_name(struct text *t)
{
	const char *name = PICK(names);

	switch (below(12)) {
	case 0: /* the same name in pieces */
		put(t, "\\");
		put(t, name);
		break;
	case 1:
		put(t, "'");
		put(t, name);
		put(t, "'\"\"");
		break;
	case 2:
		put(t, below(8) ? name : PICK(others));
		break;
	default:
		put(t, name);
	}
}

static void put_commands(struct text *t)
{
	unsigned int n = 1 + below(4);

	for (unsigned int i = 0; i < n; i++) {
		if (i)
			put(t, PICK(joiners));
		put_name(t);
		for (unsigned int k = below(4); k > 0; k--) {
			put(t, below(8) ? " " : " \t ");
			put_word(t);
		}
	}
}

/* Puts something sharp in, or takes a byte away. */
static void mutate(struct text *t)
{
	size_t at = t->len ? below((unsigned int)t->len) : 0;
	const char *bit = PICK(sharp_bits);
	size_t n = strlen(bit);

	if (below(3) == 0 && t->len > 1) {
		memmove(t->data + at, t->data + at + 1, t->len - at - 1);
		t->len--;
	} else if (t->len + n < sizeof(t->data)) {
		memmove(t->data + at + n, t->data + at, t->len - at);
		memcpy(t->data + at, bit, n);
		t->len += n;
	}
}

static void put_soup(struct text *t)
{
	put_name(t);
	for (unsigned int i = 1 + below(8); i > 0; i--) {
		unsigned int kind = below(5);

		if (kind == 0)
			put(t, PICK(joiners));
		else if (kind == 1)
			put(t, PICK(sharp_bits));
		else if (kind == 2)
			put(t, PICK(names));
		else
			put(t, PICK(plain_bits));
		put(t, below(2) ? " " : "");
	}
}

static void make_line(struct text *t)
{
	unsigned int mode = below(10);

	t->len = 0;
	if (mode < 2)
		put_soup(t);
	else
		put_commands(t);
	if (mode >= 2 && mode < 7)
		for (unsigned int i = 1 + below(2); i > 0; i--)
			mutate(t);
	t->data[t->len] = '\0';
}

/*
 * Parsers with a mistake: they are given another text than the shell, changed
 * everywhere or only where no quote is.
 */
struct mutant {
	const char *name;
	const char *from;
	const char *to;
	bool everywhere;
};

static const struct mutant mutants[] = {
	{ "right", NULL, NULL, false },
	{ "takes $ for a letter", "$", "_", false },
	{ "takes * for a letter", "*", "_", false },
	{ "takes ? for a letter", "?", "_", false },
	{ "takes # for a letter", "#", "_", false },
	{ "takes ~ for a letter", "~", "_", false },
	{ "takes { for a letter", "{", "_", false },
	{ "takes ` for a letter", "`", "_", false },
	{ "takes & for a sequence", "&", ";", false },
	{ "takes || for &&", "||", "&&", false },
	{ "takes | for ;", " | ", " ; ", false },
	{ "takes double quotes for single ones", "\"", "'", true },
	{ "joins lines badly", "\\\n", " ", true },
	{ "takes $ in double quotes for a letter", "$", "_", true },
};

/* Where the next byte is: outside quotes, in one kind, or escaped. */
static char quote_after(char quote, char c)
{
	if (quote == '\\')
		return '\0';
	if (quote)
		return c == quote ? '\0' : quote;
	return c == '\'' || c == '"' || c == '\\' ? c : '\0';
}

static int parse(const struct mutant *m, const struct text *t)
{
	static struct text wrong;
	char quote = '\0';

	if (!m->from)
		return shell_parse(t->data, t->len, &line);
	wrong.len = 0;
	for (size_t i = 0; i < t->len;) {
		size_t n = strlen(m->from);

		if ((m->everywhere || !quote) &&
		    strncmp(t->data + i, m->from, n) == 0) {
			put(&wrong, m->to);
			i += n;
			continue;
		}
		quote = quote_after(quote, t->data[i]);
		put(&wrong, (char[]){ t->data[i], '\0' });
		i++;
	}
	return shell_parse(wrong.data, wrong.len, &line);
}

/* One program that ran, as the log has it: COUNT LENGTH:WORD ... newline. */
struct entry {
	const char *data;
	size_t len;
};

/* What should run: entries, and how many run together. */
struct item {
	struct text text;
	char list[4 * MOST_TEXT];
	struct entry entries[MOST_ENTRIES];
	unsigned int group[MOST_ENTRIES]; /* the pipeline of each entry */
	bool builtin[MOST_ENTRIES];
	size_t n;
};

static struct item items[BATCH];
static size_t n_items;

static bool is_builtin(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(builtins); i++)
		if (strcmp(builtins[i], name) == 0)
			return true;
	return false;
}

static size_t write_entry(char *out, size_t size, const char *const *words,
			  size_t n)
{
	size_t used = (size_t)snprintf(out, size, "%zu", n);

	for (size_t i = 0; i < n && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, " %zu:%s",
					 strlen(words[i]), words[i]);
	if (used + 1 >= size)
		return 0;
	/* bash writes line by line, and a pipeline's would mix: an entry is
	   one line. \001 is in no line that is allowed. */
	for (size_t i = 0; i < used; i++)
		if (out[i] == '\n')
			out[i] = '\001';
	out[used++] = '\n';
	return used;
}

/* Fills the entries as a shell would run the list; false: too much. */
static bool expect(struct item *it)
{
	size_t used = 0;
	bool runs = true;
	bool failed = false;
	unsigned int group = 0;

	it->n = 0;
	for (size_t i = 0; i < line.n_commands; i++) {
		const struct shell_command *c = &line.commands[i];
		const char *const *words = line.words + c->first;
		bool last = i + 1 == line.n_commands ||
			    line.commands[i + 1].join != SHELL_PIPE;
		size_t n;

		if (c->join != SHELL_PIPE) {
			group++;
			runs = (c->join != SHELL_AND || !failed) &&
			       (c->join != SHELL_OR || failed);
		}
		if (!runs)
			continue;
		n = write_entry(it->list + used, sizeof(it->list) - used, words,
				c->n);
		if (n == 0 || it->n == MOST_ENTRIES)
			return false;
		it->entries[it->n] = (struct entry){ it->list + used, n };
		it->builtin[it->n] = is_builtin(words[0]);
		it->group[it->n++] = group;
		used += n;
		if (last)
			failed = strcmp(words[0], "false") == 0;
	}
	return true;
}

/* Files. */

static const char *in_top(const char *name)
{
	static char path[4][128];
	static unsigned int next;
	char *p = path[next++ % 4];

	(void)snprintf(p, sizeof(path[0]), "%s/%s", top, name);
	return p;
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(2);
}

static size_t slurp(const char *name, char *out, size_t size)
{
	_cleanup_fd_ int fd = open(in_top(name), O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n;

	must(fd >= 0, name);
	while (used + 1 < size &&
	       (n = read(fd, out + used, size - used - 1)) > 0)
		used += (size_t)n;
	out[used] = '\0';
	return used;
}

static void empty(const char *name)
{
	int fd = open(in_top(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0600);

	must(fd >= 0, name);
	(void)close(fd);
}

/* Lines are run; which log, and with which messages, `tag` says. */
static pid_t start(const char *const *argv, const char *tag, const char *locale)
{
	char name[64];
	char path[160];
	char home[160];
	char log[160];
	char lc[64];
	char *env[] = { path, home, log, lc, (char *)(uintptr_t) "x=touch a",
			NULL };
	pid_t pid;

	(void)snprintf(path, sizeof(path), "PATH=%s/bin", top);
	(void)snprintf(home, sizeof(home), "HOME=%s/home", top);
	(void)snprintf(log, sizeof(log), "LOG=%s/log.%s", top, tag);
	(void)snprintf(lc, sizeof(lc), "LC_ALL=%s", locale);
	(void)snprintf(name, sizeof(name), "log.%s", tag);
	empty(name);
	(void)snprintf(name, sizeof(name), "err.%s", tag);
	empty(name);
	(void)fflush(NULL);
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		int in = open("/dev/null", O_RDWR | O_CLOEXEC);
		int err = open(in_top(name), O_WRONLY | O_APPEND | O_CLOEXEC);

		(void)alarm(60);
		if (in < 0 || err < 0 || dup2(in, 0) < 0 || dup2(in, 1) < 0 ||
		    dup2(err, 2) < 0 || chdir(in_top("work")) < 0)
			_exit(126);
		(void)execve(argv[0], (char *const *)(uintptr_t)argv, env);
		_exit(127);
	}
	return pid;
}

static int finish(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		;
	return status;
}

/* As stub: one write, so that entries of a pipeline do not mix. */
static int stub(const char *name, int argc, char **argv)
{
	static char out[1 << 16];
	const char *log = getenv("LOG");
	const char *words[256];
	size_t n;
	int fd;

	if (!log || argc > 255)
		return 125;
	words[0] = name;
	for (int i = 1; i < argc; i++)
		words[i] = argv[i];
	n = write_entry(out, sizeof(out), words, (size_t)argc);
	fd = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0 || write(fd, out, n) != (ssize_t)n)
		return 125;
	return 0;
}

/* Comparing. */

/* The entry at *at, which is moved behind it. */
static bool next_entry(const char *log, size_t len, size_t *at,
		       struct entry *ret)
{
	size_t i = *at;
	char *end;
	unsigned long words;

	if (i >= len)
		return false;
	words = strtoul(log + i, &end, 10);
	for (; words > 0 && *end == ' '; words--) {
		unsigned long n = strtoul(end + 1, &end, 10);

		if (*end != ':' || n > len - (size_t)(end - log) - 1)
			break;
		end += 1 + n;
	}
	*ret = (struct entry){ log + i, (size_t)(end - log) - i + 1 };
	if (words || *end != '\n')
		ret->len = len - i; /* not readable: all of it */
	*at = i + ret->len;
	return true;
}

static bool is_mark(const struct entry *e)
{
	return e->len > 5 && memcmp(e->data, "2 1:@", 5) == 0;
}

static bool same(const struct entry *a, const struct entry *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* The entries of one pipeline come in any order. */
static bool take(const struct item *it, bool *done, size_t *at, size_t end,
		 const struct entry *e)
{
	for (size_t i = *at; i < end; i++) {
		if (done[i] || !same(&it->entries[i], e))
			continue;
		done[i] = true;
		while (*at < end && done[*at])
			++*at;
		return true;
	}
	return false;
}

/* Whether `log` from *at up to a mark is what the item expects. */
static bool agrees(const struct item *it, bool alone, const char *log,
		   size_t len, size_t *at)
{
	bool done[MOST_ENTRIES + 1] = { false };
	struct entry e;
	size_t i = 0;
	size_t before = *at;
	bool good = true;

	for (size_t k = 0; k < it->n; k++)
		done[k] = alone && it->builtin[k];
	while (i < it->n && done[i])
		i++;
	while (next_entry(log, len, at, &e)) {
		size_t end = i;

		if (is_mark(&e)) {
			*at = before;
			break;
		}
		before = *at;
		while (end < it->n && it->group[end] == it->group[i])
			end++;
		good = good && take(it, done, &i, end, &e);
		while (i < it->n && done[i])
			i++;
	}
	return good && i == it->n;
}

static unsigned int shown;

static void show(const char *shell, const struct item *it, const char *log,
		 size_t n)
{
	if (shown++ >= SHOWN)
		return;
	printf("# %s differs for: ", shell);
	for (size_t i = 0; i < it->text.len; i++) {
		unsigned char c = (unsigned char)it->text.data[i];

		if (c == '\n')
			printf("\\n");
		else if (c < 0x20 || c >= 0x7f)
			printf("\\x%02x", c);
		else
			putchar(c);
	}
	printf("\n#   it ran:");
	for (size_t i = 0; i < n && i < 200; i++)
		putchar(log[i] == '\n' ? '~' : log[i]);
	printf("\n#   listed:");
	for (size_t i = 0; i < it->n; i++)
		printf(" %.*s~", (int)it->entries[i].len - 1,
		       it->entries[i].data);
	printf("\n");
}

/* One shell process for many lines. */
static void write_script(void)
{
	FILE *f = fopen(in_top("script"), "we");

	must(f != NULL, "script");
	(void)fputs("NL='\n'\n"
		    "log() { r=$#; for a; do r=\"$r ${#a}:\"\n"
		    "while :; do case $a in\n"
		    "*\"$NL\"*) r=$r${a%%\"$NL\"*}\001; a=${a#*\"$NL\"} ;;\n"
		    "*) r=$r$a; break ;;\n"
		    "esac; done; done\n"
		    "printf '%s\\n' \"$r\" >>\"$LOG\"; }\n",
		    f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)fprintf(f, "%s() { log %s \"$@\"; %s }\n", names[i],
			      names[i],
			      strcmp(names[i], "false") == 0 ? "return 1;"
							     : "");
	for (size_t i = 0; i < n_items; i++) {
		(void)fprintf(f, "log @ %zu\neval '", i);
		for (size_t k = 0; k < items[i].text.len; k++) {
			char c = items[i].text.data[k];

			if (c == '\'')
				(void)fputs("'\\''", f);
			else
				(void)fputc(c, f);
		}
		(void)fputs("'\n", f);
	}
	must(fclose(f) == 0, "script");
}

/* The place behind the mark of line i; behind the end if it is not there. */
static size_t find_mark(const char *log, size_t len, size_t from, size_t i)
{
	char mark[64];
	const char *at;

	(void)snprintf(mark, sizeof(mark), "%zu", i);
	(void)snprintf(mark, sizeof(mark), "2 1:@ %zu:%zu\n", strlen(mark), i);
	at = memmem(log + from, len - from, mark, strlen(mark));
	return at ? (size_t)(at - log) + strlen(mark) : len + 1;
}

static size_t compare_batch(const char *shell, const char *tag)
{
	static char log[MOST_LOG];
	char name[64];
	size_t len;
	size_t at = 0;
	size_t bad = 0;

	(void)snprintf(name, sizeof(name), "log.%s", tag);
	len = slurp(name, log, sizeof(log));
	for (size_t i = 0; i < n_items; i++) {
		size_t from;

		at = find_mark(log, len, at, i);
		from = at;
		if (at > len) {
			printf("# %s: the log ends before line %zu\n", shell,
			       i);
			return bad + 1;
		}
		if (!agrees(&items[i], false, log, len, &at)) {
			bad++;
			show(shell, &items[i], log + from, len - from);
			at = from;
		}
	}
	return bad;
}

static size_t complaints(const char *shell, const char *tag)
{
	static char err[4096];
	char name[64];

	(void)snprintf(name, sizeof(name), "err.%s", tag);
	if (slurp(name, err, sizeof(err)) == 0)
		return 0;
	if (shown++ < SHOWN)
		printf("# %s says: %.200s\n", shell, err);
	return 1;
}

static size_t run_batch(void)
{
	static const char *const tags[] = { "0", "1" };
	char script[128];
	pid_t pids[ARRAY_SIZE(shells)];
	size_t bad = 0;

	if (n_items == 0)
		return 0;
	write_script();
	(void)snprintf(script, sizeof(script), "%s", in_top("script"));
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		pids[i] = start((const char *const[]){ shells[i], script,
						       NULL },
				tags[i], "C");
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		bool died = WIFSIGNALED(finish(pids[i]));

		if (died)
			printf("# %s was killed\n", shells[i]);
		bad += died;
		bad += compare_batch(shells[i], tags[i]);
		bad += complaints(shells[i], tags[i]);
	}
	n_items = 0;
	return bad;
}

/* The line itself as the shell's argument; builtins do what they do. */
static size_t run_alone(const struct item *it)
{
	static char log[1 << 16];
	size_t bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		const char *const argv[] = { shells[i], "-c", it->text.data,
					     NULL };
		size_t at = 0;
		size_t len;

		(void)finish(start(argv, "c", "C.UTF-8"));
		len = slurp("log.c", log, sizeof(log));
		if (!agrees(it, true, log, len, &at) || at != len) {
			bad++;
			show(shells[i], it, log, len);
		}
		bad += complaints(shells[i], "c");
	}
	return bad;
}

struct tally {
	size_t lines;
	size_t allowed;
	size_t alone;
	size_t bad;
};

static void one_line(const struct mutant *m, struct tally *t)
{
	struct item *it = &items[n_items];
	struct judgement j;

	make_line(&it->text);
	t->lines++;
	if (parse(m, &it->text) < 0)
		return;
	commands_judge(commands_preset("shell-tools"), &line, &j);
	if (j.decision != DECISION_ALLOW || !expect(it))
		return;
	t->allowed++;
	if (!m->from && t->allowed % EACH_ALONE == 0) {
		t->alone++;
		t->bad += run_alone(it);
	}
	if (++n_items == (m->from ? BATCH_WRONG : BATCH))
		t->bad += run_batch();
}

static struct tally run(const struct mutant *m, size_t count)
{
	struct tally t = { 0 };

	shown = m->from ? SHOWN : 0;
	while (t.allowed < count && t.lines < 20 * count &&
	       (t.bad == 0 || !m->from))
		one_line(m, &t);
	t.bad += run_batch();
	return t;
}

static void make_place(void)
{
	static const char *const files[] = { "a", "b", "ab", "x" };

	(void)snprintf(top, sizeof(top), "/tmp/cordon-shell-diff.XXXXXX");
	must(mkdtemp(top) != NULL, "mkdtemp");
	must(mkdir(in_top("bin"), 0700) == 0, "bin");
	must(mkdir(in_top("work"), 0700) == 0, "work");
	must(mkdir(in_top("home"), 0700) == 0, "home");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "work/%s", files[i]);
		empty(path);
	}
}

static void link_stub(const char *name)
{
	char path[64];
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	must(n > 0, "readlink");
	self[n] = '\0';
	(void)snprintf(path, sizeof(path), "bin/%s", name);
	must(symlink(self, in_top(path)) == 0 || errno == EEXIST, path);
}

static void remove_place(void)
{
	const char *const argv[] = { "/bin/rm", "-rf", top, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		(void)execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	(void)finish(pid);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	int number = 0;
	int failed = 0;
	struct tally t;

	if (strcmp(base_name(argv[0]), "shell-diff") != 0)
		return stub(base_name(argv[0]), argc, argv);
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		must(access(shells[i], X_OK) == 0, shells[i]);
	make_place();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		link_stub(names[i]);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		link_stub(others[i]);
	for (size_t i = 1; i < ARRAY_SIZE(mutants); i++) {
		state = 88172645463325252ULL;
		t = run(&mutants[i], 5000);
		failed += t.bad == 0;
		printf("%s %d - a parser that %s is found out (%zu lines)\n",
		       t.bad ? "ok" : "not ok", ++number, mutants[i].name,
		       t.lines);
	}
	state = seed * 0x9e3779b97f4a7c15ULL | 1;
	t = run(&mutants[0], count);
	/* Lines that are refused prove nothing. */
	failed += t.bad || t.allowed < count;
	printf("# seed %llu: %zu lines, %zu allowed, %zu also alone, "
	       "%zu differ\n",
	       (unsigned long long)seed, t.lines, t.allowed, t.alone, t.bad);
	printf("%s %d - dash and bash run what is listed\n",
	       t.bad || t.allowed < count ? "not ok" : "ok", ++number);
	printf("1..%d\n", number);
	remove_place();
	return failed ? 1 : 0;
}
