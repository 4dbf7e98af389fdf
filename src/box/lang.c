/* SPDX-License-Identifier: Apache-2.0 */
#include "box/lang.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define MADE "/tmp/a.out"

static const struct lang table[] = {
	{ { "python", "py", "python3" },
	  ".py",
	  { "python3", "python" },
	  { 0 },
	  { 0 } },
	{ { "bash" }, ".sh", { "bash" }, { 0 }, { 0 } },
	{ { "sh", "shell" }, ".sh", { "sh" }, { 0 }, { 0 } },
	{ { "javascript", "js", "node" }, ".js", { "node" }, { 0 }, { 0 } },
	{ { "perl" }, ".pl", { "perl" }, { 0 }, { 0 } },
	{ { "ruby" }, ".rb", { "ruby" }, { 0 }, { 0 } },
	{ { "r" }, ".R", { "Rscript" }, { 0 }, { 0 } },
	{ { "lua" }, ".lua", { "lua" }, { 0 }, { 0 } },
	{ { "php" }, ".php", { "php" }, { 0 }, { 0 } },
	{ { "powershell", "pwsh", "ps1" },
	  ".ps1",
	  { "pwsh" },
	  { "-NoProfile", "-NonInteractive", "-File" },
	  { 0 } },
	{ { "c" }, ".c", { MADE }, { 0 }, { "cc", "-o", MADE, "@", "-lm" } },
	{ { "c++", "cpp", "cxx" },
	  ".cc",
	  { MADE },
	  { 0 },
	  { "c++", "-o", MADE, "@" } },
	{ { "go" },
	  ".go",
	  { MADE },
	  { 0 },
	  { "env", "GOCACHE=/tmp/go-build", "go", "build", "-o", MADE, "@" } },
	{ { "rust", "rs" },
	  ".rs",
	  { MADE },
	  { 0 },
	  { "rustc", "-o", MADE, "@" } },
};

/* Endings that mean a language but are not the one we write. */
static const struct {
	const char *suffix;
	const char *name;
} endings[] = {
	{ ".bash", "bash" },      { ".cpp", "c++" },        { ".cxx", "c++" },
	{ ".mjs", "javascript" }, { ".cjs", "javascript" }, { ".r", "r" },
};

const struct lang *lang_at(size_t i)
{
	return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

/* Goes to the first letter; the length from there to the last. */
static size_t trimmed(const char **name)
{
	static const char space[] = " \t\r\n\v\f";
	size_t len;

	*name += strspn(*name, space);
	len = strlen(*name);
	while (len > 0 && strchr(space, (*name)[len - 1]))
		len--;
	return len;
}

char *lang_trimmed(const char *name)
{
	size_t len = trimmed(&name);
	char *text = strndup(name, len);

	/* It is also the program's name. */
	if (text && lang_exact_program(text))
		for (char *p = text; *p; p++)
			*p = (char)tolower((unsigned char)*p);
	return text;
}

const char *lang_exact_program(const char *name)
{
	static const char prefix[] = "python3.";
	const char *p;

	if (strncasecmp(name, prefix, strlen(prefix)) != 0)
		return NULL;
	p = name + strlen(prefix);
	if (!*p)
		return NULL;
	while (isdigit((unsigned char)*p))
		p++;
	return *p ? NULL : name;
}

const struct lang *lang_find(const char *said)
{
	char name[32] = "";
	size_t len = trimmed(&said);

	if (len >= sizeof(name))
		return NULL;
	memcpy(name, said, len);
	name[len] = '\0';
	if (lang_exact_program(name))
		return &table[0];
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		for (size_t k = 0; k < ARRAY_SIZE(table[i].names); k++)
			if (table[i].names[k] &&
			    strcasecmp(name, table[i].names[k]) == 0)
				return &table[i];
	return NULL;
}

const struct lang *lang_of_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash : path, '.');

	if (!dot)
		return NULL;
	/* A script without further word is for sh, which is always there. */
	if (strcmp(dot, ".sh") == 0)
		return lang_find("sh");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(dot, table[i].suffix) == 0)
			return &table[i];
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		if (strcmp(dot, endings[i].suffix) == 0)
			return lang_find(endings[i].name);
	return NULL;
}
