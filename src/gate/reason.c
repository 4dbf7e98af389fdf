/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/reason.h"

#include "base/util.h"

static const struct {
	const char *word;
	const char *text;
} reasons[] = {
	[GATE_OK] = { "ok", "allowed" },
	[GATE_R_NO_RULE] = { "no_rule", "no rule names this host and port" },
	[GATE_R_METADATA] = { "metadata",
			      "a cloud's metadata is never reachable" },
	[GATE_R_PRIVATE] = { "private_address", "the name leads to an address "
						"that is not public" },
	[GATE_R_NOT_A_NAME] = { "not_a_name", "no host has such a name" },
	[GATE_R_RESOLVE] = { "not_resolved", "the name could not be resolved" },
	[GATE_R_UNREACHABLE] = { "unreachable",
				 "nobody answered at its addresses" },
	[GATE_R_SERVER_NAME] = { "server_name", "TLS asks for another name "
						"than was resolved" },
	[GATE_R_NO_NAME] = { "no_server_name",
			     "TLS asks for no name, or hides it" },
	[GATE_R_HTTP_HOST] = { "http_host",
			       "HTTP asks for another host than was resolved" },
	[GATE_R_HTTP] = { "http_ambiguous",
			  "a request of HTTP, or its answer, can be read in "
			  "two ways" },
	[GATE_R_METHOD] = { "method", "no rule allows this method" },
	[GATE_R_PATH] = { "path", "no rule allows this path" },
	[GATE_R_OVERRIDE] = { "override", "a header asks for another method or "
					  "path than was judged" },
	[GATE_R_BYTES] = { "bytes", "the rule's quota of bytes is used up" },
	[GATE_R_CONNECTIONS] = { "connections",
				 "too many connections at the same time" },
	[GATE_R_RATE] = { "rate", "more new connections than the rule's rate" },
	[GATE_R_TIME] = { "time", "nothing was said for too long" },
	[GATE_R_CERTIFICATE] = { "certificate",
				 "the server's certificate is not trusted" },
	[GATE_R_PLACEHOLDER] = { "placeholder", "a secret's placeholder where "
						"it may not stand" },
	[GATE_R_CLEAR] = { "secret_in_clear",
			   "a secret is not sent without TLS, but to port 80 "
			   "or to this machine" },
	[GATE_R_NOT_APPROVED] = { "not_approved", "nobody approved it" },
	[GATE_R_REPLACED] = { "replaced", "a new policy does not allow it" },
	[GATE_R_FULL] = { "full", "the gate has no room for more" },
	[GATE_R_RESET] = { "reset", "one side broke the connection off" },
	[GATE_R_LEFT] = { "left", "the program left before it was let "
				  "through; nothing was sent" },
	[GATE_R_PORT] = { "port", "no rule names this port" },
	[GATE_R_UDP] = { "udp", "UDP leads nowhere" },
	[GATE_R_ADDRESS] = { "address", "no rule names this address, so there "
					"is no route to it" },
	[GATE_R_NO_HTTP1] = { "no_http1",
			      "TLS offers no HTTP/1.1, which is what can be "
			      "looked into: have the client offer it" },
};

_Static_assert(ARRAY_SIZE(reasons) == GATE_REASONS, "a reason has no words");

const char *gate_reason_word(enum gate_reason r)
{
	return (unsigned int)r < GATE_REASONS ? reasons[r].word : "unknown";
}

const char *gate_reason_text(enum gate_reason r)
{
	return (unsigned int)r < GATE_REASONS ? reasons[r].text
					      : "for no known reason";
}
