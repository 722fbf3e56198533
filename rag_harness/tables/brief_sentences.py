"""The four sentences about a run: the best experiment, its certainty, causes of wrong answers, and the next step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rag_harness.runs.gates.verdict import bounds, value_said
from rag_harness.stats.inputs import in_both
from rag_harness.tables.answer_warnings import WRONG, count_wrong, describe_wrong
from rag_harness.tables.brief import Brief, Shortfall, wrong_answers
from rag_harness.tables.golden_suite import LookedUp
from rag_harness.tables.pairwise import p_said
from rag_harness.tables.standings import ANSWERS, JUDGED_FIRST, RETRIEVAL, Field, Lead, is_retrieval
from rag_harness.tables.summary import is_no_llm
from rag_harness.tables.wording import joined_names, listed, short

# Of a run of the golden suite alone there are three: what was found, how sure that is, what to do next.

SentenceTopic = Literal["found", "wrong", "best", "sure", "why", "next"]
_NOT_LOOKED = (
    "Why answers are wrong was not looked into: rag-harness explain does, and --rag-attribute asks these again."
)
_PAGES_ALONE = (
    "It is known what should be found, and nothing tells right answers from wrong ones: the questions have no "
    "ground_truth, evidence or expectation, and no judge was asked."
)
_NOT_MEASURED = (
    "Nothing tells right answers from wrong ones: the questions have no gold, and no judge was asked. Name relevant "
    "documents and a ground_truth, or judge: --rag-measures=faithfulness."
)
EACH_IS_BEST = "Each is best at something else."
NONE_IS_BEST = "No experiment is shown to be best."
_TIE = 5
"""A difference that so many times the questions of a run would be needed for is as good as none."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """The sentences on one topic. ``tone`` is the tone of a page's cell: good, bad, unsure, or empty."""

    topic: SentenceTopic
    text: str
    tone: Literal["", "good", "bad", "unsure"] = ""


_MOST_LEADS = 2
"""Most measures that are spoken of first, because a phone shows no more. Terminal and sections have the others."""

_LONGEST_REMEDY = 110
"""Characters of a remedy that stand on the first screen. The section of failures has it whole."""


def first_sentences(brief: Brief) -> list[Sentence]:
    """Return what a reader has to know first; the topics for which there is nothing to say are left out."""
    if brief.alone is not None:
        return [*_looked_up(brief.alone, brief)]
    if not brief.fields:
        return []
    return [*_wrong(brief), *_best(brief), *_sure(brief), *_why(brief), *_next(brief)]


def _looked_up(found: LookedUp, brief: Brief) -> Iterator[Sentence]:
    """Yield what the golden suite found, how far its recall could move, and what to read."""
    tone: Literal["", "bad"] = "bad" if found.errors or found.lost else ""
    yield Sentence("found", "; ".join([found_said(found), *found.broken]) + ".", tone)
    if found.mean is not None:
        mrr = f", mrr@{found.k} {found.mrr:.3f}" if found.mrr is not None else ""
        mean = f"{found.measure} is {found.mean:.3f}{mrr}"
        moves = f"it has no interval: {found.no_interval}"
        if found.interval is not None:
            low, high = found.interval
            moves = f"with other questions like these recall could lie between {low:.2f} and {high:.2f} (95 %)"
        yield Sentence("sure", f"{mean}; {moves}.")
    worst = next((gate.worst for gate in brief.gates.failed if gate.worst), "")
    if found.errors or found.lost:
        yield Sentence("next", "Read the first error, mend it, and run again.", "unsure")
    elif worst:
        yield Sentence("next", f"Read {short(worst)}, the worst question of a failed gate.")
    elif found.missed:
        yield Sentence("next", "Read the misses: what was expected, and what came instead.")
    else:
        yield Sentence("next", "Nothing was missed. Harder questions would show where it ends.")


def found_said(found: LookedUp) -> str:
    """Say for how many questions an expected document is among the first hits, and for how many it is not."""
    head = f"For {found.found:,} of {found.asked:,} questions an expected document is {found.where}"
    return f"{head}; for {found.missed:,} none is" if found.missed else head


