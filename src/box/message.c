/* SPDX-License-Identifier: Apache-2.0 */
#include "box/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"

static void put_time(struct buf *b, uint64_t us)
{
	if (us % 1000000 == 0)
		buf_printf(b, "%" PRIu64 " s", us / 1000000);
	else
		buf_printf(b, "%" PRIu64 " ms", us / 1000);
}

static void put_size(struct buf *b, uint64_t bytes)
{
	if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
		buf_printf(b, "%" PRIu64 " MiB", bytes >> 20);
	else
		buf_printf(b, "%" PRIu64 " bytes", bytes);
}

static const char *program(const struct run *run, const struct cordon_spec *s)
{
	if (s->command.n > 0)
		return s->command.v[0];
	if (run->outcome.step < s->n_line)
		return s->line[run->outcome.step].argv.v[0];
	return run->code_file ? run->code_file : "the program";
}

static void not_found(struct buf *b, const struct run *run,
		      const struct cordon_spec *s)
{
	if (run->verdict.exit_code == 126)
		buf_printf(b, "'%.400s' was found and cannot be executed: %s",
			   program(run, s), strerror(run->outcome.exec_errno));
	else
		buf_printf(b,
			   "'%.300s' was not found in the box; its root is "
			   "this machine's /usr, and PATH is the box's own",
			   program(run, s));
}

static void limit(struct buf *b, const struct run *run,
		  const struct cordon_spec *s)
{
	bool total = run->outcome.end == WIRE_BY_TOTAL;

	switch (run->verdict.cause) {
	case CAUSE_TIMEOUT:
		buf_puts(b, "ended after ");
		put_time(b, total ? spec_total_us(s) : s->timeout_us);
		buf_printf(b, " (--%s raises it)",
			   total ? "total-timeout" : "timeout");
		break;
	case CAUSE_CPU:
		buf_puts(b, "ended after ");
		put_time(b, s->cpu_time_us);
		buf_puts(b, " of CPU time (--cpu-time raises it)");
		break;
	case CAUSE_MEMORY:
		buf_puts(b, "needed more than ");
		put_size(b, s->memory);
		buf_puts(b, " of memory (--memory raises it)");
		break;
	case CAUSE_PIDS:
		buf_printf(b,
			   "wanted more than %" PRIu64
			   " processes (--pids-limit raises it)",
			   s->pids);
		break;
	case CAUSE_DISK:
		if (run->outcome.err.code)
			buf_printf(b, "%s: ", run->outcome.err.text);
		buf_puts(b, "a writable place was full (--disk for "
			    "/workspace, --tmpfs for others), or a file too "
			    "large (--file-size)");
		break;
	case CAUSE_OUTPUT:
		buf_puts(b, "wrote more than ");
		put_size(b, s->hard_output);
		buf_puts(b, " (--hard-output raises it)");
		break;
	default:
		break;
	}
}

/* Its compiler builds the standard library first, which the usual box is too
 * small for. */
static void hint(struct buf *b, const struct run *run)
{
	enum cause cause = run->verdict.cause;
	size_t len = run->code_file ? strlen(run->code_file) : 0;

	if (len > 3 && strcmp(run->code_file + len - 3, ".go") == 0 &&
	    (cause == CAUSE_TIMEOUT || cause == CAUSE_MEMORY ||
	     cause == CAUSE_DISK))
		buf_puts(b, "; go needs about --memory 512m --tmpfs "
			    "/tmp:size=256m --cpus 2 --timeout 2m");
}

char *message_of(const struct run *run, const struct cordon_spec *s,
		 const char *cancel_reason)
{
	const struct wire_outcome *o = &run->outcome;
	struct buf b;

	buf_init(&b, 2048);
	switch (run->verdict.cause) {
	case CAUSE_EXITED:
		return NULL;
	case CAUSE_SIGNAL:
		buf_printf(&b, "ended by signal %d (%s)", run->verdict.signal,
			   strsignal(run->verdict.signal));
		break;
	case CAUSE_CANCELLED:
		buf_printf(&b, "%.400s",
			   cancel_reason ? cancel_reason : "by the caller");
		break;
	case CAUSE_NOT_FOUND:
		not_found(&b, run, s);
		break;
	case CAUSE_LOST:
		buf_puts(&b, "the box's end was not seen: its keeper or its "
			     "init was killed");
		break;
	case CAUSE_SETUP:
		buf_printf(&b, "the box could not be built, in stage '%s': %s",
			   o->err.stage, o->err.text);
		if (o->err.code == EFBIG)
			buf_puts(&b, MESSAGE_FILE_SIZE);
		break;
	case CAUSE_DENIED:
		buf_printf(&b, "%s", o->err.text);
		break;
	case CAUSE_INVALID:
		buf_printf(&b, "'%.300s' cannot be started: %s",
			   program(run, s), strerror(o->exec_errno));
		break;
	default:
		limit(&b, run, s);
		hint(&b, run);
		break;
	}
	return buf_take(&b);
}

/* `block` from 1; 0: there is only one. */
static bool truncated(const struct stream *s, size_t block, const char *name,
		      struct strv *warnings)
{
	char which[40] = "";
	char line[240];

	if (s->missing == 0)
		return false;
	if (block)
		(void)snprintf(which, sizeof(which), "block %zu: ", block);
	(void)snprintf(line, sizeof(line),
		       "%s%s: %" PRIu64 " of %" PRIu64
		       " bytes are missing after byte %zu (--output-limit)",
		       which, name, s->missing, s->total, s->cut);
	(void)strv_add(warnings, line);
	return true;
}

void message_truncation(const struct cordon_result *r, struct strv *warnings)
{
	bool is_told = false;

	for (size_t i = 0; i < r->n_runs; i++) {
		size_t block = r->n_runs > 1 ? i + 1 : 0;
		const struct run *run = &r->runs[i];

		is_told |= truncated(&run->out, block, "stdout", warnings);
		is_told |= truncated(&run->err, block, "stderr", warnings);
	}
	/* Both together can be too much where none of them is. */
	if (r->has_output && !is_told)
		(void)truncated(&r->output, 0, "output", warnings);
}
