/* SPDX-License-Identifier: Apache-2.0 */

/* Docker's face against a manager that is not there. */

#include "tests/tap.h"

#include <sys/stat.h>

#include "face/docker/stream.h"
#include "tests/face/docker-expect.h"

#define E64 "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

/* ---- pure parts ---- */

TEST(modes_are_those_of_go)
{
	CHECK_INT(go_mode(S_IFREG | 0644), 0644);
	CHECK_INT(go_mode(S_IFDIR | 0755), 0x80000000LL | 0755);
	CHECK_INT(go_mode(S_IFLNK | 0777), 0x08000000LL | 0777);
	CHECK_INT(go_mode(S_IFBLK | 0600), 0x04000000LL | 0600);
	CHECK_INT(go_mode(S_IFCHR | 0600), 0x04200000LL | 0600);
	CHECK_INT(go_mode(S_IFIFO | 0600), 0x02000000LL | 0600);
	CHECK_INT(go_mode(S_IFSOCK | 0600), 0x01000000LL | 0600);
	CHECK_INT(go_mode(S_IFREG | 04755), 0x00800000LL | 0755);
	CHECK_INT(go_mode(S_IFREG | 02755), 0x00400000LL | 0755);
	CHECK_INT(go_mode(S_IFDIR | 01777), 0x80100000LL | 0777);
}

TEST(times)
{
	char text[40];
	int64_t ns;

	time_format(0, text);
	CHECK_STR(text, "0001-01-01T00:00:00Z");
	time_format(1700000000000000007, text);
	CHECK_STR(text, "2023-11-14T22:13:20.000000007Z");
	CHECK_INT(time_parse("1700000000.5", &ns), 0);
	CHECK_INT(ns, 1700000000500000000);
	CHECK_INT(time_parse("12", &ns), 0);
	CHECK_INT(ns, 12000000000);
	CHECK(time_parse("x", &ns) < 0);
	CHECK(time_parse("1.x", &ns) < 0);
	CHECK(time_parse("99999999999999999999", &ns) < 0);
}

TEST(durations_are_in_words)
{
	static const struct {
		int64_t s;
		const char *text;
	} rows[] = {
		{ 0, "Less than a second" },  { 1, "1 second" },
		{ 59, "59 seconds" },         { 60, "About a minute" },
		{ 180, "3 minutes" },         { 3600, "About an hour" },
		{ 7200, "2 hours" },          { 86400 * 3, "3 days" },
		{ 86400 * 21, "3 weeks" },    { 86400 * 100, "3 months" },
		{ 86400LL * 800, "2 years" },
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		human_duration(rows[i].s, text, sizeof(text));
		CHECK_STR(text, rows[i].text);
	}
}

TEST(booleans_of_a_query)
{
	CHECK(!bool_parse("") && !bool_parse("0") && !bool_parse(" False "));
	CHECK(!bool_parse("NO") && !bool_parse("none"));
	CHECK(bool_parse("1") && bool_parse("True") && bool_parse("x"));
}

TEST(signals_have_names_and_numbers)
{
	CHECK_INT(signal_parse("KILL"), SIGKILL);
	CHECK_INT(signal_parse("sigterm"), SIGTERM);
	CHECK_INT(signal_parse("9"), SIGKILL);
	CHECK_INT(signal_parse("0"), -1);
	CHECK_INT(signal_parse("65"), -1);
	CHECK_INT(signal_parse("SIGNOPE"), -1);
	CHECK_INT(signal_parse("SIGRTMIN+3"), 37);
	CHECK_INT(signal_parse("rtmin"), 34);
	CHECK_INT(signal_parse("RTMAX"), 64);
	CHECK_INT(signal_parse("SIGRTMAX-14"), 50);
	CHECK_INT(signal_parse("RTMIN-1"), -1);
	CHECK_INT(signal_parse("RTMIN+31"), -1);
	CHECK_INT(signal_parse("RTMAX+1"), -1);
	CHECK_INT(signal_parse("RTMIN+"), -1);
}

TEST(names_are_compared_whole)
{
	CHECK(ref_is_same("python", "docker.io/library/python:latest"));
	CHECK(ref_is_same("a/b", "docker.io/a/b:latest"));
	CHECK(ref_is_same("localhost:5000/x", "localhost:5000/x:latest"));
	CHECK(!ref_is_same("python:3", "python"));
	CHECK(!ref_is_same("", "") && !ref_is_same("-a", "-a"));
	CHECK(ref_is_host("host") && ref_is_host("host:latest"));
	CHECK(ref_is_host("docker.io/library/host:latest"));
	CHECK(ref_is_host(host_id()));
	CHECK(!ref_is_host("host:1") && !ref_is_host("ghost"));
	CHECK(container_name_check("a1") && container_name_check("A_b.c-d"));
	CHECK(!container_name_check("a") && !container_name_check("-a") &&
	      !container_name_check("a/b"));
	CHECK(!container_name_check(""));
}