def equals_said(field: Field, brief: Brief) -> Iterator[str]:
    """Yield which experiments are equal in every measure, what the dearest of them costs more, and why it may be so."""
    for group in field.equals:
        tokens = {name: brief.tables[name].totals.tokens for name in group}
        least, most = min(tokens, key=lambda name: tokens[name]), max(tokens, key=lambda name: tokens[name])
        more = tokens[most] / tokens[least] - 1 if tokens[least] else 0
        cheaper = f"; take {short(least)}, for {short(most)} needs {percent(more)} more tokens" if more >= 0.01 else ""
        yield f"{listed(group)} are equal on every measure and question{cheaper}."
        models = [model for name in group for model in brief.tables[name].totals.models]
        # Such experiments differ in what they ask of the model: else their answers would differ, too.
        if cheaper and models and all(map(is_no_llm, models)):
            yield f"What reasoning adds needs a model: {models[0]} does not reason."


def describe_unmeasured(brief: Brief) -> str:
    """Return which measures of the headline have no value; empty where each has one, or nothing was answered."""
    if not brief.unmeasured or not brief.answered.rows:
        return ""
    return f"rag_headline names {joined_names(brief.unmeasured)}, of which no experiment has a value"


def percent(share: float) -> str:
    """Return a share as a whole percentage. A share above 0 is never said to be 0."""
    return "under 1 %" if 0 < share < 0.005 else f"{int(share * 100 + 0.5)} %"


def _wrong(brief: Brief) -> Iterator[Sentence]:
    for field in brief.fields:
        said = describe_wrong({name: brief.tables[name] for name in field.names})
        on = f"On {field.data}: " if len(brief.fields) > 1 else ""
        if said:
            yield Sentence("wrong", f"{on}{said}")


def _best(brief: Brief) -> Iterator[Sentence]:
    for field in brief.fields:
        parts = [
            *_of_one(field, brief),
            *filter(None, [winners_said(field)]),
            *(_lead(lead) for lead in surest(field)[:_MOST_LEADS]),
        ]
        parts += equals_said(field, brief)
        parts += [f"{said}."] if (said := describe_unmeasured(brief)) and field is brief.fields[0] else []
        sure = any(lead.is_sure for lead in field.leads)
        on = f"On {field.data}: " if len(brief.fields) > 1 else ""
        parts = parts or ["Nothing can be compared: no measure has values of two experiments."]
        yield Sentence("best", on + " ".join(parts), "good" if sure else "unsure" if field.leads else "")


def _of_one(field: Field, brief: Brief) -> Iterator[str]:
    """Yield that there is nothing to compare, and the figures of the only experiment."""
    if len(field.names) > 1:
        return
    name = field.names[0]
    table = brief.tables[name]
    measures = [each for each in (*RETRIEVAL[:2], "faithfulness", "expectations", "token_f1") if table.has(each)]
    said = ", ".join(f"{each} {_mean(brief, name, each)}" for each in measures)
    yield f"Only {short(name)} ran here.{f' Its figures: {said}.' if said else ''}"


def _mean(brief: Brief, name: str, measure: str) -> str:
    table = brief.tables[name]
    unit, mean = table.columns[measure].measure.unit, table.aggregate([measure])[measure]
    between = table.interval(measure)
    return value_said(mean or 0.0, unit) + (f" {bounds(*between, unit)}" if between else "")


def winners_said(field: Field) -> str:
    """Return who is best: surely ahead in all that differs. Who is surely ahead in one thing only is ahead.

    Empty where nothing differs, or where there is nothing to compare.
    """
    telling = [lead for lead in field.leads if not lead.is_level]
    if not telling:
        return ""
    sure = [lead for lead in telling if lead.is_sure]
    winners = set.intersection(*(set(lead.best) for lead in sure)) if sure else set()
    beaten = {cell.second for lead in telling for cell in lead.standing.beaten}
    best = [name for name in field.names if name in winners - beaten]
    if best:
        return f"{listed(best)} {'is' if len(best) == 1 else 'are'} {'best' if sure == telling else 'ahead'}."
    return EACH_IS_BEST if sure else NONE_IS_BEST


def surest(field: Field) -> list[Lead]:
    """Return the leads of a data: that of wrong answers, then those that are sure."""
    return sorted(field.leads, key=lambda lead: (lead.standing.measure != WRONG, not lead.is_sure))


