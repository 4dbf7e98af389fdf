/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers as people write them: good ones, bad ones, the edges. */

#include "tests/tap.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>

#include "base/num.h"
#include "base/util.h"

#define UNTOUCHED 12345

struct row {
	const char *text;
	int result;
	uint64_t value;
};

static void each(const struct row *rows, size_t n,
		 int (*parse)(const char *text, uint64_t *ret))
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = UNTOUCHED;
		int r = parse(rows[i].text, &v);
		uint64_t want = rows[i].result ? UNTOUCHED : rows[i].value;

		if (r == rows[i].result && v == want)
			continue;
		printf("# '%s' gave %d and %llu, not %d and %llu\n",
		       rows[i].text, r, (unsigned long long)v, rows[i].result,
		       (unsigned long long)want);
		CHECK(!"the row above");
	}
}

static int parse_100(const char *text, uint64_t *ret)
{
	return num_parse(text, 100, ret);
}

static int parse_any(const char *text, uint64_t *ret)
{
	return num_parse(text, UINT64_MAX, ret);
}

TEST(num_decimal)
{
	static const struct row rows[] = {
		{ "0", 0, 0 },
		{ "7", 0, 7 },
		{ "007", 0, 7 },
		{ "100", 0, 100 },
		{ "101", -ERANGE, 0 },
		{ "99999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "0x1", -EINVAL, 0 },
		{ "1.0", -EINVAL, 0 },
		{ "one", -EINVAL, 0 },
		{ "\xd9\xa1", -EINVAL, 0 }, /* a digit, but an Arabic one */
	};
	static const struct row edges[] = {
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
	};

	each(rows, ARRAY_SIZE(rows), parse_100);
	each(edges, ARRAY_SIZE(edges), parse_any);
}

TEST(num_size)
{
	static const struct row rows[] = {
		{ "0", 0, 0 },
		{ "1", 0, 1 },
		{ "1b", 0, 1 },
		{ "1k", 0, 1024 },
		{ "1K", 0, 1024 },
		{ "1kb", 0, 1024 },
		{ "64m", 0, 64 << 20 },
		{ "64M", 0, 64 << 20 },
		{ "1g", 0, 1 << 30 },
		{ "1.5g", 0, 3ULL << 29 },
		{ ".5k", 0, 512 },
		{ "2t", 0, 2ULL << 40 },
		{ "0.5", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "k", -EINVAL, 0 },
		{ "1kk", -EINVAL, 0 },
		{ "1mm", -EINVAL, 0 },
		{ "1p", -EINVAL, 0 },
		{ "1 k", -EINVAL, 0 },
		{ "-1k", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "1..5k", -EINVAL, 0 },
		{ "99999999999t", -ERANGE, 0 },
		{ "18446744073709551615", -ERANGE, 0 },
		{ "999999999999999999999999", -ERANGE, 0 },
	};

	each(rows, ARRAY_SIZE(rows), num_parse_size);
}

TEST(num_duration)
{
	static const struct row rows[] = {
		{ "30", 0, 30000000 },
		{ "30s", 0, 30000000 },
		{ "500ms", 0, 500000 },
		{ "1.5s", 0, 1500000 },
		{ ".5s", 0, 500000 },
		{ "2m", 0, 120000000 },
		{ "2min", 0, 120000000 },
		{ "1h", 0, 3600000000 },
		{ "7us", 0, 7 },
		{ "0", 0, 0 },
		{ "0.0019", 0, 1000 },
		{ "", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ "5sec", -EINVAL, 0 },
		{ "5S", -EINVAL, 0 },
		{ "5 s", -EINVAL, 0 },
		{ "-5s", -EINVAL, 0 },
		{ "5s5s", -EINVAL, 0 },
		{ "1d", -EINVAL, 0 },
		{ "9999999999999999h", -ERANGE, 0 },
		{ "18446744073709551615", -ERANGE, 0 },
	};

	each(rows, ARRAY_SIZE(rows), num_parse_duration);
}

static int parse_signal(const char *text, uint64_t *ret)
{
	int s = (int)*ret;
	int r = num_parse_signal(text, &s);

	*ret = (uint64_t)s;
	return r;
}

TEST(num_signal)
{
	const struct row rows[] = {
		{ "TERM", 0, SIGTERM },
		{ "sigterm", 0, SIGTERM },
		{ "SIGQUIT", 0, SIGQUIT },
		{ "9", 0, SIGKILL },
		{ "64", 0, 64 },
		{ "RTMIN", 0, (uint64_t)SIGRTMIN },
		{ "SIGRTMIN+3", 0, (uint64_t)SIGRTMIN + 3 },
		{ "rtmax-1", 0, (uint64_t)SIGRTMAX - 1 },
		{ "", -EINVAL, 0 },
		{ "0", -EINVAL, 0 },
		{ "65", -EINVAL, 0 },
		{ "-9", -EINVAL, 0 },
		{ "SIG", -EINVAL, 0 },
		{ "SIGNOPE", -EINVAL, 0 },
		{ "RTMIN-1", -EINVAL, 0 },
		{ "RTMIN+99", -EINVAL, 0 },
		{ "RTMAX+1", -EINVAL, 0 },
		{ "RTMIN+", -EINVAL, 0 },
	};

	each(rows, ARRAY_SIZE(rows), parse_signal);
}

TEST(num_milli)
{
	static const struct row rows[] = {
		{ "0.5", 0, 500 },
		{ "1", 0, 1000 },
		{ "2.", 0, 2000 },
		{ ".25", 0, 250 },
		{ "0.001", 0, 1 },
		{ "0.0009", 0, 0 },
		{ "3.14159", 0, 3141 },
		{ "", -EINVAL, 0 },
		{ ".", -EINVAL, 0 },
		{ "1,5", -EINVAL, 0 },
		{ "0.5x", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "18446744073709551615", -ERANGE, 0 },
	};

	each(rows, ARRAY_SIZE(rows), num_parse_milli);
}

/* What is written is read back, at every power of two. */
TEST(num_round_trip)
{
	for (unsigned int bit = 0; bit < 64; bit++) {
		uint64_t v = 1ULL << bit;
		uint64_t back = 0;
		char text[32];

		(void)snprintf(text, sizeof(text), "%llu",
			       (unsigned long long)v);
		CHECK_INT(num_parse(text, UINT64_MAX, &back), 0);
		CHECK(back == v);
	}
}

TAP_MAIN()
