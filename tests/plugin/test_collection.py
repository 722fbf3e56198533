"""Which tests are made: those that ``-m`` cannot select are not, but for one of each experiment."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import TEST, Suite

_TWO = TEST + TEST.replace("pytest.mark.e3", "pytest.mark.e2").replace("test_answers", "test_others")


@pytest.mark.parametrize(
    ("expression", "passed", "left_out"),
    [
        pytest.param("e3", 4, 1, marks=pytest.mark.long),
        ("e2 or e3", 8, 0),
        ("e1 and (e2 or e3)", 0, 2),
        pytest.param("not e2", 4, 1, marks=pytest.mark.long),
        ("not (e2 or e1)", 4, 1),
    ],
)
def test_one_test_is_left_of_an_experiment_that_no_marker_selects(
    suite: Suite, expression: str, passed: int, left_out: int
) -> None:
    suite.pytester.makepyfile(test_two=_TWO)
    for file in suite.path.glob("test_*.py"):
        if file.name != "test_two.py":
            file.unlink()
    suite.run("-m", expression).assert_outcomes(passed=passed, deselected=left_out)


@pytest.mark.parametrize(
    "chosen",
    [("-k", "test_answers"), ("-m", "e3 or chosen"), pytest.param(("-m", "chosen"), marks=pytest.mark.long)],
)
def test_what_a_plugin_may_still_mark_or_a_keyword_name_is_made(suite: Suite, chosen: tuple[str, str]) -> None:
    suite.pytester.makeconftest(
        "import pytest\n"
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'chosen: by a plugin')\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if 'test_others' in item.nodeid and 'q_direct_003' in item.nodeid:\n"
        "            item.add_marker(pytest.mark.chosen)\n"
    )
    suite.pytester.makepyfile(test_two=_TWO)
    for file in suite.path.glob("test_*.py"):
        if file.name != "test_two.py":
            file.unlink()
    passed = {"test_answers": 4, "e3 or chosen": 5, "chosen": 1}[chosen[1]]
    suite.run(*chosen).assert_outcomes(passed=passed, deselected=8 - passed)
