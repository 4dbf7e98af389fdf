/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "base/visible.h"

#define MAX_COLUMNS 12

void table_init(struct table *t, const char *const *titles)
{
	memset(t, 0, sizeof(*t));
	for (; titles[t->columns]; t->columns++)
		table_add(t, titles[t->columns]);
	t->in_row = 0;
}

/* What a box named itself must not steer the terminal. */
void table_add(struct table *t, const char *text)
{
	struct buf shown;

	buf_init(&shown, 65536);
	visible_text(&shown, text, strlen(text), 8192);
	(void)strv_add(&t->cells, shown.data ? shown.data : "");
	buf_done(&shown);
	t->in_row++;
}

void table_end_row(struct table *t)
{
	while (t->in_row < t->columns)
		table_add(t, "");
	t->in_row = 0;
}

void table_print(const struct table *t)
{
	size_t width[MAX_COLUMNS] = { 0 };

	if (t->columns == 0 || t->columns > MAX_COLUMNS)
		return;
	for (size_t i = 0; i < t->cells.n; i++) {
		size_t len = strlen(t->cells.v[i]);

		width[i % t->columns] = MAX(width[i % t->columns], len);
	}
	for (size_t i = 0; i < t->cells.n; i++) {
		size_t column = i % t->columns;

		if (column + 1 == t->columns)
			printf("%s\n", t->cells.v[i]);
		else
			printf("%-*s   ", (int)width[column], t->cells.v[i]);
	}
}

void table_done(struct table *t)
{
	strv_done(&t->cells);
}

const char *format_age(int64_t ms, char *ret, size_t size)
{
	static const struct {
		const char *name;
		int64_t seconds;
	} units[] = {
		{ "day", 86400 },
		{ "hour", 3600 },
		{ "minute", 60 },
		{ "second", 1 },
	};
	int64_t s = MAX(ms, 0) / 1000;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		int64_t n = s / units[i].seconds;

		if (n == 0 && i + 1 < ARRAY_SIZE(units))
			continue;
		(void)snprintf(ret, size, "%lld %s%s", (long long)n,
			       units[i].name, n == 1 ? "" : "s");
		break;
	}
	return ret;
}

const char *format_size(uint64_t bytes, char *ret, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double n = (double)bytes;
	size_t i = 0;

	for (; n >= 1024 && i + 1 < ARRAY_SIZE(units); i++)
		n /= 1024;
	(void)snprintf(ret, size, i ? "%.1f %s" : "%.0f %s", n, units[i]);
	return ret;
}

static void indent(int depth)
{
	printf("\n%*s", 4 * depth, "");
}

void print_json(const char *text, size_t len, int depth)
{
	bool in_string = false;

	printf("%*s", 4 * depth, "");
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		char next = i + 1 < len ? text[i + 1] : '\0';

		if (in_string || !strchr("{}[],:\n", c)) {
			(void)putchar(c);
			if (c == '\\' && in_string && i + 1 < len)
				(void)putchar(text[++i]);
			else if (c == '"')
				in_string = !in_string;
		} else if (c == '{' || c == '[') {
			(void)putchar(c);
			if (next == '}' || next == ']')
				(void)putchar(text[++i]);
			else
				indent(++depth);
		} else if (c == '}' || c == ']') {
			indent(--depth);
			(void)putchar(c);
		} else if (c == ',') {
			(void)putchar(c);
			indent(depth);
		} else if (c == ':') {
			printf(": ");
		}
	}
}
