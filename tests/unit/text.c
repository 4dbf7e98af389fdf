/* SPDX-License-Identifier: Apache-2.0 */

/* Buffers, lists of strings, errors, and JSON with the UTF-8 in it. */

#include "tests/tap.h"

#include <errno.h>

#include "base/err.h"
#include "base/json.h"
#include "base/strv.h"
#include "base/util.h"

TEST(buf_adds_up_to_its_ceiling_and_no_further)
{
	struct buf b;

	buf_init(&b, 10);
	CHECK_INT(buf_puts(&b, "12345"), 0);
	CHECK_INT(buf_puts(&b, "67890"), 0);
	CHECK_STR(b.data, "1234567890");
	CHECK_INT(buf_puts(&b, "x"), -E2BIG);
	CHECK_INT(b.error, -E2BIG);
	CHECK_STR(b.data, "1234567890");
	/* An error stays until the buffer is done with. */
	CHECK_INT(buf_add(&b, "", 0), -E2BIG);
	buf_done(&b);
	CHECK_INT(b.error, 0);
	CHECK_INT(buf_puts(&b, "again"), 0);
	buf_done(&b);
}

TEST(buf_refuses_a_length_that_would_wrap)
{
	struct buf b;

	buf_init(&b, SIZE_MAX / 2);
	CHECK_INT(buf_puts(&b, "abc"), 0);
	CHECK_INT(buf_add(&b, "x", SIZE_MAX), -E2BIG);
	CHECK_INT((long long)b.len, 3);
	buf_done(&b);
}

TEST(buf_grows_and_keeps_every_byte)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	for (int i = 0; i < 100000; i++) {
		char c = (char)('a' + i % 26);

		CHECK_INT(buf_add(&b, &c, 1), 0);
	}
	CHECK_INT((long long)b.len, 100000);
	for (int i = 0; i < 100000; i++)
		if (b.data[i] != 'a' + i % 26)
			CHECK(!"a byte was lost");
	CHECK(b.data[b.len] == '\0');
	buf_done(&b);
}

TEST(buf_take_moves_the_bytes_out)
{
	struct buf b;
	char *taken;

	buf_init(&b, 100);
	CHECK(!buf_take(&b));
	CHECK_INT(buf_printf(&b, "%d-%s", 7, "x"), 0);
	taken = buf_take(&b);
	CHECK_STR(taken, "7-x");
	CHECK(!b.data && b.len == 0);
	CHECK_INT(buf_puts(&b, "y"), 0);
	CHECK_STR(b.data, "y");
	free(taken);
	buf_done(&b);
}

TEST(buf_printf_does_not_cut)
{
	char text[2000];
	struct buf b;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	buf_init(&b, 10000);
	CHECK_INT(buf_printf(&b, "%s", text), -E2BIG);
	CHECK_INT((long long)b.len, 0);
	buf_done(&b);
}

TEST(strv_is_ended_by_null)
{
	struct strv s = { 0 };
	char word[] = "a";

	CHECK_INT(strv_add(&s, word), 0);
	word[0] = 'b';
	CHECK_INT(strv_add(&s, word), 0);
	CHECK_INT((long long)s.n, 2);
	CHECK_STR(s.v[0], "a");
	CHECK_STR(s.v[1], "b");
	CHECK(!s.v[2]);
	strv_done(&s);
	CHECK(!s.v && s.n == 0);
	strv_done(&s);
}

TEST(err_says_what_failed_and_is_wrapped_outward)
{
	struct err e = { 0 };

	CHECK_INT(err_errno(&e, ENOENT, "open '%s'", "x"), -ENOENT);
	CHECK_STR(e.text, "open 'x': No such file or directory");
	CHECK_INT(err_wrap(&e, "image '%s'", "y"), -ENOENT);
	CHECK_STR(e.text, "image 'y': open 'x': No such file or directory");
	CHECK_INT(err_stage(&e, "root"), -ENOENT);
	CHECK_INT(err_stage(&e, "later"), -ENOENT);
	CHECK_STR(e.stage, "root");
	CHECK_INT(err_set(NULL, EPERM, "x"), -EPERM);
	CHECK_INT(err_errno(NULL, EPERM, "x"), -EPERM);
}

