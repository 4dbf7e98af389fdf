/* SPDX-License-Identifier: Apache-2.0 */

/* Regular expressions of base/regex.h: what they match, refuse and cost. */

#include "tests/tap.h"

#include <errno.h>
#include <regex.h>

#include "base/clock.h"
#include "base/regex.h"
#include "base/util.h"

/* All matches, each in brackets. */
static void mark(const char *pattern, const char *text, char *ret, size_t size)
{
	struct regex *r = NULL;
	struct err err = { 0 };
	size_t len = strlen(text);
	size_t at = 0;
	size_t from;
	size_t to;
	size_t n = 0;

	if (regex_new(pattern, &r, &err) < 0) {
		(void)snprintf(ret, size, "%s", err.text);
		return;
	}
	while (at < len && regex_find(r, text, len, at, &from, &to) > 0) {
		n += (size_t)snprintf(ret + n, size - n, "%.*s[%.*s]",
				      (int)(from - at), text + at,
				      (int)(to - from), text + from);
		at = to;
	}
	(void)snprintf(ret + n, size - n, "%s", text + at);
	regex_free(r);
}

static const struct {
	const char *pattern, *text, *want;
} rows[] = {
	{ "a", "banana", "b[a]n[a]n[a]" },
	{ "(?i)internal only", "This is Internal ONLY.",
	  "This is [Internal ONLY]." },
	{ "a|ab|abc", "abcd", "[abc]d" },
	{ "\"[^\"]*\"", "x \"a\" b \"c\"", "x [\"a\"] b [\"c\"]" },
	{ "\\d{4}", "12345678 123", "[1234][5678] 123" },
	{ "\\d{2,3}", "1 12 123 1234", "1 [12] [123] [123]4" },
	{ "\\d{2,}", "1 12 123456", "1 [12] [123456]" },
	{ "x{0,2}y", "y xy xxy xxxy", "[y] [xy] [xxy] x[xxy]" },
	{ "\\bcat\\b", "cat concat cat.", "[cat] concat [cat]." },
	{ "\\Bcat", "cat concat", "cat con[cat]" },
	{ "^b.*$", "a b\nb c\nd", "a b\n[b c]\nd" },
	{ "(?s)a.b", "a\nb", "[a\nb]" },
	{ "a.b", "a\nb", "a\nb" },
	{ "(foo|ba[rz])+", "foobarbaz bat", "[foobarbaz] bat" },
	{ "(?:ab)?c", "abc c", "[abc] [c]" },
	{ "a.b",
	  "a\xc3\xa9"
	  "b",
	  "[a\xc3\xa9"
	  "b]" },
	{ "\xc3\xa9+", "e\xc3\xa9\xc3\xa9", "e[\xc3\xa9\xc3\xa9]" },
	{ "[^a-z ]",
	  "ab\xe2\x82\xac"
	  "c",
	  "ab[\xe2\x82\xac]c" },
	{ "[]x]", "a]x", "a[]][x]" },
	{ "[a\\]-]", "a]-b", "[a][]][-]b" },
	{ "[\\w.]+@[\\w.]+", "to me@b.org now", "to [me@b.org] now" },
	{ "\\x41\\.", "A. Ab", "[A.] Ab" },
	{ "a{,2}", "a{,2}", "[a{,2}]" },
	{ "{", "{", "[{]" },
	{ "(?i)[a-c]+", "xABcd", "x[ABc]d" },
	{ "\\S+", "a \xc3\xa9", "[a] [\xc3\xa9]" },
};

TEST(matches_what_everybody_means)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char have[512];

		mark(rows[i].pattern, rows[i].text, have, sizeof(have));
		if (strcmp(have, rows[i].want) != 0)
			printf("# %s\n", rows[i].pattern);
		CHECK_STR(have, rows[i].want);
	}
}

