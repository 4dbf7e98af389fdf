/* SPDX-License-Identifier: Apache-2.0 */

/* What a process is and which files it can reach; see probe.h. */

#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

const char *probe_word(long r)
{
	static char number[24];
	const char *name;

	if (r >= 0)
		return "OK";
	name = strerrorname_np(errno);
	if (name)
		return name;
	(void)snprintf(number, sizeof(number), "E%d", errno);
	return number;
}

void probe_say(const char *what, long r)
{
	printf("%s %s\n", what, probe_word(r));
}

/* Copies the lines of a status file that start with one of the names. */
static int status_of(const char *path)
{
	static const char *const names[] = {
		"Uid:",    "Gid:",    "Groups:", "CapInh:", "CapPrm:",
		"CapEff:", "CapBnd:", "CapAmb:", "Seccomp", "NoNewPrivs:",
	};
	FILE *f = fopen(path, "re");
	char line[512];

	if (!f)
		return 1;
	while (fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		for (size_t i = 0; colon && i < ARRAY_SIZE(names); i++) {
			char *value;

			if (strncmp(line, names[i], strlen(names[i])) != 0)
				continue;
			*colon = '\0';
			value = colon + 1 + strspn(colon + 1, " \t");
			value[strcspn(value, " \n")] = '\0';
			for (char *p = value; *p; p++)
				if (*p == '\t')
					*p = ',';
			printf("%s %s\n", line, *value ? value : "none");
			break;
		}
	}
	(void)fclose(f);
	return 0;
}

static int do_status(int argc, char **argv)
{
	return status_of(argc > 0 ? argv[0] : "/proc/self/status");
}

static int cat_as(const char *what, const char *path)
{
	char text[512];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	bool space = false;

	if (fd >= 0)
		(void)close(fd);
	if (n < 0) {
		probe_say(what, -1);
		return 1;
	}
	text[n] = '\0';
	/* one line, words one blank apart */
	printf("%s", what);
	for (char *p = text; *p; p++) {
		bool blank = strchr(" \t\n", *p) != NULL;

		if (!blank)
			printf("%s%c", space || p == text ? " " : "", *p);
		space = blank;
	}
	printf("\n");
	return 0;
}

static int do_ids(int argc, char **argv)
{
	gid_t groups[64];
	int n = getgroups(64, groups);

	(void)argc;
	(void)argv;
	printf("uid %u %u\n", getuid(), geteuid());
	printf("gid %u %u\n", getgid(), getegid());
	printf("groups");
	for (int i = 0; i < n; i++)
		printf(" %u", groups[i]);
	printf("%s\n", n > 0 ? "" : " none");
	(void)cat_as("uid_map", "/proc/self/uid_map");
	(void)cat_as("gid_map", "/proc/self/gid_map");
	(void)cat_as("setgroups", "/proc/self/setgroups");
	return 0;
}

static int do_ns(int argc, char **argv)
{
	static const char *const names[] = { "cgroup", "ipc",  "mnt",  "net",
					     "pid",    "time", "user", "uts" };

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[64];
		char to[64];
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s",
			       names[i]);
		n = readlink(path, to, sizeof(to) - 1);
		if (n < 0) {
			probe_say(names[i], -1);
			continue;
		}
		to[n] = '\0';
		printf("%s %s\n", names[i], to);
	}
	return 0;
}

static int do_procs(int argc, char **argv)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] >= '0' && e->d_name[0] <= '9';
	if (d)
		(void)closedir(d);
	printf("count %d\n", n);
	printf("self %d\n", (int)getpid());
	for (int i = 0; i < argc; i++) {
		probe_say(argv[i], kill(atoi(argv[i]), 0));
	}
	return 0;
}

static const char *kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFCHR:
		return "device";
	case S_IFIFO:
		return "pipe";
	case S_IFSOCK:
		return "socket";
	case S_IFLNK:
		return "link";
	default:
		return "other";
	}
}

static int do_fds(int argc, char **argv)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	(void)argc;
	(void)argv;
	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name);
		struct stat st;

		if (e->d_name[0] == '.' || fd == dirfd(d) || fstat(fd, &st) < 0)
			continue;
		printf("fd%d %s\n", fd, kind_of(st.st_mode));
	}
	if (d)
		(void)closedir(d);
	return 0;
}

