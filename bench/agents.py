#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Messages a second through Cordon's runtime and through autogen-core's.

    agents.py BUILD

The same work for both, on one thread each, in turns, the median of ROUNDS:
a request and its reply, then the next (direct); 100 requests at a time
(batch); events to one subscriber, 100 at a time (published). Handlers do
nothing; each message is made anew, with one number in it. autogen-core's
SingleThreadedAgentRuntime runs without tracing, which is its faster form.

Run it with a Python that has autogen-core: tests/clients/install makes one.
Lines out: what, figure, unit, bar; tab-separated. Ends with 0 when every bar
holds.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

os.environ["AUTOGEN_DISABLE_RUNTIME_TRACING"] = "true"

try:
    from autogen_core import (AgentId, MessageContext, RoutedAgent,
                              SingleThreadedAgentRuntime, TopicId,
                              TypeSubscription, event, rpc)
except ImportError:
    sys.exit("agents.py: autogen-core cannot be had here")

ROUNDS = 5
BATCH = 100
BAR = 50  # times as many as autogen-core
KINDS = ("direct", "batch", "publish")
OURS = 500_000  # messages a round
THEIRS = 2_000


@dataclass
class Number:
    n: int


class Echo(RoutedAgent):
    def __init__(self):
        super().__init__("answers with what it got")

    @rpc
    async def on_number(self, message: Number, ctx: MessageContext) -> Number:
        return Number(message.n)


class Listener(RoutedAgent):
    n = 0
    want = 0
    reached = None

    def __init__(self):
        super().__init__("counts")

    @event
    async def on_number(self, message: Number, ctx: MessageContext) -> None:
        Listener.n += 1
        if Listener.n == Listener.want:
            Listener.reached.set()


async def direct(runtime, count):
    to = AgentId("echo", "1")
    for i in range(count):
        await runtime.send_message(Number(i), to)


async def batch(runtime, count):
    to = AgentId("echo", "1")
    for i in range(0, count, BATCH):
        await asyncio.gather(*(runtime.send_message(Number(j), to)
                               for j in range(i, i + BATCH)))


async def publish(runtime, count):
    topic = TopicId("news", "1")
    Listener.n = 0
    for i in range(0, count, BATCH):
        Listener.want = i + BATCH
        Listener.reached = asyncio.Event()
        for j in range(i, i + BATCH):
            await runtime.publish_message(Number(j), topic)
        await Listener.reached.wait()


async def autogen_rate(kind):
    runtime = SingleThreadedAgentRuntime()
    await Echo.register(runtime, "echo", Echo)
    await Listener.register(runtime, "listener", Listener)
    await runtime.add_subscription(TypeSubscription("news", "listener"))
    runtime.start()
    await globals()[kind](runtime, BATCH)  # agents are made, code is warm
    before = time.monotonic()
    await globals()[kind](runtime, THEIRS)
    took = time.monotonic() - before
    await runtime.stop()
    return THEIRS / took


def own_rate(build, kind):
    program = os.path.join(build, "bench", "agents")
    out = subprocess.run([program, kind, str(OURS)], check=True,
                         capture_output=True, text=True).stdout
    return float(out.split()[0])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    is_good = True
    for kind in KINDS:
        own, other = [], []
        for _ in range(ROUNDS):
            own.append(own_rate(sys.argv[1], kind))
            other.append(asyncio.run(autogen_rate(kind)))
        own, other = statistics.median(own), statistics.median(other)
        name = {"publish": "published"}.get(kind, kind)
        print(f"messages, {name}\t{own:.0f}\ta second\t-")
        print(f"messages, {name}, autogen-core\t{other:.0f}\ta second\t-")
        print(f"messages, {name}, ratio\t{own / other:.0f}\ttimes\t"
              f"at least {BAR}", flush=True)
        is_good = is_good and own / other >= BAR
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
