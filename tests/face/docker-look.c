/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What Docker's face shows of boxes, events and the machine, against a manager
 * that is not there.
 */

#include "tests/tap.h"

#include "face/docker/stream.h"
#include "tests/face/docker-expect.h"

/* `start`, then the letter e with an accent, n times, then `end`. */
static char *accents(const char *start, int n, const char *end)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	(void)buf_puts(&b, start);
	while (n-- > 0)
		(void)buf_puts(&b, "\xc3\xa9");
	(void)buf_puts(&b, end);
	return buf_take(&b);
}

/* ---- texts ---- */

TEST(a_text_that_is_cut_is_still_a_text)
{
	static const struct {
		const char *method, *start, *end, *url;
		int n, status;
	} rows[] = {
		{ "GET", "/containers/json?limit=a", "", NULL, 60, 400 },
		{ "POST", "/containers/create?name=a", "", NULL, 90, 400 },
		{ "POST", "/containers/web/wait?condition=a", "", NULL, 60,
		  400 },
		{ "POST", "{\"Image\":\"a", "\"}", "/containers/create", 60,
		  400 },
		{ "POST",
		  "{\"Image\":\"host\",\"HostConfig\":{\"Sysctls\":{\"a\":\"",
		  "\"}}}", "/containers/create", 120, 403 },
		{ "POST",
		  "{\"Image\":\"host\",\"HostConfig\":{\"NetworkMode\":\"a",
		  "\"}}", "/containers/create", 120, 400 },
	};

	fake_reset();
	fake_box(BOX_RUNNING);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *text = accents(rows[i].start, rows[i].n, rows[i].end);

		if (rows[i].url)
			expect(rows[i].method, rows[i].url, text,
			       rows[i].status, "{\"message\":\"");
		else
			expect(rows[i].method, text, NULL, rows[i].status,
			       "{\"message\":\"");
		free(text);
	}
}

TEST(a_name_that_is_no_text_is_not_found)
{
	fake_reset();
	expect("GET", "/containers/%ff/json", NULL, 404,
	       "No such container: \xef\xbf\xbd");
	expect("GET", "/images/%ff/json", NULL, 404, "No such image: ");
	expect("GET", "/networks/%ff", NULL, 404, "network ");
}

TEST(a_name_that_is_too_long_is_told_in_part)
{
	char *url = accents("/containers/a", 900, "/json");

	fake_reset();
	expect("GET", url, NULL, 404, "No such container: a\xc3\xa9");
	free(url);
}

TEST(a_box_with_a_strange_error_is_shown)
{
	fake_reset();
	fake_box(BOX_EXITED);
	fake.box.v.error = "exec: a\xc3";
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"Error\":\"exec: a\xef\xbf\xbd\"");
}

TEST(a_long_program_is_shown_whole)
{
	struct buf spec;

	buf_init(&spec, 1 << 20);
	(void)buf_puts(&spec, "{\"command\":[\"/");
	for (int i = 0; i < 4093; i++)
		(void)buf_puts(&spec, "a");
	for (int i = 0; i < 50; i++)
		(void)buf_puts(&spec, "\xc3\xa9");
	(void)buf_puts(&spec, "\"]}");
	fake_reset();
	fake.spec = spec.data;
	fake_box(BOX_CREATED);
	expect("GET", "/containers/web/json", NULL, 200, "a\xc3\xa9\xc3\xa9");
	expect("GET", "/containers/json?all=1", NULL, 200, A64);
	buf_done(&spec);
}

/* ---- what is in force ---- */

