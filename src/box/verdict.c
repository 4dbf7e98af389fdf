/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From facts to one cause.
 *
 * What ended the run from outside comes first. Otherwise the program ended by
 * itself: with 0 it is a success, whatever limit it touched; else the limit
 * that the kernel's counters show is the cause; else its own exit or signal.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/util.h"
#include "box/result.h"

static const struct {
	const char *name;
	const char *status;
} causes[] = {
	[CAUSE_EXITED] = { "exited", NULL /* by the exit code */ },
	[CAUSE_SIGNAL] = { "signal", "error" },
	[CAUSE_TIMEOUT] = { "timeout", "timeout" },
	[CAUSE_CPU] = { "cpu", "resource_exceeded" },
	[CAUSE_MEMORY] = { "memory", "resource_exceeded" },
	[CAUSE_PIDS] = { "pids", "resource_exceeded" },
	[CAUSE_DISK] = { "disk", "resource_exceeded" },
	[CAUSE_OUTPUT] = { "output", "resource_exceeded" },
	[CAUSE_CANCELLED] = { "cancelled", "error" },
	[CAUSE_DENIED] = { "denied", "error" },
	[CAUSE_NOT_FOUND] = { "not_found", "error" },
	[CAUSE_INVALID] = { "invalid", "error" },
	[CAUSE_SETUP] = { "setup", "error" },
	[CAUSE_LOST] = { "lost", "error" },
};
_Static_assert(ARRAY_SIZE(causes) == CAUSES, "a row for each cause");

const char *cause_name(enum cause cause)
{
	return causes[cause].name;
}

enum cause cause_parse(const char *name)
{
	size_t i = 0;

	while (i < CAUSES && strcmp(causes[i].name, name) != 0)
		i++;
	return (enum cause)i;
}

const char *verdict_status(const struct verdict *v)
{
	if (causes[v->cause].status)
		return causes[v->cause].status;
	return v->exit_code == 0 ? "success" : "error";
}

/* The program could not be started. */
static struct verdict not_started(const struct wire_outcome *o)
{
	struct verdict v = { CAUSE_NOT_FOUND, 127, 0 };

	if (o->exec_errno == EACCES || o->exec_errno == ENOEXEC ||
	    o->exec_errno == EISDIR || o->exec_errno == EPERM)
		v.exit_code = 126;
	else if (o->exec_errno == EAGAIN)
		v = (struct verdict){ CAUSE_PIDS, 137, 0 };
	else if (o->exec_errno == ENOMEM)
		v = (struct verdict){ CAUSE_MEMORY, 137, 0 };
	else if (o->exec_errno != ENOENT && o->exec_errno != ENOTDIR)
		v = (struct verdict){ CAUSE_INVALID, 125, 0 };
	return v;
}

/* It ended by itself, or by a signal that Cordon did not send. */
static struct verdict ended(const struct wire_outcome *o)
{
	int status = o->wait_status;
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	int code = sig ? 128 + sig : WEXITSTATUS(status);
	struct verdict v = { CAUSE_EXITED, code, sig };

	if (code == 0)
		return v;
	if (o->oom_kills > 0)
		v.cause = CAUSE_MEMORY;
	else if (o->pids_refused > 0)
		v.cause = CAUSE_PIDS;
	else if (sig == SIGXFSZ || o->disk_full)
		v.cause = CAUSE_DISK;
	else if (sig)
		v.cause = CAUSE_SIGNAL;
	if (sig && v.cause != CAUSE_SIGNAL) {
		v.exit_code = 137;
		v.signal = sig;
	}
	return v;
}

/*
 * The box could not be built; or it stands, and the request's own file could
 * not be put where it said: there is no room, or what ran before, or what is
 * mounted there, does not let it.
 */
static struct verdict not_built(const struct err *why)
{
	static const struct {
		int code;
		struct verdict verdict;
	} files[] = {
		{ ENOSPC, { CAUSE_DISK, 137, 0 } },
		{ EDQUOT, { CAUSE_DISK, 137, 0 } },
		{ EFBIG, { CAUSE_DISK, 137, 0 } },
		{ EPERM, { CAUSE_DENIED, 126, 0 } },
		{ EACCES, { CAUSE_DENIED, 126, 0 } },
		{ EROFS, { CAUSE_DENIED, 126, 0 } },
		{ EEXIST, { CAUSE_DENIED, 126, 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i].code == why->code &&
		    strcmp(why->stage, "files") == 0)
			return files[i].verdict;
	return (struct verdict){ CAUSE_SETUP, 125, 0 };
}

struct verdict verdict_of(const struct wire_outcome *o)
{
	if (o->err.code)
		return not_built(&o->err);
	switch ((enum wire_end)o->end) {
	case WIRE_BY_TIMEOUT:
	case WIRE_BY_TOTAL:
		/* Still full of processes at its deadline: a fork bomb. */
		if (o->pids_full && o->pids_refused > 0)
			return (struct verdict){ CAUSE_PIDS, 137, SIGKILL };
		return (struct verdict){ CAUSE_TIMEOUT, 124, 0 };
	case WIRE_BY_CPU:
		return (struct verdict){ CAUSE_CPU, 137, SIGKILL };
	case WIRE_BY_CANCEL:
		return (struct verdict){ CAUSE_CANCELLED, 130, 0 };
	case WIRE_BY_FLOOD:
		return (struct verdict){ CAUSE_OUTPUT, 137, SIGKILL };
	case WIRE_BY_LOSS:
		/* init itself was killed: by the kernel for memory, or not */
		if (o->oom_kills > 0)
			return (struct verdict){ CAUSE_MEMORY, 137, SIGKILL };
		return (struct verdict){ CAUSE_LOST, 125, 0 };
	case WIRE_BY_ITSELF:
		break;
	}
	return o->exec_errno ? not_started(o) : ended(o);
}
