/* SPDX-License-Identifier: Apache-2.0 */

/* How Docker writes times, modes and signals. Pure. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "base/num.h"
#include "base/regex.h"
#include "face/docker/internal.h"

/* As programs in boxes count: their libraries keep the first two. */
#define RT_FIRST 34
#define RT_LAST  64

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
	int s;

	return num_parse_signal(text, &s) < 0 ? -1 : s;
}

void signal_format(int s, char ret[SIGNAL_TEXT])
{
	const char *name = s > 0 && s < 32 ? sigabbrev_np(s) : NULL;

	if (name)
		(void)snprintf(ret, SIGNAL_TEXT, "SIG%s", name);
	else if (s == RT_FIRST)
		(void)snprintf(ret, SIGNAL_TEXT, "SIGRTMIN");
	else if (s > RT_FIRST && s <= RT_LAST)
		(void)snprintf(ret, SIGNAL_TEXT, "SIGRTMIN+%d", s - RT_FIRST);
	else
		(void)snprintf(ret, SIGNAL_TEXT, "%d", s);
}

bool pattern_found(const char *pattern, const char *text)
{
	struct regex *r = NULL;
	struct err unused = { 0 };
	bool is_found;

	if (strstr(text, pattern))
		return true;
	if (!strpbrk(pattern, ".*+?[](){}|^$\\") ||
	    regex_new_test(pattern, &r, &unused) < 0)
		return false;
	is_found = regex_test(r, text, strlen(text)) == 1;
	regex_free(r);
	return is_found;
}
