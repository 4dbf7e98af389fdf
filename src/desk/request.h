/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A request for a person's answer: what would be done, why it is asked, and
 * by which rule.
 *
 * It arrives as one JSON object (`cordon-desk approvals ask` reads it, the
 * store keeps it) with these keys and no others:
 *
 *	version    1
 *	kind       command, code, tool, connection, mount
 *	programs   [{"join": "", "argv": ["git", "push"]}, {"join": "&&", ...}]
 *	language   of the code
 *	text       of the code, or the arguments of a tool; may be cut
 *	bytes      the length of the whole text
 *	sha256     of the whole text
 *	target     a tool's name, HOST:PORT, "FROM -> TO MODE"
 *	agent      who asks, by name
 *	session    of the asker, where it has one of its own
 *	why        in words
 *	rule       the policy's, as it stands there
 *	file, line where it stands
 *	changes    what would change, a list of lines
 *	expire_ms  how long an answer is waited for
 *	ask        ["terminal", "store"]: who may be asked
 *	hide_text  1: the ledger is told that it was asked, not what
 *	run, box, face  of what waits for the answer, where a daemon asks or
 *	           an agent
 *	arguments  of a tool, as one JSON text; left out where it is large
 *	code       of a tool that runs code: of each block what it is, with its
 *	           hash, a list of lines
 *	class      of that code, if the policy lets a pattern hold for it
 *	told       so many of `changes`, the first, only repeat the arguments
 *	team, context, digest  whose call it is; the hash of the conversation
 *	           that led to it; that of tool, arguments and limits
 *	peer       the uid for whom it asks; the desk's own word, never the
 *	           asker's
 *	cut        1: of a request that ended the beginnings are kept; likewise
 *	           the desk's own word
 *
 * A command has programs, code has language and text (and may have one program
 * with its arguments), the others have a target. Strings as json_exact() does.
 *
 * request_content() is the identity of what a person says yes to: kind,
 * programs with all arguments, language, the whole text's hash, target, agent,
 * changes, the rule with its file, and the peer: an answer to one user of a
 * daemon is none to another. Two requests with the same are the same.
 *
 * request_frame() is what is left of a tool's call without its arguments: the
 * tool, agent, peer, limits, policy and rule, and whether it runs code and of
 * which class. A remembered pattern of arguments (pattern.h) is bound to that.
 * The wide one, for a no, has the tool, agent and peer alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

#define REQUEST_MAX       (2U << 20) /* of the document */
#define REQUEST_TEXT      (256U << 10)
#define REQUEST_PROGRAMS  256
#define REQUEST_WORDS     8192
#define REQUEST_ARGUMENTS (64U << 10)
#define REQUEST_EXPIRE    600000 /* ms, unless the request says */

enum request_kind {
	REQUEST_COMMAND,
	REQUEST_CODE,
	REQUEST_TOOL,
	REQUEST_CONNECTION,
	REQUEST_MOUNT,
	REQUEST_KINDS,
};

struct request_program {
	char *join; /* "", "|", "&&", "||", ";" */
	struct strv argv;
};

struct request {
	enum request_kind kind;
	struct request_program *programs;
	size_t n_programs;
	char *language;
	char *text;
	size_t text_len; /* of what is here; text_bytes of all */
	uint64_t text_bytes;
	char *sha256; /* NULL: no text */
	char *target;
	char *agent;
	char *session;
	char *why;
	char *rule;
	char *file;
	uint64_t line;
	struct strv changes;
	uint64_t expire_ms;
	bool may_terminal;
	bool may_store;
	uint64_t hide_text;
	char *run;
	char *box;
	char *face;
	char *arguments;
	struct strv code;
	char *class;
	uint64_t n_told;
	char *team;
	char *context;
	char *digest;
	bool has_peer;
	uint64_t peer;
	uint64_t is_cut; /* no longer what request_content() was of */
};

/* 0, or -errno and *ret is empty. request_done() releases it. */
int request_parse(const char *text, size_t len, struct request *ret,
		  struct err *err);
void request_done(struct request *r);

/* As 64 hexadecimal digits. */
void request_content(const struct request *r, char ret[65]);

void request_frame(const struct request *r, bool is_wide, char ret[65]);

/* The document, as request_parse() reads it. */
void request_format(const struct request *r, struct buf *out);

/* How the document of one that is cut begins. */
#define REQUEST_CUT "{\"version\":1,\"cut\":1,"
/* Leaves of each part its beginning: some KiB that tell what it was. */
void request_cut(struct request *r);

const char *request_kind_name(enum request_kind kind);

/* request-show.c: for people. What, on one line. */
void request_summary(const struct request *r, struct buf *out);
/* All of it, over several lines; texts cut at `max` bytes. */
void request_show(const struct request *r, size_t max, struct buf *out);
