/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is swept for a box of the daemon: nothing but what was sealed, for
 * whom it was sealed, and where it was.
 */

#include "tests/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "serve/sweep.h"

static const unsigned char key[SWEEP_KEY] = "a key";
static char place[64];

static void in_place(const char *name, char ret[128])
{
	(void)snprintf(ret, 128, "%s/%s", place, name);
}

static bool is_there(const char *name)
{
	char path[128];
	struct stat st;

	in_place(name, path);
	return lstat(path, &st) == 0;
}

static void make(const char *name)
{
	char path[128];

	in_place(name, path);
	CHECK_INT(mkdir(path, 0700), 0);
}

/* Over what is there, without an end of its own. */
static void put_over(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
}

/* The request that brings back what was put; `from`, if any, becomes `to`. */
static void sealed(struct request *ret, const char *from, const char *to)
{
	static struct guard g;
	struct buf text;
	struct json j = { .out = &text };
	struct err err = { 0 };
	char *at;

	g.n_watches = 1;
	g.watches[0].dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g.watches[0].source = place;
	g.watches[0].missing = 1ULL << 1; /* .git */
	buf_init(&text, 1 << 16);
	json_open(&j, NULL, '{');
	json_str(&j, "run", "0123456789abcdef0123456789abcdef");
	json_str(&j, "face", "docker");
	sweep_put(&j, &g, &(struct sweep_by){ key, 1000, NULL });
	json_close(&j, '}');
	(void)close(g.watches[0].dir);
	/* The front has it as `watches`, and sends it as `sweep`. */
	at = strstr(text.data, "\"watches\"");
	put_over(at, "\"sweep\"  ");
	if (from && (at = strstr(text.data, from)))
		put_over(at, to);
	CHECK(!from || at);
	CHECK_INT(request_parse(text.data, text.len, ret, &err), 0);
	buf_done(&text);
}

static void sweep(const char *from, const char *to, const unsigned char *by,
		  int64_t peer, struct strv *ret)
{
	struct request r;

	memset(ret, 0, sizeof(*ret));
	sealed(&r, from, to);
	CHECK(r.is_sweep);
	CHECK_INT(r.n_watches, 1);
	sweep_all(&r, by, peer, ret);
	request_done(&r);
}

static void begin(void)
{
	(void)snprintf(place, sizeof(place), "/tmp/cordon-sweep-XXXXXX");
	CHECK(mkdtemp(place));
	make(".git");
	make(".idea");
}

static void end(void)
{
	static const char *const names[] = { ".git", ".git.cordon-removed-0",
					     ".idea" };
	char path[128];

	for (size_t i = 0; i < 3; i++) {
		in_place(names[i], path);
		(void)rmdir(path);
	}
	CHECK_INT(rmdir(place), 0);
}

TEST(what_was_missing_is_moved_away)
{
	struct strv told;

	begin();
	sweep(NULL, NULL, key, 1000, &told);
	CHECK_INT(told.n, 1);
	CHECK_HAS(told.v[0], "'.git' was made in");
	CHECK(!is_there(".git"));
	CHECK(is_there(".git.cordon-removed-0"));
	CHECK(is_there(".idea"));
	strv_done(&told);
	/* and when there is nothing, nothing is told */
	sweep(NULL, NULL, key, 1000, &told);
	CHECK_INT(told.n, 0);
	strv_done(&told);
	end();
}

/* The box has made all the names that it could think of. */
TEST(names_that_are_taken_do_not_keep_it)
{
	struct strv told;
	char name[64];
	char path[128];

	begin();
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), ".git.cordon-removed-%d", i);
		make(name);
	}
	sweep(NULL, NULL, key, 1000, &told);
	CHECK_INT(told.n, 1);
	CHECK_HAS(told.v[0], "it is now .git.cordon-removed-");
	CHECK(!is_there(".git"));
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), ".git.cordon-removed-%d", i);
		in_place(name, path);
		CHECK_INT(rmdir(path), 0);
	}
	if (strstr(told.v[0], "it is now ")) {
		in_place(strstr(told.v[0], "it is now ") + 10, path);
		CHECK_INT(rmdir(path), 0);
	}
	strv_done(&told);
	end();
}

