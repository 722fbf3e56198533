"""What a run is made of: models, judges, dates, data."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.page.content import Block, Facts, Prose
from rag_harness.page.run import Run
from rag_harness.report.drafts import draft_lines
from rag_harness.report.scorecard import one_family
from rag_harness.report.summary import answers_by, judges_said
from rag_harness.types import GOLDEN


def run_facts(run: Run) -> Iterator[Block]:
    """Yield facts of a run, and a warning where judge and model are of one family."""
    yield Facts([(name, value) for name, value in _facts(run) if value])
    answering = {model for table in run.experiments.values() for model in table.totals.models}
    for model in dict.fromkeys(model for _, model in authors(run)):
        yield from (Prose(line, "unsure") for line in one_family(model, answering))


def authors(run: Run) -> list[tuple[str, str]]:
    """Return judge and model of the run's judgements."""
    found = [author[:2] for name in run.experiments for author in run.suites[name].authors]
    return list(dict.fromkeys(found))


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    manifest, settings = run.manifest, run.manifest.settings
    yield "run", "" if run.is_alone else run.name
    yield "answers", answers_by(run.experiments).removeprefix("answers ") if run.experiments else ""
    yield (
        "judged by",
        " and ".join(judges_said(run.suites[name] for name in run.experiments))
        or ("nobody" if run.experiments else ""),
    )
    users = {name: run.suites[name].user for name in run.experiments}
    yield "users", "; ".join(f"{name}: simulated by {user}" for name, user in users.items() if user)
    yield "retriever", _retriever(run)
    yield "profile", str(settings.get("profile", ""))
    yield "mode", str(settings.get("mode", ""))
    yield "times", _times(run)
    yield "date", manifest.date
    yield "commit", manifest.commit[:12]
    yield "data", "; ".join(data_said(run))
    yield "cases", "; ".join(_cases(run))
    yield "drafts", "; ".join(draft_lines(run.selected))


def _retriever(run: Run) -> str:
    """Name what the golden suite asked, with its cutoff; empty where the suite did not run."""
    settings = run.manifest.settings
    return f"{settings.get('retriever', 'not known')}, k = {settings.get('k', 10)}" if GOLDEN in run.selected else ""


def data_said(run: Run) -> Iterator[str]:
    """Yield each data set of the run with its digest."""
    for name in dict.fromkeys(record.data for record in run.suites.values()):
        digest = run.manifest.digests.get(name, "")
        place = str(run.manifest.settings.get("golden" if name == GOLDEN else "kb_dir") or "")
        where = f" of {place}" if place and name in (GOLDEN, "queries") else ""
        yield f"{name}{where}" + (f", digest {digest}" if digest else "")


def _cases(run: Run) -> Iterator[str]:
    """Yield how many cases were selected, in one sentence where the number is the same everywhere."""
    counts = {name: (selected_of(run, name), table.total_of({})) for name, table in run.selected.items()}
    if len(set(counts.values())) == 1:
        selected, total = next(iter(counts.values()))
        yield f"{selected} of {total} selected" + (", of each suite" if len(counts) > 1 else "")
        return
    yield from (f"{name}: {selected} of {total} selected" for name, (selected, total) in counts.items())


def selected_of(run: Run, experiment: str) -> int:
    """Count the selected cases, also those that were then not asked."""
    record = run.suites[experiment]
    return run.tables[experiment].selected_of({}) + len({*record.not_run, *record.settled})


def _times(run: Run) -> str:
    """Say how many answers have recorded times; empty where all times are of this run."""
    rows = sum(table.totals.rows for table in run.experiments.values())
    replayed = sum(table.totals.replayed for table in run.experiments.values())
    if not replayed:
        return ""
    which = "the answer" if rows == 1 else f"{'all' if replayed == rows else f'{replayed} of'} {rows} answers"
    return f"of {which} as they were recorded"
