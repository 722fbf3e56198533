"""The documented configs of promptfoo become questions with expectations; what has no counterpart is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.authoring.importing.promptfoo_files import assertion_of
from tests.unit.authoring.importing.conftest import Importing

FILES = Path(__file__).parent / "files"


def config(asserts: str, variables: str = "question: Why?", more: str = "") -> str:
    return f"{more}\ntests:\n  - vars: {{{variables}}}\n    assert: [{asserts}]\n"


def test_the_documented_config_of_the_rag_guide(importing: Importing, tmp_path: Path) -> None:
    for name in ("reimbursement.md", "maternity.md"):
        (tmp_path / "kb" / "docs").mkdir(exist_ok=True, parents=True)
        (tmp_path / "kb" / "docs" / name).write_text(f"# {name}\n\nSomething of {name}.\n")
    found = importing("promptfooconfig.yaml", (FILES / "promptfoo_rag.yaml").read_text())
    first, second = found.lines
    assert first["query"] == "What is the max purchase that doesn't require approval?"
    assert first["expect"] == [{"contains": "$500", "case": True}]
    assert first["ground_truth"] == "the employee's manager is responsible for approvals"
    assert first["context_reference"] == ["docs/reimbursement.md"]
    assert second["expect"] == [{"similar": "eligible employees can take up to 4 months of leave", "at_least": 0.75}]
    assert second["ground_truth"] == "maternity leave is 4 months"
    assert second["context_reference"] == ["docs/maternity.md"]
    assert found.status == 1
    assert "read as promptfoo: a config in YAML." in found.said
    assert "2 × python: code, which is not run" in found.said
    assert "2 × factuality: a judged measure here: --rag-measures=answer_correctness" in found.said
    assert "2 × answer-relevance: a judged measure here" in found.said
    assert "(first promptfooconfig.yaml:9)" in found.said


def test_the_documented_csv(importing: Importing) -> None:
    found = importing("tests.csv", (FILES / "promptfoo_tests.csv").read_text())
    first, second, third = found.lines
    assert "read as promptfoo: its fields __expected1" in found.said
    assert first["expect"] == [{"equals": "4", "case": True}, {"contains": "four", "case": True}]
    assert first["ground_truth"] == "4"
    assert first["metadata"] == {
        "category": "math",
        "tags": ["a", "b,c"],
        "description": "Basic math test",
        "imported_from": "promptfoo",
    }
    assert second["expect"] == [{"rubric": "Accurate explanation"}, {"similar": "Hello there", "at_least": 0.8}]
    assert third["expect"] == [
        {"contains_any": ["<b>", "</span>"], "case": True},
        {"equals": "Paris", "case": True},
    ]
    assert third["ground_truth"] == "Paris"
    assert "1 × javascript: code, which is not run" in found.said


@pytest.mark.parametrize(
    ("asserted", "expected"),
    [
        ("{type: icontains, value: a}", [{"contains": "a"}]),
        ("{type: not-contains, value: a}", [{"not": {"contains": "a", "case": True}}]),
        ("{type: contains, value: 45, weight: 2}", [{"contains": "45", "case": True, "weight": 2}]),
        ("{type: contains, value: no}", [{"contains": "no", "case": True}]),
        ("{type: icontains-all, value: [a, 2]}", [{"contains_all": ["a", "2"]}]),
        ("{type: starts-with, value: a}", [{"starts_with": "a", "case": True}]),
        ("{type: regex, value: 'a+'}", [{"regex": "a+", "case": True}]),
        ("{type: is-json}", [{"is_json": True}]),
        ("{type: is-json, value: {type: object}}", [{"json": {"type": "object"}}]),
        ("{type: not-is-refusal}", [{"not": {"declines": True}}]),
        ("{type: word-count, value: {min: 3, max: 9}}", [{"min_words": 3}, {"max_words": 9}]),
        ("{type: latency, threshold: 1000}", [{"max_ms": 1000}]),
        ("{type: cost, threshold: 0.002}", [{"max_usd": 0.002}]),
        ("{type: rouge-n, value: a b}", [{"rouge_l": "a b", "at_least": 0.75}]),
        ("{type: g-eval, value: [a, b]}", [{"rubric": "a"}, {"rubric": "b"}]),
        ("{type: contains, value: 'to {{question}}'}", [{"contains": "to Why?", "case": True}]),
        (
            "{type: assert-set, assert: [{type: icontains, value: a}, {type: icontains, value: b}]}",
            [{"contains": "a"}, {"contains": "b"}],
        ),
        ("{$ref: '#/assertionTemplates/short'}", [{"max_words": 5}]),
    ],
)
def test_an_assertion_is_an_expectation(importing: Importing, asserted: str, expected: object) -> None:
    templates = "assertionTemplates: {short: {type: word-count, value: {max: 5}}}"
    found = importing("c.yaml", config(asserted, more=templates))
    assert (found.lines[0]["expect"], found.status) == (expected, 0)


@pytest.mark.parametrize(
    ("asserted", "said"),
    [
        ("{type: javascript, value: 'output.length < 3'}", "javascript: code, which is not run"),
        ("{type: contains, value: 'file://a.txt'}", "contains with a value in a file"),
        ("{type: contains, value: '{{gone}}'}", "contains: the variable 'gone' is not text of the test"),
        ("{type: contains, value: '{{question | upper}}'}", "is more than a variable"),
        ("{type: contains, value: a, transform: output.trim()}", "contains with transform"),
        ("{type: 'trajectory:tool-used', value: a}", "trajectory:tool-used: calls of tools"),
        ("{type: contans, value: a}", "contans: an unknown type"),
        ("{type: regex, value: '(?=a)b'}", "an expectation: "),
        ("{type: not-factuality, value: wrong}", "factuality: a judged measure here"),
        ("{value: a}", "an assertion without a type"),
        ("{type: assert-set, threshold: 0.5, assert: [{type: contains, value: a}]}", "assert-set with a threshold"),
    ],
)
def test_what_has_no_counterpart_is_named(importing: Importing, asserted: str, said: str) -> None:
    found = importing("c.yaml", config(asserted))
    assert found.status == 1
    assert f"1 × {said}" in found.said or said in found.said.partition("not imported:")[2]
    assert "expect" not in found.lines[0]
    assert "ground_truth" not in found.lines[0]


def test_defaults_scenarios_and_lists_of_variables(importing: Importing) -> None:
    text = """
