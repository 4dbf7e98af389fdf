/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a newer version wrote into a state and this one does not know.
 *
 * Whatever this version knows it writes back right after it was loaded. So
 * the rest is found by comparing the two, at every depth, and no part of a
 * team has to remember anything for it. A list counts only while it has the
 * same length: the conditions of a group, not the messages of a thread.
 */

#include <errno.h>
#include <stdio.h>

#include "agent/parts.h"

#define DEPTH_MAX 64

static int rest_of(const json_t *loaded, const json_t *written, int depth,
		   json_t **ret);

static int put(json_t *rest, const char *key, const json_t *loaded,
	       const json_t *written, int depth)
{
	json_t *more = NULL;
	int r = 0;

	if (!written)
		more = json_incref((json_t *)loaded);
	else
		r = rest_of(loaded, written, depth, &more);
	if (r == 0 && more && json_object_set(rest, key, more) < 0)
		r = -ENOMEM;
	json_decref(more);
	return r;
}

static int rest_of_object(const json_t *loaded, const json_t *written,
			  int depth, json_t *rest)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)loaded, key, v)
	{
		int r = put(rest, key, v, json_object_get(written, key), depth);

		if (r < 0)
			return r;
	}
	return 0;
}

/* By the number of each. */
static int rest_of_list(const json_t *loaded, const json_t *written, int depth,
			json_t *rest)
{
	size_t i;
	json_t *v;

	json_array_foreach((json_t *)loaded, i, v)
	{
		char key[24];
		int r;

		(void)snprintf(key, sizeof(key), "%zu", i);
		r = put(rest, key, v, json_array_get(written, i), depth);
		if (r < 0)
			return r;
	}
	return 0;
}

static int rest_of(const json_t *loaded, const json_t *written, int depth,
		   json_t **ret)
{
	bool is_list = json_is_array(loaded) && json_is_array(written) &&
		       json_array_size(loaded) == json_array_size(written);
	bool is_map = json_is_object(loaded) && json_is_object(written);
	json_t *rest;
	int r;

	*ret = NULL;
	if ((!is_list && !is_map) || loaded == written || depth > DEPTH_MAX)
		return 0;
	rest = json_object();
	if (!rest)
		return -ENOMEM;
	r = (is_list ? rest_of_list : rest_of_object)(loaded, written,
						      depth + 1, rest);
	if (r == 0 && json_object_size(rest) > 0)
		*ret = json_incref(rest);
	json_decref(rest);
	return r;
}

int saved_rest(const json_t *loaded, const json_t *written, json_t **ret)
{
	return rest_of(loaded, written, 0, ret);
}

static json_t *part_of(const json_t *v, const char *key)
{
	unsigned int at = 0;

	if (json_is_object(v))
		return json_object_get(v, key);
	if (json_is_array(v) && sscanf(key, "%u", &at) == 1)
		return json_array_get(v, at);
	return NULL;
}

/*
 * Parts of a state are shared with those that made it, so an object that gets
 * more is copied first, and its copy put in its place.
 */
static json_t *with_rest(const json_t *state, const json_t *rest)
{
	json_t *copy = json_copy((json_t *)state);
	const char *key;
	json_t *v;
	int r = copy ? 0 : -1;

	json_object_foreach((json_t *)rest, key, v)
	{
		const json_t *have = part_of(copy, key);
		json_t *more;

		if (r < 0)
			break;
		if (!have && !json_is_object(copy))
			continue;
		more = !have ? json_incref(v)
		       : json_is_object(have) || json_is_array(have)
			       ? with_rest(have, v)
			       : json_incref((json_t *)have);
		r = json_is_object(copy)
			    ? json_object_set_new(copy, key, more)
			    : json_array_set_new(copy,
						 (size_t)strtoul(key, NULL, 10),
						 more);
	}
	if (r == 0)
		return copy;
	json_decref(copy);
	return NULL;
}

json_t *saved_join(json_t *state, const json_t *rest)
{
	json_t *ret = state && rest ? with_rest(state, rest)
				    : json_incref(state);

	json_decref(state);
	return ret;
}
