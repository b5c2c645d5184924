#!/usr/bin/env python3
"""Check an exported chain of decisions with the standard library alone.

    python check_decisions.py CHAIN.jsonl [--key HEX] [--holds SHA256]

CHAIN.jsonl is written by `manage.py decisions export`. It has one JSON object a line: entries in their order, each block after its
entries, and signatures. --key: the public Ed25519 key (64 hexadecimal digits) that must have signed the last block.
--holds: the hash of a block that somebody outside received earlier (an anchor); the chain must still have this block.
Exit status 0: the chain is whole. 1: it is not; the first places are named.
"""

import argparse
import base64
import bisect
import hashlib
import itertools
import json
import sys

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)


def sha256(content):
    return hashlib.sha256(content).digest()


# Ed25519 as in RFC 8032, section 6, for signatures that were made elsewhere


def add_points(a, b):
    u = (a[1] - a[0]) * (b[1] - b[0]) % P
    v = (a[1] + a[0]) * (b[1] + b[0]) % P
    w = 2 * a[3] * b[3] * D % P
    z = 2 * a[2] * b[2] % P
    e = v - u
    f = z - w
    g = z + w
    h = v + u
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, point):
    total = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = add_points(total, point)
        point = add_points(point, point)
        number >>= 1
    return total


def point_of(text):
    y = int.from_bytes(text, "little")
    sign = y >> 255
    y &= (1 << 255) - 1
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(key, message, signature):
    if len(key) != 32 or len(signature) != 64:
        return False
    public, point = point_of(key), point_of(signature[:32])
    number = int.from_bytes(signature[32:], "little")
    if public is None or point is None or number >= ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    left = times(number, BASE)
    right = add_points(point, times(int.from_bytes(digest, "little") % ORDER, public))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


def merkle_root(hashes):
    if len(hashes) == 1:
        return hashes[0]
    half = 1
    while 2 * half < len(hashes):
        half *= 2
    return sha256(b"\x01" + merkle_root(hashes[:half]) + merkle_root(hashes[half:]))


class Chain:
    """State of a check: the open block, the hashes of earlier blocks, and the problems found so far."""

    def __init__(self):
        self.problems = []
        self.entries = []  # entries of the current block
        self.number = 0
        self.before = "0" * 64
        self.blocks = {}
        self.empty = []
        self.erased = set()
        self.ranges = []
        self.places = {}
        self.signed = {}  # for each block, the keys that signed it

    def entry(self, line):
        self.number += 1
        place = f"record {line['number']}"
        if line["number"] != self.number:
            self.problems.append(f"{place}: it stands in place {self.number}")
        self.entries.append(line)
        if line["payload"] is None:
            self.empty.append(line["number"])
            return
        content = line["payload"].encode("utf-8", "surrogatepass")
        if sha256(b"\x00" + bytes.fromhex(line["salt"]) + content).hex() != line["commitment"]:
            self.problems.append(f"{place}: its content or its salt was changed")
            return
        said = json.loads(line["payload"])
        if (said["id"], said["kind"]) != (line["key"], line["kind"]):
            self.problems.append(f"{place}: id or kind differ from its content")
        if (said.get("stream"), said.get("seq")) != (line["stream"], line["seq"]) and said["kind"] == "decision":
            self.problems.append(f"{place}: its place in the stream differs from its content")
        if said["kind"] == "erased":
            self.erased.update(said.get("numbers", ()))
            self.ranges += said.get("ranges", [])
            if "range" in said:
                self.ranges.append(said["range"])

    def streams(self):
        """Report gaps in the streams; return the first and last place of each stream in this block."""
        ends = {}
        for line in self.entries:
            if line["seq"] is None:
                continue
            expected = self.places.get(line["stream"], 0)
            if line["seq"] != expected:
                self.problems.append(f"record {line['number']}: place {expected} of its stream is missing before it")
            self.places[line["stream"]] = line["seq"] + 1
            own = ends.setdefault(line["stream"], [line["seq"], line["seq"]])
            own[0], own[1] = min(own[0], line["seq"]), max(own[1], line["seq"])
        return ends

    def counts(self):
        found = {}
        for line in self.entries:
            if line["kind"] == "decision" and line["payload"] is not None:
                said = json.loads(line["payload"])
                name = f"{said['version_sha256']} {said.get('leaf', 'refused')} {said.get('label', '')}".strip()
                found[name] = found.get(name, 0) + 1
        return found

    def block(self, line):
        header = json.loads(line["header"])
        place = f"block {header['number']}"
        digest = sha256(line["header"].encode()).hex()
        if header["number"] != len(self.blocks) + 1 or header["before"] != self.before:
            self.problems.append(f"{place}: the block before it is not the one that was there")
        if not self.entries or header["records"] != len(self.entries) or header["first"] != self.entries[0]["number"]:
            self.problems.append(f"{place}: records are missing or were added")
        elif header["root"] != merkle_root([bytes.fromhex(e["commitment"]) for e in self.entries]).hex():
            self.problems.append(f"{place}: its root is not that of its records")
        if header["streams"] != self.streams():
            self.problems.append(f"{place}: its streams are not those of its records")
        if any(number > header["counts"].get(name, 0) for name, number in self.counts().items()):
            self.problems.append(f"{place}: its counts are not those of its records")
        self.entries = []
        self.before = digest
        self.blocks[header["number"]] = digest

    def signature(self, line):
        text = f"octweb decisions block {line['block']} sha256 {line['sha256']}\n".encode()
        if self.blocks.get(line["block"]) != line["sha256"]:
            self.problems.append(f"block {line['block']}: it is not the one that was signed")
        elif not is_signed(bytes.fromhex(line["key"]), text, base64.b64decode(line["signature"])):
            self.problems.append(f"block {line['block']}: its signature does not hold")
        self.signed.setdefault(line["block"], set()).add(line["key"])

    def end(self, key):
        ranges = sorted(map(tuple, self.ranges))
        ends = list(itertools.accumulate((last for _, last in ranges), max))
        for number in self.empty:
            place = bisect.bisect_right(ranges, (number, float("inf"))) - 1
            if number not in self.erased and (place < 0 or number > ends[place]):
                self.problems.append(f"record {number}: its content is gone, and no record says that it was erased")
        if self.entries:
            self.problems.append("records after the last block")
        keys = self.signed.get(len(self.blocks), set())
        if not keys:
            self.problems.append("the last block is not signed, so blocks after it may have been cut off")
        elif key and key.lower() not in keys:
            self.problems.append("the last block was signed with another key")


def check(lines, key=None, holds=None):
    """Return the problems of a chain as texts; the list is empty if the chain is whole."""
    chain = Chain()
    kinds = {"entry": chain.entry, "block": chain.block, "signature": chain.signature}
    try:
        for line in lines:
            said = json.loads(line)
            kinds[said["type"]](said)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return [*chain.problems, f"a line cannot be read: {error!r}"]
    chain.end(key)
    if holds and holds.lower() not in chain.blocks.values():
        chain.problems.append("no block has the hash of the anchor, so the chain was rewritten since")
    return chain.problems


def main():
    parser = argparse.ArgumentParser(description="Check an exported chain of decisions.")
    parser.add_argument("chain")
    parser.add_argument("--key")
    parser.add_argument("--holds", metavar="SHA256")
    given = parser.parse_args()
    with open(given.chain, encoding="utf-8", errors="surrogatepass") as stream:
        problems = check(stream, given.key, given.holds)
    for text in problems[:50]:
        print(text, file=sys.stderr)
    print("The chain is broken." if problems else "The chain is whole.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
