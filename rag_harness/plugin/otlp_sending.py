"""``--rag-otlp``: sends trials and scores of the run to a backend of OpenTelemetry, after everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.plugin.afterwards import tried
from rag_harness.plugin.screen import usage_error, write_lines

if TYPE_CHECKING:
    import pytest

    from rag_harness.exports.otlp_trials import Sent
    from rag_harness.exports.words_of_trial import WordsOfTrial
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession


class OtlpSending:
    """Sends once all is judged and written: a backend that is down costs a line, and no trial.

    Args:
        session: state of the run.
        findings: has the tables of the run.
    """

    def __init__(self, session: RagSession, findings: RunFindings) -> None:
        self._session, self._findings = session, findings
        self._said: list[str] = []
        self._missing = ""

    def collection_done(self, selected: Collected) -> None:
        """Check the address before anything is asked.

        Raises:
            pytest.UsageError: it is none of http, or it holds a key.
        """
        if not self._session.settings.otlp or not selected.every:
            return
        from rag_harness.errors import SettingsError
        from rag_harness.exports.otlp_backend import OtlpBackend

        try:
            OtlpBackend(self._session.settings.otlp)
        except SettingsError as error:
            raise usage_error(f"--rag-otlp: {error}") from None

    def send(self) -> None:
        """Send what has come, also where one of ours stopped the run; not after Ctrl-C."""
        if not self._session.settings.otlp or not self._findings.is_there:
            return
        sent, why = tried(self._send)
        if sent is not None and sent.trials:
            self._said.insert(0, f"otlp: {sent.said} sent to {self._session.settings.otlp}")
        what = sent.missing if sent is not None else "trials were not sent"
        if what:
            again = f"rag-harness results export {self._findings.output} --to otlp --url {self._session.settings.otlp}"
            self._missing = f"otlp: WARNING: {what}: {why or (sent.why if sent else '')} Send all of them: {again}"

    def _send(self) -> Sent:
        from rag_harness.exports.otlp_backend import OtlpBackend
        from rag_harness.exports.otlp_trials import send_trials

        findings, backend = self._findings, OtlpBackend(self._session.settings.otlp)
        return send_trials(findings.output, findings.manifest, findings.tables, backend, self._words())

    def _words(self) -> WordsOfTrial:
        """Return the words that may be sent: cleaned, and none where only xdist's workers know ``rag_scrub``."""
        from rag_harness.exports.otlp_trials import NO_WORDS
        from rag_harness.exports.words_of_trial import WordsOfTrial, words_are_asked_for
        from rag_harness.models.recording.scrubbing import Cleaner, secrets_of

        if not words_are_asked_for():
            return WordsOfTrial()
        if not self._session.knows_scrub:
            self._said.append(f"otlp: {NO_WORDS}")
            return WordsOfTrial()
        return WordsOfTrial(Cleaner(secrets_of(self._session.settings), self._session.scrub).value)

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Say what was sent, and what was not."""
        if self._said:
            write_lines(terminal, self._said)
        if self._missing:
            write_lines(terminal, [self._missing], yellow=True)
