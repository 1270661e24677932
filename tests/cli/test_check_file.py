"""`medjury check FILE`: a verdict from one table of scores: who is who, what is refused, and figures as of a study."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calibration
import medjury
from calibration.protocol import Protocol
from data.errors import BadInput
from data.schema import Kind
from medjury.services.check import kind_of

ROWS = "".join(
    f"n{n};{1 + n % 5};{min(5, 1 + n % 5 + (n % 7 == 0))};{max(1, 1 + n % 5 - (n % 4 == 0))};0,{n:02}\n"
    for n in range(60)
)
HEAD = "item;human_a;human_b;gpt;rouge\n"


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "scores.csv"
    path.write_text(HEAD + ROWS)
    return path


def test_the_verdict_stands_first_and_a_human_alone_is_held_against_no_others(file, run):
    code, out, _ = run("check", "scores.csv", "--margin", "0.1")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "jury: gpt"
    assert "jury agrees" in lines[1]
    assert "only a study's protocol can prove" in " ".join(out.split())
    assert len(lines) < 60
    assert [one.name for one in file.parent.iterdir() if one.suffix != ".db"] == ["scores.csv"]
    code, out, _ = run("check", "scores.csv", "--human", "human_a")
    assert code == 0
    assert "only one clinician rated" in " ".join(out.split())
    assert "mean of the others" not in out


def test_json_has_the_keys_of_calibrate_and_the_page_is_the_report(file, small_study, run):
    (file.parent / "ratings.csv").write_text(
        "response_id,rater,kind,accuracy,completeness,clarity\n"
        + "".join(
            f"r{n},{who},{kind},{n % 5 + 1},3,{m + 1}\n"
            for m, n in enumerate((11, 12, 21, 22))
            for who, kind in (("a", "clinician"), ("b", "clinician"), ("j", "juror"))
        )
    )
    assert run("rate", "ratings", "ratings.csv")[0] == 0
    assert run("analyse", "calibrate", "--json", "study.json")[0] == 0
    assert run("check", "scores.csv", "--json", "check.json", "--html", "page.html")[0] == 0
    study, found = (json.loads(Path(name).read_text()) for name in ("study.json", "check.json"))
    assert found.keys() == study.keys()
    assert {one["scorer"] for one in found["rows"]} >= {"jury", "metric:rouge", "like_for_like"}
    assert found["decision"]["headline"] in Path("page.html").read_text()


@pytest.mark.parametrize("form", ["tsv", "jsonl", "xlsx", "parquet"])
def test_every_kind_of_file_says_the_same(file, form, run):
    frame = pd.read_csv(file, sep=";", decimal=",")
    write = {
        "tsv": lambda to: frame.to_csv(to, sep="\t", index=False),
        "jsonl": lambda to: frame.to_json(to, orient="records", lines=True),
        "xlsx": lambda to: frame.to_excel(to, index=False),
        "parquet": lambda to: frame.to_parquet(to),
    }[form]
    write(file.with_suffix(f".{form}"))
    icc = []
    for name in ("scores.csv", f"scores.{form}"):
        assert run("check", name, "--json", "found.json")[0] == 0
        icc.append([one["icc"] for one in json.loads(Path("found.json").read_text())["rows"]])
    assert icc[0] == icc[1]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--scale", "five"), "write the ends as 1-5"),
        (("--scale", "5-1"), "the lower end comes first"),
        (("--scale", "2-3"), "scale"),
    ],
)
def test_wrong_input_is_one_message_and_nothing_is_written(file, run, asked, said):
    code, _, err = run("check", "scores.csv", *asked, "--json", "found.json")
    assert (code, said in err, "Traceback" in err) == (2, True, False), err
    assert not Path("found.json").exists()


def test_who_cannot_be_told_from_the_names_is_asked_for_with_the_line_to_type(file, run):
    file.write_text("item;x;y;z\n" + "".join(f"n{n};1;2;3\n" for n in range(5)))
    code, _, err = run("check", "scores.csv")
    assert code == 2
    assert "names x, y, z" in " ".join(err.split())
    assert "medjury check scores.csv --human x --judge z" in " ".join(err.split())


PAIRED = "pair_id,rater,kind,preference,shown_first,first_model,second_model\n" + "".join(
    f"p{n},{who},{kind},{points},{side},{'ab'[n % 2]},{'ba'[n % 2]}\n"
    for n in range(40)
    for who, kind, points, side in (
        ("dr_a", "clinician", (2, -1, 1, -2)[n % 4], "first"),
        ("dr_b", "clinician", (1, -1, 0, -2)[n % 4], "second"),
        ("gpt", "juror", (2, 1, 1, -2)[n % 4], "first"),
        ("gpt", "juror", (1, -2, 0, -1)[n % 4], "second"),
    )
)


def test_preferences_on_pairs_or_words_of_arenas_get_agreement_a_verdict_and_win_rates(file, run):
    (file.parent / "pairs.csv").write_text(PAIRED)
    code, out, _ = run("check", "pairs.csv", "--margin", "0.2", "--json", "pairs.json")
    assert code == 0
    assert "Share of pairs" in out
    found = json.loads((file.parent / "pairs.json").read_text())
    rows = {row["scorer"]: row for row in found["pairs"]}
    # The clinicians' mean is 1.5, -1, 0.5, -2 in turn, gpt's over both orders 1.5, -0.5, 0.5, -1.5.
    assert (rows["jury"]["n"], rows["jury"]["n_tied"], rows["jury"]["agreement"]) == (40, 0, 1.0)
    assert rows["jury"]["consistency"] == 0.75  # p1, p5, ... are reversed
    assert {"jury", "clinician", "difference", "low", "high"} <= rows["like_for_like"].keys()
    assert found["decision"]["margin"] == 0.2
    assert {(row["model"], row["by"]) for row in found["models"]} == {
        (model, by) for model in "ab" for by in ("clinicians", "jury")
    }
    winner = {2: "model_a", 1: "model_a", 0: "tie", -1: "model_b", -2: "model_b"}
    head, *lines = PAIRED.splitlines()
    cells = [line.split(",") for line in lines]
    words = [",".join([*one[:3], winner[int(one[3])], *one[4:]]) for one in cells]
    arena = [head.replace("preference", "winner"), *words]
    (file.parent / "arena.csv").write_text("\n".join(arena))
    assert run("check", "arena.csv", "--json", "arena.json")[0] == 0
    rows = json.loads((file.parent / "arena.json").read_text())["pairs"]
    assert next(row for row in rows if row["scorer"] == "jury")["agreement"] < 1


def test_what_is_no_preference_is_refused_by_pair_and_rater(file, run):
    cells = {
        "3": "number from -2 to 2",
        "better": "'better' is no preference",
        "-2.5": "from -2 to 2",
    }
    first = "p0,dr_a,clinician,"
    for cell, says in cells.items():
        (file.parent / "pairs.csv").write_text(PAIRED.replace(f"{first}2", f"{first}{cell}"))
        code, _, said = run("check", "pairs.csv")
        assert (code, "dr_a" in said, says in said) == (2, True, True), said


def test_several_judges_are_ranked_and_what_the_margin_takes_is_said(file, run):
    worse = "".join(f"p{n},claude,juror,{(1, 1, -1, -1)[n % 4]},first,,\n" for n in range(40))
    (file.parent / "pairs.csv").write_text(PAIRED + worse)
    code, out, _ = run("check", "pairs.csv", "--margin", "0.2", "--json", "pairs.json")
    assert code == 0
    found = json.loads((file.parent / "pairs.json").read_text())
    assert found["juries"][0]["jurors"] == ["gpt"]
    assert len(found["juries"]) == 3
    number = found["plan"]["n_for_power"]
    assert number is None or f"about {number} pairs" in " ".join(out.split())


RNG = np.random.default_rng(45)
TRUE = RNG.normal(3, 1, 80)
NAMES = ("dr_a", "dr_b", "dr_c", "gpt4", "claude")


def score(noise: float) -> list[int]:
    return [int(one) for one in np.clip(np.round(TRUE + RNG.normal(0, noise, len(TRUE))), 1, 5)]


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    own = {name: score(0.6) for name in NAMES}
    return pd.DataFrame({"item": [f"n{n}" for n in range(len(TRUE))], **own})


def melted(wide: pd.DataFrame) -> pd.DataFrame:
    long = wide.melt("item", var_name="rater", value_name="score")
    return long.assign(kind=long["rater"].map(lambda name: kind_of(name)))


def test_figures_are_those_of_the_agreement_table_wide_or_long(wide):
    long = melted(wide)
    protocol, named = Protocol(0.1, jurors=("claude", "gpt4")), {"item": "response_id"}
    known = calibration.agreement(long.rename(columns=named), scale=(1, 5), protocol=protocol)
    for found in (medjury.check(wide, margin=0.1), medjury.check(long, margin=0.1)):
        figures = ["icc", "low", "high", "n_responses"]
        assert found.table["scorer"].tolist() == known.table["scorer"].tolist()
        ours, theirs = (one.table[figures].astype(float) for one in (found, known))
        assert np.allclose(ours, theirs, equal_nan=True)
        assert (found.decision.kind, found.decision.margin) == (known.decision.kind, 0.1)


WHO = {
    Kind.CLINICIAN: ("dr_a", "Human1", "expert-rating"),
    Kind.JUROR: ("GPT-4o", "llm_judge", "claude3"),
    Kind.METRIC: ("ROUGE-L", "metric"),
    "": ("human_judge", "a", "drama"),
}


@pytest.mark.parametrize("kind", WHO)
def test_who_is_who_is_told_by_whole_words_of_a_name(kind):
    assert [kind_of(name) for name in WHO[kind]] == [kind] * len(WHO[kind])


def test_what_was_guessed_and_left_empty_is_said_and_named_raters_alone_are_taken(wide):
    found = medjury.check(wide, humans=["dr_a", "dr_b"], judges=["gpt4"])
    [who] = [dict(one.figures) for one in found.notes if one.code == "who_is_who"]
    assert (list(who["humans"]), list(who["judges"])) == (["dr_a", "dr_b"], ["gpt4"])
    [left] = [dict(one.figures) for one in found.notes if one.code == "columns_left"]
    assert set(left["columns"]) == {"dr_c", "claude"}
    holes = wide.astype(object).copy()
    holes.loc[:4, "dr_a"] = "NA"
    holes.loc[5:6, "gpt4"] = None
    found = medjury.check(holes)
    [note] = [one for one in found.notes if one.code == "cells_empty"]
    assert dict(note.figures)["number"] == 7
    jury = found.table.set_index("scorer").loc["jury"]
    assert int(jury["n_responses"]) == len(wide) - 2


@pytest.mark.parametrize(
    ("change", "asked", "match"),
    [
        (lambda one: one.rename(columns=lambda name: name[-1]), {}, "--human"),
        (lambda one: one, {"humans": ["dr_z"]}, "nobody is called dr_z"),
        (lambda one: one, {"item": "note"}, "no column note"),
        (lambda one: one.assign(dr_a=["good", *one["dr_a"][1:]]), {}, "n0: 'good' is no score"),
        (lambda one: pd.concat([one, one[:1]]), {}, "two scores for n0"),
        (lambda one: one.assign(item=""), {}, "names no item"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(wide, change, asked, match):
    with pytest.raises(BadInput, match=match):
        medjury.check(change(wide), **asked)


def test_criteria_make_a_composite_one_can_be_asked_for_and_a_dot_in_a_models_name_is_none(wide):
    columns = {f"{name}.{one}": score(0.6) for name in NAMES for one in ("accuracy", "clarity")}
    frame = pd.DataFrame({"item": wide["item"], **columns})
    both, one = medjury.check(frame), medjury.check(frame, criterion="accuracy")
    of = [found.table.set_index("scorer").loc["jury", "icc"] for found in (both, one)]
    assert of[0] != of[1]
    alone = frame[["item", *(f"{name}.accuracy" for name in NAMES)]]
    assert medjury.check(alone).table["icc"][0] == pytest.approx(of[1])
    frame = pd.DataFrame({"experts": [1, 2, 3, 4] * 5, "claude-3.7-sonnet": [1, 2, 3, 5] * 5})
    found = medjury.check(frame)
    assert found.calibration.jury == ["claude-3.7-sonnet"]
    frame = frame.rename(columns={"experts": "experts.tone", "claude-3.7-sonnet": "gpt-4.1.tone"})
    assert medjury.check(frame).calibration.jury == ["gpt-4.1"]


def test_of_pass_and_fail_what_fails_is_found_or_missed_and_its_share_corrected(wide):
    passing = wide.assign(**{name: np.where(wide[name] > 2, "pass", "fail") for name in NAMES})
    found = medjury.check(passing, judges=["gpt4"]).calibration
    [row] = [one for one in found.detection if one.scorer == "jury"]
    clinicians = (wide[["dr_a", "dr_b", "dr_c"]] > 2).mean(axis=1)
    fails, flagged = clinicians <= 0, wide["gpt4"] <= 2
    assert (row.n, row.n_bad) == (len(wide), int(fails.sum()))
    assert row.sensitivity == pytest.approx(flagged[fails].mean())
    assert row.specificity == pytest.approx((~flagged)[~fails].mean())
    human = [0, 0, 1, 1, 1, 1, 1, 1, 1, 1] * 6 + [""] * 60
    judge = [0, 1, 0, 1, 1, 1, 1, 1, 1, 1] * 12
    found = medjury.check(pd.DataFrame({"human": human, "judge": judge}, dtype=object).astype(str))
    row = next(row for row in found.calibration.detection if row.scorer == "jury")
    assert (row.n, row.n_all, row.sensitivity, row.specificity) == (60, 120, 0.5, 0.875)
    assert row.corrected_rate == pytest.approx((0.2 - 0.125) / (0.5 - 0.125))
    assert row.corrected_low < row.corrected_rate < row.corrected_high


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda one: one[["item", "dr_a", "gpt4"]], "undefined"),
        (lambda one: one.assign(gpt4=3, claude=3), "undefined"),
        (lambda one: one[:12], "too_few"),
        (lambda one: one, "no_protocol"),
    ],
)
def test_nothing_is_claimed_without_a_second_human_spread_or_enough_items(wide, change, kind):
    assert medjury.check(change(wide)).decision.kind == kind