def _lead(lead: Lead) -> str:
    standing = lead.standing
    several, verb, what = len(lead.best) > 1, *verb_of(standing.measure)
    mean = f"{standing.measure} {value_said(standing.mean, standing.unit)}"
    if lead.is_level:
        return f"All {verb} the same ({mean})."
    who, s = listed(lead.best), "" if several else "s"
    if lead.is_sure:
        return f"{who} {verb}{s} {what} ({mean}{_over(lead)})."
    beaten = [cell.second for cell in standing.beaten]
    over = f" In this {who} {'are' if several else 'is'} surely better than {listed(beaten)}." if beaten else ""
    return f"It is open whether {who} {verb}{s} {what} ({mean}{_over(lead)}).{over}"


def verb_of(measure: str) -> tuple[str, str]:
    """Return what experiments do by a measure, as verb and object of the best of them."""
    if measure == WRONG:
        return "answer", "wrong least often"
    if is_retrieval(measure):
        return "find", "the most"
    return "answer", "best" if measure in (*ANSWERS, *JUDGED_FIRST) else f"best by {measure}"


def _over(lead: Lead) -> str:
    cell = lead.nearest
    if cell is None or cell.found is None:
        return ""
    ahead = value_said(abs(cell.found.difference), lead.standing.unit)
    return f", {ahead} {'below' if lead.standing.is_lower else 'above'} {short(cell.second)}"


def _sure(brief: Brief) -> Iterator[Sentence]:
    for field in brief.fields:
        leads = [lead for lead in surest(field)[:_MOST_LEADS] if lead.nearest is not None]
        if leads:
            on = f"On {field.data}: " if len(brief.fields) > 1 else ""
            tests = f" p is corrected for {field.tests} tests (Holm)." if field.tests > 1 else ""
            said = " ".join(_sureness(lead, brief) for lead in leads)
            yield Sentence("sure", f"{on}{said}{tests}", "good" if all(lead.is_sure for lead in leads) else "unsure")
        elif len(field.names) == 1:
            yield from _width(field, brief)
        elif field.leads:
            yield Sentence("sure", "Every value is the same on each question: no test is needed.", "good")
        else:
            yield Sentence("sure", "Nothing was measured that two experiments have.", "unsure")


def _width(field: Field, brief: Brief) -> Iterator[Sentence]:
    """Yield how far the only experiment's figures could move."""
    table = brief.tables[field.names[0]]
    measure = next((each for each in (*RETRIEVAL, "token_f1") if table.has(each) and table.interval(each)), "")
    if not measure:
        known = next((each for each in (*RETRIEVAL, "token_f1") if table.has(each)), "")
        why = table.no_interval_said(known) if known else "too few questions have a value"
        yield Sentence("sure", f"{short(field.names[0])} has no interval: {why}.", "unsure")
    else:
        low, high = table.interval(measure) or (0.0, 0.0)
        cases = table.values(measure, {})
        yield Sentence(
            "sure",
            f"With other questions of this kind {measure} could lie between {low:.2f} and {high:.2f} (95 %, "
            f"{len(cases):,} questions{table.describe_clusters(cases)}).",
        )


def _sureness(lead: Lead, brief: Brief) -> str:
    cell = lead.nearest
    assert cell is not None
    assert cell.found is not None
    found, unit, measure = cell.found, lead.standing.unit, lead.standing.measure
    between = f" {bounds(*found.interval, unit, signed=True, digits=3)}" if found.interval else ""
    pair = f"{short(cell.first)} - {short(cell.second)}"
    first, second = (brief.tables[name] for name in (cell.first, cell.second))
    both, _ = in_both(first.values(measure, {}), second.values(measure, {}))
    said = (
        f"{pair} in {measure}: {found.difference:+.3f}{between}, {found.n:,} questions{first.describe_clusters(both)}"
    )
    p = f", p {p_said(max(cell.p_t, cell.p_permutation))}" if cell.p_t is not None and cell.p_permutation else ""
    if cell.is_significant:
        return f"Sure at 95 %: {said}{p}."
    if cell.errors:
        return f"Not sure: {said}{p}; {cell.errors}, so neither is better."
    return f"Not sure: {said}{p}. {more_said(lead, found.n)}".rstrip()


def more_said(lead: Lead, n: int) -> str:
    """Return how many questions more would show the difference to the nearest; empty where no number is known."""
    if not lead.more:
        return ""
    if lead.more > _TIE * n:
        return f"As good as a tie: it takes some {lead.more:,} more questions to tell."
    return f"About {lead.more:,} more questions like these would settle it."


