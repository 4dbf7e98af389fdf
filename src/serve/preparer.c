/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The preparer: a child for one request.
 *
 * Theory of operation. The front hands over the request and the connection on
 * which it came. Who is at its other end, the kernel says; the connection must
 * be one that was accepted on a socket of ours, since of others (the front's
 * own listener, its socket to the parent) the kernel would name root. Then
 * this process becomes that user, for good, and only now reads what the user
 * wrote. It executes nothing afterwards and cannot be traced, so that the user
 * cannot change what it says; killing it is all the user can do, and that ends
 * the user's own request.
 *
 * Nothing of the daemon's surroundings goes into a box: no variable, no
 * directory that it stands in.
 */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/guard.h"
#include "box/images.h"
#include "box/prepare.h"
#include "os/uapi.h"
#include "serve/answer.h"
#include "serve/daemon.h"
#include "serve/request.h"

#define MAX_GROUPS 1024
#define MEMORY     (2ULL << 30)

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

struct who {
	struct ucred cred;
	gid_t groups[MAX_GROUPS];
	size_t n_groups;
};

static bool has_option(int sock, int name, int want)
{
	int have = -1;
	socklen_t len = sizeof(have);

	return getsockopt(sock, SOL_SOCKET, name, &have, &len) == 0 &&
	       have == want;
}

/*
 * The other end of a connection that somebody made has a listener's name; and
 * of that the kernel would say who listens.
 */
static bool is_connected(int sock)
{
	struct sockaddr_un a;
	socklen_t len = sizeof(a);

	return getpeername(sock, (struct sockaddr *)&a, &len) == 0 &&
	       len > sizeof(a.sun_family);
}

/* A connection that was accepted on one of our sockets. */
static bool is_ours(const struct daemon *d, int sock)
{
	struct sockaddr_un a = { 0 };
	socklen_t len = sizeof(a) - 1;

	if (!has_option(sock, SO_DOMAIN, AF_UNIX) ||
	    !has_option(sock, SO_TYPE, SOCK_STREAM) ||
	    !has_option(sock, SO_ACCEPTCONN, 0) || is_connected(sock) ||
	    getsockname(sock, (struct sockaddr *)&a, &len) < 0 ||
	    !a.sun_path[0])
		return false;
	return strcmp(a.sun_path, d->own.path) == 0 ||
	       strcmp(a.sun_path, d->docker.path) == 0;
}

static int find_peer(const struct daemon *d, int sock, struct who *ret,
		     struct err *err)
{
	socklen_t len = sizeof(ret->cred);

	if (!is_ours(d, sock))
		return err_set(err, EPROTO,
			       "that is not a connection to this daemon");
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &ret->cred, &len) < 0 ||
	    ret->cred.uid == (uid_t)-1 || ret->cred.gid == (gid_t)-1)
		return err_errno(err, errno, "ask who is there");
	len = sizeof(ret->groups);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, ret->groups, &len) < 0)
		return err_errno(err, errno,
				 "ask for the groups of who is "
				 "there");
	ret->n_groups = len / sizeof(gid_t);
	return 0;
}

static int become(const struct daemon *d, const struct who *who,
		  struct err *err)
{
	uid_t uid = who->cred.uid;
	gid_t gid = who->cred.gid;

	if (!d->is_root || uid == 0)
		return 0;
	if (setgroups(who->n_groups, who->groups) < 0 ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_errno(err, errno, "become uid %u",
				 (unsigned int)uid);
	if (geteuid() != uid || setuid(0) == 0)
		return err_set(err, EPERM, "uid %u could not be taken for good",
			       (unsigned int)uid);
	return 0;
}

static void limit(void)
{
	static const struct {
		int what;
		rlim_t value;
	} table[] = { { RLIMIT_AS, MEMORY },
		      { RLIMIT_CPU, 10 },
		      { RLIMIT_NOFILE, 512 },
		      { RLIMIT_FSIZE, MEMORY } };

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct rlimit r;

		if (getrlimit(table[i].what, &r) < 0)
			continue;
		r.rlim_max = MIN(r.rlim_max, table[i].value);
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(table[i].what, &r);
	}
}

