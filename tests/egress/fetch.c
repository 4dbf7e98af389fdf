/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fetch HOST PORT: each address that the C library gives for a name, and what
 * an HTTP server says at the first. Made with musl for the tests, whose
 * resolver asks for both kinds at once and waits for each.
 */

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int talk(int fd, const char *host)
{
	char text[4096];
	ssize_t n;

	n = snprintf(text, sizeof(text),
		     "GET /musl HTTP/1.0\r\nHost: %s\r\n\r\n", host);
	if (write(fd, text, (size_t)n) != n)
		return 1;
	while ((n = read(fd, text, sizeof(text))) > 0)
		(void)fwrite(text, 1, (size_t)n, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	const struct addrinfo want = { .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;
	int r = argc == 3 ? getaddrinfo(argv[1], argv[2], &want, &list)
			  : EAI_FAIL;
	int fd;

	if (r != 0 || !list) {
		printf("no address: %s\n", gai_strerror(r));
		return 1;
	}
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		printf("family %d\n", a->ai_family);
	fd = socket(list->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, list->ai_addr, list->ai_addrlen) < 0) {
		perror("connect");
		return 1;
	}
	return talk(fd, argv[1]);
}
