#!/usr/bin/env bats
# Boxes whose root is an image: what is seen there, what the image may decide,
# and what a hostile one cannot.
# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own
load common

layout=$BATS_TEST_DIRNAME/image-layout

setup() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	cordon=$CORDON_BUILD/cordon
	dir=$BATS_TEST_TMPDIR
	cd "$dir" || return
	export CORDON_STATE_DIR=$dir/state
	some_root root
}

# some_root DIR: a small root with a shell.
some_root() {
	local name
	mkdir -p "$1"/{bin,etc,tmp,dev,proc,sys,srv}
	cp "$(command -v busybox)" "$1/bin/busybox"
	for name in sh ls cat echo env id pwd touch stat mount true head rm mkdir dd find sleep hostname; do
		ln -s busybox "$1/bin/$name"
	done
	printf '%s\n' root:x:0:0:root:/root:/bin/sh app:x:1000:1001::/srv:/bin/sh >"$1/etc/passwd"
	printf '%s\n' root:x:0: staff:x:50:app >"$1/etc/group"
	echo from-the-image >"$1/etc/motd"
	echo from-the-image >"$1/etc/hosts"
}

# import NAME [ARG...]: the directory root as an image of one layer.
import() {
	local name=$1
	shift
	tar -cf root.tar -C root .
	"$cordon" image import "$@" root.tar "$name" >id
}

# load_image NAME CONFIG DIR...: the directories as layers, the lowest first.
load_image() {
	local name=$1 config=$2 layers=() d
	shift 2
	for d; do
		tar -cf "$d.tar" -C "$d" .
		layers+=("$d.tar")
	done
	"$layout" image.tar "$name" "$config" "${layers[@]}"
	"$cordon" image load --quiet -i image.tar >/dev/null
}

in_box() {
	run --separate-stderr "$cordon" run "$@"
}

# fails PART ARG...: the box is not built, and PART says why.
fails() {
	local part=$1
	shift
	in_box "$@"
	is "$status" 125 && is "$output" "" && has "$stderr" "$part"
}

@test "image-run: names, digests and ids find it; the record has its digest" {
	local id name
	import some/thing:1
	id=$(cat id)
	for name in some/thing:1 docker.io/some/thing:1 "$id" "${id#sha256:}" "${id:7:12}" \
		"some/thing@$id" "docker.io/some/thing:1@$id"; do
		gives 0 from-the-image --image "$name" -- cat /etc/motd
	done
	grep -q "\"image\":\"docker.io/some/thing:1@$id\"" "$CORDON_STATE_DIR"/ledger/*.jsonl
	in_box --image some/thing:1 --dry-run -- true
	is "$(field image)" docker.io/some/thing:1
	is "$(field image_id)" "$id"
}

@test "image-run: what is not there is said, with what to do" {
	in_box --image nothing -- true
	is "$status" 125
	has "$stderr" "No such image: nothing"
	has "$stderr" "cordon image load"
	has "$stderr" "cordon image ls"
	import thing
	fails "No such image: thing:2" --image thing:2 -- true
	fails "No such image: 0123456789ab" --image 0123456789ab -- true
	fails "is not an image name" --image 'a b' -- true
	fails "is not an image name" --image ../../etc -- true
	in_box --image nothing --json -- true
	is "$(field cause)" invalid
	# Ids that begin alike cannot be told apart; of seventeen two do.
	local i first
	tar -cf small.tar -C root etc
	for ((i = 0; i < 17; i++)); do
		"$cordon" image import -m "$i" small.tar >>ids
	done
	first=$(cut -c 8 ids | sort | uniq -d | head -1)
	fails "more than one image" --image "sha256:$first" -- true
	fails "is not an id" --image "sha256:" -- true
}

@test "image-run: a damaged store starts nothing" {
	local index=$CORDON_STATE_DIR/images/index.json blob run
	import thing
	cp "$index" saved
	echo '{"version":1,"images":[{' >"$index"
	fails "damaged" --image thing -- true
	sed 's/"version":1/"version":2/' saved >"$index"
	fails "damaged" --image thing -- true
	sed 's/"run":"sha256:...../"run":"sha256:..\/../' saved >"$index"
	fails "damaged" --image thing -- true
	sed 's/"diff_id":"sha256:...../"diff_id":"sha256:..\/../' saved >"$index"
	fails "damaged" --image thing -- true
	cp saved "$index"
	run=$(grep -o '"run":"sha256:[0-9a-f]*' saved | cut -d: -f3)
	blob=$CORDON_STATE_DIR/images/blobs/sha256/$run
	cp "$blob" blob
	sed -i 's/"os"/"so"/' "$blob"
	fails "damaged" --image thing -- true
	cp blob "$blob"
	gives 0 "" --image thing -- true
	rm -rf "$CORDON_STATE_DIR"/images/layers/sha256/*/fs
	fails "image store" --image thing -- true
}