/*
 * The home of who asks is what the guard must know; and where images are, for
 * one who can read them. Nothing else.
 */
static int forget_surroundings(const struct daemon *d, uid_t uid,
			       struct err *err)
{
	bool is_peer = d->is_root && uid != 0;
	const struct passwd *pw;

	if (clearenv() != 0 || chdir("/") < 0 ||
	    (!is_peer && setenv("CORDON_STATE_DIR", d->state, 1) < 0))
		return err_errno(err, errno, "leave the daemon's directory");
	pw = getpwuid(uid);
	if (pw && pw->pw_dir && pw->pw_dir[0] == '/' &&
	    setenv("HOME", pw->pw_dir, 1) < 0)
		return err_errno(err, errno, "set HOME");
	return 0;
}

/* ---- the request ---- */

struct prep {
	const struct preparer *p;
	uid_t peer;
	struct request request;
	struct guard guard;
	struct prepared ready;
	struct strv warnings;
	struct strv violations; /* of a sweep */
	enum refusal refused;
	pid_t librarian; /* 0: none is needed */
};

static int read_request(struct prep *t, struct err *err)
{
	struct buf text;
	int r;

	buf_init(&text, REQUEST_MAX + 1);
	r = doc_read(t->p->request, &text, err);
	if (r == 0) {
		r = request_parse(text.data, text.len, &t->request, err);
		if (r < 0)
			t->refused = REFUSED_INVALID;
	}
	buf_done(&text);
	return r;
}

static bool says(const struct policy_word *w, const char *text,
		 const char *other)
{
	return strcmp(w->text ? w->text : other, text) == 0;
}

/* Docker's images are made for root; a box's user is not, unless said. */
static void turn_from_root(struct prep *t, const struct policy *p)
{
	struct cordon_spec *s = t->request.spec;

	if (strcmp(t->request.face, "docker") != 0 || s->uid != 0 ||
	    !(s->stated & SPEC_STATED_USER) || s->image ||
	    says(&p->allow_root_inside, "true", "false"))
		return;
	s->stated &= ~SPEC_STATED_USER;
	s->uid = 65534;
	s->gid = 65534;
	(void)strv_add(&t->warnings,
		       "user root is replaced by the box's ordinary one: the "
		       "policy has no 'docker.allow_root_inside: true'");
}

/* What stays has no end of time of its own; a policy can give it one. */
static uint64_t take_times(struct cordon_spec *s)
{
	uint64_t total = s->total_us;

	s->stays = true;
	if (!(s->stated & 1U << POLICY_TIMEOUT)) {
		s->timeout_us = 0;
		s->total_us = 0;
	}
	return total;
}

static struct guard_by rules_for(struct prep *t)
{
	const struct daemon *d = t->p->d;
	const struct policy *p = d->policy;
	bool is_docker = strcmp(t->request.face, "docker") == 0;
	bool no_links = !says(&p->bind_symlinks, "allow",
			      is_docker ? "deny" : "allow");

	if (no_links && says(&p->bind_symlinks, "sweep", ""))
		(void)strv_add(&t->warnings,
			       "docker.bind_symlinks 'sweep' is not in this "
			       "build: links are refused as by 'deny'");
	return (struct guard_by){
		.policy = p,
		.policy_name = d->policy_name,
		.state = d->state,
		.clamps = t->request.clamp &&
			  !says(&p->over_ceiling, "deny", "clamp"),
		.is_exec = t->request.exec,
		.may_not_mount = !d->is_root && t->peer != geteuid(),
		.refuses_links = no_links,
	};
}

