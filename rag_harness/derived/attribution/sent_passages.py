"""Compares what was sent of a page with the page: another version of a passage, a part of it, another part. Pure.

Nothing of the index has to be known for that: a pipeline that returns an answer and contexts has sent enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from statistics import median_high

from rag_harness.derived.attribution.shelf import bare
from rag_harness.measures.ground_truth import plain_terms, share_within
from rag_harness.words.sentence_ends import sentence_texts
from rag_harness.words.terms import written_numbers

_LEAST_PIECE, _SAME_SHAPE = 2, 0.7
"""Least number of words of a piece, and least share of words, in their order, that two versions have in common."""
_ABOUT = 0.3
"""Least share of a quote's words in a piece about the same."""
_LONGEST = 80
"""Words of a piece that are compared."""
_LEAST_CUT, _LEAST_SHARE = 8, 0.15
"""Least number of characters, without blanks, of a part of a quote at the end of a chunk; and their share of it."""
_MOSTLY, _LAST_WORDS, _TITLE = 0.6, 6, 5
"""Share of chunks that is most of them; words of an end that are looked for in a page; most words of a mere title."""
_BORDER_SHOWN, _NEAR = 5, 0.1
"""Words shown on each side of a border; how far from their median lengths count as the same, as a share of it."""
_FIGURE = re.compile(r"\d+")
_ENDS = re.compile(r"[.!?:|。！？][\"'”’»)\]}*_`]*$")
_SHORTENED = re.compile(r"(?:…|\.\.\.)\s*$|^\s*(?:…|\.\.\.)")
_ITEM = re.compile(r"\s*(?:\||[-*+] |\d+[.)] )")
"""How a row of a table or an item of a list begins."""
_BEGINS_INSIDE = re.compile(r"^\s*[a-zà-ÿ,;.)%]")


def other_version(quote: str, chunks: Sequence[str], page: str, answer: str = "") -> str:
    """Return the piece of a chunk that stands in place of ``quote`` and that the page does not have; else empty.

    It has most of the words of the quote, in their order and but for figures; or some of them, and a figure that the
    page does not have and the answer says.

    Args:
        quote: a passage of the page.
        chunks: texts that were sent as of this page.
        page: bare words of the page as it is now; nothing is known without them.
        answer: what was answered.
    """
    if not page:
        return ""
    wanted = [shape for text in _pieces(quote) if len(shape := _shape(text)) >= _LEAST_PIECE]
    new = written_numbers(answer) - written_numbers(page)
    for piece in (piece for chunk in chunks for piece in _pieces(chunk)):
        shape = _shape(piece)
        if len(shape) < _LEAST_PIECE or bare(piece) in page:
            continue
        if any(_is_alike(shape, each) for each in wanted) or (new & written_numbers(piece) and _is_about(piece, quote)):
            return piece
    return ""


def _is_about(piece: str, quote: str) -> bool:
    return share_within(plain_terms(piece), plain_terms(quote)) >= _ABOUT


def _pieces(text: str) -> Iterator[str]:
    """Yield the sentences of each line; a row of a table is one."""
    for line in text.split("\n"):
        yield from (piece for piece in sentence_texts(line) if piece.strip())


def _shape(text: str) -> list[str]:
    """Return the bare words of a text with all figures alike: versions of a passage mostly differ in these."""
    return ["#" if _FIGURE.search(word) else word for word in bare(text).split()[:_LONGEST]]


def _is_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _SAME_SHAPE


def is_cut_between(quote: str, chunks: Sequence[str], shortened: bool) -> bool:
    """Return whether a chunk border divides ``quote``: a chunk ends with its beginning, or begins with its end.

    Args:
        quote: a passage that no chunk has whole.
        chunks: texts that were sent as of its page.
        shortened: whether chunks are shortened on their way. Then one that ends with a beginning shows no border.
    """
    wanted, texts = "".join(quote.split()), ["".join(chunk.split()) for chunk in chunks]
    least = max(_LEAST_CUT, int(_LEAST_SHARE * len(wanted)))
    first = max((_overlap(text, wanted) for text in texts), default=0)
    last = max((_overlap(wanted, text) for text in texts), default=0)
    if first and last and first + last >= len(wanted):
        return True
    return max(first, last) >= least and not shortened


