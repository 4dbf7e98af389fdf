#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to take an image in, beside `umoci unpack` of the same layout.

    unpack.py BUILD [ROUNDS [DIR]]

An OCI layout with one packed layer, of this machine's own Python library, is
taken in by `cordon image load` into a store of its own and unpacked by umoci,
in turn, in DIR (BUILD unless said). Prints lines as figure.h does: what, figure,
unit, bar. Ends with 1 if ours is the slower one.
"""
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.__file__)


def run(*words, **env):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, **env})


def make_layout(top):
    layout, bundle = f"{top}/layout", f"{top}/first"
    run("umoci", "init", "--layout", layout)
    run("umoci", "new", "--image", f"{layout}:t")
    run("umoci", "unpack", "--rootless", "--image", f"{layout}:t", bundle)
    shutil.copytree(SOURCE, bundle + "/rootfs" + SOURCE, symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__", "test", "config-*",
                                                  "dist-packages", "site-packages"))
    run("umoci", "repack", "--image", f"{layout}:t", bundle)
    return layout


def timed(*words, **env):
    begin = time.monotonic()
    run(*words, **env)
    return (time.monotonic() - begin) * 1000


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    build = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    if not shutil.which("umoci"):
        print("unpack: umoci is not installed\t-\t-\t-")
        return 0
    top = tempfile.mkdtemp(prefix="cordon-unpack-", dir=sys.argv[3] if len(sys.argv) > 3 else build)
    ours, theirs = [], []
    try:
        layout = make_layout(top)
        for i in range(rounds + 1):
            store, bundle = f"{top}/store{i}", f"{top}/bundle{i}"
            one = timed(f"{build}/cordon", "image", "load", "--quiet", "--name", "bench", layout,
                        CORDON_STATE_DIR=store)
            two = timed("umoci", "unpack", "--rootless", "--image", f"{layout}:t", bundle)
            if i:  # the first of each warms the caches
                ours.append(one)
                theirs.append(two)
            shutil.rmtree(store)
            shutil.rmtree(bundle)
    finally:
        shutil.rmtree(top)
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"unpack: cordon image load\t{statistics.median(ours):.0f}\tms\t-")
    print(f"unpack: umoci unpack\t{statistics.median(theirs):.0f}\tms\t-")
    print(f"unpack: ours to umoci's\t{ratio:.2f}\ttimes\tat most 1.00")
    return 0 if ratio <= 1 else 1


sys.exit(main())
