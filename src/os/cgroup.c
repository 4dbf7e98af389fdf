/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where groups may be made.
 *
 * Theory of operation: mountinfo tells which hierarchies are mounted where
 * (they are looked for in their usual places first),
 * /proc/self/cgroup tells where this process is in each. On version 1 a box's
 * group is made below our own, so that a limit set on us holds for our boxes
 * too; an ordinary user may have been given `cordon/UID` at the top instead.
 * On version 2 a group with processes cannot hand controllers to its
 * children (the "no internal processes" rule), so boxes are made in the group
 * that was delegated to us, after moving Cordon's own processes into its leaf
 * `cordon-host`. Root that was given none (systemd marks what it gives) uses
 * `cordon` at the top of the tree.
 */

#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"

/* The controllers a version 2 group hands down for each role. */
static const struct {
	const char *name;
	const char *v1; /* controller's name in version 1, NULL: none */
	const char *v2; /* the same in version 2, NULL: always there */
} roles[] = {
	[CG_MEMORY] = { "memory", "memory", "memory" },
	[CG_CPU] = { "cpu", "cpu", "cpu" },
	[CG_PIDS] = { "pids", "pids", "pids" },
	[CG_CPUSET] = { "cpuset", "cpuset", "cpuset" },
	[CG_ACCT] = { "cpuacct", "cpuacct", NULL },
	[CG_KILL] = { "kill", NULL, NULL },
	[CG_FREEZE] = { "freezer", "freezer", NULL },
};
_Static_assert(ARRAY_SIZE(roles) == CG_ROLES, "a row for each role");

#define LEAF      "cordon-host"
#define MAX_ASIDE 10

#define CGROUP_MAGIC  0x0027e0ebU
#define CGROUP2_MAGIC 0x63677270U

/* A mounted hierarchy. */
struct mount_line {
	char root[256];
	char point[256];
	bool v2;
	char options[256]; /* the controllers are among them */
};

#define MAX_MOUNTS 24

struct scan {
	char text[32768];
	char groups[4096];
	struct mount_line mounts[MAX_MOUNTS];
	int n_mounts;
};

const char *cg_role_name(enum cg_role role)
{
	return roles[role].name;
}

/* Whether `word` stands in the comma-separated `list`, `len` bytes long. */
static bool has_word_in(const char *list, size_t len, const char *word)
{
	const char *end = list + len;
	size_t n = strlen(word);

	for (const char *p = list; p && p < end;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));

		if ((size_t)((comma ? comma : end) - p) == n &&
		    memcmp(p, word, n) == 0)
			return true;
		p = comma ? comma + 1 : NULL;
	}
	return false;
}

static bool has_word(const char *list, const char *word)
{
	return has_word_in(list, strlen(list), word);
}

/* Our path in the hierarchy of `controller` ("" is version 2). */
static bool own_path(const char *groups, const char *controller, char *ret,
		     size_t size)
{
	/* Lines of id:controllers:path */
	for (const char *p = groups; *p;) {
		const char *end = strchrnul(p, '\n');
		const char *list = memchr(p, ':', (size_t)(end - p));
		const char *path = list ? memchr(list + 1, ':',
						 (size_t)(end - list - 1))
					: NULL;
		size_t len = path ? (size_t)(path - list - 1) : 0;

		if (path &&
		    (*controller ? has_word_in(list + 1, len, controller)
				 : len == 0)) {
			(void)snprintf(ret, size, "%.*s", (int)(end - path - 1),
				       path + 1);
			return true;
		}
		p = end + (*end == '\n');
	}
	return false;
}

/* Copies the word at *p, and moves behind it and its space. */
static void take_word(const char **p, char *ret, size_t size)
{
	size_t len = strcspn(*p, " \n");

	if (size > 0)
		(void)snprintf(ret, size, "%.*s", (int)len, *p);
	*p += len + ((*p)[len] == ' ');
}

/*
 * One line of mountinfo, if it is a cgroup's:
 * id parent dev root point options [tags] - type source options
 */
static bool parse_mount(const char *line, const char *end,
			struct mount_line *ret)
{
	static const char type[] = " - cgroup";
	const char *dash = memmem(line, (size_t)(end - line), type,
				  sizeof(type) - 1);

	if (!dash)
		return false;
	for (int i = 0; i < 3; i++)
		take_word(&line, NULL, 0);
	take_word(&line, ret->root, sizeof(ret->root));
	take_word(&line, ret->point, sizeof(ret->point));
	dash += sizeof(type) - 1;
	ret->v2 = *dash == '2';
	take_word(&dash, NULL, 0);
	take_word(&dash, NULL, 0);
	take_word(&dash, ret->options, sizeof(ret->options));
	return true;
}

