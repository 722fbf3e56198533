"""Options that commands share: settings of a suite, the writer model, and judging."""

from __future__ import annotations

import argparse
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.escaping import say
from rag_harness.core.settings.removed import REMOVED

if TYPE_CHECKING:
    from rag_harness.core.settings import Settings
    from rag_harness.pipelines.parts import RunParts


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
    from rag_harness.data.queries import types_named

    names = ("query_types",)
    return types_named(settings_of_suite(names, settings_said(chosen, names)).query_types)


def settings_of_suite(names: Iterable[str], given: Mapping[str, Any] = MappingProxyType({})) -> Settings:
    """Return settings of which ``names`` are as a run of pytest in this folder has them, but for what is ``given``."""
    from rag_harness.core.settings.loading import ini_values, load_settings

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

    This is the folder of the suite's documents, if these are the suite's questions or one of the ``pages`` that they
    name is in it; else the file's own folder, if it has documents.
    """
    from rag_harness.data.documents import page_files

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


WRITER_SETTINGS = {
    "writer_model": "chat model that writes, for --writer llm; default: from the profile's role writer",
    "writer_base_url": "its OpenAI-compatible endpoint; default: from the profile's role writer",
    **{
        name: f"as --rag-{name} of a test run, for --writer llm"
        for name in ("profile", "mode", "budget", "prices", "concurrency")
    },
}


def writer_parts(chosen: argparse.Namespace, longest: int = 0) -> RunParts:
    """Return the parts with the writer; ``longest`` is how many tokens a reply may need.

    Raises:
        SettingsError: no writer is named, or it has no key.
    """
    from dataclasses import replace

    from rag_harness.core.settings.loading import load_settings
    from rag_harness.core.settings.profiles import EMBEDDED_URL
    from rag_harness.models.endpoints import check_api_keys, endpoint_of
    from rag_harness.pipelines.parts import RunParts

    settings = load_settings(settings_said(chosen, WRITER_SETTINGS))
    settings = replace(settings, max_output_tokens=max(settings.max_output_tokens, longest))
    asked = endpoint_of(settings, "writer")
    if asked.base_url in ("", EMBEDDED_URL):
        raise SettingsError(
            f"--writer llm asks a chat model, but {asked.model!r} is the reader in this process, which writes nothing. "
            "Name one with --writer-model and --writer-base-url, or leave --writer out."
        )
    check_api_keys(settings)
    return RunParts(settings)


@contextmanager
def told_where_written(place: Path) -> Iterator[None]:
    """Raise a message that names the file that could not be written, the system's reason, and what to do.

    Raises:
        DataError: raised instead of an ``OSError``.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise DataError(f"{place} cannot be written: {why}. Make room there, or name another place with -o.") from error


_SETTINGS = ("judge", "judge_model", "judge_base_url", "profile", "mode", "project")
_OWN = {"judge_base_url": "OpenAI-compatible endpoint of the judge; default: from the profile's role judge"}
_USUAL = "faithfulness,answer_relevancy"


def add_scoring(parser: argparse.ArgumentParser, settings: Iterable[str] = ()) -> None:
    """Declare the file of scores, the measures, and the settings of judging with those of ``settings`` before them."""
    parser.add_argument(
        "-o", dest="scores", type=Path, required=True, metavar="SCORES.jsonl", help="file to write, a line an answer"
    )
    parser.add_argument(
        "--measures",
        default=_USUAL,
        metavar="NAMES",
        help=f"measures that are judged, with commas between; default: {_USUAL}",
    )
    names = (*settings, *_SETTINGS)
    add_settings(parser, {name: f"as --rag-{name.replace('_', '-')} of a test run" for name in names} | _OWN)


class Scoring:
    """What judges answers as the command line says.

    Args:
        chosen: the options of ``add_scoring``.
        command: its name, for messages.
        settings: the settings beside those of judging.

    Raises:
        SettingsError: a setting, a measure or the judge cannot be used.
    """

    def __init__(self, chosen: argparse.Namespace, command: str, settings: Iterable[str] = ()) -> None:
        from rag_harness.evaluation.judges.answers import AskedMeasures
        from rag_harness.evaluation.judges.traits import check_one_judge
        from rag_harness.pipelines.parts import RunParts

        self._settings = settings_of_suite(settings, settings_said(chosen, (*settings, *_SETTINGS)))
        self._scores = chosen.scores
        named = chosen.measures.replace(",", " ").split()
        self._asked = AskedMeasures(named, self._settings.folder("rubrics"))
        check_one_judge(self._settings, command)
        self.parts: RunParts = RunParts(self._settings)

    def judged(self, answers: Path) -> bool:
        """Judge a file of answers, print the result, and return whether anything was measured."""
        from rag_harness.core.text.refusals import declines
        from rag_harness.evaluation.judges.answers import score_file
        from rag_harness.evaluation.judges.factory import create_judge as judge_of
        from rag_harness.evaluation.judges.traits import traits_of
        from rag_harness.tables.summary import judge_said

        judge = judge_of(self.parts)
        own = self._settings.refusals
        work = score_file(
            answers, self._scores, self._asked, judge, self._settings, lambda answer: declines(answer, own)
        )
        tally = run_closing(work, self.parts)
        say(
            *tally.lines(),
            f"judged by {judge_said(judge.name, judge.model, traits_of(self._settings).asks_model)}",
            f"scores: {self._scores}",
        )
        return bool(tally.measured)
