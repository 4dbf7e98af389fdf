/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of set-up, as tables.
 *
 * In a test build (CORDON_TEST_BUILD) the environment may name a stage to
 * skip, to fail or to die after; that is how the tests show that each layer
 * holds alone, and that a failure anywhere starts nothing and leaves nothing.
 * An ordinary build has none of this.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "init/init.h"

struct stage {
	const char *name;
	init_stage_fn *run;
};

/*
 * Should: end with nothing of the host in reach.
 * Mustn't: depend on what will run.
 */
static const struct stage own[] = {
	{ "user", stage_user }, /* from here on the box's own uid */
	{ "identity", stage_identity },
	{ "proc", stage_proc },
	{ "enter", stage_enter }, /* from here on no path leads to the host */
};

/*
 * Should: make what the spec alone tells.
 * Mustn't: follow a path of the host.
 */
static const struct stage root[] = {
	{ "name", stage_name },
	{ "net", stage_net },
	{ "root", stage_root },
};

/*
 * Should: complete the root and let go of the one before it.
 * Mustn't: open a path of the host; what comes from there arrives as a
 * descriptor.
 */
static const struct stage box[] = {
	{ "mounts", stage_mounts },
	{ "terminals", stage_terminals },
	{ "leave", stage_leave }, /* from here on nothing is of the host */
	{ "freeze", stage_freeze },
};

/*
 * Should: go from most rights to none.
 * Mustn't: give up a right before its last use.
 */
static const struct stage wall[] = {
	{ "groups", stage_groups }, /* from here on limited */
	{ "tty", stage_tty },
	{ "limits", stage_limits },
	{ "landlock", stage_landlock },
	{ "caps", stage_caps }, /* from here on no right is left */
	{ "seccomp", stage_seccomp },
};

/*
 * Should: do what the program itself could do, as its user, behind the wall.
 * Mustn't: need any right.
 */
static const struct stage work[] = {
	{ "gate", stage_gate }, /* from here on nothing of the gate is here */
	{ "files", stage_files },
	{ "workdir", stage_workdir },
};

static const struct {
	const struct stage *stages;
	size_t n;
} tables[] = {
	[STAGES_OWN] = { own, ARRAY_SIZE(own) },
	[STAGES_ROOT] = { root, ARRAY_SIZE(root) },
	[STAGES_BOX] = { box, ARRAY_SIZE(box) },
	[STAGES_WALL] = { wall, ARRAY_SIZE(wall) },
	[STAGES_WORK] = { work, ARRAY_SIZE(work) },
};

#ifdef CORDON_TEST_BUILD
static bool is_named(const char *variable, const char *name)
{
	const char *value = getenv(variable);

	return value && strcmp(value, name) == 0;
}

static int run_hooked(const struct stage *s, struct init *in)
{
	int r;

	if (is_named("CORDON_TEST_SKIP", s->name))
		return 0;
	if (is_named("CORDON_TEST_FAIL", s->name))
		return err_set(&in->err, EIO, "made to fail by the test");
	r = s->run(in);
	if (is_named("CORDON_TEST_DIE", s->name))
		_exit(70);
	return r;
}
#else
static int run_hooked(const struct stage *s, struct init *in)
{
	return s->run(in);
}
#endif

int stages_run(struct init *in, enum stage_table table)
{
	const struct stage *stages = tables[table].stages;

	for (size_t i = 0; i < tables[table].n; i++)
		if (run_hooked(&stages[i], in) < 0)
			return err_stage(&in->err, stages[i].name);
	return 0;
}
