#!/usr/bin/env bats
# Images: the store, and what is made of archives, good ones and hostile ones.
# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own
load common

make=$BATS_TEST_DIRNAME/image-make
tree=$BATS_TEST_DIRNAME/image-tree
outside=/tmp/cordon-image-outside

# A store of this test's own, each time.
new_store() {
	export CORDON_STATE_DIR=$dir/state$1
	store=$CORDON_STATE_DIR/images
}

# image ARG...
image() {
	"$cordon" image "$@"
}

# The directory of layer N (from 1, the lowest first) of an image.
layer_dir() {
	echo "$store/layers/sha256/$(image inspect "$1" | python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["RootFS"]["Layers"][int(sys.argv[1]) - 1][7:])' "$2")/fs"
}

# Nothing is there that the index does not name.
is_empty() {
	is "$(find "$store/tmp" "$store/layers/sha256" "$store/blobs/sha256" -mindepth 1)" ""
}

# Mounts an image's layers, as a box does, and runs a command there.
in_overlay() {
	local name=$1 lower='' i n
	shift
	n=$(image inspect "$name" | python3 -c 'import json, sys
print(len(json.load(sys.stdin)[0]["RootFS"]["Layers"]))')
	for ((i = 1; i <= n; i++)); do
		lower=$(layer_dir "$name" "$i")${lower:+:$lower}
	done
	# overlayfs wants two; an empty one changes nothing
	mkdir -p "$dir/none" "$dir/merged"
	[ "$n" -gt 1 ] || lower=$lower:$dir/none
	unshare -Urm --propagation private sh -c '
		mount -t overlay overlay -o "ro,userxattr,lowerdir=$1" "$2" &&
		cd "$2" && shift 2 && "$@"' sh "$lower" "$dir/merged" "$@"
}

# A small tree with a bit of everything.
some_root() {
	mkdir -p root/bin root/etc root/tmp root/usr/share
	cp "$(command -v busybox)" root/bin/busybox
	ln root/bin/busybox root/bin/ls
	ln -s busybox root/bin/sh
	cp -r /usr/share/bash-completion root/usr/share/ 2>/dev/null || :
	cp -r /etc/alternatives root/etc/
	echo hello >root/etc/motd
	chmod 600 root/etc/motd
	chmod 1777 root/tmp
	mkdir -m 550 root/closed
}

# Each layer of the table ends as the table says, and writes nowhere else.
@test "image: layers, one by one" {
	local case words bad=0
	rm -f "$outside"
	while IFS=$'\t' read -r case words; do
		new_store "-$case"
		"$make" layer "$case" layer.tar
		run --separate-stderr "$cordon" image import -q layer.tar x:1
		if [ -z "$words" ]; then
			is "$status" 0 || { echo "# $case: $stderr"; bad=1; }
		else
			{ is "$status" 125 && has "$stderr" "$words" && is "${#stderr_lines[@]}" 1 && is_empty; } ||
				{ echo "# $case"; bad=1; }
			is "$(image ls -q)" "" || bad=1
		fi
		[ ! -e "$outside" ] || { echo "# $case wrote outside"; bad=1; rm -f "$outside"; }
		image prune -a >/dev/null && is_empty || { echo "# $case stays"; bad=1; }
	done < <("$make" list layer)
	[ "$bad" -eq 0 ]
}

@test "image: archives of images, one by one" {
	local case words bad=0
	while IFS=$'\t' read -r case words; do
		new_store "-$case"
		"$make" wrap "$case" archive.tar
		run --separate-stderr "$cordon" image load archive.tar
		if [ -z "$words" ]; then
			{ is "$status" 0 && is "$output" "Loaded image: good:1"; } || { echo "# $case: $stderr"; bad=1; }
			is "$(image inspect good:1 | grep -c PATH=/bin)" 1 || bad=1
		else
			{ is "$status" 125 && has "$stderr" "$words" && is "${#stderr_lines[@]}" 1 && is_empty; } ||
				{ echo "# $case"; bad=1; }
			is "$(image ls -q)" "" || bad=1
		fi
	done < <("$make" list wrap)
	[ "$bad" -eq 0 ]
}

# with CASE: imports it; $fs is its tree.
with() {
	new_store "-$1"
	"$make" layer "$1" layer.tar
	image import -q layer.tar x:1 2>err >/dev/null || { cat err; return 1; }
	fs=$(layer_dir x:1 1)
}

@test "image: an absolute name is below the root" {
	with absolute
	is "$(cat "$fs$outside")" x
	[ ! -e "$outside" ]
}

@test "image: a link is replaced and not written through" {
	with link-then-file
	[ -f "$fs/x" ] && [ ! -L "$fs/x" ]
	with link-then-dir
	[ -d "$fs/x" ] && [ ! -L "$fs/x" ] && [ -f "$fs/x/cordon-image-outside" ]
	with hard-to-link-write
	[ -L "$fs/e" ] && [ -f "$fs/x" ] && [ ! -L "$fs/x" ]
	with hard-to-link
	[ -L "$fs/x" ] && is "$(readlink "$fs/x")" /etc/passwd
	[ ! -e "$outside" ]
}

@test "image: the last entry of a name holds" {
	with twice
	is "$(cat "$fs/x")" new
	with file-then-dir
	is "$(cat "$fs/x/y")" 2
	with dir-then-file
	is "$(cat "$fs/x")" 2
}

@test "image: devices, pipes and marks of the archive's own are left out" {
	with devices
	is "$(find "$fs" | wc -l)" 2
	has "$(cat err)" "4 devices, pipes or sockets were left out"
}

@test "image: no set-id bits, no owners, no attributes" {
	with set-id
	is "$(stat -c %a "$fs/su")" 755
	is "$(stat -c %a "$fs/d")" 1777
	with owner
	is "$(stat -c %u:%g "$fs/x")" "$(id -u):$(id -g)"
	with attributes
	is "$(python3 -c 'import os, sys; print(os.listxattr(sys.argv[1]))' "$fs/x")" "[]"
}

@test "image: hard links are one file" {
	with hard-good
	is "$(stat -c %h "$fs/d/x")" 3
	[ "$fs/d/x" -ef "$fs/y" ] && [ "$fs/z" -ef "$fs/y" ]
}

@test "image: directories that nobody may enter, and their removal" {
	with closed-dirs
	is "$(stat -c %a "$fs/a")" 0
	chmod 700 "$fs/a"
	is "$(stat -c %a "$fs/a/b")" 555
	is "$(stat -c %a "$fs/a/b/c")" 0
	chmod 0 "$fs/a"
	image rm x:1 >/dev/null
	is_empty
}

@test "image: letters outside ASCII, and bytes that are none" {
	with letters
	[ -f "$fs"/naïve-你 ]
	with bytes
	[ -f "$fs"/$'caf\xe9' ]
	with controls
	[ -f "$fs"/$'a\nb\e[31m' ]
}

@test "image: directories that no entry made are open, the root too" {
	with no-parents
	is "$(stat -c %a "$fs" "$fs/a" "$fs/a/b" | tr '\n' ' ')" "755 755 755 "
}

@test "image: marks are what overlayfs reads" {
	with marks
	is "$(stat -c '%F %t:%T' "$fs/d/gone")" "character special file 0:0"
	attribute='import os, sys; print(os.getxattr(sys.argv[1], "user.overlay.opaque"))'
	is "$(python3 -c "$attribute" "$fs/o")" "b'y'"
	is "$(python3 -c "$attribute" "$fs/both")" "b'y'"
	is "$(python3 -c "$attribute" "$fs/again")" "b'y'"
	is "$(cat "$fs/both/x" "$fs/again/x")" 11
	is "$(find "$fs" -name '.wh.*')" ""
}

# tar of two layers, as docker save would pack them
two_layers() {
	python3 - "$1" "$2" <<-'END'
	import hashlib, json, tarfile, io, sys
	layers = [open(p, "rb").read() for p in sys.argv[1:]]
	config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [
	    "sha256:" + hashlib.sha256(l).hexdigest() for l in layers]}}).encode()
	with tarfile.open("two.tar", "w") as tar:
	    def add(name, data):
	        info = tarfile.TarInfo(name)
	        info.size = len(data)
	        tar.addfile(info, io.BytesIO(data))
	    for i, l in enumerate(layers):
	        add(f"{i}/layer.tar", l)
	    add("config.json", config)
	    add("manifest.json", json.dumps([{"Config": "config.json", "RepoTags": ["two:1"],
	        "Layers": [f"{i}/layer.tar" for i in range(len(layers))]}]).encode())
	END
}

