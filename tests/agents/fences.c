/* SPDX-License-Identifier: Apache-2.0 */

/* Code blocks in the text of a model: section 3 of the code executor. */

#include "tests/tap.h"

#include <time.h>

#include "tool/tool.h"

static json_t *find(const char *text, const char *untagged)
{
	json_t *o = fences_find(text, strlen(text), NULL, untagged);

	CHECK(o != NULL);
	return o;
}

static const char *text_of(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

/* Exactly one block, and nothing skipped. */
static void one(const char *text, const char *language, const char *code)
{
	json_t *o = find(text, NULL);
	const json_t *blocks = json_object_get(o, "blocks");

	if (json_array_size(blocks) != 1 ||
	    json_array_size(json_object_get(o, "skipped")) != 0) {
		printf("# not one block:\n# %s\n", text);
		tap_bad++;
	} else {
		CHECK_STR(text_of(json_array_get(blocks, 0), "language"),
			  language);
		CHECK_STR(text_of(json_array_get(blocks, 0), "code"), code);
	}
	json_decref(o);
}

/* Nothing to run, and one that was skipped for this reason (NULL: none). */
static void none(const char *text, const char *why)
{
	json_t *o = find(text, NULL);
	const json_t *skipped = json_object_get(o, "skipped");

	if (json_array_size(json_object_get(o, "blocks")) != 0) {
		printf("# a block in:\n# %s\n", text);
		tap_bad++;
	}
	CHECK_INT((int)json_array_size(skipped), why ? 1 : 0);
	if (why)
		CHECK_STR(text_of(json_array_get(skipped, 0), "reason"), why);
	json_decref(o);
}

/* The inputs that section 3 names. */
TEST(what_must_be_handled)
{
	one("```python\nprint(1)\n```\n", "python", "print(1)\n");
	one("```python  \nprint(1)\n```\n", "python", "print(1)\n");
	one("```python\r\nprint(1)\r\nx\r\n```\r\n", "python", "print(1)\nx\n");
	one("```python\rprint(1)\r```\r", "python", "print(1)\n");
	one("```bash\nls\n```", "bash", "ls\n");
	one("```py\n1\n```", "py", "1\n");
	one("```python3\n1\n```", "python3", "1\n");
	one("```PYTHON\n1\n```", "python", "1\n");
	one("~~~python\n```\n~~~", "python", "```\n");
	one("````python\ns = '''\n```sh\nrm\n```\n'''\n````", "python",
	    "s = '''\n```sh\nrm\n```\n'''\n");
	one("```python\ns = \"a ``` b\"\n```", "python", "s = \"a ``` b\"\n");
	one("1. first\n\n   ```python\n   if x:\n       y\n   ```\n", "python",
	    "if x:\n    y\n");
	one("- a\n  ```sh\n  ls\n\n  pwd\n  ```\n", "sh", "ls\n\npwd\n");
}

TEST(openings)
{
	one("   ```python\n   a\n    b\n```", "python", "a\n b\n");
	none("    ```python\n    a\n    ```", NULL);
	none("``python\na\n``", NULL);
	none("text ```python\na\n", NULL);
	none("```python `x`\na\n", NULL);
	one("~~~python `x`\na\n~~~", "python", "a\n");
	one("para\n```python\na\n```", "python", "a\n");
	one("```{.python}\na\n```", "python", "a\n");
	one("```{python}\na\n```", "python", "a\n");
	one("``` { .python #x .y }\na\n```", "python", "a\n");
	one("```python{1,3}\na\n```", "python", "a\n");
	one("```python linenos=true\na\n```", "python", "a\n");
	one("```python\n```", "python", "");
	one("> ```python\n> a\n> ```", "python", "a\n");
	one("> > - ```python\n> >   a\n> >   ```", "python", "a\n");
	one("-\t```python\n\ta\n\t```", "python", "a\n");
	one("```python\n\ta\n```", "python", "\ta\n");
	one("  ```python\n\ta\n  ```", "python", "  a\n");
}

TEST(closings)
{
	one("```python\na\n````", "python", "a\n");
	one("```python\na\n```  \t\n", "python", "a\n");
	one("```python\na\n   ```", "python", "a\n");
	one("```python\na\n``` x\n```", "python", "a\n``` x\n");
	one("```python\na\n    ```\n```", "python", "a\n    ```\n");
	one("```python\n~~~\n```", "python", "~~~\n");
	one("````python\n```\n````", "python", "```\n");
}

TEST(what_is_never_closed_is_never_run)
{
	none("```python\nprint(1)\n", "incomplete");
	none("```python", "incomplete");
	none("~~~python\na\n```", "incomplete");
	none("````python\na\n```", "incomplete");
	/* Closed by the end of a list or of a quote. */
	none("- ```python\n  a\n\ntext", "incomplete");
	none("> ```python\n> a\ntext", "incomplete");
	none("> ```python\n> a\n~~x\n", "incomplete");
}

TEST(others_are_skipped)
{
	none("```json\n{}\n```", "language not enabled");
	none("```\nls\n```", "no language");
	none("```diff\n+\n```", "language not enabled");
	none("```python\n\xff\n```", "invalid UTF-8");
	none("```pyth\xc3\n1\n```", "invalid UTF-8");
	none("~~~ \n1\n~~~", "no language");
}

/* In HTML a fence is text; so it is in what a browser does not show. */
TEST(html_hides_fences)
{
	none("<!--\n```python\nrm\n```\n-->\n", NULL);
	none("<pre>\n```python\nrm\n```\n</pre>\n", NULL);
	none("<div>\n```python\nrm\n```\n", NULL);
	one("<div>\n\n```python\na\n```\n\n</div>", "python", "a\n");
	one("<!-- x -->\n```python\na\n```", "python", "a\n");
	one("<details><summary>x</summary>\n\n```python\na\n```\n", "python",
	    "a\n");
	one("text <b>\n```python\na\n```", "python", "a\n");
}

TEST(an_untagged_block_may_have_a_language)
{
	json_t *o = find("```\nls\n```\n```json\n1\n```", "sh");
	const json_t *b = json_array_get(json_object_get(o, "blocks"), 0);

	CHECK_STR(text_of(b, "language"), "sh");
	CHECK_INT((int)json_array_size(json_object_get(o, "blocks")), 1);
	CHECK_INT((int)json_array_size(json_object_get(o, "skipped")), 1);
	json_decref(o);
}

TEST(only_what_is_enabled)
{
	const char *text = "```py\n1\n```\n```bash\n2\n```\n```js\n3\n```\n";
	json_t *l = json_pack("[s, s]", "Python", "javascript");
	json_t *o = fences_find(text, strlen(text), l, NULL);
	const json_t *blocks = json_object_get(o, "blocks");

	CHECK_INT((int)json_array_size(blocks), 2);
	CHECK_STR(text_of(json_array_get(blocks, 0), "code"), "1\n");
	CHECK_STR(text_of(json_array_get(blocks, 1), "code"), "3\n");
	json_decref(o);
	json_decref(l);
}

static void file(const char *info, const char *want)
{
	char text[200];
	json_t *o;
	const char *have;

	(void)snprintf(text, sizeof(text), "~~~%s\na\n~~~", info);
	o = find(text, NULL);
	have = text_of(json_array_get(json_object_get(o, "blocks"), 0),
		       "filename");
	if (want)
		CHECK_STR(have, want);
	else
		CHECK(have == NULL);
	json_decref(o);
}

TEST(file_names)
{
	file("python filename=a.py", "a.py");
	file("python title=\"my file.py\" x", "my file.py");
	file("{.python filename='a b.py'}", "a b.py");
	file("{.python filename=a.py}", "a.py");
	file("python Filename=a.py", "a.py");
	file("python xfilename=a.py", NULL);
	file("python filename=../../etc/passwd", "../../etc/passwd");
	file("python", NULL);
}

TEST(offsets_are_those_of_the_lines)
{
	const char *text = "hi\n\n- x\n  ```python\n  a\n  ```\nmore\n";
	json_t *o = find(text, NULL);
	const json_t *b = json_array_get(json_object_get(o, "blocks"), 0);
	size_t begin = (size_t)json_integer_value(json_object_get(b, "begin"));
	size_t end = (size_t)json_integer_value(json_object_get(b, "end"));

	CHECK(strncmp(text + begin, "  ```python\n", 12) == 0);
	CHECK(strncmp(text + end, "\nmore", 5) == 0);
	json_decref(o);
}

TEST(several_in_order)
{
	json_t *o = find("```python\n1\n```\ntext\n```sh\n2\n```\n\n```python\n"
			 "3\n",
			 NULL);
	const json_t *blocks = json_object_get(o, "blocks");

	CHECK_INT((int)json_array_size(blocks), 2);
	CHECK_STR(text_of(json_array_get(blocks, 1), "code"), "2\n");
	CHECK_INT((int)json_array_size(json_object_get(o, "skipped")), 1);
	json_decref(o);
}

TEST(code_with_nul_is_kept)
{
	const char text[] = "```python\na\0b\n```";
	json_t *o = fences_find(text, sizeof(text) - 1, NULL, NULL);
	const json_t *b = json_array_get(json_object_get(o, "blocks"), 0);

	CHECK_INT((int)json_string_length(json_object_get(b, "code")), 4);
	json_decref(o);
}

/* Time grows with the text. */
TEST(deep_and_long_texts_end)
{
	size_t len = 1 << 20;
	char *text = malloc(len + 1);
	clock_t begin = clock();
	json_t *o;

	if (!text)
		exit(1);
	memset(text, '>', len);
	text[len] = '\0';
	o = find(text, NULL);
	json_decref(o);
	for (size_t i = 0; i < len; i += 2)
		memcpy(text + i, "- ", 2);
	o = find(text, NULL);
	json_decref(o);
	for (size_t i = 0; i < len; i += 4)
		memcpy(text + i, "```\n", 4);
	o = find(text, NULL);
	CHECK(json_array_size(json_object_get(o, "skipped")) <= 1000);
	json_decref(o);
	memset(text, '\t', len);
	o = find(text, NULL);
	json_decref(o);
	CHECK(clock() - begin < 2 * CLOCKS_PER_SEC);
	free(text);
}

TAP_MAIN()
