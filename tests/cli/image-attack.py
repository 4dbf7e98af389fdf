# Runs in a box, as an allowed interpreter: tries to execute what is not on the
# list of commands, in every way there is, and prints what ran.
import ctypes
import glob
import mmap
import os
import shutil
import subprocess
import sys

WANTED = "/usr/bin/busybox"   # static: needs no loader
DYNAMIC = "/usr/bin/bash"     # for the loader
BUSYBOX = ["busybox", "true"]  # it is what its first word says
ALLOWED = os.path.realpath("/usr/bin/timeout")
places = [p for p in ("/tmp", "/workspace", "/dev/shm", *sys.argv[1:])
          if os.access(p, os.W_OK)]
ran, tried = [], 0
libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, argv, **more):
    global tried
    tried += 1
    try:
        p = subprocess.run(argv, capture_output=True, timeout=20, **more)
    except OSError:
        return
    if p.returncode == 0:
        ran.append(name)


def attempt_call(name, call):
    global tried
    tried += 1
    try:
        call()
    except (OSError, ValueError):
        return
    ran.append(name)


def execveat(fd, path, flags):
    """In a child; its status is 0 only if the program ran."""
    pid = os.fork()
    if pid == 0:
        argv = (ctypes.c_char_p * 3)(b"true", b"true", None)
        libc.syscall(322, fd, path, argv, None, flags)
        os._exit(99)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 99:
        raise OSError


def map_code(path, first=mmap.PROT_READ | mmap.PROT_EXEC):
    with open(path, "rb") as f:
        m = mmap.mmap(f.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=first)
        if first == mmap.PROT_READ:
            libc.mmap.restype = ctypes.c_void_p
            at = libc.mmap(None, 4096, 1, 2, f.fileno(), 0)
            if libc.mprotect(ctypes.c_void_p(at), 4096, 5) != 0:
                raise OSError
        m.close()


loaders = glob.glob("/lib64/ld-linux*.so*") + glob.glob("/lib/ld-linux*.so*")
attempt("as it is", [WANTED, "true"])
attempt("shell", [DYNAMIC, "-c", "exit 0"])
attempt("through its link", ["/bin/sh", "-c", "exit 0"])
attempt("through /proc", [f"/proc/self/root{WANTED}", "true"])
fd = os.open(WANTED, os.O_RDONLY)
attempt("descriptor", BUSYBOX, executable=f"/proc/self/fd/{fd}", pass_fds=[fd])
attempt_call("execveat", lambda: execveat(fd, b"", 0x1000))
path = os.open(WANTED, os.O_PATH)
attempt_call("execveat, path", lambda: execveat(path, b"", 0x1000))
attempt_call("map", lambda: map_code(WANTED))
attempt_call("map, then protect", lambda: map_code(WANTED, mmap.PROT_READ))
for loader in loaders[:1]:
    attempt("loader, dynamic", [loader, DYNAMIC, "-c", "exit 0"])
for place in places:
    copy = f"{place}/copy"
    shutil.copy(WANTED, copy)
    os.chmod(copy, 0o755)
    attempt(f"copy in {place}", BUSYBOX, executable=copy)
    attempt_call(f"map a copy in {place}", lambda: map_code(copy))
    shutil.copy(DYNAMIC, f"{place}/dynamic")
    for loader in loaders[:1]:
        attempt(f"loader, copy in {place}", [loader, f"{place}/dynamic", "-c", "exit 0"])
    os.symlink(WANTED, f"{place}/link")
    attempt(f"link in {place}", BUSYBOX, executable=f"{place}/link")
    attempt_call(f"hard link in {place}", lambda: os.link(WANTED, f"{place}/hard"))
    attempt_call(f"hard link to what is allowed in {place}",
                 lambda: os.link(ALLOWED, f"{place}/hard"))
    with open(f"{place}/script", "w") as f:
        f.write(f"#!{WANTED} true\n")
    os.chmod(f"{place}/script", 0o755)
    attempt(f"script in {place}", [f"{place}/script"])
    with open(f"{place}/script", "w") as f:
        f.write(f"#!{ALLOWED} 1\n")
    attempt(f"script for what is allowed, in {place}", [f"{place}/script"])
    lib = shutil.copy(glob.glob("/usr/lib/*/libm.so.6")[0], f"{place}/lib.so")
    attempt_call(f"library in {place}", lambda: ctypes.CDLL(lib))


def memfd():
    fd = os.memfd_create("x", 0)
    with open(WANTED, "rb") as f:
        os.write(fd, f.read())
    execveat(fd, b"", 0x1000)


def overwrite(path):
    with open(path, "r+b") as f:
        f.write(b"x")


def swap():
    os.rename(ALLOWED, ALLOWED + ".old")


attempt_call("memory file", memfd)
attempt_call("overwritten", lambda: overwrite(ALLOWED))
attempt_call("renamed", swap)
attempt_call("new in its place", lambda: shutil.copy(WANTED, os.path.dirname(ALLOWED) + "/new"))
attempt_call("remounted", lambda: libc.mount(b"none", b"/", None, 32, None) == 0 or (_ for _ in ()).throw(OSError()))
control = []
ran, control = control, ran
attempt("control", [ALLOWED, "5", ALLOWED, "--version"])
assert ran == ["control"], "the allowed program does not run"
print(*control or ["nothing"], sep="; ", end=" ")
print("tried", tried, "places", *places)
