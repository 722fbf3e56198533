"""The table of gates: values, intervals and states, each from the files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from tests.unit.page.recount import chance
from tests.unit.page.recount.fits import problem
from tests.unit.page.recount.formulas import applies, unmeasured, values_of
from tests.unit.page.recount.page_tables import ShownTable
from tests.unit.page.recount.plain_tables import NONE, span_of
from tests.unit.page.recount.rows import Json, RunFiles, Suite

_GATE = re.compile(
    r"(?P<suite>[\w.-]+)(?:\[(?P<where>.+?)\])?: (?P<measure>[\w@]+) (?P<op>[<>]=?) (?P<right>\S+)"
    r"(?: (?P<sign>[+-]) (?P<offset>[\d.]+))?(?: @(?P<sure>\d+)%)?"
)

_IN_THE_GATE = "the threshold, where only the gate's text shows it"


def gates(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount values, intervals and states of gates."""
    for cells in table.rows:
        gate, state, value, against, between, n, _, why = (cell.text for cell in cells[:8])
        yield from _said(files, gate, (state, value, against, between, n, why))


def decisions(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount the same of the gates that say what to do, and what that is."""
    said = {gate["gate"]: gate for gate in files.summary["gates"] if gate.get("otherwise")}
    yield "" if [*said] == [row[0].text for row in table.rows] else f"{[*said]} say what to do"
    for cells in table.rows:
        gate, measured, between, n, state, to_do = (cell.text for cell in cells)
        value, _, against = measured.partition(" against ")
        yield from _said(files, gate, (state, value, against or _IN_THE_GATE, between, n, _why_of(to_do)))
        otherwise = said[gate]["otherwise"]
        is_open = f"; if it does not hold: {otherwise}" if to_do.startswith("undecided: ") else ""
        wanted = {"passed": "keep", "failed": otherwise}.get(state)
        yield "" if to_do == wanted or (is_open and to_do.endswith(is_open)) else f"{gate}: {to_do!r} is to be done"


def _why_of(to_do: str) -> str:
    """Return the reason in what is to be done, where that is open."""
    return (
        to_do.removeprefix("undecided: ").partition("; if it does not hold: ")[0]
        if to_do.startswith("undecided: ")
        else ""
    )


def _said(files: RunFiles, text: str, figures: Sequence[str]) -> Iterator[str]:
    gate = _GATE.fullmatch(text)
    if gate is None or gate["right"] == "baseline":
        yield f"gate {text!r} cannot be read here"
    elif figures[1] != NONE:
        yield from (f"{text}: {what}" for what in _gate(files, gate, figures) if what)


def _claiming_nothing(suite: Suite, where: str, measure: str) -> list[str]:
    """Return the answers that decline and have no value, though their question allows the measure."""
    values, answers = values_of(suite, measure), dict.fromkeys(suite.answered, 0.0)
    found = [case for case in _where(suite, where, answers) if suite.rows[case]["abstained"] and case not in values]
    return [case for case in found if values and applies(suite.cases[case], measure)]


def _gate(files: RunFiles, gate: re.Match[str], figures: Sequence[str]) -> Iterator[str]:
    state, value, against, between, n, why = figures
    mine, measure = files.suites[gate["suite"]], gate["measure"]
    values, is_other = _where(mine, gate["where"], values_of(mine, measure)), not re.match(r"[\d.-]", gate["right"])
    if is_other:
        theirs = values_of(files.suites[gate["right"]], measure)
        values = {case: values[case] for case in values if case in theirs}
        offset = float(f"{gate['sign'] or ''}{gate['offset'] or 0}")
        threshold = fmean(theirs[case] for case in values) + offset
        held = [values[case] - theirs[case] for case in values]
    else:
        offset = threshold = float(gate["right"])
        held = list(values.values())
    span = span_of(measure, held, -1.0 if is_other else 0.0)
    yield problem(value, "{}", fmean(values.values()))
    against, _, parts = against.partition(" (")
    yield problem(against, "{}", threshold) if is_other or against != _IN_THE_GATE else ""
    if is_other and offset:
        yield problem(parts, f"{gate['right']} {{}} {gate['sign']} {gate['offset']})", threshold - offset)
    said, _, declined = n.removesuffix(" declined").partition(", ")
    claims_nothing = [] if is_other else _claiming_nothing(mine, gate["where"], measure)
    yield problem(said.partition(" of ")[0], "{}", len(values))
    yield "" if int(declined or 0) == len(claims_nothing) else f"{n}, where {len(claims_nothing)} declined"
    is_paired = is_other and (not gate["sure"] or "=" not in gate["op"])
    by = chance.difference_bounds if is_paired else chance.bounds
    if gate["sure"]:
        yield from _deciding(between, by(held, span, 1 - int(gate["sure"]) / 100))
    else:
        yield problem(between, "difference [{}, {}]" if is_other else "[{}, {}]", *by(held, span, 0.025))
    if differ := re.search(r"(?:, )?only (\d+) cases differ, so without assumptions", why):
        yield problem(differ[1], "{}", sum(abs(each) > 1e-12 for each in held))
        why = why.replace(differ[0], "")
    if assumed := re.search(r"if no large difference is rarer than 1 case in (\d+): (\d+) cases could miss it", why):
        yield problem(" ".join(assumed.groups()), "{} {}", len(held) // 4, len(held))
        why = why.replace(assumed[0], "")
    yield from _why(files, gate, why)
    if not gate["sure"]:
        passes = {">=": fmean(values.values()) >= threshold - 1e-12, "<=": fmean(values.values()) <= threshold + 1e-12}
        strict = {">": fmean(values.values()) > threshold + 1e-12, "<": fmean(values.values()) < threshold - 1e-12}
        yield "" if state == ("passed" if (passes | strict)[gate["op"]] else "failed") else f"state {state}"
    elif span:
        yield from _sure(state, gate["op"], offset, by(held, span, 1 - int(gate["sure"]) / 100))


def _deciding(said: str, bounds: chance.Interval) -> Iterator[str]:
    """Recount the bound that decides a gate with ``@``, or both where they leave it open."""
    one = re.fullmatch(r"(?:difference )?at (least|most) (\S+)", said)
    if one:
        yield problem(one[2], "{}", bounds[one[1] == "most"])
    else:
        yield problem(said.removeprefix("difference "), "between {} and {}", *bounds)


def _why(files: RunFiles, gate: re.Match[str], why: str) -> Iterator[str]:
    """Recount the numbers of a reason. Its bounds have a column of their own."""
    left = re.sub(
        r"(?:; )?about [\d,]+ more would settle it", "", why
    )  # a plan, not a figure of the run: see NOT_RECOUNTED
    if moving := re.search(r"(?:, )?of (\d+) cases, (\d+) can move: the rows of the others are equal", left):
        cases = _compared(files, gate)
        yield problem(" ".join(moving.groups()), "{} {}", len(cases), sum(not _is_equal(*pair) for pair in cases))
        left = left.replace(moving[0], "")
    without = re.match(r"(?:, )?(\d+) could not be measured", left)
    names = [gate["suite"], *([gate["right"]] if gate["right"] in files.suites else [])]
    if without:
        total = sum(sum(unmeasured(files.suites[name], gate["measure"]).values()) for name in names)
        yield problem(without[1], "{}", total)
        left = ""
    yield f"numbers that nobody recounts: {left!r}" if re.search(r"\d", left) else ""


def _compared(files: RunFiles, gate: re.Match[str]) -> list[tuple[Json, Json]]:
    """Return the two rows of each case that has a value on both sides."""
    mine, theirs = files.suites[gate["suite"]], files.suites[gate["right"]]
    others = values_of(theirs, gate["measure"])
    cases = [case for case in _where(mine, gate["where"], values_of(mine, gate["measure"])) if case in others]
    return [(mine.rows[case], theirs.rows[case]) for case in cases]


def _is_equal(mine: Json, theirs: Json) -> bool:
    """Whether two rows say and found the same, so that no score can tell them apart."""
    said = ("status", "abstained", "citations", "invalid_citations", "confidence", "llm_answer")
    hits, sources = ("candidates", ("chunk_id", "rerank_score")), ("retrieved_chunks", ("chunk_id",))
    ours, others = (
        [[row[key] for key in said], *([[hit[key] for key in keys] for hit in row[of]] for of, keys in (hits, sources))]
        for row in (mine, theirs)
    )
    return bool(ours == others)


def _sure(state: str, op: str, target: float, bounds: chance.Interval) -> Iterator[str]:
    """Check a state that bounds decide, unless the draws do."""
    (low_0, low_1), (high_0, high_1) = map(chance.pair, bounds)
    if any(first <= target <= second for first, second in ((low_0, low_1), (high_0, high_1))):
        return
    above, below = low_0 > target, high_1 < target
    right = "undecided" if not above and not below else "passed" if above == (">" in op) else "failed"
    yield "" if state == right else f"state {state}, where {right} is right"


def _where(suite: Suite, where: str | None, values: Mapping[str, float]) -> dict[str, float]:
    wanted = dict(part.strip().split("=", 1) for part in where.split(",")) if where else {}
    return {case: value for case, value in values.items() if wanted.items() <= suite.cases[case]["labels"].items()}
