/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files of a workspace: what is planted there (links, pipes, directories)
 * leads nowhere, and nothing of the host is touched.
 */

#include "tool-try.h"

static int workspace;

static void add_all(struct try *t)
{
	static const char *const names[] = { "read_file", "write_file",
					     "list_files" };
	struct err err = { 0 };
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/ws", t->dir);
	(void)mkdir(path, 0755);
	workspace = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < 3; i++) {
		struct tool *tool = NULL;

		if (tool_files(t->loop, workspace, names[i], &tool, &err) < 0) {
			printf("# %s\n", err.text);
			exit(1);
		}
		try_add(t, tool);
	}
}

#define FREE                                                                   \
	"version: 1\nextends: strict\ntools:\n  '*': {agents: ['*'], "         \
	"approval: never}\n"

static void outside(const struct try *t, char path[200], const char *text)
{
	(void)snprintf(path, 200, "%s/outside", t->dir);
	try_write(path, text);
}

static void check_file(const char *path, const char *want)
{
	char have[256] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && read(fd, have, sizeof(have) - 1) >= 0);
	fd_close(&fd);
	CHECK_STR(have, want);
}

TEST(what_is_written_can_be_read)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, FREE);
	add_all(&t);
	try_call(&t, "write_file",
		 "{\"path\":\"a/b/c.txt\",\"content\":\"h\\u00e4llo\\n\"}", &d);
	CHECK(!d.is_error);
	CHECK_STR(d.text, "wrote 7 bytes to a/b/c.txt");
	try_call(&t, "read_file", "{\"path\":\"a/b/c.txt\"}", &d);
	CHECK(!d.is_error);
	CHECK_STR(d.text, "h\xc3\xa4llo\n");
	/* A part, and no half of a character. */
	try_call(&t, "read_file", "{\"path\":\"a/b/c.txt\",\"length\":2}", &d);
	CHECK_STR(d.text, "h");
	try_call(&t, "read_file", "{\"path\":\"a/b/c.txt\",\"offset\":3}", &d);
	CHECK_STR(d.text, "llo\n");
	/* It is replaced, and keeps its mode. */
	CHECK_INT(fchmodat(workspace, "a/b/c.txt", 0600, 0), 0);
	try_call(&t, "write_file", "{\"path\":\"a/b/c.txt\",\"content\":\"\"}",
		 &d);
	CHECK(!d.is_error);
	{
		struct stat st;

		CHECK_INT(fstatat(workspace, "a/b/c.txt", &st, 0), 0);
		CHECK_INT((int)st.st_size, 0);
		CHECK_INT((int)(st.st_mode & 0777), 0600);
	}
	try_call(&t, "list_files", "{\"path\":\"a/b\"}", &d);
	CHECK_STR(d.text, "{\"files\": [{\"name\": \"c.txt\", \"type\": "
			  "\"file\", \"size\": 0}], \"left_out\": 0}");
	try_call(&t, "list_files", "{}", &d);
	CHECK_HAS(d.text, "\"directory\"");
	tried_done(&d);
	try_close(&t);
}

TEST(nothing_leads_out)
{
	static const char *const paths[] = {
		"../outside", "a/../../outside",    "/etc/passwd",
		"link",       "dir/../../outside",  "dirlink/x",
		"abs",        "/proc/self/environ", "dir/loop",
	};
	struct try t;
	struct tried d = { 0 };
	char path[200];
	char args[300];

	try_open(&t, FREE);
	add_all(&t);
	outside(&t, path, "secret");
	CHECK_INT(symlinkat("../outside", workspace, "link"), 0);
	CHECK_INT(symlinkat(path, workspace, "abs"), 0);
	CHECK_INT(symlinkat("..", workspace, "dirlink"), 0);
	CHECK_INT(mkdirat(workspace, "dir", 0755), 0);
	CHECK_INT(symlinkat("loop", workspace, "dir/loop"), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		(void)snprintf(args, sizeof(args), "{\"path\":\"%s\"}",
			       paths[i]);
		try_call(&t, "read_file", args, &d);
		CHECK(d.is_error);
		CHECK(strstr(d.text, "secret") == NULL);
		try_call(&t, "list_files", args, &d);
		CHECK(d.is_error);
		(void)snprintf(args, sizeof(args),
			       "{\"path\":\"%s\",\"content\":\"changed\"}",
			       paths[i]);
		try_call(&t, "write_file", args, &d);
		if (!d.is_error)
			printf("# %s: %s\n", paths[i], d.text);
		CHECK(d.is_error);
	}
	check_file(path, "secret");
	tried_done(&d);
	try_close(&t);
}

