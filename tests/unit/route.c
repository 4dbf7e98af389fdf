/* SPDX-License-Identifier: Apache-2.0 */

/* Paths and queries of requests. */

#include "tests/tap.h"

#include <errno.h>

#include "face/route.h"

static char joined[256];

/* "a|b" of the parameters, or what it returned. */
static const char *match(const char *pattern, const char *path)
{
	struct route_params p;
	int r = route_match(pattern, path, &p);

	if (r <= 0)
		return r == 0 ? "no" : r == -EINVAL ? "bad" : "error";
	joined[0] = '\0';
	for (unsigned int i = 0; i < p.n; i++) {
		strcat(joined, i ? "|" : "");
		strcat(joined, p.v[i]);
	}
	route_params_done(&p);
	return joined;
}

TEST(r01_parts)
{
	CHECK_STR(match("/", "/"), "");
	CHECK_STR(match("/a", "/a"), "");
	CHECK_STR(match("/a", "/b"), "no");
	CHECK_STR(match("/a", "/a/"), "no");
	CHECK_STR(match("/a", "a"), "no");
	CHECK_STR(match("/a/{}", "/a/x"), "x");
	CHECK_STR(match("/a/{}", "/a/"), "no");
	CHECK_STR(match("/a/{}", "/a/x/y"), "no");
	CHECK_STR(match("/a/{}/b/{}", "/a/x/b/y"), "x|y");
	/* One slash may be the name's own. */
	CHECK_STR(match("/a/{}", "/a//x"), "/x");
	CHECK_STR(match("/a/{}/b", "/a//x/b"), "/x");
	CHECK_STR(match("/a/{}", "/a//"), "no");
	CHECK_STR(match("/a/{}", "/a///x"), "no");
}

TEST(r02_many)
{
	CHECK_STR(match("/i/{*}/json", "/i/a/json"), "a");
	CHECK_STR(match("/i/{*}/json", "/i/a/b:c/json"), "a/b:c");
	CHECK_STR(match("/i/{*}/json", "/i/json"), "no");
	CHECK_STR(match("/i/{*}/json", "/i//json"), "no");
	CHECK_STR(match("/i/{*}/json", "/i/json/json"), "json");
	CHECK_STR(match("/i/{*}/json", "/i/json/json/json"), "json/json");
	CHECK_STR(match("/i/{*}", "/i/a/b/c"), "a/b/c");
	CHECK_STR(match("/i/{*}", "/i/a//c"), "no");
	CHECK_STR(match("/i/{*}", "/i/"), "no");
	CHECK_STR(match("/{}/{*}/{}", "/a/b/c/d"), "a|b/c|d");
}

TEST(r03_decoded_once)
{
	CHECK_STR(match("/a/{}", "/a/x%2Fy"), "x/y");
	CHECK_STR(match("/a/{}", "/a/x%252F"), "x%2F");
	CHECK_STR(match("/a/{}", "/a/x+y"), "x+y");
	CHECK_STR(match("/a/{}", "/a/%"), "bad");
	CHECK_STR(match("/a/{}", "/a/%4"), "bad");
	CHECK_STR(match("/a/{}", "/a/%zz"), "bad");
	CHECK_STR(match("/a/{}", "/a/%00"), "bad");
	CHECK_STR(match("/a/{}", "/a/%e2%82%AC"), "\xe2\x82\xac");
}

TEST(r04_queries)
{
	static const char text[] = "a=1&b=x+y%2B&a=2&c&&=z&d==";
	struct query q;
	unsigned int i = 0;

	CHECK_INT(query_parse(text, strlen(text), &q), 0);
	CHECK_INT((long long)q.n, 6);
	CHECK_STR(query_next(&q, "a", &i), "1");
	CHECK_STR(query_next(&q, "a", &i), "2");
	CHECK(!query_next(&q, "a", &i));
	i = 0;
	CHECK_STR(query_next(&q, "b", &i), "x y+");
	i = 0;
	CHECK_STR(query_next(&q, "c", &i), "");
	i = 0;
	CHECK_STR(query_next(&q, "d", &i), "=");
	query_done(&q);
	CHECK_INT(query_parse("a=%", 3, &q), -EINVAL);
	query_done(&q);
	CHECK_INT(query_parse("", 0, &q), 0);
	query_done(&q);
}

TAP_MAIN()
