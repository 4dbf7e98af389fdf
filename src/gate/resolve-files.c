/* SPDX-License-Identifier: Apache-2.0 */

/* resolv.conf(5) and hosts(5), as far as they matter here. */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "gate/resolve.h"

#define DNS_PORT 53

struct line {
	const char *at, *end;
};

/* The next line without its comment; false: no more. */
static bool next_line(const char **text, const char *end, struct line *ret)
{
	const char *stop;

	if (*text >= end)
		return false;
	ret->at = *text;
	stop = memchr(*text, '\n', (size_t)(end - *text));
	ret->end = stop ? stop : end;
	*text = stop ? stop + 1 : end;
	for (const char *p = ret->at; p < ret->end; p++)
		if (*p == '#' || *p == ';')
			ret->end = p;
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

/* The next word, whole; false: no more. One that is too long is empty. */
static bool next_word(struct line *l, char *ret, size_t size)
{
	size_t len = 0;

	while (l->at < l->end && is_space(*l->at))
		l->at++;
	if (l->at >= l->end)
		return false;
	for (; l->at < l->end && !is_space(*l->at); l->at++, len++)
		if (len < size - 1)
			ret[len] = *l->at;
	ret[len < size ? len : 0] = '\0';
	return true;
}

static int server_parse(char *word, union endpoint *ret)
{
	char *scope = strchr(word, '%');

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, word, &ret->in4.sin_addr) == 1) {
		ret->in4.sin_family = AF_INET;
		ret->in4.sin_port = htons(DNS_PORT);
		return 0;
	}
	if (scope)
		*scope = '\0';
	if (inet_pton(AF_INET6, word, &ret->in6.sin6_addr) != 1)
		return -EINVAL;
	ret->in6.sin6_family = AF_INET6;
	ret->in6.sin6_port = htons(DNS_PORT);
	ret->in6.sin6_scope_id = scope ? if_nametoindex(scope + 1) : 0;
	return 0;
}

static unsigned int option_number(const char *word, const char *name,
				  unsigned int max, unsigned int otherwise)
{
	size_t len = strlen(name);
	unsigned long v;

	if (strncmp(word, name, len) != 0)
		return otherwise;
	v = strtoul(word + len, NULL, 10);
	return v == 0 ? 1 : (unsigned int)MIN(v, max);
}

static void parse_options(struct resolve_conf *c, struct line *l)
{
	char word[64];

	while (next_word(l, word, sizeof(word))) {
		c->timeout_ms = 1000 * option_number(word, "timeout:", 10,
						     c->timeout_ms / 1000);
		c->attempts = option_number(word, "attempts:", 5, c->attempts);
		if (strcmp(word, "use-vc") == 0)
			c->is_tcp = true;
	}
}

void resolve_conf_parse(struct resolve_conf *ret, const char *text, size_t len)
{
	const char *end = text + len;
	struct line l;
	char word[128];

	/* Sooner than the C library's 5 seconds: a program waits for us. */
	*ret = (struct resolve_conf){ .timeout_ms = 2000, .attempts = 2 };
	while (next_line(&text, end, &l)) {
		if (!next_word(&l, word, sizeof(word)))
			continue;
		if (strcmp(word, "options") == 0)
			parse_options(ret, &l);
		if (strcmp(word, "nameserver") == 0 &&
		    ret->n_servers < RESOLVE_SERVERS &&
		    next_word(&l, word, sizeof(word)) &&
		    server_parse(word, &ret->servers[ret->n_servers]) == 0)
			ret->n_servers++;
	}
	if (ret->n_servers == 0) {
		char local[] = "127.0.0.1";

		ret->n_servers = 1;
		(void)server_parse(local, &ret->servers[0]);
	}
}

static int address_parse(const char *word, uint8_t ret[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	memcpy(ret, mapped, sizeof(mapped));
	return inet_pton(AF_INET, word, ret + 12) == 1 ||
			       inet_pton(AF_INET6, word, ret) == 1
		       ? 0
		       : -EINVAL;
}

static bool line_names(struct line *l, const char *name)
{
	char word[GATE_HOST_MAX + 1];

	while (next_word(l, word, sizeof(word))) {
		size_t len = strlen(word);

		if (len && word[len - 1] == '.')
			word[len - 1] = '\0';
		if (strcasecmp(word, name) == 0)
			return true;
	}
	return false;
}

void hosts_find(const char *text, size_t len, const char *name,
		struct addresses *ret)
{
	const char *end = text + len;
	uint8_t address[16];
	struct line l;
	char word[64];

	while (ret->n < RESOLVE_ADDRESSES && next_line(&text, end, &l))
		if (next_word(&l, word, sizeof(word)) &&
		    address_parse(word, address) == 0 && line_names(&l, name))
			memcpy(ret->address[ret->n++], address,
			       sizeof(address));
}
