"""Judged scores from one replay to the next, in the cache: a judge that computes its scores says the same again.

A score is found by the content of all that decides it: the judge and its options, the measure, the digest of this
package, the versions of Python and of libraries, and every text that was judged. Kept are scores of the measures of
this package alone: of others it is not known what else they read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.errors import RagHarnessError
from rag_harness.files.cache_folder import note_use
from rag_harness.files.kept_content import SUFFIX, read_kept, write_kept
from rag_harness.files.sources import json_digest
from rag_harness.judges.traits import says_the_same
from rag_harness.measures import Score
from rag_harness.measures.judged import JudgedMeasure, Material
from rag_harness.models.model_names import judge_name
from rag_harness.registry import module_of
from rag_harness.registry.package_digest import library_versions, package_digest
from rag_harness.results.score import Author, text_digest
from rag_harness.settings import Settings, access_of
from rag_harness.settings.table import affecting

KEPT_SCORES = "scores"
"""The folder in the cache."""
MOST_SCORES = 20_000
"""Scores in one folder. Larger runs judge anew what is beyond: their scores would fill the memory."""
_FILES = 8
"""Files in one folder. A run that finds so many makes one of them, of the scores that it has used."""
_PACKAGE = "rag_harness."


class KeptScores:
    """Scores of one judge by the content that they depend on.

    Args:
        folder: belongs to one judge, its options and one state of the package.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[Path] = []
        self._known: dict[str, Any] | None = None
        self._used: dict[str, Any] = {}
        self._new: dict[str, Any] = {}

    def of(self, author: Author, material: Material, measures: Sequence[JudgedMeasure]) -> dict[str, Score]:
        """Return the known scores by the measure's name."""
        found: dict[str, Score] = {}
        for measure, key in _keys(author, material, measures).items():
            kept = self._all.get(key)
            score = _score(kept)
            if score is not None:
                self._used[key], found[measure.name] = kept, score
        return found

    def keep(
        self, author: Author, material: Material, measures: Sequence[JudgedMeasure], said: Mapping[str, Score]
    ) -> None:
        """Keep new scores. What a judge could not say is not kept, nor what JSON would change."""
        for measure, key in _keys(author, material, measures).items():
            score = said[measure.name]
            content = [score.value, score.reason, dict(score.detail), score.undefined]
            if (score.value is not None or score.undefined) and self._has_room and _is_plain(content):
                self._new[key] = content

    @property
    def _has_room(self) -> bool:
        return len(self._used) + len(self._new) < MOST_SCORES

    def flush(self) -> None:
        """Write the new scores, as a file of their own, so that several processes lose nothing."""
        if not self._new:
            return
        crowded = len(self._files) >= _FILES or len(self._all) + len(self._new) > MOST_SCORES
        content = {**self._used, **self._new} if crowded else self._new
        file = self._folder / f"{json_digest(sorted(content))}{SUFFIX}"
        write_kept(file, content)
        for old in self._files if crowded and file.is_file() else ():
            if old != file:
                old.unlink(missing_ok=True)
        self._new = {}

    @property
    def _all(self) -> dict[str, Any]:
        """All scores of the folder. They are read once, so that it does not matter when the folder goes."""
        if self._known is None:
            note_use(self._folder)
            self._known, self._files = {}, sorted(self._folder.glob(f"*{SUFFIX}"))
            for file in self._files:
                found = read_kept(file)
                self._known.update(found if isinstance(found, dict) else {})
        return self._known


def kept_scores(settings: Settings) -> KeptScores | None:
    """Return the kept scores of a run's judge; None where it judges each time.

    It does in every mode but replay, where its judgements are recorded or asked for; and so do a model, a panel, a
    judge of another package, and the nodes of a cluster.
    """
    if not access_of(settings).calls_nobody or settings.panel or settings.engine != "local":
        return None
    try:
        module = module_of("judges", judge_name(settings))
    except RagHarnessError:
        return None
    if not says_the_same(settings) or not module.startswith(_PACKAGE):
        return None
    decides = [package_digest(), sys.version, library_versions(), affecting(settings, "judging", "retrieval")]
    return KeptScores(settings.path(settings.cache_dir) / KEPT_SCORES / json_digest(decides))


def _keys(author: Author, material: Material, measures: Sequence[JudgedMeasure]) -> dict[JudgedMeasure, str]:
    """Return the key of each measure whose score may be kept.

    Material of a case with expectations, or of a turn, holds objects whose text does not tell all that they are.
    """
    if type(material) is not Material:
        return {}
    own = [measure for measure in measures if type(measure).__module__.startswith(_PACKAGE)]
    who = [author.judge, author.model, author.revision, repr(material)]
    return {each: text_digest([*who, each.name, str(each.version), type(each).__qualname__]) for each in own}


def _is_plain(content: Sequence[Any]) -> bool:
    try:
        return bool(json.loads(json.dumps(content, allow_nan=False)) == content)
    except (TypeError, ValueError):
        return False


def _score(kept: Any) -> Score | None:
    try:
        value, reason, detail, undefined = kept
        return Score(None if value is None else float(value), str(reason), dict(detail), bool(undefined))
    except (TypeError, ValueError, OverflowError):
        return None
