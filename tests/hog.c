/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hog: takes as much as it can get, from inside a box.
 *
 *	hog NAME [ARG...]
 *
 * Each name is one attack on a resource (the table is at the end). It says on
 * standard output what it got and what stopped it, as words and numbers that
 * the tests read, and ends with 0 when it was not stopped, with 1 when it
 * was. It is static and needs nothing in the box. Every loop has an end of
 * its own except those that a deadline is meant to end.
 */

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hog.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIB           (1UL << 20)

static long number(char **argv, int i, long otherwise)
{
	for (int k = 0; k <= i; k++)
		if (!argv[k])
			return otherwise;
	return strtol(argv[i], NULL, 0);
}

static const char *word(char **argv, int i, const char *otherwise)
{
	for (int k = 0; k <= i; k++)
		if (!argv[k])
			return otherwise;
	return argv[i];
}

/* What was got and what stopped it; the exit status of most attacks. */
static int report(const char *what, long n, int error)
{
	printf("%s %ld %s\n", what, n,
	       error ? strerrorname_np(error) : "unstopped");
	return error ? 1 : 0;
}

static void nap_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

static void forever(void) __attribute__((noreturn));
static void forever(void)
{
	for (;;)
		(void)pause();
}

static long clock_ms(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int write_all(int fd, const void *data, size_t len)
{
	for (const char *p = data; len > 0;) {
		ssize_t n = write(fd, p, len);

		if (n < 0)
			return errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* processes */

static int hog_fork(char **argv)
{
	long max = number(argv, 0, 100000);
	long n = 0;
	int error = 0;

	while (n < max) {
		pid_t pid = fork();

		if (pid == 0)
			forever();
		if (pid < 0) {
			error = errno;
			break;
		}
		n++;
	}
	return report("forked", n, error);
}

/* Every process of it forks for ever; a deadline ends it. */
static int hog_bomb(char **argv)
{
	(void)argv;
	while (fork() >= -1)
		;
	return 0;
}

static void *thread_waits(void *arg)
{
	forever();
	return arg;
}

static int hog_threads(char **argv)
{
	long max = number(argv, 0, 100000);
	pthread_attr_t attr;
	long n = 0;
	int error = 0;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 65536);
	while (n < max && !error) {
		pthread_t t;

		error = pthread_create(&t, &attr, thread_waits, NULL);
		n += !error;
	}
	return report("threads", n, error);
}

/* Children that end at once and that nobody waits for. */
static int hog_zombies(char **argv)
{
	long max = number(argv, 0, 100000);
	long n = 0;
	int error = 0;

	while (n < max) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0) {
			error = errno;
			break;
		}
		n++;
	}
	return report("zombies", n, error);
}

/* The same as orphans, which are init's to reap. */
static int hog_orphans(char **argv)
{
	long max = number(argv, 0, 10000);
	long full = 0;
	long n = 0;

	while (n < max) {
		pid_t pid = fork();

		if (pid == 0) {
			for (int i = 0; i < 8; i++)
				if (fork() == 0)
					_exit(0);
			_exit(0);
		}
		if (pid < 0) {
			/* Not reaped yet; it must become free again. */
			if (++full > 10000)
				return report("orphans", n, EAGAIN);
			nap_ms(1);
			continue;
		}
		(void)waitpid(pid, NULL, 0);
		n += 8;
	}
	return report("orphans", n, 0);
}

