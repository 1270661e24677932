"""Models compared as the paper does: closed-ended benchmarks by their metric, others by the jury."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from kit.studies import Run

from calibration.model_values import PAPER
from calibration.models import compare_models
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions
from data.database import open_study
from data.errors import BadInput, Unknown
from data.person import OPERATOR
from data.queries import design_items
from data.schema import Role
from data.store import Slot, add_people, assign

HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response\n"
COLUMNS = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion", "score"]


def scores(metric_of: Callable[[str, int], float]) -> tuple[Scores, dict[str, str]]:
    """Return two models on an open benchmark, rated by a juror, and a closed one, measured."""
    responses, ratings, authors = [], [], {}
    for benchmark in ("notes", "exam"):
        for number in range(6):
            for model in ("a", "b"):
                name, instance = f"{benchmark}-{number}-{model}", f"{benchmark}-{number}"
                responses.append((name, instance, benchmark))
                authors[name] = model
                if benchmark == "notes":
                    points = 5.0 if model == "a" else 3.0
                    ratings.append((name, instance, benchmark, "j", "juror", "quality", points))
                else:
                    ratings.append(
                        (
                            name,
                            instance,
                            benchmark,
                            "exact-match",
                            "metric",
                            "score",
                            metric_of(model, number),
                        )
                    )
    table = pd.DataFrame(ratings, columns=COLUMNS).assign(pass_=0, replicate=0)
    of = pd.DataFrame(responses, columns=COLUMNS[:3])
    shape = RubricShape(("quality",), 1, 5)
    return Scores(table, of, {"notes": shape, "exam": shape}), authors


def test_a_models_average_is_of_its_metric_and_its_jury_score_on_one_scale() -> None:
    table, authors = scores(lambda model, number: float(model == "b" or number < 2))
    found = compare_models(
        *(table, authors, {}, AnalysisOptions(jurors=("j",), reps=50), (PAPER,)),
        measured={"exam": "exact-match"},
    )
    means = {row.model: row.macro_average for row in found.rows}
    # a: (5 - 1) / 4 = 1 by the jury and 2 of 6 right; b: (3 - 1) / 4 = .5 and 6 of 6.
    assert means == pytest.approx({"a": (1 + 2 / 6) / 2, "b": (0.5 + 1) / 2})
    assert {row.model: row.win_rate for row in found.rows} == {"a": 0.5, "b": 0.5}


def test_by_metric_and_jury_alone_no_model_leads() -> None:
    table, authors = scores(lambda model, _: float(model == "a"))
    found = compare_models(
        *(table, authors, {}, AnalysisOptions(jurors=("j",), reps=200), (PAPER,)),
        measured={"exam": "exact-match"},
    )
    assert found.decision.kind == "inconclusive"


@pytest.mark.parametrize(
    ("measured", "value", "error", "said"),
    [
        ({"exam": "medcalc"}, 1.0, Unknown, "no scores by the metric medcalc: it has exact-match"),
        ({"other": "exact-match"}, 1.0, Unknown, "no benchmark other"),
        ({"exam": "exact-match"}, 1.5, BadInput, "leaves the range from 0 to 1"),
    ],
)
def test_a_metric_that_cannot_score_is_refused(
    measured: dict[str, str], value: float, error: type[Exception], said: str
) -> None:
    table, authors = scores(lambda *_: value)
    with pytest.raises(error, match=said):
        compare_models(
            *(table, authors, {}, AnalysisOptions(jurors=("j",)), (PAPER,)), measured=measured
        )


def test_a_study_without_jury_is_compared_by_what_was_measured(
    run: Run, write: Callable[[str, str], Path]
) -> None:
    rows = [
        f"i{number},exam,,p,Yes,{model}{number},{model},{'Yes' if model == 'a' or number < 3 else 'No'}\n"
        for number in range(8)
        for model in "ab"
    ]
    run("study", "import", str(write("r.csv", HEAD + "".join(rows))))
    run("analyse", "measure", "exact-match", "quasi-exact-match")
    words = ("analyse", "models", "--by", "paper", "--reps", "50", "--unblind", "--reason", "ended")
    code, out, err = run(*words, "--json", "-")
    assert code == 0, err
    body = json.loads(out)
    assert body["measured"] == {"exam": "exact-match"}
    assert {row["model"]: row["macro_average"] for row in body["rows"]} == {"a": 1.0, "b": 0.375}
    code, _, err = run(*words, "--metric", "exam")
    assert (code, "is not BENCHMARK=METRIC" in " ".join(err.split())) == (2, True)


def study_with_an_exam(run: Run, write: Callable[[str, str], Path]) -> None:
    """Bring in notes that clinicians and a juror rated, and an exam that exact match scored."""
    rows = [
        f"{benchmark}{number},{benchmark},,p,{'Yes' if benchmark == 'exam' else ''},"
        f"{benchmark}{number}{model},{model},{'Yes' if model == 'a' or number < 2 else 'No'}\n"
        for benchmark in ("notes", "exam")
        for number in range(6)
        for model in "ab"
    ]
    assert run("study", "import", str(write("r.csv", HEAD + "".join(rows))))[0] == 0
    rated = [
        f"notes{number}{model},{who},{kind},{1 + (number + (model == 'a')) % 5},4,3\n"
        for number in range(6)
        for model in "ab"
        for who, kind in (("dr_a", "clinician"), ("dr_b", "clinician"), ("j", "juror"))
    ]
    head = "response_id,rater,kind,accuracy,completeness,clarity\n"
    assert run("rate", "ratings", str(write("ratings.csv", head + "".join(rated))))[0] == 0
    assert run("analyse", "measure", "exact-match")[0] == 0


def test_all_ways_take_in_the_papers_where_a_benchmark_has_its_own_metric(
    run: Run, write: Callable[[str, str], Path]
) -> None:
    study_with_an_exam(run, write)
    words = ("analyse", "models", "--reps", "50", "--json", "-")
    code, out, err = run(*words, "--unblind", "--reason", "ended")
    assert code == 0, err
    body = json.loads(out)
    counts = {row["by"]: row["n_benchmarks"] for row in body["rows"]}
    assert counts == {"clinicians": 1, "jury": 1, "corrected": 1, "paper": 2}
    assert body["measured"] == {"exam": "exact-match"}
    alone = json.loads(run(*words, "--by", "clinicians")[1])
    assert (alone["benchmarks"], alone["measured"]) == (["notes"], {})


def test_several_metrics_that_could_be_a_benchmarks_own_stop_no_other_way(
    run: Run, write: Callable[[str, str], Path]
) -> None:
    study_with_an_exam(run, write)
    keys = "instance_id,key,category\n"
    keys += "".join(f"exam{number},Yes,risk\n" for number in range(6))
    path = str(write("keys.csv", keys))
    assert run("analyse", "measure", "medcalc", "--keys", path, "--benchmark", "exam")[0] == 0
    words = ("analyse", "models", "--reps", "50", "--json", "-", "--unblind", "--reason", "ended")
    code, out, err = run(*words)
    assert code == 0, err
    assert {row["by"] for row in json.loads(out)["rows"]} == {"clinicians", "jury", "corrected"}
    code, _, err = run(*words, "--by", "paper")
    assert (code, "name one, such as --metric exam=" in " ".join(err.split())) == (2, True)
    body = json.loads(run(*words, "--metric", "exam=medcalc")[1])
    assert body["measured"] == {"exam": "medcalc"}


def test_what_a_key_alone_scored_has_no_part_in_agreement_until_somebody_is_to_read_it(
    run: Run, write: Callable[[str, str], Path], url: str
) -> None:
    study_with_an_exam(run, write)
    words = ("analyse", "calibrate", "--reps", "50", "--json", "-")
    rows = json.loads(run(*words)[1])["rows"]
    assert {row["benchmark"] for row in rows} == {"notes"}
    assert "metric:exact-match" not in {row["scorer"] for row in rows}
    assert all("analysed" not in {one["code"] for one in row["notes"]} for row in rows)
    engine = open_study(url)
    exam = next(one.response for one in design_items(engine) if one.benchmark == "exam")
    add_people(OPERATOR, engine, ["dr_c"], Role.CLINICIAN)
    assign(engine, [Slot("dr_c", exam, 0)], 0)
    engine.dispose()
    rows = json.loads(run(*words)[1])["rows"]
    assert {row["benchmark"] for row in rows} == {"exam", "notes", "combined"}
