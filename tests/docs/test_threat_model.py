"""The limits that docs/trust.md states are those of the code, and none of them is forgotten.

That the code keeps them is tested beside it, with the numbers of the page.
"""

from __future__ import annotations

import re

from syno.devices import door, tracker, wire
from syno.store import bundles, outcomes
from syno.study import worker

from .pages import ROOT

# What the page says of each limit, with its numbers, and the values in the code.
LIMITS = {
    "text of at most 65,536 characters": [worker.MOST_TEXT],
    "at most 1 MiB as JSON": [outcomes.MOST_BYTES >> 20],
    "At most 64 of 100 characters each": [worker.MOST_TAGS, worker.MOST_TAG],
    "At most 64 MiB and 100,000 rows": [bundles.MOST_BYTES >> 20, bundles.MOST_ROWS],
    "Messages of at most 1,024 bytes": [tracker.MOST_BYTES_OF_STRANGERS],
    "5 seconds for all of them together": [tracker.BEGIN_S],
    "64 peers that have not proven": [tracker.MOST_STRANGERS],
    "At most 1 MiB of JSON": [wire.MOST_BYTES >> 20],
    "within 10 seconds from its first byte": [tracker.MESSAGE_S],
    "512 peers": [tracker.MOST_PEERS],
    "64 offers of one peer": [tracker.MOST_OFFERS],
    "512 keys": [tracker.MOST_KEYS],
    "1,024 bytes of what a server says": [tracker.MOST_INFO],
    "At most 1,024 bytes within 5 seconds": [door.MOST_KEY, door.BEGIN_S],
    "64 clients at once": [door.MOST_VISITORS],
    "a match key of 128 random bits": [8 * len(bytes.fromhex(wire.nonce()))],
}
# Numbers of the section that are no limits: versions, and the names of algorithms and of bits.
_OTHERS = re.compile(r"version 5 of the schema|SHA256|CIFAR-\d+|UTF-8")
_NUMBER = re.compile(r"\d[\d,]*")


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in _NUMBER.findall(text)]


def test_the_limits_of_the_threat_model_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "trust.md").read_text()
    section = page.partition("### What arrives")[2].partition("\n### ")[0]
    for sentence, values in LIMITS.items():
        assert sentence in section, f"'{sentence}' is not in docs/trust.md"
        assert numbers(sentence) == values, sentence
        section = section.replace(sentence, "", 1)
    rest = [line for line in section.splitlines() if numbers(_OTHERS.sub("", line))]
    assert not rest, f"limits without a test: {rest}"
