/* SPDX-License-Identifier: Apache-2.0 */

/* From the box to upstream: a request is read, judged, written anew. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/util.h"
#include "gate/inspect-parts.h"
#include "gate/trust.h"

/* Room that an answer of ours needs. */
#define ANSWER_ROOM 24576
/* Room that ends of bodies need. */
#define END_ROOM (2 * HTTP_CHUNK_EXTRA)

const struct inspect_no inspect_broken = {
	.status = 400,
	.reason = GATE_R_HTTP,
	.detail = "a body that is not framed as it should",
};

/* judging */

static void copy_slice(char *ret, size_t size, struct http_slice s)
{
	size_t n = MIN(s.len, size - 1);

	if (n > 0)
		memcpy(ret, s.at, n);
	ret[n] = '\0';
}

static void note_request(struct inspection *i)
{
	const struct http_head *h = &i->head;
	struct gate_event *e = &i->event;

	*e = i->base;
	e->kind = GATE_E_REQUEST;
	e->reason = GATE_OK;
	e->rule = i->verdict.rule;
	copy_slice(e->method, sizeof(e->method), http_judged_method(h));
	copy_slice(e->path, sizeof(e->path), h->path);
	e->detail[0] = '\0';
	i->is_told = false;
	i->asked_at = clock_us();
	i->is_bare = http_is(&h->method, "HEAD");
	i->is_http0 = h->minor == 0;
}

static bool refuse_head(struct inspection *i, int r)
{
	struct inspect_no no = { .status = 400, .reason = GATE_R_HTTP };

	no.detail = i->head.wrong;
	if (r == -E2BIG) {
		no.status = 431;
		no.detail = "the request's head is larger than 64 KiB, or has "
			    "more than 128 lines";
	}
	i->verdict.rule = i->rule;
	/* What could be read of it is still of use to people. */
	note_request(i);
	inspect_refuse(i, &no);
	return true;
}

/*
 * A rule for addresses that says nothing about requests: they are read for
 * placeholders alone, and a server there may have any name. What other rules
 * have is for the address itself.
 */
static bool may_have_any_host(struct inspection *i)
{
	int first = -1;

	for (int k = (int)i->table->n_rules - 1; k >= 0; k--) {
		const struct gate_rule *r = &i->table->rules[k];

		if (i->verdict.applies[k] && r->kind == GATE_ADDRESS &&
		    !(r->flags & GATE_RULE_INSPECT))
			first = k;
	}
	if (first < 0 || i->head.authority.at)
		return false;
	for (int k = 0; k < (int)i->table->n_rules; k++)
		if (i->table->rules[k].flags & GATE_RULE_INSPECT)
			i->verdict.applies[k] = false;
	i->verdict.rule = first;
	return true;
}

static bool check_host(struct inspection *i, struct inspect_no *no)
{
	*no = (struct inspect_no){ .status = 400 };
	no->reason = http_check_host(&i->head, i->host, i->port, i->is_tls);
	if (no->reason == GATE_R_HTTP_HOST && may_have_any_host(i))
		no->reason = GATE_OK;
	if (no->reason == GATE_R_HTTP)
		no->detail = "no Host, or two of them";
	else if (!i->head.authority.at)
		no->status = 403;
	/* A target and a Host that differ can be read in two ways: 400. */
	return no->reason == GATE_OK;
}

static bool has_secret(const struct inspection *i)
{
	for (int k = 0; k < (int)i->table->n_rules && k < GATE_MAX_RULES; k++)
		if (i->verdict.applies[k] && i->table->rules[k].placeholder)
			return true;
	return false;
}

/* It was reached on this machine: what is sent never leaves it. */
static bool is_local(const uint8_t a[16])
{
	static const uint8_t mapped[13] = { [10] = 0xff, 0xff, 127 };
	static const uint8_t six[16] = { [15] = 1 };

	return memcmp(a, mapped, sizeof(mapped)) == 0 ||
	       memcmp(a, six, sizeof(six)) == 0;
}

/*
 * Rules are for port 443 unless they say otherwise; who names port 80 means
 * plain HTTP. Of any other port it is not known what was meant.
 */
static bool is_in_clear(const struct inspection *i)
{
	return !i->is_tls && i->port != 80 && !is_local(i->base.address);
}

static bool check_protocol(const struct inspection *i, struct inspect_no *no)
{
	char accept[WS_ACCEPT_SIZE];

	*no = (struct inspect_no){ .status = 403, .reason = GATE_R_HTTP };
	if (i->head.is_upgrade) {
		no->detail = "another protocol is asked for, which cannot be "
			     "looked into";
		return false;
	}
	if (i->head.is_socket && !ws_is_asked(&i->head, accept)) {
		no->status = 400;
		no->detail = "a WebSocket that is not asked for as RFC 6455 "
			     "has it";
		return false;
	}
	no->reason = GATE_R_CLEAR;
	return !is_in_clear(i) || !has_secret(i);
}

