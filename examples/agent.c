/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An assistant with two tools, one a function of this program, one a box:
 * cc agent.c $(pkg-config --cflags --libs cordon-agent)
 * With a file as argument the model's answers come from that recording.
 */
#include <cordon/agent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char yaml[] = "name: clerk\n"
			   "model: gpt-4o-mini\n"
			   "system: Look prices up with the tool; calculate "
			   "only by running code.\n"
			   "tools: [price, run_python]\n"
			   "policy: strict\n";

/* What a model may ask this program. */
static char *price(void *arg, const char *args, struct cordon_error *err)
{
	static const char *const known[][2] = { { "\"apple\"", "0.35 EUR" },
						{ "\"pear\"", "0.42 EUR" } };

	(void)arg;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(args, known[i][0]))
			return strdup(known[i][1]);
	snprintf(err->text, sizeof(err->text), "there is no such fruit");
	return NULL;
}

static const struct cordon_tool tools[] = {
	{ .name = "price",
	  .description = "The price of one piece of fruit",
	  .schema = "{\"type\":\"object\",\"properties\":{\"fruit\":"
		    "{\"type\":\"string\"}},\"required\":[\"fruit\"],"
		    "\"additionalProperties\":false}",
	  .call = price,
	  .read_only = 1 },
	{ 0 },
};

static void event(void *arg, const char *json)
{
	(void)arg;
	printf("%.100s ...\n", json);
}

int main(int argc, char **argv)
{
	struct cordon_error err = { 0 };
	struct cordon_agent *a = cordon_agent_parse(yaml, tools, &err);
	char *result = NULL;
	int e = a ? 0 : -1;

	if (e == 0 && argc > 1)
		e = cordon_agent_set(a, "replay", argv[1], &err);
	if (e == 0) {
		cordon_agent_on_event(a, event, NULL);
		e = cordon_agent_run(a, "What do 17 apples and 4 pears cost?",
				     &result, &err);
	}
	if (e == 0)
		printf("%s\n", result);
	else
		fprintf(stderr, "cordon: %s\n", err.text);
	free(result);
	cordon_agent_free(a);
	return e < 0;
}