@test "image-run: two layers, removed names and replaced directories" {
	mkdir -p two/{etc,srv,opaque}
	mkdir -p root/opaque root/merged root/srv/old two/merged
	echo below >root/opaque/below
	echo below >root/merged/below
	echo above >two/merged/above
	echo above >two/opaque/above
	: >two/opaque/.wh..wh..opq
	: >two/etc/.wh.motd
	: >two/srv/.wh.old
	echo two >two/etc/two
	load_image layers '{}' root two
	gives 0 "above
above
below
two" --image layers -- sh -c 'ls /opaque; ls /merged; cat /etc/two; ls /srv; ls /etc/motd 2>/dev/null; :'
	# The other way round the removed ones are there, and nothing else.
	load_image reverse '{}' two root
	gives 0 "from-the-image
below" --image reverse -- sh -c 'cat /etc/motd; cat /opaque/below'
	# The same layer three times, one of them between.
	load_image again '{}' root two root two
	gives 0 "above" --image again -- ls /opaque
}

@test "image-run: many layers, in their order; 127 are the most" {
	local i dirs=(root)
	for ((i = 1; i < 127; i++)); do
		mkdir -p "l$i/etc" && echo "$i" >"l$i/etc/top" && echo "$i" >"l$i/etc/f$i"
		dirs+=("l$i")
	done
	load_image many '{}' "${dirs[@]}"
	gives 0 "126
1
126" --image many -- sh -c 'cat /etc/top /etc/f1 /etc/f126'
	mkdir -p l127/etc && echo 127 >l127/etc/top
	load_image more '{}' "${dirs[@]}" l127
	fails "has 128 layers; a box takes 1 to 127" --image more -- true
}

@test "image-run: the mounts are these and no others" {
	import thing
	in_box --image thing -- sh -c 'while read -r what where type opts rest; do
		echo "$where $type ${opts%%,*}"; done </proc/mounts'
	is "$status" 0
	is "$(sort <<<"$output")" "/ overlay ro
/dev tmpfs ro
/dev/full devtmpfs rw
/dev/null devtmpfs rw
/dev/random devtmpfs rw
/dev/shm tmpfs rw
/dev/urandom devtmpfs rw
/dev/zero devtmpfs rw
/proc proc ro
/proc/cpuinfo tmpfs ro
/proc/filesystems proc ro
/proc/loadavg tmpfs ro
/proc/meminfo tmpfs ro
/proc/mounts proc ro
/proc/net proc ro
/proc/stat tmpfs ro
/proc/sys proc ro
/proc/uptime tmpfs ro
/proc/version proc ro
/sys tmpfs ro
/tmp tmpfs rw
/workspace tmpfs rw"
	in_box --image thing -- sh -c 'for p in / /dev /sys /tmp /workspace /proc; do
		grep " $p " /proc/mounts | grep -c nosuid.*nodev; done'
	is "$output" "1
1
1
1
1
1"
	# No path leads to a single layer, or to what takes changes.
	for mode in true false; do
		in_box --image thing --read-only=$mode -- sh -c 'ls -a /; ls -a /.. | head -40; ls / -a | grep "^\.[a-z]"'
		lacks "$output" .layers
		lacks "$output" .upper
		lacks "$output" .own
		lacks "$output" .root
	done
}

