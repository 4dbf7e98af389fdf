/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of set-up, in one table.
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
 * Should: see only the keeper's empty mount namespace and the new procfs.
 * Mustn't: need the spec, or touch anything that depends on it.
 */
static const struct stage early[] = {
	{ "proc", stage_proc },
};

/*
 * Should: go from most rights to none, each right given up after its last
 * use. Mustn't: open a path of the host; what comes from there arrives as a
 * descriptor.
 */
static const struct stage rest[] = {
	{ "user", stage_user },		/* from here on the box's own uid */
	{ "identity", stage_identity },
	{ "root", stage_root },
	{ "mounts", stage_mounts },
	{ "files", stage_files },
	{ "enter", stage_enter },	/* from here on no host path exists */
	{ "tty", stage_tty },
	{ "limits", stage_limits },
	{ "landlock", stage_landlock },
	{ "caps", stage_caps },		/* from here on no right is left */
	{ "seccomp", stage_seccomp },
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

static int run_table(const struct stage *table, size_t n, struct init *in)
{
	for (size_t i = 0; i < n; i++)
		if (run_hooked(&table[i], in) < 0)
			return err_stage(&in->err, table[i].name);
	return 0;
}

int stages_run_early(struct init *in)
{
	return run_table(early, ARRAY_SIZE(early), in);
}

int stages_run(struct init *in)
{
	return run_table(rest, ARRAY_SIZE(rest), in);
}