static void parse_mounts(struct scan *scan)
{
	for (const char *p = scan->text; *p && scan->n_mounts < MAX_MOUNTS;) {
		const char *end = strchrnul(p, '\n');

		if (parse_mount(p, end, &scan->mounts[scan->n_mounts]))
			scan->n_mounts++;
		p = end + (*end == '\n');
	}
}

/*
 * Whether the top of a hierarchy is mounted there: version 1 has this file
 * only at the top, version 2 only below it.
 */
static bool is_top(const char *point, bool v2)
{
	char path[CG_PATH_MAX];
	struct statfs fs;
	bool has_file;

	(void)snprintf(path, sizeof(path), "%s/%s", point,
		       v2 ? "cgroup.type" : "cgroup.sane_behavior");
	if (statfs(point, &fs) < 0 ||
	    (uint32_t)fs.f_type != (v2 ? CGROUP2_MAGIC : CGROUP_MAGIC))
		return false;
	has_file = faccessat(AT_FDCWD, path, F_OK, 0) == 0;
	return v2 ? !has_file && errno == ENOENT : has_file;
}

static bool add_usual(struct scan *scan, const char *place,
		      const char *controller)
{
	struct mount_line *m = &scan->mounts[scan->n_mounts];

	*m = (struct mount_line){ .root = "/", .v2 = !*controller };
	(void)snprintf(m->point, sizeof(m->point), "/sys/fs/cgroup%s%s", place,
		       controller);
	(void)snprintf(m->options, sizeof(m->options), "%s", controller);
	if (!is_top(m->point, m->v2))
		return false;
	scan->n_mounts++;
	return true;
}

/* Finds the mounted hierarchy with `controller`, "" for version 2. */
static const struct mount_line *find_mount(const struct scan *scan,
					   const char *controller)
{
	for (int i = 0; i < scan->n_mounts; i++) {
		const struct mount_line *m = &scan->mounts[i];

		if (*controller ? !m->v2 && has_word(m->options, controller)
				: m->v2)
			return m;
	}
	return NULL;
}

/* The directory of our own group under that mount. */
static const struct mount_line *own_dir(const struct scan *scan,
					const char *controller, char *ret,
					size_t size)
{
	const struct mount_line *m = find_mount(scan, controller);
	char path[256];
	size_t skip;

	if (!m || !own_path(scan->groups, controller, path, sizeof(path)))
		return NULL;
	skip = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
	if (skip && strncmp(path, m->root, skip) != 0)
		skip = strlen(path);
	(void)snprintf(ret, size, "%s%s", m->point,
		       strcmp(path + skip, "/") == 0 ? "" : path + skip);
	return m;
}