TEST(inspect_has_what_was_not_asked_for)
{
	fake_reset();
	fake.spec = "{\"disk\":1073741824,\"files\":1024,\"file_size\":7,"
		    "\"default_tmpfs\":{\"/dev/shm\":67108864}}";
	fake_box(BOX_RUNNING);
	fake.box.v.stop_signal = SIGTERM;
	fake.box.v.stop_timeout_s = 10;
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"StopSignal\":\"SIGTERM\"");
	expect("GET", "/containers/web/json", NULL, 200, "\"StopTimeout\":10");
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"ShmSize\":67108864");
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"Ulimits\":[{\"Name\":\"nofile\",\"Soft\":1024,\"Hard\":1024},"
	       "{\"Name\":\"fsize\",\"Soft\":7,\"Hard\":7}]");
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"StorageOpt\":{\"size\":\"1073741824\"}");
	expect("GET", "/containers/web/json", NULL, 200, "\"CpuShares\":0");
	expect("GET", "/containers/web/json", NULL, 200, "\"Tmpfs\":{}");
	fake.box.v.stop_signal = 37;
	fake.box.v.stop_timeout_s = INT32_MAX;
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"StopSignal\":\"SIGRTMIN+3\"");
	expect("GET", "/containers/web/json", NULL, 200, "\"StopTimeout\":-1");
}

TEST(inspect_has_limits_as_they_are)
{
	fake_reset();
	fake.spec =
		"{\"files\":1024,\"ulimits\":[{\"name\":\"nofile\",\"soft\":"
		"5,\"hard\":6}],\"tmpfs\":{\"/t\":4096,\"/dev/shm\":8192},"
		"\"default_tmpfs\":{\"/dev/shm\":1}}";
	fake_box(BOX_RUNNING);
	fake.box.v.extra = "{\"HostConfig\":{\"Tmpfs\":{\"/t\":\"noexec\"}}}";
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"Ulimits\":[{\"Name\":\"nofile\",\"Soft\":5,\"Hard\":6}]");
	expect("GET", "/containers/web/json", NULL, 200, "\"ShmSize\":8192");
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"Tmpfs\":{\"/t\":\"noexec,size=4096\"}");
}

TEST(who_does_not_read_misses_whole_samples)
{
	struct http_request *r;

	fake_reset();
	fake_box(BOX_RUNNING);
	r = fake_ask("GET", "/containers/web/stats", NULL);
	CHECK_STR(fake_out(r) + r->out.len - 3, "}\r\n");
	r->room = 100;
	for (size_t had = r->out.len, i = 0; i < 150; i++) {
		usleep(10000);
		(void)uv_run(uv_default_loop(), UV_RUN_NOWAIT);
		fake_run();
		CHECK_INT(r->out.len, had);
	}
	CHECK(!r->has_ended);
	r->room = 0;
	for (size_t had = r->out.len, i = 0; i < 150 && r->out.len == had;
	     i++) {
		usleep(10000);
		(void)uv_run(uv_default_loop(), UV_RUN_NOWAIT);
		fake_run();
	}
	CHECK_HAS(fake_out(r), "}\r\n{");
	fake_done(r);
}

/* ---- events ---- */

static struct event an_event = {
	.type = "container",
	.action = "die",
	.id = A64,
	.time_ns = 1700000000000000005,
	.attributes = "{\"name\":\"web\",\"image\":\"host\",\"a\":\"b\","
		      "\"exitCode\":\"0\"}",
};

TEST(an_event_of_a_cut_command_is_told)
{
	char *action = accents("exec_create: echo a", 20, "\xc3");
	struct event e = an_event;
	struct http_request *r;

	fake_reset();
	e.action = action;
	r = fake_ask("GET", "/events", NULL);
	CHECK(fake.event_fn(fake.event_arg, &e));
	CHECK_HAS(fake_out(r), "exec_create: echo a");
	CHECK_HAS(fake_out(r), "\xef\xbf\xbd");
	fake_done(r);
	free(action);
}

/* As the manager: the same events, each until it is taken. */
static int left;

static int tell_rest(void)
{
	for (; left > 0; left--)
		if (!fake.event_fn(fake.event_arg, &an_event))
			return 0;
	return 1;
}

