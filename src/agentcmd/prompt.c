/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/prompt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "base/visible.h"

#define LINE_MAX_READ 65536

#define OF(ptr, member)                                                        \
	((struct prompt *)((char *)(ptr)-offsetof(struct prompt, member)))

void prompt_init(struct prompt *p, struct loop *l)
{
	memset(p, 0, sizeof(*p));
	p->loop = l;
	buf_init(&p->line, LINE_MAX_READ);
}

static void stop(struct prompt *p)
{
	if (p->is_watching)
		watch_stop(&p->watch);
	if (p->is_hooked)
		cancel_unhook(&p->hook);
	if (p->loop)
		task_drop(&p->task);
	p->is_watching = false;
	p->is_hooked = false;
}

void prompt_done(struct prompt *p)
{
	stop(p);
	buf_done(&p->line);
}

static void answer(struct prompt *p, const char *text)
{
	user_answer_fn *done = p->done;

	stop(p);
	p->done = NULL;
	done(p->arg, text);
}

/* The first line of what was read, if there is a whole one. */
static bool take_line(struct prompt *p)
{
	char *end = p->line.len ? memchr(p->line.data, '\n', p->line.len)
				: NULL;
	_cleanup_free_ char *text = NULL;
	size_t used;

	if (!end && !(p->is_ended && p->line.len))
		return false;
	used = end ? (size_t)(end - p->line.data) + 1 : p->line.len;
	text = strndup(p->line.data, used - (end != NULL));
	memmove(p->line.data, p->line.data + used, p->line.len - used + 1);
	p->line.len -= used;
	answer(p, text);
	return true;
}

static void on_input(struct prompt *p)
{
	char chunk[4096];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0 && buf_add(&p->line, chunk, (size_t)n) < 0)
		n = 0;
	p->is_ended = n <= 0;
	if (!take_line(p) && p->is_ended)
		answer(p, NULL);
}

static void on_ready(struct watch *w)
{
	on_input(OF(w, watch));
}

static void on_task(struct task *t)
{
	struct prompt *p = OF(t, task);

	if (take_line(p))
		return;
	if (p->is_ended) {
		answer(p, NULL);
		return;
	}
	p->watch.ready = on_ready;
	p->is_watching = watch_start(p->loop, &p->watch, STDIN_FILENO) == 0;
	/* A file or /dev/null: there is nothing to wait for. */
	while (!p->is_watching && p->done)
		on_input(p);
}

static void on_cancel(struct cancel_hook *h, struct cancel *c)
{
	(void)c;
	answer(OF(h, hook), NULL);
}

void prompt_ask(void *arg, const char *prompt, struct cancel *cancel,
		user_answer_fn *done, void *done_arg)
{
	struct prompt *p = arg;
	struct buf text;

	if (p->done) {
		done(done_arg, NULL);
		return;
	}
	buf_init(&text, 4096);
	visible_text(&text, prompt, strlen(prompt), 2048);
	if (text.data)
		(void)io_write_all(STDERR_FILENO, text.data, text.len);
	buf_done(&text);
	p->done = done;
	p->arg = done_arg;
	p->task.run = on_task;
	loop_soon(p->loop, &p->task);
	p->hook.fired = on_cancel;
	p->is_hooked = true;
	cancel_hook(cancel, &p->hook);
}
