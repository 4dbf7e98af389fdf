/* SPDX-License-Identifier: Apache-2.0 */
#include "box/root-host.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>
#include <errno.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/util.h"
#include "box/root-image.h"
#include "box/root-trust.h"

/* Shown as they are, where they exist. */
static const struct {
	const char *path;
	int flags;
	bool is_trust; /* root-trust.c may have another one */
} shown[] = {
	{ "/usr", WIRE_MNT_RO, false },
	{ "/etc/ld.so.cache", WIRE_MNT_RO | WIRE_MNT_FILE | WIRE_MNT_OPTIONAL,
	  false },
	{ "/etc/ld.so.conf", WIRE_MNT_RO | WIRE_MNT_FILE | WIRE_MNT_OPTIONAL,
	  false },
	{ "/etc/ld.so.conf.d", WIRE_MNT_RO | WIRE_MNT_OPTIONAL, false },
	{ "/etc/alternatives", WIRE_MNT_RO | WIRE_MNT_OPTIONAL, false },
	{ "/etc/ca-certificates", WIRE_MNT_RO | WIRE_MNT_OPTIONAL, false },
	{ "/etc/ssl/certs", WIRE_MNT_RO | WIRE_MNT_OPTIONAL, true },
	{ "/etc/mime.types", WIRE_MNT_RO | WIRE_MNT_FILE | WIRE_MNT_OPTIONAL,
	  false },
};

static const struct {
	const char *path;
	uint16_t dev;
} devices[] = {
	{ "/dev/null", 1 << 8 | 3 },    { "/dev/zero", 1 << 8 | 5 },
	{ "/dev/full", 1 << 8 | 7 },    { "/dev/random", 1 << 8 | 8 },
	{ "/dev/urandom", 1 << 8 | 9 }, { "/dev/tty", 5 << 8 | 0 },
};

/* Top directories that are links into /usr on a merged system. */
static const char *const tops[] = { "/bin",   "/sbin",  "/lib",
				    "/lib32", "/lib64", "/libx32" };

/* What programs read there; where only some may run, without the others. */
static const char *const data_dirs[] = {
	"/usr/lib",   "/usr/lib32",     "/usr/lib64",       "/usr/libx32",
	"/usr/share", "/usr/local/lib", "/usr/local/share",
};