TEST(events_come_as_fast_as_they_are_read)
{
	struct http_request *r;
	const char *p;
	int whole = 0;

	fake_reset();
	r = fake_ask("GET", "/events?since=1&until=1700000001", NULL);
	r->room = 100;
	left = 200;
	fake.resume = tell_rest;
	CHECK_INT(tell_rest(), 0);
	CHECK(left > 0);
	/* `until` has passed: the end waits for all of it. */
	for (int i = 0; i < 50 && !r->has_ended; i++) {
		usleep(2000);
		(void)uv_run(uv_default_loop(), UV_RUN_NOWAIT);
	}
	CHECK(!r->has_ended);
	for (int i = 0; i < 10000 && !r->has_ended; i++)
		r->ready(r->data);
	CHECK(r->has_ended && !r->was_cut);
	CHECK_INT(left, 0);
	for (p = fake_out(r); (p = strstr(p, "}\r\n")); p += 3)
		whole++;
	CHECK_INT(whole, 200);
	CHECK_STR(fake_out(r) + r->out.len - 3, "}\r\n");
	fake_done(r);
}

static int too_late(void)
{
	return -ENOENT;
}

TEST(who_reads_too_late_is_cut_off)
{
	struct http_request *r;

	fake_reset();
	r = fake_ask("GET", "/events", NULL);
	fake.resume = too_late;
	r->ready(r->data);
	CHECK(r->was_cut);
	fake_done(r);
}

static bool is_told(const char *filters)
{
	char url[256];
	struct http_request *r;
	bool told;

	(void)snprintf(url, sizeof(url), "/events?filters=%s", filters);
	r = fake_ask("GET", url, NULL);
	CHECK_INT(r->status, 200);
	CHECK(fake.event_fn(fake.event_arg, &an_event));
	told = r->out.len > 0;
	fake_done(r);
	return told;
}

TEST(every_filter_of_events_is_applied)
{
	fake_reset();
	CHECK(!is_told("{\"network\":[\"zzz\"]}"));
	CHECK(!is_told("{\"volume\":[\"web\"]}"));
	CHECK(!is_told("{\"plugin\":[\"web\"]}"));
	CHECK(!is_told("{\"daemon\":[\"web\"]}"));
	CHECK(!is_told("{\"scope\":[\"swarm\"]}"));
	CHECK(is_told("{\"scope\":[\"local\"]}"));
	CHECK(is_told("{\"container\":[\"/web\"]}"));
	CHECK(!is_told("{\"container\":[\"/\"]}"));
}

/* ---- lists ---- */

#define IMAGES                                                                 \
	"[{\"id\":\"sha256:abcdef012345\",\"names\":[\"bb:1\",\"cc:2\"],"      \
	"\"created\":\"2023-11-14T22:13:20Z\",\"size\":7}]"

TEST(containers_by_what_their_image_is_called)
{
	static const struct {
		const char *ancestor;
		bool is_it;
	} rows[] = { { "bb:1", true },         { "cc:2", true },
		     { "abcdef012345", true }, { "sha256:abcdef", true },
		     { "abc", true },          { "cc:1", false },
		     { "host", false },        { "abd", false } };

	fake_reset();
	fake.spec = "{\"image_id\":\"sha256:abcdef012345\"}";
	fake_box(BOX_RUNNING);
	fake.box.v.extra = "{\"Config\":{\"Image\":\"bb:1\"}}";
	fake.image_says = IMAGES;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char url[128];

		(void)snprintf(url, sizeof(url),
			       "/containers/json?filters={\"ancestor\":[\"%s\"]"
			       "}",
			       rows[i].ancestor);
		expect("GET", url, NULL, 200, rows[i].is_it ? A64 : "[]");
	}
	expect("GET",
	       "/containers/json?size=1&filters={\"ancestor\":[\"cc:2\"]}",
	       NULL, 200, "\"SizeRootFs\":7");
}

TEST(containers_by_a_regular_expression)
{
	fake_reset();
	fake_box(BOX_RUNNING);
	expect("GET", "/containers/json?filters={\"name\":[\"w[a-f]b\"]}", NULL,
	       200, A64);
	expect("GET", "/containers/json?filters={\"name\":[\"^/(web|x)$\"]}",
	       NULL, 200, A64);
	expect("GET", "/containers/json?filters={\"name\":[\"^(wx|x)$\"]}",
	       NULL, 200, "[]");
}

