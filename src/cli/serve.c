/* SPDX-License-Identifier: Apache-2.0 */

/* cordon serve: its flags, as one table; the rest is src/serve. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"
#include "box/wire.h"
#include "cli/cli.h"
#include "serve/serve.h"

#define AT(member) offsetof(struct serve_options, member)
#define NOT_HERE   SIZE_MAX

static const struct serve_flag {
	const char *name;
	const char *value;
	const char *help;
	size_t at;
} flags[] = {
	{ "socket", "PATH", "own socket (RUNTIME/cordon.sock)", AT(socket) },
	{ "docker-socket", "PATH", "a socket that speaks Docker's API (none)",
	  AT(docker_socket) },
	{ "group", "NAME|GID", "group of the sockets", AT(group) },
	{ "mode", "MODE", "of the sockets (0660)", AT(mode) },
	{ "user", "NAME|UID",
	  "whom the front runs as (cordon, if there is one)", AT(user) },
	{ "policy", "FILE", "what decides: a file or a preset", AT(policy) },
	{ "policies", "DIR",
	  "NAME.yaml: policies that a request may name, beside the presets",
	  AT(policies) },
	{ "max-boxes", "N", "alive at once (512, which is the most)",
	  AT(max_boxes) },
	{ "ask-wait", "TIME",
	  "how long Docker's clients wait for a person's answer (45s)",
	  AT(ask_wait) },
	{ "listen", "ADDR", "not in this build", NOT_HERE },
};

const char *serve_flag_at(size_t i)
{
	return i < ARRAY_SIZE(flags) ? flags[i].name : NULL;
}

static int help(void)
{
	printf("usage: cordon serve [FLAGS]\n\nkeeps boxes that live, for "
	       "'cordon ps' and for Docker's clients\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		char left[40];

		(void)snprintf(left, sizeof(left), "--%s %s", flags[i].name,
			       flags[i].value);
		printf("  %-26s %s\n", left, flags[i].help);
	}
	printf("\nSIGTERM ends it, SIGHUP has the policy read again; "
	       "cordon-serve(1) says more.\n");
	return 0;
}

/* "--name VALUE" or "--name=VALUE"; what it took of argv, -1: wrong. */
static int take(char **argv, struct serve_options *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct serve_flag *f = &flags[i];
		size_t len = strlen(f->name);
		const char *rest = argv[0] + 2 + len;
		const char *value;

		if (strncmp(argv[0], "--", 2) != 0 ||
		    strncmp(argv[0] + 2, f->name, len) != 0 ||
		    (*rest && *rest != '='))
			continue;
		value = *rest ? rest + 1 : argv[1];
		if (f->at == NOT_HERE) {
			say("--%s is not in this build: a daemon that is "
			    "reached over a network needs to know who asks",
			    f->name);
			return -1;
		}
		if (!value || !*value) {
			say("--%s takes %s", f->name, f->value);
			return -1;
		}
		*(const char **)((char *)ret + f->at) = value;
		return *rest ? 1 : 2;
	}
	say("serve: '%s' is not a flag; 'cordon serve --help' lists them",
	    argv[0]);
	return -1;
}

int cmd_serve(int argc, char **argv)
{
	struct serve_options o = { 0 };
	uint64_t n;

	for (int i = 1; i < argc;) {
		int used;

		if (strcmp(argv[i], "--help") == 0 ||
		    strcmp(argv[i], "-h") == 0)
			return help();
		used = take(argv + i, &o);
		if (used < 0)
			return EXIT_OURS;
		i += used;
	}
	if (o.max_boxes &&
	    (num_parse(o.max_boxes, WIRE_STAYING, &n) < 0 || n == 0)) {
		say("--max-boxes takes a number from 1 to %d", WIRE_STAYING);
		return EXIT_OURS;
	}
	if (o.ask_wait && (num_parse_duration(o.ask_wait, &n) < 0 || n == 0)) {
		say("--ask-wait takes a time such as 45s");
		return EXIT_OURS;
	}
	return serve(&o);
}
