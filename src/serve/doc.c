/* SPDX-License-Identifier: Apache-2.0 */

/* Documents and answers between the daemon's processes; see daemon.h. */

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "serve/daemon.h"

int doc_seal(const struct buf *text, struct err *err)
{
	_cleanup_fd_ int fd = memfd_create("cordon-doc",
					   MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (text->error)
		return err_set(err, -text->error, "the document is too long");
	if (fd < 0 || io_write_all(fd, text->data, text->len) < 0 ||
	    io_seal(fd) < 0)
		return err_errno(err, errno, "make a document");
	return take_fd(&fd);
}

int doc_read(int fd, struct buf *ret, struct err *err)
{
	struct stat st;
	char chunk[16384];
	off_t at = 0;
	ssize_t n;

	/* A pipe or a terminal could make us wait. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "a document is not a file");
	while ((n = pread(fd, chunk, sizeof(chunk), at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "read a document");
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return err_set(err, -ret->error,
				       "a document is too long");
		at += n;
	}
	/* So that there is always text, if none of it. */
	return buf_add(ret, "", 0) < 0 ? ret->error : 0;
}

int answer_send(int sock, const struct order_answer *a, const int *fds, int n)
{
	return io_send(sock, a, sizeof(*a), fds, n);
}
