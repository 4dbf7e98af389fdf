/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The resource attacks R01 to R40, each in a real box, with what the host
 * must still have afterwards. hog.c is the attacker.
 *
 * A control shows that the same program gets what it wants where the limit
 * allows it, so that a test does not pass because nothing works at all.
 */

#define TAP_SECONDS 60

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "watch.h"

/* The run that a hostile one must not have hurt. */
static void check_still_works(void)
{
	struct cordon_result *r = hog_run(BOX_CMD, HOG, "sleep", "1", NULL);

	CHECK_CAUSE(r, "exited");
	CHECK_INT(cordon_result_exit_code(r), 0);
	cordon_result_free(r);
}

/*
 * Ended by its deadline, and not much later than that. An emulated machine
 * stands still for seconds when its host is busy: there this is about the
 * end, and how soon it comes is held to outside.
 */
static void check_on_time(const struct cordon_result *r, long deadline_ms)
{
	double wall = doc_num(r, "execution_time_ms");
	long late = in_vm() ? 5000 : 100;

	CHECK(wall >= deadline_ms);
	CHECK(wall <= deadline_ms + late);
	if (wall > deadline_ms + late)
		printf("# %.0f ms instead of %ld\n", wall, deadline_ms);
}

TEST(R01_fork_bomb)
{
	struct cordon_result *r;

	need_limits();
	r = hog_run("pids-limit=32", BOX_CMD, HOG, "fork", "100", NULL);
	CHECK_CAUSE(r, "pids");
	CHECK_HAS(cordon_result_stdout(r, NULL), "EAGAIN");
	CHECK(hog_said(r, "forked") < 32);
	CHECK(hog_said(r, "forked") >= 25);
	CHECK(doc_num(r, "pids_refused") >= 1);
	cordon_result_free(r);

	r = hog_run("pids-limit=32", BOX_CMD, HOG, "threads", "100", NULL);
	CHECK_CAUSE(r, "pids");
	CHECK(hog_said(r, "threads") < 32);
	cordon_result_free(r);

	r = hog_run("pids-limit=64", "timeout=1s", "cpus=2", BOX_CMD, HOG,
		    "bomb", mark(), NULL);
	CHECK_CAUSE(r, "pids");
	check_on_time(r, 1000);
	CHECK_INT(marked(mark()), 0);
	cordon_result_free(r);

	r = hog_run("pids-limit=128", BOX_CMD, HOG, "fork", "100", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "forked"), 100);
	cordon_result_free(r);
	check_nothing_left();
}

TEST(R02_memory_bomb)
{
	struct cordon_result *r;

	need_limits();
	r = hog_run("memory=64m", "cpus=2", BOX_CMD, HOG, "touch", "256", NULL);
	CHECK_CAUSE(r, "memory");
	CHECK_STR(cordon_result_status(r), "resource_exceeded");
	CHECK_INT(cordon_result_exit_code(r), 137);
	CHECK(doc_num(r, "oom_kills") >= 1);
	/* The host lost no more than the limit. */
	CHECK(doc_num(r, "memory_used_mb") <= 64.5);
	CHECK(doc_num(r, "memory_used_mb") >= 32);
	cordon_result_free(r);

	r = hog_run("memory=128m", "cpus=2", BOX_CMD, HOG, "touch", "64", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "touched"), 64);
	cordon_result_free(r);
	check_still_works();
}

/* A file of the host of which nothing is in the page cache. */
static void make_cold_file(const char *path, size_t mib)
{
	static char block[1 << 20];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	memset(block, 7, sizeof(block));
	for (size_t i = 0; i < mib; i++)
		CHECK(write(fd, block, sizeof(block)) == (ssize_t)MIB);
	CHECK(fdatasync(fd) == 0);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	(void)close(fd);
}

TEST(R03_thrash_below_the_limit)
{
	const char *dir;
	char path[300];
	char volume[400];
	struct cordon_result *r;

	need_limits();
	dir = dir_new();
	(void)snprintf(path, sizeof(path), "%s/cold", dir);
	(void)snprintf(volume, sizeof(volume), "volume=%s:/cold:ro", path);
	make_cold_file(path, 24);
	r = hog_run("memory=32m", "timeout=1s", volume, BOX_CMD, HOG, "thrash",
		    "28", "/cold", NULL);
	CHECK_CAUSE(r, "timeout");
	check_on_time(r, 1000);
	CHECK_INT(hog_said(r, "thrash"), 28);
	CHECK(doc_num(r, "memory_used_mb") <= 32.5);
	cordon_result_free(r);
	dir_remove(dir);
	check_still_works();
}

TEST(R04_tmpfs_fill)
{
	static const char *const places[] = { "/tmp/x", "/dev/shm/x" };
	struct cordon_result *r;

	for (int i = 0; i < 2; i++) {
		r = hog_run("cpus=2", BOX_CMD, HOG, "fill", places[i], "640",
			    NULL);
		CHECK_CAUSE(r, "disk");
		CHECK_HAS(cordon_result_stdout(r, NULL), "ENOSPC");
		CHECK(hog_said(r, "filled") <= 64);
		CHECK(hog_said(r, "filled") >= 60);
		cordon_result_free(r);

		r = hog_run("cpus=2", BOX_CMD, HOG, "fill", places[i], "16",
			    NULL);
		CHECK_CAUSE(r, "exited");
		CHECK_INT(hog_said(r, "filled"), 16);
		cordon_result_free(r);
	}
	need_limits();
	/* Where the memory is less than the place, it is charged to the box. */
	for (int i = 0; i < 2; i++) {
		r = hog_run("memory=24m", "cpus=2", BOX_CMD, HOG, "fill",
			    places[i], "640", NULL);
		CHECK_CAUSE(r, "memory");
		CHECK(doc_num(r, "memory_used_mb") <= 24.5);
		cordon_result_free(r);
	}
}

