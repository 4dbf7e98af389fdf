/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/box-commands.h"

#include "base/util.h"

bool box_command(size_t i, const char **ret_name, struct opts *ret)
{
	static const struct {
		const char *name;
		const struct opts *opts;
	} table[] = {
		{ "ps", &ps_opts },         { "exec", &exec_opts },
		{ "logs", &log_opts },      { "cp", &cp_opts },
		{ "attach", &attach_opts }, { "inspect", &inspect_opts },
		{ "top", &top_opts },       { "stats", &stats_opts },
		{ "rename", &rename_opts },
	};

	if (i >= ARRAY_SIZE(table))
		return life_opts(i - ARRAY_SIZE(table), ret_name, ret);
	*ret_name = table[i].name;
	*ret = *table[i].opts;
	return true;
}
