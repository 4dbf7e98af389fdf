/* SPDX-License-Identifier: Apache-2.0 */
#include <cordon/cordon.h>

unsigned int cordon_abi(void)
{
	return CORDON_ABI;
}

const char *cordon_version(void)
{
	return CORDON_VERSION;
}
