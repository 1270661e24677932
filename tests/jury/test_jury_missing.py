"""What is said of missing verdicts and of jurors who gave none: which, why, what to do, what all has cost."""

import json
from collections.abc import Callable

import pytest
from kit.commands import json_of
from kit.jurors import Do, Script, Seen, Stub, verdict
from kit.jury_runs import panel_at, written
from kit.studies import HEAD

from data.study.calls import without_texts
from medjury.services.run_words import AGAIN, BY_REASON, BY_STATUS, FORM

Ask = Callable[..., tuple[int, str, str]]
PRICED = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0}
REFUSED = {"error": {"param": "temperature"}}


@pytest.fixture
def ask(run, small_study, write) -> Ask:
    """Run a panel of one juror, a, whose server follows a script."""

    def asked(script: Script, *options: str, **settings: float) -> tuple[int, str, str]:
        with Stub(script) as stub:
            return run("jury", "run", written(write, panel_at(stub, **settings)), *options)

    return asked


def test_what_is_missing_is_listed_with_its_reason_and_no_text_or_author(run, ask):
    said = "Patient denies fever"
    code, out, _ = ask(lambda seen: Do(verdict(seen, said if said in seen.prompt else 3)), **PRICED)
    assert (code, "missing: a: 1 out_of_range" in out) == (1, True)
    code, out, err = run("jury", "missing", "--json", "-")
    body = json.loads(out)
    (row,) = body["missing"]
    assert code == 0
    assert (row["juror"], row["response_id"], row["status"]) == ("a", "r11", "out_of_range")
    assert (row["replicate"], row["calls"], row["benchmark"]) == (0, 2, "visits")
    assert row["reason"] == "accuracy: score (no number) is not a whole number on the scale 1-5"
    assert body["jurors"] == [{"juror": "a", "missing": 1, "by_status": {"out_of_range": 1}}]
    assert (body["calls"], body["usd"], body["usd_unknown"]) == (5, pytest.approx(0.01), 0)
    for word in ("denies", "fever", "model-one"):
        assert word not in out + err


def test_what_was_rated_later_is_missing_no_more_and_stays_paid(run, ask):
    ask(lambda _: Do("prose"))
    ask(lambda _: Do())
    body = json_of(run, "jury", "missing")
    assert (body["missing"], body["calls"], body["usd_unknown"]) == ([], 12, 12)


def test_a_verdict_that_a_cap_left_out_is_missing_with_no_call_and_no_bound(run, ask):
    code, said, _ = ask(lambda _: Do(), "--max-usd", "0", **PRICED)
    rows = json_of(run, "jury", "missing")["missing"]
    assert (code, len(rows), {one["calls"] for one in rows}) == (1, 4, {0})
    assert {one["reason"] for one in rows} == {"not asked: the next request could pass the cap"}
    assert "the paper's upper bound" not in said


@pytest.mark.parametrize(
    ("do", "said"),
    [
        (Do(status=401), BY_STATUS["auth"]),
        (Do(status=429, code="insufficient_quota"), BY_STATUS["quota"]),
        (Do(status=404), BY_REASON["no such model or address"]),
        (Do(status=400, body=json.dumps(REFUSED)), BY_REASON["the model refuses"]),
        (Do("prose"), FORM),
        (Do(refusal="No."), BY_STATUS["refused"]),
        (Do(status=413), AGAIN),
    ],
)
def test_the_advice_fits_the_reason(ask, do, said):
    code, out, _ = ask(lambda _: do, temperature=0.0)
    assert (code, said in out, AGAIN in out) == (1, True, said == AGAIN)


WORDS = ('"Mrs Smith"', '"12.03.1950"', '{"a": "fever"}', '"a\nb"')


@pytest.mark.parametrize("score", ['"4/5"', "7", "4.5", "true", *WORDS])
def test_a_number_in_a_reason_stays_and_words_do_not(score):
    said = f"clarity: score {score} is not a whole number on the scale 1-5"
    told = without_texts(said)
    assert (told == said, score in told) == ((False,) * 2 if score in WORDS else (True,) * 2)


@pytest.fixture
def panel(run, write, stub) -> str:
    """Let two clinicians and two of three jurors rate twelve responses."""
    texts = "".join(f"i{n},visits,c{n},p,,r{n},m,said {n}\n" for n in range(12))
    assert run("study", "import", str(write("r.csv", HEAD + "\n" + texts)))[0] == 0
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for who in ("dr_a", "dr_b"):
        lines += [f"r{n},{who},clinician,{1 + n % 5},{1 + n % 4},{3 + n % 2}" for n in range(12)]
    assert run("rate", "ratings", str(write("ratings.csv", "\n".join(lines))))[0] == 0

    def script(seen: Seen) -> Do:
        points = 1 + sum(str(seen).encode()) % 5
        return Do(refusal="No.") if seen.model == "c" else Do(verdict(seen, points))

    stub.script = script
    path = written(write, panel_at(stub, "a", "b", "c"))
    assert run("jury", "run", path)[0] == 1
    return path


def row_of(out: str, scorer: str) -> dict[str, object]:
    return next(one for one in json.loads(out)["rows"] if one["scorer"] == scorer)


def test_a_juror_without_a_rating_is_named_and_its_panel_has_no_score(run, panel):
    options = ("analyse", "calibrate", "--reps", "20", "--json", "-")
    code, out, err = run(*options)
    assert (code, "jury: a, b\n" in err) == (0, True)
    assert "asked, and gave no rating: c; not in this jury" in err
    assert str(row_of(out, "jury")["note"]).startswith("scored 12 of 12")
    for chosen in (("--panel", panel), ("--jurors", "a,b,c")):
        code, out, err = run(*options, *chosen)
        assert (code, "asked, and gave no rating: c; " in err) == (0, True)
        assert row_of(out, "jury")["icc"] is None
        for scorer in ("jury", "juror:c"):
            assert "scored 0 of 12" in str(row_of(out, scorer)["note"])


def test_two_of_three_jurors_suffice_where_that_is_asked_for(run, panel):
    words = ("analyse", "calibrate", "--panel", panel, "--min-jurors", "2", "--reps", "20")
    code, out, err = run(*words, "--json", "-", "--details")
    assert (code, "jury: a, b, c" in err) == (0, True)
    for words in ("scored 12 of 12", "mean of at least 2 of 3 jurors"):
        assert words in str(row_of(out, "jury")["note"])
