"""Says which gates of a run others have replaced, and which cannot fail: fewer than were written stop a release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_harness.gates import Gate
    from rag_harness.plugin.session import RagSession


def replaced_said(session: RagSession) -> Iterator[str]:
    """Yield a line for each gate that a later one has replaced, and one for those that RAG_GATE has replaced."""
    from rag_harness.gates.belonging import gates_set
    from rag_harness.gates.gates_of_run import replaced_gates

    yield from _by_environment(session)
    for left_out, later in replaced_gates(gates_set(session.settings), session.settings.k):
        yield f"gate replaced: {left_out}, by {later} (a later one on the same)"


def _by_environment(session: RagSession) -> Iterator[str]:
    """Gates of the command line are added to those of the ini file, so only RAG_GATE takes one of these away."""
    from rag_harness.plugin.options import ini
    from rag_harness.report.wording import counted

    settings, config, written = session.settings, session.config, ini(session.config).get("gate", [])
    used = {*settings.gate, *(text for text, _ in settings.gates_elsewhere)}
    if lost := [text for text in written if text not in used]:
        of_all = "the " if len(lost) == len(written) else f"{len(lost):,} of the "
        file = config.inipath.name if config.inipath else "the ini file"
        yield f"RAG_GATE replaces {of_all}{counted(len(written), 'gate')} of {file}"


def unfailing_said(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield a line for each gate that no value fails."""
    from rag_harness.gates.gates_of_run import cannot_fail

    yield from (f"cannot fail: {gate.condition}, which every value meets" for gate in gates if cannot_fail(gate))