TEST(R05_inode_exhaustion)
{
	struct statvfs before = { 0 };
	struct statvfs after = { 0 };
	struct cordon_result *r;
	long made;

	CHECK(statvfs("/", &before) == 0);
	r = hog_run("cpus=2", "disk=16m", BOX_CMD, HOG, "files", "/workspace",
		    "1000000", NULL);
	CHECK(statvfs("/", &after) == 0);
	CHECK_CAUSE(r, "disk");
	CHECK_HAS(cordon_result_stdout(r, NULL), "ENOSPC");
	made = hog_said(r, "files");
	CHECK(made > 1000);
	CHECK(made < 100000);
	if (before.f_ffree && made > 4000)
		CHECK(before.f_ffree < after.f_ffree + (fsfilcnt_t)made / 2);
	cordon_result_free(r);

	r = hog_run(BOX_CMD, HOG, "files", "/workspace", "1000", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "files"), 1000);
	cordon_result_free(r);
}

TEST(R06_disk_fill)
{
	struct cordon_spec *s = hog_spec("timeout=20s", "cpus=2", BOX_CMD, HOG,
					 "fill-wait", "/workspace/x", "102400",
					 NULL);
	struct said said = { 0 };
	struct cordon_job *j = job_start(s, &said_events, &said);
	struct cordon_result *r;

	/* While one workspace is full, another box can still write. */
	CHECK(job_says(j, &said, "filled"));
	CHECK_HAS(said.text, "ENOSPC");
	r = hog_run("cpus=2", BOX_CMD, HOG, "fill", "/workspace/y", "32", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "filled"), 32);
	cordon_result_free(r);
	cordon_result_free(cordon_job_end(j));
	cordon_spec_free(s);

	r = hog_run("cpus=2", "disk=8m", BOX_CMD, HOG, "fill", "/workspace/x",
		    "102400", NULL);
	CHECK_CAUSE(r, "disk");
	CHECK_INT(cordon_result_exit_code(r), 1);
	CHECK(hog_said(r, "filled") <= 8);
	cordon_result_free(r);
}

TEST(R07_sparse_file_copied_out)
{
	const char *dir = dir_new();
	char out[300];
	char path[400];
	struct stat st = { 0 };
	struct cordon_result *r;
	long start;

	(void)snprintf(out, sizeof(out), "copy-out=*=%s/out", dir);
	start = now_ms();
	r = hog_run("file-size=2048g", out, BOX_CMD, "sh", "-c",
		    "echo small >small.txt; exec /hog sparse out.bin", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "sparse"), 1024);
	CHECK(now_ms() - start < late_ms(2000));
	CHECK(doc_has(r, "left out 'out.bin': it is too large"));
	(void)snprintf(path, sizeof(path), "%s/out/out.bin", dir);
	CHECK(lstat(path, &st) < 0 && errno == ENOENT);
	(void)snprintf(path, sizeof(path), "%s/out/small.txt", dir);
	CHECK(lstat(path, &st) == 0 && st.st_size == 6);
	cordon_result_free(r);

	/* A file larger than the limit for files cannot even be made. */
	r = hog_run(BOX_CMD, HOG, "sparse", "/workspace/out.bin", NULL);
	CHECK_CAUSE(r, "disk");
	cordon_result_free(r);
	dir_remove(dir);
}

static long entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	long n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		(void)closedir(d);
	return n;
}

TEST(R08_many_outputs_and_a_deep_tree)
{
	const char *dir = dir_new();
	char out[300];
	char path[300];
	struct cordon_result *r;
	/* An emulated CPU takes a minute for the larger numbers. */
	bool is_slow = getenv("CORDON_IN_VM");
	int deep = is_slow ? 2000 : 10000;
	int files = is_slow ? 10100 : 15000;
	char line[100];
	char *json;
	long n = 0;

	(void)snprintf(out, sizeof(out), "copy-out=f*=%s/out", dir);
	(void)snprintf(path, sizeof(path), "%s/out", dir);
	(void)snprintf(line, sizeof(line),
		       "/hog deep /workspace %d && "
		       "/hog files /workspace %d long",
		       deep, files);
	r = hog_run("cpus=2", "timeout=50s", out, BOX_CMD, "sh", "-c", line,
		    NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "deep"), deep);
	CHECK_INT(hog_said(r, "files"), files);
	CHECK(entries(path) <= 10000);
	CHECK(entries(path) > 0);
	json = cordon_result_json(r);
	for (const char *p = strstr(json, "\"files\":["); p && *p != ']'; p++)
		n += *p == '{';
	CHECK(n <= 1000);
	CHECK(doc_has(r, "is cut"));
	free(json);
	cordon_result_free(r);
	dir_remove(dir);

	/* A million is more than a workspace of the usual size has names. */
	r = hog_run("cpus=2", "timeout=50s", BOX_CMD, HOG, "files",
		    "/workspace", "1000000", "long", NULL);
	CHECK_CAUSE(r, "disk");
	CHECK(hog_said(r, "files") > 10000);
	CHECK(hog_said(r, "files") < 100000);
	cordon_result_free(r);
	check_nothing_left();
}

static void check_flood(const char *fd, bool out)
{
	struct cordon_result *r;
	size_t out_len;
	size_t err_len;

	r = hog_run("timeout=1500ms", "cpus=2", BOX_CMD, HOG, "flood", fd,
		    NULL);
	(void)cordon_result_stdout(r, &out_len);
	(void)cordon_result_stderr(r, &err_len);
	CHECK_CAUSE(r, "timeout");
	check_on_time(r, 1500);
	CHECK_INT(out ? out_len : err_len, MIB);
	CHECK_INT(out ? err_len : out_len, 0);
	CHECK(doc_num(r, out ? "stdout_bytes" : "stderr_bytes") > 8 * MIB);
	CHECK(doc_has(r, "\"truncated\":true"));
	CHECK(doc_has(r, "bytes are missing"));
	cordon_result_free(r);
	CHECK(own_peak_kib() < 24 * 1024 * MEMORY_FACTOR);
	CHECK(keeper_pss_kib() < 2048);
}

