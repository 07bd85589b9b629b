#!/usr/bin/env python3
"""Reads docs/vectors.json with a decoder written from docs/wire.md alone, and says where the two differ.

    python3 docs/check_vectors.py [vectors.json]

Standard library only. Exit status 1 if a vector fails.
"""

import json
import pathlib
import sys

LIMIT = 1 << 62  # no varint reaches it
LAST_MICROSECOND = (2**64 - 1) // 1000
REASONS = ["unauthorized", "too large", "too many streams", "rejected"]


class Bad(Exception):
    """What is wrong, by the name wire.md gives it."""


def need(condition, error="Malformed"):
    if not condition:
        raise Bad(error)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        need(self.at + length <= len(self.data), "Truncated")
        self.at += length
        return self.data[self.at - length : self.at]

    def byte(self):
        return self.take(1)[0]

    def u32(self):
        return int.from_bytes(self.take(4), "big")

    def id(self):
        return self.take(8).hex()

    def varint(self, limit=LIMIT):
        first = self.byte()
        length = 1 << (first >> 6)
        value = int.from_bytes(bytes([first & 0x3F]) + self.take(length - 1), "big")
        need(value < limit)
        return value

    def alias(self):
        return self.varint(1 << 32)

    def bytes(self):
        return self.take(self.varint())


def header(packet):
    r = Reader(packet)
    first = r.byte()
    need(first & 0x0F == 1, "Version")
    need(first >> 6 != 3 and not first & 0x10, "Unsupported")
    kind = ["INIT", "REPLY", "DATA"][first >> 6]
    need(len(packet) >= {"INIT": 141, "REPLY": 101, "DATA": 25}[kind], "Truncated")
    told = {"kind": kind, "aes": bool(first & 0x20)}
    if kind == "INIT":
        told["tag"] = r.take(8).hex()
    else:
        told["index"] = r.u32()
    if kind != "DATA":
        told["own_index"] = r.u32()
    told["number"] = r.take(4).hex()
    if kind != "DATA":
        told["noise"] = r.take({"INIT": 92, "REPLY": 56}[kind]).hex()
        told["mac"] = r.take(16).hex()
    told["payload"] = packet[r.at : -16].hex()
    return told


def ack(r, ecn):
    last = r.varint()
    told = {"frame": "ACK", "delay_us": r.varint()}
    time = r.varint()
    need(time <= LAST_MICROSECOND)
    further = r.varint()
    need(further < 64, "Limit")
    first = last - r.varint()
    need(first >= 0)
    ranges = [[first, last, time]]
    for _ in range(further):
        last = first - r.varint() - 2
        first = last - r.varint()
        folded = r.varint()
        time -= -(folded + 1) // 2 if folded % 2 else folded // 2
        need(first >= 0 and 0 <= time <= LAST_MICROSECOND)
        ranges.append([first, last, time])
    told["ranges"] = ranges
    if ecn:
        told["ecn"] = [r.varint(), r.varint(), r.varint()]
    return told


def records(r, kind):
    alias = kind & 7
    told = {"frame": "RECORDS", "alias": r.alias() if alias == 7 else alias}
    told["first"] = int.from_bytes(r.take(1 + (kind >> 3 & 7)), "big")
    offset = 0
    if kind & 0x40:
        offset = told["offset"] = r.varint(1 << 32)
        need(offset > 0)
    need(r.at < len(r.data), "Truncated")
    bodies = told["bodies"] = []
    total = -1
    while r.at < len(r.data) and r.data[r.at]:
        length = r.varint()
        total = total if length == 1 else length - 2
        rest = total - offset
        need(0 <= total < 1 << 32 and (rest > 0 or rest == offset == 0))
        if rest > len(r.data) - r.at:
            need(r.at < len(r.data), "Truncated")
            told["cut"] = total
            rest = len(r.data) - r.at
        bodies.append(r.take(rest).hex())
        offset = 0
    need(bodies and told["first"] + len(bodies) < LIMIT)
    return told


def part(r):
    told = {"frame": "PART", "alias": r.alias(), "number": r.varint()}
    told["total"], told["offset"] = r.varint(1 << 32), r.varint(1 << 32)
    piece = r.bytes()
    need(piece and told["offset"] + len(piece) <= told["total"] and told["number"] + 1 < LIMIT)
    return told | {"bytes": piece.hex()}


