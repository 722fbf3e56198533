"""The method behind the figures, and their provenance.

Statistics, models, data, missing values, limits, commands, glossary.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rag_harness.core.settings import options
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES, MOCK, SIMULATED
from rag_harness.core.types import GOLDEN
from rag_harness.diagnosis.failures import CAUSE_MEANINGS
from rag_harness.evaluation.judges import UNSEEN
from rag_harness.evaluation.measures import Measure
from rag_harness.evaluation.measures.judged import MEANINGS
from rag_harness.evaluation.measures.measure import formula_of
from rag_harness.page.content import (
    NONE,
    Block,
    Cell,
    Code,
    Facts,
    More,
    Prose,
    Section,
    Table,
    Terms,
    name_said,
    word_cells,
)
from rag_harness.page.listed_trials import sample_said
from rag_harness.page.run import Run
from rag_harness.page.sections.scorecard import measures_shown
from rag_harness.records.manifest import SuiteRecord
from rag_harness.runs.gates.verdict import bounds, value_said
from rag_harness.tables.answer_warnings import draft_lines, provenance_lines
from rag_harness.tables.pairwise import p_said
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import answers_by, judges_said, one_family
from rag_harness.tables.wording import better_of, counted

# Describes the intervals, tests and corrections that a report uses. Sources are in docs/how-to/gates.md and stats/.

_INTERVALS = (
    "Intervals are 95 % ones, by the method that decides gates. Where every case is 0 or 1: Clopper and Pearson's "
    "(1934).",
    "Of any other share: weights drawn over the cases and one unseen case, as bad or as good as can be (Gaffke 2005).",
    "Of what has no range, times and costs: Student's t with a term for skewness (Johnson 1978).",
    "Of a quantile: two of the ordered values, by the binomial distribution (David & Nagaraja 2003); … is an end that "
    "the cases are too few to bound.",
    "A trial that raised or was lost counts the worst value that a measure has, if it has one. What a measure does not "
    "apply to, or what could not be measured, is in no mean, and is counted.",
)
_TESTS = (
    "Experiments are compared case by case, over the cases that both have a value of: Student's paired t-test (1908) "
    "and Fisher's randomization test beside it, 10,000 sign flips, seed 0, exact for few cases; of 50,000 differences "
    "or more the normal distribution of their sum.",
    "The interval of a difference is Student's with a term for skewness, that of gates; where fewer than ten cases "
    "differ, or one makes up more than a fifth of the squares, it is the one of a share.",
    "The t-test and its interval assume that no large difference is rarer than 4 in n, for n cases, or clusters of "
    "them, could miss it. A gate with @95% robust assumes no such thing, and needs more cases.",
    "d_z is the mean difference in standard deviations of the differences (Lakens 2013).",
    "p-values, and the intervals beside them, are adjusted by Holm's step-down method (1979) over a family of tests: "
    "the study's (G_mean and risk), all other judged measures, and the pairs of each measure that no judge gives. At "
    "0.05 a family has a chance of 5 % at most of one false alarm. An interval has the confidence that Holm judges its "
    "test at: 1 - 0.05 / k, where k tests are left.",
    "A difference is called significant where both tests stay at or below 0.05 after that.",
)
_SLICES = (
    "On slices every pair of experiments on every slice is one family: the same cases say which is the best there, so "
    "that the pairs of the best alone are not a fair family. As many sign flips are drawn as the family needs."
)
_TAIL = "The tail of the risk has no test: its interval is a percentile bootstrap over cases, drawn with both values."
_RUNS = (
    "Runs are compared case by case too: the permutation test and the same intervals, adjusted by Holm over the "
    "measures of a suite."
)


def statistics(run: Run, runs: Sequence[Run]) -> list[str]:
    """Return the sentences about the statistics in this report."""
    is_tested = any(pair.found for pair in (*run.pairwise, *run.unjudged))
    has_tail = any(pair.quantile for pair in run.pairwise)
    sliced = [_SLICES] if run.standings.found else []
    several = [_RUNS] if len(runs) > 1 else []
    return [*_INTERVALS, *(_TESTS if is_tested else ()), *([_TAIL] if has_tail else []), *sliced, *several]


_MEASURES = {
    "evidence_recall": "The share of the quotes which the answer needs that are in the chunks of the prompt",
    "recall@5": "The share of the right documents that are among the first 5 found",
    "faithfulness": "The share of an answer's claims that the chunks of the prompt support, as the judge reads them",
    "answer_relevancy": "How closely an answer keeps to its question, at most 1, as the judge reads it",
    "expectations": "The share of what the questions demand of their answers that is kept, by weight",
    "token_f1": "How many words an answer shares with the ground truth, from 0 to 1",
}
_FEW_CAUSES = 3


def terms(runs: Sequence[Run]) -> Section | None:
    """Return the terms that the first run has a figure of; None where it has none."""
    pairs = list(_pairs(runs[0]))
    return Section("terms", "Terms", [Terms(pairs)]) if pairs else None


def _pairs(run: Run) -> Iterator[tuple[str, str]]:
    name = run.brief.subject
    if not name or not run.tables[name].totals.answered:
        return
    yield from _measures(run, name)
    table = run.tables[name]
    yield (
        "declined",
        f"The model said that it does not know: {name} did so for {table.totals.abstained:,} of its "
        f"{table.totals.answered:,} answers.",
    )
    yield from _causes(run, name)
    yield from _chances(run, name)


def _measures(run: Run, name: str) -> Iterator[tuple[str, str]]:
    table = run.tables[name]
    for measure, meaning in _MEASURES.items():
        if table.has(measure):
            mean = table.aggregate([measure])[measure] or 0.0
            yield measure, f"{meaning}: {value_said(mean)} on average in {name}."


def _causes(run: Run, name: str) -> Iterator[tuple[str, str]]:
    found = run.brief.shortfall
    if found is None:
        return
    name = found.experiment
    if not found.is_sample:
        yield (
            "wrong",
            "An answer is wrong by what is expected of it; without expectations by whether it declines, else by the "
            f"ground truth, or by a judge: {found.n:,} of {found.answers:,} in {name}.",
        )
    for cause, n in list(found.causes.items())[:_FEW_CAUSES]:
        meaning = CAUSE_MEANINGS.get(cause, "a cause that this version does not know")
        yield cause, f"A cause: {meaning}. {n:,} of the {found.n:,} answers of {name} that were looked into."


def _chances(run: Run, name: str) -> Iterator[tuple[str, str]]:
    table = run.tables[name]
    measure = next((each for each in _MEASURES if table.has(each) and table.interval(each)), "")
    if measure:
        between = table.interval(measure)
        assert between is not None
        yield (
            "95 % interval",
            "Where the value would lie in 19 of 20 runs with other questions of the same kind: "
            f"{bounds(*between, table.columns[measure].measure.unit)} for {measure} of {name}.",
        )
    leads = [lead for field in run.brief.fields for lead in field.leads]
    cell = next((lead.nearest for lead in leads if lead.nearest is not None and lead.nearest.p_t is not None), None)
    if cell is not None and cell.p_t is not None and cell.p_permutation is not None:
        yield (
            "p",
            "How often chance alone gives a difference as large as this, if both are equally good: "
            f"{p_said(max(cell.p_t, cell.p_permutation))} for {cell.first} - {cell.second} in {cell.measure}.",
        )


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


_STATES = (
    "experiment",
    "cases",
    "selected",
    "answered",
    "errors",
    "lost",
    "not run",
    "not needed",
    "resumed",
    "replayed",
)
_REASONS = 3
"""Most named reasons of one measure; the others are counted."""


def became_of(run: Run) -> Table | None:
    """Return the outcomes of each experiment's trials."""
    rows = [_states(name, table, run.suites[name], selected_of(run, name)) for name, table in run.selected.items()]
    notes = [
        "lost: selected, but no row came; it counts as the worst. not run: the budget was spent, or somebody stopped "
        "the run. not needed: not asked, for every gate of the experiment had its verdict before. resumed: answered in "
        "an earlier run.",
        *_played(run),
    ]
    return Table("trials", _STATES, rows, "Outcomes of the trials", notes) if rows else None


