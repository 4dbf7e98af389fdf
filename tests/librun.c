/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library for tests that are scripts:
 *
 *	librun JSON [CMD ARG...]     settings, then a program
 *	librun --show JSON           the spec as it would run
 *
 * Prints the result document. 3, and a line on standard error, if the library
 * refuses.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cordon/cordon.h>

static int refuse(const struct cordon_error *err)
{
	(void)fprintf(stderr, "%s\n", err->text);
	return 3;
}

static int put(char *json)
{
	if (!json || fputs(json, stdout) < 0)
		return 4;
	free(json);
	return 0;
}

static int run(struct cordon_spec *s, struct cordon_error *err)
{
	struct cordon *c = cordon_open(err);
	struct cordon_result *r = NULL;
	int code;

	if (!c)
		return refuse(err);
	code = cordon_run(c, s, &r, err) < 0 ? refuse(err)
					     : put(cordon_result_json(r));
	cordon_result_free(r);
	cordon_close(c);
	return code;
}

int main(int argc, char **argv)
{
	bool shows = argc > 1 && strcmp(argv[1], "--show") == 0;
	char **args = argv + 1 + shows;
	struct cordon_error err = { 0 };
	struct cordon_spec *s = cordon_spec_new();
	int code;

	if (!s || argc < 2 + shows)
		return 2;
	if (cordon_spec_set_json(s, args[0], strlen(args[0]), &err) < 0 ||
	    (args[1] &&
	     cordon_spec_command(s, (const char *const *)args + 1, &err) < 0))
		code = refuse(&err);
	else
		code = shows ? put(cordon_spec_json(s)) : run(s, &err);
	cordon_spec_free(s);
	return code;
}