@test "image: layers lie over each other as the marks say" {
	new_store ""
	mkdir -p low/d low/o low/both low/again
	touch low/d/gone low/d/stays low/o/hidden low/both/hidden low/again/hidden low/again.not
	tar -C low -cf low.tar .
	"$make" layer marks up.tar
	two_layers low.tar up.tar
	image load two.tar
	run in_overlay two:1 find . -type f
	is "$status" 0
	is "$(sort <<<"$output" | tr '\n' ' ')" "./again.not ./again/x ./both/x ./d/stays "
}

@test "image: gzip, zstd, xz and plain, around and inside" {
	new_store ""
	some_root
	tar -C root -cf root.tar .
	for pack in gzip zstd xz cat; do
		$pack <root.tar >root.$pack
		image import -q root.$pack packed:$pack >/dev/null
		image save packed:$pack | $pack >saved.$pack
	done
	"$tree" "$(layer_dir packed:cat 1)" --links >want
	for pack in gzip zstd xz cat; do
		new_store "-$pack"
		is "$(image load <saved.$pack)" "Loaded image: packed:$pack"
		"$tree" "$(layer_dir packed:$pack 1)" --links >have
		cmp want have
	done
	"$tree" root --links | cmp - want
}

@test "image: packed twice is refused" {
	new_store ""
	"$make" layer plain layer.tar
	gzip <layer.tar | gzip >twice.tgz
	run --separate-stderr "$cordon" image import twice.tgz
	is "$status" 125
	has "$stderr" "more than once"
}

