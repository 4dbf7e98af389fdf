#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes cordon.1: the template with each line @WORDS NAME@ replaced by the
# sub-commands of `cordon NAME` as `cordon-desk words` lists them, so that
# page and program never differ.
#
#	words.sh DESK TEMPLATE OUTPUT
#
# A line of the list is command, sub-command, what it takes, what it does.
set -eu

list=$("$1" words)
printf '%s\n' "$list" | awk -F '\t' -v template="$2" '
function plain(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	return s
}
NF != 4 || $4 == "" {
	print "words.sh: cannot read: " $0 > "/dev/stderr"
	exit bad = 1
}
{
	text[$1] = text[$1] ".TP\n\\fBcordon " plain($1 " " $2) "\\fR" \
		($3 == "" ? "" : " " plain($3)) "\n" plain($4) "\n"
}
END {
	if (bad)
		exit 1
	while ((getline line < template) > 0)
		if (line ~ /^@WORDS [a-z]+@$/) {
			name = substr(line, 8, length(line) - 8)
			if (!(name in text)) {
				print "words.sh: no command " name > "/dev/stderr"
				exit 1
			}
			printf "%s", text[name]
			delete text[name]
		} else {
			print line
		}
	for (name in text) {
		print "words.sh: the page lacks " name > "/dev/stderr"
		exit 1
	}
}' > "$3"