def _played(run: Run) -> Iterator[str]:
    """Yield how many turns simulated users never reached, and why."""
    over = [f"{name}: {counted(len(record.ended), 'turn')}" for name, record in run.suites.items() if record.ended]
    if over:
        yield f"Turns that simulated users never came to count nowhere: {', '.join(over)}."
    for name, record in run.suites.items():
        yield from (f"Taken out of {name}: {talk} {why}." for talk, why in record.taken_out.items())


def _states(name: str, table: SuiteTable, record: SuiteRecord, selected: int) -> list[Cell]:
    totals = table.totals
    bad = (totals.errors, table.lost_of({}))
    left = (len(record.not_run), len(record.settled))
    return [
        Cell(name),
        *word_cells(str(table.total_of({})), str(selected), str(totals.answered)),
        *(Cell(str(n), "bad" if n else "") for n in bad),
        *(Cell(str(n), "unsure" if n else "") for n in left),
        *word_cells(str(totals.resumed), str(totals.replayed)),
    ]


def unmeasured(run: Run) -> Block | None:
    """Return how often each measure has no value though it applies, and why."""
    if not run.selected:
        return None
    if not any(table.totals.rows for table in run.selected.values()):
        return Prose("Nothing was measured: no trial left a row. Lost trials count as the worst.", "bad")
    rows = [row for name, table in run.selected.items() for row in _gaps(name, table)]
    if not rows:
        return Prose("Whatever could be measured was: no case lacks a value of a measure that applies to it.", "good")
    head = ("experiment", "measure", "without a value", "of", "why")
    return Table("unmeasured", head, rows, "What could not be measured: it counts in no mean")


