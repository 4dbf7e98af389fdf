/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/kinds.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "ledger/read.h"

#define MEMBERS(name) static const struct kind_member name[]

#define RUN                                                                    \
	{                                                                      \
		"run", 's', true, "the run's id"                               \
	}
#define OF_RUN                                                                 \
	{                                                                      \
		"run", 's', false, "the run it belongs to"                     \
	}
#define AGENT                                                                  \
	{                                                                      \
		"agent", 's', false, "who asked"                               \
	}
#define DECISION                                                               \
	{                                                                      \
		"decision", 's', true, "allow, ask or deny"                    \
	}
#define RULE                                                                   \
	{                                                                      \
		"rule", 's', false, "which rule decided: file and line"        \
	}
#define REASON                                                                 \
	{                                                                      \
		"reason", 's', false, "why, in words"                          \
	}
#define POLICY                                                                 \
	{                                                                      \
		"policy", 'o', false, "file and sha256 of the policy"          \
	}
#define BOX                                                                    \
	{                                                                      \
		"box", 's', false, "the daemon's box that it was in"           \
	}
#define FACE                                                                   \
	{                                                                      \
		"face", 's', false, "how the daemon was asked: docker, cordon" \
	}
#define PEER                                                                   \
	{                                                                      \
		"peer", 'i', false, "the uid of who asked the daemon"          \
	}
#define STATUS                                                                 \
	{                                                                      \
		"status", 's', false, "how it ended"                           \
	}
#define DURATION                                                               \
	{                                                                      \
		"duration_ms", 'i', false, "how long it took"                  \
	}
#define NO_LAYERS                                                              \
	{                                                                      \
		"not_enforced", 'a', false, "layers that were missing"         \
	}
#define END                                                                    \
	{                                                                      \
		NULL, 0, false, NULL                                           \
	}

MEMBERS(run_start) = {
	RUN,
	BOX,
	FACE,
	PEER,
	{ "name", 's', false, "as given with --name" },
	AGENT,
	DECISION,
	RULE,
	REASON,
	{ "approval", 's', false, "the request that a person answered" },
	{ "approved_by", 's', false, "who said yes to it" },
	POLICY,
	{ "argv", 'a', false, "the program and its arguments, redacted" },
	{ "argc", 'i', false, "how many there were, if argv is cut" },
	{ "argv_sha256", 'h', false,
	  "of all, each with a NUL, if argv is cut or not UTF-8" },
	{ "code", 'a', false, "each block: lang, sha256, size, text if kept" },
	{ "env", 'o', false, "the box's environment, redacted" },
	{ "workdir", 's', false, "where the program starts" },
	{ "image", 's', false, "the root file system, with its digest" },
	{ "isolation", 's', false, "native, oci:NAME, docker or vm" },
	{ "mounts", 'a', false, "each: source, target, mode, size" },
	{ "network", 'o', true, "mode, and allow: hosts that can be reached" },
	{ "user", 'o', true, "uid and gid inside" },
	{ "limits", 'o', true, "what was in force" },
	{ "layers", 'a', true, "layers of the wall that were in force" },
	NO_LAYERS,
	END
};

MEMBERS(run_end) = {
	RUN,
	BOX,
	FACE,
	PEER,
	AGENT,
	STATUS,
	{ "cause", 's', true, "one of the causes of cordon-result(5)" },
	{ "exit_code", 'i', true, "the command's exit status" },
	{ "signal", 'i', false, "which one ended it" },
	{ "message", 's', false, "why it ended so" },
	{ "usage", 'o', true, "time, memory, processes, kernel events" },
	{ "stdout", 'o', false,
	  "bytes written; size and sha256 of those kept, and their text if the "
	  "policy keeps it" },
	{ "stderr", 'o', false, "the same" },
	{ "denials", 'a', false, "each: layer, what" },
	NO_LAYERS,
	END
};

MEMBERS(decision) = {
	OF_RUN,
	AGENT,
	{ "what", 's', true, "command, code, connect, tool, mount, limit" },
	{ "subject", 's', true, "the thing decided about, redacted" },
	DECISION,
	RULE,
	REASON,
	POLICY,
	END
};

