/* SPDX-License-Identifier: Apache-2.0 */

/* File names of blocks, the directive in a first line, and languages. */

#include "tests/tap.h"

#include <errno.h>
#include <stdint.h>

#include <cordon/cordon.h>

#include "base/util.h"
#include "box/lang.h"
#include "box/prepare.h"
#include "box/spec.h"

#define OUTSIDE "Filename is not in the workspace"
#define INVALID "Filename is not valid: "

static const struct {
	const char *name;
	const char *refusal; /* NULL: it is used */
} names[] = {
	{ "a.py", NULL },
	{ "sub/dir/a.py", NULL },
	{ "a:b.py", NULL },
	{ "with space.py", NULL },
	{ "quo'te\".py", NULL },
	{ "\xc3\xa4.py", NULL },
	{ "-V", NULL },
	{ "--help/x", NULL },
	{ "..a", NULL },
	{ "a..", NULL },
	{ "...", NULL },
	{ ".hidden", NULL },
	{ "a//b", NULL },
	{ "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", NULL },
	{ "/etc/passwd", OUTSIDE },
	{ "/", OUTSIDE },
	{ "..", OUTSIDE },
	{ "../x", OUTSIDE },
	{ "a/../../x", OUTSIDE },
	{ "a/..", OUTSIDE },
	{ "a/../b", OUTSIDE },
	{ "", INVALID },
	{ ".", INVALID },
	{ "./a", INVALID },
	{ "a/", INVALID },
	{ "a/b/", INVALID },
	{ "a\nb", INVALID },
	{ "a\x01", INVALID },
	{ "a\x7f", INVALID },
	{ "a\tb", INVALID },
	{ "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", INVALID },
};

TEST(filename_table)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct err err = { 0 };
		int r = spec_check_filename(names[i].name, &err);

		if (names[i].refusal
			    ? r < 0 && strstr(err.text, names[i].refusal)
			    : r == 0)
			continue;
		printf("# '%s': %d, %s\n", names[i].name, r, err.text);
		CHECK(!"the name above");
	}
}

/* What a block's name becomes, by its text alone. */
TEST(filename_plain)
{
	static const struct {
		const char *name;
		const char *plain; /* or the text of the refusal */
	} plain[] = {
		{ "./a.py", "a.py" },
		{ "././a.py", "a.py" },
		{ "./d/x.py", "d/x.py" },
		{ "a//b.py", "a/b.py" },
		{ "a/./b.py", "a/b.py" },
		{ "a/../b.py", "b.py" },
		{ "a/b/../../c/d.py", "c/d.py" },
		{ "..a/...", "..a/..." },
		{ "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/../x",
		  "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/x" },
		{ "/a", OUTSIDE },
		{ "..", OUTSIDE },
		{ "../a.py", OUTSIDE },
		{ "./../a.py", OUTSIDE },
		{ "a/../../a.py", OUTSIDE },
		{ "a/../../w/a.py", OUTSIDE },
		{ "", INVALID },
		{ ".", INVALID },
		{ "./", INVALID },
		{ "a/.", INVALID },
		{ "a/..", INVALID },
		{ "a/b/..", INVALID },
		{ "./a\n", INVALID },
	};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		struct err err = { 0 };
		_cleanup_free_ char *got = NULL;
		int r = spec_plain_filename(plain[i].name, &got, &err);

		if (r == 0 ? strcmp(got, plain[i].plain) == 0
			   : strstr(err.text, plain[i].plain) != NULL)
			continue;
		printf("# '%s': %s\n", plain[i].name, r ? err.text : got);
		CHECK(!"the name above");
	}
}

TEST(language_is_trimmed)
{
	struct cordon_spec *s = cordon_spec_new();

	CHECK_INT(cordon_spec_code(s, " Python \n", "x", 1, NULL, NULL), 0);
	CHECK_INT(cordon_spec_code(s, "\tPython3.11 ", "x", 1, NULL, NULL), 0);
	CHECK_INT(cordon_spec_code(s, "py thon", "x", 1, NULL, NULL), 0);
	CHECK_INT(cordon_spec_code(s, "  ", "x", 1, NULL, NULL), 0);
	CHECK(s->blocks[0].lang && s->blocks[0].lang == s->blocks[1].lang);
	CHECK_STR(s->blocks[0].lang_name, "Python");
	CHECK_STR(s->blocks[1].lang_name, "python3.11");
	CHECK(!s->blocks[2].lang);
	CHECK(!s->blocks[3].lang);
	CHECK(lang_find(" PY ") == s->blocks[0].lang);
	cordon_spec_free(s);
}