TEST(values_of_filters_are_read_as_go_reads_them)
{
	static const char *const no[] = { "f", "F", "0", "false", "FALSE" };
	static const char *const yes[] = { "t", "T", "1", "true", "True" };
	char url[128];

	fake_reset();
	fake.image_says = IMAGES;
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		(void)snprintf(url, sizeof(url),
			       "/images/json?filters={\"dangling\":[\"%s\"]}",
			       no[i]);
		expect("GET", url, NULL, 200, "bb:1");
		(void)snprintf(url, sizeof(url),
			       "/images/json?filters={\"dangling\":[\"%s\"]}",
			       yes[i]);
		expect("GET", url, NULL, 200, "[]");
	}
	expect("POST", "/containers/prune?filters={\"until\":[\"garbage\"]}",
	       NULL, 400, "invalid filter 'until=garbage'");
	expect("POST", "/containers/prune?filters={\"until\":[\"\"]}", NULL,
	       400, "invalid filter");
	expect("POST", "/containers/prune?filters={\"until\":[\"24h\"]}", NULL,
	       200, "ContainersDeleted");
}

/* ---- the machine ---- */

TEST(networks_have_ids)
{
	char id[2][65];
	char url[128];

	network_id("bridge", id[0]);
	network_id("none", id[1]);
	CHECK(strncmp(id[0], id[1], 12) != 0);
	fake_reset();
	fake_box(BOX_RUNNING);
	expect("GET", "/networks", NULL, 200, id[0]);
	expect("GET", "/networks", NULL, 200, id[1]);
	(void)snprintf(url, sizeof(url), "/networks/%s", id[0]);
	expect("GET", url, NULL, 200, "\"Name\":\"bridge\"");
	(void)snprintf(url, sizeof(url), "/networks/%.12s", id[1]);
	expect("GET", url, NULL, 200, "\"Name\":\"none\"");
	expect("GET", "/networks/0000", NULL, 404, "network 0000 not found");
	expect("GET", "/containers/web/json", NULL, 200, id[0]);
}

TEST(the_id_of_the_daemon_is_the_machines)
{
	fake_reset();
	expect("GET", "/info", NULL, 200, "\"ID\":\"fake-machine\"");
}

#define SHARED                                                                 \
	"[{\"id\":\"sha256:abcdef012345\",\"names\":[\"bb:1\"],\"size\":30,"   \
	"\"layer_sizes\":{\"l1\":10,\"l2\":20}},{\"id\":\"sha256:fedcba\","    \
	"\"names\":[\"cc:1\"],\"size\":15,\"layer_sizes\":{\"l1\":10,"         \
	"\"l3\":5}}]"

TEST(what_the_disk_holds)
{
	struct http_request *r;

	fake_reset();
	fake.image_says = SHARED;
	fake.spec = "{\"image_id\":\"sha256:abcdef012345\"}";
	fake_box(BOX_RUNNING);
	r = fake_ask("GET", "/system/df", NULL);
	CHECK_INT(r->status, 200);
	CHECK_HAS(fake_out(r), "\"LayersSize\":35,");
	CHECK_HAS(fake_out(r), "\"SizeRootFs\":30");
	CHECK_HAS(fake_out(r), "\"VirtualSize\":15");
	CHECK_HAS(fake_out(r), "\"Size\":30,\"SharedSize\":10,"
			       "\"Containers\":1");
	CHECK_HAS(fake_out(r), "\"Size\":15,\"SharedSize\":10,"
			       "\"Containers\":0");
	CHECK(!strstr(fake_out(r), LAYER_SIZES));
	fake_done(r);
	r = fake_ask("GET", "/images/json", NULL);
	CHECK(!strstr(fake_out(r), LAYER_SIZES));
	fake_done(r);
}

/* ---- images ---- */

TEST(the_sizes_of_a_history)
{
	fake_reset();
	fake.image_says = "[{\"Id\":\"sha256:ab\",\"RepoTags\":[],"
			  "\"History\":[{\"CreatedBy\":\"x\",\"Size\":7}]}]";
	expect("GET", "/images/bb/history", NULL, 200, "\"Size\":7");
}