def _overlap(first: str, second: str) -> int:
    """Return how many characters the end of ``first`` shares with the beginning of ``second``."""
    return next((n for n in range(min(len(first), len(second)), 0, -1) if first.endswith(second[:n])), 0)


def are_shortened(chunks: Sequence[tuple[str, str]]) -> bool:
    """Return whether chunks were shortened on their way: most stop inside a line of their page, and begin with one.

    Or most are no more than a title.
    A chunker that counts characters stops there too, but its chunks also begin there.

    Args:
        chunks: texts that were sent, each with the text of its page; empty where this is not known.
    """
    if any(_SHORTENED.search(text) for text, _ in chunks):
        return True
    titles = sum(_is_title(text) for text, _ in chunks)
    stopped = sum(stops_inside(text, page) for text, page in chunks)
    begun = sum(not _BEGINS_INSIDE.match(text) for text, _ in chunks)
    return bool(chunks) and max(titles, min(stopped, begun)) >= _MOSTLY * len(chunks)


def _is_title(text: str) -> bool:
    return len(text.split()) <= _TITLE and not _ENDS.search(text.rstrip()) and not _BEGINS_INSIDE.match(text)


def border_beside(quote: str, chunk: str, page: str) -> str:
    """Say that a chunk ends inside a sentence, list or table right before a passage, or begins so after it; else empty.

    Right before means in the same block, or inside the passage. A chunk that ends with a whole sentence has no such
    border.

    Args:
        quote: a passage of the page that the chunk does not have whole.
        chunk: a text that was sent as of the page.
        page: the text of the page.
    """
    passage, sent = _span(quote, page), _span(chunk, page)
    if passage is None or sent is None:
        return ""
    text = page[sent[0] : sent[1]]
    rest = page[sent[1] :]
    if sent[0] <= passage[0] and sent[1] < passage[1] and _is_border(text, rest, page[sent[1] : passage[0]]):
        ends, goes_on = text.split()[-_BORDER_SHOWN:], rest.split()[:_BORDER_SHOWN]
        return f"a chunk ends “…{' '.join(ends)}”, and the page goes on “{' '.join(goes_on)}…”"
    before = page[: sent[0]]
    if passage[0] < sent[0] and passage[1] <= sent[1] and _is_border(before, text, page[passage[1] : sent[0]]):
        return f"a chunk begins “{' '.join(text.split()[:_BORDER_SHOWN])}…”, after it in the page"
    return ""


def _span(text: str, page: str) -> tuple[int, int] | None:
    """Return where a text stands in a page, white space aside."""
    found = re.search(r"\s+".join(map(re.escape, text.split())), page) if text.strip() else None
    return found.span() if found else None


def _is_border(before: str, after: str, between: str) -> bool:
    """Return whether a sentence, list or table goes on from one text to the next, and no block ends between them."""
    if re.search(r"\n\s*\n", between) or re.match(r"[ \t]*\n\s*\n", after) or before.endswith("\n\n"):
        return False
    last_line = before.rstrip().rpartition("\n")[2]
    is_inside = not _ENDS.search(before.rstrip())
    return is_inside or bool(_ITEM.match(last_line) and _ITEM.match(after.lstrip()))


def are_of_one_length(texts: Sequence[str]) -> bool:
    """Return whether most texts have about the same number of characters, or of words, as shortened ones do."""
    for lengths in ([len(text) for text in texts], [len(text.split()) for text in texts]):
        middle = median_high(lengths) if lengths else 0
        if sum(abs(each - middle) <= _NEAR * middle for each in lengths) > len(lengths) / 2:
            return True
    return False


def stops_inside(chunk: str, page: str) -> bool:
    """Return whether a chunk stops inside a line of its page."""
    if _ENDS.search(chunk.rstrip()):
        return False
    words = [re.escape(word) for word in chunk.split()[-_LAST_WORDS:]]
    found = re.search(r"\s+".join(words) + r"[*_`]{0,3}[ \t]*(\n|$)", page) if words else None
    return found is None
