/* SPDX-License-Identifier: Apache-2.0 */
#include "os/landlock.h"

#include <errno.h>
#include <fcntl.h>

#include "base/util.h"
#include "os/uapi.h"

#define READING (UAPI_LANDLOCK_READ_FILE | UAPI_LANDLOCK_READ_DIR)

/* What applies to a file that is not a directory. */
#define ON_FILES                                                               \
	(UAPI_LANDLOCK_EXECUTE | UAPI_LANDLOCK_WRITE_FILE |                    \
	 UAPI_LANDLOCK_READ_FILE | UAPI_LANDLOCK_TRUNCATE |                    \
	 UAPI_LANDLOCK_IOCTL_DEV)

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
			   UAPI_LANDLOCK_VERSION);

	return abi > 0 ? (int)abi : 0;
}

/* Every right on files that this ABI knows. */
static uint64_t fs_rights(int abi)
{
	uint64_t rights = (1ULL << 13) - 1;

	if (abi >= 2)
		rights |= UAPI_LANDLOCK_REFER;
	if (abi >= 3)
		rights |= UAPI_LANDLOCK_TRUNCATE;
	if (abi >= 5)
		rights |= UAPI_LANDLOCK_IOCTL_DEV;
	return rights;
}

static int open_ruleset(struct landlock *l, bool has_net, struct err *err)
{
	struct uapi_landlock_ruleset set = { 0 };
	size_t size = offsetof(struct uapi_landlock_ruleset, net);

	l->fd = NO_FD;
	l->abi = landlock_abi();
	if (l->abi == 0)
		return err_set(err, EOPNOTSUPP,
			       "this kernel has no Landlock; enable it "
			       "(lsm=landlock,...) or pass "
			       "--best-effort landlock");
	l->fs = fs_rights(l->abi);
	set.fs = l->fs;
	if (l->abi >= 4) {
		if (!has_net)
			set.net = UAPI_LANDLOCK_NET_BIND_TCP |
				  UAPI_LANDLOCK_NET_CONNECT_TCP;
		size = offsetof(struct uapi_landlock_ruleset, scoped);
	}
	if (l->abi >= 6) {
		set.scoped = UAPI_LANDLOCK_SCOPE_ABSTRACT |
			     UAPI_LANDLOCK_SCOPE_SIGNAL;
		size = sizeof(set);
	}
	l->fd = (int)syscall(SYS_landlock_create_ruleset, &set, size, 0);
	if (l->fd < 0)
		return err_errno(err, errno, "create a Landlock ruleset");
	return 0;
}

int landlock_open(struct landlock *l, struct err *err)
{
	return open_ruleset(l, false, err);
}

int landlock_open_net(struct landlock *l, struct err *err)
{
	return open_ruleset(l, true, err);
}

int landlock_allow(struct landlock *l, int fd, bool is_dir, int what,
		   struct err *err)
{
	struct uapi_landlock_beneath rule = { .parent_fd = fd };

	rule.allowed = READING;
	if (what & LANDLOCK_WRITE)
		rule.allowed = l->fs & ~(UAPI_LANDLOCK_MAKE_CHAR |
					 UAPI_LANDLOCK_MAKE_BLOCK |
					 UAPI_LANDLOCK_EXECUTE);
	if (what & LANDLOCK_MARKS)
		rule.allowed |= UAPI_LANDLOCK_MAKE_CHAR;
	if (what & LANDLOCK_RUN)
		rule.allowed |= UAPI_LANDLOCK_EXECUTE;
	if (!is_dir)
		rule.allowed &= ON_FILES;
	rule.allowed &= l->fs;
	if (syscall(SYS_landlock_add_rule, l->fd, UAPI_LANDLOCK_PATH_BENEATH,
		    &rule, 0) < 0)
		return err_errno(err, errno, "add a Landlock rule");
	return 0;
}

#define PIPES (UAPI_LANDLOCK_MAKE_FIFO | UAPI_LANDLOCK_MAKE_SOCK)

static int add_rule(struct landlock *l, int fd, uint64_t rights,
		    struct err *err)
{
	const struct uapi_landlock_beneath rule = { .parent_fd = fd,
						    .allowed = rights };

	if (syscall(SYS_landlock_add_rule, l->fd, UAPI_LANDLOCK_PATH_BENEATH,
		    &rule, 0) < 0)
		return err_errno(err, errno, "add a Landlock rule");
	return 0;
}

int landlock_open_links(struct landlock *l, bool links, struct err *err)
{
	struct uapi_landlock_ruleset set = { 0 };
	_cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	l->abi = landlock_abi();
	l->fs = PIPES | (links ? UAPI_LANDLOCK_MAKE_SYM : 0);
	/* Moving files between directories is denied by each that is silent. */
	if (l->abi >= 2)
		l->fs |= UAPI_LANDLOCK_REFER;
	set.fs = l->fs;
	l->fd = (int)syscall(SYS_landlock_create_ruleset, &set,
			     offsetof(struct uapi_landlock_ruleset, net), 0);
	if (l->fd < 0 || root < 0)
		return err_errno(err, errno, "create a Landlock ruleset");
	return l->abi >= 2 ? add_rule(l, root, UAPI_LANDLOCK_REFER, err) : 0;
}

int landlock_allow_links(struct landlock *l, int fd, struct err *err)
{
	return add_rule(l, fd, l->fs & ~UAPI_LANDLOCK_REFER, err);
}

int landlock_enter(struct landlock *l, struct err *err)
{
	_cleanup_fd_ int fd = take_fd(&l->fd);

	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return err_errno(err, errno, "enter the Landlock domain");
	return 0;
}
