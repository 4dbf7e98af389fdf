/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whole reads and writes, and messages with descriptors.
 *
 * A message travels over a SOCK_SEQPACKET socket: it arrives whole or not at
 * all, with the descriptors that belong to it. Received descriptors are
 * close-on-exec.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* The most descriptors one message carries. */
#define IO_MAX_FDS 208

/* Writes all of it; 0 or -errno. */
int io_write_all(int fd, const void *data, size_t len);

/* The same to a socket; a peer that is gone is -EPIPE and no signal. */
int io_send_all(int sock, const void *data, size_t len);

/*
 * Opens /dev/null as each number below `first` that is free: where standard
 * input or output was closed, nothing of ours may get its number.
 */
void io_hold_below(int first);

/* A memfd that nobody can change any more; 0 or -errno. */
int io_seal(int fd);

/* Reads until `len` bytes or the end; the number read, or -errno. */
ssize_t io_read_full(int fd, void *data, size_t len);

/* Reads a small file below `dirfd` as a string; its length, or -errno. */
ssize_t io_read_file(int dirfd, const char *path, char *buf, size_t size);

/* Writes a string to an existing file below `dirfd`; 0 or -errno. */
int io_write_file(int dirfd, const char *path, const char *text);

/* Sends one message; 0 or -errno. */
int io_send(int sock, const void *data, size_t len, const int *fds, int n_fds);

/* The same, but -EAGAIN where it would have to wait. */
int io_send_now(int sock, const void *data, size_t len, const int *fds,
		int n_fds);

/*
 * Receives one message of at most `len` bytes. Returns its length, 0 when
 * the peer is gone, or -errno. *ret_n_fds descriptors are the caller's.
 */
ssize_t io_recv(int sock, void *data, size_t len, int flags, int *ret_fds,
		int *ret_n_fds);
