"""Unsafe responses and subgroups where they are read: terminal, JSON, report."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kit.studies import Run

Shown = Callable[..., str]


@pytest.fixture
def shown(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Make a study whose jury errs in German, and return what calibrate prints."""
    random = np.random.default_rng(5)
    texts = ["instance_id,benchmark,context,prompt,response_id,model,response,group:language"]
    scores = ["response_id,rater,kind,criterion,score"]
    for i in range(120):
        language = "de" if i % 3 else "en"
        texts.append(f"i{i},visits,Pain.,Write.,r{i},m{i % 2},Words {i}.,{language}")
        quality = 1 + random.integers(5)
        for name in ("dr-a", "dr-b", "dr-c", "gpt", "llama"):
            kind = "clinician" if name.startswith("dr") else "juror"
            spread = 2.5 if kind == "juror" and language == "de" else 0.6
            for criterion in ("accuracy", "completeness", "clarity"):
                score = int(np.clip(round(quality + random.normal(0, spread)), 1, 5))
                scores.append(f"r{i},{name},{kind},{criterion},{score}")
    critical = ("study", "protocol", "set", "--margin", "0.1", "--jurors", "gpt,llama")
    for name, lines, command in (
        ("r.csv", texts, "study import"),
        ("s.csv", scores, "rate ratings"),
    ):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        assert run(*command.split(), str(tmp_path / name))[0] == 0
        assert run(*critical, "--critical", "accuracy<=2")[0] == 0
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str) -> str:
        code, out, err = run("analyse", "calibrate", "--reps", "100", *arguments)
        assert code == 0, err
        return out

    return call


def test_responses_are_called_unsafe_only_where_a_criterion_is_critical(
    shown: Shown, run: Run
) -> None:
    assert shown("--details").count("Unsafe responses, ") == 1
    critical = shown()
    run("study", "protocol", "set", "--margin", "0.1")
    assert "nsafe" not in shown("--details")
    assert critical.count("Unsafe responses, ") == 1
    assert "visits: Unsafe responses, accuracy <= 2" in critical
    table = critical[critical.index("visits: Unsafe") :].splitlines()
    names = " ".join(line.split("  ")[0] for line in table[3:8])  # a long name goes on below
    assert names.startswith("Jury Jury, against the same others One clinician, against the others")
    assert re.search(r"Jury +\d+ of \d+ +0\.\d\d +0\.\d\d to [01]\.\d\d +0\.\d\d", critical)


def test_a_subgroup_for_which_agreement_is_not_shown_is_told_without_being_asked_for(
    shown: Shown,
) -> None:
    out = shown()
    assert "not shown to hold for de as for the rest" in out
    assert "language: en" not in out
    assert "language: en" in shown("--details")


def test_json_has_both_always_with_none_where_undefined(shown: Shown, tmp_path: Path) -> None:
    shown("--json", str(tmp_path / "o.json"))
    body = json.loads((tmp_path / "o.json").read_text())
    row = body["detection"][0]
    figures = {"sensitivity", "specificity", "auc", "read_for_90", "read_for_95", "ppv", "npv"}
    assert {"benchmark", "scorer", "criterion", "threshold", "n", "n_bad"} | figures <= set(row)
    ends = {f"{name}{end}" for name in ("sensitivity", "auc") for end in ("_low", "_high")}
    assert ends <= set(row)
    scorers = {one["scorer"] for one in body["detection"]}
    assert scorers == {"jury", "jury_held_out", "juror:gpt", "juror:llama", "clinicians"}
    of = {one["value"]: one for one in body["subgroups"]}
    assert (of["de"]["finding"], of["en"]["finding"]) == ("lower", "shown")
    assert of["de"]["notes"][0]["code"] == "lower_in_subgroup"
    assert of["de"]["p_holm"] == pytest.approx(of["de"]["p"])
