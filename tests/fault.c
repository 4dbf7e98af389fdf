/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes one system call of a box's set-up fail: tests/faults is what drives
 * it.
 *
 *	fault -l LIST COMMAND...
 *	fault -f WHO:CALL:N [-s SEEN] COMMAND...
 *
 * COMMAND is traced with all its children (ptrace(2)). WHO is `cordon`, which
 * is the command and the keeper in it, or `init`, which is what execveat(2)
 * made of one of them. The Nth CALL that any process of WHO makes is not made
 * and returns EIO instead. A program that init executes is let go of at that
 * very moment: none of its own calls fails. strace cannot do that; it lets go
 * at every exec, at init's own too.
 *
 * LIST gets lines of WHO, CALL and how often it was made. SEEN gets what the
 * kernel says, from outside, of the program when it is executed: words for
 * each wall that is around it.
 */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS   600
#define TASKS   256
#define SYSCALL (SIGTRAP | 0x80)
#define OPTIONS                                                                \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |    \
	 PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

enum who { NOBODY, CORDON, INIT, WHOS };
static const char *const names[] = { "nobody", "cordon", "init" };

struct task {
	pid_t pid; /* 0: free */
	enum who who;
	bool is_known; /* whose child it is */
	bool is_held;  /* until that is known */
	bool is_inside;
	bool fails;
	long call;
};

static struct task tasks[TASKS];
static long counts[WHOS][CALLS];
static struct {
	enum who who;
	long call;
	long nth;
} fault;
static FILE *seen;

static void die(const char *what)
{
	perror(what);
	_exit(99);
}

static struct task *task_of(pid_t pid)
{
	struct task *free_one = NULL;

	for (int i = 0; i < TASKS; i++) {
		if (tasks[i].pid == pid)
			return &tasks[i];
		if (!tasks[i].pid && !free_one)
			free_one = &tasks[i];
	}
	if (!free_one)
		die("too many tasks");
	*free_one = (struct task){ .pid = pid };
	return free_one;
}

static void go_on(const struct task *t, int sig)
{
	/* ESRCH: it was killed meanwhile. */
	(void)ptrace(PTRACE_SYSCALL, t->pid, NULL, (void *)(long)sig);
}

/* The call is not made (-1 is none), or has this result. */
static void set_call(pid_t pid, long call)
{
#ifdef __x86_64__
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
		return;
	regs.orig_rax = (unsigned long)call;
	(void)ptrace(PTRACE_SETREGS, pid, NULL, &regs);
#else
	int number = (int)call;
	struct iovec iov = { &number, sizeof(number) };

	(void)ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &iov);
#endif
}

static void set_result(pid_t pid, long result)
{
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov) < 0)
		return;
#ifdef __x86_64__
	regs.rax = (unsigned long)result;
#else
	regs.regs[0] = (unsigned long)result;
#endif
	(void)ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &iov);
}

static void at_entry(struct task *t, long call)
{
	t->is_inside = true;
	t->call = call;
	t->fails = false;
	if (call < 0 || call >= CALLS || t->who == NOBODY)
		return;
	counts[t->who][call]++;
	if (t->who == fault.who && call == fault.call &&
	    counts[t->who][call] == fault.nth) {
		t->fails = true;
		set_call(t->pid, -1);
	}
}

static void at_call(struct task *t)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof(info), &info) > 0) {
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
			at_entry(t, (long)info.entry.nr);
		} else if (t->is_inside) {
			if (t->fails)
				set_result(t->pid, -EIO);
			t->is_inside = t->fails = false;
		}
	}
	go_on(t, 0);
}

/* One line of a file, without its end; empty if there is none. */
static const char *line_of(const char *path, const char *has)
{
	static char line[4096];
	FILE *f = fopen(path, "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, has);
	if (f)
		(void)fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return found ? line : "";
}

/* Whether the group of this controller is a box's and has that limit. */
static void look_at_group(pid_t pid, const char *controller, const char *key)
{
	char path[4200];
	char group[4096];
	const char *colon;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	(void)snprintf(group, sizeof(group), ":%s:", controller);
	colon = strrchr(line_of(path, group), ':');
	if (!colon || !strstr(colon, "/cordon-"))
		return;
	(void)snprintf(group, sizeof(group), "%s", colon + 1);
	/* Version 2 has one tree, which has no name in the list. */
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%s/%s", controller,
		       group, key);
	if (access(path, F_OK) < 0)
		return;
	if (strtoul(line_of(path, ""), NULL, 10) > 0 &&
	    strtoul(line_of(path, ""), NULL, 10) < 1UL << 40)
		(void)fprintf(seen, "%s ", key);
}