TEST(patterns_are_found)
{
	CHECK(pattern_found("web", "/web-1"));
	CHECK(pattern_found("^/web$", "/web"));
	CHECK(!pattern_found("^web$", "/web"));
	CHECK(pattern_found("w.b", "/web"));
	CHECK(pattern_found("a.*z", "xabcz"));
	CHECK(!pattern_found("a.*y", "xabcz"));
	CHECK(pattern_found("(a|b)", "a"));
	CHECK(pattern_found("aud-[a-z]", "aud-a"));
	CHECK(!pattern_found("aud-[b-z]$", "aud-a"));
	CHECK(pattern_found("^/(aud-a|b)$", "/aud-a"));
	CHECK(pattern_found("aud-a|foo", "aud-a"));
	CHECK(!pattern_found("(", "a") && !pattern_found("a{2000}", "a"));
	CHECK(pattern_found("timeout 60 python x.py",
			    "timeout 60 python x.py"));
	/* Bounded, whatever the pattern is. */
	CHECK(!pattern_found("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
			     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

TEST(filters_come_in_two_shapes)
{
	struct err err = { 0 };
	json_t *f = filters_parse("{\"name\":{\"k1\":true,\"k2\":false}}",
				  "id name", &err);

	CHECK(filters_has(f, "name") && !filters_has(f, "id"));
	CHECK_INT(json_array_size(json_object_get(f, "name")), 1);
	json_decref(f);
	f = filters_parse("{\"name\":[\"k1\",\"k2\"]}", "id name", &err);
	CHECK_INT(json_array_size(json_object_get(f, "name")), 2);
	json_decref(f);
	f = filters_parse("", "name", &err);
	CHECK(f && !filters_has(f, "name"));
	json_decref(f);
	CHECK(!filters_parse("{\"nam\":[\"k\"]}", "id name", &err));
	CHECK_HAS(err.text, "invalid filter 'nam'");
	CHECK(!filters_parse("{\"name\":[1]}", "name", &err));
	CHECK(!filters_parse("{\"name\":3}", "name", &err));
	CHECK(!filters_parse("[", "name", &err));
}

TEST(labels_are_all_of_them)
{
	struct err err = { 0 };
	json_t *labels = json_pack("{s:s,s:s}", "a", "1", "b", "2");
	json_t *f = filters_parse("{\"label\":[\"a\",\"b=2\"]}", "label", &err);

	CHECK(filters_labels(f, labels));
	json_decref(f);
	f = filters_parse("{\"label\":[\"a\",\"b=3\"]}", "label", &err);
	CHECK(!filters_labels(f, labels));
	json_decref(f);
	json_decref(labels);
}

TEST(frames)
{
	unsigned char head[FRAME_HEAD];

	frame_make(head, 2, 0x01020304);
	CHECK(memcmp(head, "\2\0\0\0\1\2\3\4", 8) == 0);
}

TEST(an_answer_that_takes_little_loses_nothing)
{
	struct http_request *r = calloc(1, sizeof(*r));
	struct out o = { .r = r, .is_framed = true };
	char text[1000];
	size_t n;

	memset(text, 'x', sizeof(text));
	buf_init(&r->out, 1 << 20);
	http_begin(r, 200, "t", false);
	r->room = 100;
	n = out_write(&o, 1, text, sizeof(text));
	CHECK_INT(n, 1000);
	CHECK_INT(out_write(&o, 1, text, sizeof(text)), 0);
	for (int i = 0; i < 20 && !out_flush(&o); i++)
		;
	CHECK(out_flush(&o));
	CHECK_INT(r->out.len, 1008);
	buf_done(&r->out);
	free(r);
}

TEST(keys_that_detach)
{
	struct keys k;
	char out[64];
	bool is_over;

	CHECK_INT(keys_parse("", &k), 0);
	CHECK_INT(keys_filter(&k, "ab\x10\x11zz", 6, out, &is_over), 2);
	CHECK(is_over);
	CHECK_INT(keys_parse("", &k), 0);
	CHECK_INT(keys_filter(&k, "a\x10", 2, out, &is_over), 1);
	CHECK(!is_over);
	/* It was not the sequence: what was held back comes. */
	CHECK_INT(keys_filter(&k, "b", 1, out, &is_over), 2);
	CHECK(memcmp(out,
		     "\x10"
		     "b",
		     2) == 0);
	CHECK_INT(keys_filter(&k, "\x10\x10\x11", 3, out, &is_over), 1);
	CHECK(is_over);
	CHECK_INT(keys_parse("ctrl-a,x", &k), 0);
	CHECK_INT(k.n, 2);
	CHECK(keys_parse("ctrl-1", &k) < 0 && keys_parse("ab", &k) < 0);
	CHECK(keys_parse("a,", &k) < 0);
}

/* ---- versions and routes ---- */

TEST(versions)
{
	struct http_request *r;

	fake_reset();
	expect("GET", "/_ping", NULL, 200, "OK");
	expect("GET", "/v1.24/_ping", NULL, 200, "OK");
	expect("GET", "/v1.51/version", NULL, 200, "\"ApiVersion\":\"1.51\"");
	expect("GET", "/v1.23/version", NULL, 400,
	       "is too old. Minimum supported API version is 1.24");
	expect("GET", "/v1.52/version", NULL, 400,
	       "is too new. Maximum supported API version is 1.51");
	expect("GET", "/v1.x/version", NULL, 404, "page not found");
	r = fake_ask("HEAD", "/_ping", NULL);
	CHECK_STR(r->type, "text/plain; charset=utf-8");
	CHECK_HAS(r->headers, "Swarm: inactive");
	CHECK_HAS(r->headers, "Pragma: no-cache");
	CHECK_HAS(r->headers, "no-cache, no-store, must-revalidate");
	fake_done(r);
}

TEST(what_is_not_there_says_so)
{
	static const struct {
		const char *method, *url;
		int status;
		const char *text;
	} rows[] = {
		{ "POST", "/build", 501, "is not supported" },
		{ "POST", "/auth", 501, "cordon: logging in" },
		{ "POST", "/commit?container=x", 501, "is not supported" },
		{ "POST", "/v1.44/images/a/b/push", 501, "pushing images" },
		{ "GET", "/images/search?term=x", 501, "is not supported" },
		{ "POST", "/containers/web/update", 501, "is not supported" },
		{ "POST", "/networks/create", 501, "is not supported" },
		{ "POST", "/volumes/create", 501, "is not supported" },
		{ "POST", "/swarm/init", 501, "swarm mode" },
		{ "GET", "/services/x", 501, "swarm mode" },
		{ "GET", "/secrets", 501, "swarm mode" },
		{ "GET", "/distribution/a/json", 501, "is not supported" },
		{ "GET", "/networks/x", 404, "network x not found" },
		{ "GET", "/volumes/x", 404, "no such volume" },
		{ "GET", "/plugins/x/json", 404, "not found" },
		{ "GET", "/plugins", 501, "plugins is not supported" },
		{ "GET", "/containers/web/attach/ws", 501, "web socket" },
		{ "GET", "/networks?filters={\"driver\":[\"null\"]}", 200,
		  "[{\"Name\":\"none\"" },
		{ "GET", "/networks?filters={\"id\":[\"77\"]}", 200, "[]" },
		{ "GET", "/networks?filters={\"type\":[\"custom\"]}", 200,
		  "[]" },
		{ "GET", "/networks?filters={\"scope\":[\"swarm\"]}", 200,
		  "[]" },
		{ "GET", "/networks?filters={\"label\":[\"a\"]}", 200, "[]" },
		{ "GET", "/networks?filters={\"dangling\":[\"true\"]}", 200,
		  "[]" },
		{ "GET", "/networks?filters={\"dangling\":[\"maybe\"]}", 400,
		  "dangling=maybe" },
		{ "GET", "/containers/json?filters={\"exited\":[\"x\"]}", 400,
		  "exited=x" },
		{ "GET", "/containers/json?filters={\"name\":\"x\"}", 400,
		  "invalid filter 'name'" },
		{ "GET", "/nothing", 404, "page not found" },
		{ "GET", "/networks/bridge", 200, "\"Driver\":\"bridge\"" },
		{ "GET", "/networks", 200, "\"Driver\":\"null\"" },
		{ "GET", "/volumes", 200, "\"Volumes\":[]" },
	};

	fake_reset();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect(rows[i].method, rows[i].url, NULL, rows[i].status,
		       rows[i].text);
}

/* ---- create ---- */

static void expect_refused(const char *body, const char *field, int status)
{
	struct http_request *r;

	fake_reset();
	r = fake_ask("POST", "/containers/create", body);
	if (r->status != status)
		printf("# %s: %s\n", body, fake_out(r));
	CHECK_INT(r->status, status);
	CHECK_HAS(fake_out(r), field);
	CHECK_HAS(fake_out(r), "\"message\":\"cordon: ");
	CHECK_INT(fake.created, 0);
	/* Not the words that mean something else to the client. */
	CHECK(!strstr(fake_out(r), "permission denied"));
	CHECK(!strstr(fake_out(r), "no such file or directory"));
	fake_done(r);
}

/* Each of section 7.3: 403, the field by name, and nothing was created. */
TEST(what_takes_the_wall_away_is_refused)
{
	static const struct {
		const char *body, *field;
		int status;
	} rows[] = {
#define H(field, value)                                                        \
	"{\"Image\":\"host\",\"HostConfig\":{\"" field "\":" value "}}", field
		{ H("Privileged", "true"), 403 },
		{ H("NetworkMode", "\"host\""), 403 },
		{ H("NetworkMode", "\"container:x\""), 403 },
		{ H("PidMode", "\"host\""), 403 },
		{ H("PidMode", "\"container:x\""), 403 },
		{ H("IpcMode", "\"host\""), 403 },
		{ H("IpcMode", "\"container:x\""), 403 },
		{ H("UTSMode", "\"host\""), 403 },
		{ H("UsernsMode", "\"host\""), 403 },
		{ H("CgroupnsMode", "\"host\""), 403 },
		{ H("Devices", "[{\"PathOnHost\":\"/dev/kvm\"}]"), 403 },
		{ H("DeviceRequests", "[{\"Count\":-1}]"), 403 },
		{ H("DeviceCgroupRules", "[\"c *:* rwm\"]"), 403 },
		{ H("SecurityOpt", "[\"seccomp=unconfined\"]"), 403 },
		{ H("SecurityOpt", "[\"apparmor=unconfined\"]"), 403 },
		{ H("SecurityOpt", "[\"label=disable\"]"), 403 },
		{ H("SecurityOpt", "[\"label:disable\"]"), 403 },
		{ H("SecurityOpt", "[\"systempaths=unconfined\"]"), 403 },
		{ H("SecurityOpt", "[\"no-new-privileges:false\"]"), 403 },
		{ H("SecurityOpt", "[\"no-new-privileges=false\"]"), 403 },
		{ H("SecurityOpt", "[\"something=new\"]"), 403 },
		{ H("SecurityOpt", "[\"seccomp={}\"]"), 501 },
		{ H("MaskedPaths", "[]"), 403 },
		{ H("MaskedPaths", "[\"/proc/kcore\"]"), 403 },
		{ H("ReadonlyPaths", "[]"), 403 },
		{ H("Sysctls", "{\"net.ipv4.ip_forward\":\"1\"}"), 403 },
		{ H("CgroupParent", "\"x\""), 403 },
		{ H("OomKillDisable", "true"), 403 },
		{ H("Runtime", "\"runc\""), 403 },
		{ H("VolumesFrom", "[\"x\"]"), 403 },
		{ H("Links", "[\"x:y\"]"), 403 },
		{ H("PortBindings", "{\"80/tcp\":[{\"HostPort\":\"80\"}]}"),
		  403 },
		{ H("PublishAllPorts", "true"), 403 },
		{ H("VolumeDriver", "\"x\""), 403 },
		{ H("CapAdd", "[\"NET_ADMIN\"]"), 403 },
		{ H("Binds", "[\"named:/data\"]"), 501 },
		{ H("Mounts", "[{\"Type\":\"volume\",\"Source\":\"n\","
			      "\"Target\":\"/d\"}]"),
		  501 },
		{ H("Mounts", "[{\"Type\":\"image\",\"Target\":\"/d\"}]"),
		  501 },
		{ H("Binds", "[\"/tmp:/d:shared\"]"), 403 },
		{ H("Binds", "[\"/tmp:/d:rslave\"]"), 403 },
		{ H("ExtraHosts", "[\"a:host-gateway\"]"), 403 },
		{ H("OomScoreAdj", "-5"), 403 },
		{ H("GroupAdd", "[\"0\"]"), 403 },
		{ H("GroupAdd", "[\"5\",\"root\"]"), 403 },
		{ H("CpuRealtimeRuntime", "1000"), 403 },
		{ H("LogConfig", "{\"Type\":\"syslog\"}"), 501 },
		{ H("BlkioWeight", "500"), 501 },
		{ H("CpusetMems", "\"0\""), 501 },
		/* As Go reads it: without regard to case. */
		{ "{\"image\":\"host\",\"hostconfig\":{\"privileged\":true}}",
		  "Privileged", 403 },
		/* In a place where Docker has no such field. */
		{ "{\"Image\":\"host\",\"Privileged\":true}", "Privileged",
		  403 },
		{ "{\"Image\":\"host\",\"MaskedPaths\":[]}", "MaskedPaths",
		  403 },
		{ "{\"Image\":\"host\",\"NetworkingConfig\":{"
		  "\"EndpointsConfig\":{\"bridge\":{\"Links\":[\"a\"]}}}}",
		  "Links", 403 },
		{ "{\"Image\":\"host\",\"MacAddress\":\"1:2\"}", "MacAddress",
		  501 },
#undef H
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect_refused(rows[i].body, rows[i].field, rows[i].status);
}

/* Inside of lists and maps as well, whatever the case of the names. */
TEST(what_is_inside_is_refused_too)
{
	static const struct {
		const char *body, *field;
		int status;
	} rows[] = {
#define H(field, value)                                                        \
	"{\"Image\":\"host\",\"HostConfig\":{\"" field "\":" value "}}", field
#define VOLUME(more) "[{\"Type\":\"volume\",\"Target\":\"/b\"," more "}]"
		{ H("Mounts", VOLUME("\"ReadOnly\":true")), 501 },
		{ H("Mounts", VOLUME("\"volumeOptions\":{\"driverconfig\":"
				     "{\"Name\":\"x\"}}")),
		  403 },
		{ H("Mounts", VOLUME("\"VolumeOptions\":{\"NoCopy\":true}")),
		  501 },
		{ H("Mounts", VOLUME("\"VolumeOptions\":{\"Subpath\":\"x\"}")),
		  501 },
		{ H("Mounts", VOLUME("\"privileged\":true")), 403 },
#undef VOLUME
#define BIND(more)                                                             \
	"[{\"Type\":\"bind\",\"Source\":\"/a\",\"Target\":\"/b\","             \
	"\"BindOptions\":{" more "}}]"
		{ H("Mounts", BIND("\"propagation\":\"rshared\"")), 403 },
		{ H("Mounts", BIND("\"nonrecursive\":true")), 501 },
		{ H("Mounts", BIND("\"createmountpoint\":true")), 501 },
		{ H("Mounts", BIND("\"Devices\":[1]")), 403 },
#undef BIND
		{ H("LogConfig", "{\"type\":\"syslog\"}"), 501 },
		{ "{\"Image\":\"host\",\"NetworkingConfig\":{"
		  "\"endpointsconfig\":{\"bridge\":{\"links\":[\"a\"]}}}}",
		  "Links", 403 },
#undef H
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect_refused(rows[i].body, rows[i].field, rows[i].status);
}

TEST(an_exec_is_never_privileged)
{
	fake_reset();
	fake_box(BOX_RUNNING);
	expect("POST", "/containers/web/exec",
	       "{\"Cmd\":[\"ls\"],\"Privileged\":true}", 403, "Privileged");
	expect("POST", "/containers/web/exec",
	       "{\"Cmd\":[\"ls\"],\"CapAdd\":[\"ALL\"]}", 403, "CapAdd");
	CHECK(!fake.has_exec);
}

/* What is asked for nothing by the docker command itself is accepted. */
TEST(the_usual_body_is_accepted)
{
	static const char body[] =
		"{\"Hostname\":\"\",\"Domainname\":\"\",\"User\":\"\","
		"\"AttachStdin\":false,\"AttachStdout\":true,\"AttachStderr\":"
		"true,\"Tty\":false,\"OpenStdin\":false,\"StdinOnce\":false,"
		"\"Env\":null,\"Cmd\":[\"true\"],\"Image\":\"host\",\"Volumes\""
		":{},\"WorkingDir\":\"\",\"Entrypoint\":null,\"OnBuild\":null,"
		"\"Labels\":{},\"HostConfig\":{\"Binds\":null,"
		"\"ContainerIDFile\":\"\",\"LogConfig\":{\"Type\":\"\","
		"\"Config\":{}},\"NetworkMode\":\"default\",\"PortBindings\":{"
		"},\"RestartPolicy\":{\"Name\":\"no\",\"MaximumRetryCount\":0}"
		",\"AutoRemove\":true,\"VolumeDriver\":\"\",\"VolumesFrom\":"
		"null,\"ConsoleSize\":[24,80],\"CapAdd\":null,\"CapDrop\":null,"
		"\"CgroupnsMode\":\"\",\"Dns\":[],\"DnsOptions\":[],"
		"\"DnsSearch\":[],\"ExtraHosts\":null,\"GroupAdd\":null,"
		"\"IpcMode\":\"\",\"Cgroup\":\"\",\"Links\":null,"
		"\"OomScoreAdj\":0,\"PidMode\":\"\",\"Privileged\":false,"
		"\"PublishAllPorts\":false,\"ReadonlyRootfs\":false,"
		"\"SecurityOpt\":null,\"UTSMode\":\"\",\"UsernsMode\":\"\","
		"\"ShmSize\":0,\"Isolation\":\"\",\"CpuShares\":0,\"Memory\":0,"
		"\"NanoCpus\":0,\"CgroupParent\":\"\",\"BlkioWeight\":0,"
		"\"BlkioWeightDevice\":[],\"CpuPeriod\":0,\"CpuQuota\":0,"
		"\"CpuRealtimePeriod\":0,\"CpusetCpus\":\"\",\"CpusetMems\":"
		"\"\",\"Devices\":[],\"DeviceCgroupRules\":null,"
		"\"DeviceRequests\":null,\"MemoryReservation\":0,"
		"\"MemorySwap\":0,\"MemorySwappiness\":-1,\"OomKillDisable\":"
		"false,\"PidsLimit\":0,\"Ulimits\":[],\"CpuCount\":0,"
		"\"CpuPercent\":0,\"IOMaximumIOps\":0,\"IOMaximumBandwidth\":0,"
		"\"MaskedPaths\":null,\"ReadonlyPaths\":null},"
		"\"NetworkingConfig\":{\"EndpointsConfig\":{\"default\":{"
		"\"IPAMConfig\":null,\"Links\":null,\"Aliases\":null}}}}";
	struct http_request *r;

	fake_reset();
	r = fake_ask("POST", "/v1.50/containers/create?name=one", body);
	CHECK_INT(r->status, 201);
	CHECK_HAS(fake_out(r), "{\"Id\":\"" A64 "\",\"Warnings\":[]}");
	CHECK_STR(fake.settings, "{\"image\":\"host\"}");
	CHECK_STR(fake.command, "true");
	CHECK_STR(fake.name, "one");
	CHECK(fake.want.auto_remove && fake.want.clamp && !fake.want.tty);
	CHECK(fake.want.shims);
	fake_done(r);
}

TEST(autogens_body)
{
	fake_reset();
	expect("POST", "/v1.51/containers/create?name=x-1",
	       "{\"Hostname\":null,\"Tty\":true,\"OpenStdin\":false,\"Image\":"
	       "\"python:3-slim\",\"Volumes\":{\"/workspace\":{}},"
	       "\"NetworkDisabled\":false,\"Entrypoint\":[\"/bin/sh\"],"
	       "\"WorkingDir\":\"/workspace\",\"HostConfig\":{\"NetworkMode\":"
	       "\"default\",\"Binds\":[\"/tmp/w:/workspace:rw\"],"
	       "\"ExtraHosts\":[],\"AutoRemove\":true}}",
	       201, NULL);
	CHECK_STR(fake.settings,
		  "{\"image\":\"python:3-slim\",\"workdir\":\"/workspace\","
		  "\"volumes\":[\"/tmp/w:/workspace:rw\"],\"entrypoint\":["
		  "\"/bin/sh\"]}");
	CHECK(fake.want.tty && fake.want.auto_remove && !fake.want.command);
}

/* Each honoured field of 7.2 arrives with the preparer. */
TEST(what_is_asked_arrives)
{
	static const struct {
		const char *body, *setting;
	} rows[] = {
#define T(text) "{\"Image\":\"i\"," text "}"
#define H(text) "{\"Image\":\"i\",\"HostConfig\":{" text "}}"
		{ T("\"Entrypoint\":\"/a\""), "\"entrypoint\":[\"/a\"]" },
		{ T("\"Entrypoint\":[\"\"]"), "\"entrypoint\":[\"\"]" },
		{ T("\"Env\":[\"A=b\",\"C\"]"), "\"env\":[\"A=b\",\"C\"]" },
		{ T("\"WorkingDir\":\"/w\""), "\"workdir\":\"/w\"" },
		{ T("\"User\":\"nobody\""), "\"user\":\"nobody\"" },
		/* Who it is instead is not for us to say. */
		{ T("\"User\":\"root\""), "\"user\":\"root\"" },
		{ T("\"Hostname\":\"h\""), "\"hostname\":\"h\"" },
		{ T("\"Domainname\":\"d\""), "\"domainname\":\"d\"" },
		{ T("\"Labels\":{\"a\":\"b\"}"), "\"label\":[\"a=b\"]" },
		{ T("\"Volumes\":{\"/v\":{}}"), "\"writable\":[\"/v\"]" },
		{ T("\"NetworkDisabled\":true"), "\"network\":\"none\"" },
		{ T("\"Labels\":{\"io.cordon.policy\":\"strict\"}"),
		  "\"policy\":\"strict\"" },
		{ T("\"Labels\":{\"io.cordon.egress\":\"a:443,b:80\"}"),
		  "\"allow_host\":[\"a:443\",\"b:80\"]" },
		{ H("\"NetworkMode\":\"none\""), "\"network\":\"none\"" },
		{ H("\"Memory\":8388608"), "\"memory\":8388608" },
		{ H("\"MemoryReservation\":8388608"),
		  "\"memory_reservation\":8388608" },
		{ H("\"NanoCpus\":1500000000"), "\"cpus\":\"1.500\"" },
		{ H("\"CpuQuota\":50000,\"CpuPeriod\":100000"),
		  "\"cpu_period\":100000,\"cpu_quota\":50000" },
		{ H("\"CpuQuota\":50000"),
		  "\"cpu_period\":100000,\"cpu_quota\":50000" },
		{ H("\"CpuShares\":512"), "\"cpu_shares\":512" },
		{ H("\"CpusetCpus\":\"0-1\""), "\"cpuset_cpus\":\"0-1\"" },
		{ H("\"PidsLimit\":64"), "\"pids_limit\":64" },
		{ H("\"ReadonlyRootfs\":true"), "\"read_only\":true" },
		{ H("\"Tmpfs\":{\"/t\":\"rw,size=64m,noexec,nosuid\"}"),
		  "\"tmpfs\":{\"/t\":\"size=64m,noexec\"}" },
		{ H("\"ShmSize\":1048576"), "\"shm_size\":1048576" },
		{ H("\"Binds\":[\"/a:/b\"]"), "\"volumes\":[\"/a:/b:rw\"]" },
		{ H("\"Binds\":[\"/a:/b:ro,z\"]"),
		  "\"volumes\":[\"/a:/b:ro\"]" },
		{ H("\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/"
		    "a\",\"Target\":\"/b\",\"ReadOnly\":true}]"),
		  "\"volumes\":[\"/a:/b:ro\"]" },
		{ H("\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/"
		    "b\",\"TmpfsOptions\":{\"SizeBytes\":4096,\"Mode\":448}}]"),
		  "\"tmpfs\":{\"/b\":\"size=4096,mode=700\"}" },
		{ H("\"Mounts\":[{\"Type\":\"volume\",\"Target\":\"/b\"}]"),
		  "\"writable\":[\"/b\"]" },
		{ H("\"Ulimits\":[{\"Name\":\"nofile\",\"Soft\":64,\"Hard\":"
		    "128}]"),
		  "\"ulimit\":[\"nofile=64:128\"]" },
		{ H("\"OomScoreAdj\":500"), "\"oom_score_adj\":500" },
		{ H("\"ExtraHosts\":[\"a:1.2.3.4\"]"),
		  "\"add_host\":[\"a:1.2.3.4\"]" },
		{ H("\"StorageOpt\":{\"size\":\"1g\"}"),
		  "\"disk\":1073741824" },
		{ H("\"CapDrop\":[\"ALL\"],\"SecurityOpt\":[\"no-new-"
		    "privileges:true\"],\"Init\":true,\"PidMode\":\"\","
		    "\"IpcMode\":\"private\""),
		  "{\"image\":\"i\"" },
#undef T
#undef H
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fake_reset();
		expect("POST", "/containers/create", rows[i].body, 201,
		       "\"Id\"");
		CHECK_HAS(fake.settings, rows[i].setting);
		CHECK_INT(fake.created, 1);
	}
}

TEST(names_inside_have_any_case)
{
	static const struct {
		const char *body, *setting;
	} rows[] = {
#define H(text) "{\"Image\":\"i\",\"HostConfig\":{" text "}}"
		/* As Go does, names are compared without regard to case. */
		{ H("\"Mounts\":[{\"type\":\"bind\",\"SOURCE\":\"/"
		    "a\",\"target\":\"/b\",\"readonly\":true}]"),
		  "\"volumes\":[\"/a:/b:ro\"]" },
		{ H("\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/"
		    "a\",\"Target\":\"/b\",\"ReadOnly\":true,"
		    "\"BindOptions\":{\"ReadOnlyForceRecursive\":true}}]"),
		  "\"volumes\":[\"/a:/b:ro\"]" },
		{ H("\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/b\","
		    "\"ReadOnly\":true,\"tmpfsoptions\":{\"sizebytes\":"
		    "4096}}]"),
		  "\"tmpfs\":{\"/b\":\"size=4096,ro\"}" },
		{ H("\"ulimits\":[{\"name\":\"nofile\",\"soft\":64,"
		    "\"hard\":128}]"),
		  "\"ulimit\":[\"nofile=64:128\"]" },
#undef H
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fake_reset();
		expect("POST", "/containers/create", rows[i].body, 201,
		       "\"Id\"");
		CHECK_HAS(fake.settings, rows[i].setting);
	}
}

TEST(what_is_not_for_the_preparer)
{
	fake_reset();
	expect("POST", "/containers/create",
	       "{\"Image\":\"i\",\"Tty\":true,\"OpenStdin\":true,\"StdinOnce\":"
	       "true,\"StopSignal\":\"SIGINT\",\"StopTimeout\":3,\"Cmd\":\"a\","
	       "\"Labels\":{\"io.cordon.timeout\":\"5\",\"io.cordon.idle-"
	       "timeout"
	       "\":\"1m\",\"io.cordon.max-output\":\"1m\",\"io.cordon.exec-"
	       "children\":\"kill\"},\"HostConfig\":{\"AutoRemove\":true}}",
	       201, NULL);
	CHECK(fake.want.tty && fake.want.open_stdin && fake.want.stdin_once);
	CHECK_INT(fake.want.stop_signal, SIGINT);
	CHECK_INT(fake.want.stop_timeout_s, 3);
	CHECK_INT(fake.want.exec_timeout_us, 5000000);
	CHECK_INT(fake.want.idle_us, 60000000);
	CHECK_INT(fake.want.exec_max_output, 1 << 20);
	CHECK(fake.want.kill_exec_rest && fake.want.auto_remove);
	CHECK_STR(fake.command, "a");
	CHECK_INT(fake.want.log_max, 64 << 20);
}

TEST(what_the_policy_says_of_the_face)
{
	fake_reset();
	fake.note = "{\"docker\":{\"allow_root_inside\":true,\"log_max\":1000,"
		    "\"exec\":{\"on_disconnect\":\"kill\",\"children\":\"kill\""
		    ",\"shims\":false,\"max_output\":77}}}";
	expect("POST", "/containers/create",
	       "{\"Image\":\"i\",\"User\":\"root\"}", 201, "\"Warnings\":[]");
	CHECK_HAS(fake.settings, "\"user\":\"root\"");
	CHECK(fake.want.kill_on_disconnect && fake.want.kill_exec_rest);
	CHECK(!fake.want.shims);
	CHECK_INT(fake.want.exec_max_output, 77);
	CHECK_INT(fake.want.log_max, 1000);
}

TEST(the_hosts_programs_have_a_shell)
{
	fake_reset();
	expect("POST", "/containers/create", "{\"Image\":\"host\"}", 201, NULL);
	CHECK_STR(fake.command, "/bin/sh");
	expect("POST", "/containers/create",
	       "{\"Image\":\"host\",\"Entrypoint\":[\"/bin/sh\"],\"Cmd\":"
	       "[\"-c\",\"x\"]}",
	       201, NULL);
	CHECK_STR(fake.command, "/bin/sh|-c|x");
	CHECK(!strstr(fake.settings, "entrypoint"));
}

TEST(what_is_harmless_is_told)
{
	static const struct {
		const char *body, *warning;
	} rows[] = {
		{ "\"Healthcheck\":{\"Test\":[\"CMD\",\"x\"]}", "Healthcheck" },
		{ "\"ExposedPorts\":{\"80/tcp\":{}}", "ExposedPorts" },
		{ "\"HostConfig\":{\"NetworkMode\":\"bridge\"}", "bridge" },
		{ "\"HostConfig\":{\"RestartPolicy\":{\"Name\":\"always\"}}",
		  "RestartPolicy always" },
		{ "\"HostConfig\":{\"Memory\":8388608,\"MemorySwap\":-1}",
		  "MemorySwap" },
		{ "\"HostConfig\":{\"Dns\":[\"1.1.1.1\"]}", "Dns" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char body[512];

		fake_reset();
		(void)snprintf(body, sizeof(body), "{\"Image\":\"host\",%s}",
			       rows[i].body);
		expect("POST", "/containers/create", body, 201,
		       rows[i].warning);
		CHECK(!strstr(fake.settings, "\"user\""));
	}
}

TEST(bad_values_name_their_place)
{
	static const struct {
		const char *body, *text;
	} rows[] = {
		{ "{", "invalid JSON" },
		{ "[]", "invalid JSON" },
		{ "{\"Image\":\"a\",\"Image\":\"b\"}", "duplicate" },
		{ "{\"Image\":\"a\",\"image\":\"b\"}", "twice" },
		{ "{}", "Image" },
		{ "{\"Image\":7}", "Image" },
		{ "{\"Image\":\"a b\"}", "invalid reference" },
		{ "{\"Image\":\"i\",\"Cmd\":[1]}", "Cmd" },
		{ "{\"Image\":\"i\",\"Env\":\"A=b\"}", "Env" },
		{ "{\"Image\":\"i\",\"Env\":[\"=x\"]}", "Env" },
		{ "{\"Image\":\"i\",\"WorkingDir\":\"w\"}", "WorkingDir" },
		{ "{\"Image\":\"i\",\"StopSignal\":\"X\"}", "invalid signal" },
		{ "{\"Image\":\"i\",\"Labels\":{\"io.cordon.x\":\"\"}}",
		  "io.cordon.x" },
		{ "{\"Image\":\"i\",\"HostConfig\":[1]}", "HostConfig" },
		{ "{\"Image\":\"i\",\"HostConfig\":{\"Memory\":4096}}", "6MB" },
		{ "{\"Image\":\"i\",\"HostConfig\":{\"Memory\":\"1g\"}}",
		  "Memory" },
		{ "{\"Image\":\"i\",\"HostConfig\":{\"NanoCpus\":1000000000,"
		  "\"CpuQuota\":5000}}",
		  "Nano CPUs" },
		{ "{\"Image\":\"i\",\"HostConfig\":{\"CpuPeriod\":10}}",
		  "CpuPeriod" },
		{ "{\"Image\":\"i\",\"HostConfig\":{\"Ulimits\":[{\"Name\":"
		  "\"x\",\"Soft\":1,\"Hard\":1}]}}",
		  "ulimit" },
		{ "{\"Image\":\"i\",\"HostConfig\":{\"NetworkMode\":\"mine\"}}",
		  "network mine not found" },
		{ "{\"Image\":\"i\",\"NetworkingConfig\":{\"EndpointsConfig\":"
		  "{\"mine\":{}}}}",
		  "network mine not found" },
		{ "{\"Image\":\"i\",\"HostConfig\":{\"Binds\":[\"/a:b\"]}}",
		  "Binds" },
		{ "{\"Image\":\"i\",\"HostConfig\":{\"Tmpfs\":{\"/a\":"
		  "\"suid\"}}}",
		  "tmpfs option" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fake_reset();
		expect("POST", "/containers/create", rows[i].body, 400,
		       rows[i].text);
		CHECK_INT(fake.created, 0);
	}
	expect("POST", "/containers/create?name=-x", "{\"Image\":\"i\"}", 400,
	       "Invalid container name");
	expect("POST", "/containers/create?platform=linux/s390x",
	       "{\"Image\":\"i\"}", 404,
	       "was found but does not match the specified platform");
}

TEST(bad_values_inside_name_their_place)
{
	static const struct {
		const char *body, *text;
	} rows[] = {
#define H(text) "{\"Image\":\"i\",\"HostConfig\":{" text "}}"
#define M(more)                                                                \
	H("\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/a\","                  \
	  "\"Target\":\"/b\"," more "}]")
		{ M("\"ReadOnly\":1"), "ReadOnly" },
		{ M("\"ReadOnly\":\"true\""), "ReadOnly" },
		{ M("\"ReadOnly\":true,\"readonly\":false"), "twice" },
		{ M("\"BindOptions\":7"), "BindOptions" },
		{ M("\"BindOptions\":{\"Propagation\":7}"), "Propagation" },
		{ M("\"TmpfsOptions\":{\"SizeBytes\":4096}"),
		  "options of another type" },
		{ H("\"Mounts\":[7]"), "Mounts" },
		{ H("\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/b\","
		    "\"TmpfsOptions\":{\"SizeBytes\":\"1m\"}}]"),
		  "SizeBytes" },
		{ H("\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/b\","
		    "\"TmpfsOptions\":{\"Mode\":2048}}]"),
		  "Mode" },
		{ H("\"Binds\":[\"/a:/b\"],\"Tmpfs\":{\"/b\":\"\"}"),
		  "Duplicate mount point" },
		{ H("\"Tmpfs\":{\"/b\":\"\"},\"Mounts\":[{\"Type\":"
		    "\"volume\",\"Target\":\"/b\"}]"),
		  "Duplicate mount point" },
		{ H("\"Binds\":[\"/a:/b:ro,rw\"]"), "ro and rw" },
		{ H("\"Tmpfs\":{\"/b\":\"rw,ro\"}"), "ro and rw" },
		{ H("\"RestartPolicy\":{\"name\":\"x\"}"), "restart policy" },
		{ H("\"RestartPolicy\":{\"MaximumRetryCount\":\"1\"}"),
		  "MaximumRetryCount" },
		{ H("\"LogConfig\":{\"Type\":1}"), "LogConfig" },
		{ H("\"Ulimits\":[{\"Name\":\"nofile\",\"Soft\":\"1\"}]"),
		  "Soft" },
		{ H("\"Memory\":8388608,\"MemoryReservation\":16777216"),
		  "MemoryReservation" },
		{ "{\"Image\":\"i\",\"NetworkingConfig\":{\"EndpointsConfig\":"
		  "{\"bridge\":7}}}",
		  "EndpointsConfig" },
#undef M
#undef H
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fake_reset();
		expect("POST", "/containers/create", rows[i].body, 400,
		       rows[i].text);
		CHECK_INT(fake.created, 0);
	}
}

TEST(lowered_numbers_are_told)
{
	fake_reset();
	fake.clamped = "[{\"name\":\"memory\",\"asked\":8589934592,\"given\":"
		       "536870912}]";
	fake.warnings = "[\"cordon: more\"]";
	expect("POST", "/containers/create", "{\"Image\":\"host\"}", 201,
	       "[\"cordon: Memory 8589934592 lowered to policy maximum "
	       "536870912\",\"cordon: more\"]");
	/* And they are found again. */
	expect("GET", "/containers/made_up/json", NULL, 200,
	       "\"Warnings\":[\"cordon: Memory 8589934592 lowered");
}

/* By the field that was asked, and in its own unit. */
TEST(lowered_numbers_are_told_in_dockers_words)
{
	static const struct {
		const char *host, *clamped, *text;
	} rows[] = {
#define ROW(name, asked, given)                                                \
	"[{\"name\":\"" name "\",\"asked\":" asked ",\"given\":" given "}]"
		{ "\"NanoCpus\":9000000000", ROW("cpus", "9000", "500"),
		  "cordon: NanoCpus 9 CPUs lowered to policy maximum 0.5 "
		  "CPUs" },
		{ "\"CpuQuota\":900000", ROW("cpus", "9000", "500"),
		  "cordon: CpuQuota 9 CPUs lowered to policy maximum 0.5 "
		  "CPUs" },
		{ "\"ShmSize\":9000000",
		  ROW("tmpfs /dev/shm", "9000000", "4096"),
		  "cordon: ShmSize 9000000 lowered to policy maximum 4096" },
		{ "\"Tmpfs\":{\"/t\":\"size=9000000\"}",
		  ROW("tmpfs /t", "9000000", "4096"),
		  "cordon: Tmpfs /t size 9000000 lowered to policy maximum "
		  "4096" },
		{ "\"Init\":true", ROW("ulimit core", "\"unlimited\"", "0"),
		  "cordon: Ulimits core unlimited lowered to policy maximum "
		  "0" },
		{ "\"CpusetCpus\":\"0-7\"",
		  ROW("cpuset_cpus", "\"0-7\"", "\"0-1\""),
		  "cordon: CpusetCpus 0-7 lowered to policy maximum 0-1" },
		{ "\"PidsLimit\":1", "[]", "cordon: PidsLimit 1 raised to 2" },
#undef ROW
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char body[256];

		fake_reset();
		fake.clamped = rows[i].clamped;
		(void)snprintf(body, sizeof(body),
			       "{\"Image\":\"host\",\"HostConfig\":{%s}}",
			       rows[i].host);
		expect("POST", "/containers/create", body, 201, rows[i].text);
	}
}

TEST(effective_sizes_are_shown)
{
	fake_reset();
	fake.spec = "{\"tmpfs\":{\"/dev/shm\":4096,\"/t\":8192},\"ulimits\":"
		    "[{\"name\":\"core\",\"soft\":0,\"hard\":0}]}";
	expect("POST", "/containers/create",
	       "{\"Image\":\"host\",\"HostConfig\":{\"ShmSize\":9000000,"
	       "\"Tmpfs\":{\"/t\":\"ro,size=1g,noexec\"},\"Ulimits\":[{"
	       "\"Name\":\"core\",\"Soft\":-1,\"Hard\":-1}]}}",
	       201, NULL);
	expect("GET", "/containers/made_up/json", NULL, 200,
	       "\"ShmSize\":4096");
	expect("GET", "/containers/made_up/json", NULL, 200,
	       "\"/t\":\"ro,size=8192,noexec\"");
	expect("GET", "/containers/made_up/json", NULL, 200,
	       "\"Ulimits\":[{\"Name\":\"core\",\"Soft\":0,\"Hard\":0}]");
}

TEST(what_is_refused_is_an_event)
{
	fake_reset();
	expect("POST", "/containers/create?name=web2",
	       "{\"Image\":\"host\",\"HostConfig\":{\"Privileged\":true}}", 403,
	       NULL);
	CHECK_HAS(fake.event_told, "cordon policy_deny ");
	CHECK_HAS(fake.event_told, "HostConfig.Privileged");
	CHECK_HAS(fake.event_told, "\"name\":\"web2\"");
	fake_reset();
	fake_box(BOX_RUNNING);
	expect("POST", "/containers/web/exec",
	       "{\"Cmd\":[\"ls\"],\"Privileged\":true}", 403, NULL);
	CHECK_HAS(fake.event_told, "cordon policy_deny " A64);
	fake_reset();
	expect("POST", "/containers/create", "{\"Image\":7}", 400, NULL);
	CHECK_INT(fake.events, 0);
}

/* Without a word of the client, the policy's holds; and it is said. */
TEST(a_root_that_is_read_only_by_policy_is_told)
{
	fake_reset();
	fake.spec = "{\"read_only\":true}";
	expect("POST", "/containers/create", "{\"Image\":\"host\"}", 201,
	       "the root file system is read-only");
	expect("POST", "/containers/create",
	       "{\"Image\":\"host\",\"HostConfig\":{\"ReadonlyRootfs\":true}}",
	       201, "\"Warnings\":[]");
}

TEST(create_is_404_only_for_an_image)
{
	static const struct {
		int code, status;
		const char *text;
	} rows[] = {
		{ MGR_NO_IMAGE, 404, "No such image: nope:1" },
		{ MGR_NOT_FOUND, 400, "gone" },
		{ MGR_NO_FILE, 400, "gone" },
		{ MGR_DENIED, 403, "cordon: gone" },
		{ MGR_BUSY, 503, "cordon: gone" },
		{ MGR_SETUP, 500, "gone" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fake_reset();
		err_set(&fake.err, rows[i].code, "gone");
		expect("POST", "/containers/create", "{\"Image\":\"nope:1\"}",
		       rows[i].status, rows[i].text);
	}
	fake_reset();
	fake_box(BOX_RUNNING);
	err_set(&fake.err, MGR_NAME_TAKEN, "taken");
	expect("POST", "/containers/create?name=web", "{\"Image\":\"i\"}", 409,
	       "The container name \\\"/web\\\" is already in use by container "
	       "\\\"" A64 "\\\"");
	/* One that is still being made has the name already. */
	fake.has_unmade = true;
	expect("POST", "/containers/create?name=web", "{\"Image\":\"i\"}", 409,
	       "The container name \\\"/web\\\" is already in use by container "
	       "\\\"" A64 "\\\"");
}

/* ---- life ---- */

/* By these a client tells that the program could not be executed. */
static void check_no_program_words(const char *out)
{
	CHECK(!strcasestr(out, "permission denied"));
	CHECK(!strcasestr(out, "no such file"));
	CHECK(!strcasestr(out, "is a directory"));
}

TEST(errors_have_their_texts)
{
	static const struct {
		int code, status;
		const char *said, *text;
	} rows[] = {
		{ MGR_NO_PROGRAM, 400, "x", "executable file not found" },
		{ MGR_NOT_EXECUTABLE, 400, "x", "permission denied" },
		{ MGR_NOT_EXECUTABLE, 400, "Is a directory", "is a directory" },
		{ MGR_IS_RUNNING, 304, "", NULL },
		{ MGR_REMOVING, 409, "",
		  "removal of container web is already" },
		{ MGR_SETUP, 500, "open 'x': No such file or directory",
		  "it does not exist" },
		{ MGR_DENIED, 403, "Permission denied", "not permitted" },
		{ MGR_BUSY, 503, "too many boxes", "cordon: too many boxes" },
		{ MGR_LOST, 500, "lost", "cordon: lost" },
		{ MGR_UNSUPPORTED, 501, "x is not supported",
		  "cordon: x is not supported" },
		{ EIO + 500, 500, "odd", "cordon: odd" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct http_request *r;
		bool is_program = rows[i].code == MGR_NO_PROGRAM ||
				  rows[i].code == MGR_NOT_EXECUTABLE;

		fake_reset();
		fake_box(BOX_CREATED);
		err_set(&fake.err, rows[i].code, "%s", rows[i].said);
		r = fake_ask("POST", "/containers/web/start", NULL);
		CHECK_INT(r->status, rows[i].status);
		if (rows[i].text)
			CHECK_HAS(fake_out(r), rows[i].text);
		if (!is_program)
			check_no_program_words(fake_out(r));
		fake_done(r);
	}
}

TEST(unknown_containers_are_404)
{
	static const struct {
		const char *method, *url;
	} rows[] = {
		{ "GET", "/containers/nope/json" },
		{ "POST", "/containers/nope/start" },
		{ "POST", "/containers/nope/stop" },
		{ "POST", "/containers/nope/wait" },
		{ "POST", "/containers/nope/attach?stream=1" },
		{ "GET", "/containers/nope/logs?stdout=1" },
		{ "POST", "/containers/nope/exec" },
		{ "DELETE", "/containers/nope" },
		{ "GET", "/containers/nope/archive?path=/" },
		{ "GET", "/containers/nope/stats" },
		{ "GET", "/containers/nope/top" },
	};

	fake_reset();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect(rows[i].method, rows[i].url, NULL, 404,
		       "No such container: nope");
	expect("GET", "/containers/two/json", NULL, 400, "two");
	expect("GET", "/exec/abc/json", NULL, 404,
	       "No such exec instance: abc");
	expect("POST", "/exec/abc/start", "{}", 404,
	       "No such exec instance: abc");
}

TEST(start_and_stop)
{
	fake_reset();
	fake_box(BOX_RUNNING);
	expect("POST", "/containers/web/start", NULL, 304, NULL);
	CHECK_INT(fake.started, 0);
	expect("POST", "/containers/web/stop?t=3&signal=SIGINT", NULL, 204,
	       NULL);
	CHECK_INT(fake.timeout_s, 3);
	CHECK_INT(fake.signal, SIGINT);
	expect("POST", "/containers/web/stop", NULL, 204, NULL);
	CHECK_INT(fake.timeout_s, -1);
	expect("POST", "/containers/web/restart?t=-1", NULL, 204, NULL);
	CHECK_INT(fake.timeout_s, INT32_MAX);
	expect("POST", "/containers/web/stop?t=x", NULL, 400, "number");
	expect("POST", "/containers/web/kill?signal=HUP", NULL, 204, NULL);
	CHECK_INT(fake.signal, SIGHUP);
	expect("POST", "/containers/web/kill", NULL, 204, NULL);
	CHECK_INT(fake.signal, SIGKILL);
	expect("POST", "/containers/web/kill?signal=NO", NULL, 400, "signal");
	expect("POST", "/containers/web/pause", NULL, 204, NULL);
	expect("POST", "/containers/web/pause", NULL, 409, "already paused");
	expect("POST", "/containers/web/unpause", NULL, 204, NULL);
	expect("POST", "/containers/web/unpause", NULL, 409, "not paused");
	expect("POST", "/containers/web/resize?h=24&w=80", NULL, 200, NULL);
	expect("POST", "/containers/web/rename?name=new", NULL, 204, NULL);
	CHECK_STR(fake.name, "new");
	fake_box(BOX_EXITED);
	expect("POST", "/containers/web/stop", NULL, 304, NULL);
	expect("POST", "/containers/web/kill", NULL, 409,
	       "container " A64 " is not running");
	expect("POST", "/containers/web/pause", NULL, 409, "is not running");
	expect("POST", "/containers/web/resize?h=1&w=1", NULL, 409,
	       "is not running");
	expect("POST", "/containers/web/exec", "{\"Cmd\":[\"a\"]}", 409,
	       "container " A64 " is not running");
	expect("DELETE", "/containers/web?link=1", NULL, 400, "link");
	expect("DELETE", "/containers/web?v=False&link=False&force=True", NULL,
	       204, NULL);
	CHECK_INT(fake.removed, 1);
	err_set(&fake.err, MGR_IS_RUNNING, "it runs");
	expect("DELETE", "/containers/web", NULL, 409, "container is running");
	fake.err.code = 0;
	expect("POST", "/containers/prune", NULL, 200,
	       "{\"ContainersDeleted\":[\"" A64 "\"],\"SpaceReclaimed\":0}");
}

TEST(wait_sends_its_headers_first)
{
	struct http_request *r;

	fake_reset();
	fake_box(BOX_RUNNING);
	r = fake_ask("POST", "/v1.44/containers/web/wait?condition=removed",
		     NULL);
	CHECK(r->is_begun && !r->has_ended);
	CHECK_STR(r->type, "application/json");
	fake.waiter(fake.waiter_arg, 7, NULL);
	CHECK_STR(fake_out(r), "{\"StatusCode\":7}\n");
	CHECK(r->has_ended);
	fake_done(r);
	r = fake_ask("POST", "/v1.29/containers/web/wait", NULL);
	CHECK(!r->is_begun);
	fake.waiter(fake.waiter_arg, 1, "it failed");
	CHECK_HAS(fake_out(r), "\"Error\":{\"Message\":\"it failed\"}");
	fake_done(r);
	expect("POST", "/containers/web/wait?condition=x", NULL, 400,
	       "invalid condition");
}

/* ---- list and inspect ---- */

static bool is_listed(const char *query)
{
	char url[512];
	struct http_request *r;
	bool found;

	(void)snprintf(url, sizeof(url), "/containers/json?%s", query);
	r = fake_ask("GET", url, NULL);
	CHECK_INT(r->status, 200);
	found = strstr(fake_out(r), "\"Id\":\"" A64) != NULL;
	fake_done(r);
	return found;
}

TEST(the_list_is_filtered)
{
	fake_reset();
	fake_box(BOX_EXITED);
	fake.box.v.exit_code = 3;
	CHECK(!is_listed(""));
	CHECK(is_listed("all=1") && is_listed("limit=1"));
	CHECK(!is_listed("limit=-1"));
	CHECK(is_listed("filters={\"status\":[\"exited\"]}"));
	CHECK(!is_listed("filters={\"status\":[\"running\"]}"));
	CHECK(is_listed("filters={\"exited\":{\"3\":true}}"));
	CHECK(!is_listed("filters={\"exited\":{\"0\":true}}"));
	CHECK(is_listed("all=1&filters={\"name\":[\"we\"]}"));
	CHECK(is_listed("all=1&filters={\"name\":[\"^/web$\"]}"));
	CHECK(!is_listed("all=1&filters={\"name\":[\"x\"]}"));
	CHECK(is_listed("all=1&filters={\"id\":[\"aaa\"]}"));
	CHECK(is_listed("all=1&filters={\"label\":[\"a=b\"]}"));
	CHECK(!is_listed("all=1&filters={\"label\":[\"a=c\"]}"));
	CHECK(is_listed("all=1&filters={\"ancestor\":[\"host:latest\"]}"));
	CHECK(!is_listed("all=1&filters={\"ancestor\":[\"python\"]}"));
	CHECK(!is_listed("filters={\"before\":[\"web\"]}"));
	expect("GET", "/containers/json?filters={\"status\":[\"odd\"]}", NULL,
	       400, "status=odd");
	expect("GET", "/containers/json?filters={\"odd\":[\"x\"]}", NULL, 400,
	       "invalid filter 'odd'");
	expect("GET", "/containers/json?filters={", NULL, 400, "invalid JSON");
	fake_box(BOX_RUNNING);
	CHECK(is_listed(""));
}

TEST(inspect_shows_what_is_in_force)
{
	static const char *const parts[] = {
		"\"Name\":\"/web\"",
		"\"Created\":\"2023-11-14T22:13:20.123456789Z\"",
		"\"Path\":\"/bin/sh\"",
		"\"Args\":[\"-c\"]",
		"\"Status\":\"running\"",
		"\"FinishedAt\":\"0001-01-01T00:00:00Z\"",
		"\"Memory\":1000",
		"\"NanoCpus\":500000000",
		"\"PidsLimit\":7",
		"\"LogConfig\":{\"Type\":\"json-file\"",
		"\"Privileged\":false",
		"\"Destination\":\"/b\"",
		"\"Labels\":{\"a\":\"b\"}",
		"\"Env\":[\"X=1\"]",
		"\"NetworkSettings\"",
		"\"Cordon\":{\"policy\"",
		"\"ExecIDs\":null",
	};
	struct http_request *r;

	fake_reset();
	fake.spec = "{\"memory\":1000,\"cpus\":0.5,\"pids\":7,\"command\":["
		    "\"/bin/sh\",\"-c\"],\"env\":[\"X=1\"],\"volumes\":[{"
		    "\"source\":\"/a\",\"target\":\"/b\",\"mode\":\"rw\"}]}";
	fake_box(BOX_RUNNING);
	fake.image_says = "[]";
	r = fake_ask("GET", "/containers/web/json?size=1", NULL);
	CHECK_INT(r->status, 200);
	CHECK_HAS(fake_out(r), "\"Id\":\"" A64 "\"");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		CHECK_HAS(fake_out(r), parts[i]);
	fake_done(r);
}

/* The image's, and over them the request's; none that is a setting of ours. */
TEST(labels_and_stop_signal_of_the_image)
{
	fake_reset();
	fake.spec = "{\"stop_signal\":\"SIGUSR1\",\"image_labels\":[\"a=i\","
		    "\"c=d=e\",\"io.cordon.timeout=1\"]}";
	fake_box(BOX_EXITED);
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"Labels\":{\"a\":\"b\",\"c\":\"d=e\"}");
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"StopSignal\":\"SIGUSR1\"");
	expect("GET", "/containers/json?all=1", NULL, 200,
	       "\"Labels\":{\"a\":\"b\",\"c\":\"d=e\"}");
	expect("GET", "/containers/json?all=1&filters={\"label\":[\"c=d=e\"]}",
	       NULL, 200, A64);
	expect("GET", "/containers/json?all=1&filters={\"label\":[\"a=i\"]}",
	       NULL, 200, "[]");
	expect("POST", "/containers/prune?filters={\"label\":[\"c\"]}", NULL,
	       200, A64);
}

/* What it used is known at its end. */
TEST(inspect_shows_what_was_used)
{
	fake_reset();
	fake_box(BOX_EXITED);
	fake.box.v.cause = "exited";
	fake.outcome = (struct wire_outcome){ .wall_us = 2500000,
					      .cpu_us = 1200000,
					      .memory_peak = 3 << 20,
					      .pids_peak = 4 };
	fake.has_outcome = true;
	expect("GET", "/containers/web/json", NULL, 200,
	       "\"resources_used\":{\"cause\":\"exited\","
	       "\"execution_time_ms\":2500,\"cpu_time_ms\":1200,"
	       "\"memory_used_mb\":3.0,\"peak_pids\":4,\"oom_kills\":0}");
}

/* Nothing is measured that is written: so nothing is said of it. */
TEST(sizes_are_the_images)
{
	fake_reset();
	fake.spec = "{\"image_id\":\"sha256:11\"}";
	fake_box(BOX_RUNNING);
	fake.image_says = "[{\"id\":\"sha256:11\",\"names\":[],\"size\":77}]";
	expect("GET", "/containers/json?size=1", NULL, 200,
	       "\"SizeRootFs\":77");
	expect("GET", "/containers/web/json?size=true", NULL, 200,
	       "\"SizeRootFs\":77");
}

/* ---- streams ---- */

TEST(attach_is_framed_and_half_closed)
{
	struct http_request *r;
	struct sink *s = &fake.box.sink;

	fake_reset();
	fake_box(BOX_CREATED);
	fake.box.v.open_stdin = true;
	r = fake_ask_upgrade("POST",
			     "/v1.44/containers/web/attach?stream=1&stdin=1&"
			     "stdout=1&stderr=1",
			     NULL);
	CHECK_INT(r->status, 101);
	CHECK_STR(r->type, "application/vnd.docker.multiplexed-stream");
	CHECK_INT(s->write(s->arg, 1, "out", 3), 3);
	CHECK_INT(s->write(s->arg, 2, "er", 2), 2);
	CHECK_INT(r->pipe->out.len, 21);
	CHECK(memcmp(r->pipe->out.data, "\1\0\0\0\0\0\0\3out\2\0\0\0\0\0\0\2er",
		     21) == 0);
	CHECK_INT(r->pipe->events->input(r->pipe->data, "in", 2), 2);
	CHECK_INT(fake.feed.input.len, 2);
	r->pipe->events->input_end(r->pipe->data);
	CHECK(fake.feed.has_ended && !fake.feed.was_dropped);
	s->end(s->arg);
	CHECK(r->pipe->has_ended);
	fake_done(r);
}

TEST(a_slow_client_gets_whole_frames)
{
	struct http_request *r;
	struct sink *s = &fake.box.sink;

	fake_reset();
	fake_box(BOX_RUNNING);
	r = fake_ask_upgrade("POST", "/containers/web/attach?stream=1&stdout=1",
			     NULL);
	r->pipe->room = 1 + 8;
	CHECK_INT(s->write(s->arg, 1, "abcdef", 6), 0);
	r->pipe->room = 1 + 8 + 2;
	CHECK_INT(s->write(s->arg, 1, "abcdef", 6), 2);
	r->pipe->room = 0;
	r->pipe->events->ready(r->pipe->data);
	CHECK(fake.feed.was_ready);
	CHECK_INT(s->write(s->arg, 1, "cdef", 4), 4);
	CHECK(memcmp(r->pipe->out.data,
		     "\1\0\0\0\0\0\0\2ab\1\0\0\0\0\0\0\4cdef", 22) == 0);
	/* stderr was not asked for. */
	CHECK_INT(s->write(s->arg, 2, "x", 1), 1);
	CHECK_INT(r->pipe->out.len, 22);
	fake_done(r);
	CHECK(fake.feed.was_dropped);
}

TEST(a_terminal_is_raw_and_detaches)
{
	struct http_request *r;
	struct sink *s = &fake.box.sink;

	fake_reset();
	fake_box(BOX_RUNNING);
	fake.box.v.open_stdin = fake.box.v.tty = true;
	r = fake_ask_upgrade("POST",
			     "/containers/web/attach?stream=1&stdin=1&stdout=1",
			     NULL);
	CHECK_STR(r->type, "application/vnd.docker.raw-stream");
	CHECK_INT(s->write(s->arg, 1, "out", 3), 3);
	CHECK_INT(r->pipe->out.len, 3);
	fake.feed.takes = 1;
	CHECK_INT(r->pipe->events->input(r->pipe->data, "abc", 3), 3);
	CHECK_INT(fake.feed.input.len, 1);
	/* Nothing more is taken while some is held. */
	CHECK_INT(r->pipe->events->input(r->pipe->data, "d", 1), 0);
	fake.feed.takes = 0;
	fake.feed.on_input(fake.feed.arg);
	CHECK_INT(fake.feed.input.len, 3);
	CHECK(r->pipe->wants_input);
	CHECK_INT(r->pipe->events->input(r->pipe->data, "\x10\x11", 2), 2);
	CHECK(fake.feed.was_dropped && r->pipe->has_ended);
	fake_done(r);
	/* An old client knows one type only. */
	fake.box.v.tty = false;
	r = fake_ask_upgrade("POST", "/v1.41/containers/web/attach?stream=1",
			     NULL);
	CHECK_STR(r->type, "application/vnd.docker.raw-stream");
	fake_done(r);
}

TEST(execs)
{
	struct http_request *r;
	struct sink *s = &fake.exec.sink;

	fake_reset();
	fake_box(BOX_RUNNING);
	expect("POST", "/containers/web/exec", "{}", 400,
	       "No exec command specified");
	expect("POST", "/containers/web/exec",
	       "{\"Cmd\":[\"sh\",\"-c\",\"x\"],\"Env\":[\"A=b\"],\"WorkingDir\""
	       ":\"/w\",\"User\":\"nobody\",\"AttachStdout\":true,"
	       "\"AttachStderr\":true,\"Container\":\"web\",\"Detach\":true,"
	       "\"Privileged\":false,\"ConsoleSize\":[24,80]}",
	       201, "{\"Id\":\"" E64 "\"}");
	CHECK_STR(fake.exec_env, "A=b");
	expect("POST", "/containers/web/exec",
	       "{\"Cmd\":[\"a\"],\"User\":\"0\"}", 201,
	       "\"Warnings\":[\"cordon: User 0 is replaced");
	CHECK_STR(fake.exec_user, "");
	expect("POST", "/containers/web/exec",
	       "{\"Cmd\":[\"sh\",\"-c\",\"x\"],\"Env\":[\"A=b\"],\"WorkingDir\""
	       ":\"/w\",\"User\":\"nobody\",\"AttachStdout\":true,"
	       "\"AttachStderr\":true,\"ConsoleSize\":[24,80]}",
	       201, E64);
	CHECK_STR(fake.exec_dir, "/w");
	CHECK_STR(fake.exec_user, "nobody");
	CHECK_INT(fake.exec_want.rows, 24);
	CHECK_INT(fake.exec_want.cols, 80);
	expect("GET", "/exec/" E64 "/json", NULL, 200, "\"ExitCode\":null");
	r = fake_ask_upgrade("POST", "/exec/" E64 "/start",
			     "{\"Detach\":false,\"Tty\":false}");
	CHECK_INT(r->status, 101);
	CHECK_INT(s->write(s->arg, 1, "x", 1), 1);
	CHECK_INT(r->pipe->out.len, 9);
	s->end(s->arg);
	CHECK(r->pipe->has_ended);
	fake_done(r);
	expect("POST", "/exec/" E64 "/start", "{}", 409, "is already running");
	fake.exec.v.is_running = false;
	fake.exec.v.exit_code = 5;
	expect("POST", "/exec/" E64 "/start", "{}", 409, "has already run");
	expect("GET", "/exec/" E64 "/json", NULL, 200, "\"ExitCode\":5");
	expect("GET", "/exec/" E64 "/json", NULL, 200,
	       "\"ProcessConfig\":{\"tty\":false,\"entrypoint\":\"sh\","
	       "\"arguments\":[\"-c\",\"x\"]");
	/* Its container was removed: how it ended is still known. */
	fake.has_exec = false;
	fake.has_past = true;
	expect("GET", "/exec/" E64 "/json", NULL, 200, "\"ExitCode\":5");
	expect("POST", "/exec/" E64 "/start", "{}", 404, "No such exec");
	fake.has_past = false;
	expect("GET", "/exec/" E64 "/json", NULL, 404, "No such exec");
}

/* Who it is, is found elsewhere; root alone is looked at here. */
TEST(an_exec_names_its_user)
{
	static const struct {
		const char *user, *asked;
	} rows[] = { { "65534", "65534" }, { "1234:5", "1234:5" },
		     { "some", "some" },   { "", "" },
		     { "root", "" },       { "0:0", "" },
		     { "000", "" },        { "rooter", "rooter" } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char body[128];

		fake_reset();
		fake_box(BOX_RUNNING);
		(void)snprintf(body, sizeof(body),
			       "{\"Cmd\":[\"a\"],\"User\":\"%s\"}",
			       rows[i].user);
		expect("POST", "/containers/web/exec", body, 201, NULL);
		CHECK_STR(fake.exec_user, rows[i].asked);
	}
}

TEST(an_exec_that_cannot_start_says_why_in_its_stream)
{
	struct http_request *r;
	struct sink *s = &fake.exec.sink;

	fake_reset();
	fake_box(BOX_RUNNING);
	fake_exec();
	err_set(&fake.err, MGR_NO_PROGRAM, "\"nope\"");
	r = fake_ask_upgrade("POST", "/exec/" E64 "/start", "{}");
	fake_run();
	s->end(s->arg);
	CHECK_INT(r->status, 101);
	CHECK_INT((unsigned char)r->pipe->out.data[0], 2);
	CHECK_HAS(r->pipe->out.data + 8, "executable file not found");
	CHECK(r->pipe->has_ended);
	fake_done(r);
	fake_exec();
	expect("POST", "/exec/" E64 "/start", "{\"Detach\":true}", 400,
	       "executable file not found");
	fake.err.code = 0;
	fake_exec();
	expect("POST", "/exec/" E64 "/start", "{\"Detach\":true}", 200, NULL);
}

/* What is refused is told by a status: after the switch there is none. */
TEST(an_exec_that_may_not_start_has_no_switch)
{
	static const struct {
		int code;
		const char *said;
		int status;
		const char *text;
	} rows[] = {
		{ MGR_DENIED, "the policy was read again", 403,
		  "cordon: the policy was read again" },
		{ MGR_HAS_RUN, "exec command x is already running", 409,
		  "exec command x is already running" },
		{ MGR_HAS_RUN, "exec command x has already run", 409,
		  "exec command x has already run" },
		{ MGR_NOT_RUNNING, "", 409,
		  "container " A64 " is not running" },
		{ MGR_PAUSED, "", 409, "is paused" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct http_request *r;

		fake_reset();
		fake_box(BOX_RUNNING);
		fake_exec();
		err_set(&fake.start_err, rows[i].code, "%s", rows[i].said);
		r = fake_ask_upgrade("POST", "/exec/" E64 "/start", "{}");
		CHECK_INT(r->status, rows[i].status);
		CHECK_HAS(fake_out(r), rows[i].text);
		CHECK(!r->pipe && !fake.exec.v.is_started);
		fake_done(r);
		expect("POST", "/exec/" E64 "/start", "{\"Detach\":true}",
		       rows[i].status, rows[i].text);
	}
}

TEST(an_exec_without_a_feed_ends_its_stream)
{
	struct http_request *r;

	fake_reset();
	fake_box(BOX_RUNNING);
	fake_exec();
	fake.has_no_feed = true;
	err_set(&fake.err, MGR_BUSY, "out of memory");
	r = fake_ask_upgrade("POST", "/exec/" E64 "/start", "{}");
	CHECK_INT(r->status, 101);
	fake_run();
	CHECK_HAS(r->pipe->out.data + 8, "out of memory");
	CHECK(r->pipe->has_ended);
	fake_done(r);
}

/* Its client has left by the keys before it is known that it cannot start. */
TEST(an_exec_that_cannot_start_for_nobody)
{
	struct http_request *r;

	fake_reset();
	fake_box(BOX_RUNNING);
	fake_exec();
	fake.exec.v.tty = fake.exec.v.stdin_ = true;
	err_set(&fake.err, MGR_NO_PROGRAM, "\"nope\"");
	r = fake_ask_upgrade("POST", "/exec/" E64 "/start", "{}");
	CHECK_INT(r->pipe->events->input(r->pipe->data, "\x10\x11", 2), 2);
	CHECK(fake.feed.was_dropped && r->pipe->has_ended);
	fake_run();
	CHECK_INT(r->pipe->out.len, 0);
	fake_done(r);
}

TEST(what_starts_an_exec_is_looked_at)
{
	static const char *const bodies[] = {
		"{\"Detach\":\"true\"}",         "{\"Detach\":1}",
		"{\"ConsoleSize\":\"x\"}",       "{\"ConsoleSize\":[24]}",
		"{\"ConsoleSize\":[24,\"80\"]}", "{\"Tty\":\"yes\"}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		fake_reset();
		fake_box(BOX_RUNNING);
		fake_exec();
		expect("POST", "/exec/" E64 "/start", bodies[i], 400,
		       "expected");
		CHECK(!fake.exec.v.is_started);
	}
	expect("POST", "/exec/" E64 "/start", "{\"ConsoleSize\":[-1,80]}", 400,
	       "ConsoleSize");
	expect("POST", "/exec/" E64 "/start",
	       "{\"Detach\":true,\"Tty\":null,\"ConsoleSize\":[24,80],"
	       "\"More\":1}",
	       200, NULL);
	CHECK_INT(fake.exec_want.rows, 24);
	CHECK_INT(fake.exec_want.cols, 80);
	fake.exec.v.is_running = false;
	expect("POST", "/exec/" E64 "/resize?h=1&w=1", NULL, 409,
	       "exec " E64 " is not running");
}

TEST(logs_have_times_and_frames)
{
	struct http_request *r;
	struct log_sink *l = &fake.box.log;
	char *line = malloc(20000);

	memset(line, 'x', 20000);
	fake_reset();
	fake_box(BOX_EXITED);
	expect("GET", "/containers/web/logs", NULL, 400, "at least one");
	expect("GET", "/containers/web/logs?stdout=1&since=x", NULL, 400,
	       "since");
	r = fake_ask("GET",
		     "/v1.44/containers/web/logs?stdout=1&stderr=1&timestamps="
		     "1&tail=5&since=1.5&follow=1",
		     NULL);
	CHECK(r->is_begun && !r->is_raw);
	CHECK_STR(r->type, "application/vnd.docker.multiplexed-stream");
	CHECK_INT(fake.box.logs.tail, 5);
	CHECK_INT(fake.box.logs.since_ns, 1500000000);
	CHECK(fake.box.logs.follow);
	CHECK_INT(l->line(l->arg, 1, 1700000000000000007, "a\n", 2), 2);
	CHECK_INT(r->out.len, 8 + 31 + 2);
	CHECK_STR(fake_out(r) + 8, "2023-11-14T22:13:20.000000007Z a\n");
	l->end(l->arg);
	CHECK(r->has_ended);
	fake_done(r);
	/* Long lines are split, and a reader that is slow loses nothing. */
	r = fake_ask("GET", "/containers/web/logs?stdout=1&tail=all", NULL);
	CHECK_INT(fake.box.logs.tail, -1);
	r->room = 1000;
	for (int i = 0; i < 100; i++)
		if (l->line(l->arg, 1, 1, line, 20000) == 20000)
			break;
	for (int i = 0; i < 100; i++)
		r->ready(r->data);
	CHECK_INT(r->out.len, 20000 + 16);
	fake_done(r);
	free(line);
}

/* ---- files ---- */

TEST(archives)
{
	struct http_request *r;

	fake_reset();
	fake_box(BOX_RUNNING);
	fake.stat = (struct file_stat){ .name = "f",
					.size = 3,
					.st_mode = S_IFREG | 0644,
					.mtime_ns = 1700000000000000000,
					.link = "" };
	r = fake_ask("HEAD", "/containers/web/archive?path=tmp/f", NULL);
	CHECK_INT(r->status, 200);
	CHECK_STR(fake.path, "/tmp/f");
	CHECK_HAS(r->headers, "X-Docker-Container-Path-Stat: "
			      "eyJuYW1lIjoiZiIsInNpemUiOjMsIm1vZGUiOjQyMCwi");
	fake_done(r);
	r = fake_ask("GET", "/containers/web/archive?path=/tmp/f", NULL);
	CHECK_STR(r->type, "application/x-tar");
	CHECK_STR(fake_out(r), "tar");
	CHECK(r->has_ended);
	fake_done(r);
	r = fake_ask("PUT", "/containers/web/archive?path=/tmp", NULL);
	CHECK_INT(r->status, 0);
	fake_send_body(r, "bytes", 5);
	CHECK_INT(r->status, 200);
	CHECK_STR(fake.written.data, "bytes");
	fake_done(r);
	expect("GET", "/containers/web/archive", NULL, 400, "path");
	err_set(&fake.err, MGR_NO_FILE, "x");
	expect("GET", "/containers/web/archive?path=/no", NULL, 404,
	       "Could not find the file /no in container web");
	err_set(&fake.err, MGR_READ_ONLY, "x");
	r = fake_ask("PUT", "/containers/web/archive?path=/etc", NULL);
	fake_send_body(r, "bytes", 5);
	CHECK_INT(r->status, 400);
	CHECK_HAS(fake_out(r), "rootfs is marked read-only");
	fake_done(r);
	fake.err.code = 0;
	expect("GET", "/containers/web/changes", NULL, 200,
	       "[{\"Path\":\"/a\",\"Kind\":1},{\"Path\":\"/b\",\"Kind\":2}]");
	expect("GET", "/containers/web/export", NULL, 200, "tar");
}

/* ---- figures and events ---- */

TEST(figures)
{
	struct http_request *r;

	fake_reset();
	fake_box(BOX_RUNNING);
	fake.usage = (struct box_usage){ .time_ns = 1700000000000000000,
					 .memory = 5000,
					 .memory_limit = 9000,
					 .inactive_file = 100,
					 .cpu_us = 7,
					 .cpus = 2,
					 .system_ns = 12345678900,
					 .pids = 3,
					 .pids_limit = 128 };
	fake.processes[0] = (struct box_process){ .pid = 2,
						  .ppid = 1,
						  .uid = 65534,
						  .state = 'S',
						  .cpu_ms = 61000,
						  .rss = 64 << 20,
						  .size = 128 << 20,
						  .comm = "sh",
						  .args = "sh -c x" };
	fake.processes[1] = fake.processes[0];
	expect("GET", "/containers/web/stats?stream=0&one-shot=1", NULL, 200,
	       "\"memory_stats\":{\"usage\":5000");
	r = fake_ask("GET", "/containers/web/stats", NULL);
	CHECK(r->is_begun && !r->has_ended);
	CHECK_HAS(fake_out(r), "\"pids_stats\":{\"current\":2,\"limit\":128}");
	CHECK_HAS(fake_out(r), "}\r\n");
	fake_done(r);
	expect("GET", "/containers/web/top", NULL, 200,
	       "{\"Titles\":[\"UID\",\"PID\",\"PPID\",\"C\",\"STIME\",\"TTY\","
	       "\"TIME\",\"CMD\"],\"Processes\":[[\"65534\",\"2\",\"1\"");
	expect("GET", "/containers/web/stats?stream=0&one-shot=1", NULL, 200,
	       "\"system_cpu_usage\":12345678900");
	/* It used 61 s of 100, and a sixteenth of a gigabyte. */
	fake.box.v.started_ns = (time(NULL) - 100) * 1000000000;
	expect("GET", "/containers/web/top?ps_args=aux", NULL, 200,
	       "[[\"65534\",\"2\",\"6");
	expect("GET", "/containers/web/top?ps_args=aux", NULL, 200,
	       "\"6.2\",\"131072\",\"65536\",\"?\",\"S\"");
	expect("GET", "/containers/web/top?ps_args=aux", NULL, 200,
	       "\"COMMAND\"");
	expect("GET", "/info", NULL, 200, "\"CgroupVersion\":\"1\"");
	expect("GET", "/info", NULL, 200, "\"IPv4Forwarding\":false");
	expect("GET", "/containers/web/top?ps_args=-o+pid;id", NULL, 200,
	       "\"CMD\"");
	expect("GET", "/info", NULL, 200, "\"DefaultRuntime\":\"cordon\"");
	expect("GET", "/system/df", NULL, 200, "\"BuildCache\":[]");
}

static const struct event an_event = {
	.type = "container",
	.action = "die",
	.id = A64,
	.time_ns = 1700000000000000005,
	.attributes = "{\"name\":\"web\",\"image\":\"host\",\"a\":\"b\","
		      "\"exitCode\":\"0\"}",
};

static bool is_told(const char *filters)
{
	char url[256];
	struct http_request *r;
	bool told;

	(void)snprintf(url, sizeof(url), "/events?filters=%s", filters);
	r = fake_ask("GET", url, NULL);
	CHECK_INT(r->status, 200);
	fake.event_fn(fake.event_arg, &an_event);
	told = r->out.len > 0;
	fake_done(r);
	return told;
}

TEST(events)
{
	struct http_request *r;

	fake_reset();
	r = fake_ask("GET", "/events?since=5", NULL);
	CHECK_INT(fake.since_ns, 5000000000);
	fake.event_fn(fake.event_arg, &an_event);
	CHECK_HAS(fake_out(r), "{\"Type\":\"container\",\"Action\":\"die\","
			       "\"Actor\":{\"ID\":\"" A64 "\"");
	CHECK_HAS(fake_out(r), "\"timeNano\":1700000000000000005");
	CHECK_HAS(fake_out(r), "\"status\":\"die\"");
	CHECK_HAS(fake_out(r), "}\r\n");
	fake_done(r);
	CHECK(!fake.event_fn);
	CHECK(is_told("{\"type\":[\"container\"],\"event\":[\"die\"]}"));
	CHECK(!is_told("{\"type\":[\"image\"]}"));
	CHECK(!is_told("{\"event\":[\"di\"]}"));
	CHECK(is_told("{\"container\":[\"web\"],\"label\":[\"a=b\"]}"));
	CHECK(!is_told("{\"container\":[\"x\"]}"));
	CHECK(is_told("{\"image\":[\"host:latest\"]}"));
	expect("GET", "/events?since=x", NULL, 400, "since");
}

/* ---- images ---- */

#define ONE_IMAGE                                                              \
	"[{\"id\":\"sha256:11\",\"names\":[\"a/"                               \
	"b:1\"],\"created\":\"2023-11-14T22"                                   \
	":13:20Z\",\"loaded\":null,\"size\":7,\"manifest\":\"sha256:22\","     \
	"\"labels\":{\"l\":\"v\"}}]"

TEST(host_is_always_there)
{
	struct http_request *r;

	fake_reset();
	fake.image_says = "[]";
	expect("GET", "/images/json", NULL, 200, "\"host:latest\"");
	expect("GET", "/images/host/json", NULL, 200, host_id());
	expect("GET", "/images/docker.io/library/host:latest/json", NULL, 200,
	       "\"Cmd\":[\"/bin/sh\"]");
	r = fake_ask("POST", "/images/create?fromImage=host&tag=latest", NULL);
	CHECK_INT(r->status, 200);
	CHECK_HAS(fake_out(r), "Image is up to date for host:latest");
	fake_done(r);
	expect("DELETE", "/images/host", NULL, 403, "cordon: ");
	expect("GET", "/images/host/get", NULL, 501, "is not supported");
}

TEST(images_are_listed_and_filtered)
{
	fake_reset();
	fake.image_says = ONE_IMAGE;
	expect("GET", "/images/json", NULL, 200,
	       "{\"Id\":\"sha256:11\",\"ParentId\":\"\",\"RepoTags\":[\"a/"
	       "b:1\"],\"RepoDigests\":[\"a/b@sha256:22\"],\"Created\":"
	       "1700000000,\"Size\":7,\"SharedSize\":-1,\"Containers\":-1,"
	       "\"Labels\":{\"l\":\"v\"}}");
	CHECK_STR(fake.image_args, "ls --json");
	expect("GET", "/images/json?filters={\"reference\":[\"a/b\"]}", NULL,
	       200, "sha256:11");
	expect("GET", "/images/json?filters={\"reference\":[\"a/*:1\"]}", NULL,
	       200, "sha256:11");
	expect("GET", "/images/json?filters={\"reference\":[\"x\"]}", NULL, 200,
	       "[]");
	expect("GET", "/images/json?filters={\"dangling\":{\"true\":true}}",
	       NULL, 200, "[]");
	expect("GET", "/images/json?filters={\"label\":[\"l=v\"]}", NULL, 200,
	       "sha256:11");
	expect("GET", "/images/json?filters={\"since\":[\"nosuch\"]}", NULL,
	       400, "since");
	expect("GET", "/images/json?filters={\"before\":[\"a/b:1\"]}", NULL,
	       200, "[]");
	expect("GET", "/images/json?filters={\"dangling\":[\"maybe\"]}", NULL,
	       400, "dangling=maybe");
}

/* Nothing of a name is cut off. */
TEST(names_that_are_too_long)
{
	char tag[140];
	char url[512];

	fake_reset();
	memset(tag, 'a', sizeof(tag) - 1);
	tag[sizeof(tag) - 1] = '\0';
	(void)snprintf(url, sizeof(url), "/images/a/tag?repo=b&tag=%s", tag);
	expect("POST", url, NULL, 400, "invalid reference");
	(void)snprintf(url, sizeof(url), "/images/a/tag?repo=%s/%s&tag=1", tag,
		       tag);
	expect("POST", url, NULL, 400, "invalid reference");
	(void)snprintf(url, sizeof(url), "/images/create?fromImage=b&tag=%s",
		       tag);
	expect("POST", url, NULL, 400, "invalid reference");
	(void)snprintf(url, sizeof(url),
		       "/images/create?fromSrc=-&repo=b&tag=%s", tag);
	expect("POST", url, "", 400, "invalid reference");
}

/* Names have slashes and colons: the last part of the path decides. */
TEST(names_in_paths)
{
	static const struct {
		const char *url, *args;
	} rows[] = {
		{ "/images/python/json", "inspect --json python" },
		{ "/images/docker.io/library/python:3-slim/json",
		  "inspect --json docker.io/library/python:3-slim" },
		{ "/v1.44/images/a%2Fb:1/json", "inspect --json a/b:1" },
		{ "/images/json/json", "inspect --json json" },
		{ "/images/a/get/json", "inspect --json a/get" },
		{ "/images/x/history", "inspect --json x" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fake_reset();
		fake.image_says = "[{\"Id\":\"sha256:1\",\"History\":[]}]";
		expect("GET", rows[i].url, NULL, 200, NULL);
		CHECK_STR(fake.image_args, rows[i].args);
	}
}

TEST(images_come_and_go)
{
	struct http_request *r;

	fake_reset();
	fake.image_says = "{\"images\":[{\"id\":\"sha256:1\",\"names\":[\"x:1\""
			  "]},{\"id\":\"sha256:2\",\"names\":[]}]}";
	r = fake_ask("POST", "/images/load?quiet=1", NULL);
	CHECK_INT(r->status, 0);
	fake_send_body(r, "archive", 7);
	CHECK_INT(r->status, 200);
	CHECK(r->is_begun);
	CHECK_STR(fake_out(r),
		  "{\"stream\":\"Loaded image: x:1\\n\"}\r\n"
		  "{\"stream\":\"Loaded image ID: sha256:2\\n\"}\r\n");
	CHECK_STR(fake.image_input.data, "archive");
	CHECK_INT(fake.events, 2);
	fake_done(r);
	fake.image_says = "{\"images\":[{\"id\":\"sha256:1\",\"names\":[]}]}";
	r = fake_ask("POST",
		     "/images/create?fromSrc=-&repo=r&tag=t&changes=CMD+x&"
		     "message=m",
		     NULL);
	fake_send_body(r, "tar", 3);
	CHECK_STR(fake_out(r), "{\"status\":\"sha256:1\"}\r\n");
	CHECK_STR(fake.image_args,
		  "import --json --change CMD x --message m - r:t");
	fake_done(r);
	expect("GET", "/images/get?names=a&names=b", NULL, 200, NULL);
	CHECK_STR(fake.image_args, "save --quiet a b");
	expect("POST", "/images/a/tag?repo=b&tag=2", NULL, 201, NULL);
	CHECK_STR(fake.image_args, "tag a b:2");
	fake.image_says = "{\"untagged\":[\"a:1\"],\"deleted\":[\"sha256:1\"],"
			  "\"freed\":9}";
	expect("DELETE", "/images/a:1?force=1", NULL, 200,
	       "[{\"Untagged\":\"a:1\"},{\"Deleted\":\"sha256:1\"}]");
	CHECK_STR(fake.image_args, "rm --json --force a:1");
	expect("POST", "/images/prune?filters={\"dangling\":[\"false\"]}", NULL,
	       200, "\"SpaceReclaimed\":9");
	CHECK_STR(fake.image_args, "prune --json --all");
}

TEST(images_that_fail)
{
	struct http_request *r;

	fake_reset();
	err_set(&fake.err, 1001,
		"cordon: there is no image 'x'; 'cordon image ls' shows what "
		"there is");
	expect("GET", "/images/x/json", NULL, 404, "No such image: x");
	expect("DELETE", "/images/x", NULL, 404, "No such image: x");
	err_set(&fake.err, 1001, "cordon: image 'x' is in use");
	expect("DELETE", "/images/x", NULL, 409, "conflict: unable to");
	err_set(&fake.err, 1125, "cordon: cut off");
	r = fake_ask("POST", "/images/load", NULL);
	fake_send_body(r, "x", 1);
	CHECK_INT(r->status, 400);
	CHECK_HAS(fake_out(r), "cordon: cut off");
	fake_done(r);
	fake.err.code = 0;
	fake_box(BOX_EXITED);
	fake.box.v.extra = "{\"Config\":{\"Image\":\"used\"}}";
	expect("DELETE", "/images/used", NULL, 409,
	       "container aaaaaaaaaaaa is using its referenced image");
	expect("POST", "/images/create?fromImage=python&tag=3", NULL, 403,
	       "images.pull");
	expect("POST", "/images/create?fromImage=python&tag=3", NULL, 403,
	       "docker load");
}

TAP_MAIN()
