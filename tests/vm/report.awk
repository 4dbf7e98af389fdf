# SPDX-License-Identifier: Apache-2.0
#
# Makes one TAP stream out of what tests/vm/guest prints: names get the
# program and who ran it in front, numbers go through, a program without its
# plan or an end that did not come is a failed test of its own.

function result(good, text)
{
	printf "%s %d - %s\n", good ? "ok" : "not ok", ++n, text
	if (!good)
		failed++
	else if (text ~ /# SKIP/)
		skipped++
	else
		passed++
}

# What was begun and did not end.
function look_back()
{
	if (running)
		result(0, "vm/" who " " name " did not come to its end")
	if (booted)
		result(0, "vm the guest did not come to its end")
	running = 0
}

$1 == "#vm" && $2 == "boot" {
	look_back()
	booted = 1
	next
}

$1 == "#vm" && $2 == "begin" {
	who = $3
	name = $4
	seen = plan = bad = 0
	planned = -1
	running = 1
	next
}

$1 == "#vm" && $2 == "end" {
	if (planned < 1)
		result(0, "vm/" who " " name " ended with status " $3 \
			" and without a plan")
	else if (planned != seen)
		result(0, "vm/" who " " name " planned " planned \
			" tests and ran " seen)
	else if ($3 != 0 && !bad)
		result(0, "vm/" who " " name " ended with status " $3)
	printf "# vm/%s %s took %d s\n", who, name, $4
	running = 0
	next
}

$1 == "#vm" && $2 == "missing" {
	result(0, "vm/" $3 " " $4 " is not built")
	next
}

$1 == "#vm" && $2 == "done" {
	booted = 0
	next
}

running && /^(not )?ok / {
	good = $1 == "ok"
	bad += !good
	seen++
	sub(/^(not )?ok [0-9]* *-? */, "")
	result(good, "vm/" who " " name " " $0)
	next
}

running && /^1\.\.[0-9]+/ {
	planned = substr($1, 4) + 0
	next
}

{
	print /^#/ ? $0 : "# " $0
	fflush()
}

END {
	look_back()
	printf "1..%d\n", n
	if (ci == "true")
		failed += skipped
	text = passed + 0 " passed, " failed + 0 " failed"
	if (skipped && ci != "true")
		text = text ", " skipped " skipped"
	print text >verdict
	exit failed || !passed
}
