/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: a dial has at most one resolve and one race. Each
 * address that the resolve finds is judged here, and only here, before the
 * race hears of it; the race connects to those bytes and nothing else, so a
 * name that changes its mind between two lookups gains nothing.
 */
#include "gate/upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/util.h"
#include "gate/dial.h"
#include "gate/endpoint.h"
#include "gate/resolve.h"
#include "gate/watch.h"

#define DIAL_SECONDS 15

struct dial {
	const struct gate_table *table;
	dialled_fn *fn;
	void *arg;
	struct resolve *resolve; /* NULL: no more addresses come */
	struct race *race;
	struct tick *tick; /* all of it takes too long */
	bool is_any_judged;
	struct dialled result;
};

static uv_loop_t *loop;
static unsigned int n_dials;

static void dial_free(struct dial *d)
{
	resolve_cancel(d->resolve);
	race_free(d->race);
	tick_free(d->tick);
	free(d);
	n_dials--;
}

static void finish(struct dial *d)
{
	struct dialled result = d->result;
	dialled_fn *fn = d->fn;
	void *arg = d->arg;

	dial_free(d);
	fn(arg, &result);
}

static void on_raced(void *arg, int fd, const uint8_t address[16])
{
	struct dial *d = arg;

	d->race = NULL;
	d->result.fd = fd;
	if (fd >= 0) {
		d->result.reason = GATE_OK;
		memcpy(d->result.address, address, 16);
	}
	finish(d);
}

/* At its end: a reason that is known from before, or nobody was there. */
static void on_late(void *arg)
{
	finish(arg);
}

static struct dial *dial_new(const struct gate_table *t, uint16_t port,
			     dialled_fn *fn, void *arg)
{
	struct dial *d = n_dials < DIAL_MAX ? calloc(1, sizeof(*d)) : NULL;

	if (!d)
		return NULL;
	n_dials++;
	d->table = t;
	d->fn = fn;
	d->arg = arg;
	d->result.fd = -1;
	d->result.port = port;
	d->result.reason = GATE_R_RESOLVE;
	d->tick = tick_new(loop, on_late, d);
	d->race = race_new(loop, port, on_raced, d);
	if (!d->tick || !d->race) {
		dial_free(d);
		return NULL;
	}
	tick_set(d->tick, DIAL_SECONDS * 1000);
	return d;
}

/* Over before it began; told when the loop comes round. */
static void refuse(struct dial *d, enum gate_reason reason)
{
	d->result.reason = reason;
	tick_set(d->tick, 0);
}

/* Does the kernel keep this address itself? Nothing is sent. */
static bool is_own(const uint8_t address[16])
{
	_cleanup_fd_ int fd = NO_FD;
	union endpoint from = { 0 };
	union endpoint to;
	socklen_t len = sizeof(from);

	endpoint_set(&to, address, 9);
	fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, &to.any, endpoint_len(&to)) < 0 ||
	    getsockname(fd, &from.any, &len) < 0)
		return false; /* nor can it be dialled */
	return endpoint_same_address(&to, &from);
}

/*
 * A public address of this very machine leads to services that may trust
 * whoever comes from here, so it is none for a name either.
 */
static enum gate_reason judge(const struct dial *d, const uint8_t address[16])
{
	enum gate_reason reason = address_judge_at(resolve_site(), address);
	struct gate_judgement j;

	if (reason == GATE_OK && is_own(address))
		reason = GATE_R_PRIVATE;
	if (reason != GATE_R_PRIVATE)
		return reason;
	gate_judge_address(d->table, address, d->result.port, &j);
	return j.verdict == GATE_ALLOW ? GATE_OK : reason;
}

/* Dials what may be; of what may not, the worst is kept to be told. */
static void take_address(struct dial *d, const uint8_t address[16],
			 enum gate_reason reason)
{
	if (reason == GATE_OK) {
		d->is_any_judged = true;
		d->result.reason = GATE_R_UNREACHABLE;
		memset(d->result.address, 0, 16);
		race_add(d->race, address);
	} else if (!d->is_any_judged && d->result.reason != GATE_R_METADATA) {
		d->result.reason = reason;
		memcpy(d->result.address, address, 16);
	}
}

static void on_resolved(void *arg, const struct addresses *found, bool is_last)
{
	struct dial *d = arg;

	if (is_last)
		d->resolve = NULL;
	for (unsigned int i = 0; i < found->n; i++)
		take_address(d, found->address[i], judge(d, found->address[i]));
	race_run(d->race, is_last);
}

/* The policy gave the address itself: any but the metadata services. */
static void dial_given(struct dial *d, const uint8_t address[16])
{
	take_address(d, address,
		     address_is_metadata(address) ? GATE_R_METADATA : GATE_OK);
	race_run(d->race, true);
}

struct dial *dial_name(const struct gate_table *t, const char *name,
		       uint16_t port, dialled_fn *fn, void *arg)
{
	const struct gate_resolve *given = gate_resolve(t, name, port);
	uint16_t to_port = given && given->to_port ? given->to_port : port;
	struct dial *d = dial_new(t, to_port, fn, arg);

	if (!d)
		return NULL;
	if (given) {
		dial_given(d, given->address);
		return d;
	}
	if (!resolve_may_ask(name)) {
		refuse(d, GATE_R_NOT_A_NAME);
		return d;
	}
	d->resolve = resolve_start(name, on_resolved, d);
	if (!d->resolve) {
		dial_free(d);
		return NULL;
	}
	return d;
}

struct dial *dial_address(const uint8_t address[16], uint16_t port,
			  dialled_fn *fn, void *arg)
{
	struct dial *d = dial_new(NULL, port, fn, arg);

	if (d)
		dial_given(d, address);
	return d;
}

void dial_cancel(struct dial *d)
{
	if (d)
		dial_free(d);
}

/* Its beginning, as much as there is room for; none if there is no file. */
static size_t read_some(const char *path, char *ret, size_t size)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : io_read_full(fd, ret, size);

	return n < 0 ? 0 : (size_t)n;
}

int upstream_setup(uv_loop_t *l, const struct resolve_conf *conf,
		   const char *hosts, size_t len, struct err *err)
{
	loop = l;
	return resolve_setup(l, conf, hosts, len, err);
}

int upstream_init(uv_loop_t *l, struct err *err)
{
	_cleanup_free_ char *text = malloc(RESOLVE_HOSTS_MAX);
	struct resolve_conf conf;
	size_t len;

	if (!text)
		return err_errno(err, ENOMEM, "read '/etc/hosts'");
	len = read_some("/etc/resolv.conf", text, RESOLVE_HOSTS_MAX);
	resolve_conf_parse(&conf, text, len);
	len = read_some("/etc/hosts", text, RESOLVE_HOSTS_MAX);
	return upstream_setup(l, &conf, text, len, err);
}