@test "image: save and load give the same image back" {
	new_store ""
	some_root
	tar -C root -czf root.tgz .
	id=$(image import root.tgz a/b:1 -c 'CMD ["sh"]' -c 'ENV A="x y"')
	image tag a/b:1 c
	image save -o saved.tar a/b:1 c
	is "$(ls saved.tar*)" saved.tar
	new_store "-2"
	is "$(image load saved.tar)" $'Loaded image: a/b:1\nLoaded image: c:latest'
	is "$(image ls -q)" "$id"
	image save a/b:1 c | cmp - saved.tar
}

@test "image: what other tools write is read, what is written they read" {
	new_store ""
	some_root
	tar -C root -cf root.tar .
	id=$(image import root.tar own:1)
	image save -o own.tar own:1
	is "$(skopeo inspect --config --raw docker-archive:own.tar | sha256sum | cut -c1-64)" "${id#sha256:}"
	skopeo copy -q oci-archive:own.tar oci:layout:other/name:2
	skopeo copy -q docker-archive:own.tar docker-archive:old.tar:old/name:3
	skopeo copy -q oci:layout:other/name:2 oci-archive:new.tar:third:4
	new_store "-2"
	is "$(image load layout)" "Loaded image: other/name:2"
	is "$(image load old.tar)" "Loaded image: old/name:3"
	is "$(image load new.tar)" "Loaded image: third:4"
	is "$(image ls -q | wc -l)" 1
	is "$(image ls -q)" "$id"
}

