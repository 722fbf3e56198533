"""A space of the causes of a run: what each cause asks for, and what is said where there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.configurations import ConfigurationSpec, ParameterValue, read_configuration
from rag_harness.diagnosis.tuning.outcome import Entry, RaceFigure, RaceOutcome
from rag_harness.diagnosis.tuning.space import read_space
from rag_harness.diagnosis.tuning.trials import Contender
from rag_harness.diagnosis.tuning.tuner import check_tuned, suggest_space, write_tuned
from rag_harness.records.scores import CauseLine, write_causes
from tests.unit.rows import make_row
from tests.unit.suite_tables import write_run

# A space of the causes of a run: what each cause asks for, and what is said where there is none.

MISS, LOGIC = "Retrieval Miss", "Logic Failure"


def _run(output: Path, *causes: tuple[str, str], **changes: str) -> Path:
    write_run(output, [make_row()])
    write_causes(
        output,
        [
            CauseLine(experiment="e3", query_id=f"q{n}", cause=cause, detail=detail, **changes)
            for n, (cause, detail) in enumerate(causes)
        ],
    )
    return output


@pytest.mark.parametrize(
    ("detail", "cause", "names"),
    [
        ("not found", MISS, {"retriever", "chunk_size"}),
        ("found but ranked below k", MISS, {"rerank", "candidates", "top_k"}),
        ("lost in reranking", MISS, {"rerank", "candidates", "top_k"}),
        ("cut by a chunk border", MISS, {"chunk_size", "chunk_overlap"}),
        ("the page came without the passage", MISS, {"chunk_size"}),
        ("distracted", LOGIC, {"rerank", "top_k"}),
        ("not read where it stood", LOGIC, {"rerank", "top_k"}),
    ],
)
def test_each_cause_asks_for_its_parameters(tmp_path: Path, detail: str, cause: str, names: set[str]) -> None:
    assert suggest_space(_run(tmp_path / "out", (cause, detail)), tmp_path / "space.toml") == 1
    space = read_space(tmp_path / "space.toml")
    assert {each.name for each in space.parameters} == names
    assert all(len(each.values) > 1 for each in space.parameters)


def test_fewer_chunks_for_a_distracted_model_and_more_for_one_that_was_not_given_them(tmp_path: Path) -> None:
    def top_k(*causes: tuple[str, str]) -> set[object]:
        (tmp_path / "space.toml").unlink(missing_ok=True)
        suggest_space(_run(tmp_path / "out", *causes), tmp_path / "space.toml")
        return {*next(each.values for each in read_space(tmp_path / "space.toml").parameters if each.name == "top_k")}

    distracted, below = (LOGIC, "distracted"), (MISS, "found but ranked below k")
    assert max(top_k(distracted)) == min(top_k(below))  # type: ignore[type-var]
    assert top_k(distracted, below) == top_k(distracted) | top_k(below)


def test_a_comment_says_which_cause_and_how_many_trials(tmp_path: Path) -> None:
    causes = [(MISS, "not found")] * 2 + [(MISS, "cut by a chunk border"), ("Noise", "right when asked again")]
    assert main(["tune", "--suggest", str(_run(tmp_path / "out", *causes)), "-o", str(tmp_path / "s.toml")]) == 0
    lines = (tmp_path / "s.toml").read_text().splitlines()
    above = {line.partition(" = ")[0]: lines[at - 1] for at, line in enumerate(lines) if " = " in line and at > 3}
    assert above["retriever"] == "# 2 trials: Retrieval Miss, not found"
    assert above["chunk_size"].endswith(
        "2 trials: Retrieval Miss, not found; 1 trial: Retrieval Miss, cut by a chunk border"
    )


def test_a_person_s_cause_counts_more(tmp_path: Path) -> None:
    output = _run(tmp_path / "out", (MISS, "not found"), reviewed_cause="Gold Doubtful")
    with pytest.raises(DataError, match="none of its 1 causes is of what a configuration changes"):
        suggest_space(output, tmp_path / "space.toml")


def test_a_hostile_name_stays_a_comment(tmp_path: Path) -> None:
    write_run(tmp_path / "out", [make_row()])
    line = CauseLine(experiment="e3\nseed = 9\x07\u202e", query_id="q", cause=MISS, detail="not found")
    write_causes(tmp_path / "out", [line])
    suggest_space(tmp_path / "out", tmp_path / "space.toml")
    assert read_space(tmp_path / "space.toml").seed == 0


def test_without_causes_it_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "out", [make_row()])
    wanted = ["tune", "--suggest", str(tmp_path / "out"), "-o", str(tmp_path / "space.toml")]
    assert main(wanted) == CANNOT_RUN
    assert "Run it with --rag-attribute" in capsys.readouterr().err
    assert main(["tune"]) == CANNOT_RUN
    assert "Name a space" in capsys.readouterr().err


def test_a_space_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text("mine")
    output = _run(tmp_path / "out", (MISS, "not found"))
    assert main(["tune", "--suggest", str(output), "-o", str(tmp_path / "space.toml")]) == CANNOT_RUN
    assert (tmp_path / "space.toml").read_text() == "mine"


def test_a_space_refers_to_the_schema_by_which_an_editor_completes_it(tmp_path: Path) -> None:
    schema, output = tmp_path / ".rag_harness" / "space.schema.json", _run(tmp_path / "out", (MISS, "not found"))
    (tmp_path / "spaces").mkdir()
    for file, said in ((tmp_path / "a.toml", "./.rag_harness"), (tmp_path / "spaces" / "b.toml", "../.rag_harness")):
        suggest_space(output, file, schema)
        assert file.read_text().startswith(f"#:schema {said}/space.schema.json\n# Suggested")
        assert read_space(file).parameters


# Spaces that are read, and those that are refused with a reason.

BEGIN = 'objective = "evidence_recall"\n'
MANY = ", ".join(map(str, range(1, 51)))
BAD = {
    BEGIN: "there is nothing to try",
    f"{BEGIN}[parameters]\n": "there is nothing to try",
    f"{BEGIN}[parameters]\ntop_k = []\n": "top_k has no values",
    f"{BEGIN}[parameters]\ntop_k = [{MANY}]\ncandidates = [{MANY}]\n": "more than 2,000 configurations",
    f"{BEGIN}[parameters]\ntop_kk = [1, 2]\n": "Unknown parameter 'top_kk'. Did you mean 'top_k'?",
    f'{BEGIN}[parameters]\ntop_k = ["1"]\n': "top_k is '1': Input should be a valid integer",
    f"{BEGIN}[parameters]\ntop_k = [true]\n": "top_k is True",
    f"{BEGIN}[parameters]\ntemperature = [nan]\n": "temperature is nan",
    f'{BEGIN}[parameters]\nretriever = ["dens"]\n': "Unknown retriever 'dens'. Did you mean 'dense'?",
    f"{BEGIN}[parameters]\ndense_weight = [1.5]\n": "expected a number from 0 to 1",
    f'{BEGIN}experiment = "e3"\n[parameters]\nprofile = ["mock"]\n': "Unknown parameter 'profile'",
    f"{BEGIN}[parameters]\ntop_k = {{ values = [1, 2], if = {{ rerankk = true }} }}\n": "rerankk",
    f"{BEGIN}[parameters]\ntop_k = {{ values = [1, 2], if = {{ rerank = true }} }}\n": "Unknown parameter 'rerank'",
    f"{BEGIN}[parameters]\nrerank = false\ntop_k = {{ values = [1], if = {{ rerank = true }} }}\n": (
        "rerank never is True, so top_k would never be tried"
    ),
    f"{BEGIN}[parameters]\ntop_k = {{ values = [1], if = {{ candidates = 5 }} }}\n"
    "candidates = { values = [5], if = { top_k = 1 } }\n": "conditions of top_k, candidates go round in a circle",
    "[parameters]\ntop_k = [1, 2]\n": "there is no objective",
    'objective = "evidence_recal"\n[parameters]\ntop_k = [1, 2]\n': "Did you mean 'evidence_recall'",
    'objective = "total_ms"\n[parameters]\ntop_k = [1, 2]\n': "whose values have no lowest and highest",
    f'{BEGIN}constraints = ["cost_usd"]\n[parameters]\ntop_k = [1, 2]\n': "constraint 'cost_usd'",
    f'{BEGIN}constraints = "cost_usd <= 1"\n[parameters]\ntop_k = [1, 2]\n': "expected a list of texts",
    f'{BEGIN}[[start]]\nname = "a"\n[[start]]\nname = "a"\n': "two configurations are called 'a'",
    f'{BEGIN}[[start]]\nname = "today"\n': "two configurations are called 'today'",
    f"{BEGIN}[[start]]\nname = 3\n": "3 is not a name for an experiment",
    f"{BEGIN}seed = true\n": "expected a whole number",
    f"{BEGIN}held_out = nan\n": "expected a number from 0.1 to 0.9",
    f"{BEGIN}[parameters\n": "is not TOML",
    "\x00": "is not TOML",
}


@pytest.mark.parametrize("text", BAD, ids=[f"{n}" for n in range(len(BAD))])
def test_a_space_that_cannot_be_used_says_why(tmp_path: Path, text: str) -> None:
    file = tmp_path / "space.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as raised:
        read_space(file)
    assert BAD[text] in str(raised.value)
    assert str(file) in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.toml cannot be read: No such file"):
        read_space(tmp_path / "gone.toml")


def test_a_parameter_counts_only_where_its_condition_does(tmp_path: Path) -> None:
    """A condition on a parameter that has no value itself does not hold."""
    file = tmp_path / "space.toml"
    file.write_text(
        f"{BEGIN}[parameters]\nrerank_model = {{ values = ['a', 'b'], if = {{ candidates = 20 }} }}\n"
        "candidates = { values = [10, 20], if = { rerank = true } }\nrerank = [true, false]\n"
    )
    found = list(read_space(file).combinations())
    assert len(found) == 4
    assert {"rerank": False} in found
    assert {"rerank": True, "candidates": 10} in found


def test_conditions_make_a_large_space_small_enough(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    condition = "if = { top_k = 1 }"
    file.write_text(f"{BEGIN}[parameters]\ntop_k = [{MANY}]\ncandidates = {{ values = [{MANY}], {condition} }}\n")
    assert len(list(read_space(file).combinations())) == 99


# What a race writes is read back as it was, whatever texts are in it.

FIGURE = RaceFigure(0.5, 0.4, 0.6, 10)
OUTCOME = RaceOutcome(
    space="space.toml",
    objective=("evidence_recall",),
    better="higher",
    began={},
    by="",
    questions=(10, 10),
    groups=(10, 10),
    asks_answers=False,
    ended="the budget is spent",
    asked=10,
    calls=10,
    grid=10,
    margin=0.0,
    confidence=0.95,
    entries=(Entry("tune+1", "title", {}, {"evidence_recall": FIGURE}, 10.0),),
    winner="tune+1",
    today="tune+1",
    held_out=None,
    looks=(),
    needed=0,
    seen=0.05,
    left_out={},
)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = _TEXTS | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.booleans()
_PLACES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@settings(max_examples=50)
@given(values=st.dictionaries(_PLACES.map("body.{}".format), _VALUES, max_size=4), said=_TEXTS)
def test_values_are_read_back_whatever_they_are(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, ParameterValue], said: str
) -> None:
    file = tmp_path_factory.mktemp("tuned") / "mine.toml"
    spec = ConfigurationSpec("tune+1", tuple(sorted(values.items())), "my_service")
    outcome = replace(OUTCOME, space=said, entries=(replace(OUTCOME.entries[0], title=said),))
    write_tuned(file, outcome, Contender(spec, {"top_k": 5}, said))
    read = read_configuration(file)
    assert read == ConfigurationSpec("mine", spec.values, "my_service", str(file))
    assert all(type(read.by_name[name]) is type(value) for name, value in values.items())


def test_the_own_pipeline_is_read_back(tmp_path: Path) -> None:
    values: dict[str, ParameterValue] = {
        "top_k": 3,
        "rerank": False,
        "temperature": 1e-7,
        "chat_model": 'a"b\\c',
        "retriever": "hybrid",
    }
    write_tuned(tmp_path / "mine.toml", OUTCOME, Contender(ConfigurationSpec("tune+1"), values, "t"))
    assert read_configuration(tmp_path / "mine.toml").by_name == values


@pytest.mark.parametrize(
    ("name", "why"), [("e3.toml", "'e3' is the name of an experiment"), ("my file.toml", "is not a name for an exp")]
)
def test_a_name_that_no_experiment_can_have_is_refused_before_the_race(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        check_tuned(tmp_path / name, Settings())
    with pytest.raises(SettingsError, match="is a folder"):
        check_tuned(tmp_path, Settings())
