/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/values.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/regex.h"
#include "base/util.h"
#include "policy/never.h"

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Not empty, at most `max`, of these characters alone. */
static bool only(const char *t, const char *chars, size_t max)
{
	size_t len = strlen(t);

	return len > 0 && len <= max && strspn(t, chars) == len;
}

static bool has_control(const char *t)
{
	for (; *t; t++)
		if ((unsigned char)*t < 0x20 || *t == 0x7f)
			return true;
	return false;
}

bool value_is_time(const char *t)
{
	uint64_t us;

	return num_parse_duration(t, &us) == 0 && us >= 1000;
}

bool value_is_size(const char *t)
{
	uint64_t n;

	return num_parse_size(t, &n) == 0;
}

static bool is_size_from(const char *t, uint64_t least)
{
	uint64_t n;

	return num_parse_size(t, &n) == 0 && n >= least;
}

bool value_is_some(const char *t)
{
	return is_size_from(t, 1);
}

bool value_is_size_or_none(const char *t)
{
	return strcmp(t, "none") == 0 || value_is_some(t);
}

bool value_is_memory(const char *t)
{
	return is_size_from(t, 1 << 20);
}

bool value_is_cpus(const char *t)
{
	uint64_t milli;

	return num_parse_milli(t, &milli) == 0 && milli >= 10 &&
	       milli <= 4096000;
}

bool value_is_pids(const char *t)
{
	uint64_t n;

	return num_parse(t, 4194304, &n) == 0 && n >= 2;
}

bool value_is_files(const char *t)
{
	uint64_t n;

	return num_parse(t, 1048576, &n) == 0 && n >= 16;
}

static int one_id(const char *t, uint32_t *ret)
{
	uint64_t n = 0;

	if (strcmp(t, "root") == 0)
		n = 0;
	else if (strcmp(t, "nobody") == 0 || strcmp(t, "nogroup") == 0)
		n = 65534;
	else if (num_parse(t, UINT32_MAX - 1, &n) < 0)
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

int value_user(const char *t, uint32_t *ret_uid, uint32_t *ret_gid)
{
	char text[64];
	char *colon;
	uint32_t uid = 0;
	uint32_t gid = 0;

	if (strlen(t) >= sizeof(text))
		return -EINVAL;
	(void)strcpy(text, t);
	colon = strchr(text, ':');
	if (colon)
		*colon++ = '\0';
	if (one_id(text, &uid) < 0)
		return -EINVAL;
	gid = uid;
	if (colon && one_id(colon, &gid) < 0)
		return -EINVAL;
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}

bool value_is_user(const char *t)
{
	uint32_t uid;
	uint32_t gid;

	return value_user(t, &uid, &gid) == 0;
}

bool value_is_box_path(const char *t)
{
	size_t len = strlen(t);

	if (t[0] != '/' || len < 2 || len >= 4096 || has_control(t) ||
	    t[len - 1] == '/' || strstr(t, "//"))
		return false;
	for (const char *p = t; (p = strstr(p, "/.")); p++) {
		size_t n = strcspn(p + 1, "/");

		if (n == 1 || (n == 2 && p[2] == '.'))
			return false;
	}
	return true;
}

bool value_is_host_path(const char *t)
{
	return *t && strlen(t) < 4096 && !has_control(t);
}

bool value_is_env_name(const char *t)
{
	return only(t, LETTERS DIGITS "_", 255) && !strchr(DIGITS, t[0]);
}

bool value_is_image(const char *t)
{
	return only(t, LETTERS DIGITS "._-/:@*?[]", 512);
}

int value_isolation_rank(const char *t)
{
	if (strcmp(t, "native") == 0)
		return 0;
	if (strcmp(t, "docker") == 0 || strncmp(t, "oci:", 4) == 0)
		return 1;
	return strcmp(t, "vm") == 0 ? 2 : -1;
}

bool value_is_isolation(const char *t)
{
	if (strncmp(t, "oci:", 4) == 0)
		return only(t + 4, LETTERS DIGITS "._-", 64);
	return value_isolation_rank(t) >= 0;
}

int value_address(const char *t, unsigned char ret[16])
{
	unsigned char v4[4];

	if (inet_pton(AF_INET, t, v4) == 1) {
		memset(ret, 0, 10);
		ret[10] = 0xff;
		ret[11] = 0xff;
		memcpy(ret + 12, v4, 4);
		return 0;
	}
	return inet_pton(AF_INET6, t, ret) == 1 ? 0 : -EINVAL;
}

int value_cidr(const char *t, unsigned char ret[16], unsigned int *ret_bits)
{
	char text[64];
	char *slash;
	uint64_t bits = 128;
	bool v4;

	if (strlen(t) >= sizeof(text))
		return -EINVAL;
	(void)strcpy(text, t);
	slash = strchr(text, '/');
	if (slash)
		*slash++ = '\0';
	v4 = !strchr(text, ':');
	if (value_address(text, ret) < 0)
		return -EINVAL;
	if (slash) {
		if (num_parse(slash, v4 ? 32 : 128, &bits) < 0)
			return -EINVAL;
		bits += v4 ? 96 : 0;
	}
	*ret_bits = (unsigned int)bits;
	return 0;
}

/*
 * A last label of digits, or one that starts with 0x, would be read as an
 * address by resolvers (2130706433, 0x7f000001, 127.1): that is no name.
 */
static bool is_numeric_label(const char *label)
{
	size_t len = strlen(label);

	return strspn(label, DIGITS) == len || strncmp(label, "0x", 2) == 0;
}

int value_host_name(const char *t, char *ret, unsigned int size)
{
	size_t len = strlen(t);
	size_t label = 0;
	const char *dot;

	if (len > 0 && t[len - 1] == '.')
		len--;
	if (len == 0 || len > 253 || len >= size)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		char c = t[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c != '.' && !strchr(LETTERS DIGITS "-_", c))
			return -EINVAL;
		if (c == '.' && (label == 0 || t[i - 1] == '-'))
			return -EINVAL;
		if (c == '-' && label == 0)
			return -EINVAL;
		label = c == '.' ? 0 : label + 1;
		if (label > 63)
			return -EINVAL;
		ret[i] = c;
	}
	ret[len] = '\0';
	dot = strrchr(ret, '.');
	if (label == 0 || is_numeric_label(dot ? dot + 1 : ret))
		return -EINVAL;
	return 0;
}

