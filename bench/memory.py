#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that Cordon adds to a run.

    memory.py CORDON SAMPLES

Runs `CORDON run -- sleep 5` and, once the program is there, adds up the
proportional set size of every process below the command but the program. What
two processes share as one memory (kcmp) is there once, though the kernel shows
it for both. CORDON should be a copy that nothing else runs: a page that two runs map
counts for half in each.

Lines out: command, keeper and init, in KiB, tab-separated.
"""

import ctypes
import os
import subprocess
import sys
import time

PATIENCE = 5.0
KCMP = {"x86_64": 312, "aarch64": 272}  # its number
KCMP_VM = 1


def processes():
    """pid -> (parent, name)"""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as f:
                text = f.read()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        parent = int(text[text.rindex(")") + 2:].split()[1])
        found[int(entry)] = (parent, name)
    return found


def below(root):
    """pid -> name of root and of everything below it"""
    every = processes()
    tree = {root: every[root][1]} if root in every else {}
    grew = True
    while grew:
        grew = False
        for pid, (parent, name) in every.items():
            if parent in tree and pid not in tree:
                tree[pid] = name
                grew = True
    return tree


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        for line in f:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    raise SystemExit(f"memory: /proc/{pid}/smaps_rollup has no Pss line")


def is_one_memory(a, b):
    number = KCMP.get(os.uname().machine)
    return number is not None and a != b and ctypes.CDLL(None).syscall(
        number, a, b, KCMP_VM, 0, 0) == 0


def wait_for_program(root):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        tree = below(root)
        if "sleep" in tree.values():
            return tree
        time.sleep(0.02)
    raise SystemExit("memory: the program did not start")


def sample(cordon):
    run = subprocess.Popen([cordon, "run", "--", "sleep", "5"],
                           stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL)
    try:
        wait_for_program(run.pid)
        time.sleep(0.1)  # until nothing is on its way up or down
        tree = wait_for_program(run.pid)
        sizes = {"command": 0, "keeper": 0, "init": 0}
        for pid, name in tree.items():
            if name == "sleep" or is_one_memory(pid, run.pid):
                continue
            part = ("command" if pid == run.pid else
                    "keeper" if "keeper" in name else "init")
            sizes[part] += pss(pid)
        # The command has its keeper inside; a process of its own is extra.
        if not sizes["command"] or not sizes["init"]:
            raise SystemExit(f"memory: not all parts were found: {tree}")
    finally:
        run.terminate()
        run.wait()
    print("\t".join(str(sizes[p]) for p in ("command", "keeper", "init")))


for _ in range(int(sys.argv[2])):
    sample(sys.argv[1])
