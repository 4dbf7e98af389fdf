/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/resolve.h"

#include <ldns/ldns.h>
#include <string.h>

#include "base/util.h"
#include "gate/watch.h"

/* What every NAT64 makes an address for (RFC 7050). */
#define SITE_NAME        "ipv4only.arpa"
#define SITE_TTL_MS      60000
#define SITE_PATIENCE_MS 1000U /* for each server */

/* RFC 8305 section 3: how long IPv4 waits for IPv6. */
#define RESOLUTION_DELAY_MS 50

enum { V6, V4, FAMILIES };

static const uint16_t types[FAMILIES] = { LDNS_RR_TYPE_AAAA, LDNS_RR_TYPE_A };

struct half {
	struct resolve *of;
	struct ask *ask; /* NULL: it is known */
	bool is_told;
	enum answered how;
	struct addresses found;
};

struct resolve {
	resolved_fn *fn;
	void *arg;
	char name[GATE_HOST_MAX];
	struct tick *tick;
	struct half halves[FAMILIES];
};

struct remembered {
	char name[GATE_HOST_MAX];
	uint64_t until; /* of uv_now() */
	struct addresses found;
};

static struct {
	uv_loop_t *loop;
	struct resolve_conf conf;
	struct resolve_conf site_conf; /* for the question about the site */
	char *hosts;
	size_t n_hosts;
	struct address_site site;
	uint64_t site_until; /* of uv_now(); it is known until then */
	struct remembered cache[RESOLVE_CACHE];
} world;

int resolve_setup(uv_loop_t *loop, const struct resolve_conf *conf,
		  const char *hosts, size_t len, struct err *err)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return err_errno(err, ENOMEM, "keep the hosts file");
	memcpy(copy, hosts, len);
	free(world.hosts);
	memset(&world, 0, sizeof(world));
	world.loop = loop;
	world.conf = *conf;
	world.site_conf = *conf;
	world.site_conf.attempts = 1;
	world.site_conf.timeout_ms = MIN(conf->timeout_ms, SITE_PATIENCE_MS);
	world.hosts = copy;
	world.n_hosts = len;
	return 0;
}

/* 2130706433 and 0x7f.1 are addresses for some programs, never names. */
static bool is_number(const char *label, size_t len)
{
	if (len >= 2 && label[0] == '0' && label[1] == 'x')
		return true;
	return strspn(label, "0123456789") >= len;
}

bool resolve_may_ask(const char *name)
{
	const char *label = name;
	size_t len = strlen(name);

	if (len == 0 || len > 253)
		return false;
	for (;; label += len + 1) {
		len = strspn(label, "abcdefghijklmnopqrstuvwxyz0123456789-_");
		if (len == 0 || len > 63)
			return false;
		if (label[len] != '.')
			break;
	}
	return label[len] == '\0' && !is_number(label, len);
}

static bool is_below(const char *name, const char *top)
{
	size_t len = strlen(name);
	size_t tail = strlen(top);

	return len >= tail && strcmp(name + len - tail, top) == 0 &&
	       (len == tail || name[len - tail - 1] == '.');
}

static void remember(const char *name, const struct addresses *found)
{
	struct remembered *to = &world.cache[0];
	uint32_t ttl = MIN(found->ttl, RESOLVE_CACHE_TTL);

	if (ttl == 0 || found->n == 0)
		return;
	for (size_t i = 0; i < RESOLVE_CACHE; i++) {
		if (strcmp(world.cache[i].name, name) == 0) {
			to = &world.cache[i];
			break;
		}
		if (world.cache[i].until < to->until)
			to = &world.cache[i];
	}
	memcpy(to->name, name, strlen(name) + 1);
	to->until = uv_now(world.loop) + (uint64_t)ttl * 1000;
	to->found = *found;
}

static const struct addresses *recall(const char *name)
{
	for (size_t i = 0; i < RESOLVE_CACHE; i++)
		if (strcmp(world.cache[i].name, name) == 0 &&
		    world.cache[i].until > uv_now(world.loop))
			return &world.cache[i].found;
	return NULL;
}

/* What is known without asking anybody; false: nothing. */
static bool find_here(const char *name, struct addresses *ret)
{
	static const uint8_t loopback[2][16] = {
		{ [15] = 1 }, { [10] = 0xff, 0xff, 127, 0, 0, 1 }
	};
	const struct addresses *known = recall(name);

	hosts_find(world.hosts, world.n_hosts, name, ret);
	if (ret->n)
		return true;
	if (is_below(name, "localhost")) { /* RFC 6761 6.3 */
		memcpy(ret->address, loopback, sizeof(loopback));
		ret->n = 2;
		return true;
	}
	if (is_below(name, "onion")) /* RFC 7686: nobody is to hear of it */
		return true;
	if (known)
		*ret = *known;
	return known != NULL;
}