TEST(err_keeps_within_its_text)
{
	struct err e = { 0 };
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 5; i++) {
		(void)err_errno(&e, EIO, "%s", text);
		CHECK_INT((long long)strlen(e.text), sizeof(e.text) - 1);
		(void)err_wrap(&e, "%s", text);
		CHECK(strlen(e.text) < sizeof(e.text));
	}
}

/* Wherever it is cut, it is between two characters. */
TEST(err_is_cut_between_characters)
{
	static const char *const letters[] = { "\xc3\xa9", "\xe2\x82\xac",
					       "\xf0\x9f\x98\x80" };

	for (size_t i = 0; i < ARRAY_SIZE(letters); i++)
		for (int before = 0; before < 5; before++) {
			struct err e = { 0 };
			struct buf text;

			buf_init(&text, 4096);
			for (int n = 0; n < before; n++)
				(void)buf_puts(&text, "a");
			for (int n = 0; n < 300; n++)
				(void)buf_puts(&text, letters[i]);
			(void)err_set(&e, EIO, "%s", text.data);
			CHECK(utf8_check(e.text, strlen(e.text)));
			CHECK(strlen(e.text) + 4 >= sizeof(e.text));
			(void)err_wrap(&e, "%s", text.data);
			CHECK(utf8_check(e.text, strlen(e.text)));
			(void)err_errno(&e, EIO, "%s", text.data);
			CHECK(utf8_check(e.text, strlen(e.text)));
			buf_done(&text);
		}
}

