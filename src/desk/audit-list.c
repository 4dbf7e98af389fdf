/* SPDX-License-Identifier: Apache-2.0 */

/* cordon audit list, follow: the records, as a table. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/visible.h"
#include "desk/audit.h"
#include "desk/desk.h"
#include "ledger/reader.h"

#define ON_TERMINAL 200 /* rows, unless more are asked for */

struct table {
	struct audit_options *o;
	struct index *x;
	bool has_colour;
	bool has_head;
	int64_t day; /* the second that `clock` tells */
	char clock[32];
	int failed;
};

void print_plain(FILE *out, const char *text, size_t len)
{
	struct buf shown;

	buf_init(&shown, 16 * len + 16);
	visible_text(&shown, text, len, len);
	if (shown.len && !shown.error)
		(void)fwrite(shown.data, 1, shown.len, out);
	else if (len)
		(void)fputs("<out of memory>", out);
	buf_done(&shown);
}

void time_text(int64_t us, char ret[32])
{
	time_t t = us / 1000000;
	struct tm tm;

	(void)gmtime_r(&t, &tm);
	(void)strftime(ret, 32, "%Y-%m-%d %H:%M:%S", &tm);
}

static const char *colour_of(const struct index_row *row)
{
	if (strcmp(row->decision, "deny") == 0)
		return "\033[31m";
	if (strcmp(row->decision, "ask") == 0)
		return "\033[33m";
	if (strcmp(row->decision, "allow") == 0)
		return "\033[32m";
	return "";
}

static void print_head(struct table *t)
{
	if (t->has_head)
		return;
	t->has_head = true;
	printf("%s%-19s %8s  %-16s %-8s  %-12s %-8s  %s%s\n",
	       t->has_colour ? "\033[1m" : "", "TIME (UTC)", "RECORD", "KIND",
	       "DECISION", "AGENT", "RUN", "WHAT",
	       t->has_colour ? "\033[0m" : "");
}

/* Whether it can be printed as it is; nearly all text can. */
static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return true;
}

/*
 * A million rows go through here: a row is put together in one piece, and
 * only text with anything unusual in it takes the long way.
 */
static void print_cell(const char *text, size_t width, size_t most)
{
	static const char spaces[] = "                        ";
	size_t len = strnlen(text, most);

	if (len == 0) {
		text = "-";
		len = 1;
	}
	if (is_plain(text, len))
		(void)fwrite_unlocked(text, 1, len, stdout);
	else
		print_plain(stdout, text, len);
	if (len < width)
		(void)fwrite_unlocked(spaces, 1, width - len, stdout);
}

/* Right-aligned in eight columns, and two spaces. */
static void print_seq(uint64_t seq)
{
	char text[24];
	char *end = text + sizeof(text);
	char *p = end;

	*--p = ' ';
	*--p = ' ';
	do
		*--p = (char)('0' + seq % 10);
	while ((seq /= 10) > 0);
	while (end - p < 11)
		*--p = ' ';
	(void)fwrite_unlocked(p, 1, (size_t)(end - p), stdout);
}

static int print_row(struct table *t, const struct index_row *row)
{
	if (t->day != row->time / 1000000) {
		t->day = row->time / 1000000;
		time_text(row->time, t->clock);
	}
	print_head(t);
	(void)fwrite_unlocked(t->clock, 1, 19, stdout);
	print_seq(row->seq);
	print_cell(row->kind, 17, 16);
	if (t->has_colour)
		(void)fputs_unlocked(colour_of(row), stdout);
	print_cell(row->decision, 8, 8);
	if (t->has_colour)
		(void)fputs_unlocked("\033[0m", stdout);
	(void)fputs_unlocked("  ", stdout);
	print_cell(row->agent, 12, 24);
	(void)putchar_unlocked(' ');
	print_cell(row->run, 10, 8);
	print_cell(row->what, 0, 4096);
	(void)putchar_unlocked('\n');
	return ferror_unlocked(stdout) ? 1 : 0;
}

static int each(void *arg, const struct index_row *row)
{
	struct table *t = arg;
	struct err err = { 0 };
	char *line;

	if (!t->o->json)
		return print_row(t, row);
	line = index_line(t->x, row, &err);
	if (!line) {
		say("%s", err.text);
		t->failed = EXIT_OURS;
		return 1;
	}
	(void)puts(line);
	free(line);
	return ferror(stdout) ? 1 : 0;
}

int audit_list(struct audit_options *o)
{
	struct err err = { 0 };
	struct index x;
	struct table t = { .o = o, .x = &x, .day = -1 };
	int r;

	if (access(o->dir, F_OK) < 0 && errno == ENOENT) {
		say("nothing is recorded yet ('%s')", o->dir);
		return 0;
	}
	if (index_open(&x, o->dir, false, &err) < 0) {
		say("%s", err.text);
		return EXIT_OURS;
	}
	if (!o->json && !o->all && !o->filter.limit && isatty(STDOUT_FILENO))
		o->filter.limit = ON_TERMINAL;
	t.has_colour = use_colour(STDOUT_FILENO);
	(void)setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	r = index_list(&x, &o->filter, each, &t, &err);
	if (r < 0)
		say("%s", err.text);
	if (x.is_stopped)
		say("%s", x.note);
	index_close(&x);
	return r < 0 ? EXIT_OURS : t.failed;
}

static int until_now(void *arg, const struct index_row *row)
{
	*(uint64_t *)arg = row->seq;
	return 0;
}

/* The index is cheap to ask, and asks the files. */
int audit_follow(struct audit_options *o)
{
	struct table t = { .o = o, .day = -1 };
	struct index_filter last = { .limit = 1 };
	uint64_t seen = 0;
	bool is_first = true;

	t.has_colour = use_colour(STDOUT_FILENO);
	for (;;) {
		struct timespec pause = { .tv_nsec = 200000000 };
		struct err err = { 0 };
		struct index x;
		uint64_t end = 0;

		t.x = &x;
		if (index_open(&x, o->dir, false, &err) < 0) {
			if (err.code != ENOENT) {
				say("%s", err.text);
				return EXIT_OURS;
			}
			is_first = false;
			(void)nanosleep(&pause, NULL);
			continue;
		}
		if (x.is_stopped) {
			say("%s", x.note);
			index_close(&x);
			return EXIT_ALTERED;
		}
		(void)index_list(&x, &last, until_now, &end, &err);
		if (is_first)
			seen = end - MIN(end, 10);
		is_first = false;
		if (end > seen) {
			o->filter.above = seen;
			if (index_list(&x, &o->filter, each, &t, &err) < 0) {
				say("%s", err.text);
				t.failed = EXIT_OURS;
			}
			seen = end;
		}
		index_close(&x);
		if (t.failed || fflush(stdout) != 0)
			return t.failed;
		(void)nanosleep(&pause, NULL);
	}
}
