/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The posture of a box: every row of the table of attacks P01 to P55, each
 * test named by its row, in a real default box, with the same probe run
 * outside as the control. Rows without a test are in
 * docs/security/residuals.md.
 *
 * One program, in parts by what they look at; tap.h keeps its list of tests
 * in one file, so the parts are included here.
 */

#include <grp.h>

#include "posture.h"

#include "posture-process.h"

#include "posture-calls.h"

#include "posture-host.h"

#include "posture-layers.h"

TAP_MAIN()
