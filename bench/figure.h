/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A figure and its bar, as a line of tab-separated values: what, figure, unit,
 * bar ("-": none). What does not hold its bar is remembered for the exit code.
 */

#include <stdbool.h>
#include <stdio.h>

enum bar { NO_BAR, AT_LEAST, AT_MOST };

static bool figure_failed;

static inline void figure(const char *what, double value, const char *unit,
			  enum bar kind, double bar)
{
	printf("%s\t%.*f\t%s\t", what, value < 10 ? 2 : 0, value, unit);
	if (kind == NO_BAR)
		(void)puts("-");
	else
		printf("%s %.*f\n", kind == AT_LEAST ? "at least" : "at most",
		       bar < 10 ? 2 : 0, bar);
	(void)fflush(stdout);
	if ((kind == AT_LEAST && value < bar) ||
	    (kind == AT_MOST && value > bar))
		figure_failed = true;
}
