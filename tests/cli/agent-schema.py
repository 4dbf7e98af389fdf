#!/usr/bin/env python3
"""Holds documents against a JSON schema: agent-schema.py SCHEMA FILE...

As much of draft 2020-12 as api/agent.schema.json uses; a word that is not known
here is an error, so that nothing passes for want of a check. A file is JSON;
YAML is turned into it by its own 'cordon agent dump' or by python3-yaml.
"""
import json
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool,
         "integer": int, "number": (int, float)}
SILENT = {"$schema", "$defs", "title", "description"}


def is_type(value, name):
    if isinstance(value, bool) and name != "boolean":
        return False
    return isinstance(value, TYPES[name])


def wrong(schema, value, top):
    """What is wrong, or None."""
    for word, said in schema.items():
        why = None if word in SILENT else RULES[word](said, value, top, schema)
        if why:
            return why
    return None


def at(top, pointer):
    for part in pointer.split("/")[1:]:
        top = top[part]
    return top


def each(value, kind, check):
    if isinstance(value, kind):
        return next((w for w in check(value) if w), None)
    return None


def properties(said, value, top, _):
    return each(value, dict, lambda v: (
        (w := wrong(said[k], x, top)) and f"/{k}{w}"
        for k, x in v.items() if k in said))


def patterns(said, value, top, _):
    return each(value, dict, lambda v: (
        (w := wrong(s, x, top)) and f"/{k}{w}"
        for p, s in said.items() for k, x in v.items() if re.search(p, k)))


def additional(said, value, top, schema):
    known = schema.get("properties", {})
    more = schema.get("patternProperties", {})
    rest = {k: x for k, x in value.items() if k not in known and
            not any(re.search(p, k) for p in more)} \
        if isinstance(value, dict) else {}
    if said is False:
        return f": unknown {sorted(rest)}" if rest else None
    return each(rest, dict, lambda v: (
        (w := wrong(said, x, top)) and f"/{k}{w}" for k, x in v.items()))


def bound(test, kind):
    return lambda said, v, *_: None if not isinstance(v, kind) or \
        isinstance(v, bool) or test(v, said) else f": {v!r} against {said}"


RULES = {
    "type": lambda s, v, *_: None if any(
        is_type(v, t) for t in (s if isinstance(s, list) else [s]))
    else f": not {s}",
    "$ref": lambda s, v, top, _: wrong(at(top, s), v, top),
    "anyOf": lambda s, v, top, _: None if any(
        not wrong(x, v, top) for x in s) else ": none of " + "; ".join(
            str(wrong(x, v, top)) for x in s)[:600],
    "const": lambda s, v, *_: None if v == s else f": not {s!r}",
    "enum": lambda s, v, *_: None if v in s else f": not one of {s}",
    "properties": properties,
    "patternProperties": patterns,
    "additionalProperties": additional,
    "propertyNames": lambda s, v, top, _: each(
        v, dict, lambda m: (wrong(s, k, top) for k in m)),
    "items": lambda s, v, top, _: each(
        v, list, lambda m: ((w := wrong(s, x, top)) and f"/{i}{w}"
                            for i, x in enumerate(m))),
    "required": lambda s, v, *_: each(
        v, dict, lambda m: (f": lacks {k}" for k in s if k not in m)),
    "pattern": bound(lambda v, s: re.search(s, v), str),
    "maxLength": bound(lambda v, s: len(v) <= s, str),
    "minimum": bound(lambda v, s: v >= s, (int, float)),
    "maximum": bound(lambda v, s: v <= s, (int, float)),
    "minProperties": bound(lambda v, s: len(v) >= s, dict),
    "maxProperties": bound(lambda v, s: len(v) <= s, dict),
}


def main():
    schema = json.load(open(sys.argv[1]))
    bad = 0
    for name in sys.argv[2:]:
        why = wrong(schema, json.load(open(name)), schema)
        if why:
            print(f"{name}{why}")
            bad = 1
    return bad


sys.exit(main())
