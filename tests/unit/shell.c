/* SPDX-License-Identifier: Apache-2.0 */

/* Command lines: what comes out of them, and where and why one is refused. */

#include "tests/tap.h"

#include <errno.h>

#include "base/util.h"
#include "policy/shell.h"

static struct shell_line line;

/* The list in one string: joins, and each word in <>. */
static const char *listed(const char *text)
{
	static const char *const joins[] = { "", " | ", " && ", " || ", " ; " };
	static char out[4096];
	size_t n = 0;

	out[0] = '\0';
	if (shell_parse(text, strlen(text), &line) < 0)
		return line.why;
	for (size_t i = 0; i < line.n_commands; i++) {
		const struct shell_command *c = &line.commands[i];

		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s",
				      joins[c->join]);
		for (size_t w = 0; w < c->n; w++)
			n += (size_t)snprintf(out + n, sizeof(out) - n, "<%s>",
					      line.words[c->first + w]);
	}
	return out;
}

TEST(shell_words)
{
	CHECK_STR(listed("ls"), "<ls>");
	CHECK_STR(listed(" ls\t-l  "), "<ls><-l>");
	CHECK_STR(listed("echo ''"), "<echo><>");
	CHECK_STR(listed("echo a''b\"\"c"), "<echo><abc>");
	CHECK_STR(listed("echo 'a b'\"c d\"e\\ f"), "<echo><a bc de f>");
	CHECK_STR(listed("echo '\\n$x`y`*\"'"), "<echo><\\n$x`y`*\">");
	CHECK_STR(listed("echo \"\\a\\$\\`\\\"\\\\\\'\""),
		  "<echo><\\a$`\"\\\\'>");
	CHECK_STR(listed("echo \\a\\$\\'\\*\\#\\~"), "<echo><a$'*#~>");
	CHECK_STR(listed("echo \"a\nb\tc\" 'd\ne'"), "<echo><a\nb\tc><d\ne>");
	CHECK_STR(listed("echo a#b c=d ^e ] , % @ +"),
		  "<echo><a#b><c=d><^e><]><,><%><@><+>");
	CHECK_STR(listed("find . ! -name x"), "<find><.><!><-name><x>");
	CHECK_STR(listed("echo a! b!=c \"d!\""), "<echo><a!><b!=c><d!>");
}

TEST(shell_joins)
{
	CHECK_STR(listed("a&&b||c;d|e\nf"),
		  "<a> && <b> || <c> ; <d> | <e> ; <f>");
	CHECK_STR(listed("a;"), "<a>");
	CHECK_STR(listed("\n\n a \n\n ; "), "no command before an operator");
	CHECK_STR(listed("a |\n\n\t b &&\n c;\n\nd"), "<a> | <b> && <c> ; <d>");
	CHECK_STR(listed("echo ';' \\& \"|\""), "<echo><;><&><|>");
}

struct refusal {
	const char *text;
	size_t at;
	const char *why;
};

