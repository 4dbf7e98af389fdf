/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Subscriptions: a table by topic type, and a trie for prefixes. What a match
 * costs depends on the topic's length and on what matches, not on how many
 * subscriptions or topics there are; nothing is kept of a topic.
 */

#include "runtime/ident.h"
#include "runtime/runtime.h"
#include "runtime/table.h"

enum { SUBSCRIPTIONS_MAX = 100000 };

struct subscription {
	struct node by_id;
	struct uuid id;
	enum subscription_kind kind;
	struct sub_set *set;                  /* where it hangs */
	struct subscription *next, *prev;     /* there */
	struct subscription *later, *earlier; /* all, in order */
	char *actor_type;
	char topic_type[];
};

/* All with one topic type, or one prefix. */
struct sub_set {
	struct node by_type;
	struct subscription *first, *last;
	char *type; /* of the table; NULL in the trie */
};

struct trie {
	struct sub_set set;
	struct trie *up, *child, *sibling;
	unsigned char letter;
};

struct subs {
	struct table by_id, by_type;
	struct trie root;
	struct subscription *first, *last;
	size_t n;
};

int subs_init(struct subs *s);
void subs_done(struct subs *s);
int subs_add(struct subs *s, struct uuid id, enum subscription_kind kind,
	     const char *topic_type, const char *actor_type, struct err *err);
int subs_remove(struct subs *s, struct uuid id, struct err *err);
/* Calls `found` for each that matches; of one actor type maybe several. */
void subs_match(const struct subs *s, const char *topic_type, size_t len,
		void (*found)(void *arg, const char *actor_type), void *arg);
