/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which key goes to which server.
 *
 * A file of an agent may come from anywhere, and it names both a server and a
 * key: a variable or a file of whoever runs it. So that is a wish. It is
 * granted for this machine itself, and else where the person says so, by
 * --secret NAME@HOST or CORDON_AGENT_SECRETS, as with cordon run. The usual
 * key goes to the usual server without a word. No key goes over a network
 * in the clear, and none comes out of a place where other credentials are.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentcmd/crew.h"
#include "base/util.h"
#include "policy/never.h"

#define USUAL_KEY "OPENAI_API_KEY"
#define USUAL_URL "https://api.openai.com/v1"

/* The host of an address, without its port; all of it where that is odd. */
static void host_of(const char *url, char *ret, size_t size)
{
	const char *at = strstr(url, "://");
	size_t all;
	size_t len;

	at = at ? at + 3 : url;
	all = strcspn(at, "/?#");
	len = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ":/?#");
	if (len > all || memchr(at, '@', all) ||
	    (len < all &&
	     (at[len] != ':' ||
	      strspn(at + len + 1, "0123456789") != all - len - 1)))
		len = all;
	else if (*at == '[') {
		at++;
		len -= 2;
	}
	(void)snprintf(ret, size, "%.*s", (int)MIN(len, size - 1), at);
}

/* By its name or address, never by what a resolver says. */
static bool is_this_machine(const char *host)
{
	return strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
	       (strncmp(host, "127.", 4) == 0 &&
		!host[strspn(host, "0123456789.")]);
}

/* "A@host, B@other": whether one of them is this. */
static bool is_listed(const char *list, const char *name, const char *host)
{
	size_t n = strlen(name);

	while (list && *list) {
		size_t len;

		list += strspn(list, ", ");
		len = strcspn(list, ", ");
		if (len == n + 1 + strlen(host) &&
		    strncmp(list, name, n) == 0 && list[n] == '@' &&
		    strncasecmp(list + n + 1, host, strlen(host)) == 0)
			return true;
		list += len;
	}
	return false;
}

static bool is_usual(const char *url, const char *name)
{
	const char *said = getenv("OPENAI_BASE_URL");
	const char *usual = said && *said ? said : USUAL_URL;

	return strcmp(name, USUAL_KEY) == 0 &&
	       (!url || strcmp(url, usual) == 0 || strcmp(url, USUAL_URL) == 0);
}

static int check_file(const char *path, struct err *err)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	const char *in = never_credential_in(real ? real : path);

	if (!in)
		return 0;
	return err_set(err, EPERM,
		       "the key's file '%.200s' lies in '%s', which is not "
		       "for models; copy the one key",
		       path, in);
}

/* `config` is that of a model, its paths as they are here. */
int crew_check_secret(const struct crew_options *o, const json_t *config,
		      struct err *err)
{
	const json_t *key = json_object_get(config, "api_key");
	const char *url = json_string_value(
		json_object_get(config, "base_url"));
	const char *env = json_string_value(json_object_get(key, "env"));
	const char *file = json_string_value(json_object_get(key, "file"));
	const char *name = env ? env : file;
	char host[256];

	if (!name)
		return 0;
	if (file && check_file(file, err) < 0)
		return -err->code;
	if (is_usual(url, name))
		return 0;
	host_of(url ? url : USUAL_URL, host, sizeof(host));
	if (is_this_machine(host))
		return 0;
	if (url && strncasecmp(url, "https://", 8) != 0)
		return err_set(err, EPERM,
			       "the key '%.100s' would go to '%.100s' in the "
			       "clear; use https",
			       name, host);
	if (is_listed(o->secrets, name, host) ||
	    is_listed(getenv("CORDON_AGENT_SECRETS"), name, host))
		return 0;
	return err_set(err, EPERM,
		       "the file wants the key '%.100s' sent to '%.100s'; if "
		       "that is right: --secret %.100s@%.100s",
		       name, host, name, host);
}
