/* SPDX-License-Identifier: Apache-2.0 */
#include "client/answer.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/util.h"

void answer_init(struct answer *a)
{
	memset(a, 0, offsetof(struct answer, line));
	a->len = 0;
}

static int broken(struct err *err, const char *what)
{
	return err_set(err, EPROTO, "the daemon's answer %s", what);
}

static const char *header_value(const char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncasecmp(line, name, len) != 0 || line[len] != ':')
		return NULL;
	line += len + 1;
	return line + strspn(line, " \t");
}

static int take_header(struct answer *a, const char *line, struct err *err)
{
	const char *v;

	if (++a->headers > ANSWER_MAX_HEADERS)
		return broken(err, "has too many headers");
	if ((v = header_value(line, "Transfer-Encoding"))) {
		if (strcasecmp(v, "chunked") != 0)
			return broken(err, "has an encoding of its own");
		a->is_chunked = true;
	} else if ((v = header_value(line, "Content-Type"))) {
		a->is_raw = strstr(v, "raw-stream") != NULL;
	} else if ((v = header_value(line, "Cordon-Exec"))) {
		if (strlen(v) >= sizeof(a->exec))
			return broken(err, "names a program by too long an id");
		memcpy(a->exec, v, strlen(v) + 1);
	} else if ((v = header_value(line, "Content-Length"))) {
		if (a->has_length || num_parse(v, INT64_MAX, &a->left) < 0)
			return broken(err, "has a bad length");
		a->has_length = true;
	}
	return 0;
}

static int take_status(struct answer *a, const char *line, struct err *err)
{
	int status = 0;

	if (strncmp(line, "HTTP/1.1 ", 9) != 0)
		return broken(err, "is not HTTP/1.1");
	for (int i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return broken(err, "has no status");
		status = status * 10 + (line[i] - '0');
	}
	if (status < 100 || (line[12] && line[12] != ' '))
		return broken(err, "has no status");
	a->status = status;
	a->at = ANSWER_HEADER;
	return 0;
}

/* The empty line behind the headers. */
static int end_head(struct answer *a, struct err *err)
{
	if (a->is_chunked && a->has_length)
		return broken(err, "has two lengths");
	if (a->status == 100) { /* the real one follows, not for ever */
		if (++a->headers > ANSWER_MAX_HEADERS)
			return broken(err, "does not begin");
		a->at = ANSWER_STATUS;
		a->is_chunked = a->has_length = false;
	} else if (a->status == 101)
		a->at = ANSWER_BODY;
	else if (a->status == 204 || a->status == 304)
		a->at = ANSWER_ENDED;
	else if (a->is_chunked)
		a->at = ANSWER_CHUNK_SIZE;
	else if (a->has_length)
		a->at = a->left ? ANSWER_COUNTED : ANSWER_ENDED;
	else
		a->at = ANSWER_BODY;
	return 0;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int take_size(struct answer *a, const char *line, struct err *err)
{
	int n = 0;

	a->left = 0;
	for (int d; n < 15 && (d = digit_of(line[n])) >= 0; n++)
		a->left = a->left << 4 | (uint64_t)d;
	if (n == 0 || (line[n] && line[n] != ';' && line[n] != ' '))
		return broken(err, "has a bad chunk");
	a->at = a->left ? ANSWER_CHUNK : ANSWER_TRAILER;
	return 0;
}

static int take_line(struct answer *a, struct err *err)
{
	const char *line = a->line;

	switch (a->at) {
	case ANSWER_STATUS:
		return take_status(a, line, err);
	case ANSWER_HEADER:
		return *line ? take_header(a, line, err) : end_head(a, err);
	case ANSWER_CHUNK_SIZE:
		return take_size(a, line, err);
	case ANSWER_CHUNK_END:
		if (*line)
			return broken(err, "has a bad chunk");
		a->at = ANSWER_CHUNK_SIZE;
		return 0;
	default: /* ANSWER_TRAILER */
		if (!*line)
			a->at = ANSWER_ENDED;
		else if (++a->headers > ANSWER_MAX_HEADERS)
			return broken(err, "has too many headers");
		return 0;
	}
}

/* Up to the end of a line; the line is looked at when it is complete. */
static ssize_t take_text(struct answer *a, const char *data, size_t len,
			 struct err *err)
{
	const char *end = memchr(data, '\n', len);
	size_t n = end ? (size_t)(end - data) : len;

	if (n >= sizeof(a->line) - a->len)
		return broken(err, "has too long a line");
	memcpy(a->line + a->len, data, n);
	a->len += n;
	if (!end)
		return (ssize_t)n;
	if (a->len > 0 && a->line[a->len - 1] == '\r')
		a->len--;
	a->line[a->len] = '\0';
	if (strlen(a->line) != a->len)
		return broken(err, "has a zero byte in its head");
	a->len = 0;
	if (take_line(a, err) < 0)
		return -err->code;
	return (ssize_t)n + 1;
}

ssize_t answer_take(struct answer *a, const char *data, size_t len,
		    const char **ret_piece, size_t *ret_len, struct err *err)
{
	bool is_counted = a->at == ANSWER_COUNTED || a->at == ANSWER_CHUNK;

	*ret_piece = data;
	*ret_len = 0;
	if (a->at == ANSWER_ENDED || len == 0)
		return 0;
	if (!is_counted && a->at != ANSWER_BODY)
		return take_text(a, data, len, err);
	if (is_counted)
		len = (size_t)MIN(len, a->left);
	*ret_len = len;
	if (is_counted && (a->left -= len) == 0)
		a->at = a->at == ANSWER_CHUNK ? ANSWER_CHUNK_END : ANSWER_ENDED;
	return (ssize_t)len;
}

int answer_close(struct answer *a, struct err *err)
{
	if (a->at == ANSWER_BODY)
		a->at = ANSWER_ENDED;
	if (a->at == ANSWER_ENDED)
		return 0;
	return err_set(err, ECONNRESET, "the daemon's answer was cut off");
}