static void merge(struct addresses *to, const struct addresses *more)
{
	if (more->n)
		to->ttl = MIN(to->ttl, more->ttl);
	for (unsigned int i = 0; i < more->n && to->n < RESOLVE_ADDRESSES; i++)
		memcpy(to->address[to->n++], more->address[i], 16);
}

static bool is_known(const struct half *h)
{
	return !h->ask;
}

/* Tells what is known and was not told. */
static void tell(struct resolve *r, bool is_last)
{
	struct addresses found = { .ttl = UINT32_MAX };

	for (int i = 0; i < FAMILIES; i++) {
		struct half *h = &r->halves[i];

		if (!is_known(h) || h->is_told)
			continue;
		merge(&found, &h->found);
		h->is_told = true;
	}
	if (is_last) {
		resolved_fn *fn = r->fn;
		void *arg = r->arg;

		resolve_cancel(r);
		fn(arg, &found, true);
	} else {
		r->fn(r->arg, &found, false);
	}
}

static void keep(const struct resolve *r)
{
	struct addresses all = { .ttl = UINT32_MAX };

	for (int i = 0; i < FAMILIES; i++) {
		if (r->halves[i].how == ANSWER_FAILED)
			return;
		merge(&all, &r->halves[i].found);
	}
	remember(r->name, &all);
}

/* A half is known. */
static void on_half(struct half *h)
{
	struct resolve *r = h->of;

	if (is_known(&r->halves[V6]) && is_known(&r->halves[V4])) {
		keep(r);
		tell(r, true);
	} else if (h->found.n && h == &r->halves[V6]) {
		tell(r, false);
	} else if (h->found.n) {
		tick_set(r->tick, RESOLUTION_DELAY_MS);
	}
}

/*
 * A server that translates answers this, by its nature; one that refuses it
 * does not. What was known before stays where nobody answers.
 */
static void on_site(void *arg, enum answered how, const struct addresses *found)
{
	struct half *h = arg;

	h->ask = NULL;
	world.site_until = uv_now(world.loop) + SITE_TTL_MS;
	if (how != ANSWER_FAILED)
		world.site.n = 0;
	for (unsigned int i = 0; how == ANSWER_FOUND && i < found->n; i++)
		address_learn(&world.site, found->address[i]);
	on_half(h);
}

/* Is IPv6 translated here? The half stays unknown until that is not. */
static bool ask_site(struct half *h)
{
	if (uv_now(world.loop) < world.site_until)
		return false;
	h->ask = ask_start(world.loop, &world.site_conf, SITE_NAME,
			   LDNS_RR_TYPE_AAAA, on_site, h);
	if (!h->ask) {
		h->how = ANSWER_FAILED;
		h->found.n = 0;
	}
	return h->ask != NULL;
}

static void on_asked(void *arg, enum answered how,
		     const struct addresses *found)
{
	struct half *h = arg;

	h->ask = NULL;
	h->how = how;
	if (how == ANSWER_FOUND)
		h->found = *found;
	if (h == &h->of->halves[V6] && h->found.n && ask_site(h))
		return;
	on_half(h);
}

const struct address_site *resolve_site(void)
{
	return &world.site;
}

/* IPv6 is late; or all was known from the beginning. */
static void on_tick(void *arg)
{
	struct resolve *r = arg;

	tell(r, is_known(&r->halves[V6]) && is_known(&r->halves[V4]));
}

static int ask_both(struct resolve *r)
{
	for (int i = 0; i < FAMILIES; i++) {
		struct half *h = &r->halves[i];

		h->of = r;
		h->ask = ask_start(world.loop, &world.conf, r->name, types[i],
				   on_asked, h);
		if (!h->ask)
			return -ENOMEM;
	}
	return 0;
}

struct resolve *resolve_start(const char *name, resolved_fn *fn, void *arg)
{
	struct resolve *r = resolve_may_ask(name) ? calloc(1, sizeof(*r))
						  : NULL;

	if (!r)
		return NULL;
	memcpy(r->name, name, strlen(name) + 1);
	r->fn = fn;
	r->arg = arg;
	r->tick = tick_new(world.loop, on_tick, r);
	if (!r->tick)
		goto fail;
	if (find_here(name, &r->halves[V6].found))
		tick_set(r->tick, 0);
	else if (ask_both(r) < 0)
		goto fail;
	return r;
fail:
	resolve_cancel(r);
	return NULL;
}

void resolve_cancel(struct resolve *r)
{
	if (!r)
		return;
	for (int i = 0; i < FAMILIES; i++)
		ask_cancel(r->halves[i].ask);
	tick_free(r->tick);
	free(r);
}
