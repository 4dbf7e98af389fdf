#!/usr/bin/env bats
# A list of programs: nothing else exists in the box, or can be executed.
load common

only=(--program ls --program cat --program python)

@test "programs: what is on the list runs" {
	gives 0 "127.0.0.1 localhost cordon
::1 localhost" "${only[@]}" -- cat /etc/hosts
	run --separate-stderr "$cordon" run "${only[@]}" -- ls /usr/bin
	is "$status" 0
	has "$output" "cat"
	lacks "$output" "sh"
}

@test "programs: what is not on the list does not exist" {
	run --separate-stderr "$cordon" run "${only[@]}" -- sh -c 'echo no'
	is "$status" 127
	run --separate-stderr "$cordon" run "${only[@]}" -- /usr/bin/env true
	is "$status" 127
}

@test "programs: an empty list allows nothing" {
	run --separate-stderr "$cordon" run --program no-such-program -- true
	is "$status" 127
}

@test "programs: an allowed interpreter cannot execute anything else" {
	command -v python3 >/dev/null || skip "no python3"
	mkdir ws
	cat >ws/try.py <<-'END'
	import glob, os, shutil, subprocess
	loader = glob.glob("/lib64/ld-linux*.so*") + glob.glob("/lib/ld-linux*.so*")
	ran = []

	def attempt(name, argv):
	    try:
	        p = subprocess.run(argv, capture_output=True, timeout=5)
	    except OSError:
	        return
	    if p.returncode != 127:
	        ran.append(name)

	attempt("shell", ["/bin/sh", "-c", "exit 0"])
	attempt("perl", ["/usr/bin/perl", "-e", "1"])
	shutil.copy("/usr/bin/ls", "/workspace/copy")
	os.chmod("/workspace/copy", 0o755)
	attempt("copy", ["/workspace/copy"])
	shutil.copy("/usr/bin/ls", "/dev/shm/copy")
	os.chmod("/dev/shm/copy", 0o755)
	attempt("copy in memory", ["/dev/shm/copy"])
	with open("/tmp/script", "w") as f:
	    f.write("#!/usr/bin/cat\n")
	os.chmod("/tmp/script", 0o755)
	attempt("script", ["/tmp/script"])
	for l in loader[:1]:
	    attempt("loader, shell", [l, "/usr/bin/dash", "-c", "exit 0"])
	    attempt("loader, copy", [l, "/workspace/copy"])
	try:
	    fd = os.memfd_create("x")
	    ran.append("memfd")
	except OSError:
	    pass
	tried = 0
	for top, _, names in os.walk("/usr/lib"):
	    for name in names:
	        path = os.path.join(top, name)
	        if ".so" in name or tried > 300 or os.path.islink(path):
	            continue
	        try:
	            if not os.stat(path).st_mode & 0o111:
	                continue
	        except OSError:
	            continue
	        tried += 1
	        attempt(path, [path, "--version"])
	        for l in loader[:1]:
	            attempt("loader, " + path, [l, path, "--version"])
	attempt("control", ["ls", "/"])
	print(ran, "tried" if tried else "nothing there")
	END
	run --separate-stderr "$cordon" run "${only[@]}" --cpus 2 --timeout 60s \
		--workspace ws -- python /workspace/try.py
	is "$status" 0
	has "$output" "['control']"
}

@test "programs: the wall holds without Landlock, and without the filter" {
	command -v python3 >/dev/null || skip "no python3"
	[ -x "$CORDON_BUILD/tests/cordon" ] || skip "no test build"
	for layer in landlock seccomp; do
		run env CORDON_TEST_SKIP=$layer "$CORDON_BUILD/tests/cordon" run "${only[@]}" \
			-- python -c 'import subprocess
	try:
	    subprocess.run(["/bin/sh", "-c", "echo escaped"])
	except OSError as e:
	    print("refused")'
		lacks "$output" escaped
	done
}

@test "programs: a script cannot be on the list" {
	run --separate-stderr "$cordon" run --program ldd -- ldd
	is "$status" 125
	has "$stderr" "script"
}

@test "programs: a writable root and a list exclude each other" {
	run --separate-stderr "$cordon" run --read-only=false --program ls -- ls
	is "$status" 125
}
