/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths of the host in what is said. Absolute paths are everywhere in prose
 * and code ("/api/users", "</div>"), so it is not those that are looked for
 * but the directories in which a host keeps what is its own, wherever a path
 * gets to them ("/tmp/../etc"), home directories, and the names of
 * credentials (policy/never.h). What the box has itself, such as /usr, /tmp
 * and /workspace, is none.
 */

#include "runtime/filter-find.h"

#include <ctype.h>
#include <string.h>

#include "base/util.h"
#include "policy/never.h"

#define MAX_PARTS 32
#define MAX_PATH  1024

/* Directories of the host, below the root. */
static const struct {
	const char *name;
	bool alone; /* also without anything behind it: no route of a site */
} tops[] = {
	{ "etc", true },   { "root", true },     { "home", false },
	{ "var", false },  { "boot", true },     { "proc", true },
	{ "sys", false },  { "dev", false },     { "run", false },
	{ "mnt", true },   { "media", false },   { "srv", true },
	{ "opt", false },  { "Users", false },   { "private", false },
	{ "snap", false }, { "Volumes", false }, { "Library", false },
	{ "host", false }, { "hostfs", true },   { "lost+found", true },
};

/* Of these, what every box has. */
static const char *const own[] = {
	"dev/null",     "dev/zero",         "dev/full",     "dev/random",
	"dev/urandom",  "dev/stdin",        "dev/stdout",   "dev/stderr",
	"dev/fd",       "dev/tty",          "dev/shm",      "dev/ptmx",
	"dev/pts",      "var/tmp",          "proc/self/fd", "proc/self/exe",
	"proc/cpuinfo", "proc/stat",        "proc/meminfo", "proc/loadavg",
	"proc/uptime",  "proc/self/status",
};

struct part {
	const char *p;
	size_t len;
};

struct path {
	struct part parts[MAX_PARTS];
	size_t n;
	bool is_deep; /* more parts than are kept */
};

static bool is_path(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '-' && c <= '9') || (unsigned char)c >= 0x80 || c == '_' ||
	       c == '+' || c == '@' || c == '~' || c == '%';
}

static bool is_part(const struct part *a, const char *name)
{
	return strlen(name) == a->len && memcmp(a->p, name, a->len) == 0;
}

/* Its parts without ".", ".." and what they take back. */
static void split(const char *p, const char *end, struct path *ret)
{
	memset(ret, 0, sizeof(*ret));
	while (p < end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		struct part a = { p, (size_t)((slash ? slash : end) - p) };

		p += a.len + 1;
		if (a.len == 0 || is_part(&a, "."))
			continue;
		if (is_part(&a, ".."))
			ret->n -= ret->n > 0;
		else if (ret->n < MAX_PARTS)
			ret->parts[ret->n++] = a;
		else
			ret->is_deep = true;
	}
}

/* Whether the first parts are those of `name`. */
static bool begins(const struct path *path, size_t at, const char *name)
{
	for (; at < path->n; at++) {
		size_t len = strcspn(name, "/");

		if (len != path->parts[at].len ||
		    memcmp(name, path->parts[at].p, len) != 0)
			return false;
		if (!name[len])
			return true;
		name += len + 1;
	}
	return false;
}

static bool has_credentials(const struct path *path)
{
	/* All of these names begin with a dot. */
	for (size_t at = 0; at < path->n; at++)
		for (size_t i = 0;
		     path->parts[at].p[0] == '.' && never_credentials[i]; i++)
			if (begins(path, at, never_credentials[i]))
				return true;
	return false;
}

static bool is_own(const struct path *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (begins(path, 0, own[i]))
			return true;
	return false;
}

static bool is_of_host(const struct path *path)
{
	if (path->is_deep || has_credentials(path))
		return true;
	if (path->n == 0 || is_own(path))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++)
		if (is_part(&path->parts[0], tops[i].name))
			return tops[i].alone || path->n > 1;
	return false;
}

/* In words: a dot or dash at the end closes the sentence. */
static const char *path_end(const char *p, const char *end)
{
	const char *start = p;

	end = MIN(end, p + MAX_PATH);
	while (p < end && is_path(*p))
		p++;
	while (p > start && strchr(".-", p[-1]))
		p--;
	return p;
}