TEST(shell_refusals)
{
	static const struct refusal rows[] = {
		{ "", 0, "no command" },
		{ "\n \t\n", 0, "no command" },
		{ "ls $x", 3, "an expansion ($)" },
		{ "ls \"a$x\"", 5, "an expansion ($) in double quotes" },
		{ "ls `x`", 3, "substitution" },
		{ "ls \"`x`\"", 4, "substitution" },
		{ "ls a*", 4, "pattern" },
		{ "ls a > b", 5, "redirection" },
		{ "ls 2>b", 4, "redirection" },
		{ "ls & ls", 3, "background" },
		{ "ls |& wc", 3, "both streams" },
		{ "ls ~", 3, "home" },
		{ "ls a=~", 5, "home" },
		{ "ls \"a\"~", 6, "home" },
		{ "ls #x", 3, "comment" },
		{ "ls; #", 4, "comment" },
		{ "A=b ls", 0, "assignment" },
		{ "ls; A=b", 4, "assignment" },
		{ "ls && if x", 6, "reserved" },
		{ "'while' x", 0, "reserved" },
		{ "ls &&", 5, "after an operator" },
		{ "ls && ; ls", 6, "before an operator" },
		{ "ls 'a", 3, "never closed" },
		{ "ls \"a", 3, "never closed" },
		{ "ls \"a\\", 3, "never closed" },
		{ "ls \\", 3, "nothing after" },
		{ "ls \\\nx", 3, "continued" },
		{ "ls \x01", 3, "control" },
		{ "ls '\x7f'", 4, "control" },
		{ "ls \xff", 3, "UTF-8" },
		{ "ls '\xe2\x80'", 4, "UTF-8" },
		{ "ls \xe2\x80\xae", 3, "cannot be seen" },
		{ "'' x", 0, "without a name" },
		{ "ls !x", 3, "history" },
		{ "ls!;x", 2, "history" },
		{ "ls {a", 3, "brace" },
		{ "ls )", 3, "parenthesis" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = shell_parse(rows[i].text, strlen(rows[i].text), &line);

		if (r == -EINVAL && line.at == rows[i].at &&
		    strstr(line.why, rows[i].why) && line.n_commands == 0)
			continue;
		printf("# '%s': %d, at %zu: %s\n", rows[i].text, r, line.at,
		       line.why);
		CHECK(!"the row above");
	}
}

/* Bytes are refused or allowed one by one, so that no value is forgotten. */
TEST(shell_each_byte)
{
	static const char bare[] = "%+,-./0123456789:=@"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ]^_"
				   "abcdefghijklmnopqrstuvwxyz";

	for (int c = 0; c < 256; c++) {
		char text[] = { 'l', 's', ' ', (char)c, 'x', '\0' };
		char quoted[] = { 'l', 's', ' ', '\'', (char)c, '\'', '\0' };
		bool blank = c == ' ' || c == '\t';
		bool join = c == ';' || c == '|' || c == '\n';
		bool quote = c == '\\';
		bool ok = shell_parse(text, 5, &line) == 0;

		if (ok !=
		    (blank || join || quote || (c && strchr(bare, c) != NULL)))
			printf("# byte %d\n", c), tap_bad++;
		ok = shell_parse(quoted, 6, &line) == 0;
		if (ok != ((c >= 0x20 && c < 0x7f && c != '\'') || c == '\n' ||
			   c == '\t'))
			printf("# quoted byte %d\n", c), tap_bad++;
		if (ok && line.words[1][0] != (char)c)
			printf("# quoted byte %d changed\n", c), tap_bad++;
	}
}

TEST(shell_limits)
{
	static char text[2 * SHELL_MAX_TEXT];

	memset(text, 'a', sizeof(text));
	CHECK_INT(shell_parse(text, SHELL_MAX_TEXT, &line), 0);
	CHECK_INT((long long)strlen(line.words[0]), SHELL_MAX_TEXT);
	CHECK_INT(shell_parse(text, SHELL_MAX_TEXT + 1, &line), -EINVAL);
	CHECK_STR(line.why, "too long");
	for (size_t i = 1; i < sizeof(text); i += 2)
		text[i] = ' ';
	CHECK_INT(shell_parse(text, 2 * SHELL_MAX_WORDS, &line), 0);
	CHECK_INT((long long)line.n_words, SHELL_MAX_WORDS);
	CHECK_INT(shell_parse(text, 2 * SHELL_MAX_WORDS + 1, &line), -EINVAL);
	CHECK_STR(line.why, "too many words");
	for (size_t i = 1; i < sizeof(text); i += 2)
		text[i] = ';';
	CHECK_INT(shell_parse(text, 2 * SHELL_MAX_COMMANDS, &line), 0);
	CHECK_INT(shell_parse(text, 2 * SHELL_MAX_COMMANDS + 1, &line),
		  -EINVAL);
	CHECK_STR(line.why, "too many commands");
	CHECK_INT((long long)line.n_commands, 0);
}

TAP_MAIN()
