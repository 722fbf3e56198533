"""Gates that are judged as a family: the probability that any verdict is wrong is at most 5 % (family-wise error rate).

Take 20 gates exactly at their thresholds, each wrong in at most 5 % of runs: in more than half of the runs one of them
is wrong. Holm's procedure (1979) prevents that. With m undecided gates, each is judged at confidence 1 - α / m. Decided
gates leave the family, so that m shrinks; the steps end when no gate is decided any more. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rag_harness.gates.evidence import decided
from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.verdict import Verdict


def judged_together(gates: Sequence[Gate], confidence: float, judged: Callable[[Gate], Verdict]) -> list[Verdict]:
    """Return a verdict for each gate. The gates that ask for evidence are judged as one family.

    Args:
        gates: gates of a run.
        confidence: confidence with which all verdicts of the family hold at once, in [0, 1]. It replaces each gate's
            own.
        judged: judges a gate at the confidence that stands in the gate.
    """
    found = [judged(gate) for gate in gates]
    # A gate without bounds was not tested: it is not in the run, or fails for another reason.
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
    return verdict.bounds is not None and decided(verdict.bounds, verdict.gate.op, target) != "undecided"


def _of_family(verdict: Verdict, gate: Gate, family: int, confidence: float) -> Verdict:
    said = f"together with {family - 1} other gate{'s' * (family != 2)}" if family > 1 else ""
    # The text shows the confidence of the family, not the one that Holm's procedure judged this gate at.
    own = replace(gate, confidence=100 * confidence)
    return replace(verdict, gate=own, family=family, reason=", ".join(part for part in (verdict.reason, said) if part))
