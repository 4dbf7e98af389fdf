/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/plain.h"

#include <errno.h>

/* RFC 1035: 63 bytes in a label, 253 in a name as it is written. */
#define LABEL_MAX 63
#define NAME_MAX_ 253

/* The byte in its plain form; 0: no name has it. */
static char plain_byte(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c | 0x20);
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
	    c == '_')
		return c;
	return 0;
}

int plain_name(const char *text, size_t len, char ret[GATE_HOST_MAX])
{
	size_t label = 0;

	ret[0] = '\0';
	if (len > 0 && text[len - 1] == '.')
		len--;
	if (len == 0 || len > NAME_MAX_)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		bool is_end = text[i] == '.';

		ret[i] = is_end ? '.' : plain_byte(text[i]);
		if (!ret[i] || (is_end && label == 0) || label > LABEL_MAX)
			goto bad;
		label = is_end ? 0 : label + 1;
	}
	ret[len] = '\0';
	if (label > 0 && label <= LABEL_MAX)
		return 0;
bad:
	ret[0] = '\0';
	return -EINVAL;
}
