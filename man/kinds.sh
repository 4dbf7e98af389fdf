#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes cordon-ledger.5: the template with the line @KINDS@ replaced by what
# `cordon-desk audit schema --man` lists.
#
#	kinds.sh CORDON-DESK TEMPLATE OUTPUT
set -eu

list=$("$1" audit schema --man --dir /)
[ "$(printf '%s\n' "$list" | grep -c '^\.SS ')" -ge 10 ]
while IFS= read -r line; do
	if [ "$line" = "@KINDS@" ]; then
		printf '%s\n' "$list"
	else
		printf '%s\n' "$line"
	fi
done <"$2" >"$3"