/* Standard streams, opened once more by name. */
static int do_reopen(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (int fd = 0; fd < 3; fd++) {
		char path[64];
		struct stat st;
		int again;

		if (fstat(fd, &st) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		again = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		printf("fd%d %s %s\n", fd, kind_of(st.st_mode),
		       probe_word(again));
	}
	return 0;
}

static int do_env(int argc, char **argv)
{
	extern char **environ;

	(void)argc;
	(void)argv;
	for (char **e = environ; *e; e++) {
		size_t len = strcspn(*e, "=");

		printf("%.*s %s\n", (int)len, *e, *e + len + 1);
	}
	return 0;
}

/*
 * One line a mount: where, flags without access times, kind of file system,
 * and for memory file systems which part of it.
 */
static int do_mounts(int argc, char **argv)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];

	(void)argc;
	(void)argv;
	while (f && fgets(line, sizeof(line), f)) {
		char root[1024];
		char at[1024];
		char flags[256];
		char type[64];
		char *dash = strstr(line, " - ");
		char *save;

		if (!dash ||
		    sscanf(line, "%*d %*d %*s %1023s %1023s %255s", root, at,
			   flags) != 3 ||
		    sscanf(dash, " - %63s", type) != 1)
			continue;
		printf("%s", at);
		for (char *p = strtok_r(flags, ",", &save); p;
		     p = strtok_r(NULL, ",", &save))
			if (!strstr(p, "atime"))
				printf(" %s", p);
		printf(" %s %s\n", type, root);
	}
	if (f)
		(void)fclose(f);
	return 0;
}

static int do_limits(int argc, char **argv)
{
	static const struct {
		const char *name;
		int what;
	} all[] = {
		{ "core", RLIMIT_CORE },
		{ "fsize", RLIMIT_FSIZE },
		{ "memlock", RLIMIT_MEMLOCK },
		{ "msgqueue", RLIMIT_MSGQUEUE },
		{ "nice", RLIMIT_NICE },
		{ "nofile", RLIMIT_NOFILE },
		{ "rtprio", RLIMIT_RTPRIO },
		{ "stack", RLIMIT_STACK },
		{ "sigpending", RLIMIT_SIGPENDING },
	};

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct rlimit l;

		if (getrlimit(all[i].what, &l) == 0)
			printf("%s %llu %llu\n", all[i].name,
			       (unsigned long long)l.rlim_cur,
			       (unsigned long long)l.rlim_max);
	}
	return 0;
}

static int each_open(int argc, char **argv, int flags)
{
	for (int i = 0; i < argc; i++) {
		int fd = open(argv[i], flags | O_NOCTTY | O_CLOEXEC, 0600);

		probe_say(argv[i], fd);
		if (fd >= 0)
			(void)close(fd);
	}
	return 0;
}

static int do_open_read(int argc, char **argv)
{
	return each_open(argc, argv, O_RDONLY | O_NONBLOCK);
}

static int do_open_write(int argc, char **argv)
{
	return each_open(argc, argv, O_WRONLY | O_NONBLOCK);
}

static int do_create(int argc, char **argv)
{
	return each_open(argc, argv, O_WRONLY | O_CREAT | O_NONBLOCK);
}

/* "absent", "empty", "bytes" or an errno; a directory by its entries. */
static const char *content_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char buf[4096];
	long n;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? "absent"
							   : probe_word(-1);
	n = read(fd, buf, 64);
	if (n < 0 && errno == EISDIR) {
		n = syscall(SYS_getdents64, fd, buf, sizeof(buf));
		/* "." and ".." of 24 bytes each are always there */
		n = n > 48 ? n : 0;
	}
	(void)close(fd);
	if (n < 0)
		return probe_word(-1);
	return n > 0 ? "bytes" : "empty";
}

static int do_content(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		printf("%s %s\n", argv[i], content_of(argv[i]));
	return 0;
}

/* The content of /proc/NAME for all names. */
static int do_proc_top(int argc, char **argv)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	(void)argc;
	(void)argv;
	while (d && (e = readdir(d))) {
		char path[300];

		if (e->d_name[0] == '.' ||
		    (e->d_name[0] >= '0' && e->d_name[0] <= '9'))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s", e->d_name);
		printf("%s %s\n", e->d_name, content_of(path));
	}
	if (d)
		(void)closedir(d);
	return 0;
}

