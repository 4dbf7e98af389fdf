# SPDX-License-Identifier: Apache-2.0
"""Runs unittest modules and prints TAP.

    tap.py FILE... [-k WORDS]
"""
import importlib.util
import os
import sys
import traceback
import unittest


class Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.count, self.bad = 0, 0

    def line(self, good, test, directive=""):
        self.count += 1
        self.bad += not good
        words = test.shortDescription() or test.id()
        module = type(test).__module__
        print(f"{'ok' if good else 'not ok'} {self.count} - {module}: {words}"
              f"{directive}", flush=True)

    def explain(self, error):
        text = "".join(traceback.format_exception(*error))
        for part in text.rstrip().splitlines():
            print(f"#   {part}", flush=True)

    def addSuccess(self, test):
        self.line(True, test)

    def addFailure(self, test, err):
        self.line(False, test)
        self.explain(err)

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.line(False, subtest)
            self.explain(err)

    def addSkip(self, test, reason):
        self.line(True, test, f" # SKIP {reason}")


def load(path):
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main():
    files, words = sys.argv[1:], None
    if "-k" in files:
        at = files.index("-k")
        words = files[at + 1]
        files = files[:at]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    loader = unittest.TestLoader()
    if words:
        loader.testNamePatterns = [f"*{words}*"]
    result = Tap()
    for path in files:
        loader.loadTestsFromModule(load(path)).run(result)
    print(f"1..{result.count}")
    return 1 if result.bad or not result.count else 0


if __name__ == "__main__":
    sys.exit(main())