@test "image-run: inside it is as strict as this machine's root is" {
	local probe='
		id -u; cat /proc/self/uid_map | { read a b c; echo "$a $c"; }
		grep -E "^(CapEff|CapBnd|CapPrm|CapInh|CapAmb|NoNewPrivs|Seccomp|Seccomp_filters):" /proc/self/status
		ls /dev; ls /sys /sys/devices/system/cpu; ls -d /proc/[a-z]*
		cat /proc/sys/user/max_user_namespaces /proc/sys/kernel/domainname
		for p in / /etc /dev /sys /proc /proc/sys/kernel; do touch $p/x 2>/dev/null && echo "wrote $p"; done
		cat /etc/hosts /etc/resolv.conf; ls /proc/self/fd | wc -l'
	ln -sf busybox root/bin/grep
	ln -sf busybox root/bin/wc
	import thing
	in_box -- sh -c "$probe"
	is "$status" 0
	local host=$output
	in_box --image thing -- sh -c "$probe"
	is "$status" 0
	is "$output" "$host"
	lacks "$output" wrote
	has "$output" "CapEff:	0000000000000000"
}

@test "image-run: files belong to the box's user or to nobody; closed ones stay so where they can" {
	echo open >root/etc/open
	chmod 644 root/etc/open
	mkdir root/srv/dir
	echo x >root/srv/dir/x
	import thing
	gives 0 open --image thing -- cat /etc/open
	gives 0 x --image thing --user 4711 -- cat /srv/dir/x
	in_box --image thing --user 4711:4712 -- stat -c %u:%g /etc/open
	[ "$output" = 4711:4712 ] || is "$output" 65534:65534
	# Never of the host's: the box knows one user and the overflow.
	in_box --image thing -- sh -c 'find / -xdev ! -user 65534 2>/dev/null | head -3'
	is "$output" ""
}

@test "image-run: read-only unless asked; changes are thrown away and bounded" {
	import thing
	in_box --image thing -- sh -c 'touch /x || rm /etc/motd || echo y >/etc/motd'
	is "$status" 1
	has "$stderr" "Read-only file system"
	gives 0 "y
new" --image thing --read-only=false -- sh -c '
		echo y >/etc/motd && cat /etc/motd && mkdir -p /a/b && echo new >/a/b/c && cat /a/b/c &&
		rm -r /srv && rm /bin/touch && ! ls /srv 2>/dev/null'
	gives 0 from-the-image --image thing -- cat /etc/motd
	gives 0 "" --image thing -- touch /tmp/x
	# Directories of the image can be emptied, removed, made again and renamed.
	mkdir root/full && echo 1 >root/full/1
	import full
	gives 0 "" --image full --read-only=false -- sh -c 'rm -r /full && mkdir /full && ls /full'
	# So many bytes, so many files, and the box's own memory.
	in_box --image thing --read-only=false --disk 4m -- dd if=/dev/zero of=/big bs=1048576 count=8
	is "$status" 1
	has "$stderr" "No space left"
	in_box --image thing --read-only=false --disk 4m -- sh -c '
		i=0; while [ $i -lt 5000 ]; do : >/f$i || exit 3; i=$((i+1)); done'
	[ "$status" -ne 0 ]
	has "$stderr" "No space left"
	in_box --image thing --read-only=false --disk 512m --memory 32m -- dd if=/dev/zero of=/big bs=1048576 count=200
	is "$status" 137
}

@test "image-run: Cordon's own files lie over the image's, whatever those are" {
	rm root/etc/hosts
	ln -s /proc/self/environ root/etc/hosts
	mkdir root/etc/resolv.conf && echo x >root/etc/resolv.conf/x
	ln -s ../../../../../../etc/shadow root/etc/hostname
	import thing
	gives 0 "127.0.0.1 localhost cordon
::1 localhost
# no network
cordon" --image thing -- cat /etc/hosts /etc/resolv.conf /etc/hostname
	# Also where its directory is not one.
	rm -r root/etc
	ln -s /tmp root/etc
	import linked
	gives 0 "127.0.0.1 localhost cordon
::1 localhost
hostname hosts resolv.conf" --image linked -- sh -c 'cat /etc/hosts; echo $(ls /etc)'
}

