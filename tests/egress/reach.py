# SPDX-License-Identifier: Apache-2.0
"""Where a connection leads: addresses, ports, families, side doors."""

import os
import socket
import subprocess
import time

from common import (Box, case, fails, is_in, is_not_in, outside, refused,
                    told)
from lab import API, API6, HERE4, LAN, META

NAMES = ["{host: api.test, ports: [80, 443]}",
         "{host: '*.sub.test', ports: [80, 443]}"]
VICTIMS = [("127.0.0.1", 80), ("::1", 80), (HERE4, 80), ("0.0.0.0", 80),
           ("127.0.0.1", 8080), ("::", 8080), (HERE4, 8080)]


def victims_are_there():
    for host, port in VICTIMS[:3]:
        is_in("VICTIM", outside(host, port))


@case("N01 no network: no socket reaches anything")
def n01():
    victims_are_there()
    with Box() as box:
        said, _ = box.tries(*(["tcp", h, p, "GET / HTTP/1.0\r\n\r\n"]
                              for h, p in [*VICTIMS, (API, 80), (API6, 80),
                                           ("1.1.1.1", 53)]),
                            ["names", "api.test"])
        for text in said:
            fails(text)


@case("N01 network none takes away what the policy allows")
def n01_none():
    with Box(NAMES) as box:
        said, _ = box.tries(["http", "api.test"], flags=["--network", "none"])
        fails(said[0])
        said, _ = box.tries(["http", "api.test"])
        is_in("hello from api.test", said[0])


@case("N02 the machine's loopback and its own addresses")
def n02():
    victims_are_there()
    with Box(NAMES) as box:
        said, _ = box.tries(*(["tcp", h, p, "GET / HTTP/1.0\r\n\r\n"]
                              for h, p in VICTIMS),
                            ["http", "api.test"])
        for text in said[:-1]:
            fails(text)
        is_in("hello from api.test", said[-1])


@case("N03 an address instead of a name, unless it is listed")
def n03():
    get = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with Box(NAMES) as box:
        start = time.time()
        said, doc = box.tries(["tcp", API, 80, get], ["tcp", API6, 80, get],
                              ["tcp", LAN, 80, get])
        for text in said:
            fails(text)
        assert time.time() - start < 3, "it does not fail at once"
        # The kernel has no route, so they are one record, with their number.
        mine = [d for d in doc["denials"] if d["what"] == "address"]
        assert len(mine) == 1 and mine[0]["count"] == 3, doc["denials"]
        records = [r for r in box.records()[0] if r["kind"] == "connection"]
        assert [(r["decision"], r["code"], r["count"]) for r in records] == [
            ("deny", "address", 3)], records
    with Box([f"{{host: {API}, ports: [80]}}", f"{{host: '{API6}/127', "
              "ports: [80]}"]) as box:
        said, doc = box.tries(["http", API], ["http", API6, "/", 80, "x"],
                              ["tcp", API, 443, get])
        is_in("hello from", said[0])
        is_in("hello from", said[1])
        fails(said[2])
        is_in((f"{API}:443", "port"), told(doc))
        is_in((API, 443, "port"), refused(box))
    # A private one that is said explicitly is meant.
    with Box([f"{{host: 10.7.0.0/16, ports: [80]}}"]) as box:
        said, _ = box.tries(["http", LAN], ["http", "10.8.0.1"])
        is_in("METADATA", said[0])
        fails(said[1])


@case("N04 addresses as integers, hexadecimal, octal, short")
def n04():
    odd = ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "017700000001",
           "0", "0x7f.1", "127.0x1"]
    with Box(NAMES) as box:
        said, _ = box.tries(*(["run", "", "curl", "-s", "-m", "3",
                               f"http://{h}/"] for h in odd),
                            *(["http", h] for h in odd))
        for text in said:
            is_not_in("VICTIM", text)
        is_in("VICTIM", subprocess.run(
            ["curl", "-s", "http://2130706433/"],
            stdout=subprocess.PIPE).stdout.decode())
    # Nor can one be asked for; the plain form of the same address can.
    with Box() as box:
        for host, is_taken in [*((h, False) for h in odd),
                               ("127.0.0.1", True)]:
            with box.start("--dry-run", "--allow-host", host, "--",
                           "true") as p:
                _, err = p.communicate()
            assert (p.returncode == 0) == is_taken, (host, err)
            if not is_taken:
                is_in("--allow-host", err.decode())


@case("N05 digits and dots of other scripts")
def n05():
    with Box(NAMES) as box:
        said, _ = box.tries(*(["run", "", "curl", "-s", "-m", "3",
                               f"http://{h}/"] for h in (
                                   "①②⑦.0.0.1", "127。0。0。1", "127．0．0．1")),
                            ["http", "①②⑦.0.0.1"])
        for text in said:
            is_not_in("VICTIM", text)
    # The control: there is a client that takes them for what they look like.
    is_in("VICTIM", subprocess.run(
        ["curl", "-s", "http://①②⑦.0.0.1/"],
        stdout=subprocess.PIPE).stdout.decode())


