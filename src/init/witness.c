/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The witness: in a box that tests a policy, the filter hands each socket(2)
 * to init, which gives the very answer that the filter gives otherwise, and
 * counts. So a test can tell a program that was kept from a network from one
 * that failed for another reason. Nothing of the call is looked at.
 */

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "init/init.h"
#include "os/uapi.h"

bool witness_refuse(int fd)
{
	struct uapi_notif asked;
	struct uapi_notif_answer answer = { .error = -EAFNOSUPPORT };

	memset(&asked, 0, sizeof(asked));
	/* Not there any more: the caller was killed meanwhile. */
	if (ioctl(fd, (int)UAPI_NOTIF_RECV, &asked) < 0)
		return false;
	answer.id = asked.id;
	(void)ioctl(fd, (int)UAPI_NOTIF_SEND, &answer);
	return true;
}