# CVE-2026-41579 and its kin: a mount through a link of the image.
@test "image-run: a hostile root cannot move what is mounted" {
	local place
	for place in tmp workspace srv/x; do
		rm -rf "root/$place"
		ln -s /proc "root/$place"
	done
	import hostile
	# The places of every box are real directories.
	gives 0 "" --image hostile -- sh -c '[ ! -L /tmp ] && [ ! -L /workspace ] && touch /tmp/x /workspace/x'
	mkdir host
	echo host >host/file
	fails "leads through a link of the image" --image hostile -v ./host:/srv/x -- true
	fails "leads through a link of the image" --image hostile -v ./host:/srv/x/self -- true
	fails "leads through a link of the image" --image hostile --tmpfs /srv/x/1 -- true
	ln -s /dev root/devlink
	ln -s ../../../../.. root/up
	echo file >root/plain
	import hostile
	fails "leads through a link of the image" --image hostile -v ./host:/devlink/shm -- true
	fails "leads through a link of the image" --image hostile -v ./host:/up/tmp -- true
	fails "below a file" --image hostile -v ./host:/plain -- true
	fails "below a file" --image hostile -v ./host:/plain/x -- true
	fails "not of the kind" --image hostile -v ./host/file:/etc -- true
	# The very same places without a link are fine.
	gives 0 host --image hostile -v ./host:/srv/y -- cat /srv/y/file
	gives 0 host --image hostile -v ./host/file:/etc/motd -- cat /etc/motd
	gives 0 host --image hostile -v ./host/file:/new/dir/name -- cat /new/dir/name
	gives 0 host --image hostile -v ./host:/tmp/deep/er -- cat /tmp/deep/er/file
	gives 0 host --image hostile -v ./host:/usr/share/x -- cat /usr/share/x/file
	in_box --image hostile -v ./host:/dev/x -- true
	is "$status" 126
	has "$stderr" "nothing can be mounted at '/dev/x'"
	is "$(ls host)" file
}

@test "image-run: /dev, /proc and /sys of an image are never seen" {
	local place
	for place in dev proc sys; do
		mkdir -p "root/$place/self"
		echo evil >"root/$place/evil"
		echo evil >"root/$place/cpuinfo"
	done
	echo evil >root/dev/null
	import thing
	gives 0 "" --image thing -- sh -c '
		for d in dev proc sys; do [ ! -e /$d/evil ] || echo "$d"; done
		[ -c /dev/null ] && echo x >/dev/null && ! grep -q evil /proc/cpuinfo 2>/dev/null
		[ ! -d /dev/self ]'
	gives 0 "" --image thing --read-only=false -- sh -c '
		for d in dev proc sys; do [ ! -e /$d/evil ] || echo "$d"; touch /$d/x 2>/dev/null && echo "wrote $d"; done; :'
}

# What runs, from the image's entrypoint and command and the request's.
@test "image-run: entrypoint and command are merged as Docker does" {
	local entry cmd given words want
	while IFS='|' read -r entry cmd given words want; do
		load_image merge "{\"Entrypoint\":$entry,\"Cmd\":$cmd}" root
		read -ra given_words <<<"$given"
		read -ra cmd_words <<<"$words"
		in_box --image merge "${given_words[@]}" "${cmd_words[@]/#--/--}"
		if [ "$want" = - ]; then
			is "$status" 125
			has "$stderr" "no command specified"
		else
			is "$status" 0
			is "$output" "$want"
		fi
	done <<'TABLE'
null|["echo","c"]|||c
null|["echo","c"]||-- echo r|r
["echo","e"]|null|||e
["echo","e"]|["c"]|||e c
["echo","e"]|["c"]||-- r s|e r s
["echo","e"]|["c"]|--entrypoint echo||
["echo","e"]|["c"]|--entrypoint echo|-- r|r
["echo","e"]|["c"]|--entrypoint echo --entrypoint x|-- r|x r
["echo","e"]|["c"]|--entrypoint=|-- echo r|r
["echo","e"]|["c"]|--entrypoint=||-
null|null|||-
null|null||-- echo r|r
TABLE
	# Code and a command line are complete by themselves.
	load_image merge '{"Entrypoint":["false"],"Cmd":["c"]}' root
	gives 0 code --image merge --lang sh -c 'echo code'
	gives 0 line --image merge --command 'echo line'
	refused "goes with an image" run --entrypoint sh -- true
}