static bool is_directory(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void programs_mounts(struct pack *p, struct wire_box *box,
			    const struct programs *only)
{
	for (size_t i = 0; i < ARRAY_SIZE(data_dirs); i++)
		if (is_directory(data_dirs[i]))
			(void)pack_mount(p, box, WIRE_BIND,
					 WIRE_MNT_RO | WIRE_MNT_NOEXEC,
					 data_dirs[i], data_dirs[i]);
	for (size_t i = 0; i < only->files.n; i++)
		(void)pack_mount(p, box, WIRE_BIND,
				 WIRE_MNT_RO | WIRE_MNT_FILE | WIRE_MNT_PROGRAM,
				 only->files.v[i], only->files.v[i]);
	for (size_t i = 0; i < only->code.n; i++)
		(void)pack_mount(p, box, WIRE_BIND,
				 WIRE_MNT_RO | (is_directory(only->code.v[i])
							? 0
							: WIRE_MNT_FILE),
				 only->code.v[i], only->code.v[i]);
}

void root_host_mounts(struct pack *p, struct wire_box *box,
		      const struct cordon_spec *s, const struct programs *only)
{
	/* With its owner shown as the box's user, who may then write. */
	int layer = s->writable_root ? WIRE_MNT_OVERLAY | WIRE_MNT_IDMAP : 0;
	char link[256];

	if (s->writable_root) {
		box->blob.flags |= WIRE_OWN_ROOT;
		root_upper(p, box, s);
	}
	if (only)
		programs_mounts(p, box, only);
	for (size_t i = only ? 1 : 0; i < ARRAY_SIZE(shown); i++)
		if (!shown[i].is_trust || !root_has_trust(s))
			(void)pack_mount(p, box, WIRE_BIND,
					 shown[i].flags | (i == 0 ? layer : 0) |
						 (only ? WIRE_MNT_NOEXEC : 0),
					 shown[i].path, shown[i].path);
	for (size_t i = 0; !only && i < ARRAY_SIZE(tops); i++)
		if (readlink(tops[i], link, sizeof(link)) < 0 &&
		    access(tops[i], F_OK) == 0)
			(void)pack_mount(p, box, WIRE_BIND, WIRE_MNT_RO,
					 tops[i], tops[i]);
	root_devices(p, box, s);
}

void root_devices(struct pack *p, struct wire_box *box,
		  const struct cordon_spec *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		if (s->tty || s->stays || i + 1 < ARRAY_SIZE(devices))
			pack_mount(p, box, WIRE_DEV, 0, devices[i].path,
				   devices[i].path)
				->dev = devices[i].dev;
}

void root_dir(struct pack *p, const char *path)
{
	pack_record(p, &(struct wire_record){ .kind = WIRE_DIR, .mode = 0755 },
		    path, NULL);
}

void root_file(struct pack *p, const char *path, const char *text)
{
	const struct wire_record rec = { .kind = WIRE_FILE,
					 .mode = 0444,
					 .data_len = strlen(text) };

	pack_record(p, &rec, path, text);
}

static void link_to(struct pack *p, const char *path, const char *target)
{
	const struct wire_record rec = { .kind = WIRE_LINK,
					 .data_len = strlen(target) };

	pack_record(p, &rec, path, target);
}

int root_host_has(const char *program)
{
	const char *path = ROOT_PATH;
	char full[512];

	if (program[0] == '/')
		return access(program, X_OK) == 0;
	while (*path) {
		size_t len = strcspn(path, ":");

		(void)snprintf(full, sizeof(full), "%.*s/%s", (int)len, path,
			       program);
		if (access(full, X_OK) == 0)
			return 1;
		path += len + (path[len] == ':');
	}
	return 0;
}

/* No limit gives more than the machine has. */
static uint64_t memory_seen(const struct cordon_spec *s)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0 || !info.totalram)
		return s->memory;
	return MIN(s->memory, (uint64_t)info.totalram * info.mem_unit);
}

static unsigned int n_cpus(const struct cordon_spec *s)
{
	uint64_t n = (s->cpu_quota_us + s->cpu_period_us - 1) /
		     s->cpu_period_us;
	long host = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int set = 0;

	for (size_t i = 0; i < ARRAY_SIZE(s->cpus); i++)
		set += (unsigned int)__builtin_popcountll(s->cpus[i]);
	if (set > 0)
		n = MIN(n, set);
	return (unsigned int)MIN(n, (uint64_t)MAX(host, 1));
}

/*
 * How fast a processor runs at the moment tells what else the host does; and
 * a box that was made ahead must be the same as one that is made now.
 */
static void drop_speed(char *text)
{
	char *line;

	while ((line = strstr(text, "\ncpu MHz"))) {
		const char *next = strchr(line + 1, '\n');

		text = line;
		if (!next)
			break;
		memmove(line, next, strlen(next) + 1);
	}
}

/* A processor has no more of them than there are in the box. */
static void at_most(char *text, const char *name, unsigned int n)
{
	char *line = text;

	while ((line = strstr(line, name))) {
		char *value = strpbrk(line + 1, ":\n");
		char *end;
		char number[16];
		int len;

		line++;
		if (!value || *value != ':')
			continue;
		value++;
		if (strtoul(value, &end, 10) <= n || *end != '\n')
			continue;
		len = snprintf(number, sizeof(number), " %u", n);
		/* Fewer digits than were there. */
		memcpy(value, number, (size_t)len);
		memmove(value + len, end, strlen(end) + 1);
	}
}

/* What the kernel writes of one processor is less. */
#define CPUINFO_MOST 4096

static const char cpuinfo_path[] = "/proc/cpuinfo";
static char *kept_cpuinfo;

/*
 * The first n processors of the host's list; they are numbered from 0. The
 * kernel writes it while it is read: no more than is needed. NULL: ENOMEM
 */
static char *read_cpuinfo(unsigned int n)
{
	size_t size = (size_t)n * CPUINFO_MOST;
	char *text = malloc(size);

	if (text && io_read_file(AT_FDCWD, cpuinfo_path, text, size) <= 0)
		text[0] = '\0';
	return text;
}

