# SPDX-License-Identifier: Apache-2.0
"""What the world has in stock: an index for pip, a registry for npm, and a
repository of git, each with one small thing in it."""

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile


def wheel(top):
    """labpkg 1.0, as files of the simple index."""
    name, info = "labpkg-1.0-py3-none-any.whl", "labpkg-1.0.dist-info/"
    os.makedirs(top + "/simple/labpkg")
    with zipfile.ZipFile(f"{top}/simple/labpkg/{name}", "w") as z:
        z.writestr("labpkg.py", "print('labpkg works')\n")
        z.writestr(info + "METADATA",
                   "Metadata-Version: 2.1\nName: labpkg\nVersion: 1.0\n")
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: lab\n"
                   "Root-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "RECORD", f"labpkg.py,,\n{info}METADATA,,\n"
                   f"{info}WHEEL,,\n{info}RECORD,,\n")
    with open(top + "/simple/labpkg/index.html", "w") as f:
        f.write(f"<!DOCTYPE html><html><body><a href='{name}'>{name}</a>"
                "</body></html>\n")


def package(top, url):
    """lab-pkg 1.0.0, as files of a registry."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as t:
        for path, text in (("package.json", json.dumps(
                {"name": "lab-pkg", "version": "1.0.0", "main": "index.js"})),
                ("index.js", "console.log('lab-pkg works')\n")):
            item = tarfile.TarInfo("package/" + path)
            item.size = len(text)
            t.addfile(item, io.BytesIO(text.encode()))
    os.makedirs(top + "/npm/-")
    with open(top + "/npm/-/lab-pkg-1.0.0.tgz", "wb") as f:
        f.write(data.getvalue())
    hash512 = base64.b64encode(hashlib.sha512(data.getvalue()).digest())
    version = {"name": "lab-pkg", "version": "1.0.0", "main": "index.js",
               "dist": {"tarball": url + "/npm/-/lab-pkg-1.0.0.tgz",
                        "integrity": "sha512-" + hash512.decode()}}
    with open(top + "/npm/lab-pkg", "w") as f:
        json.dump({"name": "lab-pkg", "dist-tags": {"latest": "1.0.0"},
                   "versions": {"1.0.0": version}}, f)


def repository(top):
    git = ["git", "-c", "user.name=lab", "-c", "user.email=lab@api.test",
           "-c", "init.defaultBranch=main", "-c", "safe.directory=*"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([*git, "init", "-q", top + "/work"], **quiet)
    with open(top + "/work/readme", "w") as f:
        f.write("git works\n")
    subprocess.run([*git, "-C", top + "/work", "add", "."], **quiet)
    subprocess.run([*git, "-C", top + "/work", "commit", "-qm", "first"],
                   **quiet)
    subprocess.run([*git, "clone", "-q", "--bare", top + "/work",
                    top + "/git/r.git"], **quiet)


def fill(top):
    wheel(top + "/www")
    package(top + "/www", "https://api.test/files")
    repository(top)