@test "image-run: environment, working directory and user of the image" {
	load_image conf '{"Env":["A=image","B=image","PATH=/srv:/bin"],"WorkingDir":"/srv/deep/er","User":"app"}' root
	gives 0 "image
request
none
/srv:/bin" --image conf -e B=request -e C=x -e C -- sh -c 'echo $A; echo $B; echo ${C-none}; echo $PATH'
	gives 0 none --image conf -e A -- sh -c 'echo ${A-none}'
	gives 0 /srv/deep/er --image conf -- pwd
	gives 0 /tmp --image conf -w /tmp -- pwd
	gives 0 / --image conf -w / -- pwd
	gives 0 /new/place --image conf -w /new/place -- pwd
	gives 0 "1000
/srv/deep/er" --image conf -- sh -c 'id -u; pwd'
	gives 0 1001 --image conf -- id -g
	import plain
	gives 0 / --image plain -- pwd
	gives 0 65534 --image plain -- id -u
	# Programs are looked for where the image's PATH says.
	printf '#!/bin/sh\necho mine\n' >root/srv/tool
	chmod 755 root/srv/tool
	load_image conf '{"Env":["PATH=/srv:/bin"]}' root
	gives 0 mine --image conf -- tool
	in_box --image conf -e PATH=/nowhere -- tool
	is "$status" 127
	refused "the host's own variables are not passed in" run -e HOME -- true
}

@test "image-run: users by number and by the image's names" {
	local user want
	import thing
	while read -r user want; do
		gives 0 "$want" --image thing --user "$user" -- sh -c 'echo $(id -u):$(id -g)'
	done <<'TABLE'
app 1000:1001
app:staff 1000:50
app:77 1000:77
1000 1000:1001
1000:staff 1000:50
4711 4711:4711
4711:4712 4711:4712
root 0:0
0 0:0
TABLE
	# Lines that are not quite of the form name nobody.
	printf '%s\n' bad:x:1x:2::/: short:x:7 neg:x:-1:0::/: ' sp:x:1:1::/:' big:x:4294967295:1::/: \
		app:x:5 app:x:1000:1001::/srv:/bin/sh >root/etc/passwd
	import odd
	for user in nobody bad short neg sp big ''; do
		[ -z "$user" ] || fails "unable to find user '$user'" --image odd --user "$user" -- true
	done
	in_box --image odd --user app -- stat -c %u /tmp
	is "$output" 1000
	fails "unable to find group 'none'" --image thing --user app:none -- true
	# A file that is a link is not followed: not by us, who could read more.
	ln -sf /etc/passwd root/etc/passwd
	import linked
	fails "is a link, which is not followed" --image linked --user app -- true
	gives 0 1000 --image linked --user 1000 -- stat -c %u /tmp
	# Hidden by a layer above, it is gone.
	some_root again
	mkdir -p two/etc && : >two/etc/.wh.passwd
	load_image hidden '{}' again two
	fails "unable to find user 'app'" --image hidden --user app -- true
	mkdir -p three/etc && : >three/etc/.wh..wh..opq
	load_image opaque '{}' again three
	fails "unable to find user 'app'" --image opaque --user app -- true
	# Root of an image is the usual user; a policy may say otherwise.
	load_image rooted '{"User":"root"}' again
	gives 0 65534 --image rooted -- id -u
	printf '%s\n' 'version: 1' 'sandbox: {images: [rooted]}' >no.yaml
	printf '%s\n' 'version: 1' 'sandbox: {images: [rooted]}' 'docker: {allow_root_inside: true}' >root.yaml
	gives 0 65534 --policy no.yaml --image rooted -- id -u
	gives 0 0 --policy root.yaml --image rooted -- id -u
	in_box --policy no.yaml --image rooted --user 0 -- id -u
	is "$output" 65534
	has "$stderr" "allow_root_inside"
	# Never root of the host.
	in_box --policy root.yaml --image rooted -- sh -c 'read -r in out n </proc/self/uid_map; echo "$in $n"'
	is "$output" "0 1"
	refused "neither a number nor a name" run --user app -- true
}

