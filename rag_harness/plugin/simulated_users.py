"""The simulated users of one process: who plays them, where their moves are kept, and who judges these."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_harness.engine.own_history import OwnHistory
    from rag_harness.engine.played_turns import PlayedTurns
    from rag_harness.engine.user_role import RoleJudge
    from rag_harness.plugin.equipment import Equipment
    from rag_harness.plugin.judgements import Judgements
    from rag_harness.plugin.session import RagSession
    from rag_harness.results.row import ExperimentResult


def played_turns(session: RagSession, kit: Equipment, judgements: Judgements, history: OwnHistory) -> PlayedTurns:
    """Return what asks the simulated users of a run."""
    from dataclasses import replace

    from rag_harness.engine.played_turns import MovesKept, PlayedTurns
    from rag_harness.results.dates import seconds_of

    def fingerprint(name: str) -> str:
        experiment = session.experiments.known(name)
        assert experiment is not None
        return session.identities.fingerprint(experiment)

    def find(name: str, of: str, query_id: str) -> ExperimentResult | None:
        found = kit.stored.get().find(name, of, query_id)
        if found is None or not (found[1] and found[0].timings_recorded):
            return found and found[0]
        is_renewed = session.identities.has_recorded_since(name, seconds_of(found[0].finished_at))
        return None if is_renewed else found[0]

    kept = MovesKept(
        fingerprint,
        find,
        lambda name, query_id: kit.stored.get().scores_of(name, query_id),
        lambda line: kit.journal.get().keep(line),
        lambda messages: kit.prompts.get().keep(messages),
    )
    # A row's cost is by the price of the model that it is asked of.
    settings = replace(session.settings, chat_model=session.settings.user_model or session.settings.chat_model)
    return PlayedTurns(history, session.experiments.user.get(), settings, kept, _judge(session, judgements))


def _judge(session: RagSession, judgements: Judgements) -> RoleJudge | None:
    """Return who judges what a model says as a user: the judge of the run, where it asks a model, too."""
    if not session.settings.user_model:
        return None
    from rag_harness.engine.user_role import RoleJudge
    from rag_harness.judges.traits import asks_a_model

    if not asks_a_model(session.settings):
        return None
    return RoleJudge(judgements.of_user)