void root_keep_cpus(void)
{
	free(kept_cpuinfo);
	kept_cpuinfo = read_cpuinfo((unsigned int)MAX(get_nprocs(), 1));
}

static void cpuinfo(struct pack *p, unsigned int n)
{
	_cleanup_free_ char *own = kept_cpuinfo ? NULL : read_cpuinfo(n);
	const char *all = kept_cpuinfo ? kept_cpuinfo : own;
	const char *end = all;
	_cleanup_free_ char *text = NULL;

	for (unsigned int i = 0; all && i < n && *end; i++) {
		const char *blank = strstr(end, "\n\n");

		end = blank ? blank + 2 : end + strlen(end);
	}
	text = all ? strndup(all, (size_t)(end - all)) : NULL;
	if (!text) {
		(void)err_set(&p->err, ENOMEM, "out of memory");
		return;
	}
	drop_speed(text);
	at_most(text, "\nsiblings", n);
	at_most(text, "\ncpu cores", n);
	root_file(p, cpuinfo_path, text);
}

static void meminfo(struct pack *p, uint64_t bytes)
{
	unsigned long long kb = bytes >> 10;
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "MemTotal:       %8llu kB\n"
		       "MemFree:        %8llu kB\n"
		       "MemAvailable:   %8llu kB\n"
		       "Buffers:        %8u kB\n"
		       "Cached:         %8u kB\n"
		       "SwapCached:     %8u kB\n"
		       "SwapTotal:      %8u kB\n"
		       "SwapFree:       %8u kB\n",
		       kb, kb, kb, 0U, 0U, 0U, 0U, 0U);
	root_file(p, "/proc/meminfo", text);
}

/* When it began is the hour: boxes of one hour are the same. */
static void stat_file(struct pack *p, unsigned int n)
{
	long long hour = time(NULL) / 3600 * 3600;
	char text[16384];
	size_t len;

	len = (size_t)snprintf(text, sizeof(text),
			       "cpu  0 0 0 0 0 0 0 0 0 0\n");
	for (unsigned int i = 0; i < n && len < sizeof(text) - 200; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"cpu%u 0 0 0 0 0 0 0 0 0 0\n", i);
	(void)snprintf(text + len, sizeof(text) - len,
		       "intr 0\nctxt 0\nbtime %lld\nprocesses 1\n"
		       "procs_running 1\nprocs_blocked 0\n",
		       hour);
	root_file(p, "/proc/stat", text);
}

static void cpu_files(struct pack *p, unsigned int n)
{
	char range[16];
	char path[64];

	(void)snprintf(range, sizeof(range), n > 1 ? "0-%u\n" : "0\n", n - 1);
	/* Said one by one, which is quicker than to find them missing. */
	root_dir(p, "/sys");
	root_dir(p, "/sys/devices");
	root_dir(p, "/sys/devices/system");
	root_dir(p, "/sys/devices/system/cpu");
	root_file(p, "/sys/devices/system/cpu/online", range);
	link_to(p, "/sys/devices/system/cpu/possible", "online");
	link_to(p, "/sys/devices/system/cpu/present", "online");
	for (unsigned int i = 0; i < n && i < 256; i++) {
		(void)snprintf(path, sizeof(path),
			       "/sys/devices/system/cpu/cpu%u", i);
		root_dir(p, path);
	}
}

static void accounts(struct pack *p, const struct cordon_spec *s)
{
	char text[512];
	size_t len;

	len = (size_t)
		snprintf(text, sizeof(text),
			 "root:x:0:0:root:/root:/bin/sh\n"
			 "nobody:x:65534:65534:nobody:/workspace:/bin/sh\n");
	if (s->uid != 0 && s->uid != 65534)
		(void)snprintf(text + len, sizeof(text) - len,
			       "user:x:%u:%u:user:/workspace:/bin/sh\n", s->uid,
			       s->gid);
	root_file(p, "/etc/passwd", text);
	len = (size_t)snprintf(text, sizeof(text),
			       "root:x:0:\nnogroup:x:65534:\n");
	if (s->gid != 0 && s->gid != 65534)
		(void)snprintf(text + len, sizeof(text) - len, "user:x:%u:\n",
			       s->gid);
	root_file(p, "/etc/group", text);
}

