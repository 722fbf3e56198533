"""The pytest plugin: hooks, fixtures and what they need. The only package that imports pytest.

The hooks are in this module; each hands over, and heavy imports wait until a suite uses the plugin. pytest calls it,
and nothing imports it. Trials are the engine's, verdicts are those of ``runs.gates``. Begin reading with
``activation.py`` for the start of a run, ``trials.py`` for a trial, and ``end_of_run.py`` for the end.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.escaping import terminal_block, terminal_line
from rag_harness.frontends.pytest_plugin import activation, hookspecs
from rag_harness.frontends.pytest_plugin.activation import refused
from rag_harness.frontends.pytest_plugin.fixtures import (
    rag_golden_id,
    rag_index,
    rag_pipeline,
    rag_recording,
    rag_result,
    rag_retrieval,
    rag_scores,
    rag_scrub,
    rag_session,
    rag_settings,
    rag_traced,
    rag_trial,
)
from rag_harness.frontends.pytest_plugin.items import (
    FAILED,
    NOT_RUN,
    OWED,
    REFUSED,
    RETRIEVAL,
    RUN_AGAIN,
    SESSION,
    SHIPPED,
    TRIALS,
    is_marked_itself,
    trial_id_of,
)
from rag_harness.frontends.pytest_plugin.options import add_options, hint_at_misspelt, is_used
from rag_harness.frontends.pytest_plugin.terminal import make_inert, stop_tests, usage_error, write_lines

if TYPE_CHECKING:
    from rag_harness.core.types import TrialId

__all__ = [
    "rag_golden_id",
    "rag_index",
    "rag_pipeline",
    "rag_recording",
    "rag_result",
    "rag_retrieval",
    "rag_scores",
    "rag_scrub",
    "rag_session",
    "rag_settings",
    "rag_traced",
    "rag_trial",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare options and ini keys."""
    add_options(parser)


