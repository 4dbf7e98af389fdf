#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A laboratory for egress: a machine and the world around it.

    tests/egress/lab.py CMD [ARG...]

Runs CMD in network and mount namespaces of its own, in which the machine has
one wire into another network namespace, the world. There nginx serves HTTPS
with a certificate of a test authority at public addresses, dnsmasq answers
names, some of them as an attacker would, and odd.py is everything that they
cannot be. /etc/resolv.conf and the list of authorities are covered, for CMD
alone. On the machine's own loopback and address a server says VICTIM, at the
world's metadata address one says METADATA: whoever reads that word in a box
has found a way around.

CORDON_LAB names the directory with ca.pem, and the logs of names and requests.
Nothing of it is left, and nothing on the real machine is touched. Needs root.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import stock

HERE = os.path.dirname(os.path.abspath(__file__))
LIBC = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWNET = 0x00020000, 0x40000000

# The world's addresses: of the servers, of somebody's network, never.
API, API6 = "93.184.216.34", "2606:2800:220:1::34"
OTHER = "93.184.216.99"
LAN, META, META6 = "10.7.7.7", "169.254.169.254", "fd00:ec2::254"
HERE4, HERE6 = "10.99.0.2", "fd99::2"
DNS = "10.99.0.1"

NGINX = """
daemon off; master_process off; worker_processes 1; pid {dir}/nginx.pid;
error_log {dir}/nginx.log warn; user root;
events {{ worker_connections 2048; }}
http {{
  log_format auth 'a=$http_authorization k=$http_x_key q=$arg_key $request_method';
  log_format long '$host $request_method $request_uri';
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/t1;
  fastcgi_temp_path {dir}/t2; uwsgi_temp_path {dir}/t3; scgi_temp_path {dir}/t4;
  client_max_body_size 0; default_type text/plain;
  access_log {dir}/requests.log long;
  server {{
    listen {api}:80; listen [{api6}]:80;
    listen {api}:443 ssl http2; listen [{api6}]:443 ssl http2;
    server_name _;
    ssl_certificate {dir}/server.pem; ssl_certificate_key {dir}/server.key;
    root {dir}/www;
    location / {{ return 200 "hello from $host$uri\\n"; }}
    location /auth {{ access_log {dir}/secrets.log auth; return 200 "noted\\n"; }}
    location /other {{ access_log {dir}/other.log auth; return 200 "noted\\n"; }}
    location /clear {{ access_log {dir}/clear.log auth; return 200 "noted\\n"; }}
    location /relayed {{ access_log {dir}/relayed.log auth; return 200 "noted\\n"; }}
    location /redirect {{ return 302 http://{meta}/; }}
    location /files/ {{ alias {dir}/www/; index index.html; }}
    location /files/simple/ {{ alias {dir}/www/simple/; default_type text/html; }}
    location /files/npm/ {{ alias {dir}/www/npm/; default_type application/json; }}
    location /git/ {{ proxy_pass http://127.0.0.1:8418/; }}
    location /live/ {{
      proxy_pass http://127.0.0.1:8418; proxy_http_version 1.1;
      proxy_set_header Connection upgrade; proxy_set_header Upgrade $http_upgrade;
    }}
    location /echo {{ proxy_pass http://127.0.0.1:8418/echo; }}
  }}
  server {{
    listen {other}:443 ssl; listen {other}:80; server_name _;
    ssl_certificate {dir}/bad.pem; ssl_certificate_key {dir}/bad.key;
    location / {{ return 200 "OTHER $host\\n"; }}
  }}
  server {{
    listen {meta}:80; listen [{meta6}]:80; listen {lan}:80;
    location / {{ return 200 "METADATA\\n"; }}
  }}
}}
"""

# What an attacker's zone says. %s.hostile.test is allowed by the policy.
HOSTILE = {
    "lo": "127.0.0.1", "lo2": "127.9.9.9", "zero": "0.0.0.0",
    "lan": LAN, "meta": META, "here": HERE4, "cgn": "100.64.0.1",
    "ali": "100.100.100.200", "azure": "168.63.129.16",
    "bench": "198.18.0.1", "cast": "224.0.0.1", "all": "255.255.255.255",
    "lo6": "::1", "zero6": "::", "ll6": "fe80::1", "ula6": HERE6,
    "meta6": META6, "mapped6": "::ffff:127.0.0.1", "nat64": "64:ff9b::7f00:1",
    "nat64meta": "64:ff9b::a9fe:a9fe", "sixtofour": "2002:7f00:1::",
    "compat6": "::127.0.0.1", "own6": "2001:2::1",
}


def sh(*args, **more):
    subprocess.run(args, check=True, **more)


def ip(text, pid=None):
    """Lines for ip(8), in the machine or in the namespace of a process."""
    enter = ["nsenter", "-t", str(pid), "-n"] if pid else []
    sh(*enter, "ip", "-batch", "-", input=text.encode())