@test "image-run: it stays while a box uses it" {
	import thing
	"$cordon" run --image thing -- sh -c 'echo up; sleep 20' >out &
	local pid=$!
	for _ in {1..100}; do
		[ ! -s out ] || break
		sleep 0.05
	done
	is "$(cat out)" up
	run --separate-stderr "$cordon" image rm thing
	[ "$status" -ne 0 ]
	has "$stderr" "in use"
	run --separate-stderr "$cordon" image prune --all --force
	gives 0 "" --image thing -- true
	kill "$pid"
	wait "$pid" || :
	"$cordon" image rm thing >/dev/null
	fails "No such image" --image thing -- true
}

@test "image-run: a policy says which images, and which is the default" {
	local id
	import good:1
	id=$(cat id)
	echo other >root/etc/motd
	import other:1
	policy() {
		printf '%s\n' 'version: 1' "sandbox: {images: $1}" >p.yaml
	}
	for list in "['good:1']" "['good:*']" "['docker.io/library/good:1']" "['docker.io/library/*:1', host]" \
		"['$id']" "['docker.io/library/good@$id']"; do
		policy "$list"
		gives 0 from-the-image --policy p.yaml --image good:1 -- cat /etc/motd
	done
	for list in "['good:2']" "[host]" "['other:1']"; do
		policy "$list"
		in_box --policy p.yaml --image good:1 -- true
		is "$status" 126
		has "$stderr" "is not given"
	done
	printf 'version: 1\n' >p.yaml
	in_box --policy p.yaml --image good:1 -- true
	is "$status" 126
	has "$stderr" "states no sandbox.images"
	policy "['other:1', 'good:1']"
	gives 0 other --policy p.yaml -- cat /etc/motd
	in_box --policy p.yaml --image missing -- true
	is "$status" 126
	printf '%s\n' 'version: 1' 'sandbox: {images: ["good:1"]}' 'commands: {allow: [cat]}' >p.yaml
	gives 0 from-the-image --policy p.yaml --image good:1 -- cat /etc/motd
	in_box --policy p.yaml --image good:1 -- ls /
	is "$status" 126
}

@test "image-run: a dynamic root of this machine's own files runs" {
	local lib
	mkdir -p dyn/{usr/bin,usr/lib,lib64,etc}
	cp /usr/bin/{cat,id,bash} dyn/usr/bin
	for lib in $(ldd /usr/bin/{cat,id,bash} | grep -o '/[^ ]*' | grep -v ':$' | sort -u); do
		mkdir -p "dyn/${lib%/*}"
		cp -L "$lib" "dyn$lib"
	done
	tar -cf dyn.tar -C dyn .
	"$cordon" image import -c 'CMD ["bash","-c","echo $BASH_VERSION"]' dyn.tar dyn >/dev/null
	in_box --image dyn
	is "$status" 0
	has "$output" "${BASH_VERSION%%.*}."
	gives 0 65534 --image dyn -- id -u
}

