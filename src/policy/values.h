/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Values of a policy: whether a text is one. Pure. */

#include <stdbool.h>
#include <stdint.h>

/* The box's own resolver has it, whatever the address: no rule can. */
#define VALUE_DNS_PORT 53

bool value_is_time(const char *t);
bool value_is_size(const char *t);
bool value_is_some(const char *t); /* a size, not 0 */
bool value_is_size_or_none(const char *t);
bool value_is_cpus(const char *t);
bool value_is_pids(const char *t);
bool value_is_files(const char *t);
bool value_is_memory(const char *t);
bool value_is_user(const char *t);
bool value_is_box_path(const char *t);  /* absolute, plain */
bool value_is_host_path(const char *t); /* not empty */
bool value_is_env_name(const char *t);
/*
 * Variables that say where the authorities of a box are: a file, or one that
 * has more than what the program trusts by itself. Where there is a secret
 * Cordon sets all of them, so none can hold one.
 */
#define VALUE_TRUST_NAMES(X)                                                   \
	X("SSL_CERT_FILE", false)                                              \
	X("REQUESTS_CA_BUNDLE", false)                                         \
	X("CURL_CA_BUNDLE", false)                                             \
	X("GIT_SSL_CAINFO", false)                                             \
	X("PIP_CERT", false)                                                   \
	X("NODE_EXTRA_CA_CERTS", true)
bool value_is_secret_name(const char *t);
bool value_is_image(const char *t);
bool value_is_isolation(const char *t);
bool value_is_host(const char *t); /* a name, "*.name", address or CIDR */
bool value_is_port(const char *t); /* none that the gate has itself */
/*
 * Methods that a gate can let through: those of http-parser but for CONNECT and
 * TRACE, and the word for a WebSocket.
 */
#define VALUE_METHODS(sep)                                                     \
	"GET" sep "HEAD" sep "POST" sep "PUT" sep "PATCH" sep "DELETE" sep     \
	"OPTIONS" sep "WEBSOCKET" sep "ACL" sep "BIND" sep "CHECKOUT" sep      \
	"COPY" sep "LINK" sep "LOCK" sep "M-SEARCH" sep "MERGE" sep            \
	"MKACTIVITY" sep "MKCALENDAR" sep "MKCOL" sep "MOVE" sep "NOTIFY" sep  \
	"PROPFIND" sep "PROPPATCH" sep "PURGE" sep "REBIND" sep "REPORT" sep   \
	"SEARCH" sep "SOURCE" sep "SUBSCRIBE" sep "UNBIND" sep "UNLINK" sep    \
	"UNLOCK" sep "UNSUBSCRIBE"
bool value_is_method(const char *t);
bool value_is_url_path(const char *t);
bool value_is_header(const char *t);
bool value_is_format(const char *t);
bool value_is_endpoint(const char *t); /* HOST:PORT */
bool value_is_name_end(const char *t); /* NAME[:PORT] */
bool value_is_reached(const char *t);  /* ADDRESS[:PORT], no metadata */
bool value_is_rate(const char *t);     /* N, N/s, N/m, N/h */
bool value_is_connections(const char *t);
bool value_is_wait(const char *t); /* a time, or 0 */
bool value_is_field(const char *t);
bool value_is_program(const char *t); /* a name without a directory */
bool value_is_flag(const char *t);
bool value_is_word(const char *t);  /* not empty, one line */
bool value_is_text(const char *t);  /* not empty */
bool value_is_regex(const char *t); /* base/regex.h */
bool value_is_any(const char *t);
bool value_is_registry(const char *t);
bool value_is_preset_or_path(const char *t);

/* UID[:GID], root or nobody; 0 or -EINVAL. */
int value_user(const char *t, uint32_t *ret_uid, uint32_t *ret_gid);
/* HOST:PORT, [ADDRESS]:PORT; 0 or -EINVAL. `host` has room for 256. */
int value_endpoint(const char *t, char *ret_host, uint16_t *ret_port);
/*
 * The same where the port may be missing (0), and the host be a pattern or a
 * block in brackets: *.name, [2001:db8::/32]:443.
 */
int value_target(const char *t, char *ret_host, uint16_t *ret_port);
/* A rate: so many, at least 1, in so many seconds. */
int value_rate(const char *t, uint64_t *ret_count, uint32_t *ret_seconds);
/* A host name as DNS has it: lower case, no dot at the end. -EINVAL if not. */
int value_host_name(const char *t, char *ret, unsigned int size);
/* An address in its one usual form, 16 bytes (v4 mapped); -EINVAL if not. */
int value_address(const char *t, unsigned char ret[16]);
/* ADDRESS/BITS or ADDRESS, as 16 bytes and a length of 0 to 128. */
int value_cidr(const char *t, unsigned char ret[16], unsigned int *ret_bits);
/* How strong an isolation is: 0 native, 1 another kernel's wall, 2 vm. */
int value_isolation_rank(const char *t);
