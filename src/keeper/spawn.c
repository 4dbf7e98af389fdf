/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An empty box: its groups, its namespaces and its init, which then waits.
 *
 * The child borrows the keeper's memory until it becomes init: nothing is
 * copied. The keeper goes on beside it, and asks before it gives the box a
 * spec whether init has come to run (box_born). The first box is born by the
 * midwife while the keeper goes on (midwife.c, box_settle). It is born into the
 * version 2 group. Those of version 1 are made while it works (configure.c),
 * and it moves there itself, because that is cheap, and late, because whatever
 * the kernel allocates for a process is dearer when it is counted
 * (stage_groups).
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/caps.h"
#include "os/clone.h"
#include "os/uapi.h"

/* And the network's, where net.c has none ready. */
#define NAMESPACES                                                             \
	(UAPI_CLONE_NEWUSER | UAPI_CLONE_NEWNS | UAPI_CLONE_NEWPID |           \
	 UAPI_CLONE_NEWIPC | UAPI_CLONE_NEWUTS)

#define EXEC_TRIES    1000
#define EXEC_PAUSE_US 100

/*
 * What a child works with until it is init; one at a time. It has no memory of
 * its own, and must leave the library alone (os/clone.h).
 */
static struct {
	_Atomic int is_borrowed; /* cleared by the kernel when it is over */
	int sock;
	int lock;
	int init;
	uint64_t ignored; /* signals */
	struct box *box;
	struct birth order; /* of the midwife */
	int theirs; /* `sock` until it is settled: init has a copy then */
	char stack[8192] __attribute__((aligned(64)));
} birth = { .theirs = NO_FD };

static const char *const init_argv[] = { "cordon-init", NULL };

#ifdef CORDON_TEST_BUILD
extern char **environ;
#define init_env environ
#else
static const char *const init_env[] = { NULL };
#endif

static int settle(struct keeper *k, struct err *err);

/* What was ignored in the client would be ignored in every box. */
static void reset_signals(void)
{
	const struct uapi_sigaction standard = { 0 };

	for (uint64_t left = birth.ignored; left; left &= left - 1)
		(void)clone_call(SYS_rt_sigaction, __builtin_ctzll(left) + 1,
				 (long)&standard, 0, 8, 0);
}

static long child_steps(struct box *b)
{
	long r;

	reset_signals();
	b->birth_what = "keep capabilities";
	r = caps_keep_over_exec();
	if (r < 0)
		return r;
	b->birth_what = "hand descriptors to init";
	r = clone_call(SYS_dup3, birth.sock, KEEPER_INIT_SOCK, 0, 0, 0);
	if (r >= 0 && birth.lock >= 0)
		r = clone_call(SYS_dup3, birth.lock, KEEPER_INIT_LOCK, 0, 0, 0);
	if (r < 0)
		return r;
	b->birth_what = "start init";
	return clone_call(SYS_execveat, birth.init, (long)"", (long)init_argv,
			  (long)init_env, AT_EMPTY_PATH);
}

/* In the child, with the keeper's memory. */
static void child_main(void *unused)
{
	(void)unused;
	birth.box->birth_error = (int)-child_steps(birth.box);
	for (;;)
		(void)clone_call(SYS_exit_group, 70, 0, 0, 0, 0);
}

static void await_birth(void)
{
	int value;

	while ((value = atomic_load(&birth.is_borrowed)) != 0)
		(void)syscall(SYS_futex, &birth.is_borrowed, UAPI_FUTEX_WAIT,
			      value, NULL, NULL, 0);
}

int box_born(struct keeper *k, const struct box *b, struct err *err)
{
	if (k->unborn == b && settle(k, err) < 0)
		return -err->code;
	await_birth();
	if (b->birth_error)
		return err_errno(err, b->birth_error, "%s", b->birth_what);
	return 0;
}

/*
 * What the kernel counts for each user (watches, queues, pending signals) it
 * also counts for whoever made the user namespace. If that were always the
 * keeper, all boxes would share one count; so each is made under its own uid.
 * Capabilities stay (SECBIT_NO_SETUID_FIXUP). By system call: one thread.
 */