static int hog_daemon(char **argv)
{
	pid_t pid = fork();

	(void)argv;
	if (pid == 0) {
		(void)setsid();
		if (fork() == 0)
			forever();
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	return report("daemon", 1, 0);
}

/* Children of their own sessions that no catchable signal ends. */
static int hog_stubborn(char **argv)
{
	long n = number(argv, 0, 10);
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	for (int sig = 1; sig < 65; sig++)
		(void)signal(sig, SIG_IGN);
	for (long i = 0; i < n; i++)
		if (fork() == 0) {
			(void)setsid();
			forever();
		}
	(void)report("stubborn", n, 0);
	(void)fflush(stdout);
	forever();
}

static int hog_closed(char **argv)
{
	(void)argv;
	(void)close(0);
	(void)close(1);
	(void)close(2);
	forever();
}

static int hog_stop(char **argv)
{
	(void)argv;
	for (int i = 0; i < 8; i++)
		if (fork() == 0)
			forever();
	(void)report("stopping", 8, 0);
	(void)fflush(stdout);
	(void)kill(-1, SIGSTOP);
	(void)raise(SIGSTOP);
	forever();
}

static int hog_ptrace(char **argv)
{
	pid_t sibling = fork();
	long got = 0;

	(void)argv;
	if (sibling == 0)
		forever();
	got += ptrace(PTRACE_ATTACH, sibling, NULL, NULL) == 0;
	got += ptrace(PTRACE_SEIZE, sibling, NULL, NULL) == 0;
	got += ptrace(PTRACE_ATTACH, 1, NULL, NULL) == 0;
	got += ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
	return report("traced", got, got ? 0 : errno);
}

/* Games with pid 1: signals, its memory, its files. */
static int hog_init(char **argv)
{
	long opened = 0;

	(void)argv;
	for (int sig = 1; sig < 65; sig++)
		(void)kill(1, sig);
	opened += open("/proc/1/mem", O_RDWR | O_CLOEXEC) >= 0;
	opened += open("/proc/1/exe", O_RDONLY | O_CLOEXEC) >= 0;
	opened += open("/proc/1/root/etc", O_RDONLY | O_CLOEXEC) >= 0;
	opened += open("/proc/1/fd/3", O_RDWR | O_CLOEXEC) >= 0;
	nap_ms(50);
	printf("init %s\n",
	       kill(1, 0) == 0 || errno == EPERM ? "alive" : "dead");
	return report("opened", opened, 0);
}

/* memory */

static int hog_touch(char **argv)
{
	size_t len = (size_t)number(argv, 0, 1) * MIB;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return report("touched", 0, errno);
	for (size_t i = 0; i < len; i += 4096)
		p[i] = 1;
	return report("touched", (long)(len / MIB), 0);
}

/* A child takes the memory; this process tells how the child ended. */
static int hog_touch_child(char **argv)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(hog_touch(argv));
	(void)waitpid(pid, &status, 0);
	(void)report("child", WIFSIGNALED(status) ? WTERMSIG(status) : 0, 0);
	return (int)number(argv, 1, 0);
}

/* Stays just below the limit and reads a mapped file over and over. */
static int hog_thrash(char **argv)
{
	size_t len = (size_t)number(argv, 0, 32) * MIB;
	int fd = open(word(argv, 1, "/proc/self/exe"), O_RDONLY | O_CLOEXEC);
	struct stat st = { 0 };
	unsigned long sum = 0;
	char *anon = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *file;

	if (fd < 0 || fstat(fd, &st) < 0 || anon == MAP_FAILED)
		return report("thrash", 0, errno);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return report("thrash", 0, errno);
	/*
	 * Page by page: what a slow disk is asked for ahead cannot be given
	 * back meanwhile, and the kernel would find no memory at all.
	 */
	(void)madvise(file, (size_t)st.st_size, MADV_RANDOM);
	memset(anon, 1, len);
	(void)report("thrash", (long)(len / MIB), 0);
	(void)fflush(stdout);
	for (;;) {
		for (off_t i = 0; i < st.st_size; i += 4096)
			sum += (unsigned char)file[i];
		*(volatile char *)anon = (char)sum;
	}
}

static int hog_stack(char **argv)
{
	volatile char room[4096];

	room[0] = argv ? 1 : 0;
	/* The compiler sees a condition that could end it. */
	return room[0] == 0 ? 0 : hog_stack(argv) + room[0];
}

