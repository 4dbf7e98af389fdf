/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How long a task may run at a time before another one's turn comes, not how
 * much it gets. Who asks for little at a time is let in earlier when it wakes
 * up, before the turn of who runs is over (Linux 6.12 and later; before it all
 * have the same, and these do nothing).
 */

/* For who works in short pieces for which others wait. Children inherit it. */
void slice_short(void);
/* What the kernel gives, again. */
void slice_usual(void);
