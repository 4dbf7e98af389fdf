/* SPDX-License-Identifier: Apache-2.0 */
#include "box/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cordon/cordon.h>

#include "base/io.h"
#include "base/util.h"
#include "box/result.h"
#include "box/spec.h"
#include "os/cgroup.h"
#include "os/landlock.h"

static struct machine_layer *add(struct machine *m, const char *name,
				 enum machine_state state, const char *fmt, ...)
	PRINTF(4, 5);
static struct machine_layer *add(struct machine *m, const char *name,
				 enum machine_state state, const char *fmt, ...)
{
	struct machine_layer *l = &m->layers[MIN(m->n, MACHINE_LAYERS - 1)];
	va_list ap;

	m->n = MIN(m->n + 1, MACHINE_LAYERS);
	*l = (struct machine_layer){ .name = name, .state = state };
	va_start(ap, fmt);
	(void)vsnprintf(l->detail, sizeof(l->detail), fmt, ap);
	va_end(ap);
	return l;
}

static void remedy(struct machine_layer *l, const char *text)
{
	(void)snprintf(l->remedy, sizeof(l->remedy), "%s", text);
}

static long read_long(const char *path, long otherwise)
{
	char text[64];

	if (io_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return otherwise;
	return strtol(text, NULL, 10);
}

static void look_userns(struct machine *m)
{
	long max = read_long("/proc/sys/user/max_user_namespaces", 0);
	long clone = read_long("/proc/sys/kernel/unprivileged_userns_clone", 1);
	long apparmor = read_long(
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0);

	if (max <= 0) {
		remedy(add(m, "user namespaces", MACHINE_ABSENT,
			   "user.max_user_namespaces is 0"),
		       "as root: sysctl -w user.max_user_namespaces=65536");
	} else if (geteuid() != 0 && !clone) {
		remedy(add(m, "user namespaces", MACHINE_ABSENT,
			   "kernel.unprivileged_userns_clone is 0"),
		       "as root: sysctl -w "
		       "kernel.unprivileged_userns_clone=1");
	} else if (geteuid() != 0 && apparmor) {
		remedy(add(m, "user namespaces", MACHINE_WEAKER,
			   "AppArmor restricts them for ordinary users"),
		       "as root: sysctl -w "
		       "kernel.apparmor_restrict_unprivileged_userns=0, or "
		       "install the profile that comes with Cordon");
	} else {
		add(m, "user namespaces", MACHINE_PRESENT, "up to %ld", max);
	}
}

static void look_landlock(struct machine *m)
{
	int abi = landlock_abi();

	if (abi == 0)
		remedy(add(m, "landlock", MACHINE_ABSENT,
			   "not in this kernel, or not enabled"),
		       "boot with lsm=landlock,...; or --best-effort landlock");
	else if (abi < 6)
		add(m, "landlock", MACHINE_WEAKER,
		    "ABI %d: no scope for signals and abstract sockets (ABI "
		    "6)",
		    abi);
	else
		add(m, "landlock", MACHINE_PRESENT, "ABI %d", abi);
}

static void look_seccomp(struct machine *m)
{
	char text[256];

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		remedy(add(m, "seccomp", MACHINE_ABSENT, "not in this kernel"),
		       "use a kernel with CONFIG_SECCOMP_FILTER");
	else if (io_read_file(AT_FDCWD,
			      "/proc/sys/kernel/seccomp/actions_avail", text,
			      sizeof(text)) > 0)
		add(m, "seccomp", MACHINE_PRESENT, "%.*s",
		    (int)strcspn(text, "\n"), text);
	else
		add(m, "seccomp", MACHINE_PRESENT, "filters");
}

/* In a child: finding the groups may move the process into a leaf. */
static void look_cgroup(struct machine *m)
{
	struct cg_tree *tree = mmap(NULL, sizeof(*tree), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	if (tree == MAP_FAILED)
		return;
	child = fork();
	if (child == 0) {
		struct err err;

		_exit(cg_tree_open(tree, &err) < 0);
	}
	(void)waitpid(child, NULL, 0);
	for (int i = 0; i <= CG_KILL; i++) {
		const struct cg_parent *p = &tree->role[i];
		bool needed = i == CG_MEMORY || i == CG_CPU || i == CG_PIDS;
		static char names[CG_ROLES][24];

		(void)snprintf(names[i], sizeof(names[i]), "cgroup %s",
			       cg_role_name((enum cg_role)i));
		if (p->fd > 0) {
			add(m, names[i], MACHINE_PRESENT, "v%d, %.150s",
			    p->v2 ? 2 : 1, p->path);
			continue;
		}
		add(m, names[i], needed ? MACHINE_ABSENT : MACHINE_WEAKER,
		    "no group that this user may use");
		if (needed)
			remedy(&m->layers[m->n - 1],
			       "systemd-run --user --scope -p Delegate=yes "
			       "cordon run ...; or as root 'cordon doctor "
			       "--grant-cgroup UID' (cgroup v1); or "
			       "--best-effort cgroup");
	}
	(void)munmap(tree, sizeof(*tree));
}

static void look_core(struct machine *m)
{
	char text[256] = "";

	(void)io_read_file(AT_FDCWD, "/proc/sys/kernel/core_pattern", text,
			   sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	if (text[0] == '|')
		add(m, "core dumps", MACHINE_WEAKER,
		    "core_pattern is a program; kept from starting by a "
		    "limit of 1");
	else
		add(m, "core dumps", MACHINE_PRESENT, "none are written");
}

/* Runs true in a box; the result, or NULL with the reason in *err. */
static struct cordon_result *run_true(struct cordon *c, bool best_effort,
				      struct cordon_error *err)
{
	static const char *const argv[] = { "true", NULL };
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_result *r = NULL;

	if (s && cordon_spec_command(s, argv, err) == 0 &&
	    (!best_effort ||
	     (cordon_spec_set(s, "best-effort", "cgroup", err) == 0 &&
	      cordon_spec_set(s, "best-effort", "landlock", err) == 0)))
		(void)cordon_run(c, s, &r, err);
	cordon_spec_free(s);
	return r;
}

static bool is_success(const struct cordon_result *r)
{
	return r && strcmp(cordon_result_status(r), "success") == 0;
}

static void look_box(struct machine *m)
{
	struct cordon_error err = { 0 };
	struct cordon *c = cordon_open(&err);
	struct cordon_result *any = c ? run_true(c, true, &err) : NULL;
	struct cordon_result *full = c ? run_true(c, false, &err) : NULL;

	if (!is_success(any))
		add(m, "a box", MACHINE_ABSENT, "%.190s",
		    any && cordon_result_message(any)
			    ? cordon_result_message(any)
			    : err.text);
	else if (any->not_enforced & 1U << WIRE_L_OWN_UID)
		remedy(add(m, "own uid", MACHINE_WEAKER,
			   "boxes have your own uid"),
		       "install uidmap and give yourself a range in "
		       "/etc/subuid and /etc/subgid");
	else
		add(m, "own uid", MACHINE_PRESENT,
		    "each box has one, this time %u",
		    any->runs[0].outcome.host_uid);
	m->can_enforce = is_success(full);
	if (!m->can_enforce)
		(void)snprintf(m->why_not, sizeof(m->why_not), "%s",
			       full && cordon_result_message(full)
				       ? cordon_result_message(full)
				       : err.text);
	cordon_result_free(any);
	cordon_result_free(full);
	cordon_close(c);
}

void machine_look(struct machine *ret)
{
	struct utsname u;

	memset(ret, 0, sizeof(*ret));
	if (uname(&u) == 0)
		add(ret, "kernel", MACHINE_PRESENT, "Linux %s %s", u.release,
		    u.machine);
	look_userns(ret);
	look_seccomp(ret);
	look_landlock(ret);
	look_cgroup(ret);
	look_core(ret);
	look_box(ret);
}

static int grant(const char *controller, unsigned int uid, struct err *err)
{
	static const char *const inherited[] = { "cpuset.cpus", "cpuset.mems" };
	char path[200];
	char text[4096];
	_cleanup_fd_ int top = NO_FD;

	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", controller);
	top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return 0;
	for (int depth = 0; depth < 2; depth++) {
		_cleanup_fd_ int dir = NO_FD;
		char name[32];

		(void)snprintf(name, sizeof(name), depth ? "%u" : "cordon",
			       uid);
		if (mkdirat(top, name, 0755) < 0 && errno != EEXIST)
			return err_errno(err, errno, "make '%s/%s'", path,
					 name);
		dir = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		for (size_t i = 0; i < ARRAY_SIZE(inherited); i++)
			if (io_read_file(top, inherited[i], text,
					 sizeof(text)) > 0)
				(void)io_write_file(dir, inherited[i], text);
		if (depth && fchown(dir, uid, (gid_t)-1) < 0)
			return err_errno(err, errno, "give '%s' to %u", path,
					 uid);
		fd_close(&top);
		top = take_fd(&dir);
	}
	return 0;
}

int machine_grant_cgroup(unsigned int uid, struct err *err)
{
	static const char *const controllers[] = { "memory",  "cpu",
						   "pids",    "cpuset",
						   "cpuacct", "freezer" };

	if (access("/sys/fs/cgroup/memory", F_OK) < 0)
		return err_set(err, ENOENT,
			       "this machine has no cgroup v1 memory "
			       "hierarchy; with v2 use 'systemd-run --user "
			       "--scope -p Delegate=yes'");
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		if (grant(controllers[i], uid, err) < 0)
			return -err->code;
	return 0;
}