TEST(R09_stdout_flood)
{
	check_flood("1", true);
	check_nothing_left();
}

TEST(R10_stderr_flood)
{
	struct cordon_result *r;

	check_flood("2", false);
	/* Both in turns: neither waits for the other. */
	r = hog_run("timeout=20s", "cpus=2", BOX_CMD, HOG, "turns", "200",
		    NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT((long)doc_num(r, "stdout_bytes"), 200 * 40001);
	CHECK_INT((long)doc_num(r, "stderr_bytes"), 200 * 40001);
	cordon_result_free(r);
}

TEST(R11_hostile_bytes)
{
	static const char line[] = "\x1b[31m\x1b]0;owned\x07\xff\xfe\xc3(\"\\";
	const char *flood = "1073741824";
	struct cordon_result *r;
	const char *text;
	char *json;
	size_t len;

	/* 1 GiB without a newline, of escapes and bytes that are no text. */
	r = hog_run("timeout=30s", "cpus=2", BOX_CMD, HOG, "flood", "1",
		    in_vm() ? "67108864" : flood, line, NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT((long)doc_num(r, "stdout_bytes"),
		  in_vm() ? 67108864 : 1073741824);
	text = cordon_result_stdout(r, &len);
	CHECK_INT(len, MIB);
	CHECK(memcmp(text, line, sizeof(line) - 1) == 0);
	CHECK(own_peak_kib() < 24 * 1024 * MEMORY_FACTOR);
	json = cordon_result_json(r);
	for (const char *p = json; *p; p++)
		if ((unsigned char)*p < 0x20 && *p != '\n')
			CHECK(!"control character in the document");
	CHECK(strstr(json, "\"stdout_b64\":") != NULL);
	free(json);
	cordon_result_free(r);

	r = hog_run(BOX_CMD, "sh", "-c", "printf 'a\\000b\\377c'", NULL);
	text = cordon_result_stdout(r, &len);
	CHECK(len == 5 && memcmp(text, "a\0b\377c", 5) == 0);
	CHECK(doc_has(r, "\"stdout_b64\":\"YQBi/2M=\""));
	cordon_result_free(r);
}

TEST(R12_descriptors)
{
	static const char *const kinds[] = { "file", "socketpair", "pipe",
					     "eventfd", "memfd" };
	struct cordon_spec *s = hog_spec("timeout=30s", "files=1024", "cpus=2",
					 BOX_CMD, HOG, "hold", "file", "8",
					 NULL);
	struct said said = { 0 };
	struct cordon_result *r;
	struct cordon_job *j;
	long base;
	long held;

	for (int i = 0; i < 5; i++) {
		r = hog_run("files=256", "cpus=2", BOX_CMD, HOG, "take",
			    kinds[i], NULL);
		CHECK_CAUSE(r, "exited");
		CHECK_INT(cordon_result_exit_code(r), 1);
		CHECK_HAS(cordon_result_stdout(r, NULL), "EMFILE");
		CHECK(hog_said(r, kinds[i]) < 256);
		CHECK(hog_said(r, kinds[i]) > 120);
		cordon_result_free(r);
	}
	r = hog_run("files=256", BOX_CMD, HOG, "take", "file", "200", NULL);
	CHECK_INT(cordon_result_exit_code(r), 0);
	cordon_result_free(r);

	/* Eight processes hold all they can, then the host has it back. */
	base = host_files();
	j = job_start(s, &said_events, &said);
	for (long end = now_ms() + 10000; now_ms() < end;) {
		(void)job_wait(j, 10);
		if (host_files() - base > 8 * 1000)
			break;
	}
	held = host_files() - base;
	CHECK(held > 8 * 1000);
	CHECK(held < 8 * 1024 + 2000);
	cordon_result_free(cordon_job_end(j));
	cordon_spec_free(s);
	for (long end = now_ms() + 2000; now_ms() < end;) {
		if (host_files() - base < 1000)
			break;
		sleep_ms(10);
	}
	CHECK(host_files() - base < 1000);
}

TEST(R13_deadline_with_signals_ignored)
{
	struct cordon_result *r;
	long start = now_ms();

	r = hog_run("timeout=700ms", BOX_CMD, HOG, "stubborn", "20", mark(),
		    NULL);
	CHECK(now_ms() - start < 700 + late_ms(300));
	CHECK_CAUSE(r, "timeout");
	CHECK_INT(cordon_result_exit_code(r), 124);
	check_on_time(r, 700);
	CHECK_INT(hog_said(r, "stubborn"), 20);
	CHECK_INT(marked(mark()), 0);
	cordon_result_free(r);

	r = hog_run("timeout=500ms", "kill-grace=300ms", BOX_CMD, "sh", "-c",
		    "trap '' TERM INT HUP; echo on; "
		    "while :; do /hog sleep 50; done",
		    NULL);
	CHECK_CAUSE(r, "timeout");
	check_on_time(r, 800);
	cordon_result_free(r);

	/* One that does obey SIGTERM is gone before the grace is over. */
	r = hog_run("timeout=300ms", "kill-grace=5s", BOX_CMD, HOG, "sleep",
		    "20000", NULL);
	CHECK_CAUSE(r, "timeout");
	check_on_time(r, 300);
	cordon_result_free(r);
	check_nothing_left();
}

TEST(R14_daemon)
{
	struct cordon_result *r;
	long start = now_ms();

	r = hog_run("timeout=20s", BOX_CMD, HOG, "daemon", mark(), NULL);
	CHECK(now_ms() - start < late_ms(1000));
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "daemon"), 1);
	CHECK_INT(marked(mark()), 0);
	cordon_result_free(r);
	check_nothing_left();
}