# Three layers by umoci: the trees are the same, one by one and together.
@test "image: a tree is what umoci makes of it" {
	new_store ""
	some_root
	umoci init --layout l
	umoci new --image l:t
	umoci unpack --rootless --image l:t one >/dev/null 2>&1
	cp -a root/. one/rootfs/
	umoci repack --image l:t one >/dev/null 2>&1
	umoci unpack --rootless --image l:t two >/dev/null 2>&1
	rm -r two/rootfs/etc/alternatives two/rootfs/bin/ls
	ln -s elsewhere two/rootfs/etc/alternatives
	echo more >>two/rootfs/etc/motd
	mkdir -m 700 two/rootfs/new
	echo x >two/rootfs/new/$'odd \n name'
	umoci repack --image l:t two >/dev/null 2>&1
	umoci unpack --rootless --image l:t three >/dev/null 2>&1
	rm three/rootfs/etc/alternatives
	mkdir three/rootfs/etc/alternatives
	touch three/rootfs/etc/alternatives/back
	umoci repack --image l:t three >/dev/null 2>&1
	umoci config --image l:t --config.cmd sh --config.env A=b --config.user 7
	umoci unpack --rootless --image l:t all >/dev/null 2>&1
	image load --name t l
	"$tree" all/rootfs >want
	in_overlay t "$tree" . | diff want -
	is "$(image inspect t | python3 -c 'import json, sys
c = json.load(sys.stdin)[0]["Config"]
print(c["Cmd"], c["Env"][-1], c["User"])')" "['sh'] A=b 7"
	[ "$(wc -l <want)" -gt 50 ]
}

# bomb WORDS FLAG...: root.tar is refused for its size.
bomb() {
	local words=$1
	shift
	run --separate-stderr "$cordon" image import "$@" root.tar
	is "$status" 125 && has "$stderr" "$words" && is_empty
}

@test "image: limits" {
	new_store ""
	mkdir root
	head -c 3000000 /dev/zero >root/zero
	for i in 1 2 3 4 5; do echo $i >root/$i; done
	tar -C root -cf root.tar .
	bomb "'zero' has more than 2097152 bytes" --max-file 2m
	bomb "image has more than 2097152 bytes" --max-size 2m
	bomb "more than 6 files" --max-files 6
	bomb "archive has more than 1048576 bytes" --max-archive 1m
	CORDON_IMAGE_MAX_FILES=6 bomb "more than 6 files"
	image import --max-file 3m --max-size 3m --max-files 7 --max-archive 4m root.tar
	refused "--max-size takes SIZE" image import --max-size -1 root.tar
	refused "--max-files takes N" image import --max-files 0 root.tar
}

@test "image: an archive that unpacks to a thousand times its size" {
	new_store ""
	truncate -s 300M zero
	tar -cf - zero | gzip -9 >root.tar
	bomb "times its size"
	# the padding after the end counts too
	"$make" layer plain layer.tar
	{ cat layer.tar; head -c 300M /dev/zero; } | gzip -9 >root.tar
	bomb "times its size"
	# and all layers of an image together
	head -c 3000000 /dev/zero >zero
	tar -cf a.tar zero && tar -cf b.tar --transform s/zero/two/ zero
	two_layers a.tar b.tar
	run --separate-stderr "$cordon" image load --max-size 4m two.tar
	is "$status" 125
	has "$stderr" "image has more than"
	image load --max-size 7m two.tar
}

@test "image: holes count as what they stand for" {
	new_store ""
	truncate -s 1T hole
	tar -cSf root.tar hole
	bomb "'hole' has more than"
	truncate -s 100M hole
	echo end >>hole
	tar -cSf root.tar hole
	image import root.tar x
	cmp hole "$(layer_dir x 1)/hole"
	[ "$(du -k "$(layer_dir x 1)/hole" | cut -f1)" -lt 1000 ]
}