@test "image-run: the library and settings as JSON take it too" {
	import thing -c 'ENTRYPOINT ["echo","e"]' -c 'CMD ["c"]'
	lib() {
		run --separate-stderr "$CORDON_BUILD/tests/librun" "$@"
	}
	lib '{"image":"thing"}'
	is "$(field stdout)" "e c"
	lib '{"image":"thing"}' r
	is "$(field stdout)" "e r"
	lib '{"image":"thing","entrypoint":["echo","x","y"]}'
	is "$(field stdout)" "x y"
	# An empty list takes the entrypoint away, and leaves the command.
	lib '{"image":"thing","entrypoint":[]}' echo r
	is "$(field stdout)" r
	lib --show '{"image":"thing","entrypoint":[]}'
	is "$(field entrypoint)" "[]"
	lib '{"image":"thing","entrypoint":"env","env":["A=1","HOME"]}'
	has "$(field stdout)" A=1
	lacks "$(field stdout)" HOME=
	lib '{"image":"thing","entrypoint":["pwd"],"workdir":"/a/b","user":"app"}'
	is "$(field stdout)" /a/b
	lib '{"image":"nothing"}' true
	is "$(field cause)" invalid
	has "$output" "No such image: nothing"
	# A keeper of many runs holds it only while one is there or made ahead.
	"$cordon" image rm thing >/dev/null
}

@test "image-run: what Docker's users say of a container holds, or is refused" {
	local try
	gives 0 "h1
127.0.0.1 localhost h1.d.e h1
::1 localhost
10.0.0.7 db
fd00::1 six
d.e" --hostname h1 --domainname d.e --add-host db:10.0.0.7 --add-host six:fd00::1 -- \
		sh -c 'uname -n; cat /etc/hosts /proc/sys/kernel/domainname'
	gives 0 "1777 2048 no
755 1024" --tmpfs /t:size=2m,mode=1777,noexec --shm-size 1m -- sh -c '
		cp /bin/true /t && /t/true 2>/dev/null && x=yes || x=no
		echo $(stat -c %a /t) $(df -k --output=size /t | tail -1) $x
		echo $(stat -c %a /dev/shm) $(df -k --output=size /dev/shm | tail -1)'
	in_box --tmpfs /t:ro -- touch /t/x
	has "$stderr" "Read-only file system"
	gives 0 "64 100
0 0
50 50
1024" --ulimit nofile=64:100 --ulimit core=-1 --ulimit nproc=50 --ulimit fsize=1048576 -- bash -c '
		echo $(ulimit -Sn) $(ulimit -Hn); echo $(ulimit -Sc) $(ulimit -Hc); echo $(ulimit -Su) $(ulimit -Hu)
		ulimit -f'
	# Never above what every box has, which is said.
	in_box --ulimit nofile=1000000 -- bash -c 'ulimit -n'
	is "$status $output" "0 1024"
	has "$stderr" "ulimit nofile is 1024: it can only be lowered"
	in_box --ulimit cpu=1 --timeout 20 --cpus 1 -- sh -c 'while :; do :; done'
	[ "$status" -ge 128 ]
	in_box --ulimit as=67108864 --memory 256m -- python3 -c 'x = bytearray(100 << 20)'
	has "$stderr" MemoryError
	gives 0 500 --oom-score-adj 500 -- cat /proc/self/oom_score_adj
	gives 0 0 --oom-score-adj 0 -- cat /proc/self/oom_score_adj
	gives 0 300 -- cat /proc/self/oom_score_adj
	gives 0 "Cpus_allowed_list:	0" --cpuset-cpus 0 --cpus 2 -- grep Cpus_allowed_list /proc/self/status
	gives 0 1 --cpuset-cpus 0 --cpus 2 -- nproc
	fails "no box may use the CPUs" --cpuset-cpus 250-255 -- true
	gives 0 "" --cpu-shares 512 --memory-reservation 16m --memory-swap -1 -- true
	while read -r try; do
		# shellcheck disable=SC2086 # words
		refused "" run $try -- true
	done <<'TABLE'
--hostname a/b
--hostname -x
--domainname a\nb
--add-host db
--add-host db:nowhere
--add-host db:host-gateway
--add-host a\nb:1.2.3.4
--shm-size 1
--tmpfs /t:suid
--tmpfs /t:mode=4755
--tmpfs /t:mode=9
--tmpfs /t:dev
--ulimit nofile
--ulimit rss=1
--ulimit none=1
--ulimit nofile=9:8
--ulimit nofile=x
--ulimit as=1
--cpuset-cpus x
--cpuset-cpus 3-1
--cpuset-cpus 1,
--cpuset-cpus 300
--cpu-shares 1
--cpu-shares 300000
--oom-score-adj -1
--oom-score-adj 1001
--memory-reservation 1g
--group-add 5
TABLE
	# Under a policy too: a place in memory is counted as any other.
	printf '%s\n' 'version: 1' 'sandbox: {tmpfs: {/dev/shm: 1m}}' >p.yaml
	in_box --policy p.yaml --shm-size 512m -- true
	is "$status" 126
}

