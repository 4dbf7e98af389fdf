# SPDX-License-Identifier: Apache-2.0
"""Programs that people use, as they are: by name only, and through rules for
which TLS is opened."""

import hashlib
import io
import json
import os
import subprocess
import tarfile
import time

from common import BUILD, HERE, Box, case, is_in, reasons

NAME_ONLY = ["{host: api.test, ports: [443, 80]}"]
OPENED = ["{host: api.test, ports: [443, 80], methods: [GET, HEAD, POST]}"]
SLOW = ["--cpus", "2", "--memory", "512m", "--disk", "256m", "--pids-limit",
        "512"]

CLIENTS = {
    "curl, HTTP/1.1 and what it offers itself":
        ("curl -sS https://api.test/c && curl -sS --http1.1 https://api.test/c",
         "hello from api.test/c\nhello from api.test/c"),
    "wget": ("wget -qO- https://api.test/w", "hello from api.test/w"),
    "python: urllib and a plain socket":
        ("/usr/bin/python3 -c \"import urllib.request as u, socket; "
         "print(u.urlopen('https://api.test/p').read().decode()); "
         "s = socket.create_connection(('api.test', 80)); "
         "s.sendall(b'GET /s HTTP/1.0\\r\\nHost: api.test\\r\\n\\r\\n'); "
         "print(s.recv(65536).decode())\"", "hello from api.test/p"),
    "python: requests":
        ("/usr/bin/python3 -c \"from pip._vendor import requests; "
         "print(requests.get('https://api.test/r').text)\"",
         "hello from api.test/r"),
    "pip": ("/usr/bin/python3 -m pip install -q --no-cache-dir "
            "--break-system-packages --root-user-action=ignore "
            "--disable-pip-version-check --target /workspace/t "
            "--index-url https://api.test/files/simple labpkg && "
            "PYTHONPATH=/workspace/t /usr/bin/python3 -m labpkg",
            "labpkg works"),
    "node: fetch":
        ("NODE_EXTRA_CA_CERTS=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/"
         "ca-certificates.crt} node -e \"fetch('https://api.test/n').then(r => r.text())"
         ".then(console.log)\"", "hello from api.test/n"),
    "npm": ("cd /workspace && HOME=/workspace npm install --silent "
            "--no-audit --no-fund --no-update-notifier "
            "--registry https://api.test/files/npm lab-pkg && "
            "node -e \"require('lab-pkg')\"", "lab-pkg works"),
    "git": ("cd /workspace && git clone -q https://u:p@api.test/git/r.git && "
            "cat r/readme", "git works"),
}


def drive(rules, client):
    script, want = CLIENTS[client]
    with Box(rules) as box:
        doc = box.run(*SLOW, "--", "sh", "-c", script)
        try:
            is_in(want, doc["stdout"])
        except AssertionError as e:
            raise AssertionError(f"{e}\n{doc['stderr']}\n{doc['denials']}")


for name in CLIENTS:
    # By name only they need the world's own authority: it is the machine's.
    for kind, rules in (("by name", NAME_ONLY), ("opened", OPENED)):
        case(f"client: {name}; {kind}")(
            lambda r=rules, n=name: drive(r, n))


def musl(path):
    """fetch.c with another C library, and so with another resolver."""
    subprocess.run(["musl-gcc", "-static", "-o", path, HERE + "/fetch.c"],
                   check=True)


def add(t, name, data, mode=0o644):
    item = tarfile.TarInfo(name)
    item.size, item.mode = len(data), mode
    t.addfile(item, io.BytesIO(data))


def image(path, program):
    """An archive as docker save writes it: an image with one file."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as t:
        add(t, "fetch", open(program, "rb").read(), 0o755)
        add(t, "etc/resolv.conf", b"nameserver 10.99.0.1\n")
    layer = layer.getvalue()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [
            "sha256:" + hashlib.sha256(layer).hexdigest()]}}).encode()
    with tarfile.open(path, "w") as t:
        add(t, "layer.tar", layer)
        add(t, "config.json", config)
        add(t, "manifest.json", json.dumps([
            {"Config": "config.json", "RepoTags": ["lab:1"],
             "Layers": ["layer.tar"]}]).encode())


@case("client: the resolver of musl, in the root host and in an image")
def other_resolver():
    with Box() as box:
        program = box.dir + "/bin/fetch"
        os.mkdir(box.dir + "/bin")
        musl(program)
        image(box.dir + "/lab.tar", program)
        subprocess.run([BUILD + "/cordon", "image", "load", "-i",
                        box.dir + "/lab.tar"], env=box.env, check=True,
                       stdout=subprocess.DEVNULL)
        allow = ["--allow-host", "api.test:80"]
        for root in (["-v", box.dir + "/bin:/data", *allow, "--",
                      "/data/fetch"],
                     ["--image", "lab:1", *allow, "--", "/fetch"]):
            doc = box.run(*root, "api.test", "80")
            is_in("hello from api.test/musl", doc["stdout"])
            is_in("family 2\n", doc["stdout"])
            is_in("family 10\n", doc["stdout"])
            start = time.time()
            doc = box.run(*root, "other.test", "80")
            is_in("no address", doc["stdout"])
            is_in("no_rule", reasons(doc))
            # It waits five seconds for whoever says neither yes nor no.
            assert time.time() - start < 4
