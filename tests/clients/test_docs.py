# SPDX-License-Identifier: Apache-2.0
"""Examples, copied from the page, say what the page says."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOP = os.environ["CORDON_TOP"]
PAGES = ("docs/autogen.md", "sdk/python/README.md", "README.md")
# A program, and what follows it as its output.
PAIR = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.M | re.S)


def examples():
    for page in PAGES:
        with open(os.path.join(TOP, page), encoding="utf-8") as f:
            for i, match in enumerate(PAIR.finditer(f.read()), 1):
                yield f"{page}, program {i}", match.group(1), match.group(2)


class Pages(unittest.TestCase):
    def test_examples(self):
        """every program with an output on the page, and the record of it"""
        count = 0
        for name, program, output in examples():
            count += 1
            with self.subTest(name), tempfile.TemporaryDirectory() as place:
                done = subprocess.run(
                    [sys.executable, "-W", "ignore", "-c", program],
                    capture_output=True, text=True, cwd=place, timeout=60)
                self.assertEqual((done.returncode, done.stdout),
                                 (0, output), done.stderr)
        self.assertGreaterEqual(count, 5)
        self.check_audit()

    def check_audit(self):
        """What AutoGen's executor ran is on the record."""
        done = subprocess.run(
            [os.environ["CORDON_BUILD"] + "/cordon", "audit",
             "list", "--all", "--json"],
            capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = [line for line in done.stdout.splitlines()
                if '"face":"docker"' in line and "tmp_code_" in line]
        self.assertTrue(runs, "no run of AutoGen's is on the record")
