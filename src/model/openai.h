/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Chat completions as OpenAI has them, and as Ollama, vLLM, llama.cpp and
 * others have taken them over, each a little otherwise. Writing requests and
 * reading answers are pure; openai.c has the connection.
 */

#include "model/join.h"
#include "model/provider.h"

/* What an answer may hold at most. */
#define ANSWER_MAX   ((size_t)16 << 20)
#define ANSWER_CALLS 128

/* --- openai-write.c --- */

struct openai_form {
	const char *model;
	const struct model_info *info;
	const json_t *settings; /* temperature ... put in as they are */
	bool has_names;         /* who speaks, as `name` of user messages */
	bool has_stream_usage;  /* ask for the usage of a stream */
};

/* The request's body, to be freed; NULL with *why. */
char *openai_body(const struct openai_form *form, const struct model_request *q,
		  struct fault *why);

/* --- openai-read.c --- */

struct answer_call {
	int64_t index; /* -1: it has none */
	char *id, *name;
	struct join arguments;
};

/*
 * An answer as it comes. `chunk` is told its text; may be NULL. Each function
 * returns 0, or -errno with *why, after which the answer is of no more use.
 */
struct answer {
	struct join content, thought;
	struct answer_call *calls;
	size_t n_calls;
	enum model_finish finish;
	bool has_finish;  /* the server said how it ended */
	bool is_done;     /* [DONE] has come */
	bool is_refused;  /* it is a refusal */
	bool has_message; /* of a document that is no stream */
	bool has_usage;
	struct model_usage usage;
	char *id, *model;
	void (*chunk)(void *arg, bool is_thought, const char *text, size_t len);
	void *arg;
};

void answer_init(struct answer *a,
		 void (*chunk)(void *arg, bool is_thought, const char *text,
			       size_t len),
		 void *arg);
void answer_done(struct answer *a);
/* The data of one event of a stream. */
int answer_event(struct answer *a, const char *data, size_t len,
		 struct fault *why);
/* A whole answer that was not streamed. */
int answer_document(struct answer *a, const char *data, size_t len,
		    struct fault *why);
/*
 * All has come that will. What is no whole answer is a fault here: one that
 * was cut is never taken for a short one.
 */
int answer_end(struct answer *a, struct model_result *ret, struct fault *why);

/*
 * What a server says is wrong, from the body of its answer, in *why: `code` is
 * that of the status, unless the body knows better.
 */
void answer_error(const char *body, size_t len, enum fault_code code,
		  struct fault *why);

/* --- openai-end.c, also for its neighbour --- */

/* Both say it in *why and return -errno. */
int answer_too_large(struct fault *why);
int answer_nonsense(struct fault *why, const char *what);

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