TEST(what_needs_backtracking_or_says_nothing_is_refused)
{
	static const char *const bad[] = {
		"(a)\\1",
		"(?=a)b",
		"(?!a)b",
		"(?<=a)b",
		"(?<n>a)",
		"a*?",
		"a+?",
		"a??",
		"a{1,2}?",
		"a*+",
		"a**",
		"*a",
		"(a",
		"a)",
		"[a",
		"a\\",
		"[z-a]",
		"a{3,2}",
		"a{256}",
		"a*",
		"",
		"()",
		"a|",
		"^",
		"\\b",
		"\\q",
		"[[:alpha:]]",
		"(?x)a",
		"a(?i)b",
		"\\xZZ",
		"a{0}",
		"[\xc3\xa9]",
		"(a{255}){255}",
		"((((((){255}){255}){255}){255}){255})a",
		("((((((((((((((((((((("
		 "((((((((((((((((a)))))))))))))))))))))))))))))))))))))"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct regex *r = NULL;
		struct err err = { 0 };

		if (regex_new(bad[i], &r, &err) == 0)
			printf("# %s is accepted\n", bad[i]);
		CHECK(!r && err.code == EINVAL && err.text[0]);
		regex_free(r);
	}
}

TEST(a_pattern_has_a_ceiling)
{
	char long_one[REGEX_PATTERN + 2];
	struct regex *r = NULL;
	struct err err = { 0 };

	memset(long_one, 'a', sizeof(long_one));
	long_one[REGEX_PATTERN + 1] = '\0';
	CHECK_INT(regex_new(long_one, &r, &err), -EINVAL);
	long_one[REGEX_PATTERN] = '\0';
	CHECK_INT(regex_new(long_one, &r, &err), 0);
	regex_free(r);
}

/* A pattern of the part that POSIX and we have in common. */
static size_t make(unsigned int *seed, char *out, int depth)
{
	static const char *const atoms[] = {
		"a", "b", "c", "[ab]", "[^a]", "."
	};
	static const char *const often[] = { "", "", "*", "+", "?", "{1,3}" };
	size_t n = 0;
	int pieces = 1 + rand_r(seed) % 3;

	for (int i = 0; i < pieces; i++) {
		if (depth < 3 && rand_r(seed) % 4 == 0) {
			out[n++] = '(';
			n += make(seed, out + n, depth + 1);
			out[n++] = ')';
		} else {
			n += (size_t)sprintf(out + n, "%s",
					     atoms[(size_t)rand_r(seed) %
						   ARRAY_SIZE(atoms)]);
		}
		n += (size_t)sprintf(
			out + n, "%s",
			often[(size_t)rand_r(seed) % ARRAY_SIZE(often)]);
		if (rand_r(seed) % 6 == 0 && i + 1 < pieces)
			out[n++] = '|';
	}
	out[n] = '\0';
	return n;
}

TEST(it_agrees_with_the_c_library)
{
	unsigned int seed = 7;
	int compared = 0;

	for (int round = 0; round < 4000; round++) {
		char pattern[2048];
		char text[24];
		struct regex *r = NULL;
		struct err err = { 0 };
		regex_t posix;
		regmatch_t m = { 0 };
		size_t from = 0;
		size_t to = 0;
		int found;

		(void)make(&seed, pattern, 0);
		for (size_t i = 0; i + 1 < sizeof(text); i++)
			text[i] = "abcd"[rand_r(&seed) % 4];
		text[sizeof(text) - 1] = '\0';
		if (strlen(pattern) > REGEX_PATTERN ||
		    regex_new(pattern, &r, &err) < 0)
			continue;
		CHECK_INT(regcomp(&posix, pattern, REG_EXTENDED), 0);
		found = regexec(&posix, text, 1, &m, 0) == 0;
		CHECK_INT(regex_find(r, text, strlen(text), 0, &from, &to),
			  found);
		if (found && ((size_t)m.rm_so != from || (size_t)m.rm_eo != to))
			printf("# %s on %s: %zu-%zu\n", pattern, text, from,
			       to);
		CHECK(!found ||
		      ((size_t)m.rm_so == from && (size_t)m.rm_eo == to));
		compared++;
		regfree(&posix);
		regex_free(r);
	}
	CHECK(compared > 1000);
}

/* Each of these takes years where states are tried one after the other. */
TEST(hostile_texts_take_bounded_time)
{
	static const char *const patterns[] = {
		"(a*)*b",        "(a|a)*b", "(a|aa)+$b",
#ifndef __SANITIZE_ADDRESS__ /* they use all of the allowance */
		"(.*a){20}b",    "a|a.*b",
#endif
		"(\\w+\\s?)+$x",
	};
	size_t len = 1 << 20;
	_cleanup_free_ char *text = malloc(len);

	CHECK(text != NULL);
	memset(text, 'a', len);
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		struct regex *r = NULL;
		struct err err = { 0 };
		int64_t start = clock_us();
		size_t at = 0;
		size_t from;
		size_t to;
		int found = 1;

		CHECK_INT(regex_new(patterns[i], &r, &err), 0);
		for (; r && found > 0 && at < len; at = to)
			found = regex_find(r, text, len, at, &from, &to);
		printf("# %s: %d in %lld ms\n", patterns[i], found,
		       (long long)(clock_us() - start) / 1000);
		CHECK(found <= 0);
		CHECK(clock_us() - start < 10000000);
		regex_free(r);
	}
}

static void tests(const char *pattern, const char *text, int want)
{
	struct regex *r = NULL;
	struct err err = { 0 };

	if (regex_new_test(pattern, &r, &err) < 0) {
		printf("# %s: %s\n", pattern, err.text);
		tap_bad++;
		return;
	}
	if (regex_test(r, text, strlen(text)) != want) {
		printf("# '%s' and '%s': not %d\n", pattern, text, want);
		tap_bad++;
	}
	regex_free(r);
}

/* As schemas ask it: of a whole text, which may be empty. */
TEST(whole_texts)
{
	tests("b+", "abbb", 1);
	tests("^b", "abbb", 0);
	tests("^b", "a\nb", 0);
	tests("a$", "a\nb", 0);
	tests("^(?:a|bc)*d$", "abcad", 1);
	tests("^(a|bc)*d$", "abcabd", 0);
	tests("^\\d{3}-\\d{2,4}$", "123-4567", 1);
	tests("^\\d{3}-\\d{2,4}$", "123-45678", 0);
	tests("^a{2,}$", "a", 0);
	tests("^[^\\s/]+$", "a\xc3\xa4", 1);
	tests("^[^\\s/]+$", "a b", 0);
	tests("^[\\w.-]+@[\\w-]+\\.[a-z]{2,}$", "a.b@c-d.org", 1);
	tests("^.$", "\xe2\x82\xac", 1);
	tests("^.$", "\n", 0);
	tests("^[a-z]*$", "", 1);
	tests("^[a-z]*?$", "abc", 1);
	tests("^[a-z]*$", "a1", 0);
	tests("x?", "", 1);
	tests("a$b", "ab", 0);
}

TAP_MAIN()
