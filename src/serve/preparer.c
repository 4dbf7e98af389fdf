/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The preparer: a child for requests of one user.
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
 * After a plain request it stays and waits for the next one of the same user:
 * who that is, the kernel says each time. What it was told before was told by
 * the same user, who could as well tell it again.
 *
 * Nothing of the daemon's surroundings goes into a box: no variable, no
 * directory that it stands in.
 */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/guard.h"
#include "box/images.h"
#include "box/prepare.h"
#include "os/uapi.h"
#include "serve/answer.h"
#include "serve/asking.h"
#include "serve/daemon.h"
#include "serve/request.h"

#define MEMORY (2ULL << 30)

/* It goes after so many requests, or when they took that long. */
#define REQUESTS   64
#define MOST_CLOCK CLOCKS_PER_SEC
#define LARGE_TEXT (64U << 10)

struct prep {
	const struct preparer *p;
	uid_t peer;
	struct sweep_who who;
	bool has_who;
	struct request request;
	const struct policy *policy; /* that decides */
	struct guard guard;
	struct prepared ready;
	struct strv warnings;
	struct strv violations; /* of a sweep */
	struct network network;
	enum refusal refused;
	int n_requests;
	bool is_large;
	pid_t librarian;                    /* 0: none is needed */
	struct rlimit limits[WIRE_RLIMITS]; /* the daemon's own */
};

/*
 * The same of a box that an earlier daemon had: who it was then, as the kernel
 * told, is under our own seal.
 */
static int find_earlier(const struct preparer *p, struct who *ret,
			struct err *err)
{
	struct sweep_who who;

	if (sweep_who_read(p->peer, p->d->sweep_key, &who, err) < 0)
		return -err->code;
	ret->uid = who.uid;
	ret->gid = who.gid;
	ret->n_groups = who.n_groups;
	for (size_t i = 0; i < who.n_groups; i++)
		ret->groups[i] = who.groups[i];
	return 0;
}

/* For the next daemon. False: that many groups are not kept. */
static bool note_who(const struct who *who, const unsigned char *key,
		     struct sweep_who *ret)
{
	*ret = (struct sweep_who){ .uid = who->uid,
				   .gid = who->gid,
				   .n_groups = (uint32_t)who->n_groups };
	if (who->n_groups > SWEEP_GROUPS)
		return false;
	for (size_t i = 0; i < who->n_groups; i++)
		ret->groups[i] = who->groups[i];
	sweep_who_seal(ret, key);
	return true;
}

