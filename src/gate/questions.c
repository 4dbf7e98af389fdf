/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/questions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate/gate.h"

struct question {
	char host[GATE_HOST_MAX];
	uint16_t port;
	enum answer answer;
};

struct questions {
	uint32_t count;
	struct question q[GATE_MAX_QUESTIONS];
};

struct questions *questions_new(void)
{
	return calloc(1, sizeof(struct questions));
}

void questions_free(struct questions *q)
{
	free(q);
}

int questions_take(struct questions *q, const char *host, uint16_t port,
		   bool *ret_new)
{
	uint32_t i = 0;

	while (i < q->count &&
	       (q->q[i].port != port || strcmp(q->q[i].host, host) != 0))
		i++;
	*ret_new = i == q->count;
	if (i < q->count)
		return (int)i + 1;
	if (i == GATE_MAX_QUESTIONS || strlen(host) >= GATE_HOST_MAX)
		return -ENOSPC;
	strcpy(q->q[i].host, host);
	q->q[i].port = port;
	return (int)++q->count;
}

enum answer questions_state(const struct questions *q, uint32_t number)
{
	if (number == 0 || number > q->count)
		return ANSWER_NO;
	return q->q[number - 1].answer;
}

bool questions_answer(struct questions *q, uint32_t number, bool is_allowed)
{
	if (number == 0 || number > q->count ||
	    q->q[number - 1].answer != ANSWER_NONE)
		return false;
	q->q[number - 1].answer = is_allowed ? ANSWER_YES : ANSWER_NO;
	return true;
}

void questions_end(struct questions *q)
{
	for (uint32_t i = 1; i <= q->count; i++)
		(void)questions_answer(q, i, false);
}