static bool same_namespace(pid_t pid, const char *kind)
{
	char path[64];
	char ours[64] = "";
	char its[64] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	if (readlink(path, its, sizeof(its) - 1) <= 0)
		return true;
	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	return readlink(path, ours, sizeof(ours) - 1) <= 0 ||
	       strcmp(ours, its) == 0;
}

static void look(pid_t pid)
{
	static const char *const kinds[] = { "net", "pid", "mnt",
					     "ipc", "uts", "user" };

	if (!seen)
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!same_namespace(pid, kinds[i]))
			(void)fprintf(seen, "%s ", kinds[i]);
	if (getsid(pid) == pid)
		(void)fprintf(seen, "session ");
	look_at_group(pid, "memory", "memory.limit_in_bytes");
	look_at_group(pid, "pids", "pids.max");
	look_at_group(pid, "cpu", "cpu.cfs_quota_us");
	look_at_group(pid, "", "memory.max");
	look_at_group(pid, "", "pids.max");
	look_at_group(pid, "", "cpu.max");
	(void)fprintf(seen, "\n");
	(void)fflush(seen);
}

static void at_exec(struct task *t)
{
	if (t->who == INIT) {
		look(t->pid);
		(void)ptrace(PTRACE_DETACH, t->pid, NULL, NULL);
		t->pid = 0;
		return;
	}
	t->who = t->who == NOBODY || t->call != SYS_execveat ? CORDON : INIT;
	go_on(t, 0);
}

static void at_birth(struct task *parent)
{
	unsigned long pid = 0;
	struct task *t;

	if (ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid) == 0) {
		t = task_of((pid_t)pid);
		t->who = parent->who;
		t->is_known = true;
		if (t->is_held)
			go_on(t, 0);
		t->is_held = false;
	}
	go_on(parent, 0);
}

static void at_stop(struct task *t, int status)
{
	int sig = WSTOPSIG(status);

	switch (status >> 16) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		at_birth(t);
		return;
	case PTRACE_EVENT_EXEC:
		at_exec(t);
		return;
	case PTRACE_EVENT_STOP:
		if (!t->is_known)
			t->is_held = true;
		else if (sig == SIGTRAP)
			go_on(t, 0);
		else
			(void)ptrace(PTRACE_LISTEN, t->pid, NULL, NULL);
		return;
	default:
		break;
	}
	if (sig == SYSCALL)
		at_call(t);
	else
		go_on(t, sig);
}

static pid_t begin(char **argv)
{
	int go[2];
	pid_t pid;
	char c = 0;

	if (pipe2(go, O_CLOEXEC) < 0)
		die("pipe2");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		(void)!read(go[0], &c, 1);
		(void)execv(argv[0], argv);
		die(argv[0]);
	}
	if (ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) < 0)
		die("ptrace");
	task_of(pid)->is_known = true;
	(void)!write(go[1], &c, 1);
	(void)close(go[0]);
	(void)close(go[1]);
	/* It may run already: calls are looked at from its next stop on. */
	(void)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	return pid;
}

static int follow(pid_t first)
{
	int result = 99;

	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return result;
		if (WIFSTOPPED(status)) {
			at_stop(task_of(pid), status);
			continue;
		}
		task_of(pid)->pid = 0;
		if (pid == first)
			result = WIFEXITED(status) ? WEXITSTATUS(status)
						   : 128 + WTERMSIG(status);
	}
}

static void parse_fault(char *text)
{
	char *call = strchr(text, ':');
	char *nth = call ? strchr(call + 1, ':') : NULL;

	if (!nth)
		die("WHO:CALL:N");
	*call++ = '\0';
	*nth++ = '\0';
	fault.who = strcmp(text, "init") == 0 ? INIT : CORDON;
	fault.call = seccomp_syscall_resolve_name(call);
	fault.nth = strtol(nth, NULL, 10);
	if (fault.call < 0)
		die(call);
}

static void put_list(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		die(path);
	for (int who = CORDON; who < WHOS; who++)
		for (int i = 0; i < CALLS; i++) {
			char *call = counts[who][i]
					     ? seccomp_syscall_resolve_num_arch(
						       SCMP_ARCH_NATIVE, i)
					     : NULL;

			if (call)
				(void)fprintf(f, "%s %s %ld\n", names[who],
					      call, counts[who][i]);
			free(call);
		}
	(void)fclose(f);
}

int main(int argc, char **argv)
{
	const char *list = NULL;
	int opt;
	int result;

	while ((opt = getopt(argc, argv, "+l:f:s:")) != -1) {
		if (opt == 'l')
			list = optarg;
		else if (opt == 'f')
			parse_fault(optarg);
		else if (opt == 's')
			seen = fopen(optarg, "we");
		else
			return 99;
	}
	if (optind >= argc)
		return 99;
	result = follow(begin(argv + optind));
	if (list)
		put_list(list);
	return result;
}