def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> None:
    """Have pytest say what was meant by an option of ours that is misspelt, should it refuse the command line."""
    if not any(each.startswith("--rag-") for each in args):
        return
    try:
        hint_at_misspelt(parser, args)
    except SettingsError as error:
        raise usage_error(error) from None


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare this plugin's own hooks."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Register markers and the state of the run."""
    from rag_harness.pipelines.experiments import built_in

    config.addinivalue_line(
        "markers",
        "rag_experiment(id, traced=False): the experiment whose trials a test that uses rag_result is about; traced: "
        "its app is instrumented, and its spans become its rows",
    )
    config.addinivalue_line(
        "markers", "rag_expect({...}, {...}): what the answers owe that a test which uses rag_result asks for"
    )
    for experiment, module in built_in().items():
        # A variant's name may have a hyphen, which no Python name has. rag_experiment("t1-boost0") marks it.
        if "-" in experiment:
            continue
        config.addinivalue_line("markers", f"{experiment}: rag_harness experiment {module}")
    config.pluginmanager.register(activation.LazyActivation(config), "rag_harness.waker")
    if is_used(config):
        _share_cores(config)
        _check_usage(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Warn if another distribution brings this package or its command. Only in a suite that uses the plugin."""
    if not is_used(config):
        return []
    from rag_harness.core.package import strangers

    return [terminal_line(f"rag: WARNING: {each}") for each in strangers()]


def _share_cores(config: pytest.Config) -> None:
    """Limit a worker's matrix products to one thread: four workers with a pool each would wait for each other."""
    if hasattr(config, "workerinput"):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _check_usage(config: pytest.Config) -> None:
    from rag_harness.core.errors import PrerequisiteError
    from rag_harness.frontends.pytest_plugin.collection import check_marker_expression

    try:
        session = activation.wake(config)
        settings, _ = session.settings, session.experiments.endpoints
        check_marker_expression(config)
        _check_workers(config, settings.concurrency, settings.stop_early)
        _check_family(settings.family, settings.stop_early)
        if settings.report:
            from rag_harness.page import check_place

            check_place(settings.path(settings.report))
    except PrerequisiteError as error:
        refused(config, error)
        raise usage_error(error) from None


def _check_workers(config: pytest.Config, concurrency: int, stop_early: bool) -> None:
    """Refuse a limit that xdist workers could not keep: only our own scheduler can shut down workers beyond it."""
    from rag_harness.core.errors import SettingsError

    workers = len(config.getoption("tx", None) or ())
    if workers and stop_early:
        raise SettingsError(
            "--rag-stop-early looks at one case after another in one process, and workers each have some of them. "
            "Leave -n out; --rag-concurrency says how many cases are asked at once."
        )
    if workers > concurrency and config.getoption("dist", "no") not in ("no", "load"):
        raise SettingsError(
            f"rag_concurrency is {concurrency}, but each of the {workers} workers makes a call at a time. Use fewer "
            f"workers, or leave --dist out."
        )


def _check_family(confidence: float, stop_early: bool) -> None:
    """Refuse a confidence that is out of range, and a rule that cannot be combined with --rag-stop-early."""
    from rag_harness.core.errors import SettingsError

    if 0 < confidence <= 0.5:
        raise SettingsError(f"--rag-family={confidence:g}: a confidence lies above 0.5 and below 1. Write 0.95.")
    if confidence and stop_early:
        raise SettingsError(
            "--rag-stop-early settles each gate by itself, and --rag-family judges them together. Leave one out."
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Turn a test that uses ``rag_result`` into one test a trial; ``rag_retrieval`` into one a golden entry."""
    if not {"rag_result", "rag_retrieval"}.isdisjoint(metafunc.fixturenames):
        from rag_harness.frontends.pytest_plugin import collection as collect

        collect.parametrize_trials(metafunc, activation.wake(metafunc.config))
    elif is_marked_itself(metafunc.definition):
        from rag_harness.frontends.pytest_plugin.collection import check_marked

        check_marked(metafunc.definition)


def pytest_report_teststatus(report: Any) -> Any:
    """Show a miss of the golden suite as ``m``."""
    if getattr(report, "rag_outcome", "") == "miss":
        return "missed", "m", ("MISS", {"yellow": True})
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add tests for experiments that a person has named and no collected test asks. Done before tests are selected."""
    if is_used(config):
        from rag_harness.frontends.pytest_plugin.collection import bring

        bring(activation.wake(config), session, items)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker whether trials come in batches, and the versions of the services."""
    from rag_harness.frontends.pytest_plugin.trials import ALONE_INPUT, BATCHES_INPUT
    from rag_harness.frontends.pytest_plugin.xdist_scheduler import RUN_ALONE, wants_batches

    node.workerinput[BATCHES_INPUT] = wants_batches(node.config)
    node.workerinput[ALONE_INPUT] = sorted(node.config.stash.get(RUN_ALONE, ()))
    if SESSION in node.config.stash:
        from rag_harness.frontends.pytest_plugin.session import TOLD

        node.workerinput[TOLD] = node.config.stash[SESSION].versions_for_workers


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out trials in batches, unless the user chose a distribution or does not use the plugin."""
    from rag_harness.frontends.pytest_plugin.xdist_scheduler import make_scheduler

    return make_scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """Record and replay what a user's own pipeline calls while its fixtures make it."""
    item = getattr(request, "_pyfuncitem", None)
    session = request.config.stash.get(SESSION, None)
    if session is None or item is None or trial_id_of(item) is None or not session.access.covers_own_calls:
        return (yield)
    from rag_harness.frontends.pytest_plugin.experiments import making_app

    with making_app(session, item, fixturedef):
        return (yield)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Remember the next test: under xdist, its batch may also be run ahead."""
    if TRIALS in item.config.stash:
        item.config.stash[TRIALS].ahead.next_item = nextitem


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the result to the teardown's report: a trial whose fixture raised has no call phase."""
    report = yield
    shipped = item.stash.get(SHIPPED, None)
    if shipped is not None and report.failed:
        item.stash[FAILED] = True
    if shipped is not None and call.when == "teardown":
        # A worker sends the row as JSON: xdist sends only plain types, and one numpy float would end the session.
        row = shipped.row.text if hasattr(item.config, "workerinput") else shipped.row
        vars(report).update(rag_row=row, rag_resumed=shipped.resumed)
        if (run_again := item.stash.get(RUN_AGAIN, None)) is not None:
            vars(report).update(rag_run_again=run_again)
        item.config.stash[OWED].ship(shipped.row.experiment, report)
        _ship_scores(item, report, shipped.row.trial)
        del item.stash[SHIPPED]
        _ship_unrecorded(item, report, shipped.row.experiment)
        _ship_broken_exports(item, report)
    if call.when == "setup" and NOT_RUN in item.stash:
        trial, not_run = item.stash[NOT_RUN]
        vars(report).update(not_run.on_report(trial))
    if call.when == "teardown" and NOT_RUN in item.stash:
        # Another repeat of its conversation may have come to this turn.
        _ship_again(item, report, item.stash[NOT_RUN][0])
    if REFUSED in item.stash and (refused := trial_id_of(item)) is not None:
        vars(report).update(rag_refused=(refused.experiment, item.stash[REFUSED]))
    if RETRIEVAL in item.stash:
        from rag_harness.frontends.pytest_plugin import terminal as golden

        golden.judge_golden_report(item, call, report)
    elif report.failed and trial_id_of(item) is not None:
        from rag_harness.frontends.pytest_plugin import terminal as failed_trial

        failed_trial.shorten_failure(item, call, report)
    if trial_id_of(item) is not None:
        make_inert(report)
        if report.failed:
            from rag_harness.frontends.pytest_plugin import terminal as equal_failures

            equal_failures.note_failure(item, report)
    return report


def _ship_unrecorded(item: pytest.Item, report: pytest.TestReport, experiment: str) -> None:
    """Let a report carry the calls of pipelines that were made since the last one and cannot be recorded."""
    if item.config.stash[SESSION].access.covers_own_calls:
        from rag_harness.models.recording.patches import unrecorded_calls

        if counts := unrecorded_calls.taken():
            vars(report)["rag_unrecorded"] = experiment, counts


def _ship_broken_exports(item: pytest.Item, report: pytest.TestReport) -> None:
    """Let a report carry how many requests with spans of a service have broken off since the last one."""
    if any(spec.traces for spec in item.config.stash[SESSION].settings.endpoints):
        from rag_harness.pipelines.endpoint.spans import broken_exports

        if counts := broken_exports.taken():
            vars(report)["rag_broken_exports"] = counts


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Make the message of a failed collection inert: it may quote the questions that could not become tests."""
    report = yield
    if report.failed and is_used(collector.config):
        make_inert(report)
    return report


def _ship_scores(item: pytest.Item, report: pytest.TestReport, trial: TrialId) -> None:
    """Attach the judge's scores to the report. If nothing can be kept any more, no test follows."""
    from rag_harness.core.errors import CriticalError

    try:
        judged = item.config.stash[TRIALS].judged(trial, item.nodeid)
    except CriticalError as error:
        stop_tests(item.config, error)
        return
    except CancelledError:
        return  # the run was stopped; the scores that came back are in the journal
    if judged is not None:
        vars(report).update(rag_judged=judged.plain())
    _ship_again(item, report, trial)


def _ship_again(item: pytest.Item, report: pytest.TestReport, trial: TrialId) -> None:
    """Attach the repeats of a trial to the report."""
    from rag_harness.core.errors import CriticalError

    try:
        vars(report).update(item.config.stash[TRIALS].answered_again(trial))
    except CriticalError as error:
        stop_tests(item.config, error)
    except CancelledError:
        return  # the run was stopped; what came back is in the journal


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say what is about to run, if there is a trial to run. A worker has no terminal to say it in."""
    if SESSION not in config.stash or hasattr(config, "workerinput"):
        return []
    from rag_harness.frontends.pytest_plugin.collection import (
        brought_line,
        hint_without_tests,
        of_items,
        unasked_questions,
    )
    from rag_harness.frontends.pytest_plugin.sections import announcement

    session = config.stash[SESSION]
    said = announcement(session, items) or hint_without_tests(config, items)
    unasked = unasked_questions(session, of_items(items).suites)
    return [terminal_block(each) for each in (brought_line(session.brought), said, unasked) if each]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Make no more calls, before failures are printed."""
    activation.stop_calls(session.config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what wakes the plugin if a variable alone asks for experiments."""
    if SESSION not in config.stash and (said := activation.hint_at_waking(config)):
        write_lines(terminalreporter, [said])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the engine, write what came back, and close the log."""
    activation.close(config)