def open_(r):
    told = {"frame": "OPEN", "alias": r.alias(), "store": r.id()}
    name = r.bytes()
    need(name)
    need(len(name) <= 255, "Limit")
    try:
        return told | {"name": name.decode()}
    except UnicodeDecodeError:
        raise Bad("Malformed") from None


def span(name):
    def read(r):
        told = {"frame": name, "alias": r.alias(), "first": r.varint(), "count": r.varint()}
        need(told["count"] > 0 and told["first"] + told["count"] < LIMIT)
        return told

    return read


def stored(r):
    told = {"frame": "STORED", "alias": r.alias(), "next": r.varint(), "lineage": r.id(), "level": r.byte()}
    kind = r.byte()
    need(told["level"] < 4 and kind < 2)
    return told | {"kind": ["record", "tombstone"][kind]}


def refused(r):
    told = {"frame": "REFUSED", "alias": r.alias(), "number": r.varint()}
    reason = r.byte()
    need(reason < len(REASONS))
    return told | {"reason": REASONS[reason]}


def key(r):
    message = r.bytes()
    need(len(message) <= 128, "Limit")
    return {"frame": "KEY", "message": message.hex()}


def padding(r):
    start = r.at - 1
    while r.at < len(r.data) and r.data[r.at] == 0:
        r.at += 1
    return {"frame": "PADDING", "len": r.at - start}


def reserved(_):
    raise Bad("Unsupported")


def plain(name, **fields):
    """A frame without rules beyond the range of its fields, in wire order."""
    return lambda r: {"frame": name} | {field: read(r) for field, read in fields.items()}


V, ALIAS, ID = Reader.varint, Reader.alias, Reader.id

FRAMES = {
    0x00: padding,
    0x01: plain("PING"),
    0x02: lambda r: ack(r, False),
    0x03: lambda r: ack(r, True),
    0x04: plain("ACK_FREQUENCY", sequence=V, every=V, max_delay_us=V),
    0x05: plain("IMMEDIATE_ACK"),
    0x12: part,
    0x13: reserved,
    0x18: open_,
    0x19: plain("ORIGIN", alias=ALIAS, first=V, lineage=ID, parent=ID),
    0x1A: span("GAP"),
    0x1B: span("EXPIRED"),
    0x20: plain("HEARD", alias=ALIAS, next=V),
    0x21: stored,
    0x22: plain("QUERY", nonce=V, alias=ALIAS, trimmed=V),
    0x23: plain("ANSWER", nonce=V, alias=ALIAS, next=V, lineage=ID),
    0x24: plain("CREDIT", **{"link": V, "alias": ALIAS, "from": V, "bytes": V}),
    0x25: plain("BLOCKED", alias=ALIAS, number=V, bytes=V),
    0x26: refused,
    0x27: plain("FENCED", alias=ALIAS, number=V, theirs=ID, yours=ID),
    0x30: plain("PATH_CHALLENGE", data=ID),
    0x31: plain("PATH_RESPONSE", data=ID),
    0x32: key,
}


def payload(data):
    """The frames before the first error, and the error."""
    r, frames = Reader(data), []
    try:
        while r.at < len(data):
            type_ = r.byte()
            if 0x40 <= type_ <= 0x7F:
                frames.append({"frame": "SKIPPED", "type": type_, "len": len(r.bytes())})
            elif type_ >= 0x80:
                frames.append(records(r, type_))
            else:
                need(type_ in FRAMES, "Unknown")
                frames.append(FRAMES[type_](r))
    except Bad as bad:
        return {"frames": frames, "error": str(bad)}
    return {"frames": frames}


def whole_header(data):
    try:
        return header(data)
    except Bad as bad:
        return {"error": str(bad)}


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("vectors.json")
    vectors = json.loads(pathlib.Path(path).read_text())
    failed = checked = 0
    for part_, read in (("headers", whole_header), ("payloads", payload)):
        for vector in vectors[part_]:
            expected = {k: v for k, v in vector.items() if k not in ("name", "hex", "rewritten")}
            told = read(bytes.fromhex(vector["hex"]))
            if "rewritten" in vector:
                again = payload(bytes.fromhex(vector["rewritten"]))
                told = told if again == told else {"rewritten": again}
            checked += 1
            if told != expected:
                failed += 1
                print(f"{vector['name']}:\n  expected {expected}\n  read     {told}")
    print(f"{checked} vectors, {failed} failed")
    return 1 if failed or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