static int hog_lock(char **argv)
{
	char *p = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argv;
	printf("small %s\n", mlock(p, 16384) == 0 ? "yes" : "no");
	printf("large %s\n", mlock(p, 8 * MIB) == 0 ? "yes" : "no");
	printf("all %s\n",
	       mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? "yes" : "no");
	p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	printf("huge %s\n", p == MAP_FAILED ? "no" : "yes");
	return 0;
}

/* files */

static int hog_fill(char **argv)
{
	static char block[65536];
	long max = number(argv, 1, 1 << 20);
	int fd = open(word(argv, 0, "/workspace/fill"),
		      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	long done = 0;
	int error = fd < 0 ? errno : 0;

	memset(block, 'x', sizeof(block));
	while (!error && done < max * 16) {
		error = write_all(fd, block, sizeof(block));
		done += !error;
	}
	return report("filled", done / 16, error);
}

/* Fills, says so, and waits for the deadline. */
static int hog_fill_wait(char **argv)
{
	(void)hog_fill(argv);
	(void)fflush(stdout);
	forever();
}

static int hog_files(char **argv)
{
	const char *dir = word(argv, 0, "/workspace");
	long max = number(argv, 1, 1000000);
	char tail[230] = "";
	long n = 0;
	int error = 0;

	if (argv[0] && argv[1] && argv[2])
		memset(tail, 'n', sizeof(tail) - 1);
	if (chdir(dir) < 0)
		return report("files", 0, errno);
	while (n < max) {
		char name[256];
		int fd;

		(void)snprintf(name, sizeof(name), "f%07ld%s", n, tail);
		fd = open(name, O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
		if (fd < 0) {
			error = errno;
			break;
		}
		(void)close(fd);
		n++;
	}
	return report("files", n, error);
}

static int hog_deep(char **argv)
{
	long max = number(argv, 1, 10000);
	long n = 0;
	int error = 0;

	if (chdir(word(argv, 0, "/workspace")) < 0)
		return report("deep", 0, errno);
	while (n < max && !error) {
		if (mkdir("d", 0700) < 0 || chdir("d") < 0)
			error = errno;
		else
			n++;
	}
	return report("deep", n, error);
}

static int hog_sparse(char **argv)
{
	int fd = open(word(argv, 0, "/workspace/out.bin"),
		      O_WRONLY | O_CLOEXEC | O_CREAT, 0600);
	off_t size = (off_t)number(argv, 1, 1L << 40);

	if (fd < 0 || ftruncate(fd, size) < 0)
		return report("sparse", 0, errno);
	return report("sparse", (long)(size >> 30), 0);
}

/* What makes a directory hard to remove. */
static int hog_nasty(char **argv)
{
	char name[200];
	int fd;

	(void)argv;
	if (chdir("/workspace") < 0)
		return report("nasty", 0, errno);
	memset(name, 'l', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 40; i++)
		if (mkdir(name, 0700) < 0 || chdir(name) < 0)
			return report("nasty", i, errno);
	if (chdir("/workspace") < 0 || mkdir("closed", 0700) < 0)
		return report("nasty", 1, errno);
	fd = open("closed/file", O_WRONLY | O_CLOEXEC | O_CREAT, 0000);
	if (fd < 0 || chmod("closed", 0000) < 0 || chmod(name, 0000) < 0)
		return report("nasty", 2, errno);
	(void)close(fd);
	/* Open and unlinked, with bytes in it. */
	fd = open("gone", O_RDWR | O_CLOEXEC | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4 * (off_t)MIB) < 0 || unlink("gone") < 0 ||
	    mkfifo("fifo", 0000) < 0 || symlink("/", "root") < 0)
		return report("nasty", 3, errno);
	if (fork() == 0) {
		(void)!chdir(name);
		forever();
	}
	return report("nasty", 4, 0);
}

static int hog_fsync(char **argv)
{
	long end = clock_ms(CLOCK_MONOTONIC) + number(argv, 1, 1000);
	int fd = open(word(argv, 0, "/workspace/sync"),
		      O_WRONLY | O_CLOEXEC | O_CREAT, 0600);
	long n = 0;

	while (fd >= 0 && clock_ms(CLOCK_MONOTONIC) < end) {
		if (pwrite(fd, "x", 1, 0) != 1 || fsync(fd) < 0)
			return report("fsync", n, errno);
		n++;
	}
	return report("fsync", n, fd < 0 ? errno : 0);
}

/* Reads a file up to so many MiB through the page cache. */
static int hog_read(char **argv)
{
	static char block[1 << 20];
	int fd = open(word(argv, 0, "/data"), O_RDONLY | O_CLOEXEC);
	long max = number(argv, 1, 1024);
	long n = 0;

	while (fd >= 0 && n < max) {
		ssize_t r = read(fd, block, sizeof(block));

		if (r < 0)
			return report("read", n, errno);
		if (r == 0)
			break;
		n++;
	}
	return report("read", n, fd < 0 ? errno : 0);
}

/* The file system of each place, by its magic number. */
static int hog_fstype(char **argv)
{
	for (; *argv; argv++) {
		struct statfs fs = { 0 };

		(void)statfs(*argv, &fs);
		printf("%s %lx\n", *argv, (unsigned long)fs.f_type);
	}
	return 0;
}

/* output */

/* So many bytes to one stream, or with no number until it is ended. */
static int hog_flood(char **argv)
{
	static char block[65536];
	int fd = (int)number(argv, 0, 1);
	long left = number(argv, 1, -1);
	const char *text = word(argv, 2, "line of text\n");
	size_t len = strlen(text);

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = text[i % len];
	while (left != 0) {
		size_t n = sizeof(block);

		if (left > 0 && (size_t)left < n)
			n = (size_t)left;
		if (write_all(fd, block, n) != 0)
			return 1;
		if (left > 0)
			left -= (long)n;
	}
	return 0;
}

/* Both streams in turns, in pieces of an odd size. */
static int hog_turns(char **argv)
{
	static char block[40001];
	long n = number(argv, 0, 100);

	memset(block, 'o', sizeof(block));
	while (n-- > 0)
		if (write_all(2, block, sizeof(block)) ||
		    write_all(1, block, sizeof(block)))
			return 1;
	return 0;
}

/* noise SEED OUT ERR: exactly those bytes of hog.h, interleaved */
static int hog_noise(char **argv)
{
	static unsigned char block[70000];
	uint64_t seed = (uint64_t)number(argv, 0, 0);
	size_t left[2] = { (size_t)number(argv, 1, 0),
			   (size_t)number(argv, 2, 0) };
	struct noise noise[2];
	struct noise sizes;

	noise_init(&sizes, seed, 3);
	noise_init(&noise[0], seed, 1);
	noise_init(&noise[1], seed, 2);
	while (left[0] > 0 || left[1] > 0) {
		for (int i = 0; i < 2; i++) {
			unsigned char raw[3];
			size_t n;

			noise_fill(&sizes, raw, sizeof(raw));
			n = 1 + (raw[0] | raw[1] << 8 | (raw[2] & 1) << 16) %
					sizeof(block);
			n = n < left[i] ? n : left[i];
			noise_fill(&noise[i], block, n);
			if (write_all(i + 1, block, n) != 0)
				return 1;
			left[i] -= n;
		}
	}
	return 0;
}

/* Standard input: how many bytes there were, and a sum of them. */
static int hog_input(char **argv)
{
	static unsigned char block[65536];
	unsigned long sum = 0;
	long total = 0;
	ssize_t n;

	(void)argv;
	while ((n = read(0, block, sizeof(block))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			sum = sum * 31 + block[i];
		total += n;
	}
	printf("input %ld %lu\n", total, sum);
	return 0;
}

/* descriptors and other things of the kernel */

static int open_pipe(void)
{
	int p[2];

	return pipe2(p, O_CLOEXEC);
}

static int open_pair(void)
{
	int p[2];

	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p);
}

static int open_file(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int open_event(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

static int open_memfd(void)
{
	return memfd_create("hog", MFD_CLOEXEC);
}

static int open_epoll(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

static int open_inotify(void)
{
	return inotify_init1(IN_CLOEXEC);
}

static int open_timer_fd(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}

static int make_timer(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL,
			       .sigev_signo = SIGUSR1 };
	timer_t t;

	return timer_create(CLOCK_MONOTONIC, &ev, &t);
}

static int queue_signal(void)
{
	const union sigval v = { .sival_int = 1 };

	return sigqueue(getpid(), SIGRTMIN + 1, v);
}

static int send_bytes(void)
{
	static int pair[2] = { -1, -1 };
	static char block[32768];

	if ((pair[0] < 0 ||
	     send(pair[0], block, sizeof(block), MSG_DONTWAIT) < 0) &&
	    (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0 ||
	     send(pair[0], block, sizeof(block), MSG_DONTWAIT) < 0))
		return -1;
	return 0;
}

static const struct {
	const char *name;
	int (*get)(void);
} kinds[] = {
	{ "pipe", open_pipe },       { "socketpair", open_pair },
	{ "file", open_file },       { "eventfd", open_event },
	{ "memfd", open_memfd },     { "epoll", open_epoll },
	{ "inotify", open_inotify }, { "timerfd", open_timer_fd },
	{ "timer", make_timer },     { "signal", queue_signal },
	{ "skb", send_bytes },
};

/* take KIND [MAX]: as many as there are of one kind */
static int take(const char *name, long max)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		long n = 0;
		int error = 0;

		if (strcmp(kinds[i].name, name) != 0)
			continue;
		while (n < max && !error) {
			if (kinds[i].get() < 0)
				error = errno;
			else
				n++;
		}
		return report(name, n, error);
	}
	return report(name, -1, EINVAL);
}

static void hold_signals(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
}

static int hog_take(char **argv)
{
	hold_signals();
	return take(word(argv, 0, "file"), number(argv, 1, 100000));
}

/* The same in several processes, which hold it until the deadline. */
static int hog_hold(char **argv)
{
	long n = number(argv, 1, 1);

	hold_signals();
	for (long i = 1; i < n; i++)
		if (fork() == 0) {
			(void)take(word(argv, 0, "file"), 100000);
			(void)fflush(stdout);
			forever();
		}
	(void)take(word(argv, 0, "file"), 100000);
	(void)fflush(stdout);
	forever();
}

/* pipes MIB: so much kernel memory in pipes of 1 MiB */
static int hog_pipes(char **argv)
{
	static char block[65536];
	long max = number(argv, 0, 64) * 16;
	long n = 0;

	while (n < max) {
		int p[2];

		if (pipe2(p, O_NONBLOCK | O_CLOEXEC) < 0)
			return report("pipes", n / 16, errno);
		(void)fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
		while (n < max && write(p[1], block, sizeof(block)) > 0)
			n++;
	}
	return report("pipes", n / 16, 0);
}

/* ipc KEY make|find: System V objects and a POSIX queue */
static int hog_ipc(char **argv)
{
	key_t key = (key_t)number(argv, 0, 0x4347);
	int flags = strcmp(word(argv, 1, "make"), "make") == 0
			    ? IPC_CREAT | 0666
			    : 0;
	char name[32];
	long n = 0;

	(void)snprintf(name, sizeof(name), "/cordon-%x", (unsigned int)key);
	n += shmget(key, 4096, flags) >= 0;
	n += semget(key, 1, flags) >= 0;
	n += msgget(key, flags) >= 0;
	n += mq_open(name, flags ? O_RDWR | O_CREAT : O_RDWR, 0666, NULL) >= 0;
	return report("ipc", n, 0);
}

/* rights */

static int hog_rlimits(char **argv)
{
	long raised = 0;
	long lowered = 0;

	(void)argv;
	for (int what = 0; what < RLIM_NLIMITS; what++) {
		struct rlimit r;
		struct rlimit more;

		if (getrlimit(what, &r) < 0 || r.rlim_max == RLIM_INFINITY)
			continue;
		more = r;
		more.rlim_max++;
		raised += setrlimit(what, &more) == 0;
		if (r.rlim_cur > 0 && r.rlim_max > 0) {
			r.rlim_cur--;
			lowered += setrlimit(what, &r) == 0;
		}
	}
	(void)report("lowered", lowered, 0);
	return report("raised", raised, 0);
}

static int hog_userns(char **argv)
{
	long max = number(argv, 0, 1000);
	long got = 0;

	for (long i = 0; i < max; i++) {
		pid_t pid;

		got += unshare(CLONE_NEWUSER) == 0;
		pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0,
				     0, 0);
		if (pid == 0)
			_exit(0);
		got += pid > 0;
	}
	return report("userns", got, got ? 0 : errno);
}

