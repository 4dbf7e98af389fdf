/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Conditions that Cordon adds, and functions of the program that are known by
 * their names: a configuration never holds code.
 */

#include "agent/termination.h"

#include <string.h>

#include "agent/named.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/util.h"

#define MAX_SOURCES 1024

/* --- functions of the program, known by their names --- */

static struct named functions[NAMED_MAX];

bool termination_has_function(const char *name)
{
	return named_find(functions, name);
}

int termination_register(const char *name, termination_fn *fn, void *own,
			 struct err *err)
{
	return named_add(functions, name, (named_fn *)fn, own, err);
}

bool termination_function(struct termination *t, const struct stop_facts *f,
			  struct buf *why, struct fault *bad)
{
	const struct named *fn = named_find(functions, text_arg(t, "name"));

	if (!fn || !((termination_fn *)fn->fn)(fn->arg, f->fresh, bad))
		return false;
	(void)buf_puts(why, "Functional termination condition met");
	return true;
}

/* --- Cordon's own; what they look at is counted by the team --- */

bool termination_cost(struct termination *t, const struct stop_facts *f,
		      struct buf *why, struct fault *bad)
{
	double max = json_number_value(arg(t, "max"));

	(void)bad;
	if (f->cost < max)
		return false;
	(void)buf_printf(why, "Cost limit reached: $%.4f of $%g", f->cost, max);
	return true;
}

bool termination_errors(struct termination *t, const struct stop_facts *f,
			struct buf *why, struct fault *bad)
{
	(void)bad;
	if (f->errors < count_arg(t, "n"))
		return false;
	(void)buf_printf(why, "Error limit reached: %lld",
			 (long long)count_arg(t, "n"));
	return true;
}

bool termination_tool_calls(struct termination *t, const struct stop_facts *f,
			    struct buf *why, struct fault *bad)
{
	(void)bad;
	if (f->tool_calls < count_arg(t, "n"))
		return false;
	(void)buf_printf(why, "Tool call limit reached: %lld",
			 (long long)count_arg(t, "n"));
	return true;
}

bool termination_resource(struct termination *t, const struct stop_facts *f,
			  struct buf *why, struct fault *bad)
{
	const json_t *cpu = arg(t, "cpu");
	const json_t *memory = arg(t, "memory");
	double mib = 1 << 20;

	(void)bad;
	if (cpu && (double)f->box_cpu_ms >= json_number_value(cpu) * 1e3)
		(void)buf_printf(why,
				 "Resource limit reached: cpu %.1f s of %g s",
				 (double)f->box_cpu_ms / 1e3,
				 json_number_value(cpu));
	else if (memory && f->box_memory >= json_integer_value(memory))
		(void)buf_printf(why,
				 "Resource limit reached: memory %.1f MiB of "
				 "%.1f MiB",
				 (double)f->box_memory / mib,
				 (double)json_integer_value(memory) / mib);
	return why->len > 0;
}

/* What makes two messages equal; not who sent them, nor when. */
static bool digest(const json_t *m, char ret[2 * SHA256_SIZE + 1])
{
	_cleanup_free_ char *said = chat_to_text(m);
	unsigned char sum[SHA256_SIZE];
	struct sha256 s;

	if (!said)
		return false;
	sha256_init(&s);
	sha256_add(&s, said, strlen(said));
	sha256_end(&s, sum);
	hex_format(sum, sizeof(sum), ret);
	return true;
}

/* How often this source has now said that, one time after the other. */
static int64_t repeats(struct termination *t, const json_t *m)
{
	char now[2 * SHA256_SIZE + 1];
	const json_t *last = json_object_get(t->seen, source_of(m));
	const char *was = json_string_value(json_object_get(last, "digest"));
	int64_t n = 1;

	if (!digest(m, now))
		return 0;
	if (was && strcmp(was, now) == 0)
		n += json_integer_value(json_object_get(last, "count"));
	if (!last && json_object_size(t->seen) >= MAX_SOURCES)
		json_object_clear(t->seen);
	(void)json_object_set_new(t->seen, source_of(m),
				  json_pack("{s:s, s:I}", "digest", now,
					    "count", (json_int_t)n));
	return n;
}

/* Each source by itself: two agents in a loop say two things in turn. */
bool termination_loop(struct termination *t, const struct stop_facts *f,
		      struct buf *why, struct fault *bad)
{
	int64_t n = count_arg(t, "n");
	size_t i;
	json_t *m;

	if (!t->seen)
		t->seen = json_object();
	if (!t->seen)
		fault_set(bad, FAULT_INTERNAL, "out of memory");
	json_array_foreach((json_t *)f->fresh, i, m)
	{
		if (f->is_task || !chat_is_message(m) || repeats(t, m) < n)
			continue;
		(void)buf_printf(why,
				 "Loop detected: %lld equal messages from '%s'",
				 (long long)n, source_of(m));
		return true;
	}
	return false;
}