@case("N09 user information that looks like a host")
def n09():
    with Box(NAMES) as box:
        said, _ = box.tries(*(["run", "", "curl", "-s", "-m", "3", u] for u in (
            "http://api.test@127.0.0.1/", "http://127.0.0.1\\@api.test/",
            "http://api.test:80@127.0.0.1:80/", "http://127.0.0.1#@api.test/")),
            ["run", "", "curl", "-s", "http://x@api.test/"])
        for text in said[:-1]:
            is_not_in("VICTIM", text)
        is_in("hello from api.test", said[-1])


@case("N10 scoped and wrapped addresses")
def n10():
    for host in ("::ffff:127.0.0.1", f"::ffff:{HERE4}"):
        is_in("VICTIM", outside(host, 80))
    with Box(NAMES) as box:
        said, _ = box.tries(*(["tcp", h, 80, "GET / HTTP/1.0\r\n\r\n"] for h in (
            "fe80::1%lo", "::ffff:127.0.0.1", f"::ffff:{HERE4}",
            "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
            f"::ffff:{META}", f"64:ff9b::{META}")))
        for text in said:
            fails(text)


@case("N14 other resolvers, and sockets of the machine's")
def n14():
    with Box(NAMES) as box:
        said, _ = box.tries(
            *(["query", h, ["api", "test"], 1, over] for over in ("udp", "tcp")
              for h in ("10.99.0.1", "1.1.1.1", "9.9.9.9", "127.0.0.53",
                        "fd99::1")),
            ["tls", "1.1.1.1", "cloudflare-dns.com", "/dns-query"],
            *(["unix", p] for p in (
                "/run/systemd/resolve/io.systemd.Resolve",
                "/var/run/nscd/socket", "/run/dbus/system_bus_socket")))
        for text in said:
            fails(text)
        doc = box.run("--", "cat", "/etc/resolv.conf")
        is_in("198.18.0.1", doc["stdout"])
        is_not_in("10.99", doc["stdout"])
        said, _ = box.tries(["query", "198.18.0.1", ["api", "test"]],
                            ["query", "2001:2::1", ["api", "test"], 28],
                            ["query", "198.18.0.1", ["api", "test"], 1, "tcp"])
        for text in said:
            is_in("code 0 answers 1", text)


@case("N16 other ports of an allowed name")
def n16():
    with Box(NAMES) as box:
        is_in("ODD-2.0", outside(API, 8022, b"x"))
        ports = (22, 25, 53, 6379, 8022, 8443, 65535)
        start = time.time()
        said, doc = box.tries(*(["tcp", "api.test", p] for p in ports),
                              ["http", "api.test"])
        for text in said[:-1]:
            fails(text, "refused")
        is_in("hello from", said[-1])
        assert time.time() - start < 3
        # Each has its denial and its record, though the kernel refused it.
        # A client tries both addresses of the name.
        records = refused(box)
        for port in ports:
            is_in((f"api.test:{port}", "port"), told(doc))
            n = records.count(("api.test", port, "port"))
            assert n == 2, (port, records)
        assert {r[1] for r in records} == set(ports), records


@case("N22 a relay inside has the same verdict")
def n22():
    with Box(NAMES) as box:
        said, _ = box.tries(["relay", API, 80], ["relay", "other.test", 80],
                            ["relay", "127.0.0.1", 8080],
                            ["relay", "api.test", 80])
        for text in said[:-1]:
            fails(text)
        is_in("hello from api.test", said[-1])


@case("N23 without proxy variables there is no other way")
def n23():
    with Box(NAMES) as box:
        for env in ('{"NO_PROXY": "*", "no_proxy": "*"}',
                    '{"HTTP_PROXY": "http://127.0.0.1:8080", '
                    '"http_proxy": "http://127.0.0.1:8080"}'):
            said, _ = box.tries(["run", env, "curl", "-s", "-m", "3",
                                 f"http://{API}/"])
            is_not_in("hello", said[0])
            is_not_in("VICTIM", said[0])


def can_be_made(*kinds):
    """The control: outside there are such sockets, so it is the wall. Some
    are only root's; an ordinary user's run has that of root's."""
    for family, kind, proto in kinds:
        if os.geteuid() == 0 or kind != socket.SOCK_RAW or family == 16:
            socket.socket(family, kind, proto).close()