/* C11: whatever is planted at a name. */
TEST(planted_names_are_refused_at_once)
{
	struct try t;
	struct tried d = { 0 };
	int64_t begin;

	try_open(&t, FREE);
	add_all(&t);
	CHECK_INT(mkfifoat(workspace, "pipe", 0666), 0);
	CHECK_INT(mkdirat(workspace, "dir", 0755), 0);
	begin = clock_us();
	try_call(&t, "read_file", "{\"path\":\"pipe\"}", &d);
	CHECK_STR(d.text, "'pipe' is not a regular file");
	try_call(&t, "read_file", "{\"path\":\"dir\"}", &d);
	CHECK_STR(d.text, "'dir' is not a regular file");
	try_call(&t, "write_file", "{\"path\":\"pipe\",\"content\":\"x\"}", &d);
	CHECK_STR(d.text, "Filename is not a regular file");
	try_call(&t, "write_file", "{\"path\":\"dir\",\"content\":\"x\"}", &d);
	CHECK_STR(d.text, "Filename is not a regular file");
	try_call(&t, "write_file", "{\"path\":\"pipe/x\",\"content\":\"x\"}",
		 &d);
	CHECK_STR(d.text, "Filename is not a regular file");
	CHECK(clock_us() - begin < 2000000);
	tried_done(&d);
	try_close(&t);
}

/* A hard link to something else stays what it is there. */
TEST(a_hard_link_is_replaced_not_written)
{
	struct try t;
	struct tried d = { 0 };
	char path[200];

	try_open(&t, FREE);
	add_all(&t);
	outside(&t, path, "mine");
	CHECK_INT(linkat(AT_FDCWD, path, workspace, "hard", 0), 0);
	try_call(&t, "write_file", "{\"path\":\"hard\",\"content\":\"yours\"}",
		 &d);
	CHECK(!d.is_error);
	check_file(path, "mine");
	tried_done(&d);
	try_close(&t);
}

TEST(names_that_the_host_obeys_are_not_written)
{
	static const char *const names[] = { "cordon.yaml", ".git/hooks/x",
					     "sub/.bashrc", ".envrc",
					     ".ssh/config" };
	struct try t;
	struct tried d = { 0 };
	char args[200];

	try_open(&t, FREE);
	add_all(&t);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(args, sizeof(args),
			       "{\"path\":\"%s\",\"content\":\"x\"}", names[i]);
		try_call(&t, "write_file", args, &d);
		CHECK(d.is_error);
		CHECK_HAS(d.text, "denied");
	}
	CHECK_INT(mkdirat(workspace, ".ssh", 0755), 0);
	try_call(&t, "read_file", "{\"path\":\".ssh/id\"}", &d);
	CHECK_HAS(d.text, "credentials");
	try_call(&t, "list_files", "{\"path\":\"./.ssh\"}", &d);
	CHECK_HAS(d.text, "credentials");
	tried_done(&d);
	try_close(&t);
}

TEST(what_is_not_text_is_not_read)
{
	struct try t;
	struct tried d = { 0 };
	char path[200];

	try_open(&t, FREE);
	add_all(&t);
	(void)snprintf(path, sizeof(path), "%s/ws/bin", t.dir);
	try_write(path, "\xff\xfe\x01");
	try_call(&t, "read_file", "{\"path\":\"bin\"}", &d);
	CHECK_STR(d.text, "'bin' is not text; it has 3 bytes");
	try_call(&t, "read_file", "{\"path\":\"none\"}", &d);
	CHECK_HAS(d.text, "No such file");
	/* A name that is no text is listed as well as it can be. */
	(void)snprintf(path, sizeof(path), "%s/ws/\xff\n", t.dir);
	try_write(path, "");
	try_call(&t, "list_files", "{\"path\":\".\"}", &d);
	CHECK(!d.is_error);
	CHECK_HAS(d.text, "\xef\xbf\xbd\\n");
	tried_done(&d);
	try_close(&t);
}

/* Only writing asks, and the person sees where and what. */
TEST(writing_asks)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, NULL);
	add_all(&t);
	try_call(&t, "list_files", "{}", &d);
	CHECK_INT(d.end, TOOL_RESULT);
	try_call(&t, "write_file", "{\"path\":\"a\",\"content\":\"x\\ny\"}",
		 &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	CHECK_STR(json_string_value(json_object_get(d.pending, "shown")),
		  "x\ny");
	CHECK_HAS(json_string_value(
			  json_array_get(json_object_get(d.pending, "limits"),
					 0)),
		  "write a in /tmp/cordon-tool-");
	tried_done(&d);
	try_close(&t);
}

/* Section 9, 6: an agent never answers its own request. */
TEST(cordons_own_state_is_no_workspace)
{
	struct try t;
	struct err err = { 0 };
	struct tool *tool = NULL;
	char path[200];
	int fd;

	try_open(&t, NULL);
	fd = open(t.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(tool_files(t.loop, fd, "write_file", &tool, &err), -EPERM);
	CHECK_HAS(err.text, "Cordon's own state");
	fd_close(&fd);
	(void)snprintf(path, sizeof(path), "%s/state/policies", t.dir);
	(void)mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(tool_files(t.loop, fd, "write_file", &tool, &err), -EPERM);
	fd_close(&fd);
	CHECK_INT(tool_files(t.loop, -1, "write_file", &tool, &err), -ENOTDIR);
	CHECK_INT(tool_files(t.loop, 0, "other", &tool, &err), -ENOENT);
	try_close(&t);
}

TAP_MAIN()