static int do_ls(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		DIR *d = opendir(argv[i]);
		struct dirent *e;

		while (d && (e = readdir(d))) {
			struct stat st;

			if (strcmp(e->d_name, ".") == 0 ||
			    strcmp(e->d_name, "..") == 0 ||
			    fstatat(dirfd(d), e->d_name, &st,
				    AT_SYMLINK_NOFOLLOW) < 0)
				continue;
			printf("%s %s %u:%u\n", e->d_name, kind_of(st.st_mode),
			       major(st.st_rdev), minor(st.st_rdev));
		}
		if (d)
			(void)closedir(d);
	}
	return 0;
}

static int do_cat(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		(void)cat_as(argv[i], argv[i]);
	return 0;
}

static int do_where(int argc, char **argv)
{
	struct statvfs v;
	struct utsname u;
	char cwd[4096];
	ssize_t n = readlink("/proc/self/cwd", cwd, sizeof(cwd) - 1);

	(void)argc;
	(void)argv;
	printf("cwd %.*s\n", (int)(n < 0 ? 0 : n), cwd);
	if (statvfs("/", &v) == 0)
		printf("root %s\n", v.f_flag & ST_RDONLY ? "ro" : "rw");
	if (uname(&u) == 0)
		printf("host %s\ndomain %s\n", u.nodename,
		       u.domainname[0] ? u.domainname : "none");
	(void)cat_as("cgroup", "/proc/self/cgroup");
	return 0;
}

static int do_readlink(int argc, char **argv)
{
	char to[4096];

	for (int i = 0; i < argc; i++)
		probe_say(argv[i], readlink(argv[i], to, sizeof(to)));
	return 0;
}

static pthread_barrier_t barrier;

static void *thread_main(void *arg)
{
	(void)pthread_barrier_wait(&barrier);
	(void)pthread_barrier_wait(&barrier);
	return arg;
}

static void snapshot(void)
{
	(void)do_status(0, NULL);
	(void)do_ids(0, NULL);
	(void)do_ns(0, NULL);
	(void)do_where(0, NULL);
	(void)do_mounts(0, NULL);
	(void)do_fds(0, NULL);
	(void)do_env(0, NULL);
	(void)do_limits(0, NULL);
}

/* Everything, twice: alone ("--- alone"), then beside four threads. */
static int do_snapshot(int argc, char **argv)
{
	pthread_t t[4];
	DIR *d;
	struct dirent *e;

	(void)argc;
	(void)argv;
	printf("--- alone\n");
	snapshot();
	(void)pthread_barrier_init(&barrier, NULL, 5);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		if (pthread_create(&t[i], NULL, thread_main, NULL) != 0)
			return 1;
	(void)pthread_barrier_wait(&barrier);
	printf("--- threads\n");
	snapshot();
	d = opendir("/proc/self/task");
	while (d && (e = readdir(d))) {
		char path[300];

		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			       e->d_name);
		printf("--- task\n");
		(void)status_of(path);
	}
	(void)pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		(void)pthread_join(t[i], NULL);
	if (d)
		(void)closedir(d);
	return 0;
}

static int do_euid(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("euid %u\n", geteuid());
	return 0;
}

/* Becomes another program, whose output is then seen. */
static int do_exec(int argc, char **argv)
{
	if (argc < 1)
		return 2;
	(void)execv(argv[0], argv);
	probe_say(argv[0], -1);
	return 1;
}

