"""Where the files of MTRAG and MTRAG-UN lie in a clone of IBM/mt-rag-benchmark; corpora are read out of their zips."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rag_harness.dataset.beir_files import UNREADABLE, Folder
from rag_harness.errors import DataError

MTRAG, MTRAG_UN = "mtrag", "mtragun"
LAST_TURN, REWRITE, QUESTIONS = VARIANTS = ("lastturn", "rewrite", "questions")
"""Texts of a query: the user's last turn, a person's rewrite of it that stands alone, all turns of the user."""
_CLONE = "git clone https://github.com/IBM/mt-rag-benchmark"
_POINTER = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class MtragPlace:
    """One domain of one of the two benchmarks, in a clone.

    Attributes:
        benchmark: MTRAG or MTRAG_UN.
        clone: the folder of the clone.
        domain: clapnq, cloud, fiqa or govt.
        variant: one of VARIANTS.
    """

    benchmark: str
    clone: Path
    domain: str
    variant: str = LAST_TURN

    @property
    def top(self) -> Path:
        """The folder of the benchmark's own files."""
        return self.clone / f"{self.benchmark}-human"

    @property
    def qrels(self) -> Path:
        """The judgements."""
        tasks = self.top / "retrieval_tasks"
        return tasks / self.domain / "qrels/dev.tsv" if self.benchmark == MTRAG else tasks / f"qrels/{self.domain}.tsv"

    @property
    def tasks(self) -> Path:
        """The generation tasks with their reference passages, of all domains."""
        return self.top / "generation_tasks/reference.jsonl"

    def queries(self, variant: str) -> Path:
        """Return the file of a variant's queries; only MTRAG has them."""
        return self.top / "retrieval_tasks" / self.domain / f"{self.domain}_{variant}.jsonl"

    @property
    def domains(self) -> list[str]:
        """The domains that the clone has judgements for."""
        pattern = "*/qrels/dev.tsv" if self.benchmark == MTRAG else "qrels/*.tsv"
        found = (self.top / "retrieval_tasks").glob(pattern)
        return sorted(file.parent.parent.name if self.benchmark == MTRAG else file.stem for file in found)


def place_of(benchmark: str, path: Path) -> MtragPlace:
    """Return the place that ``CLONE/DOMAIN`` or ``CLONE/DOMAIN/VARIANT`` names.

    Raises:
        DataError: there is no such clone, domain or variant; says what is there.
    """
    variant = path.name if path.name in VARIANTS else LAST_TURN
    named = path.parent if path.name in VARIANTS else path
    place = MtragPlace(benchmark, named.parent, named.name, variant)
    if not place.domains:
        above = MtragPlace(benchmark, named, "").domains
        hint = f" Name one of its domains, too: {benchmark}:{named}/{above[0]}" if above else f" To get one: {_CLONE}"
        raise DataError(
            f"No {place.top}/retrieval_tasks with judgements: {place.clone} is no clone of IBM/mt-rag-benchmark.{hint}"
        )
    if place.domain not in place.domains:
        shape = f"{benchmark}:CLONE/DOMAIN, and behind it /{', /'.join(VARIANTS)} if not the last turn is the query"
        raise DataError(f"No {place.qrels}. Domains there: {', '.join(place.domains)}. Name {shape}.")
    if variant == REWRITE and benchmark == MTRAG_UN:
        raise DataError("MTRAG-UN has no rewrites of its questions. Name lastturn or questions.")
    return place


@contextmanager
def corpus_of(place: MtragPlace) -> Iterator[Folder]:
    """Yield the file of a domain's passages, unpacked or inside its zip.

    The qrels name passages, so the corpus at the level of documents is not looked at.

    Raises:
        DataError: there is none, it is a pointer of Git LFS, or it cannot be read.
    """
    folder = place.clone / "corpora/passage_level"
    plain, packed = folder / f"{place.domain}.jsonl", folder / f"{place.domain}.jsonl.zip"
    file = plain if plain.is_file() else packed
    if not file.is_file():
        raise DataError(
            f"No {plain} and no {packed.name}: without its passages nothing can be retrieved. They are in "
            f"the repository as zips: {_CLONE}. The passages of the tasks alone are a collection, too, though not "
            f"one to compare with published figures: {place.benchmark}:{place.tasks}"
        )
    try:
        with file.open("rb") as stream:
            if stream.read(len(_POINTER)) == _POINTER:
                raise DataError(f"{file} is a pointer of Git LFS. Get the file itself: git lfs pull")
        if file == plain:
            yield plain
            return
        with zipfile.ZipFile(packed) as archive:
            yield _member(archive, packed, plain.name)
    except UNREADABLE as error:
        raise DataError(f"{file} cannot be read: {error}. Get it again: {_CLONE}") from error


def _member(archive: zipfile.ZipFile, packed: Path, name: str) -> Folder:
    top = zipfile.Path(archive)
    # A Mac adds such a folder to zips.
    inner = [each for each in top.iterdir() if each.name != "__MACOSX" and each.is_dir()]
    file = next((each / name for each in (top, *inner) if (each / name).is_file()), None)
    if file is None:
        raise DataError(f"{packed} holds no {name}. Get it again: {_CLONE}")
    return file


def there(file: Path) -> Path:
    """Return the file.

    Raises:
        DataError: there is none.
    """
    if not file.is_file():
        raise DataError(f"No {file}. It is in the repository: {_CLONE}")
    return file
