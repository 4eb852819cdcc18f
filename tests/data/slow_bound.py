"""The bound of each person's records by its definition, in plain Python: one record after the other, whole numbers of any size."""

import hashlib
from collections import Counter

import numpy as np
import pandas as pd

from dpviz.data.bounding import canonical_text

WORD = 2**64


def mix(word):
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def secrets(key):
    """The key of SipHash, and four words."""
    derived = hashlib.blake2b(key, digest_size=40, person=b"dpviz bounding").digest()
    return derived[:8].hex(), *np.frombuffer(derived[8:], np.uint64).tolist()


def person_hash(text, key):
    """The hash of a canonical text: of the number if it is one of 64 bits, else of its letters."""
    sip_key, number_secret, *_ = secrets(key)
    digits = text[text.startswith(b"-") :]
    number = int(text) if digits.isdigit() and str(int(digits)).encode() == digits and text != b"-0" else WORD
    if -(2**63) <= number < 2**63:
        return mix((mix(number % WORD ^ number_secret) + 0x9E3779B97F4A7C15) % WORD)
    return int(pd.util.hash_array(np.array([text], object), hash_key=sip_key, categorize=False)[0])


def priority(text, cell, number, key):
    _, _, cell_secret, number_secret, last_secret = secrets(key)
    word = mix((person_hash(text, key) + (cell ^ cell_secret) * 0x9E3779B97F4A7C15) % WORD)
    word = mix((word + (number ^ number_secret) * 0xD1B54A32D192ED03) % WORD)
    return mix(word ^ last_secret)


def in_slots(text, own, bound):
    """The records of a person that are left when each slot keeps b of them; those of a cell are numbered anew."""
    key = hashlib.blake2b(bound.key, digest_size=16, person=b"dpviz slots").digest()
    left = Counter()
    for slot in range(bound.slots):
        ranked = sorted((priority(text, *record, key), *record) for record in own if record[0] % bound.slots == slot)
        left.update(cell for _, cell, _ in ranked[: bound.per_slot])
    return [(cell, number) for cell, size in left.items() for number in range(size)]


def slow_bound(rows, bound):
    """(person, cell) -> records kept, of rows (person, cell, records)."""
    had, kept = Counter(), Counter()
    for person, cell, records in rows:
        if person is not None and cell >= 0 and records > 0:
            pair = canonical_text(person), cell
            had[pair] = 1 if bound.distinct else had[pair] + min(records, bound.most)
    for text in {text for text, _ in had}:
        own = [(cell, number) for (other, cell), size in had.items() if other == text for number in range(size)]
        if bound.per_slot is not None and bound.per_slot < bound.most:
            own = in_slots(text, own, bound)
        if bound.fewer == "drop" and len(own) < bound.most:
            continue
        ranked = sorted((priority(text, *record, bound.key), *record) for record in own)
        kept.update((text, cell) for _, cell, _ in ranked[: bound.most])
    return dict(kept)
