/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a gate reads from outside to find an address. The first byte says what
 * the rest is: an answer to a question for A ('4') or AAAA ('6') of "ok.test"
 * with id 0x1234, a resolv.conf ('r'), a hosts file ('h'). Whatever comes, no
 * more addresses than there is room for, each of the kind that was asked for.
 */

#include <ldns/ldns.h>
#include <string.h>

#include "fuzz.h"
#include "gate/address.h"
#include "gate/resolve.h"

/* All doors: an address, none, a failure, not ours, a server, a host. */
const unsigned int fuzz_doors = 63;
static unsigned int entered;

unsigned int fuzz_entered(void)
{
	return entered;
}

static void check(const struct addresses *a, unsigned int max)
{
	char text[64];

	MUST(a->n <= max);
	for (unsigned int i = 0; i < a->n; i++) {
		address_text(a->address[i], text);
		MUST(text[0] && strlen(text) < 46);
		/* A reason, and the block that it is for, go together. */
		MUST(address_judge(a->address[i]) != GATE_OK ||
		     !address_block(a->address[i]));
	}
}

static void answer(const uint8_t *data, size_t size, uint16_t type)
{
	struct question q = { .name = "ok.test", .type = type, .id = 0x1234 };
	struct addresses found;
	enum answered how = answer_read(&q, data, size, &found);

	entered |= how == ANSWER_FOUND ? 1U : how == ANSWER_NONE ? 2U : 0U;
	entered |= how == ANSWER_FAILED ? 4U : how == ANSWER_NOT_OURS ? 8U : 0U;
	MUST((how == ANSWER_FOUND) == (found.n > 0));
	check(&found, RESOLVE_FAMILY);
	for (unsigned int i = 0; i < found.n; i++)
		MUST(type == LDNS_RR_TYPE_AAAA ||
		     address_is_v4(found.address[i]));
}

static void conf(const char *text, size_t size)
{
	struct resolve_conf c;

	resolve_conf_parse(&c, text, size);
	MUST(c.n_servers >= 1 && c.n_servers <= RESOLVE_SERVERS);
	MUST(c.timeout_ms >= 1000 && c.timeout_ms <= 10000);
	MUST(c.attempts >= 1 && c.attempts <= 5);
	for (unsigned int i = 0; i < c.n_servers; i++)
		MUST(c.servers[i].any.sa_family == AF_INET ||
		     c.servers[i].any.sa_family == AF_INET6);
	entered |= c.n_servers > 1 ? 16 : 0;
}

static void hosts(const char *text, size_t size)
{
	struct addresses found = { 0 };

	hosts_find(text, size, "ok.test", &found);
	check(&found, RESOLVE_ADDRESSES);
	entered |= found.n ? 32 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	entered = 0;
	if (size < 1 || size > 1 << 16)
		return 0;
	if (data[0] == 'r')
		conf((const char *)data + 1, size - 1);
	else if (data[0] == 'h')
		hosts((const char *)data + 1, size - 1);
	else
		answer(data + 1, size - 1,
		       data[0] == '6' ? LDNS_RR_TYPE_AAAA : LDNS_RR_TYPE_A);
	return 0;
}