static int hog_mounts(char **argv)
{
	long max = number(argv, 0, 100000);
	long got = 0;

	(void)mkdir("/tmp/m", 0700);
	for (long i = 0; i < max; i++) {
		got += mount("none", "/tmp/m", "tmpfs", 0, NULL) == 0;
		got += mount("/tmp", "/tmp/m", NULL, MS_BIND, NULL) == 0;
		got += syscall(SYS_fsopen, "tmpfs", 0) >= 0;
		got += syscall(SYS_open_tree, AT_FDCWD, "/tmp", 1) >= 0;
	}
	return report("mounts", got, got ? 0 : errno);
}

static int hog_priority(char **argv)
{
	const struct sched_param rt = { .sched_priority = 1 };
	const struct sched_param none = { 0 };
	const int realtime = 1 << 13; /* ioprio: class 1, level 0 */
	long got = 0;
	bool lower;

	(void)argv;
	got += setpriority(PRIO_PROCESS, 0, -20) == 0;
	got += setpriority(PRIO_PROCESS, 0, -1) == 0;
	got += sched_setscheduler(0, SCHED_FIFO, &rt) == 0;
	got += sched_setscheduler(0, SCHED_RR, &rt) == 0;
	got += syscall(SYS_ioprio_set, 1, 0, realtime) == 0;
	lower = setpriority(PRIO_PROCESS, 0, 19) == 0 &&
		sched_setscheduler(0, SCHED_BATCH, &none) == 0;
	(void)report("lower", lower, 0);
	return report("higher", got, 0);
}

