/* SPDX-License-Identifier: Apache-2.0 */

/* A program's headers: whatever is read from them lies inside the file. */

#include <string.h>

#include "box/elf.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_needs n;

	if (elf_read(data, size, &n) == 0) {
		MUST(!n.loader[0] || n.loader[0] == '/');
		MUST(strlen(n.runpath) < sizeof(n.runpath));
		for (size_t i = 0; i < n.libraries.n; i++)
			MUST(strlen(n.libraries.v[i]) < size);
	}
	elf_needs_done(&n);
	return 0;
}
