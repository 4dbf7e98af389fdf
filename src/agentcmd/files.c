/* SPDX-License-Identifier: Apache-2.0 */

/* cordon agent check, dump, import, schema */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agentcmd/agentcmd.h"
#include "agentcmd/config.h"
#include "agentcmd/crew.h"
#include "agentcmd/doc.h"
#include "agentcmd/fields.h"
#include "base/io.h"
#include "base/util.h"

static int print_json(json_t *o, struct err *err)
{
	_cleanup_free_ char *text = json_dumps(o, JSON_INDENT(2));

	if (!text)
		return err_set(err, ENOMEM, "out of memory");
	printf("%s\n", text);
	return 0;
}

static void print_agent(const json_t *agent)
{
	const json_t *config = component_config(agent);
	const json_t *model = component_config(
		json_object_get(config, "model"));
	const char *name = json_string_value(json_object_get(model, "model"));
	json_t *tool;
	size_t i;

	printf("  %-16s %s", json_string_value(json_object_get(config, "name")),
	       component_kind(agent));
	if (name)
		printf(", %s", name);
	json_array_foreach(json_object_get(config, "tools"), i, tool)
	{
		const char *path = json_string_value(
			json_object_get(component_config(tool), "path"));

		printf("%s%s", i ? ", " : "; ",
		       path ? path : component_kind(tool));
	}
	printf("\n");
}

static void print_summary(const struct config *c)
{
	json_t *agents = json_object_get(component_config(c->component),
					 "participants");
	json_t *agent;
	size_t i;

	printf("%s: good: %s\n", c->file, component_provider(c->component));
	json_array_foreach(agents, i, agent)
	{
		print_agent(agent);
	}
	if (!agents)
		print_agent(c->component);
}

/* Everything but the model itself is brought to life, and put away. */
int run_check(struct call *c, struct err *err)
{
	struct config config;
	struct crew_options o = { .config = &config,
				  .model = c->model,
				  .secrets = c->secrets,
				  .policy = c->policy };
	struct crew *crew = NULL;
	int e = config_read(c->operands[0], NULL, &config, err);

	if (e < 0)
		return e;
	e = loop_new(&o.loop, err);
	if (e == 0)
		e = crew_new(&o, &crew, err);
	if (e == 0)
		print_summary(&config);
	else
		(void)err_wrap(err, "%s", config.file);
	crew_free(crew);
	if (o.loop)
		loop_free(o.loop);
	config_done(&config);
	return e;
}

int run_dump(struct call *c, struct err *err)
{
	struct config config;
	_cleanup_free_ char *text = NULL;
	int e = config_read(c->operands[0], NULL, &config, err);

	if (e < 0)
		return e;
	text = config_dump(&config);
	config_done(&config);
	if (!text)
		return err_set(err, ENOMEM, "out of memory");
	printf("%s\n", text);
	return 0;
}

static int write_to(const char *file, json_t *o, struct err *err)
{
	_cleanup_free_ char *text = json_dumps(o, JSON_INDENT(2));
	_cleanup_fd_ int fd = open(file,
				   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
				   0644);
	int e;

	if (!text)
		return err_set(err, ENOMEM, "out of memory");
	if (fd < 0)
		return err_errno(err, errno, "open '%s'", file);
	e = io_write_all(fd, text, strlen(text));
	if (e == 0)
		e = io_write_all(fd, "\n", 1);
	return e < 0 ? err_errno(err, -e, "write '%s'", file) : 0;
}

static void list_left(const json_t *left)
{
	json_t *one;
	size_t i;

	json_array_foreach(left, i, one)
	{
		say("left out: %s: %s: %s",
		    json_string_value(json_object_get(one, "path")),
		    json_string_value(json_object_get(one, "what")),
		    json_string_value(json_object_get(one, "why")));
	}
}

/* What came of it must load, else it is no import. */
static void check_imported(const json_t *ours)
{
	_cleanup_free_ char *text = json_dumps(ours, 0);
	struct config config;
	struct err why = { 0 };

	if (text && config_parse("imported", text, strlen(text), NULL, &config,
				 &why) < 0)
		say("not complete: %s", why.text);
	else if (text)
		config_done(&config);
}

int run_import(struct call *c, struct err *err)
{
	struct doc theirs;
	json_t *left = NULL;
	json_t *ours;
	int e = doc_read(c->operands[0], &theirs, err);

	if (e < 0)
		return e;
	ours = config_import(theirs.root, &left, err);
	list_left(left);
	if (!ours)
		e = -err->code;
	else
		e = c->output ? write_to(c->output, ours, err)
			      : print_json(ours, err);
	if (e == 0) {
		check_imported(ours);
		e = json_array_size(left) ? EXIT_FAILED : 0;
	}
	json_decref(ours);
	json_decref(left);
	doc_done(&theirs);
	return e;
}

int run_schema(struct call *c, struct err *err)
{
	json_t *schema = config_schema();
	int e = print_json(schema, err);

	(void)c;
	json_decref(schema);
	return e;
}
