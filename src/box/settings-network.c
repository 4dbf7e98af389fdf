/* SPDX-License-Identifier: Apache-2.0 */

/* Which hosts a box may reach, and which secrets are sent there for it. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "box/settings-set.h"
#include "policy/network.h"
#include "policy/values.h"

#define MOST_HOSTS   256
#define MOST_SECRETS 32
#define MOST_PORTS   32
#define TARGET       300

SETTER(set_network)
{
	/* Only what is listed: so it is without a word. */
	if (strcmp(v, "allowlist") == 0)
		return 0;
	if (strcmp(v, "none") != 0)
		return err_set(err, EINVAL,
			       "network '%s': only 'none' and 'allowlist' are "
			       "there; single hosts are opened with "
			       "--allow-host",
			       v);
	s->no_network = true;
	return 0;
}

SETTER(set_network_disabled)
{
	bool disabled = false;

	if (put_bool(v, &disabled, err) < 0)
		return -err->code;
	s->no_network |= disabled;
	if (!disabled)
		s->wants_network = "network-disabled";
	return 0;
}

SETTER(set_network_enabled)
{
	bool enabled = false;

	if (put_bool(v, &enabled, err) < 0)
		return -err->code;
	s->no_network |= !enabled;
	if (enabled)
		s->wants_network = "network-enabled";
	return 0;
}

/* HOST[:PORT], checked, as HOST:PORT; brackets where it has colons. */
static int target(const char *v, char *ret, size_t size, struct err *err)
{
	char host[256];
	uint16_t port;
	bool has_colons;

	if (strlen(v) > 300 || value_target(v, host, &port) < 0)
		return err_set(err, EINVAL,
			       "'%.100s' is not HOST[:PORT[,PORT]], such as "
			       "api.example.org, '*.example.org:443' or "
			       "[2001:db8::1]:443",
			       v);
	if (network_is_never(host))
		return err_set(err, EPERM,
			       "'%s' is a metadata service, which is never "
			       "reached",
			       host);
	if (!value_is_host(host))
		return err_set(err, EINVAL,
			       "'%s' is too wide a block, or one that boxes "
			       "use themselves",
			       host);
	if (port == VALUE_DNS_PORT)
		return err_set(err, EINVAL,
			       "'%.100s': port 53 cannot be in a rule, since "
			       "names are the gate's; write another port, from "
			       "1 to 65535",
			       v);
	has_colons = strchr(host, ':') != NULL;
	(void)snprintf(ret, size, "%s%s%s:%u", has_colons ? "[" : "", host,
		       has_colons ? "]" : "", port ? port : 443U);
	return 0;
}

static bool has_item(const struct strv *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], text) == 0)
			return true;
	return false;
}

static int add_host(struct cordon_spec *s, const char *text, struct err *err)
{
	if (has_item(&s->allow_hosts, text))
		return 0;
	if (s->allow_hosts.n >= MOST_HOSTS)
		return err_set(err, E2BIG, "more than %d hosts and ports",
			       MOST_HOSTS);
	return put_item(&s->allow_hosts, text, err);
}

/* One more port of the host that `first` names, as HOST:PORT. */
static int next_port(const char *first, const char *port, size_t len, char *ret,
		     size_t size, struct err *err)
{
	const char *colon = strrchr(first, ':');
	char text[TARGET + 8];

	if (len == 0 || len > 5)
		return err_set(err, EINVAL, "ports are such as 80,443");
	(void)snprintf(text, sizeof(text), "%.*s:%.*s", (int)(colon - first),
		       first, (int)len, port);
	return target(text, ret, size, err);
}

/* HOST:PORT, once for each port. */
struct targets {
	char v[MOST_PORTS][TARGET];
	size_t n;
};

/* HOST:PORT,PORT,...: the ports after the first are of the same host. */
static int targets(const char *v, struct targets *ret, struct err *err)
{
	size_t at = strcspn(v, ",");

	if (at >= TARGET)
		return err_set(err, EINVAL, "'%.100s...' is too long", v);
	(void)snprintf(ret->v[0], TARGET, "%.*s", (int)at, v);
	if (target(ret->v[0], ret->v[0], TARGET, err) < 0)
		return -err->code;
	ret->n = 1;
	while (v[at]) {
		size_t len = strcspn(v + at + 1, ",");

		if (ret->n == MOST_PORTS)
			return err_set(err, E2BIG, "more than %d ports",
				       MOST_PORTS);
		if (next_port(ret->v[0], v + at + 1, len, ret->v[ret->n],
			      TARGET, err) < 0)
			return -err->code;
		ret->n++;
		at += len + 1;
	}
	return 0;
}

SETTER(set_allow_host)
{
	struct targets all;

	all.n = 0;
	if (targets(v, &all, err) < 0)
		return -err->code;
	/* Only now, so that what is refused changes nothing. */
	for (size_t i = 0; i < all.n; i++)
		if (add_host(s, all.v[i], err) < 0)
			return -err->code;
	return 0;
}

static int add_secret(struct cordon_spec *s, const char *name, const char *host,
		      struct err *err)
{
	char text[600];

	(void)snprintf(text, sizeof(text), "%s@%s", name, host);
	if (has_item(&s->secrets, text))
		return 0;
	if (s->secrets.n >= MOST_SECRETS)
		return err_set(err, E2BIG, "more than %d secrets",
			       MOST_SECRETS);
	return put_item(&s->secrets, text, err);
}

SETTER(set_secret)
{
	const char *at = strchr(v, '@');
	struct targets all;
	char name[256];

	all.n = 0;
	if (!at || (size_t)(at - v) >= sizeof(name))
		return err_set(err, EINVAL, "'%.100s' is not NAME@HOST", v);
	(void)snprintf(name, sizeof(name), "%.*s", (int)(at - v), v);
	if (!value_is_env_name(name))
		return err_set(err, EINVAL,
			       "'%s' is not the name of a variable", name);
	if (!value_is_secret_name(name))
		return err_set(err, EINVAL,
			       "'%s' cannot be a secret: Cordon sets this "
			       "variable itself where there is one; give it "
			       "another name",
			       name);
	if (targets(at + 1, &all, err) < 0)
		return -err->code;
	for (size_t i = 0; i < all.n; i++)
		if (add_secret(s, name, all.v[i], err) < 0)
			return -err->code;
	return 0;
}