@test "image: an archive cut off anywhere leaves nothing" {
	new_store ""
	"$make" wrap docker whole.tar
	size=$(stat -c %s whole.tar)
	for at in 1 511 512 600 1536 2048 3000 $((size / 2)); do
		head -c "$at" whole.tar >cut.tar
		run --separate-stderr "$cordon" image load cut.tar
		is "$status" 125
		is_empty
	done
	some_root
	tar -C root -cf - . | gzip >root.tgz
	size=$(stat -c %s root.tgz)
	for at in 5 100 $((size / 2)) $((size - 1)); do
		head -c "$at" root.tgz >cut.tgz
		run --separate-stderr "$cordon" image import cut.tgz
		is "$status" 125
		is_empty
	done
	: >empty
	refused "empty" image import empty
}

@test "image: one that is killed leaves the store as it was" {
	new_store ""
	some_root
	tar -C root -cf root.tar .
	image import -q root.tar base:1 >/dev/null
	echo more >root/more
	tar -C root -cf more.tar .
	before=$(image ls --json)
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		"$cordon" image import -q more.tar more:1 >/dev/null &
		pid=$!
		sleep "0.0$((i * 4 % 30))"
		kill -9 $pid 2>/dev/null || :
		wait $pid || :
		image inspect base:1 >/dev/null
		[ -e "$(layer_dir base:1 1)/bin/busybox" ]
		# all of it, or nothing
		if image inspect more:1 >/dev/null 2>&1; then
			is "$(cat "$(layer_dir more:1 1)/more")" more
			image rm more:1 >/dev/null
		fi
		is "$(image ls --json)" "$before"
	done
	image prune >/dev/null
	is "$(ls "$store/tmp")" ""
	is "$(find "$store/layers/sha256" -mindepth 1 -maxdepth 1 | wc -l)" 1
	is "$(find "$store/blobs/sha256" -type f | wc -l)" 2
}

# Each call that makes a change last, and each that moves something: killed there.
@test "image: one that is killed at a step leaves the old store or the new one" {
	new_store ""
	"$make" wrap docker good.tar
	"$make" layer plain layer.tar
	image import layer.tar base:1 >/dev/null
	image load good.tar >/dev/null
	new=$(image ls --names | sort)
	image rm good:1 >/dev/null
	old=$(image ls --names)
	steps=0
	for call in mkdirat mknodat syncfs renameat2 fsync renameat unlinkat; do
		for ((n = 1; n < 40; n++)); do
			run strace -f -o /dev/null -e trace=$call -e inject=$call:signal=SIGKILL:when=$n \
				"$cordon" image load -q good.tar
			now=$(image ls --names | sort)
			[ "$now" = "$old" ] || is "$now" "$new"
			image inspect base:1 >/dev/null
			[ -f "$(layer_dir base:1 1)/etc/motd" ]
			if [ "$now" = "$new" ]; then
				[ -f "$(layer_dir good:1 1)/etc/motd" ]
				image save good:1 >/dev/null
				image rm good:1 >/dev/null
			fi
			image prune >/dev/null
			is "$(find "$store/tmp" -mindepth 1)" ""
			# past the last one it ends by itself
			[ "$status" -ne 0 ] || break
			is "$status" 137
			steps=$((steps + 1))
		done
		[ "$n" -lt 40 ]
	done
	[ "$steps" -gt 12 ]
}

@test "image: several at once" {
	new_store ""
	some_root
	for i in 1 2 3 4; do
		echo "$i" >root/own
		tar -C root -cf "$i.tar" .
	done
	for i in 1 2 3 4; do
		{ image import -q "$i.tar" "n:$i" && image tag "n:$i" "m:$i"; } >/dev/null &
		{ image prune && image ls; } >/dev/null &
	done
	wait
	is "$(image ls -q | wc -l)" 4
	for i in 1 2 3 4; do
		is "$(cat "$(layer_dir "m:$i" 1)/own")" "$i"
	done
	image prune -a >/dev/null
	is_empty
}