static int open_dir(const char *path)
{
	/* Not open(): musl asks a second time for O_CLOEXEC there. */
	return openat(AT_FDCWD, path,
		      O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static bool is_writable(const char *path)
{
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* By its name, for which the kernel has nothing to look up. */
static bool is_first_namespace(void)
{
	static const char first[] = "cgroup:[4026531835]";
	char name[sizeof(first)];

	return readlink("/proc/self/ns/cgroup", name, sizeof(name)) ==
		       sizeof(first) - 1 &&
	       memcmp(name, first, sizeof(first) - 1) == 0;
}

/*
 * Nearly everywhere each hierarchy is mounted whole in its usual place. To
 * look there is much quicker than to read mountinfo, for which the kernel
 * writes a line for each mount. Paths in /proc/self/cgroup then begin at the
 * top, if we are in the first cgroup namespace. False where anything differs.
 * CPU time is counted by version 2 where that is ours, so the hierarchy of
 * version 1 for it is not looked for then.
 */
static bool find_usual(struct scan *scan)
{
	char path[CG_PATH_MAX];

	if (!is_first_namespace())
		return false;
	for (int i = 0; i < CG_ACCT; i++)
		if (roles[i].v1 &&
		    own_path(scan->groups, roles[i].v1, path, sizeof(path)) &&
		    !add_usual(scan, "/", roles[i].v1))
			return false;
	if (!add_usual(scan, scan->n_mounts ? "/unified" : "", ""))
		return false;
	if (scan->n_mounts == 1 ||
	    (own_dir(scan, "", path, sizeof(path)) && is_writable(path)))
		return true;
	return !own_path(scan->groups, roles[CG_ACCT].v1, path, sizeof(path)) ||
	       add_usual(scan, "/", roles[CG_ACCT].v1);
}

static void parent_set(struct cg_parent *p, const char *path, bool v2)
{
	p->fd = open_dir(path);
	p->v2 = v2;
	(void)snprintf(p->path, sizeof(p->path), "%s", path);
}

static void find_v1(struct cg_tree *tree, const struct scan *scan,
		    enum cg_role role)
{
	const struct mount_line *m;
	char dir[CG_PATH_MAX];

	if (!roles[role].v1)
		return;
	m = own_dir(scan, roles[role].v1, dir, sizeof(dir));
	if (m && !is_writable(dir)) {
		(void)snprintf(dir, sizeof(dir), "%s/cordon/%u", m->point,
			       (unsigned int)geteuid());
		if (!is_writable(dir))
			m = NULL;
	}
	if (m)
		parent_set(&tree->role[role], dir, false);
}

/* Spaces and line ends to commas, so that has_word() can read it. */
static void commas(char *text)
{
	for (; *text; text++)
		if (*text == ' ' || *text == '\n')
			*text = ',';
}

/*
 * Hands down all controllers that the group has, in one write: either all are
 * taken or none. One by one, a group with processes would refuse memory and
 * accept the others, and be of no use from then on ("domain threaded").
 */
static int enable_controllers(const char *dir)
{
	_cleanup_fd_ int fd = open_dir(dir);
	char have[256];
	char words[128];
	size_t len = 0;

	if (fd < 0 ||
	    io_read_file(fd, "cgroup.controllers", have, sizeof(have)) < 0)
		return -ENOENT;
	commas(have);
	for (int i = 0; i < CG_ROLES; i++)
		if (roles[i].v2 && has_word(have, roles[i].v2))
			len += (size_t)snprintf(words + len,
						sizeof(words) - len, "%s+%s",
						len ? " " : "", roles[i].v2);
	return len ? io_write_file(fd, "cgroup.subtree_control", words) : 0;
}

/*
 * Moves the processes of `dir` into a leaf, so that it may hand controllers
 * down. They are Cordon's own and what it was started from, such as a shell:
 * all in a group that was given to this user.
 */
static void step_aside(const char *dir)
{
	_cleanup_fd_ int fd = open_dir(dir);
	_cleanup_fd_ int leaf = NO_FD;
	char pids[8192];
	char *p = pids;

	if (fd < 0 || (mkdirat(fd, LEAF, 0755) < 0 && errno != EEXIST))
		return;
	leaf = openat(fd, LEAF, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (leaf < 0 ||
	    io_read_file(fd, "cgroup.procs", pids, sizeof(pids)) <= 0)
		return;
	while (*p) {
		char *end = strchrnul(p, '\n');
		bool more = *end;

		*end = '\0';
		(void)io_write_file(leaf, "cgroup.procs", p);
		p = end + more;
	}
}

/*
 * Makes `dir` hand down its controllers, if it can be made to. What is moved
 * may fork meanwhile, as the daemon does when it starts: so several times.
 */
static void prepare_parent(const char *dir)
{
	for (int i = 0; i < MAX_ASIDE && enable_controllers(dir) == -EBUSY; i++)
		step_aside(dir);
}

static bool serves(const char *dir, const char *controller)
{
	_cleanup_fd_ int fd = open_dir(dir);
	char text[256];
	ssize_t n;

	if (fd < 0)
		return false;
	n = io_read_file(fd, "cgroup.subtree_control", text, sizeof(text));
	if (n <= 0)
		return false;
	commas(text);
	return has_word(text, controller);
}

/*
 * Whether systemd has given root this group (Delegate=yes): then it leaves
 * alone what is below, a limit of the unit holds for boxes, and the rest of
 * the tree is not ours. Only the machine's root can set that attribute.
 * https://systemd.io/CGROUP_DELEGATION
 */
static bool is_given_to_root(const char *dir)
{
	struct stat st;
	char mark = 0;

	return getxattr(dir, "trusted.delegate", &mark, 1) == 1 &&
	       mark == '1' && stat(dir, &st) == 0 && st.st_uid == 0;
}

/* The directory in which version 2 groups are made, "" if there is none. */
static void v2_parent(const struct mount_line *m, const char *own, char *ret,
		      size_t size)
{
	size_t leaf = sizeof("/" LEAF) - 1;
	size_t len = strlen(own);

	if (len > leaf && strcmp(own + len - leaf, "/" LEAF) == 0)
		len -= leaf;
	(void)snprintf(ret, size, "%.*s", (int)len, own);
	if (geteuid() == 0 && !is_given_to_root(ret)) {
		prepare_parent(m->point);
		(void)snprintf(ret, size, "%s/cordon", m->point);
		if ((mkdir(ret, 0755) < 0 && errno != EEXIST) ||
		    !is_writable(ret))
			ret[0] = '\0';
	} else if (!is_writable(own)) {
		ret[0] = '\0';
	}
	if (ret[0])
		prepare_parent(ret);
}

static void find_v2(struct cg_tree *tree, const struct scan *scan)
{
	char own[CG_PATH_MAX];
	char dir[CG_PATH_MAX];
	const struct mount_line *m = own_dir(scan, "", own, sizeof(own));
	bool limits = tree->role[CG_MEMORY].fd < 0;

	if (!m)
		return;
	if (limits)
		v2_parent(m, own, dir, sizeof(dir));
	else
		(void)snprintf(dir, sizeof(dir), "%s",
			       is_writable(own) ? own : "");
	if (!dir[0])
		return;
	for (int i = 0; i < CG_FREEZE; i++) {
		if (tree->role[i].fd >= 0 && roles[i].v2)
			continue;
		if (roles[i].v2 && !serves(dir, roles[i].v2))
			continue;
		fd_close(&tree->role[i].fd);
		parent_set(&tree->role[i], dir, true);
	}
}

/* "0-2,5" to a list. */
static void parse_cpus(struct cg_tree *tree, const char *text)
{
	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long a = strtoul(text, &end, 10);
		unsigned long b = a;

		if (*end == '-')
			b = strtoul(end + 1, &end, 10);
		for (; a <= b && tree->n_cpus < CG_MAX_CPUS; a++)
			tree->cpus[tree->n_cpus++] = (uint16_t)a;
		text = *end == ',' ? end + 1 : end;
	}
}

void cg_tree_find_cpus(struct cg_tree *tree)
{
	const struct cg_parent *set = &tree->role[CG_CPUSET];
	char text[4096] = "";

	if (tree->n_cpus > 0)
		return;
	if (set->fd >= 0 && set->v2)
		(void)io_read_file(set->fd, "cpuset.cpus.effective", text,
				   sizeof(text));
	else if (set->fd >= 0)
		(void)io_read_file(set->fd, "cpuset.cpus", text, sizeof(text));
	if (set->fd >= 0 && !set->v2)
		(void)io_read_file(set->fd, "cpuset.mems", tree->mems,
				   sizeof(tree->mems));
	if (!text[0])
		(void)io_read_file(AT_FDCWD, "/sys/devices/system/cpu/online",
				   text, sizeof(text));
	parse_cpus(tree, text);
	if (tree->n_cpus == 0)
		tree->n_cpus = 1;
}

static int find_mounts(struct scan *scan, struct err *err)
{
	ssize_t r;

	scan->n_mounts = 0;
	if (find_usual(scan))
		return 0;
	r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", scan->text,
			 sizeof(scan->text));
	if (r < 0)
		return err_errno(err, (int)-r, "read /proc/self/mountinfo");
	scan->n_mounts = 0;
	parse_mounts(scan);
	return 0;
}

/* Which of the roles before it has the same directory. */
static void find_same(struct cg_tree *tree, int role)
{
	struct cg_parent *p = &tree->role[role];

	p->same = (enum cg_role)role;
	for (int k = role - 1; k >= 0; k--)
		if (strcmp(p->path, tree->role[k].path) == 0)
			p->same = (enum cg_role)k;
}

int cg_tree_open(struct cg_tree *tree, struct err *err)
{
	static struct scan scan;
	ssize_t r;

	memset(tree, 0, sizeof(*tree));
	for (int i = 0; i < CG_ROLES; i++)
		tree->role[i].fd = NO_FD;
	r = io_read_file(AT_FDCWD, "/proc/self/cgroup", scan.groups,
			 sizeof(scan.groups));
	if (r < 0)
		return err_errno(err, (int)-r, "read /proc/self/cgroup");
	if (find_mounts(&scan, err) < 0)
		return -err->code;
	for (int i = 0; i < CG_FREEZE; i++)
		find_v1(tree, &scan, (enum cg_role)i);
	find_v2(tree, &scan);
	for (int i = 0; i < CG_ROLES; i++)
		find_same(tree, i);
	return 0;
}

bool cg_tree_find_freezer(struct cg_tree *tree)
{
	static struct scan scan;
	struct cg_parent *p = &tree->role[CG_FREEZE];

	if (p->fd >= 0 || tree->role[CG_KILL].fd >= 0 ||
	    io_read_file(AT_FDCWD, "/proc/self/cgroup", scan.groups,
			 sizeof(scan.groups)) < 0 ||
	    io_read_file(AT_FDCWD, "/proc/self/mountinfo", scan.text,
			 sizeof(scan.text)) < 0)
		return false;
	scan.n_mounts = 0;
	parse_mounts(&scan);
	find_v1(tree, &scan, CG_FREEZE);
	find_same(tree, CG_FREEZE);
	return p->fd >= 0 && p->same == CG_FREEZE;
}

void cg_tree_close(struct cg_tree *tree)
{
	for (int i = 0; i < CG_ROLES; i++)
		fd_close(&tree->role[i].fd);
}
