# SPDX-License-Identifier: Apache-2.0
"""TLS and HTTP: what is said must be what was resolved."""

import json
import time

from common import LAB, Box, case, fails, is_in, is_not_in, outside, reasons
from lab import API, META

NAMES = ["{host: api.test, ports: [80, 443]}",
         "{host: '*.sub.test', ports: [80, 443]}"]


def requests_seen():
    return open(LAB + "/requests.log").read()


@case("done: an allowed host works without any set-up, any other fails at once")
def done():
    with Box() as box:
        flags = ["--allow-host", "api.test:443"]
        doc = box.run(*flags, "--", "curl", "-sS", "https://api.test/")
        is_in("hello from api.test", doc["stdout"])
        assert doc["denials"] == [], doc
        start = time.time()
        doc = box.run(*flags, "--", "curl", "-sS", "https://other.test/")
        is_in("Could not resolve", doc["stderr"])
        is_in("no_rule", reasons(doc))
        assert time.time() - start < 2
        records, _ = box.records()
        seen = [(r.get("host"), r.get("decision")) for r in records
                if r["kind"] == "connection"]
        is_in(("api.test", "allow"), seen)
        is_in(("other.test", "deny"), seen)


@case("N17 one protocol on the port of another")
def n17():
    with Box(NAMES) as box:
        said, _ = box.tries(["http", "api.test", "/", 443],
                            ["tls", "api.test", "api.test", "/", 80])
        # nginx itself says that this is not HTTPS, and is asked by name.
        is_not_in("hello", said[0])
        is_not_in("hello", said[1])
        records, _ = box.records()
        ports = {r.get("port") for r in records if r["kind"] == "connection"}
        assert {80, 443} <= ports, records


@case("N18 a TLS name that is not the one resolved")
def n18():
    with Box(NAMES) as box:
        said, doc = box.tries(["tls", "api.test", "evil.test"],
                              ["tls", "api.test", "a.sub.test"],
                              ["tls", "a.sub.test", "api.test"],
                              ["tls", "api.test", "api.test"])
        for text in said[:3]:
            fails(text)
        is_in("hello from api.test", said[3])
        is_in("server_name", reasons(doc))
        said, doc = box.tries(["tls", "api.test", None])
        fails(said[0])
        is_in("no_server_name", reasons(doc))