TEST(R15_held_pipe)
{
	struct cordon_result *r;
	long start = now_ms();

	r = hog_run("timeout=20s", BOX_CMD, "sh", "-c",
		    "/hog sleep 1000000 $1 & echo done; exit 0", "sh", mark(),
		    NULL);
	CHECK(now_ms() - start < late_ms(1000));
	CHECK_CAUSE(r, "exited");
	CHECK_STR(cordon_result_stdout(r, NULL), "done\n");
	CHECK_INT(marked(mark()), 0);
	cordon_result_free(r);
}

TEST(R16_closed_streams)
{
	struct cordon_result *r;

	r = hog_run("timeout=600ms", BOX_CMD, HOG, "closed", NULL);
	CHECK_CAUSE(r, "timeout");
	check_on_time(r, 600);
	cordon_result_free(r);

	/* The end of the streams is not the end of the program. */
	r = hog_run("timeout=20s", BOX_CMD, "sh", "-c",
		    "exec >&- 2>&-; /hog sleep 300; exit 7", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(cordon_result_exit_code(r), 7);
	CHECK(doc_num(r, "execution_time_ms") >= 300);
	cordon_result_free(r);
}

TEST(R17_stopped_processes)
{
	struct cordon_result *r;

	r = hog_run("timeout=600ms", BOX_CMD, HOG, "stop", mark(), NULL);
	CHECK_CAUSE(r, "timeout");
	check_on_time(r, 600);
	CHECK_INT(hog_said(r, "stopping"), 8);
	CHECK_INT(marked(mark()), 0);
	cordon_result_free(r);
	check_nothing_left();
}

TEST(R18_ptrace)
{
	struct cordon_result *r;

	r = hog_run("timeout=5s", BOX_CMD, HOG, "ptrace", mark(), NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "traced"), 0);
	CHECK_HAS(cordon_result_stdout(r, NULL), "EPERM");
	CHECK_INT(marked(mark()), 0);
	cordon_result_free(r);
}

TEST(R19_games_with_pid_1)
{
	struct cordon_result *r;

	r = hog_run("timeout=5s", BOX_CMD, HOG, "init", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_HAS(cordon_result_stdout(r, NULL), "init alive");
	CHECK_INT(hog_said(r, "opened"), 0);
	cordon_result_free(r);

	/* Everything but init is killed, and the program with it. */
	r = hog_run("timeout=5s", BOX_CMD, "sh", "-c",
		    "/hog sleep 5000 & kill -9 -1; exit 3", NULL);
	CHECK(strcmp(cordon_result_cause(r), "signal") == 0 ||
	      strcmp(cordon_result_cause(r), "exited") == 0);
	CHECK(doc_num(r, "execution_time_ms") < 4000);
	cordon_result_free(r);
	check_nothing_left();
}

TEST(R20_zombies)
{
	struct cordon_result *r;

	/* Orphans are reaped: many more than the limit can pass through. */
	(void)alarm(200);
	r = hog_run("timeout=150s", "cpus=2", "pids-limit=64", BOX_CMD, HOG,
		    "orphans", in_vm() ? "2000" : "100000", NULL);
	CHECK_INT(hog_said(r, "orphans"), in_vm() ? 2000 : 100000);
	CHECK_INT(cordon_result_exit_code(r), 0);
	CHECK_CAUSE(r, "exited");
	cordon_result_free(r);

	need_limits();
	r = hog_run("timeout=20s", "cpus=2", "pids-limit=64", BOX_CMD, HOG,
		    "zombies", NULL);
	CHECK_CAUSE(r, "pids");
	CHECK_HAS(cordon_result_stdout(r, NULL), "EAGAIN");
	CHECK(hog_said(r, "zombies") < 64);
	cordon_result_free(r);
	check_nothing_left();
}

/* Idle time of all CPUs so far, in ms. */
static double idle_ms(void)
{
	FILE *f = fopen("/proc/stat", "re");
	unsigned long idle = 0;

	if (f && fscanf(f, "cpu %*u %*u %*u %lu", &idle) != 1)
		idle = 0;
	if (f)
		(void)fclose(f);
	return 1000.0 * (double)idle / (double)sysconf(_SC_CLK_TCK);
}

struct burn {
	double share; /* CPU time in parts of the wall time */
	double late;  /* ms after the deadline */
	double idle;  /* CPUs that nobody wanted meanwhile */
};

static struct burn burn(const char *cpus, const char *threads)
{
	double before = idle_ms();
	struct cordon_result *r;
	struct burn b;
	double wall;

	r = hog_run("timeout=2s", "pids-limit=1024", cpus, BOX_CMD, HOG, "spin",
		    threads, NULL);
	CHECK_CAUSE(r, "timeout");
	wall = doc_num(r, "execution_time_ms");
	b.share = doc_num(r, "cpu_time_ms") / wall;
	b.late = wall - 2000;
	b.idle = (idle_ms() - before) / wall;
	cordon_result_free(r);
	return b;
}

/*
 * Runs it up to three times until it got its share on time; others on the
 * machine may take some of it, but never add to it.
 */
static void check_burn(const char *cpus, const char *threads, double want)
{
	struct burn b = { 0 };

	for (int i = 0; i < 3; i++) {
		b = burn(cpus, threads);
		printf("# %s: %.3f of a CPU, %.0f ms late, %.1f idle\n", cpus,
		       b.share, b.late, b.idle);
		/* It may start in the middle of a period. */
		CHECK(b.share <= want * 1.05 + 0.025);
		if (b.share >= want * 0.95 && b.late <= late_ms(100))
			return;
	}
	if (b.idle < 0.5) {
		printf("# the machine is busy with something else\n");
		return;
	}
	CHECK(b.share >= want * 0.9);
	CHECK(b.late <= late_ms(100));
}

TEST(R21_cpu_burn)
{
	char threads[16];
	struct cordon_result *r;

	need_limits();
	(void)snprintf(threads, sizeof(threads), "%ld",
		       64 * sysconf(_SC_NPROCESSORS_ONLN));
	check_burn("cpus=0.5", threads, 0.5);
	check_burn("cpus=1", threads, 1);
	r = hog_run("cpus=1", BOX_CMD, HOG, "cpu-child", "200", NULL);
	CHECK(doc_num(r, "cpu_time_ms") >= 195);
	cordon_result_free(r);
}

TEST_NOT_IN_VM(R21_cpu_burn_and_a_neighbour)
{
	struct cordon_spec *s;
	struct said said = { 0 };
	struct cordon_job *j;
	long worst = 0;

	need_limits();
	s = hog_spec("timeout=20s", "pids-limit=256", BOX_CMD, HOG, "spin",
		     "128", NULL);
	j = job_start(s, &said_events, &said);
	CHECK(job_says(j, &said, "spin"));
	for (int i = 0; i < 20; i++) {
		long start = now_ms();

		check_still_works();
		worst = now_ms() - start > worst ? now_ms() - start : worst;
	}
	CHECK(worst < late_ms(500));
	printf("# slowest neighbour %ld ms\n", worst);
	cordon_result_free(cordon_job_end(j));
	cordon_spec_free(s);
}

TEST(R22_cpu_time_and_wall_time)
{
	struct cordon_result *r;

	need_limits();
	r = hog_run("cpus=1", "cpu-time=300ms", "timeout=10s", BOX_CMD, HOG,
		    "spin", "1", NULL);
	CHECK_CAUSE(r, "cpu");
	CHECK_INT(cordon_result_exit_code(r), 137);
	CHECK(doc_num(r, "cpu_time_ms") >= 300);
	CHECK(doc_num(r, "cpu_time_ms") <= 300 + late_ms(100));
	cordon_result_free(r);

	r = hog_run("cpus=1", "cpu-time=300ms", "timeout=700ms", BOX_CMD, HOG,
		    "sleep", "20000", NULL);
	CHECK_CAUSE(r, "timeout");
	check_on_time(r, 700);
	CHECK(doc_num(r, "cpu_time_ms") < 300);
	cordon_result_free(r);

	/* Split over children it is the same. */
	r = hog_run("cpus=1", "cpu-time=300ms", "timeout=10s", BOX_CMD, "sh",
		    "-c", "for i in 1 2 3 4 5 6 7 8; do /hog cpu 100; done",
		    NULL);
	CHECK_CAUSE(r, "cpu");
	cordon_result_free(r);
}

static void move_clock(long seconds)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_REALTIME, &t) == 0);
	t.tv_sec += seconds;
	CHECK(clock_settime(CLOCK_REALTIME, &t) == 0);
}

