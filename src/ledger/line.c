/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/line.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/util.h"

#define PREV      "{\"prev\":\""
#define TIME      "\",\"time\":\""
#define SEQ       "\",\"seq\":"
#define KIND      ",\"kind\":\""
#define CRC       ",\"crc\":\""
#define LEN(text) (sizeof(text) - 1)
#define HASH_HEX  ((size_t)2 * SHA256_SIZE)
#define CRC_TAIL  (LEN(CRC) + 8 + 2) /* with "} */
#define SEQ_AT    (LEN(PREV) + HASH_HEX + LEN(TIME) + LINE_TIME + LEN(SEQ))

/* A byte at a time; two threads that make the table make the same one. */
static uint32_t crc_plain(uint32_t c, const unsigned char *p, size_t len)
{
	static uint32_t table[256];

	if (__atomic_load_n(&table[255], __ATOMIC_ACQUIRE) == 0)
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t v = i;

			for (int bit = 0; bit < 8; bit++)
				v = v >> 1 ^ (v & 1 ? 0x82f63b78U : 0);
			__atomic_store_n(&table[i], v, __ATOMIC_RELEASE);
		}
	for (; len > 0; len--, p++)
		c = c >> 8 ^ table[(c ^ *p) & 255];
	return c;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_sse(
	uint32_t c, const unsigned char *p, size_t len)
{
	uint64_t wide = c;

	for (; len >= 8; len -= 8, p += 8) {
		uint64_t v;

		memcpy(&v, p, sizeof(v));
		wide = _mm_crc32_u64(wide, v);
	}
	c = (uint32_t)wide;
	for (; len > 0; len--, p++)
		c = _mm_crc32_u8(c, *p);
	return c;
}

static bool has_crc(void)
{
	static int known; /* asked once */
	unsigned int a, b, c, d;
	int how = __atomic_load_n(&known, __ATOMIC_RELAXED);

	/* Those are younger, and have been asked for. */
	if (sha256_has_instructions())
		return true;
	if (how == 0) {
		how = __get_cpuid(1, &a, &b, &c, &d) && (c & 1U << 20) ? 2 : 1;
		__atomic_store_n(&known, how, __ATOMIC_RELAXED);
	}
	return how == 2;
}
#endif

uint32_t crc32c(const void *data, size_t len)
{
#if defined(__x86_64__)
	if (!sha256_is_plain && has_crc())
		return ~crc_sse(~0U, data, len);
#endif
	return ~crc_plain(~0U, data, len);
}