static bool check_secrets(struct inspection *i, struct inspect_no *no)
{
	static char detail[128];
	struct secret_fault fault;

	secret_check_head(i->table, i->verdict.applies, &i->head, &fault);
	if (fault.reason == GATE_OK)
		return true;
	(void)snprintf(detail, sizeof(detail), "%s may not stand in %s",
		       fault.name ? fault.name : "a placeholder", fault.where);
	*no = (struct inspect_no){ .status = 403,
				   .reason = fault.reason,
				   .detail = detail };
	return false;
}

/* What the server would get has a placeholder where it wants a value. */
static bool check_coding(const struct inspection *i, struct inspect_no *no)
{
	if (!secret_hides_body(i->table, i->verdict.applies, &i->head))
		return true;
	*no = (struct inspect_no){
		.status = 415,
		.reason = GATE_R_HTTP,
		.detail = "a body that may have a secret's field cannot be "
			  "compressed",
	};
	return false;
}

bool inspect_judge(struct inspection *i, struct inspect_no *no)
{
	const struct http_to to = inspect_to(i);

	http_judge(i->table, &to, &i->head, &i->verdict);
	if (!check_host(i, no) || !check_protocol(i, no))
		return false;
	*no = (struct inspect_no){ .status = 403,
				   .reason = i->verdict.reason,
				   .is_kept = true };
	if (no->reason != GATE_OK)
		return false;
	return check_secrets(i, no) && check_coding(i, no);
}

bool inspect_reaches(struct inspection *i, struct inspect_no *no)
{
	const char *complaint;

	*no = (struct inspect_no){ .status = 502, .reason = GATE_OK };
	if (i->up.is_ready && !i->up.is_broken && !i->up.is_ended)
		return true;
	if (!i->up.is_broken && !i->up.is_ended)
		return false;
	complaint = i->up.ssl && !i->up.is_ready ? trust_complaint(i->up.ssl)
						 : NULL;
	no->reason = complaint ? GATE_R_CERTIFICATE : GATE_R_RESET;
	no->detail = complaint ? complaint
			       : "the server broke the connection off";
	return false;
}

/* writing */

static void put_host(struct inspection *i, struct buf *out)
{
	const struct http_field *f = http_find(&i->head, "host");
	bool is_six = strchr(i->host, ':') != NULL;

	(void)buf_puts(out, "Host: ");
	if (f)
		(void)buf_add(out, f->value.at, f->value.len);
	else
		(void)buf_printf(out, "%s%s%s:%u", is_six ? "[" : "", i->host,
				 is_six ? "]" : "", (unsigned int)i->port);
	(void)buf_puts(out, "\r\n");
}

static void put_framing(const struct http_head *h, const struct buf *whole,
			struct buf *out)
{
	if (whole)
		(void)buf_printf(out, "Content-Length: %zu\r\n", whole->len);
	else if (h->framing == HTTP_CHUNKED)
		(void)buf_puts(out, "Transfer-Encoding: chunked\r\n");
	else if (h->framing == HTTP_LENGTH)
		(void)buf_printf(out, "Content-Length: %llu\r\n",
				 (unsigned long long)h->length);
	if (h->is_socket)
		(void)buf_puts(out, "Connection: Upgrade\r\n"
				    "Upgrade: websocket\r\n");
	else if (h->is_close)
		(void)buf_puts(out, "Connection: close\r\n");
	else if (h->minor == 0)
		(void)buf_puts(out, "Connection: keep-alive\r\n");
}

/* An answer that is compressed, or a part of one, cannot be covered. */
static bool hides_values(const struct http_slice *name)
{
	return http_is(name, "accept-encoding") || http_is(name, "range") ||
	       http_is(name, "if-range");
}

static bool is_left_out(const struct inspection *i, const struct buf *whole,
			const struct http_slice *name)
{
	return http_is_ours(name) || (whole && http_is(name, "expect")) ||
	       (i->masks.n > 0 && hides_values(name)) ||
	       (http_is(name, "sec-websocket-extensions") &&
		!inspect_may_extend(i));
}

/* `whole`: the body, if it was kept; nobody waits for it any more then. */
static void put_head(struct inspection *i, const struct buf *whole)
{
	const struct http_head *h = &i->head;
	const bool *applies = i->verdict.applies;
	struct buf *out = &i->up.out;
	bool found;

	(void)buf_add(out, h->method.at, h->method.len);
	(void)buf_puts(out, " ");
	found = secret_put_target(i->table, applies, h, out);
	(void)buf_printf(out, " HTTP/1.%u\r\n", h->minor);
	put_host(i, out);
	for (size_t k = 0; k < h->n_fields; k++) {
		const struct http_field *f = &h->fields[k];

		if (is_left_out(i, whole, &f->name))
			continue;
		(void)buf_add(out, f->name.at, f->name.len);
		(void)buf_puts(out, ": ");
		found |= secret_put_value(i->table, applies, f, out);
		(void)buf_puts(out, "\r\n");
	}
	found |= secret_put_missing(i->table, applies, h, out);
	if (i->masks.n > 0)
		(void)buf_puts(out, "Accept-Encoding: identity\r\n");
	put_framing(h, whole, out);
	(void)buf_puts(out, "\r\n");
	i->up.has_secret |= found || whole != NULL;
}