@test "image-run: a box weighs what it was told, in its groups" {
	local mark=20.$RANDOM$RANDOM p found='' dir pid
	"$cordon" run --cpu-shares 300 --memory-reservation 20m -- sh -c "echo up; sleep $mark" >out &
	pid=$!
	for _ in {1..100}; do
		[ ! -s out ] || break
		sleep 0.05
	done
	for p in /proc/[0-9]*; do
		[ "$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)" != "sleep $mark " ] || found=$p
	done
	# group CONTROLLER FILE: what the kernel has there, in either version.
	group() {
		dir=$(awk -F: -v c="$1" '$2 ~ "(^|,)" c "(,|$)" { print "/sys/fs/cgroup/" c $3 }' "$found/cgroup")
		[ -e "$dir/$2" ] || dir=/sys/fs/cgroup$(sed -n 's/^0:://p' "$found/cgroup")
		cat "$dir/$2" 2>/dev/null || cat "$dir/$3"
	}
	local weight low
	weight=$(group cpu cpu.shares cpu.weight)
	low=$(group memory memory.soft_limit_in_bytes memory.low)
	kill "$pid"
	wait "$pid" || :
	[ "$weight" = 12 ] || is "$weight" 300
	is "$low" 20971520
}

# P38 to P41, past the store: a layer whose places are links, as no archive that
# the store takes in could make it (CVE-2025-31133, -52565, -52881, 2026-41579).
@test "image-run: P38 P39 P40 P41 a layer that is not what the store takes in moves nothing" {
	local fs place
	import thing
	fs=$(echo "$CORDON_STATE_DIR"/images/layers/sha256/*/fs)
	mkdir outside
	for place in dev proc sys tmp etc workspace; do
		rm -rf "${fs:?}/$place"
		ln -s "$dir/outside" "$fs/$place"
	done
	local look='[ -c /dev/null ] && [ -d /proc/self/fd ] && [ ! -L /dev ] && [ ! -L /etc ] && cat /etc/hosts |
		head -1 && touch /tmp/x /workspace/x && ls /sys'
	gives 0 "127.0.0.1 localhost cordon
devices" --image thing -- sh -c "$look"
	gives 0 "127.0.0.1 localhost cordon
devices" --image thing --read-only=false -- sh -c "$look"
	is "$(ls outside)" ""
	# Real directories with links, files and pipes where devices belong.
	for place in dev proc sys tmp etc workspace; do
		rm "$fs/$place"
		mkdir "$fs/$place"
	done
	ln -s /proc/self/mem "$fs/dev/null"
	ln -s "$dir/outside/x" "$fs/dev/ptmx"
	ln -s "$dir/outside" "$fs/dev/pts"
	ln -s "$dir/outside" "$fs/dev/shm"
	ln -s "$dir/outside/x" "$fs/etc/hosts"
	mkfifo "$fs/dev/zero" "$fs/etc/resolv.conf"
	ln -s 1 "$fs/proc/self"
	gives 0 "127.0.0.1 localhost cordon
devices" --image thing -- sh -c "$look"
	run script -qec "'$cordon' run -t --image thing -- sh -c '[ -c /dev/pts/0 ] && echo tty'" /dev/null
	has "$output" tty
	is "$(ls outside)" ""
}