TEST_IN_VM(R23_clock_change)
{
	struct cordon_spec *s;
	struct cordon_result *r;
	struct cordon_job *j;

	if (!in_vm() || geteuid() != 0)
		SKIP("sets the machine's clock: root in a virtual machine");
	s = hog_spec("timeout=2s", BOX_CMD, HOG, "sleep", "1000", NULL);
	j = job_start(s, NULL, NULL);
	(void)job_wait(j, 500);
	move_clock(3600);
	CHECK(job_wait(j, 20000));
	r = cordon_job_end(j);
	move_clock(-3600);
	CHECK_CAUSE(r, "exited");
	CHECK(doc_num(r, "execution_time_ms") >= 1000);
	CHECK(doc_num(r, "execution_time_ms") < 2000);
	cordon_result_free(r);
	cordon_spec_free(s);

	s = hog_spec("timeout=1s", BOX_CMD, HOG, "sleep", "20000", NULL);
	j = job_start(s, NULL, NULL);
	(void)job_wait(j, 500);
	move_clock(-3600);
	CHECK(job_wait(j, 20000));
	r = cordon_job_end(j);
	move_clock(3600);
	CHECK_CAUSE(r, "timeout");
	check_on_time(r, 1000);
	cordon_result_free(r);
	cordon_spec_free(s);
}