/* aborts N: how many ended by SIGABRT, and how many dumped core */
static int hog_aborts(char **argv)
{
	long max = number(argv, 0, 1000);
	long aborted = 0;
	long cores = 0;

	for (long i = 0; i < max; i++) {
		pid_t pid = fork();
		int status = 0;

		if (pid == 0)
			abort();
		(void)waitpid(pid, &status, 0);
		aborted += WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
		cores += WIFSIGNALED(status) && WCOREDUMP(status);
	}
	(void)report("aborted", aborted, 0);
	return report("cores", cores, 0);
}

/* Whether a victim can make itself safe from the kernel's OOM killer. */
static int hog_oom_adjust(char **argv)
{
	int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	char now[16] = "";

	(void)argv;
	if (fd < 0 || read(fd, now, sizeof(now) - 1) < 1)
		return report("adjust", -1, errno);
	now[strcspn(now, "\n")] = '\0';
	printf("score %s\n", now);
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	return report("adjust", 0,
		      fd >= 0 && write(fd, "-1000", 5) == 5 ? 0 : errno);
}

/* time */

static void *thread_spins(void *arg)
{
	for (;;)
		*(volatile int *)arg += 1;
	return NULL;
}

static int hog_spin(char **argv)
{
	static int counters[4096];
	long n = number(argv, 0, 1);

	for (long i = 1; i < n && i < 4096; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, thread_spins, &counters[i]) != 0)
			return report("spin", i, EAGAIN);
	}
	(void)report("spin", n, 0);
	(void)fflush(stdout);
	(void)thread_spins(&counters[0]);
	return 0;
}

