/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fields some values of which are refused: those that would take a part of the
 * wall away (docker-api.md, 7.3).
 */

#include <string.h>
#include <strings.h>

#include "face/docker/fields.h"

static bool is_of_another(const char *mode)
{
	return strcmp(mode, "host") == 0 ||
	       strncmp(mode, "container:", 10) == 0;
}

int take_namespace(struct making *k, json_t *v, const char *where)
{
	static const char *const fine[] = { "private", "none", "shareable" };
	const char *mode;

	if (need_str(k, v, where, &mode) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		if (strcmp(mode, fine[i]) == 0)
			return 0;
	if (is_of_another(mode))
		return say_no(&k->said, 403,
			      "cordon: %s=%.80s is refused: a box shares no "
			      "namespace with anything",
			      where, mode);
	return say_no(&k->said, 403,
		      "cordon: %s=%.80s is refused: no such mode is known",
		      where, mode);
}

int take_network_mode(struct making *k, json_t *v, const char *where)
{
	const char *mode;

	if (need_str(k, v, where, &mode) < 0)
		return -1;
	if (is_of_another(mode))
		return say_no(&k->said, 403,
			      "cordon: %s=%.80s is refused: a box has no "
			      "network of others",
			      where, mode);
	if (strcmp(mode, "none") == 0) {
		set_str(k, "network", "none");
		return 0;
	}
	/* The hosts of the policy; see add_warnings() for one without any. */
	if (strcmp(mode, "default") != 0 && strcmp(mode, "bridge") != 0)
		return say_no(&k->said, 400, "network %.80s not found", mode);
	return 0;
}

/* Options that disable something are refused; others are not there. */
static const struct {
	const char *start;
	bool is_fine;
	int status;
	const char *why;
} options[] = {
	{ "no-new-privileges:true", true, 0, NULL },
	{ "no-new-privileges=true", true, 0, NULL },
	{ "no-new-privileges:", false, 403, "that is always on" },
	{ "no-new-privileges=", false, 403, "that is always on" },
	{ "no-new-privileges", true, 0, NULL },
	{ "seccomp=unconfined", false, 403, "the filter is always on" },
	{ "seccomp:unconfined", false, 403, "the filter is always on" },
	{ "seccomp=builtin", true, 0, NULL },
	{ "seccomp", false, 501,
	  "profiles are not stacked on Cordon's own filter" },
	{ "apparmor=unconfined", false, 403, "nothing is taken away" },
	{ "apparmor:unconfined", false, 403, "nothing is taken away" },
	{ "label=disable", false, 403, "nothing is taken away" },
	{ "label:disable", false, 403, "nothing is taken away" },
	{ "systempaths=unconfined", false, 403, "what is hidden stays hidden" },
	{ "systempaths:unconfined", false, 403, "what is hidden stays hidden" },
};

static int take_option(struct making *k, const char *text, const char *where)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		size_t len = strlen(options[i].start);

		if (strncasecmp(text, options[i].start, len) != 0)
			continue;
		if (options[i].is_fine && !text[len])
			return 0;
		if (options[i].is_fine)
			break;
		if (options[i].status == 501)
			return say_no(&k->said, 501,
				      "cordon: %s %.60s is not supported: %s",
				      where, text, options[i].why);
		return say_no(&k->said, 403, "cordon: %s %.60s is refused: %s",
			      where, text, options[i].why);
	}
	return say_no(&k->said, 403,
		      "cordon: %s %.60s is refused: it is not understood",
		      where, text);
}

int take_security(struct making *k, json_t *v, const char *where)
{
	return need_each(k, v, where, take_option);
}

int take_runtime(struct making *k, json_t *v, const char *where)
{
	const char *text;

	if (need_str(k, v, where, &text) < 0)
		return -1;
	if (strcmp(text, "cordon") == 0)
		return 0;
	return say_no(&k->said, 403,
		      "cordon: %s=%.60s is refused: 'cordon' is the one that "
		      "is there",
		      where, text);
}
