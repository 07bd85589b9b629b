#!/usr/bin/env python3
"""Computes the exchanges in sessions.json from sessions.md and wire.md alone, without the Rust code.

    python3 docs/check_sessions.py            compares with the file
    python3 docs/check_sessions.py --write    writes it

Needs the package `cryptography`, for primitives only."""

import hashlib
import hmac
import json
import pathlib
import sys

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

FILE = pathlib.Path(__file__).with_name("sessions.json")


def public(secret):
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def x25519(secret, point):
    return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(point))


def mac(key, data, digest="sha256"):
    return hmac.new(key, data, digest).digest()


def extract(salt, secret):
    return mac(salt, secret)


def expand(prk, info, length):
    out, block, n = b"", b"", 1
    while len(out) < length:
        block = mac(prk, block + info + bytes([n]))
        out, n = out + block, n + 1
    return out[:length]


class Noise:
    """KKpsk0, 25519, ChaChaPoly, BLAKE2s: the symmetric state, and both messages of it."""

    def __init__(self, a, b, psk):
        name = b"Noise_KKpsk0_25519_ChaChaPoly_BLAKE2s"
        self.h = self.ck = hashlib.blake2s(name).digest()
        for data in (b"stayfast/1", a, b):
            self.mix_hash(data)
        self.psk = psk

    def mix_hash(self, data):
        self.h = hashlib.blake2s(self.h + data).digest()

    def hkdf(self, data, n):
        temp, outs, last = mac(self.ck, data, "blake2s"), [], b""
        for i in range(n):
            last = mac(temp, last + bytes([i + 1]), "blake2s")
            outs.append(last)
        return outs

    def mix_key(self, data):
        self.ck, self.key = self.hkdf(data, 2)

    def encrypt(self, payload):
        sealed = ChaCha20Poly1305(self.key).encrypt(bytes(12), payload, self.h)
        self.mix_hash(sealed)
        return sealed

    def ephemeral(self, point):
        self.mix_hash(point)
        self.mix_key(point)

    def message1(self, a, b, e, payload):
        self.ck, h, self.key = self.hkdf(self.psk, 3)
        self.mix_hash(h)
        self.ephemeral(public(e))
        self.mix_key(x25519(e, public(b)))
        self.mix_key(x25519(a, public(b)))
        return public(e) + self.encrypt(payload)

    def message2(self, a, e_a, e_b, payload):
        self.ephemeral(public(e_b))
        self.mix_key(x25519(e_b, public(e_a)))
        self.mix_key(x25519(e_b, public(a)))
        return public(e_b) + self.encrypt(payload)


def seal(aead, key, iv, number, header, payload):
    nonce = (int.from_bytes(iv, "big") ^ number).to_bytes(12, "big")
    return header + aead(key).encrypt(nonce, payload, header)


def masked(aes, key, packet):
    sample = packet[9:25]
    if aes:
        mask = Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(sample)
    else:
        mask = Cipher(algorithms.ChaCha20(key, sample), None).encryptor().update(bytes(5))
    number = bytes(x ^ y for x, y in zip(packet[5:9], mask[1:5]))
    return packet[:5] + number + packet[9:]


def u32(n):
    return n.to_bytes(4, "big")


def u64(n):
    return n.to_bytes(8, "big")


def exchange(aes, psk, runs, numbers):
    a, b = bytes(range(1, 33)), bytes(range(101, 133))
    # In the order in which they are drawn: an ephemeral secret, k_init, an index; and a secret and an index.
    entropy = [bytes(range(0, 68)), bytes(range(128, 164))]
    e_a, k_init, index_a = entropy[0][:32], entropy[0][32:64], entropy[0][64:]
    e_b, index_b = entropy[1][:32], entropy[1][32:]
    bits = [0x20 if bit else 0 for bit in aes]

    pair = extract(b"stayfast/1 pair", x25519(a, public(b)) + psk)
    way = [public(a) + public(b), public(b) + public(a)]
    tag = expand(pair, b"tag " + way[0], 8)
    keys = [expand(pair, b"mac " + w, 32) for w in way]

    noise = Noise(public(a), public(b), psk)
    message1 = noise.message1(a, b, e_a, k_init + u64(runs[0]) + u32(numbers[0] >> 32))
    message2 = noise.message2(a, e_a, e_b, u64(runs[1]))
    split = b"".join(noise.hkdf(b"", 2))

    init = extract(b"stayfast/1 init", k_init)
    session = extract(noise.h, split)
    context = bytes(map(int, aes)) + index_a + index_b
    aead = AESGCM if all(aes) else ChaCha20Poly1305
    names = [b"initiator", b"responder"]
    key, iv, mask = ([expand(session, label + n + context, length) for n in names]
                     for label, length in ((b"key ", 32), (b"iv ", 12), (b"mask ", 32)))

    payloads = [b"a record", b"", b"more", b""]
    low = [u32(numbers[i % 2] + i // 2 & 0xFFFFFFFF) for i in range(4)]
    header = bytes([0x01 | bits[0]]) + tag + index_a + low[0] + message1
    header += mac(keys[0], header)[:16]
    packets = [seal(ChaCha20Poly1305, expand(init, b"key init", 32), expand(init, b"iv init", 12), numbers[0], header,
                    payloads[0])]
    header = bytes([0x41 | bits[1]]) + index_a + index_b + low[1] + message2
    full = mac(keys[1], header)
    header += full[:12] + u32(int.from_bytes(full[12:16], "big") ^ numbers[1] >> 32)
    packets.append(seal(aead, key[1], iv[1], numbers[1], header, payloads[1]))
    for i, index in ((2, index_b), (3, index_a)):
        end = i % 2
        header = bytes([0x81 | bits[end]]) + index + low[i]
        packet = seal(aead, key[end], iv[end], numbers[end] + 1, header, payloads[i])
        packets.append(masked(all(aes), mask[end], packet))

    return {
        "aes": aes, "secrets": [a.hex(), b.hex()], "psk": psk.hex(), "runs": runs, "numbers": [str(n) for n in numbers],
        "entropy": [e.hex() for e in entropy],
        "packets": [{"payload": p.hex(), "hex": packet.hex()} for p, packet in zip(payloads, packets)],
    }


def main():
    both = {
        "about": "Exchanges of sessions.md: INIT, REPLY, and DATA in each direction, between two ends with this entropy.",
        "exchanges": [
            exchange([True, True], bytes(32), [7, 8], [0, 0]),
            exchange([True, False], bytes(range(200, 232)), [2**63 + 1, 1], [2**32 - 2, 3 * 2**32 + 5]),
        ],
    }
    text = json.dumps(both, indent=2) + "\n"
    if "--write" in sys.argv:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        sys.exit("sessions.json is not what sessions.md says")
    print("sessions.json agrees with sessions.md")


main()
