#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the table, the bars and the plot of what bench/run measured.

    report.py SAMPLES OUT [--quick] [--tap]

SAMPLES is the directory with the raw samples, OUT the start of the names of
the files to write (OUT.md, OUT.svg). Prints the table, or the bars as TAP.
Ends with 0 when every bar holds; a bar that could not be measured does not.
As TAP the ratios of times have some slack: they show regressions.
"""

import os
import sys
from html import escape

SLACK = 1.25  # for ratios of times, where they are tests
FIRST = ("bare", "library", "burst", "command", "disk", "bwrap", "crun", "runc",
         "docker")
PYTHON = ("python", "box-python")
OURS = ("library", "burst", "command", "disk", "box-python")


def rows(directory, name):
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.strip()]


def quantile(values, q):
    """Between the two nearest, linearly."""
    at = q * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    ordered = sorted(values)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(values):
    return quantile(values, 0.5)


class Peer:
    """One way to start a program: its samples, or why it has none."""

    def __init__(self, key, name, absent=""):
        self.key, self.name, self.absent = key, name, absent
        self.ms = []
        self.failed = []

    @property
    def mid(self):
        return median(self.ms)

    @property
    def p95(self):
        return quantile(self.ms, 0.95)


def read_peers(directory):
    peers = {}
    for key, name, *absent in rows(directory, "names.tsv"):
        peers[key] = Peer(key, name, *absent)
    for key, value, *why in rows(directory, "start.tsv"):
        if value == "broken":
            peers[key].absent = "does not run: " + why[0]
        elif value == "failed":
            peers[key].failed.append(why[0])
        else:
            peers[key].ms.append(float(value))
    for peer in peers.values():
        if not peer.ms and not peer.absent:
            peer.absent = "no samples"
    return peers


class Bar:
    """A promise: a figure that stays below a limit."""

    def __init__(self, name, what, limit, unit=""):
        self.name, self.what, self.limit, self.unit = name, what, limit, unit
        self.value = None
        self.bad = ""  # why it fails or is not measured

    def verdict(self):
        if self.value is None:
            return "NOT MEASURED"
        return "FAIL" if self.bad or self.value > self.limit else "PASS"

    def holds(self):
        return self.verdict() == "PASS"

    def figure(self, value):
        return f"{value:.1f}{self.unit}" if self.unit else f"{value:.2f}"

    def have(self):
        return "-" if self.value is None else self.figure(self.value)


def ratio_bar(peers, name, what, limit, pair):
    bar = Bar(name, what, limit)
    for key in pair:
        if peers[key].absent:
            bar.bad = f"{peers[key].name}: {peers[key].absent}"
            return bar
    bar.value = peers[pair[0]].mid / peers[pair[1]].mid
    for key in pair:
        if peers[key].failed:
            bar.bad = (f"{len(peers[key].failed)} samples of "
                       f"'{peers[key].name}' failed: {peers[key].failed[0]}")
    return bar


def memory_bar(samples):
    bar = Bar("l16_memory", "memory that Cordon adds to a run (PSS)", 2.0,
              " MiB")
    if samples:
        bar.value = median([sum(map(int, s)) for s in samples]) / 1024
    else:
        bar.bad = "no samples"
    return bar


def deadline_bar(samples):
    bar = Bar("l16_deadline", "deadline to nothing left, 100 hostile "
              "processes", 50.0, " ms")
    if samples:
        bar.value = median([float(s[0]) for s in samples])
    else:
        bar.bad = "no samples"
    left = sum(int(s[2]) for s in samples)
    if left:
        bar.bad = f"{left} processes were left when the result came"
    return bar


def make_bars(peers, directory, quick):
    bars = [
        ratio_bar(peers, "l16_library_to_bwrap",
                  "libcordon, reused handle / bubblewrap", 0.6,
                  ("library", "bwrap")),
        ratio_bar(peers, "l16_command_to_bwrap", "cordon run / bubblewrap",
                  0.9, ("command", "bwrap")),
    ]
    if not quick:
        bars.append(ratio_bar(peers, "l16_command_to_crun",
                              "cordon run / crun", 0.5, ("command", "crun")))
    bars.append(ratio_bar(peers, "l16_python_to_bare",
                          "cordon run --lang python / python3", 1.3,
                          ("box-python", "python")))
    bars.append(memory_bar(rows(directory, "memory.tsv")))
    bars.append(deadline_bar(rows(directory, "deadline.tsv")))
    return bars


# Markdown

def table(head, body):
    lines = ["| " + " | ".join(head) + " |",
             "|---" + "|---:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    return "\n".join(lines)


def ratio(peer, other):
    if other is None or other.absent:
        return "-"
    return f"{peer.mid / other.mid:.2f}"


def start_table(peers, keys, against):
    body = []
    for key in keys:
        peer = peers.get(key)
        if peer is None:
            continue
        if peer.absent:
            body.append([peer.name, peer.absent] + ["-"] * (2 + len(against)))
            continue
        count = str(len(peer.ms))
        if peer.failed:
            count += f", {len(peer.failed)} failed"
        body.append([peer.name, f"{peer.mid:.2f}", f"{peer.p95:.2f}"] +
                    [ratio(peer, peers.get(a)) for a in against] + [count])
    head = ["", "median ms", "95 % ms"]
    head += ["of " + {"bwrap": "bubblewrap"}.get(a, "bare") for a in against]
    return table(head + ["samples"], body)


def bar_table(bars):
    return table(["bar", "measured", "at most", "verdict"],
                 [[b.what, b.have(), b.figure(b.limit),
                   b.verdict() + (f" ({b.bad})" if b.bad else "")]
                  for b in bars])


def details(directory):
    lines = []
    memory = [[int(n) for n in s] for s in rows(directory, "memory.tsv")]
    if memory:
        parts = [f"{median(list(c)):.0f} KiB" for c in zip(*memory)]
        lines.append(f"Memory, {len(memory)} samples: command {parts[0]}, "
                     f"keeper {parts[1]}, init {parts[2]}.")
    late = [float(s[0]) for s in rows(directory, "deadline.tsv")]
    if late:
        lines.append(f"Deadline to nothing left, {len(late)} samples: "
                     f"{min(late):.1f} to {max(late):.1f} ms, counted from "
                     "the call, so that building the box is within.")
    return lines


def scale_table(directory):
    body = []
    for callers, runs, seconds, failed in rows(directory, "scale.tsv"):
        body.append([callers, f"{int(runs) / float(seconds):.0f}", failed])
    return table(["callers", "runs a second", "failed"], body) if body else ""


def busy(directory):
    """A warning when others used the machine; it may bend the ratios."""
    about = dict(rows(directory, "about.tsv"))
    load, cpus = float(about["load before"]), int(about["CPUs"].split()[0])
    if load <= cpus / 2:
        return ""
    return (f"The machine was busy (load {load:g} on {cpus} CPUs): the "
            "figures are higher and the ratios less sure than on a quiet one.")


def markdown(peers, bars, directory):
    about = [f"- {k}: {v}" for k, v in rows(directory, "about.tsv")]
    parts = [
        "# What a box costs",
        "\n".join(about),
        busy(directory),
        "## /usr/bin/true\n\n" +
        start_table(peers, FIRST, ("bwrap", "bare")),
        "## python3 -c pass\n\n" + start_table(peers, PYTHON, ("python",)),
        "## Bars\n\n" + bar_table(bars),
    ]
    parts += details(directory)
    scale = scale_table(directory)
    if scale:
        parts.append("## Callers at once, each with a handle, without "
                     "pauses\n\n" + scale)
    parts.append(
        "One sample of each a round, in shuffled order, with a pause of 2 ms "
        "between two. The limits are Cordon's defaults: 256 MiB, half a CPU, "
        "128 processes. bubblewrap has no limits and no filter; crun and runc "
        "have no filter. \"Back to back\" is the mean of five calls without a "
        "pause, which soon use up what was made ready ahead.")
    return "\n\n".join(filter(None, parts)) + "\n"


# SVG

WIDTH, LEFT, RIGHT, ROW = 860, 220, 165, 26
BLUE, GREY, INK, FAINT = "#2563a8", "#a3aab3", "#1d232a", "#e3e6ea"


def text(x, y, words, anchor="start", size=13, extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
            f'font-size="{size}" fill="{INK}"{extra}>{escape(words)}</text>')


def line(x1, y1, x2, y2, colour, width=1.0):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{width}"/>')


def tick_step(top):
    step = 10.0 ** -2
    while True:
        for factor in (1, 2, 5):
            if top / (step * factor) <= 8:
                return step * factor
        step *= 10


def draw_bar(peer, y, scale, top):
    colour = BLUE if peer.key in OURS else GREY
    mid, high = min(peer.mid, top), min(peer.p95, top)
    end = LEFT + mid * scale
    out = [f'<rect x="{LEFT}" y="{y + 5}" width="{mid * scale:.1f}" '
           f'height="{ROW - 10}" fill="{colour}"/>']
    if peer.mid > top:  # cut: two strokes through the bar
        for x in (end - 18, end - 12):
            out.append(line(x - 3, y + ROW - 3, x + 3, y + 3, "#ffffff", 3))
    else:
        middle = y + ROW / 2
        far = LEFT + high * scale
        out.append(line(end, middle, far, middle, INK))
        out.append(line(far, middle - 4, far, middle + 4, INK))
        end = far
    out.append(text(end + 8, y + ROW / 2 + 4.5,
                    f"{peer.mid:.2f}  (95 %: {peer.p95:.2f})", size=12))
    return out


def panel(peers, title, y):
    """One chart with an axis of its own; returns the lines and its end."""
    there = [p for p in peers if not p.absent]
    out = [text(LEFT, y + 14, title, size=14, extra=' font-weight="bold"')]
    y += 26
    if not there:
        return out, y
    # What takes very long is cut, or nothing else could be seen.
    usual = median([p.mid for p in there])
    top = max(p.p95 for p in there if p.mid <= 12 * usual) * 1.02
    scale = (WIDTH - LEFT - RIGHT) / top
    bottom = y + ROW * len(peers)
    step = tick_step(top)
    for i in range(int(top / step) + 1):
        x = LEFT + i * step * scale
        out.append(line(x, y, x, bottom, FAINT))
        out.append(text(x, bottom + 15, f"{i * step:g}", "middle", 11))
    for i, peer in enumerate(peers):
        at = y + i * ROW
        out.append(text(LEFT - 10, at + ROW / 2 + 4.5, peer.name, "end"))
        if peer.absent:
            short = peer.absent[:60]
            out.append(text(LEFT + 6, at + ROW / 2 + 4.5, short, size=12,
                            extra=' font-style="italic"'))
        else:
            out += draw_bar(peer, at, scale, top)
    out.append(line(LEFT, y, LEFT, bottom, INK))
    return out, bottom + 34


def svg(peers, about):
    first = [peers[k] for k in FIRST if k in peers]
    second = [peers[k] for k in PYTHON if k in peers]
    words, y = panel(first, "/usr/bin/true, milliseconds", 44)
    more, y = panel(second, "python3 -c pass, milliseconds", y)
    head = [text(16, 24, "What a box costs: start to end, median and 95 % "
                 "(whisker)", size=16, extra=' font-weight="bold"')]
    foot = [text(16, y + 6, about, size=11)]
    height = y + 20
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
         f'height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}" '
         'font-family="DejaVu Sans, Helvetica, Arial, sans-serif">',
         f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>'] +
        head + words + more + foot + ["</svg>\n"])


def tap(bars, note):
    """The bars as tests; a ratio of times that is a little above its bar is
    noise on a shared machine, much above it is a regression."""
    good = True
    if note:
        print(f"# {note}")
    for i, bar in enumerate(bars, 1):
        limit = bar.limit * (1 if bar.unit else SLACK)
        holds = bar.value is not None and not bar.bad and bar.value <= limit
        good = good and holds
        print(f"# {bar.what}: {bar.have()}, bar {bar.figure(bar.limit)}, "
              f"tested for {bar.figure(limit)}"
              f"{'; ' + bar.bad if bar.bad else ''}")
        print(f"{'ok' if holds else 'not ok'} {i} - {bar.name}")
    print(f"1..{len(bars)}")
    return good


def write(path, content):
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)


def main():
    directory, out, *options = sys.argv[1:]
    peers = read_peers(directory)
    bars = make_bars(peers, directory, "--quick" in options)
    page = markdown(peers, bars, directory)
    about = dict(rows(directory, "about.tsv"))
    write(out + ".md", page)
    write(out + ".svg", svg(peers, f"{about['kernel']}, {about['CPUs']}, "
                            f"{about['date']}, {about['commit'][:12]}"))
    if "--tap" in options:
        return 0 if tap(bars, busy(directory)) else 1
    print(page, end="")
    return 0 if all(b.holds() for b in bars) else 1


sys.exit(main())
