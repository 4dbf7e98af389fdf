/* SPDX-License-Identifier: Apache-2.0 */

/* cordon doctor: each layer of the wall on this machine. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/num.h"
#include "base/util.h"
#include "box/machine.h"
#include "cli/cli.h"

static const char *const words[] = { "present", "weaker", "absent" };
static const char *const colours[] = { "\033[32m", "\033[33m", "\033[31m" };

static void table(const struct machine *m)
{
	int colour = use_colour(1);

	for (size_t i = 0; i < m->n; i++) {
		const struct machine_layer *l = &m->layers[i];

		printf("%-16s %s%-8s%s %s\n", l->name,
		       colour ? colours[l->state] : "", words[l->state],
		       colour ? "\033[0m" : "", l->detail);
		if (l->remedy[0])
			printf("%-16s %-8s -> %s\n", "", "", l->remedy);
	}
	if (m->can_enforce)
		printf("\nThe default policy can be enforced here.\n");
	else
		printf("\nThe default policy cannot be enforced here: %s\n",
		       m->why_not);
}

static void document(const struct machine *m)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, 1 << 20);
	json_open(&j, NULL, '{');
	json_bool(&j, "can_enforce", m->can_enforce);
	if (!m->can_enforce)
		json_str(&j, "why_not", m->why_not);
	json_open(&j, "layers", '[');
	for (size_t i = 0; i < m->n; i++) {
		json_open(&j, NULL, '{');
		json_str(&j, "name", m->layers[i].name);
		json_str(&j, "state", words[m->layers[i].state]);
		json_str(&j, "detail", m->layers[i].detail);
		if (m->layers[i].remedy[0])
			json_str(&j, "remedy", m->layers[i].remedy);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	printf("%s\n", out.data ? out.data : "{}");
	buf_done(&out);
}

static int grant(const char *text)
{
	struct err err = { 0 };
	uint64_t uid;

	if (num_parse(text, UINT32_MAX - 1, &uid) < 0) {
		say("--grant-cgroup takes a numeric uid; 'id -u' prints yours");
		return EXIT_OURS;
	}
	if (machine_grant_cgroup((unsigned int)uid, &err) < 0) {
		say("%s", err.text);
		return EXIT_OURS;
	}
	printf("uid %u may now make limited groups\n", (unsigned int)uid);
	return 0;
}

int cmd_doctor(int argc, char **argv)
{
	static struct machine m;
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;

	if (argc == 3 && strcmp(argv[1], "--grant-cgroup") == 0)
		return grant(argv[2]);
	if (argc > 1 && !json) {
		say("doctor takes --json, or --grant-cgroup UID");
		return EXIT_OURS;
	}
	machine_look(&m);
	if (json)
		document(&m);
	else
		table(&m);
	return m.can_enforce ? 0 : 1;
}
