/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/public-suffix.h"

#include <errno.h>
#include <libpsl.h>
#include <string.h>

#include "base/util.h"
#include "policy/values.h"

int suffix_check(const char *host, struct err *err)
{
	const psl_ctx_t *list;
	char name[256];

	if (strncmp(host, "*.", 2) != 0 ||
	    value_host_name(host + 2, name, sizeof(name)) < 0)
		return 0;
	list = psl_builtin();
	if (!list)
		return err_set(err, ENOENT,
			       "'%.200s': there is no list of public suffixes "
			       "here; name the hosts themselves",
			       host);
	if (!psl_is_public_suffix(list, name))
		return 0;
	return err_set(err, EINVAL,
		       "'%.200s' would be names of anybody: '%.200s' is a "
		       "public suffix; name the hosts themselves, or what one "
		       "owner has, such as '*.example.%.100s'",
		       host, name, name);
}

static int check_rules(const struct node *rules, struct err *err)
{
	for (size_t i = 0; rules && i < rules->n; i++) {
		const struct node *host = node_find(rules->items[i], "host");
		struct err why = { 0 };

		if (host && suffix_check(host->value, &why) < 0)
			return node_error(host, err, "%s", why.text);
	}
	return 0;
}

int suffix_check_tree(const struct node *tree, struct err *err)
{
	const struct node *network = node_find(tree, "network");

	if (!network)
		return 0;
	if (check_rules(node_find(network, "allow"), err) < 0)
		return -err->code;
	return check_rules(node_find(network, "ask"), err);
}
