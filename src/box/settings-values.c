/* SPDX-License-Identifier: Apache-2.0 */

/* Single values of settings. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "box/settings-set.h"

int no_memory_left(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

int put_text(char **to, const char *text, struct err *err)
{
	char *dup = strdup(text);

	if (!dup)
		return no_memory_left(err);
	free(*to);
	*to = dup;
	return 0;
}

int put_time(const char *v, uint64_t min_us, uint64_t *to, struct err *err)
{
	uint64_t us;

	if (num_parse_duration(v, &us) < 0)
		return err_set(err, EINVAL,
			       "'%s' is not a time; write 30s, 500ms or 2m", v);
	if (us < min_us)
		return err_set(err, EINVAL,
			       "'%s' is too short; it is at least %llums", v,
			       (unsigned long long)(min_us / 1000));
	*to = us;
	return 0;
}

int put_size(const char *v, uint64_t min, uint64_t *to, struct err *err)
{
	uint64_t n;

	if (num_parse_size(v, &n) < 0)
		return err_set(err, EINVAL,
			       "'%s' is not a size; write 64m, 1g or bytes", v);
	if (n < min)
		return err_set(err, EINVAL, "'%s' is less than %llu bytes", v,
			       (unsigned long long)min);
	*to = n;
	return 0;
}

int put_count(const char *v, uint64_t min, uint64_t max, uint64_t *to,
	      struct err *err)
{
	uint64_t n;

	if (num_parse(v, max, &n) < 0 || n < min)
		return err_set(err, EINVAL,
			       "'%s' is not a number from %llu to %llu", v,
			       (unsigned long long)min,
			       (unsigned long long)max);
	*to = n;
	return 0;
}

int put_bool(const char *v, bool *to, struct err *err)
{
	if (!v || strcasecmp(v, "true") == 0 || strcmp(v, "1") == 0 ||
	    strcasecmp(v, "yes") == 0)
		*to = true;
	else if (strcasecmp(v, "false") == 0 || strcmp(v, "0") == 0 ||
		 strcasecmp(v, "no") == 0)
		*to = false;
	else
		return err_set(err, EINVAL, "'%s' is neither true nor false",
			       v);
	return 0;
}

int put_item(struct strv *to, const char *text, struct err *err)
{
	return strv_add(to, text) < 0 ? no_memory_left(err) : 0;
}
