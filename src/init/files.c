/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>
#include "init/init.h"
void files_serve(int sock)
{
	(void)sock;
	_exit(0);
}