bool inspect_begin(struct inspection *i, const struct buf *whole)
{
	static const struct inspect_no too_much = {
		.status = 431,
		.reason = GATE_R_HTTP,
		.detail = "with secrets the head is too large",
	};
	const struct http_to to = inspect_to(i);
	bool sent[GATE_MAX_RULES];
	int r;

	http_sent(i->table, &to, sent);
	r = secret_masks_init(&i->masks, i->table, sent, &i->head);
	if (r == 0)
		put_head(i, whole);
	if (r < 0 || i->up.out.error) {
		i->up.has_secret = true;
		side_forget(&i->up);
		inspect_refuse(i, &too_much);
		return false;
	}
	(void)ws_is_asked(&i->head, i->accept);
	i->answer = ANSWER_HEAD;
	i->event.flags |= GATE_EVENT_OUT;
	i->n_interim = 0;
	i->is_last = i->head.is_close;
	i->n_exchanges++;
	return true;
}

/* bodies */

static bool pass_piece(struct inspection *i, struct http_slice piece)
{
	static char detail[128];
	struct inspect_no no = { .status = 403, .reason = GATE_R_PLACEHOLDER };
	int rule = secret_watch_take(&i->watch, i->table, i->verdict.applies,
				     piece.at, piece.len);
	const char *name;

	if (rule < 0) {
		http_body_put(&i->up.out, i->sent.framing, piece.at, piece.len);
		return true;
	}
	name = gate_str(i->table, i->table->rules[rule].name);
	(void)snprintf(detail, sizeof(detail), "%s may not stand in a body",
		       name ? name : "a placeholder");
	no.detail = detail;
	inspect_refuse(i, &no);
	return false;
}

static bool take_body(struct inspection *i)
{
	bool moved = false;
	size_t len, room;
	const char *data = side_data(&i->box, &len);

	while (len > 0 && !i->sent.is_done &&
	       (room = side_room(&i->up)) > END_ROOM + HTTP_CHUNK_EXTRA) {
		struct http_slice piece;
		ssize_t n;

		room -= END_ROOM + HTTP_CHUNK_EXTRA;
		n = http_body_take(&i->sent, data, MIN(len, room), &piece);
		if (n < 0)
			inspect_refuse(i, &inspect_broken);
		if (n < 0 || !pass_piece(i, piece))
			return true;
		side_take(&i->box, (size_t)n);
		data = side_data(&i->box, &len);
		moved = true;
	}
	if (i->sent.is_done && side_room(&i->up) > END_ROOM) {
		http_body_end(&i->up.out, i->sent.framing);
		i->request = REQUEST_DONE;
		return true;
	}
	return moved;
}

/* heads */

/*
 * Upstream is gone. Between two requests that is its right, and the client's
 * business to try again: it sees an end without an answer, as without us.
 */
static void fail(struct inspection *i, const struct inspect_no *no)
{
	if (i->n_exchanges == 0) {
		inspect_refuse(i, no);
		return;
	}
	i->event.reason = (uint8_t)no->reason;
	inspect_tell(i, 0);
	inspect_close(i);
}

static bool go(struct inspection *i, const char *data)
{
	struct inspect_no no = { 0 };

	if (!inspect_reaches(i, &no)) {
		if (no.reason != GATE_OK)
			fail(i, &no);
		return no.reason != GATE_OK;
	}
	if (!side_is_flushed(&i->up))
		return false;
	i->watch.n = 0;
	if (secret_wants_body(i->table, i->verdict.applies, &i->head))
		return inspect_keep(i, data);
	if (!inspect_begin(i, NULL))
		return true;
	http_body_init(&i->sent, &i->head);
	i->request = REQUEST_BODY;
	side_take(&i->box, i->head.size);
	i->head_at = 0;
	return true;
}

static bool take_head(struct inspection *i)
{
	struct inspect_no no = { 0 };
	size_t len;
	const char *data = side_data(&i->box, &len);
	int r;

	if (len == 0 || side_room(&i->box) < ANSWER_ROOM)
		return false;
	if (i->head_at == 0)
		i->head_at = clock_us();
	r = http_read_request(data, len, &i->head);
	if (r == 0 && i->box.is_ended)
		inspect_end(i, GATE_R_RESET);
	if (r == 0)
		return false;
	if (r < 0)
		return refuse_head(i, r);
	if (!inspect_judge(i, &no)) {
		note_request(i);
		inspect_refuse(i, &no);
		return true;
	}
	note_request(i);
	return go(i, data);
}

bool inspect_request(struct inspection *i)
{
	static bool (*const take[])(struct inspection *) = {
		[REQUEST_HEAD] = take_head,
		[REQUEST_BODY] = take_body,
		[REQUEST_KEPT] = inspect_kept,
		[REQUEST_LEFT] = inspect_left,
		[REQUEST_DONE] = NULL,
		[REQUEST_SOCKET] = inspect_socket_up,
	};

	return take[i->request] ? take[i->request](i) : false;
}
