#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes cordon-run.1: the template with the line @FLAGS@ replaced by what
# `cordon run --help` lists, so that page and program never differ.
#
#	flags.sh CORDON TEMPLATE OUTPUT
#
# A line of the help is two spaces, the flag in 32 columns, a space, the text.
set -eu

help=$("$1" run --help)
printf '%s\n' "$help" | awk -v template="$2" '
function plain(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	sub(/^[.\047]/, "\\\\\\&&", s)
	return s
}
/^  (-.,|   ) --/ {
	flag = substr($0, 3, 32)
	if (substr($0, 35, 1) != " " || substr($0, 36) == "") {
		print "flags.sh: cannot read: " $0 > "/dev/stderr"
		exit bad = 1
	}
	gsub(/^ +| +$/, "", flag)
	n = split(flag, word, " ")
	out = ""
	for (i = 1; i <= n; i++)
		out = out (i > 1 ? " " : "") \
		      (word[i] ~ /^-/ ? "\\fB" : "\\fI") plain(word[i]) "\\fR"
	list = list ".TP\n" out "\n" plain(substr($0, 36)) "\n"
	found++
}
END {
	if (bad || found < 10)
		exit 1
	while ((getline line < template) > 0)
		if (line == "@FLAGS@")
			printf "%s", list
		else
			print line
}' > "$3"
