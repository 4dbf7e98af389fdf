# SPDX-License-Identifier: Apache-2.0
"""The sandbox that tutorials build on docker-py, in their own calls."""
import os
import tempfile
import unittest

import docker

from server import IMAGE, IMAGES, ON_DOCKER, remove_all


class Sandbox:
    """One container a run; the sequence of calls is the tutorial's."""

    def __init__(self, image, seconds=30, memory=256, cpu=50, network=False):
        self.client = docker.from_env()
        self.image, self.seconds, self.memory = image, seconds, memory
        self.cpu, self.network = cpu, network

    def execute_python(self, code):
        with tempfile.TemporaryDirectory() as tmpdir:
            # The tutorial runs as root against a root daemon; the box's user
            # reads this directory as `nobody`.
            os.chmod(tmpdir, 0o755)
            with open(os.path.join(tmpdir, "script.py"), "w") as f:
                f.write(code)
            container = None
            try:
                container = self.client.containers.run(
                    image=self.image,
                    command=["python", "/sandbox/script.py"],
                    volumes={tmpdir: {"bind": "/sandbox", "mode": "ro"}},
                    mem_limit=f"{self.memory}m",
                    cpu_period=100000,
                    cpu_quota=int(100000 * self.cpu / 100),
                    network_disabled=not self.network,
                    read_only=True,
                    tmpfs={"/tmp": "size=64m"},
                    security_opt=["no-new-privileges:true"],
                    user="nobody",
                    detach=True,
                )
                info = container.wait(timeout=self.seconds)
                out = container.logs(stdout=True, stderr=False).decode()
                err = container.logs(stdout=False, stderr=True).decode()
                return info["StatusCode"], out, err
            finally:
                if container is not None:
                    container.remove(force=True)


class Tutorial(unittest.TestCase):
    def setUp(self):
        self.client = docker.from_env()
        self.addCleanup(self.client.close)
        self.addCleanup(remove_all, self.client)

    def run_code(self, code, image=IMAGE, **more):
        return Sandbox(image, **more).execute_python(code)

    def test_hello(self):
        """both streams and the code, on every image"""
        for image in IMAGES:
            with self.subTest(image=image):
                self.assertEqual(
                    self.run_code("import sys\nprint('out')\n"
                                  "print('err', file=sys.stderr)\n"
                                  "sys.exit(3)", image), (3, "out\n", "err\n"))
                self.assertEqual(self.client.containers.list(all=True), [])

    def test_user(self):
        """the code is nobody, with no capabilities and no new privileges"""
        code, out, err = self.run_code(
            "import os\nprint(os.getuid())\n"
            "s = dict(l.split(':', 1) for l in open('/proc/self/status'))\n"
            "print(s['CapEff'].strip(), s['NoNewPrivs'].strip())\n")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out.split(), ["65534", "0" * 16, "1"])

    def test_read_only(self):
        """the root is read-only, /tmp is not, the script cannot be changed"""
        code, out, err = self.run_code(
            "open('/tmp/x', 'w').write('1')\n"
            "for path in ('/usr/x', '/x', '/sandbox/script.py'):\n"
            "    try:\n        open(path, 'a')\n        print('open', path)\n"
            "    except OSError:\n        print('refused')\n")
        self.assertEqual((code, out, err), (0, "refused\n" * 3, ""))

    def test_network(self):
        """no network"""
        code, out, err = self.run_code(
            "import socket\n"
            "try:\n    s = socket.socket()\n    s.settimeout(5)\n"
            "    s.connect(('192.0.2.1', 80))\n    print('connected')\n"
            "except TimeoutError:\n    print('routed')\n"
            "except OSError:\n    print('none')\n")
        self.assertEqual((code, out, err), (0, "none\n", ""))

    def test_memory(self):
        """more memory than allowed ends it"""
        code, out, _ = self.run_code(
            "x = b'x' * (100 << 20)\nprint(len(x))", memory=32)
        self.assertEqual((code, out), (137, ""))

    @unittest.skipIf(ON_DOCKER, "a Docker Engine has no limit unless asked")
    def test_pids(self):
        """processes are limited though nobody asked for it"""
        code, out, err = self.run_code(
            "import os, time\nn = 0\ntry:\n"
            "    while n < 1000:\n"
            "        if os.fork() == 0:\n            time.sleep(20)\n"
            "            os._exit(0)\n"
            "        n += 1\nexcept OSError:\n    pass\nprint(n)\n")
        self.assertEqual(code, 0, err)
        self.assertLess(int(out), 300)
