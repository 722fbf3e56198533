"""Pages that are nearly the same, and paragraphs pasted from one page into another: listed, never an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rag_harness.kb.validation.material import Material
from rag_harness.kb.validation.page import Page, squeeze
from rag_harness.kb.validation.report import CheckResult

if TYPE_CHECKING:
    from datasketch import MinHash

THRESHOLD = 0.3
"""Jaccard similarity of the sets of three-word runs from which two pages are listed."""
_SAME = 0.9
_RUN = 3
_PERMUTATIONS = 128
_SHORT = 12
"""Paragraphs of fewer words are phrases ("See also …") that pages may share."""


def checks(material: Material) -> list[CheckResult]:
    """Return the two checks; near-duplicates need datasketch and are skipped without it."""
    return [_pasted(material), _near_duplicates(material)]


def _pasted(material: Material) -> CheckResult:
    check = CheckResult("pasted paragraphs")
    places: dict[str, list[tuple[Page, int]]] = {}
    for page in material.pages.values():
        for line, text in page.paragraphs:
            if text.count(" ") + 1 >= _SHORT:
                places.setdefault(squeeze(text), []).append((page, line))
    for text, found in places.items():
        names = list(dict.fromkeys(page.doc_id for page, _ in found))
        if len(names) > 1:
            page, line = found[0]
            check.note(
                material.at(page.doc_id, line), f"{text[:60]!r}… stands word for word in {_list(names[1:])} too."
            )
    check.checked = f"{len(places)} paragraphs"
    return check


def _near_duplicates(material: Material) -> CheckResult:
    if find_spec("datasketch") is None:
        return CheckResult(
            "near-duplicates", skipped='datasketch is not installed; pip install "rag-harness[validate]"'
        )
    check = CheckResult("near-duplicates", f"{len(material.pages)} pages")
    groups: dict[tuple[str, ...], list[str]] = {}
    for page in material.pages.values():
        groups.setdefault(tuple(_words(page)), []).append(page.doc_id)
    for names in groups.values():
        if len(names) > 1:
            check.note(material.at(names[0]), f"the same words as {_list(names[1:])}.")
    for first, second, share in _pairs({names[0]: words for words, names in groups.items()}):
        check.note(material.at(first), f"near {second}: about {share:.0%} of their three-word runs are the same.")
    return check


def _words(page: Page) -> list[str]:
    return [word for _, text in page.paragraphs for word in text.casefold().split()]


def _pairs(words: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, str, float]]:
    """Yield near pages. One that nearly equals an earlier page is not compared on, or copies would be quadratic."""
    from datasketch import MinHashLSH

    index = MinHashLSH(threshold=THRESHOLD, num_perm=_PERMUTATIONS)
    sketches: dict[str, MinHash] = {}
    for name, of_page in words.items():
        sketch = _sketch(_runs(of_page))
        shares = {near: float(sketch.jaccard(sketches[near])) for near in index.query(sketch)}
        yield from ((near, name, share) for near, share in sorted(shares.items()) if share >= THRESHOLD)
        if max(shares.values(), default=0.0) < _SAME:
            sketches[name] = sketch
            index.insert(name, sketch)


def _runs(words: tuple[str, ...]) -> set[str]:
    return {" ".join(words[start : start + _RUN]) for start in range(max(1, len(words) - _RUN + 1))}


def _sketch(runs: Iterable[str]) -> MinHash:
    from datasketch import MinHash

    sketch = MinHash(num_perm=_PERMUTATIONS)
    sketch.update_batch([run.encode("utf-8", "surrogatepass") for run in runs])
    return sketch


def _list(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
