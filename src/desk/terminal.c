/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"

#define TRIES 3

/* A byte of one file for each terminal. */
static int take_lock(const struct terminal *t)
{
	unsigned int device = 0;
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };

	if (ioctl(t->fd, TIOCGDEV, &device) < 0)
		return -errno;
	lock.l_start = (off_t)device;
	return fcntl(t->lock, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static void find_name(struct terminal *t)
{
	unsigned int device = 0;

	(void)snprintf(t->name, sizeof(t->name), "the terminal");
	if (ioctl(t->fd, TIOCGDEV, &device) == 0 && major(device) >= 136 &&
	    major(device) <= 143)
		(void)snprintf(t->name, sizeof(t->name), "pts/%u",
			       (major(device) - 136) * 256 + minor(device));
}

int terminal_open(struct terminal *t, const struct state *s)
{
	struct err ignored = { 0 };

	*t = (struct terminal){ .fd = NO_FD, .lock = NO_FD };
	/* In the background we get an error, and are not stopped. */
	(void)signal(SIGTTIN, SIG_IGN);
	(void)signal(SIGTTOU, SIG_IGN);
	t->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (t->fd < 0)
		return -ENXIO;
	t->lock = state_file(s, "terminals.lock", O_RDWR | O_CREAT, &ignored);
	if (t->lock < 0 || tcgetpgrp(t->fd) != getpgrp()) {
		terminal_close(t);
		return -ENXIO;
	}
	find_name(t);
	return 0;
}

void terminal_close(struct terminal *t)
{
	if (t->is_changed)
		(void)tcsetattr(t->fd, TCSADRAIN, &t->before);
	fd_close(&t->fd);
	fd_close(&t->lock);
	t->is_changed = false;
	t->is_asking = false;
}

/* A terminal that is slow is waited for, a while. */
static void put(const struct terminal *t, const char *text, size_t len)
{
	for (int i = 0; len > 0 && i < 500; i++) {
		ssize_t n = write(t->fd, text, len);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return;
		if (n < 0) {
			(void)usleep(10000);
			continue;
		}
		text += n;
		len -= (size_t)n;
		i = 0;
	}
}

/* Lines, with what is typed shown, whatever a program left behind. */
static bool settle(struct terminal *t)
{
	struct termios plain;

	if (tcgetattr(t->fd, &t->before) < 0)
		return false;
	plain = t->before;
	plain.c_lflag |= ICANON | ECHO | ISIG | ECHOE;
	plain.c_iflag |= ICRNL;
	plain.c_oflag |= OPOST | ONLCR;
	t->is_changed = tcsetattr(t->fd, TCSAFLUSH, &plain) == 0;
	return t->is_changed;
}

void terminal_prompt(struct terminal *t, const char *note, bool has_session)
{
	char line[900];
	int n = snprintf(line, sizeof(line),
			 "%s%sAllow this? y: once, %sa: always, n: no, "
			 "v: view all of it [n] ",
			 note ? note : "", note ? "\n" : "",
			 has_session ? "s: for this session, " : "");

	put(t, line, MIN((size_t)n, sizeof(line) - 1));
}

bool terminal_ask(struct terminal *t, const char *text, size_t len,
		  bool has_session)
{
	if (take_lock(t) < 0 || !settle(t))
		return false;
	t->is_asking = true;
	put(t, text, len);
	terminal_prompt(t, NULL, has_session);
	return true;
}

static enum reply understand(struct terminal *t, const char *line)
{
	static const struct {
		const char *word;
		enum reply reply;
	} words[] = {
		{ "y", REPLY_ONCE },          { "yes", REPLY_ONCE },
		{ "once", REPLY_ONCE },       { "s", REPLY_SESSION },
		{ "session", REPLY_SESSION }, { "a", REPLY_ALWAYS },
		{ "always", REPLY_ALWAYS },   { "v", REPLY_VIEW },
		{ "view", REPLY_VIEW },       { "n", REPLY_DENY },
		{ "no", REPLY_DENY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(line, words[i].word) != 0)
			continue;
		if (words[i].reply != REPLY_DENY)
			return words[i].reply;
		t->wants_reason = true;
		put(t, "Why not (may be empty)? ", 24);
		return REPLY_NONE;
	}
	if (*line && ++t->tries < TRIES) {
		/* Of a text that was pasted no later line is an answer. */
		(void)tcflush(t->fd, TCIFLUSH);
		put(t, "y, n, a, s or v: ", 17);
		return REPLY_NONE;
	}
	return REPLY_DENY;
}

/* As much as there is room for, and only text. */
static void keep_reason(struct terminal *t, const char *line)
{
	size_t len = strlen(line);

	if (!utf8_check(line, len))
		line = "";
	len = MIN(strlen(line), sizeof(t->reason) - 1);
	while (!utf8_check(line, len))
		len--;
	memcpy(t->reason, line, len);
	t->reason[len] = '\0';
}

enum reply terminal_read(struct terminal *t)
{
	char line[4097]; /* the most that a terminal gives as one line */
	ssize_t n = read(t->fd, line, sizeof(line) - 1);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? REPLY_NONE
							 : REPLY_GONE;
	if (n == 0) {
		put(t, "\n", 1);
		if (!t->wants_reason)
			(void)strcpy(t->reason, "end of input at the terminal");
		return REPLY_DENY;
	}
	line[n] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (t->wants_reason) {
		keep_reason(t, line);
		return REPLY_DENY;
	}
	return understand(t, line);
}
