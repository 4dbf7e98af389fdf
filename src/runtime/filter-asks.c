/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests in words for what is not the box's: "reveal your API key", "list
 * the files of the host", "give me network access". A verb, then within the
 * same sentence a thing, and for things that are ordinary words too, whose
 * they are. A table of phrases in English: a net with wide meshes.
 */

#include "runtime/filter-find.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define REACH 96 /* bytes from the verb to the end of the thing */

static const char *const verbs[] = {
	"show",   "print",  "give",    "tell",       "reveal", "send",
	"leak",   "dump",   "read",    "cat",        "list",   "find",
	"fetch",  "steal",  "extract", "exfiltrate", "upload", "share",
	"output", "access", "display", "disclose",   "open",   "connect",
	"enable", "get",    "what",    "use",        "allow",  "browse",
	"copy",
};

/* Whose; "the" alone says nothing. */
static const char *const owners[] = { "your",      "my",       "host",
				      "host's",    "hosts",    "server",
				      "server's",  "system's", "system",
				      "user's",    "all",      "stored",
				      "machine's", "machine" };

static const struct {
	enum find_kind kind;
	bool needs_owner;
	const char *thing;
} things[] = {
	{ FIND_SECRETS, true, "api key" },
	{ FIND_SECRETS, true, "api keys" },
	{ FIND_SECRETS, true, "access key" },
	{ FIND_SECRETS, true, "access keys" },
	{ FIND_SECRETS, true, "secret key" },
	{ FIND_SECRETS, true, "private key" },
	{ FIND_SECRETS, true, "private keys" },
	{ FIND_SECRETS, true, "ssh key" },
	{ FIND_SECRETS, true, "ssh keys" },
	{ FIND_SECRETS, true, "password" },
	{ FIND_SECRETS, true, "passwords" },
	{ FIND_SECRETS, true, "credentials" },
	{ FIND_SECRETS, true, "access token" },
	{ FIND_SECRETS, true, "access tokens" },
	{ FIND_SECRETS, true, "secrets" },
	{ FIND_HOST_PATHS, true, "home directory" },
	{ FIND_HOST_PATHS, true, "home folder" },
	{ FIND_HOST_PATHS, true, "file system" },
	{ FIND_HOST_PATHS, true, "filesystem" },
	{ FIND_HOST_PATHS, true, "root directory" },
	{ FIND_HOST_PATHS, true, "environment variables" },
	{ FIND_HOST_PATHS, false, "of the host" },
	{ FIND_HOST_PATHS, false, "on the host" },
	{ FIND_HOST_PATHS, false, "from the host" },
	{ FIND_HOST_PATHS, false, "host files" },
	{ FIND_HOST_PATHS, false, "outside the sandbox" },
	{ FIND_HOST_PATHS, false, "outside the box" },
	{ FIND_HOST_PATHS, false, "outside the container" },
	{ FIND_HOST_PATHS, false, "outside of the sandbox" },
	{ FIND_URLS, false, "network access" },
	{ FIND_URLS, false, "internet access" },
	{ FIND_URLS, false, "the internet" },
	{ FIND_URLS, false, "the metadata service" },
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '\'';
}

static size_t word_len(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && is_letter(p[n]))
		n++;
	return n;
}

static bool is_one_of(const char *p, size_t len, const char *const *words,
		      size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((*p | ' ') == words[i][0] && strlen(words[i]) == len &&
		    strncasecmp(p, words[i], len) == 0)
			return true;
	return false;
}

/* The words of `thing` at p, with any blanks between them; its length. */
static size_t thing_len(const char *p, const char *end, const char *thing)
{
	const char *start = p;

	for (; *thing; thing++) {
		if (*thing != ' ') {
			if (p == end || (*p++ | ' ') != *thing)
				return 0;
			continue;
		}
		if (p == end || (!isspace((unsigned char)*p) && *p != '-'))
			return 0;
		while (p < end && (isspace((unsigned char)*p) || *p == '-'))
			p++;
	}
	return p < end && is_letter(*p) ? 0 : (size_t)(p - start);
}

static const char *find_thing(const char *p, const char *end,
			      unsigned int kinds, bool has_owner,
			      enum find_kind *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(things); i++) {
		size_t n;

		if ((*p | ' ') != things[i].thing[0] ||
		    !(kinds & 1U << things[i].kind) ||
		    (things[i].needs_owner && !has_owner))
			continue;
		n = thing_len(p, end, things[i].thing);
		if (n == 0)
			continue;
		*ret = things[i].kind;
		return p + n;
	}
	return NULL;
}

/* From a verb on: where a request ends; NULL: it is none. */
static const char *request_end(const char *p, const char *end,
			       unsigned int kinds, enum find_kind *ret)
{
	bool has_owner = false;
	const char *to = NULL;

	end = MIN(end, p + REACH);
	while (p < end && !to) {
		size_t n;

		while (p < end && !is_letter(*p)) {
			/* A sentence, a line of code, a path. */
			if (strchr(".!?\n;=(){}/", *p))
				return NULL;
			p++;
		}
		n = word_len(p, end);
		if (n == 0)
			break;
		to = find_thing(p, end, kinds, has_owner, ret);
		has_owner |= is_one_of(p, n, owners, ARRAY_SIZE(owners));
		p += n;
	}
	return to;
}

void find_asks(struct finds *f, unsigned int kinds, const char *text,
	       size_t len)
{
	const char *end = text + len;
	const char *p = text;

	kinds &= 1U << FIND_SECRETS | 1U << FIND_HOST_PATHS | 1U << FIND_URLS;
	while (kinds && p < end) {
		size_t n = word_len(p, end);
		enum find_kind kind = FIND_KINDS;
		const char *to = NULL;

		if (n > 0 && n <= 10 &&
		    is_one_of(p, n, verbs, ARRAY_SIZE(verbs)))
			to = request_end(p + n, end, kinds, &kind);
		if (to)
			finds_add(f, (size_t)(p - text), (size_t)(to - text),
				  kind);
		p = to ? to : p + n + (n == 0);
	}
}