TEST(filename_lengths)
{
	char name[5000];
	struct err err = { 0 };

	memset(name, 'a', sizeof(name));
	name[255] = '\0';
	CHECK_INT(spec_check_filename(name, &err), 0);
	name[255] = 'a';
	name[256] = '\0';
	CHECK_INT(spec_check_filename(name, &err), -EINVAL);
	name[256] = 'a';
	for (size_t i = 250; i < sizeof(name); i += 250)
		name[i] = '/';
	name[15 * 250] = '\0';
	CHECK_INT(spec_check_filename(name, &err), 0);
	name[15 * 250] = '/';
	name[4097] = '\0';
	CHECK_INT(spec_check_filename(name, &err), -EINVAL);
}

/* Where a block's file goes, or the text of the refusal. */
static void file_of(const char *code, const char *filename, char *ret,
		    size_t size)
{
	struct cordon_spec *s = cordon_spec_new();
	struct prepared p;
	struct err err = { 0 };

	CHECK_INT(cordon_spec_code(s, "sh", code, strlen(code), filename, NULL),
		  0);
	if (prepare(s, &p, &err) < 0)
		(void)snprintf(ret, size, "%s", err.text);
	else
		(void)snprintf(ret, size, "%s", p.code_files[0]);
	prepared_done(&p);
	cordon_spec_free(s);
}

static const struct {
	const char *code;
	const char *file; /* NULL: a generated name */
} directives[] = {
	{ "# filename: a.sh\nx", "/workspace/a.sh" },
	{ "# filename: a.sh", "/workspace/a.sh" },
	{ "#filename:a.sh\n", "/workspace/a.sh" },
	{ "# FileName:   a.sh  \n", "/workspace/a.sh" },
	{ "# filename: a.sh\r\nx", "/workspace/a.sh" },
	{ "// filename: a.js\n", "/workspace/a.js" },
	{ "-- filename: a.lua\n", "/workspace/a.lua" },
	{ "; filename: a.asm\n", "/workspace/a.asm" },
	{ "# filename: a:b c.sh\n", "/workspace/a:b c.sh" },
	{ "# filename: sub/a.sh\n", "/workspace/sub/a.sh" },
	{ "# filename: ./sub/../a.sh\n", "/workspace/a.sh" },
	{ "# filename: -V\n", "/workspace/-V" },
	{ "# filename: /etc/x\n", OUTSIDE },
	{ "# filename: ../x\n", OUTSIDE },
	{ "# filename:\n", INVALID "it is empty" },
	{ "# filename: a\tb\n", INVALID "it has a control character" },
	{ "x\n# filename: a.sh\n", NULL },
	{ "filename: a.sh\n", NULL },
	{ "# filenames: a.sh\n", NULL },
	{ "# file name: a.sh\n", NULL },
	{ "#", NULL },
	{ "", NULL },
	{ "\n", NULL },
};

TEST(directive_table)
{
	for (size_t i = 0; i < ARRAY_SIZE(directives); i++) {
		char file[600];
		const char *want = directives[i].file ? directives[i].file
						      : "/workspace/code_";

		file_of(directives[i].code, NULL, file, sizeof(file));
		if (directives[i].file ? strcmp(file, want) == 0
				       : strncmp(file, want, strlen(want)) == 0)
			continue;
		printf("# '%s': %s\n", directives[i].code, file);
		CHECK(!"the directive above");
	}
}

TEST(directive_field_wins_over_it)
{
	char file[600];

	file_of("# filename: a.sh\n", "b.sh", file, sizeof(file));
	CHECK_STR(file, "/workspace/b.sh");
}

/* printf 'sh\0echo 1' | sha256sum */
TEST(filename_generated_from_the_hash)
{
	char one[600];
	char same[600];
	char two[600];

	file_of("echo 1", NULL, one, sizeof(one));
	file_of("echo 1", NULL, same, sizeof(same));
	file_of("echo 2", NULL, two, sizeof(two));
	CHECK_STR(one, "/workspace/code_659225d6e3ce646b.sh");
	CHECK_STR(same, one);
	CHECK(strcmp(one, two) != 0);
}

