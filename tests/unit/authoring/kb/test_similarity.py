"""Near pages are those that comparing pair by pair finds, in the same order and with the same shares."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from rag_harness.authoring.kb import validation
from rag_harness.core.text.shingles import Hashing, candidates, resemblance, signature


def pair_by_pair(words: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, str, float]]:
    names, hashing, copies = list(words), Hashing(), set[int]()
    runs = [hashing.runs(" ".join(of_page)) for of_page in words.values()]
    for number, earlier in candidates(np.stack([signature(each) for each in runs]), 2).items():
        shares = {names[near]: resemblance(runs[near], runs[number]) for near in earlier if near not in copies}
        yield from ((near, names[number], share) for near, share in sorted(shares.items()) if share >= 0.3)
        if max(shares.values(), default=0.0) >= 0.9:
            copies.add(number)


def pages(seed: int) -> dict[str, tuple[str, ...]]:
    """Pages of shared paragraphs and of words of their own, some of them copies but for a word."""
    draw, found = random.Random(seed), list[tuple[str, ...]]()
    paragraphs = [tuple(f"w{draw.randrange(300)}" for _ in range(20)) for _ in range(6)]
    for number in range(40):
        if found and draw.random() < 0.3:
            found.append((*draw.choice(found), f"last{number}"))
        else:
            shared = [word for part in draw.sample(paragraphs, draw.randrange(4)) for word in part]
            found.append((*shared, *(f"w{draw.randrange(300)}" for _ in range(draw.randrange(60)))))
    # Not in the order of their names: near pages are told by name, copies by place.
    return {f"p{draw.random()}.md": words for words in found}


@pytest.mark.parametrize("seed", range(8))
def test_near_pages_are_those_of_each_pair(seed: int) -> None:
    words = pages(seed)
    found = list(validation._pairs(words))
    assert found == list(pair_by_pair(words))
    assert any(share >= 0.9 for *_, share in found)
    assert any(share < 0.9 for *_, share in found)