MEMBERS(command) = { OF_RUN,
		     AGENT,
		     DECISION,
		     RULE,
		     REASON,
		     { "sha256", 'h', false, "of the string as it came" },
		     { "size", 'i', false, "of the string as it came" },
		     { "programs", 'a', true,
		       "each: argv as executed, and what joins it" },
		     END };

MEMBERS(approval_request) = {
	{ "approval", 's', true, "the request's id" },
	OF_RUN,
	BOX,
	FACE,
	PEER,
	AGENT,
	{ "what", 's', true, "command, code, tool, connect" },
	{ "subject", 's', true, "what is asked for, redacted" },
	{ "sha256", 'h', false, "of exactly what would be run" },
	RULE,
	REASON,
	{ "expires", 's', false, "when no answer becomes a denial" },
	END
};

MEMBERS(approval_answer) = { { "approval", 's', true, "the request's id" },
			     OF_RUN,
			     BOX,
			     FACE,
			     PEER,
			     AGENT,
			     { "decision", 's', true,
			       "allow, deny; withdraw: by who asked; revoke: "
			       "a rule was taken back" },
			     { "scope", 's', false, "once, session or always" },
			     { "pattern", 's', false,
			       "of the arguments that it holds for, redacted" },
			     { "expires", 's', false, "until when it holds" },
			     REASON,
			     { "by", 's', true,
			       "who answered: user, terminal, expiry" },
			     END };

MEMBERS(file) = { RUN,
		  AGENT,
		  { "path", 's', true, "in the box" },
		  { "host_path", 's', false, "outside" },
		  { "size", 'i', true, "in bytes" },
		  { "sha256", 'h', false, "of the content" },
		  END };

MEMBERS(connection) = {
	OF_RUN,
	BOX,
	AGENT,
	DECISION,
	RULE,
	REASON,
	{ "host", 's', true, "the name asked for" },
	{ "port", 'i', true, "the port asked for" },
	{ "address", 's', false, "what was connected to" },
	{ "protocol", 's', false, "tcp, tls, http, dns, udp, ip" },
	{ "count", 'i', false, "of tries that no gate saw; one otherwise" },
	{ "url", 's', false, "without query and credentials" },
	{ "method", 's', false, "of the HTTP request" },
	{ "path", 's', false, "of it, never its query" },
	{ "answer", 'i', false,
	  "the HTTP status; 403 with a code is the gate's" },
	{ "code", 's', false, "the reason, as one word" },
	{ "bytes_in", 'i', false, "received" },
	{ "bytes_out", 'i', false, "sent" },
	DURATION,
	END
};

MEMBERS(model_call) = { OF_RUN,
			{ "agent", 's', true, "who called" },
			{ "provider", 's', true, "whose model" },
			{ "model", 's', true, "which" },
			STATUS,
			{ "request", 'o', false, "sha256 and size" },
			{ "response", 'o', false, "sha256 and size" },
			{ "tokens_in", 'i', false, "as the provider counted" },
			{ "tokens_out", 'i', false, "as the provider counted" },
			DURATION,
			END };

MEMBERS(tool_call) = {
	OF_RUN,
	{ "agent", 's', true, "who called" },
	{ "tool", 's', true, "which" },
	{ "tool_kind", 's', false, "what it is, where that is not its name" },
	DECISION,
	RULE,
	REASON,
	{ "approval", 's', false, "the request that a person answered" },
	{ "approved_by", 's', false, "who said yes to it" },
	STATUS,
	{ "call", 's', false, "the model's id of the call" },
	{ "task", 's', false, "the agents' run that it was in" },
	{ "arguments", 'o', false, "sha256, size, text if kept" },
	{ "result", 'o', false, "sha256 and size" },
	{ "images", 'a', false, "of its result: each mime, sha256, size" },
	DURATION,
	END
};

MEMBERS(message_filter) = {
	OF_RUN,
	{ "agent", 's', false, "who sent it" },
	{ "to", 's', false, "to whom, or on which topic" },
	DECISION,
	{ "what", 's', true, "strip, mask or reject" },
	{ "subject", 's', true, "the type of the message" },
	{ "found", 'o', true, "how many secrets, host_paths, urls, regex" },
	RULE,
	REASON,
	POLICY,
	{ "before", 'o', true, "sha256 and size of the message as it came" },
	{ "after", 'o', false, "the same as it was passed on" },
	END
};