@test "image: one that is in use is not removed" {
	new_store ""
	"$make" layer plain layer.tar
	id=$(image import layer.tar used:1)
	touch "$store/use/${id#sha256:}"
	exec 9<"$store/use/${id#sha256:}"
	flock -s 9
	run --separate-stderr "$cordon" image rm used:1
	is "$status" 1
	has "$stderr" "in use"
	run --separate-stderr "$cordon" image rm --force "$id"
	is "$status" 1
	is "$(image prune -a)" "freed: 0B"
	is "$(image ls -q)" "$id"
	exec 9<&-
	is "$(image rm used:1)" $'Untagged: used:1\n'"Deleted: $id"
}

@test "image: names, ids and what they lead to" {
	new_store ""
	"$make" layer plain a.tar
	"$make" layer twice b.tar
	a=$(image import a.tar python)
	b=$(image import b.tar some.host:5000/x/y:2)
	for name in python python:latest library/python docker.io/library/python:latest "$a" "${a#sha256:}" \
		"${a:0:20}" "${a:7:12}"; do
		is "$(image inspect "$name" | grep '"Id"' | cut -d'"' -f4)" "$a"
	done
	is "$(image inspect some.host:5000/x/y:2 | grep '"Id"' | cut -d'"' -f4)" "$b"
	for name in python:3 pytho other/python some.host/x/y:2 "${a:0:20}f0f0f0f0f0f0"; do
		run --separate-stderr "$cordon" image inspect "$name"
		is "$status" 1
		has "$stderr" "there is no image '$name'"
	done
	run --separate-stderr "$cordon" image inspect "sha256:"
	is "$status" 1
	for name in Python python: python:-x '../x' 'a//b' 'a@sha256:12' '-x' 'x:y:z'; do
		run --separate-stderr "$cordon" image inspect -- "$name"
		is "$status" 125
	done
	# a name goes to the image that got it last
	image tag some.host:5000/x/y:2 python
	is "$(image inspect python | grep '"Id"' | cut -d'"' -f4)" "$b"
	refused "this machine's own root" image tag python host
	refused "has no digest" image tag python "x@$a"
	is "$(image prune | head -1)" "Deleted: $a"
	run --separate-stderr "$cordon" image rm "$b"
	is "$status" 1
	has "$stderr" "2 names"
	is "$(image rm -f "$b" | tail -1)" "Deleted: $b"
	is_empty
}

@test "image: an id's beginning that two have" {
	new_store ""
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
		mkdir -p "r$i" && echo "$i" >"r$i/x"
		tar -C "r$i" -cf r.tar . && image import r.tar >/dev/null
	done
	first=$(image ls -q | cut -c8 | sort | uniq -d | head -1)
	run --separate-stderr "$cordon" image inspect "$first"
	is "$status" 1
	has "$stderr" "more than one image"
}

@test "image: ls, as a table and as a document" {
	new_store ""
	is "$(image ls)" "NAME   TAG   ID   CREATED   SIZE"
	is "$(image ls --json)" "[]"
	"$make" layer plain layer.tar
	# The same image, if both are made in one second: its date is part of it.
	for _ in $(seq 40); do
		[ "$(date +%1N)" -gt 2 ] || break
		sleep 0.05
	done
	id=$(image import layer.tar one/two:3)
	image import -q layer.tar >/dev/null
	run "$cordon" image ls
	is "${#lines[@]}" 2
	has "${lines[1]}" "one/two   3     ${id:7:12}   just now   "
	run "$cordon" image ls --json
	is "$(field 0.id)" "$id"
	is "$(field 0.names)" "['one/two:3']"
	is "$(field 0.size)" 3
	is "$(field 0.layers)" 1
}