class Lab:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="cordon-lab-")
        os.chmod(self.dir, 0o755)
        os.mkdir(self.dir + "/www")
        self.children = []

    def start(self, *args, world=True, **more):
        enter = ["nsenter", "-t", str(self.world), "-n"] if world else []
        log = open(f"{self.dir}/{os.path.basename(args[0])}.out", "wb")
        child = subprocess.Popen(
            [*enter, *args], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL),
            **more)
        self.children.append(child)
        return child

    def stop(self):
        for child in self.children:
            child.kill()
            child.wait()
        shutil.rmtree(self.dir)

    def namespaces(self):
        if LIBC.unshare(NEWNS | NEWNET) != 0:
            raise SystemExit("Bail out! namespaces: root is needed")
        sh("mount", "--make-rprivate", "/")
        self.world = None
        holder = self.start("unshare", "--net", "sleep", "600", world=False)
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{holder.pid}/ns/net") == own:
            time.sleep(0.002)
        self.world = holder.pid

    def wire(self):
        ip(f"""link set lo up
link add m0 type veth peer name w0 netns {self.world}
addr add {HERE4}/24 dev m0
addr add {HERE6}/64 dev m0 nodad
link set m0 up""")
        ip(f"""link set lo up
addr add {DNS}/24 dev w0
addr add fd99::1/64 dev w0 nodad
link set w0 up
""" + "".join(f"addr add {a}/{128 if ':' in a else 32} dev lo\n"
              for a in (API, API6, OTHER, LAN, META, META6)), self.world)
        ip(f"route add default via {DNS}\nroute add ::/0 via fd99::1")

    def authority(self):
        d = self.dir
        new = ["openssl", "req", "-newkey", "ec", "-pkeyopt",
               "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        sh(*new, "-x509", "-keyout", d + "/ca.key", "-out", d + "/ca.pem",
           "-subj", "/CN=Lab authority", **quiet)
        sh(*new, "-x509", "-CA", d + "/ca.pem", "-CAkey", d + "/ca.key",
           "-keyout", d + "/server.key", "-out", d + "/server.pem",
           "-subj", "/CN=api.test", "-addext",
           "subjectAltName=DNS:api.test,DNS:*.sub.test,DNS:rebind.test",
           "-addext", "basicConstraints=critical,CA:FALSE", **quiet)
        # Of nobody: what is signed by itself is not trusted.
        sh(*new, "-x509", "-keyout", d + "/bad.key", "-out", d + "/bad.pem",
           "-subj", "/CN=bad.test", "-addext", "subjectAltName=DNS:bad.test",
           **quiet)

    def cover(self):
        """The machine's resolver and its list of authorities."""
        d = self.dir
        with open(d + "/resolv.conf", "w") as f:
            f.write(f"nameserver {DNS}\n")
        bundle = "/etc/ssl/certs/ca-certificates.crt"
        with open(d + "/bundle.pem", "w") as f:
            f.write(open(bundle).read() + open(d + "/ca.pem").read())
        for ours, path in ((d + "/resolv.conf", "/etc/resolv.conf"),
                           (d + "/bundle.pem", bundle)):
            sh("mount", "--bind", ours, os.path.realpath(path))

    def servers(self):
        d = self.dir
        open(d + "/names.log", "w").close()
        with open(d + "/nginx.conf", "w") as f:
            f.write(NGINX.format(dir=d, api=API, api6=API6, other=OTHER,
                                 meta=META, meta6=META6, lan=LAN))
        self.start("nginx", "-c", d + "/nginx.conf", "-p", d)
        names = [f"--address=/{n}.hostile.test/{a}" for n, a in HOSTILE.items()]
        names += [f"--host-record={n},{API},{API6}" for n in
                  ("api.test", "a.sub.test", "b.sub.test", "odd.test")]
        self.start("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null",
                   "--user=root", "--pid-file=", "--no-resolv", "--no-hosts",
                   "--bind-interfaces", f"--listen-address={DNS}",
                   "--except-interface=lo", "--cache-size=0",
                   f"--log-facility={d}/names.log", "--log-queries",
                   f"--host-record=six.sub.test,{API6}",
                   f"--host-record=bad.test,{OTHER}",
                   f"--address=/both.hostile.test/{API}",
                   "--address=/both.hostile.test/127.0.0.1",
                   "--host-record=end.hostile.test,127.0.0.1",
                   "--cname=chain.hostile.test,end.hostile.test",
                   "--server=/rebind.test/127.0.0.1#5354",
                   "--server=/silent.hostile.test/127.0.0.1#5355",
                   "--server=/broken.hostile.test/127.0.0.1#5356", *names)
        self.start(sys.executable, HERE + "/odd.py", "world", d, API)
        self.start(sys.executable, HERE + "/odd.py", "machine", d, HERE4,
                   world=False)

    def wait(self):
        """Until every server has said that it listens."""
        end = time.time() + 10
        probe = f"""
import socket, sys
for a in {[(API, 443), (META, 80), (DNS, 53), (API, 8022)]}:
    socket.create_connection(a, 1).close()
socket.create_connection(("127.0.0.1", 80), 1).close()
"""
        while subprocess.run([sys.executable, "-c", probe],
                             stderr=subprocess.DEVNULL).returncode:
            if time.time() > end or any(c.poll() is not None
                                        for c in self.children):
                sys.stderr.write("".join(
                    open(f"{self.dir}/{f}", errors="replace").read()
                    for f in os.listdir(self.dir) if f.endswith(".out")))
                raise SystemExit("Bail out! the laboratory does not start")
            time.sleep(0.02)

    def open(self):
        self.namespaces()
        self.wire()
        self.authority()
        stock.fill(self.dir)
        self.cover()
        self.servers()
        self.wait()


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    if os.geteuid() != 0:
        print("ok 1 - egress # SKIP root is needed for a laboratory\n1..1")
        return 0
    lab = Lab()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        lab.open()
        env = dict(os.environ, CORDON_LAB=lab.dir)
        env.pop("SSL_CERT_FILE", None)
        return subprocess.run(sys.argv[1:], env=env).returncode
    finally:
        lab.stop()


if __name__ == "__main__":
    sys.exit(main())