MEMBERS(seal) = { { "epoch", 'i', true,
		    "which key signed; one more with each seal" },
		  { "from", 'i', true, "the first record under it" },
		  { "to", 'i', true, "the last record under it" },
		  { "root", 'h', true, "RFC 6962 tree hash of those records" },
		  { "head", 'h', true, "leaf hash of the last of them" },
		  { "key", 'h', true, "the public key that checks it" },
		  { "next", 'h', true, "the public key of the next epoch" },
		  { "signature", 's', true, "Ed25519, 128 hex digits" },
		  END };

MEMBERS(recovery) = {
	{ "file", 's', true, "which file" },
	{ "offset", 'i', true, "where it was cut" },
	{ "bytes", 'i', true, "how much was cut" },
	{ "sha256", 'h', false, "of what was cut" },
	{ "lost", 'i', false, "records gone that were never synced" },
	{ "rewritten", 'i', false, "bytes written again after a failed sync" },
	{ "reason", 's', true, "in words" },
	END
};

const struct kind kinds[] = {
	{ "run.start", "a program is about to be started", run_start },
	{ "run.end", "how a run ended", run_end },
	{ "decision", "the policy decided about something", decision },
	{ "command", "a command line was classified", command },
	{ "approval.request", "a person was asked", approval_request },
	{ "approval.answer", "a person answered, or nobody did",
	  approval_answer },
	{ "file.in", "a file was copied into a box", file },
	{ "file.out", "a file was copied out of a box", file },
	{ "connection", "a box connected, or was refused to", connection },
	{ "model.call", "an agent called a model", model_call },
	{ "tool.call", "an agent called a tool", tool_call },
	{ "message.filter", "a filter changed or refused a message",
	  message_filter },
	{ "seal", "the records up to one were signed", seal },
	{ "recovery", "a torn end was cut", recovery },
};
const size_t n_kinds = ARRAY_SIZE(kinds);

const struct kind *kind_find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == len &&
		    memcmp(kinds[i].name, name, len) == 0)
			return &kinds[i];
	return NULL;
}

static bool is_hash(const struct value *v)
{
	if (value_type(v) != '"' || v->len != 66)
		return false;
	for (size_t i = 1; i < 65; i++)
		if (!strchr("0123456789abcdef", v->p[i]))
			return false;
	return true;
}

static bool has_type(const struct value *v, char type)
{
	static const char want[] = "s\"i0o{a[";
	const char *at;

	if (type == 'h')
		return is_hash(v);
	if (type == 'b')
		return value_type(v) == 't' || value_type(v) == 'f';
	if (type == 'i' && memchr(v->p, '.', v->len))
		return false;
	at = strchr(want, type);
	return at && value_type(v) == at[1];
}

/* The place of a name in the kind's list, -1 if it is not there. */
static int place_of(const struct kind *k, const struct value *name)
{
	for (int i = 0; k->members[i].name; i++)
		if (value_is(name, k->members[i].name))
			return i;
	return -1;
}

int kind_check(const char *kind, const char *members, size_t len,
	       struct err *err)
{
	const struct kind *k = kind_find(kind, strlen(kind));
	struct value object = { members, len };
	struct value name;
	struct value v;
	uint64_t seen = 0;

	if (!k)
		return err_set(err, EINVAL, "'%s' is no kind of record", kind);
	if (value_type(&object) != '{' || !value_check(members, len))
		return err_set(err, EINVAL,
			       "record '%s': the members are not one JSON "
			       "object without raw control bytes",
			       kind);
	for (struct walk w = walk_start(&object); walk_next(&w, &name, &v);) {
		int i = place_of(k, &name);

		if (i < 0 || (seen & 1ULL << i) ||
		    !has_type(&v, k->members[i].type))
			return err_set(err, EINVAL,
				       "record '%s': member %.*s is unknown, "
				       "twice there or of another type",
				       kind, (int)MIN(name.len, 60U), name.p);
		seen |= 1ULL << i;
	}
	for (int i = 0; k->members[i].name; i++)
		if (k->members[i].is_required && !(seen & 1ULL << i))
			return err_set(err, EINVAL,
				       "record '%s': member '%s' is missing",
				       kind, k->members[i].name);
	return 0;
}
