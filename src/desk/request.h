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
 *
 * A command has programs, code has language and text (and may have one program
 * with its arguments), the others have a target. Strings as json_exact() does.
 *
 * request_content() is the identity of what a person says yes to: kind,
 * programs with all arguments, language, the whole text's hash, target, agent,
 * changes, and the rule with its file. Two requests with the same are the
 * same; a prefix or a pattern never is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

#define REQUEST_MAX      (2U << 20) /* of the document */
#define REQUEST_TEXT     (256U << 10)
#define REQUEST_PROGRAMS 256
#define REQUEST_WORDS    8192
#define REQUEST_EXPIRE   600000 /* ms, unless the request says */

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
};

/* 0, or -errno and *ret is empty. request_done() releases it. */
int request_parse(const char *text, size_t len, struct request *ret,
		  struct err *err);
void request_done(struct request *r);

/* As 64 hexadecimal digits. */
void request_content(const struct request *r, char ret[65]);

/* The document, as request_parse() reads it. */
void request_format(const struct request *r, struct buf *out);

const char *request_kind_name(enum request_kind kind);

/* For people; nothing in it steers a terminal. What, on one line. */
void request_summary(const struct request *r, struct buf *out);
/* All of it, over several lines; texts cut at `max` bytes. */
void request_show(const struct request *r, size_t max, struct buf *out);