def _why(brief: Brief) -> Iterator[Sentence]:
    found, answered = brief.shortfall, brief.answered
    if not answered.rows:
        ended = [f"{answered.errors:,} ended with an error"] if answered.errors else []
        ended += [f"{answered.lost:,} left no result"] if answered.lost else []
        yield Sentence("why", f"No question was answered: {' and '.join(ended) or 'none was asked'}.", "bad")
    elif found is not None:
        yield Sentence("why", shortfall_said(found), "bad" if not found.is_sample else "unsure")
    elif not brief.is_measured:
        yield Sentence("why", _NOT_MEASURED, "unsure")
    elif brief.causes_are_due:
        any_wrong = any(map(wrong_answers, brief.tables.values()))
        said = count_wrong(brief.tables) if any_wrong else "No answer is wrong"
        yield Sentence("why", f"{said}; causes follow.", "bad" if any_wrong else "")
    elif not brief.answers_are_measured:
        yield Sentence("why", _PAGES_ALONE, "unsure")
    elif not brief.was_explained:
        yield Sentence("why", _NOT_LOOKED, "unsure")
    else:
        yield Sentence("why", "No answer was found to be wrong.", "good")


def whose_causes(brief: Brief) -> str:
    """Return the experiment that causes are told of, and why of this one; empty where there is no other."""
    found, lead = brief.shortfall, next((each for field in brief.fields[:1] for each in field.leads), None)
    if found is None or len(brief.tables) == 1:
        return ""
    others = [name for name in brief.shortfalls if name != found.experiment]
    more = f" ({listed(others, 2)}: -v)" if others else ""
    why = "the first with causes"
    if found.experiment == brief.subject and lead is not None and not lead.is_level:
        measure = lead.standing.measure
        why = "fewest wrong answers" if measure == WRONG else f"best in {measure}"
    return f"{short(found.experiment)}, {why}{more}: "


def shortfall_said(found: Shortfall) -> str:
    """Return how many answers are wrong, the main cause with its share, and how many more are below a failed gate."""
    below = f" {found.below_said}." if found.below else ""
    if not found.n:
        return f"{short(found.experiment)}: none of {found.answers:,} answers is wrong.{below}"
    them = f"these {found.n:,}" if found.declined else "them"
    share = f"{found.of_main:,} of {them} ({percent(found.share)})" if found.n > 1 else "the cause"
    detail = f", {found.detail}" if found.detail else ""
    name = short(found.experiment)
    if found.is_sample:
        head = f"{name}: the worst {found.n:,} of {found.answers:,} answers were looked into"
    else:
        head = f"{name}: {wrong_and_declined(found)}"
    if found.n == found.of_main and found.n > 1:
        return f"{head}, all {found.n:,} for one cause: {found.main}{detail}.{below}"
    return f"{head}; {share}: {found.main}{detail}.{below}"


def wrong_and_declined(found: Shortfall) -> str:
    """Return how many answers are wrong, and how many of an experiment decline wrongly."""
    n = found.n - found.declined
    wrong = f"{n:,} of {found.answers:,} answers {'is' if n == 1 else 'are'} wrong"
    return f"{wrong}, {found.declined:,} wrongly declined" if found.declined else wrong


def _next(brief: Brief) -> Iterator[Sentence]:
    found = brief.shortfall
    if found is not None:
        remedy = found.remedy if len(found.remedy) <= _LONGEST_REMEDY else f"{found.remedy[: _LONGEST_REMEDY - 1]}…"
        yield Sentence("next", f"{remedy[:1].upper()}{remedy[1:]}.")
        return
    more = [lead.more for field in brief.fields for lead in field.leads if lead.more]
    worst = next((gate.worst for gate in brief.gates.failed if gate.worst), "")
    if brief.answered.errors or not brief.answered.rows:
        yield Sentence("next", "Read the first error, mend it, and run again.", "unsure")
    elif worst:
        yield Sentence("next", f"Read {short(worst)}, the worst trial of a failed gate.")
    elif more:
        yield Sentence("next", f"Ask about {max(more):,} more questions, so that the difference is sure.")
    elif not brief.answers_are_measured:
        yield Sentence("next", "Give the questions a ground truth and evidence, or name a judge.", "unsure")
    elif brief.was_explained:
        yield Sentence("next", "Nothing needs repair here. Harder questions would show where it ends.")
    else:
        yield Sentence("next", "Read the worst answers, or run again with --rag-attribute.")