/* There is no open network: a block has a sender's name, so to speak. */
static bool is_too_wide(const unsigned char address[16], unsigned int bits)
{
	static const unsigned char v4[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(address, v4, sizeof(v4)) == 0 ? bits < 96 + 8 : bits < 7;
}

static bool overlaps(const unsigned char a[16], unsigned int a_bits,
		     const char *block)
{
	unsigned char b[16];
	unsigned int bits;

	if (value_cidr(block, b, &bits) < 0)
		return true;
	if (a_bits < bits)
		bits = a_bits;
	return memcmp(a, b, bits / 8) == 0 &&
	       (bits % 8 == 0 || ((a[bits / 8] ^ b[bits / 8]) &
				  (0xff00U >> bits % 8) & 0xff) == 0);
}

/* Where the names of a box lead (gate/table.h). */
static bool is_of_boxes(const unsigned char address[16], unsigned int bits)
{
	return overlaps(address, bits, "198.18.0.0/15") ||
	       overlaps(address, bits, "2001:2::/48");
}

bool value_is_host(const char *t)
{
	unsigned char address[16];
	unsigned int bits;
	char name[256];

	if (value_cidr(t, address, &bits) == 0)
		return !is_too_wide(address, bits) &&
		       !is_of_boxes(address, bits) &&
		       (bits < 128 || !never_reached(address));
	if (strncmp(t, "*.", 2) == 0)
		t += 2;
	else if (value_host_name(t, name, sizeof(name)) == 0)
		return !never_resolved(name);
	return value_host_name(t, name, sizeof(name)) == 0;
}

bool value_is_port(const char *t)
{
	uint64_t n;

	return num_parse(t, 65535, &n) == 0 && n > 0 && n != VALUE_DNS_PORT;
}

int value_endpoint(const char *t, char *ret_host, uint16_t *ret_port)
{
	unsigned char address[16];
	const char *colon = strrchr(t, ':');
	uint64_t port;
	size_t len;

	if (!colon || num_parse(colon + 1, 65535, &port) < 0 || port == 0)
		return -EINVAL;
	len = (size_t)(colon - t);
	if (t[0] == '[' && len > 2 && t[len - 1] == ']') {
		t++;
		len -= 2;
	} else if (memchr(t, ':', len)) {
		return -EINVAL;
	}
	if (len == 0 || len > 253)
		return -EINVAL;
	memcpy(ret_host, t, len);
	ret_host[len] = '\0';
	*ret_port = (uint16_t)port;
	if (value_address(ret_host, address) == 0)
		return 0;
	return value_host_name(ret_host, ret_host, 256);
}

bool value_is_endpoint(const char *t)
{
	char host[256];
	uint16_t port;

	return value_endpoint(t, host, &port) == 0;
}

/* The host of TEXT[:PORT]; brackets are needed where it has colons itself. */
static int split_target(const char *t, char *host, uint16_t *ret_port)
{
	const char *colon = strrchr(t, ':');
	size_t len = strlen(t);
	uint64_t port = 0;

	if (colon && (t[0] != '[' || strchr(t, ']') == colon - 1) &&
	    (t[0] == '[' || strchr(t, ':') == colon)) {
		if (num_parse(colon + 1, 65535, &port) < 0 || port == 0)
			return -EINVAL;
		len = (size_t)(colon - t);
	}
	if (t[0] == '[') {
		if (len < 3 || t[len - 1] != ']' || !memchr(t, ':', len))
			return -EINVAL;
		t++;
		len -= 2;
	}
	if (len == 0 || len > 255)
		return -EINVAL;
	memcpy(host, t, len);
	host[len] = '\0';
	*ret_port = (uint16_t)port;
	return 0;
}

int value_target(const char *t, char *ret_host, uint16_t *ret_port)
{
	unsigned char address[16];
	unsigned int bits;
	size_t star;

	if (split_target(t, ret_host, ret_port) < 0)
		return -EINVAL;
	if (value_cidr(ret_host, address, &bits) == 0)
		return 0;
	star = strncmp(ret_host, "*.", 2) == 0 ? 2 : 0;
	return value_host_name(ret_host + star, ret_host + star,
			       (unsigned int)(256 - star));
}

bool value_is_name_end(const char *t)
{
	unsigned char address[16];
	unsigned int bits;
	char host[256];
	uint16_t port;

	return value_target(t, host, &port) == 0 && host[0] != '*' &&
	       value_cidr(host, address, &bits) < 0;
}

bool value_is_reached(const char *t)
{
	unsigned char address[16];
	char host[256];
	uint16_t port;

	return value_target(t, host, &port) == 0 &&
	       value_address(host, address) == 0 && !never_reached(address);
}

bool value_is_secret_name(const char *t)
{
#define TRUST_NAME(name, is_more) name,
	static const char *const ours[] = { VALUE_TRUST_NAMES(TRUST_NAME) };
#undef TRUST_NAME

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strcmp(t, ours[i]) == 0)
			return false;
	return value_is_env_name(t);
}