@test "image: what an import changes" {
	new_store ""
	"$make" layer plain layer.tar
	image import layer.tar x -m 'a comment' -c 'CMD echo hi' -c 'entrypoint ["a", "b"]' -c 'ENV A=1 B="2 3"' \
		-c 'ENV A=4' -c 'ENV C 5 6' -c 'WORKDIR /w' -c 'USER 12:34' -c 'LABEL l=m' -c 'EXPOSE 80' \
		-c 'EXPOSE 53/udp' -c 'STOPSIGNAL SIGINT'
	output=$(image inspect x)
	is "$(field 0.Config.Cmd)" "['/bin/sh', '-c', 'echo hi']"
	is "$(field 0.Config.Entrypoint)" "['a', 'b']"
	is "$(field 0.Config.Env)" "['A=4', 'B=2 3', 'C=5 6']"
	is "$(field 0.Config.WorkingDir)" /w
	is "$(field 0.Config.User)" 12:34
	is "$(field 0.Config.Labels)" "{'l': 'm'}"
	is "$(field 0.Config.ExposedPorts)" "{'80/tcp': {}, '53/udp': {}}"
	is "$(field 0.Config.StopSignal)" SIGINT
	is "$(field 0.History.0.Comment)" "a comment"
	for bad in 'RUN x' 'CMD' 'CMD [1]' 'CMD ["a"' 'ENV x' 'ENV =x' 'ENV A="b' 'WORKDIR w' 'EXPOSE x' ''; do
		run --separate-stderr "$cordon" image import layer.tar -c "$bad"
		is "$status" 125
		[ -n "$stderr" ]
	done
}

@test "image: the reader is shut in before it reads" {
	new_store ""
	mkfifo pipe
	"$cordon" image import - <pipe 3>&- &
	pid=$!
	exec 8>pipe
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		grep -q 'Seccomp:.2' /proc/$pid/status && break
		sleep 0.1
	done
	run grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd):' /proc/$pid/status
	exec 8>&-
	wait $pid || :
	has "$output" $'NoNewPrivs:\t1'
	has "$output" $'Seccomp:\t2'
	has "$output" $'CapEff:\t0000000000000000'
	[ "$(id -u)" -ne 0 ] || has "$output" $'CapBnd:\t0000000000000000'
}

@test "image: a blob that was changed in the store is noticed" {
	new_store ""
	"$make" wrap oci good.tar
	image load good.tar
	id=$(image ls -q)
	blob=$store/blobs/sha256/${id#sha256:}
	cp "$blob" keep
	sed -i s/amd64/arm64/ "$blob"
	refused "not what it was" image inspect good:1
	cp keep "$blob"
	image inspect good:1 >/dev/null
	big=$(find "$store/blobs/sha256" -size +4k)
	printf x | dd of="$big" bs=1 seek=600 conv=notrunc status=none
	run --separate-stderr "$cordon" image save -o out.tar good:1
	is "$status" 125
	has "$stderr" "not what it was"
	[ ! -e out.tar ]
}

@test "image: an index that cannot be read loses nothing" {
	new_store ""
	"$make" layer plain layer.tar
	image import layer.tar x >/dev/null
	cp "$store/index.json" keep
	for text in '' '{' '[]' '{"version":2,"images":[]}' '{"version":1,"images":[{}]}'; do
		printf '%s' "$text" >"$store/index.json"
		run --separate-stderr "$cordon" image prune -a
		is "$status" 125
		has "$stderr" "index.json"
	done
	cp keep "$store/index.json"
	is "$(image inspect x | grep -c RepoTags)" 1
	[ -f "$(layer_dir x 1)/etc/motd" ]
}

@test "image: a store of somebody else, or that others may write to, is refused" {
	new_store ""
	image ls >/dev/null
	chmod 777 "$store"
	refused "others may write" image ls
	chmod 700 "$store"
	image ls >/dev/null
}

@test "image: bad calls" {
	new_store ""
	refused "image takes" image
	refused "image takes" image nothing
	refused "not a flag" image ls --nothing
	refused "argument is missing" image inspect
	refused "one argument too many" image ls x
	refused "open 'nowhere'" image load nowhere
	refused "--best-effort takes" image ls --best-effort seccomp
	refused "not in this build" image pull python
	refused "load FILE" image pull
	run --separate-stderr "$cordon" image --help
	is "$status" 0
	for name in load import save ls inspect rm prune tag; do
		has "$output" "$name"
	done
	run "$cordon" image load --help
	has "$output" "--max-ratio"
}
