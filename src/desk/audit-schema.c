/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The kinds of records as a JSON schema (api/ledger.schema.json) and as the
 * list in cordon-ledger(5): both printed from the table.
 */

#include <string.h>

#include "desk/audit.h"
#include "desk/desk.h"
#include "ledger/kinds.h"

static const char *type_name(char type)
{
	static const char letters[] = "shiboa";
	static const char *const names[] = { "string",  "string", "integer",
					     "boolean", "object", "array" };

	return names[strchr(letters, type) - letters];
}

static void print_member(const struct kind_member *m)
{
	printf(",\n        \"%s\": {\"type\": \"%s\"%s, \"description\": "
	       "\"%s\"}",
	       m->name, type_name(m->type),
	       m->type == 'h' ? ", \"pattern\": \"^[0-9a-f]{64}$\"" : "",
	       m->about);
}

static void print_kind(const struct kind *k)
{
	printf("    {\n      \"title\": \"%s\",\n      \"description\": "
	       "\"%s\",\n      \"type\": \"object\",\n      \"properties\": {\n"
	       "        \"prev\": {\"$ref\": \"#/$defs/prev\"},\n"
	       "        \"time\": {\"$ref\": \"#/$defs/time\"},\n"
	       "        \"seq\": {\"$ref\": \"#/$defs/seq\"},\n"
	       "        \"kind\": {\"const\": \"%s\"}",
	       k->name, k->about, k->name);
	for (const struct kind_member *m = k->members; m->name; m++)
		print_member(m);
	(void)fputs(",\n        \"crc\": {\"$ref\": \"#/$defs/crc\"}\n      },"
		    "\n      \"required\": [\"prev\", \"time\", \"seq\", "
		    "\"kind\"",
		    stdout);
	for (const struct kind_member *m = k->members; m->name; m++)
		if (m->is_required)
			printf(", \"%s\"", m->name);
	(void)fputs(", \"crc\"],\n      \"additionalProperties\": false\n"
		    "    }",
		    stdout);
}

static int print_schema(void)
{
	(void)fputs(
		"{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/"
		"schema\",\n  \"title\": \"A record of Cordon's ledger\",\n"
		"  \"description\": \"Printed by 'cordon-desk audit schema'; "
		"see cordon-ledger(5).\",\n"
		"  \"$defs\": {\n"
		"    \"prev\": {\"type\": \"string\", \"pattern\": "
		"\"^[0-9a-f]{64}$\"},\n"
		"    \"time\": {\"type\": \"string\", \"pattern\": "
		"\"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
		"\\\\.[0-9]{6}Z$\"},\n"
		"    \"seq\": {\"type\": \"integer\", \"minimum\": 1},\n"
		"    \"crc\": {\"type\": \"string\", \"pattern\": "
		"\"^[0-9a-f]{8}$\"}\n"
		"  },\n  \"oneOf\": [\n",
		stdout);
	for (size_t i = 0; i < n_kinds; i++) {
		print_kind(&kinds[i]);
		(void)puts(i + 1 < n_kinds ? "," : "");
	}
	(void)puts("  ]\n}");
	return 0;
}

static int print_manual(void)
{
	for (size_t i = 0; i < n_kinds; i++) {
		printf(".SS %s\n%s.\n", kinds[i].name, kinds[i].about);
		for (const struct kind_member *m = kinds[i].members; m->name;
		     m++)
			printf(".TP\n.BR %s \" (%s%s)\"\n%s\n", m->name,
			       m->type == 'h' ? "SHA\\-256"
					      : type_name(m->type),
			       m->is_required ? ", always" : "", m->about);
	}
	return 0;
}

int audit_schema(struct audit_options *o)
{
	return o->man ? print_manual() : print_schema();
}
