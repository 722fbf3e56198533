"""The pytest plugin: hooks, fixtures and what they need. The only package that imports pytest.

The hooks are in this module; each hands over, and heavy imports wait until a suite uses the plugin. pytest calls it,
and nothing imports it. Trials are the engine's, verdicts are those of ``runs.gates``. Begin reading with
``activation.py`` for the start of a run, ``trials.py`` for a trial, ``trial_report.py`` for its way to the files, and
``end_of_run.py`` for the end.
"""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest

# First: the modules that are imported after it are not rewritten.
from rag_harness.frontends.pytest_plugin import byte_code  # noqa: F401

# isort: split
from rag_harness.core.errors import SettingsError
from rag_harness.frontends.pytest_plugin import activation, hookspecs
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
from rag_harness.frontends.pytest_plugin.options import add_options, hint_at_misspelt, is_used
from rag_harness.frontends.pytest_plugin.stash import CARRIED, RUN_ALONE, SESSION, TRIALS, WORKERS_LEFT_OUT

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
        from rag_harness.frontends.pytest_plugin.terminal import usage_error

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
    activation.register(config, "always", [activation.LazyActivation(config)])
    if is_used(config):
        from rag_harness.core.progress import uncollected

        with uncollected():
            _share_cores(config)
            _check_usage(config)
            _limit_workers(config)
        _freeze_objects(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Warn if another distribution brings this package or its command. Only in a suite that uses the plugin."""
    if not is_used(config):
        return []
    from rag_harness.core.escaping import terminal_line
    from rag_harness.core.package import strangers

    fewer = config.stash.get(WORKERS_LEFT_OUT, "")
    return [*(terminal_line(f"rag: WARNING: {each}") for each in strangers()), *([fewer] if fewer else [])]


def _limit_workers(config: pytest.Config) -> None:
    """Start no workers that cost more time than they save."""
    from rag_harness.frontends.pytest_plugin.collection import markers_in
    from rag_harness.frontends.pytest_plugin.workers import is_controller, limit_waiting, limit_workers
    from rag_harness.pipelines.experiments import built_in

    if not is_controller(config):
        return
    session, names = config.stash[SESSION], markers_in(config)
    # The code of a user's own may compute, or ask a network in mode auto: of experiments that ship it is known.
    is_ours = bool(names) and names <= built_in().keys() and "not" not in config.getoption("markexpr").split()
    if session.access.calls_nobody or (is_ours and not session.access.calls_network):
        config.stash[WORKERS_LEFT_OUT] = limit_workers(config, session.cases.count(names) if is_ours else 0)
    elif is_ours:
        config.stash[WORKERS_LEFT_OUT] = limit_waiting(config, session.settings)


def _freeze_objects(config: pytest.Config) -> None:
    """Leave what is here, modules above all, out of the search for garbage until the run has ended.

    pytest searches five times at its end, Python now and then and at its exit: a fifth of the time of a replay. What
    becomes garbage later is found as before.
    """
    config.add_cleanup(gc.unfreeze)  # before pytest adds its own cleanup, so it is called after that
    atexit.register(gc.freeze)
    gc.freeze()


def _share_cores(config: pytest.Config) -> None:
    """Limit a worker's matrix products to one thread: four workers with a pool each would wait for each other."""
    from rag_harness.frontends.pytest_plugin.workers import is_worker

    if is_worker(config):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _check_usage(config: pytest.Config) -> None:
    from rag_harness.core.errors import PrerequisiteError
    from rag_harness.frontends.pytest_plugin.collection import check_marker_expression
    from rag_harness.frontends.pytest_plugin.run_record import refused
    from rag_harness.frontends.pytest_plugin.terminal import usage_error

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
    elif any(mark.name == "rag_expect" for mark in metafunc.definition.own_markers):
        from rag_harness.frontends.pytest_plugin.collection import check_marked

        check_marked(metafunc.definition)


def pytest_report_teststatus(report: Any) -> Any:
    """Show a miss of the golden suite as ``m``."""
    if not hasattr(report, CARRIED):
        return None
    from rag_harness.frontends.pytest_plugin.trial_report import carried_by

    return ("missed", "m", ("MISS", {"yellow": True})) if carried_by(report).is_miss else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add tests for experiments that a person has named and no collected test asks. Done before tests are selected."""
    if is_used(config):
        from rag_harness.frontends.pytest_plugin.collection import bring, golden_first

        rag_session = activation.wake(config)
        bring(rag_session, session, items)
        golden_first(rag_session, items)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker whether trials come in batches, and the versions of the services."""
    from rag_harness.frontends.pytest_plugin.workers import ALONE, BATCHED, VERSIONS
    from rag_harness.frontends.pytest_plugin.xdist_scheduler import wants_batches

    BATCHED.send(node, wants_batches(node.config))
    ALONE.send(node, sorted(node.config.stash.get(RUN_ALONE, ())))
    if SESSION in node.config.stash:
        VERSIONS.send(node, node.config.stash[SESSION].versions_for_workers)


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
    if session is None or item is None or not _has_trial(item) or not session.access.covers_own_calls:
        return (yield)
    from rag_harness.frontends.pytest_plugin.experiments import making_app

    with making_app(session, item, fixturedef):
        return (yield)


def _has_trial(item: pytest.Item) -> bool:
    from rag_harness.frontends.pytest_plugin.items import trial_id_of

    return trial_id_of(item) is not None


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Remember the next test: under xdist, its batch may also be run ahead."""
    if TRIALS in item.config.stash:
        item.config.stash[TRIALS].ahead.next_item = nextitem


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the report of a trial's test carry what the test has brought."""
    report = yield
    if SESSION in item.config.stash and _has_trial(item):
        from rag_harness.frontends.pytest_plugin.trial_report import fill

        fill(item, call, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Make the message of a failed collection inert: it may quote the questions that could not become tests."""
    report = yield
    if report.failed and is_used(collector.config):
        from rag_harness.frontends.pytest_plugin.terminal import make_inert

        make_inert(report)
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave tests and data out of the search for garbage, too."""
    if SESSION in session.config.stash:
        gc.freeze()


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say what is about to run, if there is a trial to run. A worker has no terminal to say it in."""
    if SESSION not in config.stash:
        return []
    from rag_harness.frontends.pytest_plugin.workers import is_worker

    return [] if is_worker(config) else [*_announced(config, items)]


def _announced(config: pytest.Config, items: list[pytest.Item]) -> Iterator[str]:
    from rag_harness.core.escaping import terminal_block
    from rag_harness.frontends.pytest_plugin.collection import (
        brought_line,
        hint_without_tests,
        of_items,
        unasked_questions,
    )
    from rag_harness.frontends.pytest_plugin.sections import announcement

    session = config.stash[SESSION]
    said = announcement(session, items) or hint_without_tests(config, items)
    unasked = unasked_questions(config, session.settings, of_items(items).suites)
    yield from (terminal_block(each) for each in (brought_line(session.brought), said, unasked) if each)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Make no more calls, before failures are printed."""
    activation.stop_calls(session.config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what wakes the plugin if a variable alone asks for experiments."""
    if SESSION not in config.stash and (said := activation.hint_at_waking(config)):
        from rag_harness.frontends.pytest_plugin.terminal import write_lines

        write_lines(terminalreporter, [said])


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the engine, write what came back, and close the log."""
    activation.close(config)
    if SESSION in config.stash:
        gc.collect()
        gc.freeze()  # pytest searches five times behind this
