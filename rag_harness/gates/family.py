"""Gates that are judged together: a chance of 5 % at most that any of them is wrong, however many there are.

Of 20 gates that are exactly at their thresholds, each wrong in 5 % of runs at most, one is wrong in more than half of
the runs. Holm's steps (1979): with m gates open each is judged at 1 - α / m; those that are decided leave the others
more room, until none is decided any more. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rag_harness.gates.evidence import decided
from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.verdict import Verdict


def judged_together(gates: Sequence[Gate], confidence: float, judged: Callable[[Gate], Verdict]) -> list[Verdict]:
    """Return a verdict for each gate, those that ask for evidence judged as one family.

    Args:
        gates: of a run.
        confidence: with which all verdicts of the family hold at once, a share; each gate's own does not count.
        judged: judges a gate, with the confidence that it has.
    """
    found = [judged(gate) for gate in gates]
    # What has no bounds was not tested: it is not in the run, or fails for another reason.
    still = [place for place, verdict in enumerate(found) if gates[place].confidence is not None and verdict.bounds]
    family = len(still)
    while still:
        each = 1 - (1 - confidence) / len(still)
        for place in still:
            found[place] = _of_family(
                judged(replace(gates[place], confidence=100 * each)), gates[place], family, confidence
            )
        left = [place for place in still if not _is_decided(found[place])]
        if len(left) == len(still):
            break
        still = left
    return found


def _is_decided(verdict: Verdict) -> bool:
    right = verdict.gate.right
    target = right.offset if isinstance(right, Reference) else right
    return verdict.bounds is not None and decided(verdict.bounds, verdict.gate.op, target) != "inconclusive"


def _of_family(verdict: Verdict, gate: Gate, family: int, confidence: float) -> Verdict:
    said = f"together with {family - 1} other gate{'s' * (family != 2)}" if family > 1 else ""
    # It is called by the confidence of the family: what each of them was judged at is an inner matter.
    own = replace(gate, confidence=100 * confidence)
    return replace(verdict, gate=own, family=family, reason=", ".join(part for part in (verdict.reason, said) if part))
