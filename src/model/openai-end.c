/* SPDX-License-Identifier: Apache-2.0 */

/* The end of an answer: whether it is whole, and the result that it makes. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hex.h"
#include "base/util.h"
#include "model/openai.h"

int answer_too_large(struct fault *why)
{
	fault_set(why, FAULT_TOO_LARGE,
		  "the model's answer is larger than %zu MiB or has more than "
		  "%d calls, or memory is short",
		  ANSWER_MAX >> 20, ANSWER_CALLS);
	return -E2BIG;
}

int answer_nonsense(struct fault *why, const char *what)
{
	fault_set(why, FAULT_UNAVAILABLE, "the model's answer %s", what);
	return -EPROTO;
}

/* Calls and their results are told apart by it, in the whole conversation. */
static int make_id(char **ret)
{
	unsigned char bytes[12];
	char hex[2 * sizeof(bytes) + 1];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	hex_format(bytes, sizeof(bytes), hex);
	return asprintf(ret, "call_%s", hex) < 0 ? -ENOMEM : 0;
}

static bool is_empty(const struct join *j)
{
	for (size_t i = 0; i < j->text.len; i++)
		if (!is_blank(j->text.data[i]))
			return false;
	return true;
}

/* What goes into documents and on terminals unread: short, and only this. */
static bool is_label(const char *text)
{
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"abcdefghijklmnopqrstuvwxyz0123456789_-.:");

	return n > 0 && n <= 64 && text[n] == '\0';
}

static int add_result(json_t *list, struct answer_call *c, struct fault *why)
{
	json_t *call;

	if (!c->name)
		return answer_nonsense(why, "calls a tool without a name");
	if (c->id && !is_label(c->id)) {
		free(c->id);
		c->id = NULL;
	}
	if (!is_label(c->name)) {
		free(c->name);
		c->name = strdup("no_such_name");
	}
	if (!c->name || join_end(&c->arguments) < 0 ||
	    (!c->id && make_id(&c->id) < 0))
		return answer_too_large(why);
	call = json_pack("{s:s, s:s, s:s}", "id", c->id, "name", c->name,
			 "arguments",
			 is_empty(&c->arguments) ? "{}"
						 : c->arguments.text.data);
	/* NULL also where the id or the name is no UTF-8, held bytes aside. */
	return json_array_append_new(list, call) < 0 ? answer_too_large(why)
						     : 0;
}

static int list_calls(struct answer *a, json_t **ret, struct fault *why)
{
	json_t *list = json_array();

	if (!list)
		return answer_too_large(why);
	for (size_t i = 0; i < a->n_calls; i++) {
		int r = add_result(list, &a->calls[i], why);

		if (r < 0) {
			json_decref(list);
			return r;
		}
	}
	*ret = list;
	return 0;
}

/* What servers say of the end, seen beside what has come. */
static enum model_finish finish_of(const struct answer *a)
{
	if (a->is_refused)
		return FINISH_FILTER;
	if (a->n_calls &&
	    (a->finish == FINISH_STOP || a->finish == FINISH_UNKNOWN))
		return FINISH_CALLS;
	if (!a->n_calls && a->finish == FINISH_CALLS)
		return FINISH_STOP;
	return a->finish;
}

static int check_whole(const struct answer *a, struct fault *why)
{
	if (!a->is_done && !a->has_finish)
		return answer_nonsense(why, "was cut off before its end");
	if (a->content.text.len || a->thought.text.len || a->n_calls)
		return 0;
	/* Saying nothing and stopping is an answer, saying calls is none. */
	if (!a->has_finish || a->finish == FINISH_CALLS)
		return answer_nonsense(why, "has nothing in it");
	return 0;
}

/* Empty text is none, unless there must be some. */
static char *take_text(struct join *j, bool is_needed)
{
	if (j->text.len)
		return buf_take(&j->text);
	return is_needed ? strdup("") : NULL;
}

int answer_end(struct answer *a, struct model_result *ret, struct fault *why)
{
	struct model_result r = { 0 };

	if (check_whole(a, why) < 0)
		return -EPROTO;
	if (join_end(&a->content) < 0 || join_end(&a->thought) < 0)
		return answer_too_large(why);
	if (a->n_calls && list_calls(a, &r.calls, why) < 0)
		return -EPROTO;
	r.finish = finish_of(a);
	r.usage = a->usage;
	r.content = take_text(&a->content, !r.calls);
	r.thought = take_text(&a->thought, false);
	r.raw_id = take_ptr(a->id);
	r.model = take_ptr(a->model);
	if (!r.content && !r.calls) {
		result_done(&r);
		return answer_too_large(why);
	}
	*ret = r;
	return 0;
}