int value_rate(const char *t, uint64_t *ret_count, uint32_t *ret_seconds)
{
	static const struct {
		const char *unit;
		uint32_t seconds;
	} units[] = { { "", 60 }, { "/m", 60 }, { "/s", 1 }, { "/h", 3600 } };
	size_t len = strspn(t, DIGITS);
	char digits[16];
	uint64_t n;

	if (len == 0 || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, t, len);
	digits[len] = '\0';
	if (num_parse(digits, 1000000, &n) < 0 || n == 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strcmp(t + len, units[i].unit) == 0) {
			*ret_count = n;
			*ret_seconds = units[i].seconds;
			return 0;
		}
	return -EINVAL;
}

bool value_is_rate(const char *t)
{
	uint32_t seconds;
	uint64_t n;

	return value_rate(t, &n, &seconds) == 0;
}

bool value_is_connections(const char *t)
{
	uint64_t n;

	return num_parse(t, 65535, &n) == 0 && n > 0;
}

bool value_is_wait(const char *t)
{
	uint64_t us;

	return num_parse_duration(t, &us) == 0 && us <= 3600000000ULL;
}

/* A field of a query or a body: plain, so that no coding can hide it. */
bool value_is_field(const char *t)
{
	return only(t, LETTERS DIGITS "._-", 128);
}

bool value_is_method(const char *t)
{
	static const char all[] = VALUE_METHODS("\0");

	for (const char *m = all; m < all + sizeof(all); m += strlen(m) + 1)
		if (strcmp(m, t) == 0)
			return true;
	return false;
}

bool value_is_url_path(const char *t)
{
	return t[0] == '/' && strlen(t) < 4096 && !has_control(t) &&
	       !strchr(t, ' ');
}

/* A name, but none of those that say where a request goes and ends. */
bool value_is_header(const char *t)
{
	static const char *const framing[] = {
		"host",       "content-length", "transfer-encoding",
		"connection", "upgrade",        "te",
		"trailer",    "expect",         "proxy-connection",
	};

	for (size_t i = 0; i < ARRAY_SIZE(framing); i++)
		if (strcasecmp(t, framing[i]) == 0)
			return false;
	return only(t, LETTERS DIGITS "!#$%&'*+-.^_`|~", 128);
}

/* One {}: a second would be a second copy of the secret. */
bool value_is_format(const char *t)
{
	const char *at = strstr(t, "{}");

	return !has_control(t) && strlen(t) < 256 && at &&
	       !strstr(at + 2, "{}");
}

bool value_is_program(const char *t)
{
	return only(t, LETTERS DIGITS "._+-[", 255) && t[0] != '-' &&
	       strcmp(t, ".") != 0 && strcmp(t, "..") != 0;
}

bool value_is_flag(const char *t)
{
	return t[0] == '-' && t[1] && strlen(t) < 256 && !has_control(t) &&
	       !strchr(t, ' ');
}

bool value_is_word(const char *t)
{
	return *t && !has_control(t);
}

bool value_is_text(const char *t)
{
	return *t != '\0';
}

bool value_is_regex(const char *t)
{
	struct regex *r = NULL;
	struct err err = { 0 };
	int code = regex_new(t, &r, &err);

	regex_free(r);
	return code == 0;
}

bool value_is_any(const char *t)
{
	(void)t;
	return true;
}

bool value_is_registry(const char *t)
{
	return only(t, LETTERS DIGITS ".-:", 255);
}

bool value_is_preset_or_path(const char *t)
{
	return value_is_host_path(t);
}