defaultTest:
  vars: {language: French}
  assert: [{type: is-refusal}]
  metadata: {of: all}
tests:
  - vars: {question: [Why?, Who?], language: [de, en]}
  - vars: {question: What?}
    options: {disableDefaultAsserts: true}
scenarios:
  - config: [{vars: {question: How?}}, {vars: {question: When?}}]
    tests: [{assert: [{type: icontains, value: a}]}]
"""
    found = importing("c.yaml", text)
    assert [(line["query"], line["inputs"]["language"], line.get("expect")) for line in found.lines] == [
        ("Why?", "de", [{"declines": True}]),
        ("Who?", "de", [{"declines": True}]),
        ("Why?", "en", [{"declines": True}]),
        ("Who?", "en", [{"declines": True}]),
        ("What?", "French", None),
        ("How?", "French", [{"declines": True}, {"contains": "a"}]),
        ("When?", "French", [{"declines": True}, {"contains": "a"}]),
    ]
    assert all(line["metadata"]["of"] == "all" for line in found.lines)


def test_tests_in_files_of_their_own(importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.csv").write_text("question,reference_answer\nWhy?,So.\n")
    (tmp_path / "tests" / "b.yaml").write_text("- vars: {question: Who?}\n- vars: {question: What?}\n")
    (tmp_path / "tests" / "c.jsonl").write_text('{"vars": {"question": "How?"}}\n')
    (tmp_path / "tests" / "d.json").write_text('[{"vars": {"question": "When?"}}]')
    text = """