/* One bad block, and none is prepared. */
TEST(blocks_are_all_checked_before_any_is_prepared)
{
	struct cordon_spec *s = cordon_spec_new();
	struct prepared p;
	struct err err = { 0 };

	CHECK_INT(cordon_spec_code(s, "sh", "x", 1, NULL, NULL), 0);
	CHECK_INT(cordon_spec_code(s, "cobol", "x", 1, NULL, NULL), 0);
	CHECK(prepare(s, &p, &err) < 0);
	CHECK_INT(p.refused, REFUSED_NOT_FOUND);
	CHECK_INT(p.box, NO_FD);
	CHECK_HAS(err.text, "unknown language cobol");
	prepared_done(&p);
	cordon_spec_free(s);
}

static const struct {
	const char *name;
	const char *usual; /* NULL: unknown */
} languages[] = {
	{ "python", "python" },
	{ "py", "python" },
	{ "python3", "python" },
	{ "PYTHON", "python" },
	{ "python3.11", "python" },
	{ "sh", "sh" },
	{ "shell", "sh" },
	{ "bash", "bash" },
	{ "Bash", "bash" },
	{ "javascript", "javascript" },
	{ "js", "javascript" },
	{ "node", "javascript" },
	{ "perl", "perl" },
	{ "ruby", "ruby" },
	{ "r", "r" },
	{ "R", "r" },
	{ "lua", "lua" },
	{ "php", "php" },
	{ "pwsh", "powershell" },
	{ "powershell", "powershell" },
	{ "ps1", "powershell" },
	{ "c", "c" },
	{ "c++", "c++" },
	{ "cpp", "c++" },
	{ "go", "go" },
	{ "rust", "rust" },
	{ "rs", "rust" },
	{ "", NULL },
	{ "python2", NULL },
	{ "python3.", NULL },
	{ "python3.x", NULL },
	{ "pythonx", NULL },
	{ "zsh", NULL },
	{ "text", NULL },
};

TEST(lang_names)
{
	for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
		const struct lang *l = lang_find(languages[i].name);

		if (languages[i].usual
			    ? l && strcmp(l->names[0], languages[i].usual) == 0
			    : !l)
			continue;
		printf("# '%s' is %s\n", languages[i].name,
		       l ? l->names[0] : "unknown");
		CHECK(!"the name above");
	}
	CHECK_STR(lang_exact_program("python3.11"), "python3.11");
	CHECK(!lang_exact_program("python3"));
	CHECK(!lang_exact_program("p"));
}

TEST(lang_by_ending)
{
	static const struct {
		const char *path;
		const char *name;
	} files[] = {
		{ "a.py", "python" },     { "/x/a.py", "python" },
		{ "a.sh", "sh" },         { "a.bash", "bash" },
		{ "a.js", "javascript" }, { "a.mjs", "javascript" },
		{ "a.pl", "perl" },       { "a.rb", "ruby" },
		{ "a.R", "r" },           { "a.lua", "lua" },
		{ "a.php", "php" },       { "a.c", "c" },
		{ "a.cc", "c++" },        { "a.cpp", "c++" },
		{ "a.go", "go" },         { "a.rs", "rust" },
		{ "a.b.py", "python" },
	};
	static const char *const none[] = { "a", "a.", "a.txt", "x.py/a", "" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct lang *l = lang_of_file(files[i].path);

		CHECK_STR(l ? l->names[0] : NULL, files[i].name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		CHECK(!lang_of_file(none[i]));
}

/* Each language can be found by all its names and has what it needs. */
TEST(lang_table_is_whole)
{
	const struct lang *l;

	for (size_t i = 0; (l = lang_at(i)); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(l->names); k++)
			if (l->names[k])
				CHECK(lang_find(l->names[k]) == l);
		CHECK(l->names[0] && l->suffix && l->suffix[0] == '.');
		CHECK(l->programs[0] != NULL);
	}
}

TEST(env_is_the_minimum_and_what_is_given)
{
	struct cordon_spec *s = cordon_spec_new();
	struct strv env = { 0 };
	bool home = false;

	CHECK_INT(setenv("CORDON_UNIT_SECRET", "x", 1), 0);
	CHECK_INT(cordon_spec_set(s, "env", "HOME=/elsewhere", NULL), 0);
	CHECK_INT(prepare_env(s, &env), 0);
	for (size_t i = 0; i < env.n; i++) {
		CHECK(!strstr(env.v[i], "CORDON_UNIT_SECRET"));
		CHECK(strcmp(env.v[i], "HOME=/workspace") != 0);
		home = home || strcmp(env.v[i], "HOME=/elsewhere") == 0;
	}
	CHECK(home);
	strv_done(&env);
	cordon_spec_free(s);
}

TAP_MAIN()