static int judge(struct prep *t, struct err *err)
{
	const struct guard_by by = rules_for(t);
	struct cordon_spec *s = t->request.spec;
	uint64_t total;
	int r;

	turn_from_root(t, by.policy);
	total = take_times(s);
	s->is_peer = t->p->d->is_root && t->peer != 0;
	r = guard_judge_by(s, &by, &t->guard, err);
	t->guard.by = NULL; /* it ends here */
	if (r < 0) {
		t->refused = t->guard.refused;
		return r;
	}
	if (t->guard.spec->timeout_us && !t->guard.spec->total_us)
		t->guard.spec->total_us = total;
	if (t->guard.verdict.decision != DECISION_ASK)
		return 0;
	t->refused = REFUSED_DENIED;
	return err_set(err, EPERM,
		       "a person must be asked (%.300s), and the daemon asks "
		       "nobody; 'cordon run' does",
		       t->guard.verdict.why);
}

static int make_blobs(struct prep *t, struct err *err)
{
	const struct cordon_spec *s = t->guard.spec;
	int r = t->request.exec       ? prepare_work(s, &t->ready, err)
		: t->request.box_only ? prepare_box(s, &t->ready, err)
				      : prepare(s, &t->ready, err);

	if (r < 0)
		t->refused = t->ready.refused;
	return r;
}

static void reply(struct prep *t, struct err *err)
{
	struct order_answer a = { .type = ORDER_ANSWER,
				  .refused = (int32_t)t->refused,
				  .exit_code = t->ready.exit_code,
				  .err = *err };
	const struct answer doc = { .request = &t->request,
				    .guard = &t->guard,
				    .prepared = &t->ready,
				    .warnings = &t->warnings,
				    .refused = t->refused,
				    .why = err,
				    .peer = (int64_t)t->peer,
				    .key = t->p->d->sweep_key };
	_cleanup_fd_ int fd = NO_FD;
	struct err why = { 0 };
	struct buf text = { 0 };
	int fds[3];
	int n = 0;

	/* A request that cannot be read has no document to answer with. */
	if (t->guard.given && (!err->code || t->refused) &&
	    answer_make(&doc, &text, &why) == 0)
		fd = doc_seal(&text, &why);
	else if (t->request.is_sweep && !err->code &&
		 answer_sweep(&t->violations, &text, &why) == 0)
		fd = doc_seal(&text, &why);
	if (why.code) {
		a.err = why;
		a.refused = REFUSED_NOT;
	} else {
		if (t->ready.box >= 0 && !err->code)
			fds[n++] = t->ready.box;
		if (t->ready.work >= 0 && !err->code)
			fds[n++] = t->ready.work;
		if (fd >= 0)
			fds[n++] = fd;
	}
	if (answer_send(t->p->sock, &a, fds, n) < 0)
		_exit(1);
}

static int prepare_all(struct prep *t, struct err *err)
{
	static struct who who;
	const struct daemon *d = t->p->d;
	/* Our parent may die before we have said that we want to as well. */
	pid_t parent = getppid();

	if (find_peer(d, t->p->peer, &who, err) < 0)
		return -err->code;
	t->peer = who.cred.uid;
	/* The store is root's: somebody must stay who may read it. */
	if (d->is_root && t->peer != 0) {
		t->librarian = images_librarian(err);
		if (t->librarian < 0)
			return -err->code;
	}
	limit();
	if (become(d, &who, err) < 0)
		return -err->code;
	if (child_settle(parent) < 0)
		return err_set(err, EPERM, "shut the preparer in");
	if (forget_surroundings(d, t->peer, err) < 0 ||
	    read_request(t, err) < 0)
		return -err->code;
	if (t->request.is_sweep) {
		sweep_all(&t->request, d->sweep_key, (int64_t)t->peer,
			  &t->violations);
		return 0;
	}
	if (judge(t, err) < 0)
		return -err->code;
	return make_blobs(t, err);
}

void preparer_run(const struct preparer *p)
{
	static struct prep t;
	struct err err = { 0 };

	t.p = p;
	t.ready.box = NO_FD;
	t.ready.work = NO_FD;
	(void)prepare_all(&t, &err);
	reply(&t, &err);
	/* It ends with its socket, and is not left to whoever reaps here. */
	(void)sys_close_range(3, ~0U);
	if (t.librarian > 0)
		(void)waitpid(t.librarian, NULL, 0);
	_exit(0);
}
