/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of an inspection share. An exchange is one request and its
 * answer; the next request is not looked at before the answer has ended.
 */

#include "gate/http.h"
#include "gate/inspect.h"
#include "gate/inspect-side.h"
#include "gate/secret.h"
#include "gate/websocket.h"

enum request_state {
	REQUEST_HEAD, /* to come */
	REQUEST_BODY, /* passed on as it comes */
	REQUEST_KEPT, /* kept: a field of it will be replaced */
	REQUEST_LEFT, /* of a kept body, bytes are left to send */
	REQUEST_DONE,
	REQUEST_SOCKET, /* frames of a WebSocket, from here on */
};

enum answer_state {
	ANSWER_NONE, /* nothing was asked */
	ANSWER_HEAD,
	ANSWER_BODY,
	ANSWER_WHOLE, /* its last bytes are on their way to the box */
	ANSWER_SOCKET,
};

struct inspection {
	struct inspection_hooks hooks;
	struct gate_event base;
	const struct gate_table *table;
	int rule;
	uint16_t port;
	char host[GATE_HOST_MAX];
	bool is_tls;
	uv_loop_t *loop;
	struct side box;
	struct side up;
	uv_timer_t timer;
	uv_idle_t idle;
	int n_handles;
	uint64_t n_moved;  /* bytes that were told */
	int64_t moved_at;  /* the last time anything moved */
	int64_t head_at;   /* the first byte of a head came; 0: none */
	int64_t closed_at; /* the last byte for the box was sent */
	int64_t paused_to; /* nothing is done before; 0: it goes on */
	bool is_closing;   /* what is left for the box is sent, no more */
	bool is_shut;      /* it was, and said */
	bool is_over;
	enum gate_reason why; /* it ended */
	bool is_refused;      /* by an event of its own, which says why */
	uint64_t n_drained;

	/* the exchange */
	uint64_t n_exchanges;
	enum request_state request;
	enum answer_state answer;
	struct http_head head;
	struct http_verdict verdict;
	struct gate_event event; /* of the request, until it is told */
	int64_t asked_at;
	uint64_t told_in; /* bytes of the box's side that records have so far */
	uint64_t told_out;
	bool is_told;
	bool is_bare;  /* HEAD */
	bool is_http0; /* HTTP/1.0 */
	bool is_last;  /* the connection ends with it */
	unsigned int n_interim;
	struct http_body sent;
	struct http_body got;
	enum http_framing put; /* the answer's, towards the box */
	struct secret_watch watch;
	struct secret_masks masks;
	struct buf kept; /* head and body, as the box sent them */
	size_t kept_head;
	struct buf whole; /* that body, with the value in it */
	size_t whole_at;
	size_t n_kept; /* bytes of both that were counted */

	/* a WebSocket */
	char accept[WS_ACCEPT_SIZE]; /* its server's word; empty: not asked */
	struct ws_frames frames_up, frames_down;
	struct secret_watch watch_control;
	bool is_up_shut; /* the box has ended, and upstream was told */
};

/* Whom its requests are for. */
static inline struct http_to inspect_to(const struct inspection *i)
{
	return (struct http_to){ .own = i->rule,
				 .host = i->host,
				 .address = i->base.address,
				 .port = i->port };
}

/* How long each side may take. Tests make it shorter. */
struct inspect_times {
	int head_ms;   /* hands, and a head once it began */
	int idle_ms;   /* between requests */
	int still_ms;  /* in an exchange, without any byte */
	int socket_ms; /* in a WebSocket, without any byte */
	int half_ms;   /* either, when the box has ended */
	int linger_ms; /* after the last byte */
	int tick_ms;   /* how often that is looked at */
};

extern struct inspect_times inspect_times;

/* Bytes of kept bodies, of all connections of a gate. */
extern size_t inspect_kept_max;

/* Each does what it can; true: something moved. */
bool inspect_request(struct inspection *i);
bool inspect_answer(struct inspection *i);
bool inspect_kept(struct inspection *i);
bool inspect_left(struct inspection *i);
bool inspect_socket_up(struct inspection *i);
bool inspect_socket_down(struct inspection *i);

/* A refusal: answered if nothing was yet, told, and often the end. */
struct inspect_no {
	unsigned int status;
	enum gate_reason reason;
	const char *detail; /* NULL: the reason says it */
	bool is_kept;       /* further requests may follow */
};

extern const struct inspect_no inspect_broken; /* a body */

void inspect_refuse(struct inspection *i, const struct inspect_no *no);
/* Whether the rules allow the head that was read; all but upstream. */
bool inspect_judge(struct inspection *i, struct inspect_no *ret);
/* Whether upstream can be written to; `ret`: why it never will be. */
bool inspect_reaches(struct inspection *i, struct inspect_no *ret);
/* Sends the head; false: refused. `whole`: the body, if it was kept. */
bool inspect_begin(struct inspection *i, const struct buf *whole);
/* From now on the body is kept; `data` has the head. */
bool inspect_keep(struct inspection *i, const char *data);
/* It is sent, or refused: wipes it. */
void inspect_forget_kept(struct inspection *i);
/* From now on it is a WebSocket. */
void inspect_socket(struct inspection *i, bool may_extend);
/* Its frames may be compressed: there are no secrets to be looked for. */
bool inspect_may_extend(const struct inspection *i);
/* Tells the event of this request, once. */
void inspect_tell(struct inspection *i, unsigned int status);
/* Sends what is left for the box, then ends. */
void inspect_close(struct inspection *i);
/* The answer has ended: the next request, or the end. */
void inspect_next(struct inspection *i);
/* Forgets what belongs to one exchange, and wipes it. */
void inspect_wipe(struct inspection *i);
