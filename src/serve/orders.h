/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the front asks of the parent and of the clerk (docs/daemon.md).
 *
 * Both are SOCK_SEQPACKET sockets that the front is born with. A message is a
 * fixed structure and descriptors; documents travel in sealed memfds. Each
 * order has a number of the front's choice and gets exactly one answer, in any
 * order. Who breaks the form is cut off.
 */

#include <stdint.h>

#include "base/err.h"

/* Descriptors that the front is started with; listeners may be missing. */
enum {
	FRONT_FD_PARENT = 3,
	FRONT_FD_CLERK,
	FRONT_FD_KEEPER,
	FRONT_FD_STATE,  /* its own directory */
	FRONT_FD_OWN,    /* listening: the own socket */
	FRONT_FD_DOCKER, /* listening: Docker's */
	FRONT_FDS,
};

enum order_type {
	/*
	 * fds: the request (JSON, below), the peer's connection.
	 * Answer, if err.code is 0: fds box, work, with `has_gate` two sockets
	 * of the box's gate (the client's end, and init's), and the answer
	 * (JSON), less what was not wanted. With `refused` the answer alone,
	 * and not even that where the request could not be read; err says why
	 * in any case.
	 */
	ORDER_PREPARE = 1,
	/*
	 * A request with `sweep` of a box of an earlier front: instead of a
	 * connection comes `who` of the answer by which the box was made, its
	 * hexadecimal digits turned into bytes.
	 */
	ORDER_SWEEP,
	/*
	 * Runs cordon-image: fds: its arguments (NUL-terminated strings, one
	 * after the other; the first is the sub-command, of a fixed list),
	 * stdin, stdout, stderr, and the connection on which the request
	 * came: names are changed for who is at its other end. Answer when it
	 * ended: exit_code.
	 */
	ORDER_IMAGE,
	/* Front: it takes connections. No answer. */
	ORDER_READY,
	/* Parent: stop taking work, end all boxes, then say DRAINED. */
	ORDER_DRAIN,
	ORDER_DRAINED,
	/* Parent: the policy was read again; fd: a note for people (JSON). */
	ORDER_POLICY,
	/*
	 * To the clerk. fds: the members of the record (a JSON object). `kind`
	 * is one of ledger/kinds.h. Answer when it is on the disk, or why not.
	 */
	ORDER_RECORD,
	/*
	 * To the clerk: where the ledger ends now; the answer's `position`.
	 */
	ORDER_WHERE,
	/*
	 * To the clerk, of a run that an earlier front began. fds: the members
	 * of its run.end. With `from`, the clerk looks from that position on:
	 * where the ledger has an end of the run already, nothing is recorded,
	 * and neither is of one that may be new and has no start there;
	 * `settled` says so.
	 */
	ORDER_SETTLE,
	/* Parent or clerk: the answer. */
	ORDER_ANSWER,
	/*
	 * Parent: a person is asked about the request with this number. Its
	 * answer may take long, and it counts no longer as one that is being
	 * prepared.
	 */
	ORDER_ASKED,
	/*
	 * Front: nobody waits any more for the answer to that number, for
	 * which a person was asked. It comes all the same, and says ECANCELED
	 * unless it was on its way. Of other numbers nothing.
	 */
	ORDER_CANCEL,
	/*
	 * Preparer, to the parent (struct gate_want): fds two sockets for a
	 * gate, which the parent starts and answers with a struct ask_end.
	 */
	ORDER_GATE,
	/*
	 * Front: the gate of the answer to that number is to be gone. No
	 * answer.
	 */
	ORDER_GATE_END,
};

struct order {
	uint32_t type;
	uint32_t number;
	char kind[32];       /* ORDER_RECORD */
	char run[40];        /* ORDER_SETTLE: its id, and the rest zeros */
	uint32_t may_be_new; /* ORDER_SETTLE: it may not even have a start */
	uint64_t from;       /* ORDER_SETTLE; 0: there is nothing to be found */
};

enum settled {
	SETTLED_NOW,    /* it was recorded */
	SETTLED_BEFORE, /* it has an end: exit_code, cause */
	SETTLED_NEVER,  /* it did not begin */
};

struct order_answer {
	uint32_t type; /* ORDER_ANSWER */
	uint32_t number;
	int32_t refused; /* enum refusal of box/prepare.h */
	int32_t exit_code;
	int32_t settled; /* enum settled */
	char cause[16];
	uint32_t has_gate; /* ORDER_PREPARE */
	uint32_t stays;    /* ... the preparer, for another order */
	uint64_t position; /* of the clerk: where the ledger ends */
	struct err err;
};

/*
 * The request of ORDER_PREPARE, an object with these members:
 *
 *	settings  object, as cordon_spec_set_json() takes it: memory, cpus,
 *	          pids_limit, volumes, tmpfs, env, user, workdir, image,
 *	          entrypoint, hostname, labels, name, tty, interactive ...
 *	command   list of strings; with an image, what replaces its Cmd
 *	code      list of {language, code, filename}
 *	stdin     what it reads: "SIZE SHA256" in digits, or "open"
 *	run       the run's id, 32 hex digits, for the record
 *	box       the box's id, for the record
 *	face      "docker", "cordon", ...: for the record
 *	clamp     true: numbers above the policy's ceiling are lowered
 *	exec      true: a further program in a box that was prepared with the
 *	          same settings; only `work` is wanted, and volumes are not
 *	          looked at again
 *	programs  with exec: those of the answer for the box, if it had any. A
 *	          person is not asked about what is not there
 *	box_only  true: only `box` is wanted, and there need be no command
 *	gate      with exec: `env` and `trust` of the answer's for the box
 *	sweep     the `watches` of an earlier answer, when that box is dead;
 *	          goes with run, box and face alone. No blobs are made, and the
 *	          answer's document is {violations: list of strings}
 *
 * The answer's document has three lines, each JSON. The second is the
 * effective spec, as `cordon run --dry-run` prints it, and in it: image_id,
 * image, command (after merging with the image). The third has the members of
 * the run.start record, complete. The first:
 *
 *	image     its name
 *	warnings  list of strings
 *	clamped   list of {name, asked, given}
 *	decision, rule, reason
 *	asked     true: a person said yes, to this once
 *	programs  list of names: only these are in the box
 *	keep_output  the policy wants the text of its output on the record
 *	docker    the policy's settings of the Docker face, each with its
 *	          value in force: over_ceiling, allow_root_inside,
 *	          bind_symlinks, exec {on_disconnect, children, shims,
 *	          max_output (bytes or null)}, log_max (bytes)
 *	watches   list of {source, dev, ino, missing, since, clock, seal}:
 *	          writable volumes, to be swept when the box is dead (sweep.h)
 *	who       whose they are, sealed; where there are watches (sweep.h)
 *	gate      of a box with a way out: {rules, where each stands; env,
 *	          placeholders of secrets, NAME=VALUE; trust, true: it has the
 *	          authority of its gate}
 *	message   why it was refused
 *
 * The note of ORDER_POLICY, which comes once before any answer and after each
 * SIGHUP: file, sha256, time (seconds), docker.
 */
