/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

/* Reads digits at *p and moves it past them. */
static int digits(const char **p, uint64_t *ret)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)**p))
		return -EINVAL;
	for (; isdigit((unsigned char)**p); (*p)++) {
		uint64_t d = (uint64_t)(**p - '0');

		if (v > (UINT64_MAX - d) / 10)
			return -ERANGE;
		v = v * 10 + d;
	}
	*ret = v;
	return 0;
}

int num_parse(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	int r = digits(&text, &v);

	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	if (v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

/*
 * A decimal with up to three places: "1", "0.5", ".5" and "2." are numbers.
 * The result is in thousandths.
 */
static int thousandths(const char **p, uint64_t *ret)
{
	uint64_t whole = 0;
	uint64_t part = 0;
	bool any = isdigit((unsigned char)**p);

	if (any && digits(p, &whole) < 0)
		return -ERANGE;
	if (**p == '.') {
		uint64_t unit = 100;

		for ((*p)++; isdigit((unsigned char)**p); (*p)++) {
			part += unit * (uint64_t)(**p - '0');
			unit /= 10;
			any = true;
		}
	}
	if (!any)
		return -EINVAL;
	if (whole > UINT64_MAX / 1000 - 1)
		return -ERANGE;
	*ret = whole * 1000 + part;
	return 0;
}

int num_parse_milli(const char *text, uint64_t *ret)
{
	uint64_t v = 0;
	int r = thousandths(&text, &v);

	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* Moves past "k", "mb" and so on; the shift it stands for, or -EINVAL. */
static int size_unit(const char *p)
{
	static const char units[] = "kmgt";
	const char *at = *p ? strchr(units, tolower((unsigned char)*p)) : NULL;
	int shift = at ? 10 * (int)(at - units + 1) : 0;

	p += at != NULL;
	p += tolower((unsigned char)*p) == 'b';
	return *p ? -EINVAL : shift;
}

int num_parse_size(const char *text, uint64_t *ret)
{
	uint64_t v = 0;
	int r = thousandths(&text, &v);
	int shift = size_unit(text);

	if (r < 0)
		return r;
	if (shift < 0 || (v % 1000 && shift == 0))
		return -EINVAL;
	if (v > (UINT64_MAX >> shift) / 2)
		return -ERANGE;
	*ret = (v << shift) / 1000;
	return 0;
}

int num_parse_duration(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t us;
	} units[] = {
		{ "", 1000000 },     { "us", 1 },       { "ms", 1000 },
		{ "s", 1000000 },    { "m", 60000000 }, { "min", 60000000 },
		{ "h", 3600000000 },
	};
	uint64_t v = 0;
	int r = thousandths(&text, &v);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		if (v > UINT64_MAX / 2 / units[i].us)
			return -ERANGE;
		*ret = v * units[i].us / 1000;
		return 0;
	}
	return -EINVAL;
}

/* As most programs in boxes count, not as our own library: musl keeps three. */
#define RT_FIRST 34
#define RT_LAST  64

static int real_time_signal(const char *text, int *ret)
{
	bool is_min = strncasecmp(text, "RTMIN", 5) == 0;
	uint64_t n = 0;

	if (!is_min && strncasecmp(text, "RTMAX", 5) != 0)
		return -EINVAL;
	text += 5;
	if (*text && (*text != (is_min ? '+' : '-') ||
		      num_parse(text + 1, RT_LAST - RT_FIRST, &n) < 0))
		return -EINVAL;
	*ret = is_min ? RT_FIRST + (int)n : RT_LAST - (int)n;
	return 0;
}

int num_parse_signal(const char *text, int *ret)
{
	/* Not sigabbrev_np(3): musl has none. */
	static const char *const names[] = {
		[SIGHUP] = "HUP",   [SIGINT] = "INT",
		[SIGQUIT] = "QUIT", [SIGILL] = "ILL",
		[SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",
		[SIGBUS] = "BUS",   [SIGFPE] = "FPE",
		[SIGKILL] = "KILL", [SIGUSR1] = "USR1",
		[SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",
		[SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
		[SIGCHLD] = "CHLD", [SIGCONT] = "CONT",
		[SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
		[SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",
		[SIGURG] = "URG",   [SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM",
		[SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
		[SIGPOLL] = "POLL", [SIGPWR] = "PWR",
		[SIGSYS] = "SYS",
	};
	uint64_t n;

	if (num_parse(text, RT_LAST, &n) == 0) {
		if (n == 0)
			return -EINVAL;
		*ret = (int)n;
		return 0;
	}
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (size_t i = 1; i < ARRAY_SIZE(names); i++)
		if (names[i] && strcasecmp(names[i], text) == 0) {
			*ret = (int)i;
			return 0;
		}
	return real_time_signal(text, ret);
}