/* "C:\Users\...", also with the backslashes doubled. */
static size_t windows(const char *p, const char *end)
{
	static const char *const roots[] = { "Users", "Windows", "ProgramData",
					     "Documents", "Program Files" };
	const char *start = p;

	if (end - p < 8 || !isalpha((unsigned char)*p) || p[1] != ':' ||
	    p[2] != '\\')
		return 0;
	for (p += 2; p < end && *p == '\\';)
		p++;
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		size_t n = strlen(roots[i]);

		if ((size_t)(end - p) < n || strncasecmp(p, roots[i], n) != 0)
			continue;
		p += n;
		end = MIN(end, p + MAX_PATH);
		while (p < end && (is_path(*p) || *p == '\\'))
			p++;
		return (size_t)(p - start);
	}
	return 0;
}

/* "~/", "$HOME/", "${HOME}/": the length of what stands for a home. */
static size_t home(const char *p, const char *end)
{
	static const char *const names[] = { "~/", "$HOME/", "${HOME}/",
					     "%USERPROFILE%" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if ((size_t)(end - p) > n && memcmp(p, names[i], n) == 0 &&
		    (isalpha((unsigned char)p[n]) || p[n] == '.' ||
		     p[n] == '_' || p[n] == '\\'))
			return n;
	}
	return 0;
}

/* What begins at p, where a word begins; 0: no path of the host. */
static size_t host_path(const char *p, const char *end)
{
	size_t n = windows(p, end);
	struct path path;
	const char *to;

	if (n == 0 && (n = home(p, end)))
		return (size_t)(path_end(p + n, end) - p);
	if (n > 0)
		return n;
	if (*p != '/' && *p != '.')
		return 0;
	to = path_end(p, end);
	split(p, to, &path);
	/* A relative one: only credentials, or out of where it is. */
	if (*p == '.' && !has_credentials(&path) &&
	    (strncmp(p, "../", MIN(3, end - p)) != 0 || path.n < 2 ||
	     (!is_part(&path.parts[0], "etc") &&
	      !is_part(&path.parts[0], "proc") &&
	      !is_part(&path.parts[0], "root"))))
		return 0;
	return is_of_host(&path) ? (size_t)(to - p) : 0;
}

/* The address at "://" is another machine's, unless it is a file's. */
static const char *skip_address(const char *text, const char *p,
				const char *end)
{
	if (p - text >= 4 && strncasecmp(p - 4, "file", 4) == 0)
		return p + 3;
	p += 3;
	while (p < end && (unsigned char)*p > ' ' && !strchr("\"'<>`", *p))
		p++;
	return p;
}

/* What a path begins with; a letter is that of a drive. */
static bool may_begin(const char *p, const char *end)
{
	return *p == '/' || *p == '.' || *p == '~' || *p == '$' || *p == '%' ||
	       (end - p > 2 && p[1] == ':' && p[2] == '\\');
}

/* Whether a path may begin at p; "-v/etc:/x" is a flag with one. */
static bool is_start(const char *text, const char *p)
{
	char before = p > text ? p[-1] : ' ';

	if (p - text > 1 && *p == '/' && isalpha((unsigned char)before) &&
	    p[-2] == '-' && (p - text == 2 || p[-3] == ' '))
		return true;
	return !is_path(before) && before != '<' && before != '$';
}

void find_host_paths(struct finds *f, const char *text, size_t len)
{
	const char *end = text + len;

	for (const char *p = text; p < end;) {
		size_t n = 0;

		if (*p == ':' && end - p > 3 && memcmp(p, "://", 3) == 0) {
			p = skip_address(text, p, end);
			/* What follows "file://" begins where it is. */
			n = *(p - 1) == '/' && p < end ? host_path(p, end) : 0;
		} else if (may_begin(p, end) && is_start(text, p)) {
			n = host_path(p, end);
		}
		if (n > 0)
			finds_add(f, (size_t)(p - text), (size_t)(p - text) + n,
				  FIND_HOST_PATHS);
		p += n ? n : 1;
	}
}
