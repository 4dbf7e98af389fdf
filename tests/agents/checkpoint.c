/* SPDX-License-Identifier: Apache-2.0 */

/* Checkpoints: a directory of documents, each written whole. */

#include "tests/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/checkpoint.h"

static char dir[] = "/tmp/cordon-checkpoint-XXXXXX";
static const char run_a[] = "0a0a0a0a-0000-4000-8000-00000000000a";
static const char run_b[] = "0b0b0b0b-0000-4000-8000-00000000000b";

static struct checkpoints *open_dir(unsigned int keep)
{
	struct checkpoints *c = NULL;
	struct err err = { 0 };

	if (strstr(dir, "XXXXXX") && !mkdtemp(dir))
		exit(1);
	CHECK(checkpoints_open(dir, keep, &c, &err) == 0);
	return c;
}

static void clean(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(system(command) == 0);
}

static void put(struct checkpoints *c, const char *run, int n,
		char id[CHECKPOINT_ID])
{
	struct err err = { 0 };
	struct checkpoint p = { .run = run,
				.reason = "turn",
				.state = json_pack("{s:i}", "n", n),
				.about = json_pack("{s:s}", "file", "a.yaml") };

	CHECK(checkpoints_write(c, &p, id, &err) == 0);
	json_decref(p.state);
	json_decref(p.about);
}

static long long number(json_t *doc)
{
	return json_integer_value(
		json_object_get(json_object_get(doc, "state"), "n"));
}

TEST(what_is_written_is_read)
{
	struct checkpoints *c = open_dir(0);
	struct err err = { 0 };
	char id[CHECKPOINT_ID];
	char other[CHECKPOINT_ID];
	json_t *doc = NULL;

	put(c, run_a, 1, id);
	put(c, run_a, 2, other);
	CHECK(strcmp(id, other) < 0);
	CHECK(checkpoints_read(c, id, &doc, &err) == 0);
	CHECK_INT(number(doc), 1);
	CHECK_STR(json_string_value(json_object_get(doc, "id")), id);
	CHECK_STR(json_string_value(json_object_get(doc, "run")), run_a);
	CHECK(json_is_null(json_object_get(doc, "parent")));
	json_decref(doc);
	/* By the run: its last one. */
	CHECK(checkpoints_read(c, run_a, &doc, &err) == 0);
	CHECK_INT(number(doc), 2);
	json_decref(doc);
	CHECK_INT(checkpoints_read(c, run_b, &doc, &err), -ENOENT);
	CHECK_INT(checkpoints_read(c, "../../etc/passwd", &doc, &err), -EINVAL);
	checkpoints_close(c);
	clean();
}

TEST(files_are_closed_to_others)
{
	struct checkpoints *c = open_dir(0);
	char id[CHECKPOINT_ID];
	char path[256];
	struct stat st;

	(void)umask(0);
	put(c, run_a, 1, id);
	(void)snprintf(path, sizeof(path), "%s/%s.%s.json", dir, run_a, id);
	CHECK(stat(path, &st) == 0);
	CHECK_INT(st.st_mode & 07777, 0600);
	checkpoints_close(c);
	clean();
}

TEST(a_directory_that_others_write_is_refused)
{
	struct checkpoints *c = open_dir(0);
	struct err err = { 0 };

	checkpoints_close(c);
	CHECK(chmod(dir, 0777) == 0);
	CHECK_INT(checkpoints_open(dir, 0, &c, &err), -EPERM);
	clean();
}

TEST(old_ones_go_of_their_own_run)
{
	struct checkpoints *c = open_dir(3);
	struct err err = { 0 };
	char first[CHECKPOINT_ID];
	char id[CHECKPOINT_ID];
	json_t *list;
	json_t *doc;

	put(c, run_b, 100, first);
	for (int i = 0; i < 10; i++)
		put(c, run_a, i, id);
	list = checkpoints_list(c, &err);
	CHECK_INT((long long)json_array_size(list), 4);
	/* The newest first, and no state in it. */
	doc = json_array_get(list, 0);
	CHECK_STR(json_string_value(json_object_get(doc, "id")), id);
	CHECK(json_object_get(doc, "state") == NULL);
	CHECK_STR(json_string_value(
			  json_object_get(json_object_get(doc, "about"),
					  "file")),
		  "a.yaml");
	CHECK_STR(json_string_value(
			  json_object_get(json_array_get(list, 3), "id")),
		  first);
	json_decref(list);
	CHECK(checkpoints_read(c, run_a, &doc, &err) == 0);
	CHECK_INT(number(doc), 9);
	json_decref(doc);
	checkpoints_close(c);
	clean();
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f)
		exit(1);
	(void)fputs(text, f);
	(void)fclose(f);
}

TEST(what_is_none_is_not_listed)
{
	struct checkpoints *c = open_dir(0);
	struct err err = { 0 };
	char name[128];
	char id[CHECKPOINT_ID];
	json_t *list;
	json_t *doc;

	put(c, run_a, 1, id);
	/* What a crash can leave, and what somebody else put there. */
	(void)snprintf(name, sizeof(name), "%s.part", run_a);
	write_file(name, "{\"ty");
	write_file("notes.json", "{}");
	(void)snprintf(name, sizeof(name), "%s.%s.json", run_b, run_b);
	write_file(name, "{\"version\":7,\"state\":{}}");
	list = checkpoints_list(c, &err);
	CHECK_INT((long long)json_array_size(list), 1);
	json_decref(list);
	CHECK_INT(checkpoints_read(c, run_b, &doc, &err), -EINVAL);
	CHECK_HAS(err.text, "version");
	/* The next one of the run takes the rest away. */
	put(c, run_a, 2, id);
	(void)snprintf(name, sizeof(name), "%s/%s.part", dir, run_a);
	CHECK(access(name, F_OK) < 0);
	checkpoints_close(c);
	clean();
}

TEST(no_room_is_an_error)
{
	struct checkpoints *c = NULL;
	struct err err = { 0 };

	CHECK(checkpoints_open("/proc/nowhere", 0, &c, &err) < 0);
	CHECK_HAS(err.text, "/proc/nowhere");
}

TAP_MAIN()