static int become(const struct daemon *d, const struct who *who,
		  struct err *err)
{
	uid_t uid = who->uid;
	gid_t gid = who->gid;

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

/*
 * Hard, and before the user is taken. The user can lower them further
 * (prlimit() asks for the same uid and no more), so whatever is looked at below
 * and cannot be opened or held counts against the request: it fails, and with
 * it nobody's but the user's own.
 */
static void limit(struct prep *t)
{
	static const struct {
		int what;
		rlim_t value;
	} table[] = { { RLIMIT_AS, MEMORY },
		      { RLIMIT_CPU, 10 },
		      { RLIMIT_NOFILE, 512 },
		      { RLIMIT_FSIZE, MEMORY } };

	/* A box has no more than its keeper, and that what the daemon has. */
	for (int i = 0; i < WIRE_RLIMITS; i++)
		if (getrlimit(i, &t->limits[i]) < 0)
			t->limits[i].rlim_max = RLIM_INFINITY;
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
static int forget_surroundings(struct prep *t, uid_t uid, struct err *err)
{
	const struct daemon *d = t->p->d;
	bool is_peer = d->is_root && uid != 0;
	const struct passwd *pw;

	if (network_keep_values(&t->network, d->policy, err) < 0)
		return -err->code;
	if (clearenv() != 0 || chdir("/") < 0 ||
	    (!is_peer && setenv("CORDON_STATE_DIR", d->state, 1) < 0))
		return err_errno(err, errno, "leave the daemon's directory");
	errno = 0;
	pw = getpwuid(uid);
	if (!pw && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return err_errno(err, errno, "read '/etc/passwd'");
	if (pw && pw->pw_dir && pw->pw_dir[0] == '/' &&
	    setenv("HOME", pw->pw_dir, 1) < 0)
		return err_errno(err, errno, "set HOME");
	return 0;
}

/* ---- the request ---- */

static int read_request(struct prep *t, struct err *err)
{
	struct buf text;
	int r;

	buf_init(&text, REQUEST_MAX + 1);
	r = doc_read(t->p->request, &text, err);
	t->is_large = text.len > LARGE_TEXT;
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
	s->as_user = false;
	(void)strv_add(&t->warnings,
		       "cordon: User root is replaced by the policy's user "
		       "(sandbox.user, or 65534): "
		       "docker.allow_root_inside is false");
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

/* The daemon's, or the one under it that is named. */
static int find_policy(struct prep *t, struct err *err)
{
	int r = rules_find(t->p->d, t->request.spec->policy, &t->policy, err);

	if (r == 0)
		return 0;
	t->refused = r == -EPERM ? REFUSED_DENIED : REFUSED_INVALID;
	/* The answer tells of it all the same, for the record. */
	t->guard.given = t->request.spec;
	t->guard.policy = t->p->d->policy;
	return r;
}

static struct guard_by rules_for(struct prep *t)
{
	const struct daemon *d = t->p->d;
	const struct policy *p = t->policy;
	bool is_docker = strcmp(t->request.face, "docker") == 0;
	const char *usual = is_docker ? "deny" : "allow";

	return (struct guard_by){
		.policy = p,
		.policy_name = d->policy_name,
		.others = d->named.all,
		.policies = d->named.dir,
		.policies_name = d->named.dir_name,
		.state = d->state,
		.clamps = t->request.clamp &&
			  !says(&p->over_ceiling, "deny", "clamp"),
		.judges_rest = t->request.clamp,
		.limits = t->limits,
		.is_exec = t->request.exec,
		.may_not_mount = !d->is_root && t->peer != geteuid(),
		.refuses_links = says(&p->bind_symlinks, "deny", usual),
		.refuses_pipes = is_docker ||
				 !says(&p->bind_symlinks, "allow", usual),
		.sweeps_links = says(&p->bind_symlinks, "sweep", usual),
	};
}

static int judge_once(struct prep *t, struct err *err)
{
	const struct guard_by by = rules_for(t);
	int r = guard_judge_by(t->request.spec, &by, &t->guard, err);

	t->guard.by = NULL; /* it ends here */
	return r;
}

/* A person may take long: what was said yes to is judged once more. */
static int ask_and_judge(struct prep *t, struct err *err)
{
	struct asking a = { .sock = t->p->sock,
			    .is_short = strcmp(t->request.face, "docker") ==
					0 };
	int r;

	if (t->guard.verdict.decision != DECISION_ASK)
		return 0;
	r = asking_judge(&a, &t->guard, &t->request, err);
	if (r < 0)
		return r;
	guard_done(&t->guard);
	r = judge_once(t, err);
	return r < 0 ? r : asking_judge(&a, &t->guard, &t->request, err);
}

static int judge(struct prep *t, struct err *err)
{
	struct cordon_spec *s = t->request.spec;
	uint64_t total;
	int r;

	r = find_policy(t, err);
	if (r < 0)
		return r;
	turn_from_root(t, t->policy);
	total = take_times(s);
	s->is_peer = t->p->d->is_root && t->peer != 0;
	r = judge_once(t, err);
	if (r == 0)
		r = ask_and_judge(t, err);
	if (r < 0) {
		t->refused = t->guard.refused;
		return r;
	}
	if (t->guard.spec->timeout_us && !t->guard.spec->total_us)
		t->guard.spec->total_us = total;
	r = network_open(&t->network, &t->request, &t->guard, err);
	if (r < 0)
		t->refused = t->guard.refused;
	return r;
}

static int make_blobs(struct prep *t, struct err *err)
{
	const struct cordon_spec *s = t->guard.spec;
	int r = t->request.exec       ? prepare_work(s, &t->ready, err)
		: t->request.box_only ? prepare_box(s, &t->ready, err)
				      : prepare(s, &t->ready, err);

	if (r < 0)
		t->refused = t->ready.refused;
	return r < 0 ? r : network_start(&t->network, err);
}

static void reply(struct prep *t, bool stays, struct err *err)
{
	struct order_answer a = { .type = ORDER_ANSWER,
				  .stays = stays,
				  .refused = (int32_t)t->refused,
				  .exit_code = t->ready.exit_code,
				  .err = *err };
	const struct answer doc = { .request = &t->request,
				    .guard = &t->guard,
				    .prepared = &t->ready,
				    .warnings = &t->warnings,
				    .network = &t->network,
				    .refused = t->refused,
				    .why = err,
				    .peer = (int64_t)t->peer,
				    .key = t->p->d->sweep_key,
				    .who = t->has_who ? &t->who : NULL };
	_cleanup_fd_ int fd = NO_FD;
	struct err why = { 0 };
	struct buf text = { 0 };
	int fds[5];
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
		if (t->network.egress.is_open && !err->code) {
			a.has_gate = true;
			fds[n++] = t->network.egress.sock;
			fds[n++] = t->network.egress.box;
		}
		if (fd >= 0)
			fds[n++] = fd;
	}
	if (answer_send(t->p->sock, &a, fds, n) < 0)
		_exit(1);
}

/* The order, with the request and the connection on which it came. */
static int take_order(struct preparer *p, struct err *err)
{
	struct order o;
	int fds[IO_MAX_FDS];
	int n = 0;
	ssize_t len = io_recv(p->sock, &o, sizeof(o), 0, fds, &n);

	/* Nobody will ever ask. */
	if (len == 0)
		_exit(0);
	if (len != sizeof(o) || n != 2)
		return err_set(err, EPROTO, "an order has another form");
	p->request = fds[0];
	p->peer = fds[1];
	p->is_late = o.type == ORDER_SWEEP;
	return 0;
}

static int find_who(const struct preparer *p, struct who *ret, struct err *err)
{
	return p->is_late ? find_earlier(p, ret, err)
			  : who_find(p->d, p->peer, ret, err);
}

/* For good; nothing of a request has been read. */
static int settle_as(struct prep *t, const struct who *who, pid_t parent,
		     struct err *err)
{
	const struct daemon *d = t->p->d;

	t->peer = who->uid;
	t->has_who = note_who(who, d->sweep_key, &t->who);
	/* The store is root's: somebody must stay who may read it. */
	if (d->is_root && t->peer != 0 && !t->p->is_late) {
		t->librarian = images_librarian(err);
		if (t->librarian < 0)
			return -err->code;
	}
	limit(t);
	if (become(d, who, err) < 0)
		return -err->code;
	if (child_settle(parent) < 0)
		return err_set(err, EPERM, "shut the preparer in");
	return forget_surroundings(t, t->peer, err);
}

/* What is somebody already works for nobody else. */
static int wait_as(struct preparer *p, struct err *err)
{
	static struct who now;

	if (take_order(p, err) < 0 || find_who(p, &now, err) < 0)
		return -err->code;
	if (p->is_late || !who_is_same(p->who, &now))
		return err_set(err, EPROTO, "this is somebody else's request");
	return 0;
}

static int begin_as(struct preparer *p, struct prep *t, pid_t parent,
		    struct err *err)
{
	static struct who who;

	if (take_order(p, err) < 0 || find_who(p, &who, err) < 0 ||
	    settle_as(t, &who, parent, err) < 0)
		return -err->code;
	p->who = &who;
	return 0;
}

static int prepare_all(struct preparer *p, struct prep *t, pid_t parent,
		       struct err *err)
{
	const struct daemon *d = p->d;

	if ((p->who ? wait_as(p, err) : begin_as(p, t, parent, err)) < 0 ||
	    read_request(t, err) < 0)
		return -err->code;
	if (p->is_late && !t->request.is_sweep)
		return err_set(err, EPERM,
			       "for who is not connected nothing is begun");
	if (t->request.is_sweep) {
		t->request.is_late = p->is_late;
		sweep_all(&t->request, d->sweep_key, (int64_t)t->peer,
			  &t->violations);
		return 0;
	}
	if (judge(t, err) < 0)
		return -err->code;
	return make_blobs(t, err);
}

/*
 * The parent was woken where we are, takes the answer and ends us: nobody
 * waits for that any more, so it interrupts nobody.
 */
static void wait_for_end(int sock)
{
	const struct sched_param none = { 0 };
	char byte;

	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	(void)recv(sock, &byte, 1, 0);
}

/*
 * A plain request leaves nothing behind: nobody was asked, nobody else was
 * started for it, and it was small.
 */
static bool is_plain(const struct prep *t)
{
	const struct cordon_spec *s = t->guard.spec;

	return s && !s->has_network && !t->request.has_gate &&
	       !t->guard.was_asked &&
	       t->guard.verdict.decision != DECISION_ASK && !t->is_large &&
	       t->librarian == 0 && !t->p->is_late && clock() < MOST_CLOCK;
}

static void forget(struct preparer *p, struct prep *t)
{
	/* Who takes the answer may be waiting for this CPU. */
	(void)sched_yield();
	guard_done(&t->guard);
	request_done(&t->request);
	prepared_done(&t->ready);
	strv_done(&t->warnings);
	t->refused = REFUSED_NOT;
	(void)sys_close_range((unsigned int)p->sock + 1, ~0U);
}

/* Prepares one; whether another may follow. */
static bool prepare_one(struct preparer *p, struct prep *t, pid_t parent)
{
	struct err err = { 0 };
	bool stays;

	(void)prepare_all(p, t, parent, &err);
	stays = ++t->n_requests < REQUESTS && is_plain(t);
	reply(t, stays, &err);
	if (stays)
		forget(p, t);
	return stays;
}

void preparer_run(struct preparer *p)
{
	static struct prep t;
	struct err err = { 0 };
	/* Our parent may die before we have said that we want to as well. */
	pid_t parent = getppid();

	t.p = p;
	network_init(&t.network, p->sock);
	t.ready.box = NO_FD;
	t.ready.work = NO_FD;
	if (p->who && settle_as(&t, p->who, parent, &err) < 0)
		_exit(1);
	while (prepare_one(p, &t, parent))
		;
	/* It ends with its socket, and is not left to whoever reaps here. */
	(void)sys_close_range((unsigned int)p->sock + 1, ~0U);
	if (t.librarian > 0)
		(void)waitpid(t.librarian, NULL, 0);
	wait_for_end(p->sock);
	_exit(0);
}