@case("N19 an HTTP host that is not the one resolved")
def n19():
    get = "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n"
    with Box(NAMES) as box:
        before = len(requests_seen())
        said, doc = box.tries(
            ["tcp", "api.test", 80, get.format("/", "evil.test")],
            ["tcp", "api.test", 80, get.format("http://evil.test/", "api.test")],
            ["tcp", "api.test", 80, get.format("http://api.test/", "evil.test")],
            ["tcp", "api.test", 80, get.format("/", "api.test\r\nHost: evil.test")],
            ["tcp", "api.test", 80, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"],
            ["tcp", "api.test", 80, get.format("/", "api.test@evil.test")],
            ["tcp", "api.test", 80, get.format("/", "")],
            ["tcp", "api.test", 80, get.format("/n19", "api.test")])
        for text in said[:-1]:
            is_not_in("hello", text)
        is_in("hello from api.test/n19", said[-1])
        is_not_in("evil", requests_seen()[before:])
        assert reasons(doc) & {"http_host", "http_ambiguous"}, doc["denials"]


@case("N20 a redirect to what is not allowed")
def n20():
    is_in("METADATA", outside(META, 80))
    with Box(NAMES) as box:
        said, _ = box.tries(["run", "", "curl", "-sSL", "-m", "5",
                             "http://api.test/redirect"],
                            ["run", "", "curl", "-s", "http://api.test/redirect"])
        is_not_in("METADATA", said[0])
        assert not said[0].startswith("0 "), said[0]
        is_in("302", said[1])


SMUGGLED = [
    # two lengths
    "POST /a HTTP/1.1\r\nHost: api.test\r\nContent-Length: 4\r\n"
    "Content-Length: 48\r\n\r\nabcdGET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    # a length and chunks
    "POST /a HTTP/1.1\r\nHost: api.test\r\nContent-Length: 60\r\n"
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n"
    "Host: evil.test\r\n\r\n",
    # a folded line
    "GET /smuggled HTTP/1.1\r\nHost: api.test\r\nX: a\r\n Host: evil.test\r\n\r\n",
    # bare line feeds
    "GET /smuggled HTTP/1.1\nHost: api.test\nHost: evil.test\n\n",
    # an odd coding
    "POST /a HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: xchunked\r\n"
    "Content-Length: 4\r\n\r\nabcdGET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    # a space before the colon
    "GET /smuggled HTTP/1.1\r\nHost : evil.test\r\nHost: api.test\r\n\r\n",
    # the second request is for somebody else
    "GET /one HTTP/1.1\r\nHost: api.test\r\n\r\n"
    "GET /smuggled HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
    # a length that is none
    "POST /a HTTP/1.1\r\nHost: api.test\r\nContent-Length: +4\r\n\r\n"
    "abcdGET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    # a way to another protocol
    "GET /smuggled HTTP/1.1\r\nHost: api.test\r\nHost: evil.test\r\n"
    "Upgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
]


@case("N21 requests that can be read in two ways, and ones behind others")
def n21():
    with Box(NAMES) as box:
        before = len(requests_seen())
        said, doc = box.tries(
            *(["tcp", "api.test", 80, text, True] for text in SMUGGLED),
            ["tcp", "api.test", 80, "GET /one HTTP/1.1\r\nHost: api.test\r\n\r\n"
             "GET /two HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"])
        seen = requests_seen()[before:]
        is_not_in("smuggled", seen)
        is_not_in("evil", seen)
        is_in("hello from api.test/one", said[-1])
        is_in("hello from api.test/two", said[-1])
        assert reasons(doc) & {"http_ambiguous", "http_host"}, doc["denials"]


@case("N33 methods, paths and quotas where a service could be a channel")
def n33():
    rules = ["{host: api.test, ports: [443, 80], methods: [GET], "
             "paths: ['/v1/**']}"]
    with Box(rules) as box:
        before = len(requests_seen())
        curl = ["run", "", "curl", "-s", "-m", "8"]
        said, doc = box.tries(
            [*curl, "https://api.test/v1/a?q=t0pq"],
            [*curl, "https://api.test/v2/a"],
            [*curl, "-X", "POST", "-d", "x", "https://api.test/v1/a"],
            [*curl, "--path-as-is", "https://api.test/v1/../v2/a"],
            [*curl, "https://api.test/v1/%2e%2e/v2/a"],
            [*curl, "--path-as-is", "https://api.test//v2/a"],
            [*curl, "http://api.test/v1/plain"],
            [*curl, "http://api.test/v2/plain"])
        is_in("hello from api.test/v1/a", said[0])
        is_in("hello from api.test/v1/plain", said[6])
        for i in (1, 2, 3, 4, 5, 7):
            is_not_in("hello", said[i])
        answer = json.loads(said[1].split(" ", 1)[1])
        is_in("api.test", json.dumps(answer))
        is_not_in("/v2/", requests_seen()[before:])
        is_not_in("POST /v1", requests_seen()[before:])
        assert {"method", "path"} <= reasons(doc), doc["denials"]
        _, text = box.records()
        is_in("/v1/a", text)
        is_not_in("t0pq", text)


@case("N18 upstream's certificate is verified where TLS is opened")
def n18_upstream():
    with Box(["{host: bad.test, methods: [GET]}",
              "{host: api.test, methods: [GET]}"]) as box:
        said, doc = box.tries(["run", "", "curl", "-s", "-m", "5",
                               "https://bad.test/"],
                              ["run", "", "curl", "-s", "-m", "5",
                               "https://api.test/"])
        is_not_in("OTHER", said[0])
        is_in("certificate", reasons(doc))
        is_in("hello from api.test", said[1])