@case("N24 UDP, QUIC and ICMP")
def n24():
    # The control: out there UDP is answered, and there are such sockets.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(3)
        s.sendto(b"x", (API, 443))
        assert s.recv(100) == b"OTHER"
    can_be_made((socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
                (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_UDP))
    with Box(NAMES) as box:
        said, doc = box.tries(
            ["udp", "api.test", 443], ["udp", API, 443], ["udp", "1.1.1.1", 53],
            ["sock", socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP],
            ["sock", socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP],
            ["sock", socket.AF_INET6, socket.SOCK_RAW, 58],
            ["sock", socket.AF_INET, socket.SOCK_STREAM, 132],
            ["sock", socket.AF_INET, socket.SOCK_STREAM, 262])
        for text in said:
            fails(text)
            is_not_in("made", text)
        is_in(("api.test:443", "udp"), told(doc))
        is_in(("address", "no_route"), told(doc))
        records = refused(box)
        assert records.count(("api.test", 443, "udp")) == 1, records
        assert records.count(("address", 0, "address")) == 1, records


@case("N25 IPv6 has the same rules")
def n25():
    with Box(NAMES) as box:
        said, _ = box.tries(["http", "six.sub.test"],
                            ["names", "six.sub.test"],
                            ["tcp", API6, 80, "GET / HTTP/1.0\r\n\r\n"],
                            ["query", "2001:2::1", ["other", "test"], 28])
        is_in("hello from six.sub.test", said[0])
        is_in("2001:2::", said[1])
        is_in("198.18.", said[1])
        fails(said[2])
        is_in("code 3 answers 0", said[3])


@case("N26 N27 N29 families that are no way out")
def n26():
    netlink = [["sock", 16, socket.SOCK_RAW, n] for n in (0, 9, 12, 15)]
    rest = [["sock", f, t, p] for f, t, p in (
        (40, socket.SOCK_STREAM, 0), (17, socket.SOCK_RAW, 3),
        (17, socket.SOCK_DGRAM, 0), (44, socket.SOCK_RAW, 0),
        (socket.AF_INET, socket.SOCK_RAW, 255), (38, 5, 0), (31, 1, 3),
        (29, 3, 1), (30, 1, 0), (21, 1, 0), (2, 6, 33))]
    can_be_made((16, socket.SOCK_RAW, 0), (17, socket.SOCK_RAW, 3),
                (socket.AF_INET, socket.SOCK_RAW, 255))
    with Box(NAMES) as box:
        said, _ = box.tries(*netlink, *rest, ["sock", 2, 1], ["sock", 10, 2])
        for text in said[:-2]:
            is_not_in("made", text)
        assert said[-2:] == ["made", "made"], said


@case("N28 unix sockets of the machine, abstract too")
def n28():
    with socket.socket(socket.AF_UNIX) as s, Box(NAMES) as box:
        name = f"cordon-lab-{os.getpid()}"
        s.bind("\0" + name)
        s.listen()
        with socket.socket(socket.AF_UNIX) as control:
            control.connect("\0" + name)
        said, _ = box.tries(["unix", "@" + name])
        fails(said[0])


@case("N30 /dev/tcp of a shell")
def n30():
    with Box(NAMES) as box:
        script = ("exec 3<>/dev/tcp/%s/80 && printf 'GET / HTTP/1.0\\r\\n"
                  "Host: api.test\\r\\n\\r\\n' >&3 && cat <&3")
        said, _ = box.tries(*(["run", "", "bash", "-c", script % h] for h in (
            API, "127.0.0.1", "other.test", "api.test")))
        for text in said[:-1]:
            is_not_in("hello", text)
            is_not_in("VICTIM", text)
        is_in("hello from api.test", said[-1])


@case("N31 what a box listens on is its own")
def n31():
    code = ("import socket, time; s = socket.create_server(('', 9191)); "
            "print('up', flush=True); time.sleep(2)")
    with Box(NAMES) as box:
        with box.start("--", "/usr/bin/python3", "-c", code) as p:
            is_in(b"up", p.stdout.readline())
            for host in ("127.0.0.1", HERE4, "198.18.0.1"):
                try:
                    outside(host, 9191)
                    raise AssertionError(f"{host}:9191 is there")
                except OSError:
                    pass
            p.terminate()
            p.communicate()


@case("N31 two boxes do not see each other")
def n31_two():
    code = ("import socket, time; s = socket.create_server(('', 9191)); "
            "print('up', flush=True); time.sleep(3)")
    with Box(NAMES) as box, Box(NAMES) as second:
        with box.start("--", "/usr/bin/python3", "-c", code) as p:
            is_in(b"up", p.stdout.readline())
            said, _ = second.tries(["tcp", "127.0.0.1", 9191],
                                   ["tcp", "198.18.0.1", 9191],
                                   ["tcp", "2001:2::1", 9191])
            for text in said:
                fails(text)
            p.terminate()
            p.communicate()
