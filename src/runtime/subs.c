/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/subs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int subs_init(struct subs *s)
{
	*s = (struct subs){ 0 };
	if (table_init(&s->by_id) < 0 || table_init(&s->by_type) < 0)
		return -ENOMEM;
	return 0;
}

static struct sub_set *find_type(const struct subs *s, const char *type,
				 size_t len)
{
	uint64_t hash = table_hash(&s->by_type, type, len);

	for (struct node *n = table_first(&s->by_type, hash); n;
	     n = table_next(n)) {
		struct sub_set *set = (struct sub_set *)n;

		if (strncmp(set->type, type, len) == 0 && !set->type[len])
			return set;
	}
	return NULL;
}

static struct sub_set *need_type(struct subs *s, const char *type)
{
	struct sub_set *set = find_type(s, type, strlen(type));

	if (set)
		return set;
	set = calloc(1, sizeof(*set));
	if (set)
		set->type = strdup(type);
	if (!set || !set->type) {
		free(set);
		return NULL;
	}
	table_add(&s->by_type, &set->by_type,
		  table_hash(&s->by_type, type, strlen(type)));
	return set;
}

static struct trie *trie_child(const struct trie *t, unsigned char letter)
{
	struct trie *c = t->child;

	while (c && c->letter != letter)
		c = c->sibling;
	return c;
}

/* Takes away what nobody uses, from here up. */
static void trie_prune(struct trie *t)
{
	while (t->up && !t->child && !t->set.first) {
		struct trie *up = t->up;
		struct trie **at = &up->child;

		while (*at != t)
			at = &(*at)->sibling;
		*at = t->sibling;
		free(t);
		t = up;
	}
}

static struct sub_set *need_prefix(struct subs *s, const char *prefix)
{
	struct trie *t = &s->root;

	for (; *prefix; prefix++) {
		struct trie *c = trie_child(t, (unsigned char)*prefix);

		if (!c) {
			c = calloc(1, sizeof(*c));
			if (!c) {
				trie_prune(t);
				return NULL;
			}
			c->letter = (unsigned char)*prefix;
			c->up = t;
			c->sibling = t->child;
			t->child = c;
		}
		t = c;
	}
	return &t->set;
}

static void give_up(struct subs *s, struct sub_set *set)
{
	if (set->first)
		return;
	if (!set->type) {
		trie_prune((struct trie *)set);
		return;
	}
	table_remove(&s->by_type, &set->by_type);
	free(set->type);
	free(set);
}

static struct subscription *make(enum subscription_kind kind,
				 const char *topic_type, const char *actor_type)
{
	size_t size = strlen(topic_type) + 1;
	struct subscription *sub = calloc(1, sizeof(*sub) + size);

	if (!sub)
		return NULL;
	sub->actor_type = strdup(actor_type);
	if (!sub->actor_type) {
		free(sub);
		return NULL;
	}
	sub->kind = kind;
	memcpy(sub->topic_type, topic_type, size);
	return sub;
}

static void link_in(struct subs *s, struct subscription *sub,
		    struct sub_set *set)
{
	sub->set = set;
	sub->prev = set->last;
	*(set->last ? &set->last->next : &set->first) = sub;
	set->last = sub;
	sub->earlier = s->last;
	*(s->last ? &s->last->later : &s->first) = sub;
	s->last = sub;
	table_add(&s->by_id, &sub->by_id,
		  table_hash(&s->by_id, &sub->id, sizeof(sub->id)));
	s->n++;
}

static struct subscription *find_id(const struct subs *s, struct uuid id)
{
	uint64_t hash = table_hash(&s->by_id, &id, sizeof(id));

	for (struct node *n = table_first(&s->by_id, hash); n;
	     n = table_next(n)) {
		struct subscription *sub = (struct subscription *)n;

		if (uuid_is(sub->id, id))
			return sub;
	}
	return NULL;
}

static int check(const struct subs *s, struct uuid id,
		 enum subscription_kind kind, const char *topic_type,
		 const char *actor_type, struct err *err)
{
	bool is_good = kind == SUB_PREFIX ? topic_prefix_check(topic_type)
					  : topic_type_check(topic_type);

	if (!is_good)
		return err_set(err, EINVAL, "not a topic type: '%s'",
			       topic_type);
	if (!actor_type_check(actor_type))
		return err_set(err, EINVAL, "not an actor type: '%s'",
			       actor_type);
	if (find_id(s, id))
		return err_set(err, EEXIST,
			       "there is a subscription with "
			       "that id");
	if (s->n >= SUBSCRIPTIONS_MAX)
		return err_set(err, ENOSPC, "more than %d subscriptions",
			       SUBSCRIPTIONS_MAX);
	return 0;
}

int subs_add(struct subs *s, struct uuid id, enum subscription_kind kind,
	     const char *topic_type, const char *actor_type, struct err *err)
{
	struct subscription *sub;
	struct sub_set *set;
	int r;

	if (kind == SUB_DEFAULT)
		topic_type = "default";
	r = check(s, id, kind, topic_type, actor_type, err);
	if (r < 0)
		return r;
	sub = make(kind, topic_type, actor_type);
	if (!sub)
		return err_set(err, ENOMEM, "out of memory");
	set = kind == SUB_PREFIX ? need_prefix(s, topic_type)
				 : need_type(s, topic_type);
	if (!set) {
		free(sub->actor_type);
		free(sub);
		return err_set(err, ENOMEM, "out of memory");
	}
	sub->id = id;
	link_in(s, sub, set);
	return 0;
}

static void take_out(struct subs *s, struct subscription *sub)
{
	struct sub_set *set = sub->set;

	*(sub->prev ? &sub->prev->next : &set->first) = sub->next;
	*(sub->next ? &sub->next->prev : &set->last) = sub->prev;
	*(sub->earlier ? &sub->earlier->later : &s->first) = sub->later;
	*(sub->later ? &sub->later->earlier : &s->last) = sub->earlier;
	table_remove(&s->by_id, &sub->by_id);
	s->n--;
	give_up(s, set);
	free(sub->actor_type);
	free(sub);
}

int subs_remove(struct subs *s, struct uuid id, struct err *err)
{
	struct subscription *sub = find_id(s, id);

	if (!sub)
		return err_set(err, ENOENT, "no such subscription");
	take_out(s, sub);
	return 0;
}

void subs_done(struct subs *s)
{
	while (s->first)
		take_out(s, s->first);
	table_done(&s->by_id);
	table_done(&s->by_type);
}

static void tell(const struct sub_set *set,
		 void (*found)(void *arg, const char *actor_type), void *arg)
{
	for (struct subscription *sub = set->first; sub; sub = sub->next)
		found(arg, sub->actor_type);
}

void subs_match(const struct subs *s, const char *topic_type, size_t len,
		void (*found)(void *arg, const char *actor_type), void *arg)
{
	const struct sub_set *set = find_type(s, topic_type, len);
	const struct trie *t = &s->root;

	if (set)
		tell(set, found, arg);
	for (size_t i = 0; t; i++) {
		tell(&t->set, found, arg);
		if (i == len)
			break;
		t = trie_child(t, (unsigned char)topic_type[i]);
	}
}