TEST(R24_huge_arguments)
{
	size_t len = 2 * MIB;
	char *arg = malloc(len + 1);
	struct cordon_error err = { 0 };
	struct cordon_spec *s;
	struct cordon_result *r;
	char env[64];
	int refused = 0;

	memset(arg, 'a', len);
	arg[len] = '\0';
	r = hog_run(BOX_CMD, HOG, "args", arg, NULL);
	CHECK_CAUSE(r, "invalid");
	CHECK_INT(cordon_result_exit_code(r), 125);
	CHECK_HAS(cordon_result_message(r), "Argument list too long");
	cordon_result_free(r);
	arg[100000] = '\0';
	r = hog_run(BOX_CMD, HOG, "args", arg, NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_HAS(cordon_result_stdout(r, NULL), "args 100001");
	cordon_result_free(r);
	free(arg);

	s = hog_spec(BOX_CMD, HOG, "args", NULL);
	for (int i = 0; i < 100000 && !refused; i++) {
		(void)snprintf(env, sizeof(env), "V%d=x", i);
		refused = cordon_spec_set(s, "env", env, &err);
	}
	CHECK_INT(-refused, E2BIG);
	CHECK_HAS(err.text, "variables");
	r = box_run_spec(s);
	CHECK_CAUSE(r, "exited");
	CHECK_HAS(cordon_result_stdout(r, NULL), "env 4");
	cordon_result_free(r);
}

TEST(R24_input_never_read)
{
	const size_t gib = 1UL << 30;
	void *data = mmap(NULL, gib, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct cordon_error err = { 0 };
	struct cordon_spec *s;
	struct cordon_result *r;
	struct cordon_job *j;
	long taken = 0;
	long start;
	long n = 1;

	s = hog_spec("timeout=5s", BOX_CMD, HOG, "sleep", "300", NULL);
	CHECK(data != MAP_FAILED);
	CHECK(cordon_spec_stdin(s, data, gib, &err) < 0);
	CHECK(err.text[0]);
	CHECK(cordon_spec_stdin(s, data, 16 * MIB, &err) == 0);
	start = now_ms();
	r = box_run_spec(s);
	CHECK(now_ms() - start < 300 + late_ms(700));
	CHECK_CAUSE(r, "exited");
	cordon_result_free(r);

	/* A writer that goes on is told to wait, and is not blocked. */
	s = hog_spec("timeout=20s", "interactive", BOX_CMD, HOG, "sleep",
		     "20000", NULL);
	j = job_start(s, NULL, NULL);
	start = now_ms();
	for (int i = 0; i < 100000 && n > 0; i++) {
		n = cordon_job_write(j, data, MIB);
		taken += n > 0 ? n : 0;
	}
	CHECK_INT(n, 0);
	CHECK(taken > 0 && (size_t)taken <= 2 * MIB);
	CHECK(now_ms() - start < late_ms(1000));
	r = cordon_job_end(j);
	CHECK_CAUSE(r, "cancelled");
	cordon_result_free(r);
	cordon_spec_free(s);
}

TEST(R25_stack_and_raised_limits)
{
	struct cordon_result *r;

	r = hog_run("timeout=10s", BOX_CMD, HOG, "stack", NULL);
	CHECK_CAUSE(r, "signal");
	CHECK_INT(cordon_result_signal(r), SIGSEGV);
	CHECK_INT(cordon_result_exit_code(r), 128 + SIGSEGV);
	cordon_result_free(r);

	r = hog_run(BOX_CMD, HOG, "rlimits", NULL);
	CHECK_INT(hog_said(r, "raised"), 0);
	CHECK(hog_said(r, "lowered") >= 3);
	cordon_result_free(r);
}

TEST(R26_memory_of_pipes)
{
	struct cordon_result *r;

	need_limits();
	r = hog_run("memory=24m", "cpus=2", "timeout=20s", BOX_CMD, HOG,
		    "pipes", "10000", NULL);
	CHECK_CAUSE(r, "memory");
	CHECK(doc_num(r, "memory_used_mb") <= 24.5);
	cordon_result_free(r);

	r = hog_run("memory=128m", "cpus=2", "timeout=20s", BOX_CMD, HOG,
		    "pipes", "12", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "pipes"), 12);
	CHECK(doc_num(r, "memory_used_mb") >= 12);
	cordon_result_free(r);
}

/* An error inside, or the memory of the box: never without an end. */
static void check_stopped(const char *kind, long most)
{
	struct cordon_result *r;

	r = hog_run("timeout=20s", "cpus=2", BOX_CMD, HOG, "take", kind,
		    "2000000", NULL);
	CHECK(hog_said(r, kind) <= most);
	if (strcmp(cordon_result_cause(r), "memory") != 0) {
		CHECK_CAUSE(r, "exited");
		CHECK_INT(cordon_result_exit_code(r), 1);
		CHECK(hog_said(r, kind) > 0);
	}
	cordon_result_free(r);
}

TEST(R27_kernel_objects)
{
	check_stopped("epoll", 1024);
	check_stopped("inotify", 1024);
	check_stopped("timerfd", 1024);
	check_stopped("timer", 4097);
	check_stopped("signal", 4097);
	check_stopped("skb", 100000);
	check_still_works();
}

/*
 * What the kernel counts for each user is counted for each box. Watches of an
 * ordinary user's boxes also count as that user's own, whatever uid they have
 * (ucounts of the user namespace's maker): only root's boxes are apart.
 */
TEST(R27_one_box_does_not_use_up_the_others_share)
{
	static const char *const kinds[] = { "inotify", "signal", "timer" };

	for (int i = geteuid() == 0 ? 0 : 1; i < 3; i++) {
		struct cordon_spec *s = hog_spec("timeout=20s", BOX_CMD, HOG,
						 "hold", kinds[i], NULL);
		struct said said = { 0 };
		struct cordon_job *j = job_start(s, &said_events, &said);
		struct cordon_result *r;

		CHECK(job_says(j, &said, kinds[i]));
		r = hog_run("timeout=20s", BOX_CMD, HOG, "take", kinds[i], "16",
			    NULL);
		if (!doc_has(r, "own-uid"))
			CHECK_INT(hog_said(r, kinds[i]), 16);
		if (hog_said(r, kinds[i]) != 16)
			printf("# first: %s# second: %s\n", said.text,
			       cordon_result_stdout(r, NULL));
		cordon_result_free(r);
		cordon_result_free(cordon_job_end(j));
		cordon_spec_free(s);
	}
}

TEST(R28_ipc_left_behind)
{
	static const char *const lists[] = { "/proc/sysvipc/shm",
					     "/proc/sysvipc/sem",
					     "/proc/sysvipc/msg" };
	long before[3];
	char key[16];
	struct cordon_result *r;

	(void)snprintf(key, sizeof(key), "%d", 0x43000000 + (int)getpid());
	for (int i = 0; i < 3; i++)
		before[i] = file_lines(lists[i]);
	r = hog_run(BOX_CMD, "sh", "-c",
		    "/hog ipc $1 make; /hog ipc $1 find >&2", "sh", key, NULL);
	CHECK_CAUSE(r, "exited");
	/* Landlock may refuse the queue, but not the other three. */
	CHECK(hog_said(r, "ipc") >= 3);
	CHECK_STR(cordon_result_stderr(r, NULL), cordon_result_stdout(r, NULL));
	cordon_result_free(r);
	for (int i = 0; i < 3; i++)
		CHECK_INT(file_lines(lists[i]), before[i]);

	r = hog_run(BOX_CMD, HOG, "ipc", key, "find", NULL);
	CHECK_INT(hog_said(r, "ipc"), 0);
	cordon_result_free(r);
}

TEST(R29_locked_memory)
{
	struct cordon_result *r = hog_run(BOX_CMD, HOG, "lock", NULL);

	CHECK_CAUSE(r, "exited");
	CHECK_STR(cordon_result_stdout(r, NULL),
		  "small yes\nlarge no\nall no\nhuge no\n");
	cordon_result_free(r);
}

/* Whether something can be done in a child of this test, on the host. */
static bool host_can(bool (*try)(void))
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(try() ? 0 : 1);
	(void)waitpid(pid, &status, 0);
	return status == 0;
}

