"""Shared by commands that read a run's settings: options, values from the command line, closing of models."""

from __future__ import annotations

import argparse
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.settings.removed import REMOVED

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.settings import Settings

_T = TypeVar("_T")


def add_settings(parser: argparse.ArgumentParser, helped: Mapping[str, str], prefixes: Iterable[str] = ("",)) -> None:
    """Declare an option for each setting of ``helped``, once for each prefix: ``rag-`` is that of pytest's options."""
    for name, help_ in helped.items():
        flag, spelt = name.replace("_", "-"), [each for each in prefixes if not (each and name in REMOVED)]
        parser.add_argument(*(f"--{prefix}{flag}" for prefix in spelt), dest=name, help=help_)


def add_query_types(parser: argparse.ArgumentParser) -> None:
    """Declare the option for types of questions, for commands that check questions."""
    help_ = "types of questions of your own, with commas between; default: rag_query_types of the ini file"
    add_settings(parser, {"query_types": help_}, ("", "rag-"))


def add_documents(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the folder of documents, for commands that take the suite's where none is named."""
    help_ = f"{what}; default: rag_kb_dir of the ini file, KB_DIR or data/kb"
    parser.add_argument("folder", type=Path, nargs="?", metavar="DIR", help=help_)


def query_types(chosen: argparse.Namespace) -> tuple[str, ...]:
    """Return the types of questions beside the known ones: of the command line, else of the suite in this folder."""
    from rag_harness.dataset.query_types import types_named

    names = ("query_types",)
    return types_named(settings_of_suite(names, settings_said(chosen, names)).query_types)


def settings_of_suite(names: Iterable[str], given: Mapping[str, Any] = MappingProxyType({})) -> Settings:
    """Return settings of which ``names`` are as a run of pytest in this folder has them, but for what is ``given``."""
    from rag_harness.settings.ini_file import ini_values
    from rag_harness.settings.loading import load_settings

    found = ini_values(Path.cwd())
    return load_settings(given, {name: found[name] for name in names if name in found})


def documents_of_suite() -> Path:
    """Return the folder of documents of the suite in this folder: rag_kb_dir of its ini file, KB_DIR or the default."""
    settings = settings_of_suite(("kb_dir",))
    return settings.path(settings.kb_dir)


def questions_of_suite() -> Path:
    """Return the file of questions of the suite in this folder: rag_queries, else that in the folder of documents."""
    return settings_of_suite(("kb_dir", "queries")).queries_path


def documents_of(queries: Path, pages: Iterable[str]) -> Path:
    """Return the folder of the documents that a file of questions is about.

    It is that of the suite's documents, if these are the suite's questions or one of the ``pages`` that they name is
    there; else the file's own, if it has documents.
    """
    from rag_harness.dataset.ingest import page_files

    suite, own = documents_of_suite(), queries.absolute().parent
    is_of_suite = queries.absolute() == questions_of_suite().absolute()
    if is_of_suite or any((suite / page.partition("#")[0]).is_file() for page in pages):
        return suite
    return suite if next(page_files(own), None) is None else own


def settings_said(chosen: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the settings that the command line gives."""
    given = {name: getattr(chosen, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def run_closing(work: Coroutine[Any, Any, _T], parts: RunParts) -> _T:
    """Return what ``work`` returns. Afterwards connections are closed on its loop, and waiting data are written."""
    import asyncio

    async def closed() -> _T:
        try:
            return await work
        finally:
            await parts.endpoints.aclose()

    try:
        return asyncio.run(closed())
    finally:
        parts.flush()