def _gaps(name: str, table: SuiteTable) -> Iterator[list[Cell]]:
    for measure in table.columns:
        failures = table.failures(measure, {})
        if not failures:
            continue
        whys = [f"{why} ({n})" for why, n in failures.most_common(_REASONS)]
        more = len(failures) - _REASONS
        said = "; ".join([*whys, *([f"and {more} more reasons"] if more > 0 else [])])
        count = Cell(str(failures.total()), "unsure")
        yield [Cell(name), Cell(name_said(measure)), count, *word_cells(str(table.selected_of({})), said)]


def errors(run: Run) -> Table | None:
    """Return the first trials without an answer, with their errors."""
    tables = run.selected.values()
    first = [(name, *error) for name, table in run.selected.items() for error in table.totals.first_errors]
    total = sum(table.totals.errors for table in tables)
    # The page lists only trials of experiments, so those of the golden suite have no link.
    rows = [
        [Cell(trial, "bad", trial=run.address(trial) if name != GOLDEN else ""), Cell(why)]
        for name, trial, why in first
    ]
    more = [f"and {total - len(first)} more: filter the trials by status"] if total > len(first) else []
    caption = f"{counted(total, 'trial')} without an answer"
    return Table("errors", ("trial", "error"), rows, caption, more) if rows else None


# What a run was: where its answers come from, models, judges and data, and what could not be measured.


def about_run(runs: Sequence[Run]) -> Section:
    """Return the facts about the first run, and the outcomes of its trials."""
    run = runs[0]
    said = provenance_lines(run.selected, run.manifest.date)
    blocks: list[Block] = [Prose(f"{line[0].upper()}{line[1:]}.") for line in said]
    blocks += run_facts(run)
    blocks += [block for block in (became_of(run), unmeasured(run), errors(run)) if block is not None]
    return Section("run", "The run", blocks)


_NOT_SAID = frozenset(
    [
        *("output", "logs", "cache_dir", "overwrite", "rerecord", "qdrant_url"),
        *("save", "compare", "misses", "export", "gate", "report"),
    ]
)
"""Options about locations of files and printed output. Gates are those of the ini file."""


def again(run: Run) -> Iterator[Block]:
    """Yield the commands, and the versions and digests that they need."""
    yield Code([*_commands(run)])
    if not run.manifest.commit:
        yield Prose("The commit that the run was at is not known: its folder was not a git repository.", "unsure")
    yield Facts([(name, said) for name, said in _met(run) if said])


def _commands(run: Run) -> Iterator[str]:
    if run.manifest.commit:
        yield f"git checkout {run.manifest.commit}"
    yield " ".join(["pytest", *_marked(list(run.experiments)), *_options(run)])
    yield "rag-harness report output -o report.html"


def _marked(experiments: Sequence[str]) -> list[str]:
    """Return the selection by markers, where all experiments have one."""
    if not experiments or not all(name.isidentifier() for name in experiments):
        return []
    return ["-m", shlex.quote(" or ".join(experiments))]


def _options(run: Run) -> Iterator[str]:
    """Yield the options whose values are neither defaults nor the profile's."""
    settings = run.manifest.settings
    profile = BUILT_IN_PROFILES.get(str(settings.get("profile", "")))
    for option in options():
        value = settings.get(option.name, option.default)
        is_list, flag = option.default == (), f"--rag-{option.name.replace('_', '-')}"
        default = [] if is_list else option.default
        given = getattr(profile, option.name, default)
        if option.name in _NOT_SAID or value in (default, given, None):
            continue
        if option.default is False:
            yield flag
        else:
            yield from (f"{flag}={shlex.quote(str(each))}" for each in (value if is_list else [value]))


def _met(run: Run) -> Iterator[tuple[str, str]]:
    """Yield versions and digests."""
    manifest = run.manifest
    yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(manifest.packages.items()))
    yield "data", ", ".join(f"{name} {digest}" for name, digest in sorted(manifest.digests.items()) if digest)
    for name in run.experiments:
        yield f"fingerprint of {name}", ", ".join(run.suites[name].fingerprints)
    authors = {author: None for name in run.experiments for author in run.suites[name].authors}
    yield "panel", ", ".join(dict.fromkeys(run.suites[name].panel for name in run.experiments))
    yield "judge", "; ".join(f"{judge}, {model}, revision {revision}" for judge, model, revision in authors)
    models = [manifest.settings.get(role) for role in ("chat_model", "embed_model", "rerank_model")]
    yield "models", ", ".join(str(model) for model in models if model)