static bool try_userns(void)
{
	return unshare(CLONE_NEWUSER) == 0;
}

static bool try_mount(void)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       mount("none", "/tmp", "tmpfs", 0, NULL) == 0;
}

TEST(R30_nested_namespaces)
{
	struct cordon_result *r;

	CHECK(host_can(try_userns));
	r = hog_run("timeout=20s", BOX_CMD, HOG, "userns", "1000", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "userns"), 0);
	CHECK_HAS(cordon_result_stdout(r, NULL), "EPERM");
	cordon_result_free(r);
}

TEST(R31_mount_flood)
{
	long before = file_lines("/proc/self/mountinfo");
	struct cordon_result *r;

	CHECK(host_can(try_mount));
	r = hog_run("timeout=30s", "cpus=2", BOX_CMD, HOG, "mounts",
		    in_vm() ? "10000" : "100000", NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "mounts"), 0);
	CHECK_HAS(cordon_result_stdout(r, NULL), "EPERM");
	cordon_result_free(r);
	CHECK_INT(file_lines("/proc/self/mountinfo"), before);
}

TEST(R32_core_dumps)
{
	struct cordon_result *r;

	r = hog_run("timeout=30s", "cpus=2", BOX_CMD, HOG, "aborts", "1000",
		    NULL);
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "aborted"), 1000);
	CHECK_INT(hog_said(r, "cores"), 0);
	CHECK(doc_has(r, "\"files\":[]"));
	cordon_result_free(r);
	CHECK(access("core", F_OK) < 0);
}

TEST(R33_priority)
{
	struct cordon_result *r = hog_run(BOX_CMD, HOG, "priority", NULL);

	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "higher"), 0);
	CHECK_INT(hog_said(r, "lower"), 1);
	cordon_result_free(r);
}

/* Every writable place is memory of the box; no disk sees a write. */
TEST(R34_sync_storm)
{
	struct cordon_spec *s = hog_spec("timeout=20s", BOX_CMD, HOG, "fsync",
					 "/workspace/s", "15000", NULL);
	struct cordon_result *r;
	struct cordon_job *j;
	long start;

	r = hog_run(BOX_CMD, HOG, "fstype", "/workspace", "/tmp", "/dev/shm",
		    NULL);
	CHECK_STR(cordon_result_stdout(r, NULL),
		  "/workspace 1021994\n/tmp 1021994\n/dev/shm 1021994\n");
	cordon_result_free(r);

	j = job_start(s, NULL, NULL);
	(void)job_wait(j, 100);
	start = now_ms();
	r = hog_run("timeout=20s", BOX_CMD, HOG, "fsync", "/workspace/n", "500",
		    NULL);
	CHECK_CAUSE(r, "exited");
	CHECK(hog_said(r, "fsync") > 1000);
	CHECK(now_ms() - start < 500 + late_ms(500));
	cordon_result_free(r);
	cordon_result_free(cordon_job_end(j));
	cordon_spec_free(s);
}

