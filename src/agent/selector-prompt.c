/* SPDX-License-Identifier: Apache-2.0 */

/* What a model is told before it says who is next. */

#include <string.h>

#include "agent/selector.h"
#include "agent/team-parts.h"
#include "base/buf.h"
#include "base/util.h"

#define MAX_PROMPT  (4 << 20)
#define MAX_HISTORY (256 << 10)

const char selector_default[] =
	"Several participants work on a task together. They are:\n"
	"{roles}\n\n"
	"This is what was said so far:\n\n"
	"{history}\n\n"
	"Decide which one of {participants} should speak next. Answer with "
	"that name alone.";

struct scene {
	struct team *team;
	const json_t *candidates, *thread;
};

/* "name: description" of each candidate. */
static void add_roles(const struct scene *s, struct buf *b)
{
	size_t i;
	json_t *c;

	json_array_foreach((json_t *)s->candidates, i, c)
	{
		const char *name = json_string_value(c);
		const char *text = team_agent(s->team, name)->description;

		(void)buf_printf(b, "%s%s: %s", i > 0 ? "\n" : "", name,
				 text ? text : "");
	}
}

/* From where on the thread is short enough to be shown. */
static size_t first_shown(const json_t *thread)
{
	size_t i = json_array_size(thread);
	size_t len = 0;

	while (i > 0) {
		_cleanup_free_ char *text = chat_to_text(
			json_array_get(thread, i - 1));

		len += text ? strlen(text) : 0;
		if (len > MAX_HISTORY)
			break;
		i--;
	}
	return i;
}

static void add_history(const struct scene *s, struct buf *b)
{
	size_t first = first_shown(s->thread);

	for (size_t i = first; i < json_array_size(s->thread); i++) {
		const json_t *m = json_array_get(s->thread, i);
		_cleanup_free_ char *text = chat_to_text(m);
		const char *source = chat_source(m);

		(void)buf_printf(b, "%s%s: %s", i > first ? "\n\n" : "",
				 source ? source : "", text ? text : "");
	}
}

static void add_participants(const struct scene *s, struct buf *b)
{
	_cleanup_free_ char *names = json_dumps(s->candidates, 0);

	(void)buf_puts(b, names ? names : "[]");
}

/* One pass: what was said may hold "{roles}" and stays as it is. */
char *selector_prompt(struct team *t, const char *prompt,
		      const json_t *candidates, const json_t *thread)
{
	static const struct {
		const char *name;
		void (*add)(const struct scene *s, struct buf *b);
	} fields[] = { { "{roles}", add_roles },
		       { "{participants}", add_participants },
		       { "{history}", add_history } };
	const struct scene s = { t, candidates, thread };
	const char *p = prompt;
	struct buf b;
	char *text;

	buf_init(&b, MAX_PROMPT);
	while (*p) {
		size_t i = 0;

		while (i < ARRAY_SIZE(fields) &&
		       strncmp(p, fields[i].name, strlen(fields[i].name)) != 0)
			i++;
		if (i < ARRAY_SIZE(fields)) {
			fields[i].add(&s, &b);
			p += strlen(fields[i].name);
		} else {
			(void)buf_add(&b, p++, 1);
		}
	}
	text = b.error ? NULL : buf_take(&b);
	buf_done(&b);
	return text;
}
