/* SPDX-License-Identifier: Apache-2.0 */

/* cordon audit: finds the command and reads its options. */

#include "desk/audit.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "desk/desk.h"
#include "ledger/kinds.h"
#include "ledger/ledger.h"

enum {
	ON_LIST = 1,
	ON_FOLLOW = 2,
	ON_SHOW = 4,
	ON_VERIFY = 8,
	ON_EXPORT = 16,
	ON_SEAL = 32,
	ON_REINDEX = 64,
	ON_SCHEMA = 128,
	ON_FILTERS = ON_LIST | ON_FOLLOW | ON_EXPORT,
	ON_ALL = 255,
};

static int reindex(struct audit_options *o)
{
	struct err err = { 0 };
	struct index x;

	if (index_open(&x, o->dir, true, &err) < 0) {
		say("%s", err.text);
		return EXIT_OURS;
	}
	if (x.is_stopped)
		say("%s", x.note);
	index_close(&x);
	return 0;
}

static const struct command {
	const char *name;
	int bit;
	const char *operand; /* "ID": it needs one; NULL: it takes none */
	int (*run)(struct audit_options *o);
	const char *about;
} commands[] = {
	{ "list", ON_LIST, NULL, audit_list, "the records, as a table" },
	{ "show", ON_SHOW, "ID", audit_show,
	  "one run, by its id, or one record, by its number" },
	{ "follow", ON_FOLLOW, NULL, audit_follow, "records as they come" },
	{ "verify", ON_VERIFY, NULL, audit_verify,
	  "is every byte as it was written: 0 intact, 1 altered" },
	{ "export", ON_EXPORT, NULL, audit_export,
	  "the records for other programs" },
	{ "seal", ON_SEAL, NULL, audit_seal, "signs what is not signed yet" },
	{ "reindex", ON_REINDEX, NULL, reindex, "makes the index anew" },
	{ "schema", ON_SCHEMA, NULL, audit_schema,
	  "the form of a record, as JSON schema" },
};

/* "2026-11-15", "2026-11-15T10:00", with seconds, with Z; or "90m" ago. */
static int parse_time(const char *text, int64_t *ret)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S",
					     "%Y-%m-%dT%H:%M", "%Y-%m-%d",
					     "%Y-%m-%d %H:%M:%S",
					     "%Y-%m-%d %H:%M" };
	uint64_t ago = 0;
	size_t len = strlen(text);

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(text, forms[i], &tm);

		if (end && (*end == '\0' || strcmp(end, "Z") == 0)) {
			*ret = (int64_t)timegm(&tm) * 1000000;
			return 0;
		}
	}
	if (len > 1 && len < 12 && text[len - 1] == 'd') {
		char days[16];

		(void)snprintf(days, sizeof(days), "%.*s", (int)len - 1, text);
		if (num_parse(days, 100000, &ago) < 0)
			return -EINVAL;
		ago *= 86400000000ULL;
	} else if (num_parse_duration(text, &ago) < 0) {
		return -EINVAL;
	}
	*ret = (int64_t)time(NULL) * 1000000 - (int64_t)ago;
	return 0;
}

static int set_since(struct audit_options *o, const char *value)
{
	return parse_time(value, &o->filter.since);
}

static int set_until(struct audit_options *o, const char *value)
{
	return parse_time(value, &o->filter.until);
}

static int set_kind(struct audit_options *o, const char *value)
{
	size_t len = strlen(value);

	o->filter.kind = value;
	for (size_t i = 0; i < n_kinds; i++)
		if (strncmp(kinds[i].name, value, len) == 0 &&
		    (kinds[i].name[len] == '\0' || kinds[i].name[len] == '.'))
			return 0;
	return -EINVAL;
}

static int set_agent(struct audit_options *o, const char *value)
{
	o->filter.agent = value;
	return 0;
}

static int set_decision(struct audit_options *o, const char *value)
{
	o->filter.decision = value;
	return strcmp(value, "allow") == 0 || strcmp(value, "ask") == 0 ||
			       strcmp(value, "deny") == 0
		       ? 0
		       : -EINVAL;
}

static int set_run(struct audit_options *o, const char *value)
{
	o->filter.run = value;
	return *value ? 0 : -EINVAL;
}

static int set_limit(struct audit_options *o, const char *value)
{
	uint64_t n = 0;
	int r = num_parse(value, 1000000000, &n);

	o->filter.limit = (int64_t)n;
	return r;
}

static int set_dir(struct audit_options *o, const char *value)
{
	int n = snprintf(o->dir, sizeof(o->dir), "%s", value);

	return *value && n < (int)sizeof(o->dir) ? 0 : -EINVAL;
}

static int set_json(struct audit_options *o, const char *value)
{
	(void)value;
	o->json = true;
	return 0;
}

static int set_quiet(struct audit_options *o, const char *value)
{
	(void)value;
	o->quiet = true;
	return 0;
}

static int set_all(struct audit_options *o, const char *value)
{
	(void)value;
	o->all = true;
	return 0;
}

static int set_format(struct audit_options *o, const char *value)
{
	o->format = value;
	return strcmp(value, "jsonl") == 0 || strcmp(value, "ocsf") == 0
		       ? 0
		       : -EINVAL;
}

static int set_man(struct audit_options *o, const char *value)
{
	(void)value;
	o->man = true;
	return 0;
}

static int set_head(struct audit_options *o, const char *value)
{
	o->head = value;
	return 0;
}

static int set_key(struct audit_options *o, const char *value)
{
	o->key = value;
	return 0;
}

static int set_export(struct audit_options *o, const char *value)
{
	o->export = value;
	return 0;
}