TEST(R35_page_cache_flood)
{
	const char *dir;
	char path[300];
	char volume[400];
	struct cordon_result *r;
	int fd;

	need_limits();
	dir = dir_new();
	(void)snprintf(path, sizeof(path), "%s/holes", dir);
	(void)snprintf(volume, sizeof(volume), "volume=%s:/data:ro", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK(ftruncate(fd, (off_t)(1UL << 30)) == 0);
	(void)close(fd);
	r = hog_run("memory=32m", "cpus=2", "timeout=30s", volume, BOX_CMD, HOG,
		    "read", "/data", "1024", NULL);
	/* A file system in memory cannot give its pages back. */
	if (in_vm() && strcmp(cordon_result_cause(r), "memory") == 0) {
		printf("# the file system is in memory\n");
	} else {
		CHECK_CAUSE(r, "exited");
		CHECK_INT(hog_said(r, "read"), 1024);
	}
	CHECK(doc_num(r, "memory_used_mb") <= 32.5);
	cordon_result_free(r);
	dir_remove(dir);
}

/* Whether a process is in a group of a box. */
static bool is_in_a_box(pid_t pid, const struct groups *g)
{
	char path[64];
	char line[1024];
	bool in = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		in = in || strstr(line, g->prefix);
	if (f)
		(void)fclose(f);
	return in;
}

TEST(R36_only_the_box_is_killed)
{
	pid_t keeper = keeper_pid();
	struct cordon_result *r;
	struct groups g;

	need_limits();
	r = hog_run(BOX_CMD, HOG, "oom-adjust", NULL);
	CHECK_INT(hog_said(r, "score"), 300);
	CHECK_INT(cordon_result_exit_code(r), 1);
	cordon_result_free(r);
	for (int i = 0; i < 5; i++) {
		r = hog_run("memory=16m", "cpus=2", BOX_CMD, HOG, "touch", "64",
			    NULL);
		CHECK_CAUSE(r, "memory");
		cordon_result_free(r);
	}
	CHECK(groups_find(&g));
	CHECK(!is_in_a_box(keeper, &g));
	CHECK(!is_in_a_box(getpid(), &g));
	CHECK_INT(keeper_pid(), keeper);
	check_still_works();
	check_nothing_left();
}

#define MANY 200

static struct cordon_job *many[MANY];
static struct cordon_spec *many_spec;

/* Steps them all until they have ended, and counts how. */
static void count_many(long *ended, long *busy, long *other)
{
	long left = MANY;
	long end = now_ms() + 40000;
	struct pollfd fds[MANY];

	while (left > 0 && now_ms() < end) {
		left = 0;
		for (int i = 0; i < MANY; i++) {
			bool is_over = cordon_job_step(many[i]);

			fds[i] = (struct pollfd){
				.fd = is_over ? -1 : cordon_job_fd(many[i]),
				.events = POLLIN
			};
			left += !is_over;
		}
		if (left > 0)
			(void)poll(fds, MANY, 1000);
	}
	CHECK_INT(left, 0);
	for (int i = 0; i < MANY; i++) {
		struct cordon_result *r = cordon_job_end(many[i]);
		const char *why = cordon_result_message(r);

		if (strcmp(cordon_result_cause(r), "exited") == 0 &&
		    cordon_result_exit_code(r) == 0)
			++*ended;
		else if (strcmp(cordon_result_cause(r), "setup") == 0 && why &&
			 strstr(why, "busy"))
			++*busy;
		else if (++*other == 1)
			box_show(r);
		cordon_result_free(r);
	}
}

TEST_NOT_IN_VM(R37_many_at_once)
{
	long ended = 0;
	long busy = 0;
	long other = 0;
	long base = host_files();
	pid_t keeper = keeper_pid();

	/* Each floods a little, and waits so that they are there at once. */
	many_spec = hog_spec("timeout=40s", "cpus=1", "memory=16m",
			     "pids-limit=16", BOX_CMD, "sh", "-c",
			     "/hog flood 1 200000; exec /hog sleep 4000", "sh",
			     mark(), NULL);
	for (int i = 0; i < MANY; i++)
		many[i] = job_start(many_spec, NULL, NULL);
	count_many(&ended, &busy, &other);
	cordon_spec_free(many_spec);
	printf("# %ld ended, %ld busy\n", ended, busy);
	CHECK_INT(ended + busy, MANY);
	CHECK_INT(other, 0);
	CHECK(ended >= 50);
	CHECK(busy >= 1);
	CHECK_INT(keeper_pid(), keeper);
	check_still_works();
	CHECK(keeper_pss_kib() < 2048);
	check_nothing_left();
	CHECK(host_files() - base < 1000);
}

TEST(R38_cleanup_resistance)
{
	long mounts = file_lines("/proc/self/mountinfo");
	struct cordon_result *r;
	long start;

	start = now_ms();
	r = hog_run("timeout=10s", BOX_CMD, HOG, "nasty", mark(), NULL);
	CHECK(now_ms() - start < late_ms(2000));
	CHECK_CAUSE(r, "exited");
	CHECK_INT(hog_said(r, "nasty"), 4);
	cordon_result_free(r);
	CHECK_INT(file_lines("/proc/self/mountinfo"), mounts);
	check_still_works();
	check_nothing_left();
}

/* Each line doubles what the one before says: 2^40 words. */
static const char macro_bomb[] =
	"#define A(x) x x x x x x x x x x\n"
	"#define B(x) A(A(A(x)))\n#define C(x) B(B(B(x)))\n"
	"int main(void) { return C(C(+1)) ; }\n";

TEST(R39_time_bomb_in_a_tool)
{
	struct cordon_error err = { 0 };
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_result *r;

	/* The compile step has the limits of the run. */
	box_set(s, "timeout=2s");
	box_set(s, "memory=64m");
	if (!has_limits())
		box_set(s, "best-effort=cgroup");
	CHECK(cordon_spec_code(s, "c", macro_bomb, strlen(macro_bomb), NULL,
			       &err) == 0);
	r = box_run_spec(s);
	if (strcmp(cordon_result_cause(r), "not_found") == 0) {
		printf("# no compiler in the root\n");
	} else {
		CHECK(strcmp(cordon_result_status(r), "success") != 0);
		CHECK(strcmp(cordon_result_cause(r), "memory") == 0 ||
		      strcmp(cordon_result_cause(r), "timeout") == 0);
		CHECK(doc_num(r, "execution_time_ms") <= 2000 + late_ms(100));
	}
	cordon_result_free(r);

	/* A tool that unpacks a little into very much. */
	r = hog_run("timeout=10s", "cpus=2", BOX_CMD, "sh", "-c",
		    "/hog flood 1 10737418240 | cat >/workspace/out; "
		    "test $? = 0 && exit 3",
		    NULL);
	CHECK_CAUSE(r, "disk");
	cordon_result_free(r);
}

TEST(R40_starved_monitor)
{
	struct cordon_result *r;

	r = hog_run("timeout=1500ms", "cpus=2", "pids-limit=64", BOX_CMD, HOG,
		    "noise-maker", mark(), NULL);
	CHECK(strcmp(cordon_result_cause(r), "timeout") == 0 ||
	      strcmp(cordon_result_cause(r), "pids") == 0);
	check_on_time(r, 1500);
	CHECK_INT(marked(mark()), 0);
	cordon_result_free(r);
	CHECK(own_peak_kib() < 24 * 1024 * MEMORY_FACTOR);
	CHECK(keeper_pss_kib() < 2048);
	check_still_works();
	check_nothing_left();
}

TAP_MAIN()
