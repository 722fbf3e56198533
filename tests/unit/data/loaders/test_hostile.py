"""Files made to harm: each is read or named, soon, and no file outside the folder is opened."""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic

import pytest

from rag_harness.data import documents
from rag_harness.data.documents import ParsedKeeping, read_library, sources_in
from rag_harness.data.loaders.child_process import WALL_SECONDS
from tests.unit.data.loaders.hostile import SECRET, corpus

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and limits of other systems")

_NAMES = (
    "nested.html nested_closed.html attributes.html open_title.html open_nav.html hidden.html closes_hidden.html "
    "nul.html utf16.html lying_charset.html colspan.html bomb.pdf bomb_once.pdf kids_circle.pdf kids_two.pdf chain.pdf "
    "itself.pdf form_circle.pdf arrays.pdf encrypted.pdf no_table.pdf cut_5.pdf text.pdf binary.txt nul.txt "
    "mojibake.txt same_lines.txt shift_jis.txt bytes.md nul.md sparse.md sparse.txt sparse.pdf fifo.txt fifo.pdf "
    "leads_out.md leads_out.txt leads_out.pdf leads_up.html leads_to_device.txt leads_nowhere.pdf leads_to_itself.txt"
)
QUICK = frozenset(_NAMES.split()) | {"line\nbreak.txt", "tab\there.html"}
"""Files of every sort that are read or refused in no time."""


def written(folder: Path, depth: int) -> Path:
    made = folder / "kb"
    made.mkdir()
    corpus(made, folder / "outside.md", depth)
    return made


def check(folder: Path, names: frozenset[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sources, refused = sources_in(folder, {})
    sources = [source for source in sources if source.doc_id in names]
    refused = [each for each in refused if each.file.name in names]
    took: dict[str, float] = {}
    read = documents._read

    def timed(source: documents.SourceFile) -> object:
        began = monotonic()
        try:
            return read(source)
        finally:
            took[source.doc_id] = monotonic() - began

    monkeypatch.setattr(documents, "_read", timed)
    found = read_library(sources, refused, ParsedKeeping())
    came = [*(each.doc_id for each in found.documents), *(each.file.name for each in found.unread)]
    assert sorted(came) == sorted(names)
    assert max(took.values()) < WALL_SECONDS + 2
    assert all(each.why and each.line.isprintable() for each in found.unread)
    assert not [each.doc_id for each in found.documents if SECRET in each.text]
    named = {each.file.name for each in found.unread}
    lie = {
        "binary.txt",
        "nul.txt",
        "nul.md",
        "sparse.md",
        "sparse.txt",
        "leads_out.md",
        "leads_out.pdf",
        "leads_up.html",
        "leads_to_device.txt",
    }
    assert (
        lie | {"bomb.pdf", "bomb_once.pdf", "kids_circle.pdf", "fifo.txt", "mojibake.txt", "line\nbreak.txt"} <= named
    )
    texts = {each.doc_id: each.text.strip() for each in found.documents}
    assert texts["nested.html"] == texts["nested_closed.html"] == "deep text"
    assert texts["attributes.html"] == "text"


def test_a_part_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A parser that is worse than linear takes minutes at this depth, too.
    check(written(tmp_path, depth=70_000), QUICK, monkeypatch)


@pytest.mark.long
def test_all_two_hundred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, depth=100_000)
    names = frozenset(file.name for file in folder.iterdir())
    assert len(names) >= 200
    check(folder, names, monkeypatch)