static const struct option {
	const char *name;
	const char *takes; /* NULL: no value */
	int where;
	int (*set)(struct audit_options *o, const char *value);
	const char *about;
} options[] = {
	{ "--since", "TIME", ON_FILTERS, set_since,
	  "from then on: 2026-11-15, 2026-11-15T10:00, or 90m, 2h, 3d ago" },
	{ "--until", "TIME", ON_FILTERS, set_until, "up to then" },
	{ "--kind", "KIND", ON_FILTERS, set_kind,
	  "run.start and so on, or the first word: run, approval, file" },
	{ "--agent", "NAME", ON_FILTERS, set_agent, "what that agent asked" },
	{ "--decision", "allow|ask|deny", ON_FILTERS, set_decision,
	  "what was decided so" },
	{ "--run", "ID", ON_FILTERS, set_run, "what belongs to that run" },
	{ "--last", "N", ON_FILTERS, set_limit, "only the last N" },
	{ "--all", NULL, ON_LIST, set_all,
	  "all of them, also on a terminal (else the last 200)" },
	{ "--json", NULL, ON_LIST | ON_FOLLOW | ON_SHOW | ON_VERIFY | ON_SEAL,
	  set_json, "for machines" },
	{ "--format", "jsonl|ocsf", ON_EXPORT, set_format,
	  "as they are, or as OCSF 1.8 events" },
	{ "--man", NULL, ON_SCHEMA, set_man, "as a list for the manual" },
	{ "--head", "FILE", ON_VERIFY, set_head,
	  "a seal that was kept elsewhere must be in it" },
	{ "--key", "FILE", ON_VERIFY, set_key,
	  "the public key that was kept elsewhere" },
	{ "--export", "FILE", ON_SEAL, set_export,
	  "writes the last seal to FILE, to be kept elsewhere; '-' prints" },
	{ "--quiet", NULL, ON_VERIFY | ON_SEAL, set_quiet, "says less" },
	{ "--dir", "DIR", ON_ALL, set_dir, "another ledger's directory" },
};

static void print_help(void)
{
	(void)puts("usage: cordon audit COMMAND [OPTION...]\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].about)
			printf("  %-8s %-3s  %s\n", commands[i].name,
			       commands[i].operand ? commands[i].operand : "",
			       commands[i].about);
	(void)puts("");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		printf("  %-11s %-15s %s\n", options[i].name,
		       options[i].takes ? options[i].takes : "",
		       options[i].about);
}

void audit_words(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command *c = &commands[i];
		const char *space = "";

		if (!c->about)
			continue;
		printf("audit\t%s\t", c->name);
		if (c->operand) {
			printf("%s", c->operand);
			space = " ";
		}
		for (size_t k = 0; k < ARRAY_SIZE(options); k++)
			if (options[k].where & c->bit) {
				printf("%s[%s%s%s]", space, options[k].name,
				       options[k].takes ? " " : "",
				       options[k].takes ? options[k].takes
							: "");
				space = " ";
			}
		printf("\t%s\n", c->about);
	}
}

static const struct option *find_option(const char *arg, int bit)
{
	size_t len = strcspn(arg, "=");

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (strlen(options[i].name) == len &&
		    strncmp(options[i].name, arg, len) == 0 &&
		    (options[i].where & bit))
			return &options[i];
	return NULL;
}

static int bad(const char *flag, const struct option *opt)
{
	say("'%.60s' takes %s", flag, opt->takes ? opt->takes : "no value");
	return EXIT_OURS;
}

static int read_options(const struct command *c, int argc, char **argv,
			struct audit_options *o)
{
	for (int i = 1; i < argc; i++) {
		const struct option *opt;
		const char *value;

		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			if (!c->operand || o->operand) {
				say("'audit %s' does not take '%.200s'",
				    c->name, argv[i]);
				return EXIT_OURS;
			}
			o->operand = argv[i];
			continue;
		}
		opt = find_option(argv[i], c->bit);
		if (!opt) {
			say("'audit %s' has no flag '%.200s'; see 'cordon "
			    "audit --help'",
			    c->name, argv[i]);
			return EXIT_OURS;
		}
		value = strchr(argv[i], '=');
		if (value)
			value++;
		else if (opt->takes)
			value = i + 1 < argc ? argv[++i] : NULL;
		if ((opt->takes != NULL) != (value != NULL) ||
		    opt->set(o, value) < 0)
			return bad(opt->name, opt);
	}
	if (c->operand && !o->operand) {
		say("'audit %s' takes %s", c->name, c->operand);
		return EXIT_OURS;
	}
	return 0;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

int cmd_audit(int argc, char **argv)
{
	struct audit_options o = { 0 };
	struct err err = { 0 };
	const struct command *c;
	int r;

	if (argc > 1 &&
	    (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		print_help();
		return 0;
	}
	c = argc > 1 ? find_command(argv[1]) : NULL;
	if (!c) {
		say("'cordon audit' takes list, show, follow, verify, export, "
		    "seal or reindex; see 'cordon audit --help'");
		return EXIT_OURS;
	}
	r = read_options(c, argc - 1, argv + 1, &o);
	if (r)
		return r;
	if (!o.dir[0] && ledger_dir(o.dir, sizeof(o.dir), &err) < 0) {
		say("%s", err.text);
		return EXIT_OURS;
	}
	r = c->run(&o);
	/* What failed earlier is not told again by the flush. */
	if ((ferror(stdout) || fflush(stdout) != 0) && r == 0) {
		say("write the output: %s",
		    errno ? strerror(errno) : "it failed");
		r = EXIT_OURS;
	}
	return r;
}