TEST(what_is_no_utf8_is_replaced)
{
	struct buf b;

	buf_init(&b, 100);
	utf8_repair(&b, "a\xc3\xa9\xff\xe2\x82", 6);
	CHECK_STR(b.data, "a\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	buf_done(&b);
}

static const struct {
	const char *bytes;
	size_t first; /* length of the first sequence, 0: none */
	bool whole;
} sequences[] = {
	{ "a", 1, true },
	{ "\x7f", 1, true },
	{ "\xc2\x80", 2, true },         /* U+0080, the first of two */
	{ "\xdf\xbf", 2, true },         /* U+07FF */
	{ "\xe0\xa0\x80", 3, true },     /* U+0800 */
	{ "\xed\x9f\xbf", 3, true },     /* U+D7FF */
	{ "\xee\x80\x80", 3, true },     /* U+E000 */
	{ "\xef\xbf\xbd", 3, true },     /* U+FFFD */
	{ "\xef\xbf\xbf", 3, true },     /* U+FFFF */
	{ "\xf0\x90\x80\x80", 4, true }, /* U+10000 */
	{ "\xf4\x8f\xbf\xbf", 4, true }, /* U+10FFFF */
	{ "\x80", 0, false },            /* continuation alone */
	{ "\xbf", 0, false },
	{ "\xc0\x80", 0, false }, /* overlong NUL */
	{ "\xc1\xbf", 0, false },
	{ "\xc2", 0, false }, /* cut */
	{ "\xc2\x41", 0, false },
	{ "\xe0\x80\x80", 0, false }, /* overlong */
	{ "\xe0\x9f\xbf", 0, false },
	{ "\xe0\xa0", 0, false },
	{ "\xed\xa0\x80", 0, false }, /* surrogates */
	{ "\xed\xbf\xbf", 0, false },
	{ "\xf0\x80\x80\x80", 0, false },
	{ "\xf0\x8f\xbf\xbf", 0, false },
	{ "\xf0\x90\x80", 0, false },
	{ "\xf4\x90\x80\x80", 0, false }, /* above U+10FFFF */
	{ "\xf5\x80\x80\x80", 0, false },
	{ "\xfe", 0, false },
	{ "\xff", 0, false },
	{ "a\xff", 1, false },
	{ "\xe2\x82\xac\x41", 3, true },
	{ "\xe2\x82\xac\xe2\x82", 3, false },
};

TEST(utf8_table)
{
	for (size_t i = 0; i < ARRAY_SIZE(sequences); i++) {
		const char *s = sequences[i].bytes;
		size_t n = utf8_len((const unsigned char *)s, strlen(s));

		if (n == sequences[i].first &&
		    utf8_check(s, strlen(s)) == sequences[i].whole)
			continue;
		printf("# row %zu gave %zu\n", i, n);
		CHECK(!"the row above");
	}
	CHECK_INT((long long)utf8_len((const unsigned char *)"", 0), 0);
	CHECK(utf8_check("", 0));
	CHECK(utf8_check("a\0b", 3));
}

/* Encodes by the definition, to hold against utf8_len(). */
static size_t encode(unsigned int c, unsigned char *out)
{
	if (c < 0x80) {
		out[0] = (unsigned char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (unsigned char)(0xc0 | c >> 6);
		out[1] = (unsigned char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (unsigned char)(0xe0 | c >> 12);
		out[1] = (unsigned char)(0x80 | (c >> 6 & 63));
		out[2] = (unsigned char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (unsigned char)(0xf0 | c >> 18);
	out[1] = (unsigned char)(0x80 | (c >> 12 & 63));
	out[2] = (unsigned char)(0x80 | (c >> 6 & 63));
	out[3] = (unsigned char)(0x80 | (c & 63));
	return 4;
}

TEST(utf8_every_character_and_no_surrogate)
{
	for (unsigned int c = 0; c <= 0x10ffff; c++) {
		unsigned char bytes[4];
		size_t n = encode(c, bytes);
		size_t want = c >= 0xd800 && c <= 0xdfff ? 0 : n;

		if (utf8_len(bytes, n) == want && utf8_len(bytes, n - 1) == 0)
			continue;
		printf("# U+%04X\n", c);
		CHECK(!"the character above");
		return;
	}
}

static char *document(void (*fill)(struct json *j))
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, 1 << 20);
	fill(&j);
	CHECK_INT(out.error, 0);
	return buf_take(&out);
}

static void fill_shapes(struct json *j)
{
	json_open(j, NULL, '{');
	json_int(j, "int", INT64_MIN);
	json_int(j, "max", INT64_MAX);
	json_decimal(j, "real", 0.126);
	json_bool(j, "yes", true);
	json_bool(j, "no", false);
	json_none(j, "nothing");
	json_str(j, "text", "a");
	json_str(j, "absent", NULL);
	json_open(j, "list", '[');
	json_int(j, NULL, 1);
	json_open(j, NULL, '{');
	json_close(j, '}');
	json_open(j, NULL, '[');
	json_close(j, ']');
	json_str(j, NULL, "");
	json_close(j, ']');
	json_str(j, "na\"me", "x");
	json_close(j, '}');
}

TEST(json_commas_stand_where_they_belong)
{
	char *text = document(fill_shapes);

	CHECK_STR(text, "{\"int\":-9223372036854775808,"
			"\"max\":9223372036854775807,\"real\":0.13,"
			"\"yes\":true,\"no\":false,\"nothing\":null,"
			"\"text\":\"a\",\"absent\":null,"
			"\"list\":[1,{},[],\"\"],\"na\\\"me\":\"x\"}");
	free(text);
}

static void fill_bytes(struct json *j)
{
	json_open(j, NULL, '[');
	json_bytes(j, NULL, "a\0b", 3);
	json_str(j, NULL, "\"\\\b\f\n\r\t\x01\x1f\x7f");
	json_str(j, NULL, "\xe2\x82\xac");
	json_str(j, NULL, "\xff-\xc2-\xe2\x82");
	json_close(j, ']');
}

TEST(json_strings_hold_any_bytes)
{
	char *text = document(fill_bytes);

	CHECK_STR(text, "[\"a\\u0000b\","
			"\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\","
			"\"\xe2\x82\xac\","
			"\"\xef\xbf\xbd-\xef\xbf\xbd-"
			"\xef\xbf\xbd\xef\xbf\xbd\"]");
	CHECK(utf8_check(text, strlen(text)));
	free(text);
}

static void fill_base64(struct json *j)
{
	/* RFC 4648, section 10. */
	static const char *const words[] = { "",     "f",     "fo",    "foo",
					     "foob", "fooba", "foobar" };

	json_open(j, NULL, '[');
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		json_base64(j, NULL, words[i], strlen(words[i]));
	json_base64(j, NULL, "\xff\xfe\xfd\0", 4);
	json_close(j, ']');
}

TEST(json_base64_of_the_rfc)
{
	char *text = document(fill_base64);

	CHECK_STR(text, "[\"\",\"Zg==\",\"Zm8=\",\"Zm9v\",\"Zm9vYg==\","
			"\"Zm9vYmE=\",\"Zm9vYmFy\",\"//79AA==\"]");
	free(text);
}

TAP_MAIN()