const char *root_hostname(const struct cordon_spec *s)
{
	if (s->hostname)
		return s->hostname;
	return s->name ? s->name : "cordon";
}

void root_hosts(struct pack *p, const struct cordon_spec *s, const char *path)
{
	const char *domain = s->domainname ? s->domainname : "";
	const char *name = root_hostname(s);
	struct buf text;

	buf_init(&text, 256 << 10);
	buf_printf(&text, "127.0.0.1 localhost");
	if (*domain)
		buf_printf(&text, " %s.%s", name, domain);
	buf_printf(&text, " %s\n::1 localhost\n", name);
	for (size_t i = 0; i < s->hosts.n; i++)
		buf_printf(&text, "%s\n", s->hosts.v[i]);
	if (text.error)
		(void)err_set(&p->err, E2BIG, "too many hosts");
	else
		root_file(p, path, text.data);
	buf_done(&text);
}

void root_resolver(struct pack *p, const struct cordon_spec *s,
		   const char *path)
{
	root_file(p, path,
		  s->egress ? "# the box's gate\nnameserver 198.18.0.1\n"
			      "options timeout:5 attempts:2\n"
			    : "# no network\n");
}

static void etc(struct pack *p, const struct cordon_spec *s)
{
	char target[256];
	ssize_t n;

	accounts(p, s);
	root_hosts(p, s, "/etc/hosts");
	root_file(p, "/etc/nsswitch.conf",
		  "passwd: files\ngroup: files\nhosts: files dns\n");
	root_resolver(p, s, "/etc/resolv.conf");
	n = readlink("/etc/localtime", target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		link_to(p, "/etc/localtime", target);
	}
}

static void links(struct pack *p, const struct programs *only)
{
	char target[256];

	for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
		ssize_t n = readlink(tops[i], target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		link_to(p, tops[i], target);
	}
	root_dir(p, "/var");
	link_to(p, "/var/tmp", "/tmp");
	for (size_t i = 0; only && i < only->links.n; i++)
		link_to(p, only->links.v[i], only->targets.v[i]);
	if (!only && !root_host_has("python") && root_host_has("python3")) {
		root_dir(p, "/opt");
		root_dir(p, "/opt/cordon");
		root_dir(p, "/opt/cordon/bin");
		link_to(p, "/opt/cordon/bin/python", "/usr/bin/python3");
	}
}

void root_kernel_files(struct pack *p, const struct cordon_spec *s)
{
	unsigned int cpus = n_cpus(s);

	root_dir(p, "/dev");
	if (s->tty) {
		root_dir(p, "/dev/pts");
		link_to(p, "/dev/ptmx", "pts/ptmx");
	}
	link_to(p, "/dev/fd", "/proc/self/fd");
	link_to(p, "/dev/stdin", "/proc/self/fd/0");
	link_to(p, "/dev/stdout", "/proc/self/fd/1");
	link_to(p, "/dev/stderr", "/proc/self/fd/2");
	cpuinfo(p, cpus);
	meminfo(p, memory_seen(s));
	stat_file(p, cpus);
	root_file(p, "/proc/uptime", "0.00 0.00\n");
	root_file(p, "/proc/loadavg", "0.00 0.00 0.00 1/1 1\n");
	cpu_files(p, cpus);
}

/* What follows goes there, and what was laid before is mounted there. */
static void own_layer(struct pack *p)
{
	root_dir(p, WIRE_OWN_LAYER);
	p->below = WIRE_OWN_LAYER;
	root_dir(p, "/dev");
	root_dir(p, "/proc");
	root_dir(p, "/sys");
}

void root_host_files(struct pack *p, const struct cordon_spec *s,
		     const struct programs *only)
{
	root_kernel_files(p, s);
	if (s->writable_root)
		own_layer(p);
	root_dir(p, "/etc");
	root_dir(p, "/run");
	root_dir(p, "/root");
	root_dir(p, "/home");
	links(p, only);
	etc(p, s);
	if (root_has_trust(s))
		root_trust_host(p, s);
	p->below = NULL;
}