# The limits of a run's figures. Only those that apply to this run are listed.

SYNTHETIC = frozenset({"89b23f79180a1ac0", "9cffe29979c52fe8"})
"""Digests of the questions that ship with the harness, ``data/kb``, about an invented shop. The second one is in runs
of before ``expect`` was left out of it."""
_WHAT = {
    "embedded/": "a baseline reader that copies from its sources",
    MOCK: "a stand-in for tests",
    SIMULATED: "a simulation that knows the gold answers, and plants faults in them",
}
_NO_LLM = tuple(_WHAT)


def limits(run: Run) -> list[str]:
    """Return the limits, one sentence each."""
    return [*_data(run), *_models(run), *_judging(run), *_running(run)]


def _data(run: Run) -> Iterator[str]:
    if SYNTHETIC & {run.manifest.digests.get(record.data) for record in run.suites.values()}:
        yield (
            "The documents and questions are synthetic: the help centre of a retailer that does not exist. Real "
            "documents are longer, older and less consistent, and real users ask otherwise."
        )
    yield "The intervals are for other questions of the same kind, and not for other documents or other topics."
    settings = run.manifest.settings
    if any(table.totals.retrieves for table in run.experiments.values()) and settings.get("chunk_size"):
        yield (
            f"Chunking was fixed: {settings.get('chunker', 'sections')}, at most {settings['chunk_size']} tokens, "
            f"{settings.get('chunk_overlap')} of them repeated. Other cuts were not tried."
        )


def _models(run: Run) -> Iterator[str]:
    models = {model for table in run.experiments.values() for model in table.totals.models if model}
    for model in sorted(model for model in models if model.startswith(_NO_LLM)):
        what = next(said for begin, said in _WHAT.items() if model.startswith(begin))
        yield (
            f"{model}, which answered, is not an LLM: it is {what}. What it answers says little of what an LLM would "
            "answer from the same context."
        )
    if any(table.totals.rows for table in run.experiments.values()) and not run.manifest.settings.get("repeats"):
        yield "Each query was answered once: how much an answer varies from one time to the next is not in the figures."


def _judging(run: Run) -> Iterator[str]:
    judges = sorted({model for _, model in authors(run)})
    embedded = [model for model in judges if model.startswith(_NO_LLM)]
    if embedded:
        yield (
            f"The judge {' and '.join(embedded)} is not an LLM: it compares words, figures and vectors, and does not "
            f"reason; {UNSEEN}"
        )
    if any(model not in embedded for model in judges):
        yield "Judged scores are a model's judgement: it has tastes, and style moves it more than it should."
    if judges and not any("~calibrated" in gate.get("gate", "") for gate in run.gates):
        yield (
            "No gate was corrected by people's labels: a judge's 0.83 is not 83 % of anything until people have looked."
        )


def _running(run: Run) -> Iterator[str]:
    partial = [name for name, table in run.experiments.items() if selected_of(run, name) < table.total_of({})]
    if partial:
        yield f"Only some of the cases were selected of {', '.join(partial)}: the figures are of these."
    if any(table.totals.replayed for table in run.experiments.values()):
        yield (
            "Answers were replayed: their times are those of the machine and the day on which they were recorded, and "
            "are drawn in no chart of latency."
        )


_MEASURE_COLUMNS = ("measure", "better", "unit", "version", "formula, of one case")


def method(runs: Sequence[Run]) -> Section:
    """Return the method of the first run's figures."""
    return Section("method", "Method", list(_blocks(runs[0], runs)))


def _blocks(run: Run, runs: Sequence[Run]) -> Iterator[Block]:
    shown = measures_shown(run)
    if shown:
        notes = [
            "R: the relevant documents of a case; k: the number behind the @. A version goes up when the same row "
            "gets another value."
        ]
        yield Table("measures", _MEASURE_COLUMNS, [_row(measure) for measure in shown], "Measures", notes)
    if any(table.shares() for table in run.experiments.values()):
        rows = [[Cell(kind, kind=kind), Cell(meaning)] for kind, meaning in MEANINGS.items()]
        yield Table("kinds", ("category", "where"), rows, "Categories of answers, the first that holds")
    if run.experiments:
        yield More("Statistics", [Prose(sentence) for sentence in statistics(run, runs)])
        yield More("Limits", [Prose(sentence) for sentence in [*limits(run), *_sampled(runs)]])
    yield More("How to repeat this run", list(again(run)))


def _sampled(runs: Sequence[Run]) -> list[str]:
    said = sample_said(runs)
    return [said] if said else []


def _row(measure: Measure) -> list[Cell]:
    formula = formula_of(measure)
    said = Cell(formula) if formula else Cell("not said: its class has no docstring", "mute")
    return [*word_cells(name_said(measure.name), better_of(measure) or NONE, measure.unit, str(measure.version)), said]