/* A few digits are enough, where no other image has them. */
TEST(the_beginning_of_the_id_of_host)
{
	struct http_request *r;
	char body[64];

	(void)snprintf(body, sizeof(body), "{\"image\":\"%.3s\"}",
		       host_id() + 7);
	fake_reset();
	fake.err.code = MGR_NO_IMAGE;
	r = fake_ask("POST", "/containers/create", body);
	CHECK_INT(r->status, 404);
	fake_done(r);
	CHECK_INT(fake.created, 2);
	CHECK_HAS(fake.settings, "\"image\":\"host\"");
	fake_reset();
	fake.err.code = MGR_NO_IMAGE;
	expect("POST", "/containers/create", "{\"Image\":\"zz\"}", 404,
	       "No such image: zz");
	CHECK_INT(fake.created, 1);
}

static const char *elsewhere(void)
{
	return strcmp(platform_here(), "arm64") == 0 ? "amd64" : "arm64";
}

TEST(another_platform)
{
	char url[128];

	(void)snprintf(url, sizeof(url), "/containers/create?platform=linux/%s",
		       elsewhere());
	fake_reset();
	fake.image_says = "[{}]";
	expect("POST", url, "{\"Image\":\"host\"}", 404,
	       "host was found but does not match the specified platform");
	expect("POST", url, "{\"Image\":\"there\"}", 404,
	       "there was found but does not match the specified platform");
	fake.err.code = IMAGE_STATUS(1);
	(void)snprintf(fake.err.text, sizeof(fake.err.text),
		       "there is no image 'nope'");
	expect("POST", url, "{\"Image\":\"nope\"}", 404, "No such image: nope");
	CHECK_INT(fake.created, 0);
	fake_reset();
	(void)snprintf(url, sizeof(url),
		       "/images/create?fromSrc=-&repo=x&platform=linux/%s",
		       elsewhere());
	expect("POST", url, "", 400, "platform");
	(void)snprintf(url, sizeof(url),
		       "/images/create?fromImage=host&platform=linux/%s",
		       elsewhere());
	expect("POST", url, "", 404,
	       "was found but does not match the specified platform");
}

/* The first is `web`, the second of the same image. */
static void two_boxes(enum box_state first, enum box_state second)
{
	fake_reset();
	fake.spec = "{\"image_id\":\"sha256:abcdef012345\"}";
	fake_box(first);
	fake.box.v.extra = "{\"Config\":{\"Image\":\"bb:1\"}}";
	fake.other = fake.box;
	fake.other.v.state = second;
	fake.other.v.id = "bbbbbbbbbbbbbbbbbbbb";
	fake.has_other = true;
}

TEST(of_the_users_of_an_image_one_that_runs_decides)
{
	two_boxes(BOX_EXITED, BOX_RUNNING);
	expect("DELETE", "/images/bb:1?force=1", NULL, 409,
	       "(cannot be forced) - container bbbbbbbbbbbb is using its "
	       "referenced image");
	expect("DELETE", "/images/bb:1", NULL, 409, "(cannot be forced)");
	two_boxes(BOX_EXITED, BOX_EXITED);
	expect("DELETE", "/images/bb:1", NULL, 409,
	       "(must force) - container aaaaaaaaaaaa is using");
	fake.image_says = "{}";
	expect("DELETE", "/images/bb:1?force=1", NULL, 200, "[]");
}

TEST(who_uses_an_image_by_another_name_is_told)
{
	two_boxes(BOX_EXITED, BOX_RUNNING);
	fake.err.code = IMAGE_STATUS(1);
	(void)snprintf(fake.err.text, sizeof(fake.err.text),
		       "cordon: image 'sha256:abcdef012345' is in use");
	expect("DELETE", "/images/other:1?force=1", NULL, 409,
	       "(cannot be forced) - container bbbbbbbbbbbb is using its "
	       "referenced image");
	/* Not by a container of this user. */
	fake.has_box = false;
	expect("DELETE", "/images/other:1?force=1", NULL, 409,
	       "(cannot be forced)");
}

TAP_MAIN()
