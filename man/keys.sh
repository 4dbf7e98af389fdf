#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes cordon-policy.5: the template with the line @KEYS@ replaced by what
# `cordon-desk policy keys` lists, so that page and reader never differ.
#
#	keys.sh CORDON-DESK TEMPLATE OUTPUT
#
# A line is the key's path, what it takes, what it is for (" *": required).
set -eu

"$1" policy keys | awk -F '\t' -v template="$2" '
function plain(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	gsub(/\047/, "\\(aq", s)
	return s
}
NF == 3 {
	required = sub(/ \*$/, "", $3)
	list = list ".TP\n\\fB" plain($1) "\\fR" (required ? " (required)" : "") \
	       "\nTakes " plain($2) \
	       ($3 == "" ? "" : "; " plain($3)) ".\n"
	found++
}
END {
	if (found < 80)
		exit 1
	while ((getline line < template) > 0)
		if (line == "@KEYS@")
			printf "%s", list
		else
			print line
}' >"$3"
