"""Packs the recordings of a folder into one file of vcrpy's format: ``pack_cassettes.py FOLDER FILE [--always]``.

A file with the same questions, of the reader as it is, is left as it was: other dates alone are no reason to write it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from rag_harness.core.errors import DataError
from rag_harness.core.registry import REVISIONS
from rag_harness.models.recording.cassette_file import ExperimentCassette, cassette_of, read_own_shape


def packed(folder: str, target: str, *options: str) -> str:
    """Write ``target``, unless it has these answers already. Return what was done."""
    recorded = {}
    for file in Path(folder).glob("*.yaml"):
        found = read_own_shape(file.read_text(encoding="utf-8"))
        if found is None:
            sys.exit(f"{file} is in a form that cannot be packed")
        # The reader over HTTP does not say its version.
        recorded[file.stem] = replace(found, version=REVISIONS["reader"])
    there = Path(target)
    if not options and _answers(there) == {digest: (each.version, each.body) for digest, each in recorded.items()}:
        return f"{target} stays as it is"
    in_time = sorted(recorded.items(), key=lambda entry: (entry[1].recorded_at, entry[0]))
    there.write_text(cassette_of({digest: str(each.written()) for digest, each in in_time}), encoding="utf-8")
    return f"{target}: {len(recorded)} recordings"


def _answers(file: Path) -> dict[str, tuple[str, str]]:
    try:
        cassette = ExperimentCassette(file)
        found = {digest: cassette.read(digest) for digest in cassette.digests}
    except DataError:
        return {}
    return {digest: (each.version, each.body.decode()) for digest, each in found.items()}


if __name__ == "__main__":
    print(packed(*sys.argv[1:]))  # noqa: T201
