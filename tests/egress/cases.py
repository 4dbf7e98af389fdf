#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on the way out of a box, each by the id of its class, in the
laboratory (lab.py), with controls that show that the way would be there.

    tests/egress/lab.py tests/egress/cases.py [ID...]

CORDON_BUILD names the build. Prints TAP."""

import common
import reach  # noqa: F401
import names  # noqa: F401
import web  # noqa: F401
import limits  # noqa: F401
import hidden  # noqa: F401
import leaks  # noqa: F401
import clients  # noqa: F401

common.main()
