"""Public collections by the name that ``--rag-dataset`` gives them: a kind, a colon and a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rag_harness.dataset.beir import BeirDataset, read_beir
from rag_harness.dataset.mtrag import read_mtrag
from rag_harness.dataset.mtrag_files import MTRAG, MTRAG_UN
from rag_harness.errors import SettingsError

_SHAPES = "beir:DIR or beir:FILE.zip; mtrag:CLONE/DOMAIN, mtragun:CLONE/DOMAIN or mtragun:reference.jsonl"


def read_collection(named: str, path_of: Callable[[str], Path]) -> BeirDataset:
    """Read a collection; ``path_of`` makes a path of the settings absolute.

    Raises:
        SettingsError: it is of no kind that can be read.
        DataError: its files are missing or malformed; lists the first 20 problems.
    """
    kind, _, path = named.partition(":")
    if kind not in ("beir", MTRAG, MTRAG_UN) or not path:
        raise SettingsError(f"rag_dataset is {named!r}. Name a collection: {_SHAPES}.")
    return read_beir(path_of(path)) if kind == "beir" else read_mtrag(kind, path_of(path))