tests: [file://tests/a.csv, "file://tests/*.yaml", tests/c.jsonl, file://tests/d.json, file://make.py:tests, "https://x.y/z"]
defaultTest: {assert: [{type: factuality, value: "{{reference_answer}}"}]}
"""
    found = importing("c.yaml", text)
    assert [line["query"] for line in found.lines] == ["Why?", "Who?", "What?", "How?", "When?"]
    assert found.lines[0]["ground_truth"] == "So."
    assert "1 × tests in a file that is not read, made by code, which is not run (c.yaml:2)" in found.said
    assert "1 × tests from the web" in found.said


FILES_BESIDE = {
    "parts/q.txt": "How long may I return\na lamp?\n",
    "parts/vars.yaml": "question: Who pays?\ntenant: shop\n",
    "parts/order.yaml": "sku: T-18\nzones: [1, 2]\n",
    "parts/answer.txt": "45 days\n",
    "parts/shape.json": '{"type": "object"}',
    "parts/words.yaml": "[a, b]",
    "parts/greeting.md": "Dear {{name}}",
}


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    for name, text in FILES_BESIDE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_variables_in_files_beside_the_config_are_read(importing: Importing, beside: Path) -> None:
    text = """
tests:
  - vars: {question: file://parts/q.txt, order: file://parts/order.yaml, greeting: file://parts/greeting.md, name: Ada}
  - vars: file://parts/vars.yaml
  - vars: [parts/vars.yaml]
    assert: [{type: is-refusal}]
defaultTest: {vars: {language: French}}
"""
    found = importing("c.yaml", text)
    assert [line["query"] for line in found.lines] == ["How long may I return\na lamp?", "Who pays?", "Who pays?"]
    assert found.lines[0]["inputs"] == {
        "language": "French",
        "order": '{"sku": "T-18", "zones": [1, 2]}',  # promptfoo writes YAML as JSON into a variable
        "greeting": "Dear Ada",
        "name": "Ada",
    }
    assert found.lines[1]["inputs"] == {"language": "French", "tenant": "shop"}
    assert found.status == 0


@pytest.mark.parametrize(
    ("asserted", "expected"),
    [
        ("{type: icontains, value: 'file://parts/answer.txt'}", [{"contains": "45 days"}]),
        ("{type: is-json, value: 'file://parts/shape.json'}", [{"json": {"type": "object"}}]),
        ("{type: icontains-any, value: 'file://parts/words.yaml'}", [{"contains_any": ["a", "b"]}]),
        ("{type: icontains-any, value: ['file://parts/answer.txt', b]}", [{"contains_any": ["45 days", "b"]}]),
    ],
)
def test_values_of_assertions_in_files_are_read(
    importing: Importing, beside: Path, asserted: str, expected: object
) -> None:
    found = importing("c.yaml", config(asserted))
    assert (found.lines[0]["expect"], found.status) == (expected, 0)


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("file://gone.txt", "the variable 'order' in a file: there is no file gone.txt"),
        ("file://make.py", "the variable 'order' in a file: make.py is none of .txt, .md, .json, .yaml, .yml"),
        ("file://parts/*.txt", "the variable 'order' in a file: parts/*.txt names several files"),
        (
            "file://../outside.txt",
            "the variable 'order' in a file: ../outside.txt is not in the folder of the file that names it",
        ),
        ("file://parts/latin.txt", "the variable 'order' in a file: "),
        ("file://parts/bad.json", "the variable 'order' in a file: "),
        (f"file://{'long' * 200}.txt", "the variable 'order' in a file: "),
        ("file://parts", "the variable 'order' in a file: "),
        ("file://parts/bad.yaml", "the variable 'order' in a file: "),
        ("{{name | upper}}", "the variable 'order': the template '{{name | upper}}' is more than a variable"),
        ("{% if x %}a{% endif %}", "the variable 'order': the template"),
        ("{{gone}}", "the variable 'order': the variable 'gone' is not text of the test"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named_and_not_taken_literally(
    importing: Importing, beside: Path, variable: str, said: str
) -> None:
    (beside / "parts" / "latin.txt").write_bytes(b"caf\xe9")
    (beside / "parts" / "bad.json").write_text("{")
    (beside / "parts" / "bad.yaml").write_text("a: [")
    (beside.parent / "outside.txt").write_text("secret")
    found = importing("c.yaml", config("", f"question: Why?, order: '{variable}', name: Ada"))
    assert f"1 × {said}" in found.said
    assert (found.lines[0]["inputs"], found.status) == ({"name": "Ada"}, 1)
    asked = importing("c.yaml", config("", f"question: '{variable.replace('order', 'question')}', name: Ada", ""))
    assert asked.status == 2  # the only question cannot be read: nothing is written
    assert said.replace("'order'", "'question'") in asked.said


def test_a_link_out_of_the_folder_is_not_followed(importing: Importing, beside: Path) -> None:
    (beside.parent / "outside.txt").write_text("secret")
    (beside / "parts" / "link.txt").symlink_to(beside.parent / "outside.txt")
    found = importing("c.yaml", config("", "question: Why?, order: file://parts/link.txt"))
    assert "parts/link.txt is not in the folder of the file that names it" in found.said
    assert "inputs" not in found.lines[0]


def test_variables_of_a_file_that_is_none_are_named(importing: Importing) -> None:
    found = importing("c.yaml", "tests:\n- vars: file://gone.yaml\n- vars: {question: Why?}\n")
    assert (
        "1 × variables in a file: there is no file gone.yaml. Put it there, or mend the name (c.yaml:2)" in found.said
    )
    assert [line["query"] for line in found.lines] == ["Why?"]


def test_the_weight_of_a_set_is_that_of_each_of_its_assertions(importing: Importing) -> None:
    inner = "assert: [{type: icontains, value: a, weight: 2}, {type: icontains, value: b}]"
    found = importing("c.yaml", config(f"{{type: assert-set, weight: 3, {inner}}}, {{type: icontains, value: c}}"))
    assert found.lines[0]["expect"] == [
        {"contains": "a", "weight": 6},
        {"contains": "b", "weight": 3},
        {"contains": "c"},
    ]
    none = importing("c.yaml", config(f"{{type: assert-set, weight: 0, {inner}}}"))
    assert "expect" not in none.lines[0]
    assert "assert-set with weight 0: it is shown and does not count" in none.said
    odd = importing("c.yaml", config(f"{{type: assert-set, weight: much, {inner}}}"))
    assert "1 × assert-set with the weight 'much', which is not a number" in odd.said


@pytest.mark.parametrize("config_text", ["", "    config: []\n"])
def test_a_scenario_without_configurations_has_its_tests(importing: Importing, config_text: str) -> None:
    tests = "    tests: [{vars: {question: Why?}}, {vars: {question: Who?}}]\n"
    found = importing("c.yaml", f"scenarios:\n  - description: a\n{config_text}{tests}")
    assert [line["query"] for line in found.lines] == ["Why?", "Who?"]


def test_json_is_read_like_yaml(importing: Importing) -> None:
    tests = [{"vars": {"question": "Why?"}, "assert": [{"type": "icontains", "value": "x"}]}]
    for name, content in (("c.json", {"prompts": ["{{question}}"], "tests": tests}), ("t.json", tests)):
        found = importing(name, json.dumps(content))
        assert found.lines[0]["expect"] == [{"contains": "x"}]
        assert "read as promptfoo: its fields" in found.said


def test_the_question_is_a_variable_that_is_known_or_named(importing: Importing) -> None:
    assert importing("c.yaml", config("", "topic: Cups")).lines[0]["query"] == "Cups"
    found = importing("c.yaml", config("", "topic: Cups, tone: formal"))
    assert found.status == 2
    assert "c.yaml:3: which of its variables is the question: topic, tone?" in found.said
    mapped = importing("c.yaml", config("", "topic: Cups, tone: formal"), "--map", "question=topic", "metadata.t=tone")
    assert mapped.lines[0]["query"] == "Cups"
    assert mapped.lines[0]["metadata"]["t"] == "formal"
    assert "inputs" not in mapped.lines[0]
    assert mapped.status == 0
    wrong = importing("c.yaml", config("", "topic: Cups"), "--map", "metadata.t=tune")
    assert "1 × --map metadata.t=tune: no test has it (c.yaml)" in wrong.said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tests: [a.yaml]", "c.yaml:1: there is no file a.yaml"),
        ("tests: ['*.csv']", "c.yaml:1: no file matches *.csv"),
        ("tests: [1]", "c.yaml:1: a test was expected"),
        ("tests:\n- vars: {a: [" + "1, " * 200 + "], b: [" + "1, " * 200 + "]}", "40,000 combinations"),
        ("tests:\n- vars: {question: a}\n  assert: x", "c.yaml:2: assert was expected to be a list"),
        ("tests:\n- description: empty", "no question was found"),
        ("a: [", "c.yaml:2: no YAML"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(importing: Importing, text: str, said: str) -> None:
    found = importing("c.yaml", text)
    assert found.status == 2
    assert said in found.said


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Paris", {"type": "equals", "value": "Paris"}),
        ("contains:Paris", {"type": "contains", "value": "Paris"}),
        ("similar(0.8):Hello there", {"type": "similar", "value": "Hello there", "threshold": 0.8}),
        ('not-contains-any: a, "b, c"', {"type": "not-contains-any", "value": ["a", "b, c"]}),
        ("contains-any: a\nb, c\r\nd,\n", {"type": "contains-any", "value": ["a\nb", "c\r\nd"]}),
        ('contains-any: "a,\nb", c', {"type": "contains-any", "value": ["a,\nb", "c"]}),
        ("contains-any: a\\, b\r, c", {"type": "contains-any", "value": ["a, b", "c"]}),
        ("contains no colon", {"type": "equals", "value": "contains no colon"}),
        ("is-json", {"type": "is-json", "value": None}),
        ("fn: output", {"type": "javascript", "value": "output"}),
        ("grade: is polite", {"type": "llm-rubric", "value": "is polite"}),
        ("latency(500)", {"type": "latency", "value": None, "threshold": 500.0}),
    ],
)
def test_a_compact_text_is_an_assertion(text: str, made: object) -> None:
    assert assertion_of(text) == made