void hex_format(const unsigned char *data, size_t len, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		ret[2 * i] = digits[data[i] >> 4];
		ret[2 * i + 1] = digits[data[i] & 15];
	}
	ret[2 * len] = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int hex_parse(const char *text, unsigned char *ret, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		int high = digit(text[2 * i]);
		int low = high < 0 ? -1 : digit(text[2 * i + 1]);

		if (low < 0)
			return -EINVAL;
		ret[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

void line_hash(const char *text, size_t len, unsigned char ret[SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, "", 1);
	sha256_add(&s, text, len);
	sha256_end(&s, ret);
}

static void put_time(struct buf *out)
{
	struct timespec t;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	(void)gmtime_r(&t.tv_sec, &tm);
	buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ",
		   (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday,
		   tm.tm_hour, tm.tm_min, tm.tm_sec, t.tv_nsec / 1000);
}

int line_format(struct buf *out, const struct line_head *head,
		const char *members, size_t len)
{
	char prev[HASH_HEX + 1];
	size_t start = out->len;

	hex_format(head->prev, SHA256_SIZE, prev);
	buf_printf(out, PREV "%s" TIME, prev);
	put_time(out);
	buf_printf(out, SEQ "%llu" KIND "%s\"", (unsigned long long)head->seq,
		   head->kind);
	if (len > 0) {
		buf_puts(out, ",");
		buf_add(out, members, len);
	}
	if (out->error)
		return out->error;
	buf_printf(out, CRC "%08x\"}\n",
		   crc32c(out->data + start, out->len - start));
	if (!out->error && out->len - start > LINE_MAX_SIZE)
		out->error = -E2BIG;
	return out->error;
}

static bool is_time(const char *t)
{
	static const char form[] = "0000-00-00T00:00:00.000000Z";

	for (size_t i = 0; i < LINE_TIME; i++)
		if (form[i] == '0' ? t[i] < '0' || t[i] > '9' : t[i] != form[i])
			return false;
	return true;
}

/* Moves *p past `text` if that stands there. */
static bool eat(const char **p, const char *end, const char *text, size_t len)
{
	if ((size_t)(end - *p) < len || memcmp(*p, text, len) != 0)
		return false;
	*p += len;
	return true;
}

/* No leading zero, nothing above what fits. */
static bool eat_seq(const char **p, const char *end, uint64_t *ret)
{
	uint64_t v = 0;
	const char *start = *p;

	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
		if (*p - start >= 18)
			return false;
		v = v * 10 + (uint64_t)(**p - '0');
	}
	*ret = v;
	return *p > start && *start != '0';
}

static bool eat_kind(const char **p, const char *end, struct line *ret)
{
	ret->kind = *p;
	while (*p < end && ((**p >= 'a' && **p <= 'z') || **p == '.'))
		(*p)++;
	ret->kind_len = (size_t)(*p - ret->kind);
	return ret->kind_len > 0 && eat(p, end, "\"", 1);
}

int line_peek(const char *text, size_t len, struct line *ret)
{
	const char *p = text;
	const char *end;

	if (len < SEQ_AT + CRC_TAIL || len >= LINE_MAX_SIZE)
		return -EBADMSG;
	end = text + len - CRC_TAIL;
	*ret = (struct line){ .text = text, .len = len };
	if (!eat(&p, end, PREV, LEN(PREV)) ||
	    hex_parse(p, ret->prev, SHA256_SIZE) < 0)
		return -EBADMSG;
	p += HASH_HEX;
	if (!eat(&p, end, TIME, LEN(TIME)) || !is_time(p))
		return -EBADMSG;
	ret->time = p;
	p += LINE_TIME;
	if (!eat(&p, end, SEQ, LEN(SEQ)) || !eat_seq(&p, end, &ret->seq) ||
	    !eat(&p, end, KIND, LEN(KIND)) || !eat_kind(&p, end, ret))
		return -EBADMSG;
	if (p < end && *p != ',')
		return -EBADMSG;
	ret->members = p < end ? p + 1 : p;
	ret->members_len = (size_t)(end - ret->members);
	return 0;
}

int line_parse(const char *text, size_t len, struct line *ret)
{
	unsigned char crc[4];
	const char *p = text + len - CRC_TAIL;
	uint32_t want;

	if (line_peek(text, len, ret) < 0)
		return -EBADMSG;
	if (memcmp(p, CRC, LEN(CRC)) != 0 ||
	    hex_parse(p + LEN(CRC), crc, sizeof(crc)) < 0 ||
	    memcmp(p + LEN(CRC) + 8, "\"}", 2) != 0)
		return -EBADMSG;
	want = (uint32_t)crc[0] << 24 | (uint32_t)crc[1] << 16 |
	       (uint32_t)crc[2] << 8 | crc[3];
	return crc32c(text, len - CRC_TAIL) == want ? 0 : -EBADMSG;
}

static int digits(const char *p, int n)
{
	int v = 0;

	for (; n > 0; n--, p++)
		v = v * 10 + (*p - '0');
	return v;
}

/* Days since 1970 in the Gregorian calendar; a year begins in March here. */
static int64_t days(int year, int month, int day)
{
	int64_t y = year - (month <= 2);
	int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day;

	return y * 365 + y / 4 - y / 100 + y / 400 + in_year - 1 - 719468;
}

/* By hand: sscanf() would look for the end of all that follows. */
int64_t line_time_us(const char time[LINE_TIME])
{
	int month;

	if (!is_time(time))
		return -1;
	month = digits(time + 5, 2);
	if (month < 1 || month > 12)
		return -1;
	return (days(digits(time, 4), month, digits(time + 8, 2)) * 86400 +
		digits(time + 11, 2) * 3600 + digits(time + 14, 2) * 60 +
		digits(time + 17, 2)) *
		       1000000 +
	       digits(time + 20, 6);
}
