/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int strv_add(struct strv *s, const char *text)
{
	char **v = realloc(s->v, (s->n + 2) * sizeof(*v));
	char *copy;

	if (!v)
		return -ENOMEM;
	s->v = v;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	v[s->n++] = copy;
	v[s->n] = NULL;
	return 0;
}

void strv_done(struct strv *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct strv){ 0 };
}
