#!/usr/bin/env bats
# What of an image can be written, and what of it can be executed.
# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own
load common

setup_file() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	local top=$BATS_TEST_DIRNAME/.. dir=$BATS_FILE_TMPDIR
	export CORDON_STATE_DIR=$dir/state
	"$top/clients/image" "$dir/root.tar"
	mkdir -p "$dir/more"/{data,var,real}
	echo from-the-image >"$dir/more/data/old"
	chmod 775 "$dir/more/data"
	ln -s ../real "$dir/more/var/link"
	echo file >"$dir/more/plain"
	tar -cf "$dir/more.tar" -C "$dir/more" .
	"$BATS_TEST_DIRNAME/image-layout" "$dir/image.tar" walls:1 \
		'{"Env": ["PATH=/usr/bin:/bin"], "Cmd": ["sh"], "Volumes":
		{"/data": {}, "/new/deep": {}, "/var/link/x": {}, "/tmp": {}}}' \
		"$dir/root.tar" "$dir/more.tar"
	"$CORDON_BUILD/cordon" image load --quiet -i "$dir/image.tar" >/dev/null
	"$BATS_TEST_DIRNAME/image-layout" "$dir/image.tar" plain:1 \
		'{"Env": ["PATH=/usr/bin:/bin"], "Cmd": ["sh"]}' \
		"$dir/root.tar" "$dir/more.tar"
	"$CORDON_BUILD/cordon" image load --quiet -i "$dir/image.tar" >/dev/null
}

@test "image-walls: the image's volumes can be written, and nothing else of it" {
	gives 0 "from-the-image
new
drwxrwxr-x
deep
x" --image walls:1 -- sh -c 'cat /data/old; echo new >/data/new && cat /data/new
		ls -ld /data | cut -c 1-10; touch /new/deep/y && ls /new; ls /real; touch /real/x/y'
	run "$cordon" run --image walls:1 -- sh -c 'for p in / /usr /etc /new /real /var; do touch $p/no; done; ls /no /usr/no'
	[ "$status" -ne 0 ]
	is "$(grep -c 'Read-only file system' <<<"$output")" 6
	# Gone with the box; the image is as it was.
	gives 0 "old" --image walls:1 -- ls /data
}

@test "image-walls: what the image has in a volume can be changed" {
	# With a range of ids, an ordinary user's box has a uid of its own, to
	# which nothing of the image can belong: there only new files are made.
	if [ "$(id -u)" -ne 0 ]; then
		gives 0 from-the-image --image walls:1 -- sh -c \
			'cat /data/old; echo x 2>/dev/null >/data/old; touch /data/mine && test -O /data/mine'
		return
	fi
	gives 0 "changed" --image walls:1 -- sh -c 'echo changed >/data/old && rm -rf /data/gone && cat /data/old'
	gives 0 "" --image walls:1 -- sh -c 'rm /data/old && ls /data'
}

@test "image-walls: the same for a request, and one quota for all of it" {
	gives 0 "from-the-image" --image plain:1 --writable /data -- sh -c 'touch /data/x && cat /data/old'
	run "$cordon" run --image plain:1 -- touch /data/x
	[ "$status" -ne 0 ]
	run "$cordon" run --image plain:1 --writable /data --writable /srv --disk 4m --json -- sh -c \
		'dd if=/dev/zero of=/data/a bs=1M count=3 2>/dev/null && dd if=/dev/zero of=/srv/b bs=1M count=3'
	is "$(field cause)" disk
	# A place that is no directory of the image is refused, and named.
	run --separate-stderr "$cordon" run --image plain:1 --writable /plain -- true
	is "$status" 125
	has "$stderr" "'/plain'"
}

@test "image-walls: in a writable root a volume is a directory like others" {
	gives 0 "from-the-image
ok" --image walls:1 --read-only=false -- sh -c 'cat /data/old; touch /data/x /no /new/deep/x && echo ok'
}

@test "image-walls: a volume gives no bind more than it has" {
	mkdir host host/x
	echo host >host/x/file
	run "$cordon" run --image plain:1 -v "$PWD/host:/host" --writable /host/x -- sh -c \
		'cat /host/x/file; echo no >/host/x/new'
	[ ! -e host/x/new ]
	is "$(cat host/x/file)" host
	run "$cordon" run --image walls:1 -v "$PWD/host:/data" -- sh -c 'cat /data/x/file; touch /data/no'
	has "$output" host
	has "$output" "Read-only"
	[ ! -e host/no ]
}