/* So many milliseconds of CPU time. */
static int hog_cpu(char **argv)
{
	long ms = number(argv, 0, 100);

	while (clock_ms(CLOCK_PROCESS_CPUTIME_ID) < ms)
		;
	return 0;
}

static int hog_cpu_child(char **argv)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(hog_cpu(argv));
	(void)waitpid(pid, NULL, 0);
	return 0;
}

static int hog_sleep(char **argv)
{
	nap_ms(number(argv, 0, 100));
	return 0;
}

/* Signals to init, refused calls and dying children, as fast as it can. */
static int hog_noise_maker(char **argv)
{
	(void)argv;
	for (;;) {
		for (int i = 0; i < 1000; i++) {
			(void)kill(1, SIGCHLD);
			(void)kill(1, SIGRTMIN + 1);
			(void)syscall(SYS_bpf, 0, 0, 0);
			(void)syscall(SYS_ptrace, 0, 0, 0, 0);
		}
		for (int i = 0; i < 8; i++)
			if (fork() == 0) {
				if (fork() == 0)
					_exit(0);
				_exit(0);
			}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

/* count of arguments and variables, and their bytes */
static int hog_args(char **argv)
{
	extern char **environ;
	long n_env = 0;
	size_t bytes = 0;

	for (char **e = environ; *e; e++)
		n_env++;
	for (; *argv; argv++)
		bytes += strlen(*argv) + 1;
	printf("env %ld args %zu\n", n_env, bytes);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(char **argv);
} attacks[] = {
	{ "aborts", hog_aborts },
	{ "args", hog_args },
	{ "bomb", hog_bomb },
	{ "closed", hog_closed },
	{ "cpu", hog_cpu },
	{ "cpu-child", hog_cpu_child },
	{ "daemon", hog_daemon },
	{ "deep", hog_deep },
	{ "files", hog_files },
	{ "fill", hog_fill },
	{ "fill-wait", hog_fill_wait },
	{ "flood", hog_flood },
	{ "fork", hog_fork },
	{ "fstype", hog_fstype },
	{ "fsync", hog_fsync },
	{ "hold", hog_hold },
	{ "init", hog_init },
	{ "input", hog_input },
	{ "ipc", hog_ipc },
	{ "lock", hog_lock },
	{ "mounts", hog_mounts },
	{ "nasty", hog_nasty },
	{ "noise", hog_noise },
	{ "noise-maker", hog_noise_maker },
	{ "oom-adjust", hog_oom_adjust },
	{ "orphans", hog_orphans },
	{ "pipes", hog_pipes },
	{ "priority", hog_priority },
	{ "ptrace", hog_ptrace },
	{ "read", hog_read },
	{ "rlimits", hog_rlimits },
	{ "sleep", hog_sleep },
	{ "sparse", hog_sparse },
	{ "spin", hog_spin },
	{ "stack", hog_stack },
	{ "stop", hog_stop },
	{ "stubborn", hog_stubborn },
	{ "take", hog_take },
	{ "thrash", hog_thrash },
	{ "threads", hog_threads },
	{ "touch", hog_touch },
	{ "touch-child", hog_touch_child },
	{ "turns", hog_turns },
	{ "userns", hog_userns },
	{ "zombies", hog_zombies },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(attacks); i++)
		if (strcmp(attacks[i].name, argv[1]) == 0)
			return attacks[i].run(argv + 2);
	(void)fprintf(stderr, "hog: no attack '%s'\n", argc > 1 ? argv[1] : "");
	return 2;
}