/* Runs this program from a memfd, and maps memory to write and execute. */
static int do_memfd(int argc, char **argv)
{
	static char buf[65536];
	const char *const args[] = { "probe", "status", NULL };
	const char *const none[] = { NULL };
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = memfd_create("x", MFD_CLOEXEC);
	ssize_t n;
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argc;
	(void)argv;
	probe_say("wx", p == MAP_FAILED ? -1 : 0);
	while (from >= 0 && to >= 0 && (n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			return 1;
	(void)fflush(stdout);
	(void)syscall(SYS_execveat, to, "", args, none, AT_EMPTY_PATH);
	probe_say("memfd", -1);
	return 1;
}

static int do_abort(int argc, char **argv)
{
	struct rlimit l = { RLIM_INFINITY, RLIM_INFINITY };
	int status = 0;
	pid_t pid;

	(void)argc;
	(void)argv;
	(void)getrlimit(RLIMIT_CORE, &l);
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_CORE, &l);
	pid = fork();
	if (pid == 0)
		abort();
	(void)waitpid(pid, &status, 0);
	printf("signal %d\n", WTERMSIG(status));
	printf("dumped %s\n", WCOREDUMP(status) ? "yes" : "no");
	return 0;
}

/* Objects that two boxes might share. */
#define KEY 0x636f7264

static int do_ipc(int argc, char **argv)
{
	bool make = argc > 0 && strcmp(argv[0], "make") == 0;
	int create = make ? IPC_CREAT | 0666 : 0;
	const struct {
		long maxmsg[8];
	} attr = { { 0, 4, 16, 0 } };
	int fd;

	probe_say("shm", shmget(KEY, 4096, create));
	probe_say("sem", semget(KEY, 1, create));
	probe_say("msg", msgget(KEY, create));
	probe_say("mq", syscall(SYS_mq_open, "cordon-test",
				make ? O_CREAT | O_RDWR : O_RDWR, 0666,
				make ? &attr : NULL));
	fd = open("/dev/shm/cordon-test", make ? O_CREAT | O_RDWR : O_RDWR,
		  0666);
	probe_say("/dev/shm", fd);
	fd = open("/tmp/cordon-test", make ? O_CREAT | O_RDWR : O_RDWR, 0666);
	probe_say("/tmp", fd);
	printf("ready now\n");
	(void)fflush(stdout);
	if (argc > 1) /* see it in the same box */
		return do_ipc(1, argv + 1);
	if (make)
		(void)sleep(20);
	return 0;
}

/* Locks on a file that others see too. */
static int do_locks(int argc, char **argv)
{
	const char *path = argc > 0 ? argv[0] : "/probe";
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int dir = open(argc > 1 ? argv[1] : "/usr", O_RDONLY | O_CLOEXEC);

	(void)signal(SIGIO, SIG_IGN);
	probe_say("open", fd);
	probe_say("setlk", fcntl(fd, F_SETLK, &l));
	probe_say("lease", fcntl(fd, F_SETLEASE, F_RDLCK));
	probe_say("notify", fcntl(dir, F_NOTIFY, DN_ACCESS));
	probe_say("flock", flock(fd, LOCK_EX | LOCK_NB));
	if (argc > 2) {
		printf("ready now\n");
		(void)fflush(stdout);
		(void)sleep(20);
	}
	return 0;
}

/* Everything a host that walks this directory should not stumble over. */
static int do_litter(int argc, char **argv)
{
	struct stat st;

	if (argc < 1 || chdir(argv[0]) < 0)
		return 1;
	probe_say("link", symlink("/etc/passwd", "link"));
	probe_say("dirlink", symlink("/etc", "dirlink"));
	probe_say("upward", symlink("../../../../../etc/passwd", "upward"));
	probe_say("fifo", mknod("fifo", S_IFIFO | 0666, 0));
	probe_say("socket", mknod("socket", S_IFSOCK | 0666, 0));
	probe_say("chr", mknod("chr", S_IFCHR | 0666, makedev(1, 3)));
	probe_say("blk", mknod("blk", S_IFBLK | 0666, makedev(7, 0)));
	probe_say("file", open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	probe_say("plain",
		  open("plain.txt", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	probe_say("chr-is-there", lstat("chr", &st));
	return 0;
}

static const struct probe table[] = {
	{ "status", do_status },
	{ "ids", do_ids },
	{ "ns", do_ns },
	{ "procs", do_procs },
	{ "fds", do_fds },
	{ "reopen", do_reopen },
	{ "env", do_env },
	{ "mounts", do_mounts },
	{ "limits", do_limits },
	{ "open-read", do_open_read },
	{ "open-write", do_open_write },
	{ "create", do_create },
	{ "content", do_content },
	{ "proc-top", do_proc_top },
	{ "ls", do_ls },
	{ "cat", do_cat },
	{ "where", do_where },
	{ "readlink", do_readlink },
	{ "snapshot", do_snapshot },
	{ "euid", do_euid },
	{ "exec", do_exec },
	{ "memfd", do_memfd },
	{ "abort", do_abort },
	{ "ipc", do_ipc },
	{ "locks", do_locks },
	{ "litter", do_litter },
	{ NULL, NULL },
};

static int run_from(const struct probe *p, int argc, char **argv)
{
	for (; p->name; p++)
		if (strcmp(p->name, argv[1]) == 0)
			return p->run(argc - 2, argv + 2);
	return -1;
}

int main(int argc, char **argv)
{
	int r = -1;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		r = run_from(table, argc, argv);
	if (argc > 1 && r < 0)
		r = run_from(probe_calls, argc, argv);
	if (r < 0) {
		(void)fprintf(stderr, "probe: unknown command\n");
		return 2;
	}
	return r;
}
