# SPDX-License-Identifier: Apache-2.0
"""What the cases of this directory share: a box, attempts in it, TAP."""

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor

BUILD = os.environ["CORDON_BUILD"]
LAB = os.environ["CORDON_LAB"]
HERE = os.path.dirname(os.path.abspath(__file__))
PROBE = open(HERE + "/probe.py").read()
CASES = []
AT_ONCE = 6


def case(name):
    def add(fn):
        CASES.append((name, fn))
        return fn
    return add


class Box:
    """Runs under one policy (or none), with a ledger of its own."""

    def __init__(self, rules=None, more=""):
        self.dir = tempfile.mkdtemp(prefix="cordon-egress-")
        self.env = dict(os.environ, CORDON_STATE_DIR=self.dir + "/state",
                        CORDON_LIBEXEC=BUILD, CORDON_POLICY="")
        for name in ("CORDON_POLICY", "SSL_CERT_FILE"):
            self.env.pop(name, None)
        os.mkdir(self.dir + "/here")
        self.flags = []
        if rules is not None:
            path = self.dir + "/cordon.yaml"
            with open(path, "w") as f:
                f.write("version: 1\nnetwork:\n  allow:\n" + "".join(
                    f"    - {r}\n" for r in rules) + more)
            self.flags = ["--policy", path]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def start(self, *args, **more):
        return subprocess.Popen(
            [BUILD + "/cordon", "run", *self.flags, *args], env=self.env,
            cwd=self.dir + "/here", stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def run(self, *args, **more):
        """The result's document of one run."""
        with self.start("--json", *args, **more) as p:
            out, err = p.communicate(timeout=60)
        try:
            doc = json.loads(out)
        except ValueError:
            raise AssertionError(f"no document: {err.decode()} {out!r}")
        return doc

    def tries(self, *attempts, flags=(), image=()):
        """What probe.py says of each, and the document."""
        doc = self.run("--cpus", "2", *flags, "--", "/usr/bin/python3", "-c",
                       PROBE, json.dumps(attempts))
        try:
            return json.loads(doc["stdout"]), doc
        except ValueError:
            raise AssertionError(f"the probe failed: {doc}")

    def records(self):
        """Everything on the ledger, and its text."""
        text = "".join(open(f).read() for f in sorted(
            glob.glob(self.dir + "/state/ledger/*.jsonl")))
        return [json.loads(line) for line in text.splitlines()], text


def told(doc):
    """The denials of the network as (what, reason)."""
    return {(d["what"], d["reason"]) for d in doc["denials"]
            if d["layer"] == "net"}


def refused(box):
    """The refusals on the ledger as (host, port, code), with repetitions."""
    return [(r["host"], r["port"], r.get("code")) for r in box.records()[0]
            if r["kind"] == "connection" and r["decision"] == "deny"]


def reasons(doc):
    return {d["reason"] for d in doc["denials"] if d["layer"] == "net"}


def is_in(part, text):
    if part not in text:
        raise AssertionError(f"{part!r} is not in {text!r}")


def is_not_in(part, text):
    if part in text:
        raise AssertionError(f"{part!r} is in {text!r}")


def fails(text, why=None):
    """An attempt that came to nothing."""
    for word in ("VICTIM", "METADATA", "hello from", "OTHER", "connected"):
        is_not_in(word, text)
    if not text.startswith("!") and text.strip():
        raise AssertionError(f"it got an answer: {text!r}")
    if why and why not in text:
        raise AssertionError(f"{text!r} is not {why!r}")


def outside(host, port, send=b"GET / HTTP/1.0\r\n\r\n"):
    """The control: what the machine itself gets there."""
    with socket.create_connection((host, port), 3) as s:
        s.sendall(send)
        data = b""
        while more := s.recv(4096):
            data += more
    return data.decode("latin-1")


def attempt(fn):
    """None, or what went wrong."""
    try:
        fn()
        return None
    except Exception:
        return "".join("# " + line + "\n" for line in
                       traceback.format_exc().splitlines())


def main():
    """Some at a time: most of a case is waiting."""
    wanted, bad = sys.argv[1:], 0
    cases = [c for c in CASES if not wanted or any(
        c[0].startswith(w) for w in wanted)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(attempt, [fn for _, fn in cases])
        for n, ((name, _), wrong) in enumerate(zip(cases, answers), 1):
            bad += wrong is not None
            print(f"{wrong}not ok {n} - {name}" if wrong else
                  f"ok {n} - {name}", flush=True)
    print(f"1..{len(cases)}")
    sys.exit(1 if bad else 0)
