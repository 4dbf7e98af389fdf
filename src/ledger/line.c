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

/* A nibble at a time: a table that needs no making. */
static uint32_t crc_plain(uint32_t c, const unsigned char *p, size_t len)
{
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
		0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
		0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};

	for (; len > 0; len--, p++) {
		c ^= *p;
		c = c >> 4 ^ table[c & 15];
		c = c >> 4 ^ table[c & 15];
	}
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

int64_t line_time_us(const char time[LINE_TIME])
{
	struct tm tm = { 0 };
	long us = 0;

	if (!is_time(time) ||
	    sscanf(time, "%4d-%2d-%2dT%2d:%2d:%2d.%6ld", &tm.tm_year,
		   &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec,
		   &us) != 7)
		return -1;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	return (int64_t)timegm(&tm) * 1000000 + us;
}
