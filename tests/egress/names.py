# SPDX-License-Identifier: Apache-2.0
"""What a name is, and where it may lead."""

import time

from common import (LAB, Box, case, fails, is_in, is_not_in, outside, reasons,
                    refused, told)
from lab import HERE4, HOSTILE, LAN, META, META6

NAMES = ["{host: api.test, ports: [80, 443]}",
         "{host: '*.sub.test', ports: [80, 443]}"]
ZONE = ["{host: '*.hostile.test', ports: [80]}", *NAMES]


def names_asked():
    return open(LAB + "/names.log", errors="replace").read()


@case("N06 bytes that no host name has")
def n06():
    with Box(NAMES) as box:
        said, _ = box.tries(
            *(["query", "198.18.0.1", labels] for labels in (
                ["evil\0", "sub", "test"], ["evil\0.sub", "test"],
                ["a.b", "sub", "test"], ["a b", "sub", "test"],
                ["\xff", "sub", "test"], ["a/b", "sub", "test"],
                ["\n", "sub", "test"],
                ["a" * 63] * 4 + ["sub", "test"])),
            ["tls", "api.test", "evil.sub.test\0.api.test"],
            ["http", "api.test", "/", 80, "api.test\0.evil"],
            ["http", "api.test", "/", 80, "api.test evil"],
            ["query", "198.18.0.1", ["good_1", "sub", "test"]])
        for text in said[:8]:
            is_not_in("answers 1", text)
        for text in said[8:11]:
            is_not_in("hello from", text)
        is_in("answers 1", said[11])


@case("N07 case, a dot at the end, a port")
def n07():
    with Box(NAMES) as box:
        said, _ = box.tries(
            ["http", "API.Test"], ["http", "api.test."],
            ["http", "api.test", "/", 80, "API.TEST:80"],
            ["tls", "api.test", "API.TEST"],
            ["query", "198.18.0.1", ["aPi", "TeSt"]],
            ["run", "", "curl", "-s", "https://API.test/"],
            ["http", "api.test", "/", 80, "api.test:443"],
            ["http", "[::1]"])
        for text in said[:4]:
            is_in("hello from", text)
        is_in("answers 1", said[4])
        is_in("hello from", said[5])
        is_not_in("hello from", said[6])
        is_not_in("VICTIM", said[7])


@case("N08 names that only look like an allowed one")
def n08():
    bad = ["evil-sub.test", "sub.test", "x.sub.test.evil.test", "evilsub.test",
           "api.test.evil.test", "xapi.test", "x.api.test", "test",
           "sub.test.sub", "other.test"]
    with Box(NAMES) as box:
        said, doc = box.tries(*(["names", n] for n in bad),
                              ["http", "a.sub.test"], ["names", "x.y.sub.test"])
        for text in said[:len(bad)]:
            fails(text)
        is_in("hello from a.sub.test", said[-2])
        is_in("198.18.", said[-1])
        assert reasons(doc) == {"no_rule"}, doc["denials"]
        is_in("sub.test", [d["what"] for d in doc["denials"]])


@case("N11 an allowed name that leads to an address that is not public")
def n11():
    is_in("METADATA", outside(META, 80))
    is_in("METADATA", outside(LAN, 80))
    is_in("VICTIM", outside("127.0.0.1", 80))
    with Box(ZONE) as box:
        start = time.time()
        said, doc = box.tries(*(["http", f"{n}.hostile.test"] for n in HOSTILE),
                              ["http", "chain.hostile.test"])
        for name, text in zip([*HOSTILE, "chain"], said):
            try:
                fails(text.replace("HTTP/1.1 403", "! 403").replace(
                    "HTTP/1.1 502", "! 502"))
            except AssertionError as e:
                raise AssertionError(f"{name}: {e}")
        assert reasons(doc) <= {"private_address", "metadata"}, doc
        is_in("private_address", reasons(doc))
        is_in("metadata", reasons(doc))
        assert time.time() - start < 20
        # Of two addresses only the public one is dialled.
        said, _ = box.tries(["http", "both.hostile.test"])
        is_not_in("VICTIM", said[0])
        is_in("hello from", said[0])


@case("N12 an answer that changes after it was judged")
def n12():
    with Box(["{host: rebind.test, ports: [80]}"]) as box:
        said, doc = box.tries(*(["http", "rebind.test"] for _ in range(4)))
        is_in("hello from rebind.test", said[0])
        for text in said:
            is_not_in("VICTIM", text)
        for text in said[1:]:
            is_not_in("hello", text)
        is_in("private_address", reasons(doc))


@case("N13 no name that is not allowed is passed on")
def n13():
    secret = "c2VjcmV0"
    with Box(NAMES) as box:
        said, _ = box.tries(
            *(["query", "198.18.0.1", [secret, "evil", "test"], kind, over]
              for kind in (1, 28, 16, 15, 5, 255, 65) for over in ("udp", "tcp")),
            ["query", "198.18.0.1", [secret, "sub", "test"], 16],
            ["query", "198.18.0.1", [secret, "sub", "test"], 1],
            ["names", f"{secret}.evil.test"])
        for text in said[:14]:
            is_in("code 3 answers 0", text)
        is_in("answers 0", said[14])
        is_in("answers 1", said[15])
        fails(said[16])
        # Not even an allowed one, before it is dialled.
        is_not_in(secret, names_asked())


@case("N15 metadata services, whatever a policy says")
def n15():
    is_in("METADATA", outside(META, 80))
    is_in("METADATA", outside(META6, 80))
    rules = ["{host: 169.254.0.0/16, ports: [80]}",
             "{host: 'fd00::/8', ports: [80]}", "{host: 100.0.0.0/8, ports: [80]}",
             "{host: 168.0.0.0/8, ports: [80]}", "{host: 64:ff9b::/96, ports: [80]}",
             "{host: '*.google.internal', ports: [80]}"]
    with Box(rules) as box:
        said, doc = box.tries(*(["tcp", h, 80, "GET / HTTP/1.0\r\n\r\n"] for h in (
            META, META6, "100.100.100.200", "168.63.129.16", "169.254.170.2",
            f"::ffff:{META}", f"64:ff9b::{META}", "metadata.google.internal")))
        for text in said:
            fails(text)
        is_in("metadata", reasons(doc))


@case("N35 a resolver that fails or says nothing")
def n35():
    with Box(ZONE) as box:
        said, doc = box.tries(["http", "broken.hostile.test"],
                              ["http", "none.hostile.test"])
        for text in said:
            is_not_in("hello", text)
        assert reasons(doc) == {"not_resolved"}, doc["denials"]
        start = time.time()
        said, doc = box.tries(["run", "", "curl", "-s", "-m", "8",
                               "http://silent.hostile.test/"])
        is_not_in("hello", said[0])
        assert time.time() - start < 9
        # It was waited for and given up, which is the reason.
        is_in('"reason":"not_resolved"', said[0])
        assert told(doc) == {("silent.hostile.test:80", "not_resolved")}, doc
        is_in(("silent.hostile.test", 80, "not_resolved"), refused(box))
