/* SPDX-License-Identifier: Apache-2.0 */

/* sd_notify(3) is one datagram; its library would be linked for that alone. */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/util.h"
#include "serve/daemon.h"

void notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = NO_FD;
	size_t len = path ? strlen(path) : 0;

	if (len < 2 || len >= sizeof(a.sun_path) || !strchr("/@", path[0]))
		return;
	memcpy(a.sun_path, path, len);
	if (path[0] == '@')
		a.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL,
			     (const struct sockaddr *)&a,
			     (socklen_t)(offsetof(struct sockaddr_un,
						  sun_path) +
					 len));
}
