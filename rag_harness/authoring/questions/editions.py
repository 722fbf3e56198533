"""Finds superseded pages: by metadata if there are any, else by what pages and their names say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rag_harness.models.reader.current_source import Version, versions
from rag_harness.models.reader.prompt import PromptSource
from rag_harness.types import Document


def superseded_pages(documents: Sequence[Document]) -> dict[str, str]:
    """Return the id of each superseded page with that of its replacement; "" if the replacement is not named."""
    told = _told(documents)
    return told if told or any("status" in each.metadata for each in documents) else _read(documents)


def _told(documents: Sequence[Document]) -> dict[str, str]:
    named = {str(each.metadata.get("id", each.doc_id)): each.doc_id for each in documents}
    found = {each.doc_id: "" for each in documents if each.metadata.get("status") == "outdated"}
    for document in documents:
        old = str(document.metadata.get("supersedes") or "")
        if named.get(old, old) in {each.doc_id for each in documents} if old else False:
            found[named.get(old, old)] = document.doc_id
    return found


def _read(documents: Sequence[Document]) -> dict[str, str]:
    # A source's filename ends at the first blank.
    known = versions(PromptSource(n, each.doc_id.replace(" ", "-"), each.text) for n, each in enumerate(documents))
    families: dict[str, list[int]] = defaultdict(list)
    for number, version in known.items():
        families[version.family].append(number)
    found = {documents[number].doc_id: "" for number, version in known.items() if version.superseded}
    for members in families.values():
        current = _current(members, known)
        for number in members:
            if current is not None and number != current:
                found[documents[number].doc_id] = documents[current].doc_id
    return found


def _current(members: Sequence[int], known: Mapping[int, Version]) -> int | None:
    for one in members if len(members) > 1 else ():
        if all(known[one].supersedes(known[other]) for other in members if other != one):
            return one
    return None