/* A box has the owner's uid, and could hide by it what it made. */
TEST(a_directory_without_rights_hides_nothing)
{
	struct strv told;
	struct request r;
	struct stat st;

	begin();
	sealed(&r, NULL, NULL);
	CHECK_INT(chmod(place, 0), 0);
	memset(&told, 0, sizeof(told));
	sweep_all(&r, key, 1000, &told);
	CHECK_INT(told.n, 1);
	CHECK_HAS(told.v[0], "it is now .git.cordon-removed-0");
	CHECK(stat(place, &st) == 0 && (st.st_mode & 07777) == 0);
	CHECK_INT(chmod(place, 0700), 0);
	CHECK(!is_there(".git"));
	strv_done(&told);
	request_done(&r);
	end();
}

static void refuses(const char *from, const char *to, const unsigned char *by,
		    int64_t peer)
{
	struct strv told;

	sweep(from, to, by, peer, &told);
	CHECK_INT(told.n, 1);
	CHECK_HAS(told.v[0], "was not mounted by this daemon");
	CHECK(is_there(".git"));
	CHECK(is_there(".idea"));
	strv_done(&told);
}

TEST(what_was_not_sealed_is_not_touched)
{
	static const unsigned char other[SWEEP_KEY] = "another";

	begin();
	refuses(NULL, NULL, key, 1001);   /* of somebody else */
	refuses(NULL, NULL, other, 1000); /* of another daemon */
	refuses("\"missing\":\"2", "\"missing\":\"3", key, 1000);
	refuses("\"source\":\"/tmp", "\"source\":\"/etc", key, 1000);
	refuses("\"ino\":\"", "\"ino\":\"0", key, 1000);
	end();
}

TEST(a_link_in_its_place_is_not_followed)
{
	struct strv told;
	struct request r;
	char away[80];

	begin();
	sealed(&r, NULL, NULL);
	(void)snprintf(away, sizeof(away), "%s-away", place);
	CHECK_INT(rename(place, away), 0);
	CHECK_INT(symlink(away, place), 0);
	memset(&told, 0, sizeof(told));
	sweep_all(&r, key, 1000, &told);
	CHECK_INT(told.n, 1);
	CHECK_HAS(told.v[0], "could not be looked for");
	CHECK_INT(unlink(place), 0);
	CHECK_INT(rename(away, place), 0);
	CHECK(is_there(".git"));
	strv_done(&told);
	request_done(&r);
	end();
}

/* Whose it was is believed only as it was sealed, with the same key. */
TEST(who_is_sealed)
{
	static const unsigned char other[SWEEP_KEY] = "another";
	struct sweep_who who = {
		.uid = 1000, .gid = 1000, .n_groups = 2, .groups = { 4, 24 }
	};
	struct sweep_who changed;

	sweep_who_seal(&who, key);
	CHECK(sweep_who_check(&who, key));
	CHECK(!sweep_who_check(&who, other));
	for (size_t i = 0; i < sizeof(who); i++) {
		changed = who;
		((unsigned char *)&changed)[i] ^= 1;
		CHECK(!sweep_who_check(&changed, key));
	}
	changed = (struct sweep_who){ .n_groups = SWEEP_GROUPS + 1 };
	sweep_who_seal(&changed, key);
	CHECK(!sweep_who_check(&changed, key));
}

/* The key stays; one that others can read is replaced. */
TEST(key_is_kept)
{
	char dir[] = "/tmp/cordon-key-XXXXXX";
	unsigned char a[SWEEP_KEY] = "", b[SWEEP_KEY] = "";
	struct err err = { 0 };
	int fd;

	CHECK(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(sweep_key_load(fd, a, &err), 0);
	CHECK_INT(sweep_key_load(fd, b, &err), 0);
	CHECK(memcmp(a, b, sizeof(a)) == 0);
	CHECK_INT(fchmodat(fd, "sweep.key", 0644, 0), 0);
	CHECK_INT(sweep_key_load(fd, b, &err), 0);
	CHECK(memcmp(a, b, sizeof(a)) != 0);
	CHECK_INT(unlinkat(fd, "sweep.key", 0), 0);
	(void)close(fd);
	(void)rmdir(dir);
}

TAP_MAIN()