@test "image-walls: a policy decides which of the image's volumes there are" {
	printf '%s\n' 'version: 1' 'sandbox: {images: ["*"], writable: [/workspace, /tmp, /data]}' >p.yaml
	run "$cordon" run --policy p.yaml --image walls:1 --json -- sh -c 'touch /data/x && ! touch /new/deep/x'
	is "$(field exit_code)" 0
	has "$output" "volume '/new/deep' is not made"
	lacks "$output" "volume '/data' is not made"
	printf '%s\n' 'version: 1' 'sandbox: {images: ["*"]}' >p.yaml
	run "$cordon" run --policy p.yaml --image walls:1 --json -- touch /data/x
	is "$(field exit_code)" 1
	has "$output" "volume '/data' is not made: the policy does not give it"
}

@test "image-walls: under a list of commands only those run" {
	only=(--image plain:1 --program timeout --program python3)
	gives 0 "1" "${only[@]}" -- python3 -c 'import ssl, sqlite3, json; print(1)'
	run "$cordon" run "${only[@]}" -- timeout --version
	is "$status" 0
	for what in sh bash busybox /usr/bin/busybox /bin/sh; do
		run "$cordon" run "${only[@]}" -- "$what" -c 'echo no'
		is "$status" 126
		lacks "$output" "no$"
	done
	run -127 "$cordon" run "${only[@]}" -- no-such-program
	run "$cordon" run --image plain:1 --program no-such-program -- sh -c 'echo no'
	is "$status" 126
	run --separate-stderr "$cordon" run --image plain:1 --program sh --read-only=false -- sh
	is "$status" 125
	has "$stderr" "writable root"
}

# The image is foreign: what its libraries say of one another is not believed.
@test "image-walls: a list's program with libraries without end is refused" {
	for n in 20 3000; do
		"$BATS_TEST_DIRNAME/image-chain" chain.tar "$n"
		"$BATS_TEST_DIRNAME/image-layout" image.tar "chain:$n" \
			'{"Env": ["PATH=/usr/bin:/bin"]}' "$BATS_FILE_TMPDIR/root.tar" chain.tar
		"$cordon" image load --quiet -i image.tar >/dev/null
	done
	# The control: a row of libraries as such is well.
	run "$cordon" run --image chain:20 --program chain --program timeout -- timeout --version
	is "$status" 0
	run --separate-stderr "$cordon" run --image chain:3000 --program chain --program timeout -- timeout --version
	is "$status" 125
	has "$stderr" "need more than 192 files"
}

@test "image-walls: an allowed interpreter cannot execute anything else of the image" {
	mkdir ws
	cp "$BATS_TEST_DIRNAME/image-attack.py" ws/try.py
	run --separate-stderr "$cordon" run --image walls:1 --program python3 --program timeout \
		--workspace ws --timeout 60s -- python3 /workspace/try.py /data /new/deep
	is "$stderr" ""
	is "$status" 0
	has "$output" "nothing tried"
	has "$output" "/data /new/deep"
	# The same without the list: the attempts are real ones.
	run --separate-stderr "$cordon" run --image walls:1 \
		--workspace ws --timeout 60s -- python3 /workspace/try.py /data /new/deep
	is "$status" 0
	for what in "as it is" "descriptor" "execveat" "map" "loader, dynamic" "copy in /data" \
		"script in /tmp" "link in /workspace" "library in /new/deep" "memory file"; do
		has "$output" "$what"
	done
}

@test "image-walls: a policy's commands hold in an image, and its own entrypoint is judged" {
	printf '%s\n' 'version: 1' 'sandbox: {images: ["*"]}' 'commands: {allow: [cat, wc]}' >p.yaml
	gives 0 file --policy p.yaml --image plain:1 -- cat /plain
	gives 0 1 --policy p.yaml --image plain:1 --command 'cat /plain | wc -l'
	run "$cordon" run --policy p.yaml --image plain:1
	is "$status" 126
	has "$output" "commands"
	run "$cordon" run --policy p.yaml --image plain:1 -- sh -c 'echo no'
	is "$status" 126
	# Where the list has a program that is in a volume of the image.
	"$BATS_TEST_DIRNAME/image-layout" image.tar bad:1 \
		'{"Env": ["PATH=/usr/bin:/bin"], "Volumes": {"/usr": {}}}' "$BATS_FILE_TMPDIR/root.tar"
	"$cordon" image load --quiet -i image.tar >/dev/null
	run "$cordon" run --image bad:1 --program timeout -- timeout --version
	is "$status" 125
	has "$output" "'/usr' cannot be writable"
}
