/* SPDX-License-Identifier: Apache-2.0 */

/* How Docker writes times, modes and signals. Pure. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "base/num.h"
#include "face/docker/internal.h"

void time_format(int64_t ns, char ret[40])
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[24];

	if (ns <= 0 || !gmtime_r(&s, &tm) ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		(void)snprintf(ret, 40, "0001-01-01T00:00:00Z");
	else
		(void)snprintf(ret, 40, "%s.%09ldZ", text,
			       (long)(ns % 1000000000));
}

void human_duration(int64_t s, char *ret, size_t size)
{
	long minutes = (long)(s / 60);
	long hours = (long)((s + 1800) / 3600);

	if (s < 1)
		(void)snprintf(ret, size, "Less than a second");
	else if (s == 1)
		(void)snprintf(ret, size, "1 second");
	else if (s < 60)
		(void)snprintf(ret, size, "%ld seconds", (long)s);
	else if (minutes == 1)
		(void)snprintf(ret, size, "About a minute");
	else if (minutes < 60)
		(void)snprintf(ret, size, "%ld minutes", minutes);
	else if (hours == 1)
		(void)snprintf(ret, size, "About an hour");
	else if (hours < 48)
		(void)snprintf(ret, size, "%ld hours", hours);
	else if (hours < 24L * 14)
		(void)snprintf(ret, size, "%ld days", hours / 24);
	else if (hours < 24L * 60)
		(void)snprintf(ret, size, "%ld weeks", hours / 24 / 7);
	else if (hours < 24L * 365 * 2)
		(void)snprintf(ret, size, "%ld months", hours / 24 / 30);
	else
		(void)snprintf(ret, size, "%ld years", hours / 24 / 365);
}

uint32_t go_mode(uint32_t mode)
{
	static const struct {
		uint32_t kind, bits;
	} kinds[] = {
		{ S_IFDIR, 1U << 31 }, { S_IFLNK, 1U << 27 },
		{ S_IFBLK, 1U << 26 }, { S_IFCHR, 1U << 26 | 1U << 21 },
		{ S_IFIFO, 1U << 25 }, { S_IFSOCK, 1U << 24 },
	};
	uint32_t out = mode & 0777;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((mode & S_IFMT) == kinds[i].kind)
			out |= kinds[i].bits;
	out |= mode & S_ISUID ? 1U << 23 : 0;
	out |= mode & S_ISGID ? 1U << 22 : 0;
	out |= mode & S_ISVTX ? 1U << 20 : 0;
	return out;
}

void base64_encode(const void *data, size_t len, struct buf *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno"
				     "pqrstuvwxyz0123456789+/";
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;
		char four[4];

		v |= i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0;
		v |= i + 2 < len ? p[i + 2] : 0;
		for (int k = 0; k < 4; k++)
			four[k] = digits[v >> (18 - 6 * k) & 63];
		if (i + 1 >= len)
			four[2] = '=';
		if (i + 2 >= len)
			four[3] = '=';
		buf_add(out, four, 4);
	}
}

int signal_parse(const char *text)
{
	uint64_t n;

	if (num_parse(text, 64, &n) == 0)
		return n > 0 ? (int)n : -1;
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (int s = 1; s < 32; s++) {
		const char *name = sigabbrev_np(s);

		if (name && strcasecmp(name, text) == 0)
			return s;
	}
	return -1;
}

const char *signal_name(int s)
{
	const char *name = s > 0 && s < 32 ? sigabbrev_np(s) : NULL;

	return name ? name : "";
}

static bool is_sign(char sign, char c)
{
	return c && (sign == '.' || sign == c);
}

static bool here(const char *p, const char *t, unsigned int *steps);

/* `p` is a sign and a star: as few as will do. */
static bool here_after_star(const char *p, const char *t, unsigned int *steps)
{
	do {
		if (here(p + 2, t, steps))
			return true;
		if (++*steps > 1000000)
			return false;
	} while (is_sign(p[0], *t) && t++);
	return false;
}

/*
 * The matcher of few signs. Each step is counted: a pattern of many stars over
 * a long text ends as "not found" rather than late.
 */
static bool here(const char *p, const char *t, unsigned int *steps)
{
	for (;;) {
		if (++*steps > 1000000)
			return false;
		if (!*p)
			return true;
		if (p[0] == '$' && !p[1])
			return !*t;
		if (p[1] == '*')
			return here_after_star(p, t, steps);
		if (!is_sign(p[0], *t))
			return false;
		p++;
		t++;
	}
}

bool pattern_found(const char *pattern, const char *text)
{
	unsigned int steps = 0;

	if (strlen(pattern) > 4096)
		return false;
	if (strstr(text, pattern))
		return true;
	if (strpbrk(pattern, "[](){}+?|\\") || *pattern == '*')
		return false;
	if (*pattern == '^')
		return here(pattern + 1, text, &steps);
	do {
		if (here(pattern, text, &steps))
			return true;
	} while (*text++ && steps < 1000000);
	return false;
}