static int wear(const struct world *w, uint32_t uid, uint32_t gid,
		uint32_t saved)
{
	if (syscall(SYS_setresuid, uid, uid, saved) < 0 ||
	    syscall(SYS_setresgid, gid, gid, -1) < 0)
		return -errno;
	/*
	 * A change of uid makes us, and a child until its exec is complete,
	 * undumpable; then an ordinary user may not write its maps.
	 */
	if (!w->is_root && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* But for the network's namespace. */
static struct uapi_clone_args clone_args(const struct keeper *k, struct box *b)
{
	int cgroup = cg_box_clone_fd(&k->cg, &b->cg);
	struct uapi_clone_args args = {
		.flags = NAMESPACES | UAPI_CLONE_PIDFD |
			 UAPI_CLONE_CHILD_CLEARTID,
		.child_tid = (uint64_t)(uintptr_t)&birth.is_borrowed,
		.pidfd = (uint64_t)(uintptr_t)&b->pidfd,
		.exit_signal = SIGCHLD,
	};

	if (cgroup >= 0) {
		args.flags |= UAPI_CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup;
	}
	return args;
}

static int clone_init(struct keeper *k, struct box *b, bool *ret_owns_net,
		      struct err *err)
{
	const struct world *w = &k->world;
	struct uapi_clone_args args = clone_args(k, b);
	bool has_net = net_enter(k, b) == 0;
	int r;

	if (!has_net)
		args.flags |= UAPI_CLONE_NEWNET;
	*ret_owns_net = !has_net;
	r = b->lock < 0 ? 0 : wear(w, b->host_uid, b->host_uid, w->caller);
	if (r == 0) {
		birth.ignored = signals_ignored();
		atomic_store(&birth.is_borrowed, 1);
		b->pid = clone_beside(&args, child_main, NULL, birth.stack,
				      sizeof(birth.stack));
	}
	/* Else the next box would be born in the wrong place. */
	if ((b->lock >= 0 &&
	     wear(w, w->caller, w->caller_gid, w->caller) < 0) ||
	    (has_net && net_leave() < 0))
		k->is_over = true;
	if (r < 0)
		return err_errno(err, -r, "take the box's uid");
	if (b->pid < 0) {
		atomic_store(&birth.is_borrowed, 0);
		r = -b->pid;
		b->pid = 0;
		b->pidfd = NO_FD;
		return err_errno(err, r, "make namespaces for a box");
	}
	if (!has_net)
		net_hold(k, b);
	return 0;
}

static int write_proc(const struct world *w, pid_t pid, const char *file,
		      const char *text, struct err *err)
{
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
	r = io_write_file(w->proc, path, text);
	/*
	 * While an exec is under way the files of a process are root's, and
	 * an ordinary user cannot open them; soon they are its own again.
	 */
	for (int i = 0; i < EXEC_TRIES && r == -EACCES && !w->is_root; i++) {
		(void)usleep(EXEC_PAUSE_US);
		r = io_write_file(w->proc, path, text);
	}
	if (r < 0)
		return err_errno(err, -r, "write /proc/%s", path);
	return 0;
}

/*
 * One user and one group, with setgroups(2) gone for ever; or more of both, and
 * init alone may call it.
 */
static void plan_maps(const struct world *w, const struct box *b,
		      struct birth *ret)
{
	uint32_t host_gid = b->lock >= 0 ? b->host_uid : w->caller_gid;

	ret->denies_groups = !b->ids.many;
	ids_format(b, b->ids.uid, b->host_uid, ret->uid_map,
		   sizeof(ret->uid_map));
	ids_format(b, b->ids.gid, host_gid, ret->gid_map, sizeof(ret->gid_map));
}

static int map_ids(const struct world *w, const struct box *b, struct err *err)
{
	struct birth plan;

	plan_maps(w, b, &plan);
	if ((plan.denies_groups &&
	     write_proc(w, b->pid, "setgroups", "deny", err) < 0) ||
	    write_proc(w, b->pid, "uid_map", plan.uid_map, err) < 0 ||
	    write_proc(w, b->pid, "gid_map", plan.gid_map, err) < 0)
		return -err->code;
	return 0;
}

/*
 * A client of many boxes may be the front, which is not believed: its specs
 * are laid out where nothing of the host is left. It costs nothing, such boxes
 * are made ahead. Who starts us for one run could do all that we can.
 */
static struct wire_go plan_go(const struct keeper *k, const struct box *b)
{
	return (struct wire_go){ .type = WIRE_GO,
				 .uid = b->ids.uid,
				 .gid = b->ids.gid,
				 .is_many = b->ids.many,
				 .is_apart = k->is_reused,
				 .is_next = !k->is_reused && k->has_cpus };
}

static int tell_ids(const struct keeper *k, const struct box *b, bool owns_net,
		    struct err *err)
{
	struct wire_go go = plan_go(k, b);
	int r;

	go.owns_net = owns_net;
	r = io_send(b->sock, &go, sizeof(go), NULL, 0);
	if (r < 0)
		return err_errno(err, -r, "talk to init");
	return 0;
}

static int prepare_birth(struct keeper *k, struct box *b, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, errno, "make a socket for init");
	await_birth();
	b->sock = pair[0];
	birth.theirs = pair[1];
	birth.sock = pair[1];
	birth.lock = b->lock;
	birth.init = k->world.init;
	birth.box = b;
	return 0;
}

static int watch(struct keeper *k, struct box *b, struct err *err)
{
	uint64_t at = (uint64_t)(b - k->boxes);
	struct epoll_event ev = { .events = EPOLLIN };

	ev.data.u64 = at << 2 | KEEPER_EV_SOCK;
	if (epoll_ctl(k->epoll, EPOLL_CTL_ADD, b->sock, &ev) < 0)
		return err_errno(err, errno, "watch init");
	ev.data.u64 = at << 2 | KEEPER_EV_PIDFD;
	if (epoll_ctl(k->epoll, EPOLL_CTL_ADD, b->pidfd, &ev) < 0)
		return err_errno(err, errno, "watch init");
	return 0;
}

static int bear(struct keeper *k, struct box *b, struct err *err)
{
	bool owns_net = false;
	int r = clone_init(k, b, &owns_net, err);

	fd_close(&birth.theirs);
	if (r < 0)
		return r;
	keeper_moment("birth");
	/* Where they fail because there is no init, that is the reason. */
	if (map_ids(&k->world, b, err) < 0 ||
	    tell_ids(k, b, owns_net, err) < 0) {
		(void)box_born(k, b, err);
		return -err->code;
	}
	keeper_moment("ids");
	return watch(k, b, err);
}

/* Whether the midwife does it, while we go on. */
static bool bear_beside(struct keeper *k, struct box *b)
{
	birth.order = (struct birth){ .args = clone_args(k, b),
				      .run = child_main,
				      .stack = birth.stack,
				      .stack_size = sizeof(birth.stack),
				      .ignored = &birth.ignored,
				      .has_uid = b->lock >= 0,
				      .uid = b->host_uid,
				      .proc = k->world.proc,
				      .sock = b->sock,
				      .go = plan_go(k, b) };
	plan_maps(&k->world, b, &birth.order);
	atomic_store(&birth.is_borrowed, 1);
	if (midwife_bear(k, &birth.order)) {
		k->unborn = b;
		keeper_moment("birth");
		return true;
	}
	atomic_store(&birth.is_borrowed, 0);
	return false;
}

static int settle(struct keeper *k, struct err *err)
{
	const struct birth *order = &birth.order;
	struct box *b = k->unborn;

	midwife_await(k);
	k->unborn = NULL;
	fd_close(&birth.theirs);
	if (order->pid > 0) {
		b->pid = order->pid;
	} else {
		b->pidfd = NO_FD;
		atomic_store(&birth.is_borrowed, 0);
	}
	keeper_moment("ids");
	if (order->error) {
		(void)err_errno(err, order->error, "%s", order->what);
		(void)box_born(k, b, err); /* the reason, if it has one */
		return -err->code;
	}
	net_hold(k, b);
	return watch(k, b, err);
}

/* Where it failed, the next run tries again and hears why. */
void box_settle(struct keeper *k)
{
	struct box *b = k->unborn;
	struct err unused = { 0 };

	if (b && settle(k, &unused) < 0)
		box_release(k, b);
}

/* The ids and the right to them that a box before this one had. */
static int take_kept(struct box *b, const struct shelf *s, struct err *err)
{
	b->host_uid = s->host_uid;
	b->host_block = s->host_block;
	b->ids.many = s->ids.many;
	if (s->lock < 0)
		return 0;
	b->lock = fcntl(s->lock, F_DUPFD_CLOEXEC, KEEPER_FIRST_FD);
	return b->lock < 0 ? err_errno(err, errno, "keep a uid") : 0;
}

/*
 * What waits for nobody gives its block up. Where none is left it has one user,
 * as where there is none at all.
 */
static int take_ids(struct keeper *k, struct box *b, struct err *err)
{
	const struct world *w = &k->world;

	if (w->uid_count == 0 || b->ids.caller) {
		b->host_uid = w->caller;
		b->ids.many = false;
		return 0;
	}
	b->lock = uid_take(w, &b->host_uid, err);
	if (b->lock < 0)
		return b->lock;
	while (b->ids.many && block_take(w, b->lock, &b->host_block) < 0)
		b->ids.many = ahead_give_up(k) != NULL;
	return 0;
}

static int box_fill(struct keeper *k, struct box *b, const struct shelf *s,
		    struct err *err)
{
	char name[48];

	if ((s ? take_kept(b, s, err) : take_ids(k, b, err)) < 0)
		return -err->code;
	(void)snprintf(name, sizeof(name), "cordon-%s-%u", k->id, b->serial);
	cg_box_init(&b->cg, name);
	if (cg_box_make(&k->cg, &b->cg, true, err) < 0)
		return -err->code;
	keeper_moment("cgroup");
	if (prepare_birth(k, b, err) < 0)
		return -err->code;
	if (bear_beside(k, b))
		return 0;
	return bear(k, b, err);
}

/*
 * Version 1 lets a process move if its uid is that of whoever opened `tasks`,
 * or if that was root.
 */
int box_open_tasks(struct keeper *k, const struct box *b, int *ret_fds,
		   struct err *err)
{
	const struct world *w = &k->world;
	bool other = b->lock >= 0 && !w->is_root;
	int n;

	if (other && wear(w, b->host_uid, b->host_uid, w->caller) < 0)
		return err_errno(err, EPERM, "take the box's uid");
	n = cg_box_open_tasks(&k->cg, &b->cg, ret_fds, err);
	if (other && wear(w, w->caller, w->caller_gid, w->caller) < 0) {
		k->is_over = true;
		return err_errno(err, EPERM, "give the box's uid back");
	}
	return n;
}

int box_open_part(struct keeper *k, const struct box *b, uint32_t number,
		  struct cg_join *ret, struct err *err)
{
	const struct world *w = &k->world;
	bool other = b->lock >= 0 && !w->is_root;
	int r;

	if (other && wear(w, b->host_uid, b->host_uid, w->caller) < 0)
		return err_errno(err, EPERM, "take the box's uid");
	r = cg_part_open(&k->cg, &b->cg, number, ret, err);
	if (other && wear(w, w->caller, w->caller_gid, w->caller) < 0) {
		k->is_over = true;
		cg_join_close(ret);
		return err_errno(err, EPERM, "give the box's uid back");
	}
	return r;
}

static void box_clear(struct box *b)
{
	memset(b, 0, sizeof(*b));
	b->pidfd = NO_FD;
	b->sock = NO_FD;
	b->lock = NO_FD;
	b->net = NO_FD;
	b->work = NO_FD;
	b->hold = NO_FD;
	b->store = NO_FD;
	b->layer_map = NO_FD;
	b->root = NO_FD;
	b->unchanged = NO_FD;
	for (int i = 0; i < CG_ROLES; i++)
		b->cg.dir[i] = NO_FD;
}

static struct box *spawn(struct keeper *k, struct ids ids,
			 const struct shelf *s, struct err *err)
{
	int max = k->has_own_mounts ? KEEPER_BOXES : KEEPER_RUNS;
	struct box *b = NULL;

	for (int i = 0; i < max && !b; i++)
		if (k->boxes[i].state == BOX_FREE)
			b = &k->boxes[i];
	if (!b)
		b = ahead_give_up(k);
	if (b && b - k->boxes >= k->top)
		k->top = (int)(b - k->boxes) + 1;
	if (!b) {
		(void)err_set(err, EBUSY,
			      "busy: %d boxes are running already; wait for "
			      "one to end",
			      max);
		return NULL;
	}
	box_clear(b);
	b->serial = ++k->serial;
	b->ids = ids;
	b->state = BOX_PARKED;
	if (box_fill(k, b, s, err) == 0)
		return b;
	(void)err_stage(err, "spawn");
	box_release(k, b);
	return NULL;
}

struct box *box_spawn(struct keeper *k, struct ids ids, struct err *err)
{
	return spawn(k, ids, NULL, err);
}

struct box *box_spawn_again(struct keeper *k, struct ids ids,
			    const struct shelf *s, struct err *err)
{
	return spawn(k, ids, s, err);
}

void box_close_disks(const struct keeper *k, struct box *b)
{
	shed_fds(k, b->disks, b->n_disks);
	b->n_disks = 0;
	b->work = NO_FD;
}

void box_release(struct keeper *k, struct box *b)
{
	struct err unused = { 0 };

	if (k->unborn == b)
		(void)settle(k, &unused);
	if (b->pid > 0) {
		(void)sys_pidfd_kill(b->pidfd, SIGKILL);
		(void)waitpid(b->pid, NULL, 0);
	}
	fd_close(&b->pidfd);
	fd_close(&b->sock);
	if (b->stays)
		programs_end(k, b);
	box_close_disks(k, b);
	if (cg_box_remove(&k->cg, &b->cg) < 0)
		k->has_left = true;
	fd_close(&b->lock);
	layers_done(b);
	shed_fds(k, (int[]){ take_fd(&b->root), take_fd(&b->unchanged) }, 2);
	fd_close(&b->hold);
	net_keep(k, b);
	if (b->spec)
		(void)munmap((void *)b->spec, b->spec->blob.size);
	b->spec = NULL;
	b->state = BOX_FREE;
}
