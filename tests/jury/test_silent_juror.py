"""A juror that was asked and failed on everything is named, and never leaves its jury unseen."""

import json
from collections.abc import Iterator

import pytest
from kit.jurors import Do, Stub
from kit.studies import HEAD, Run, Write

SCORES = ("accuracy", "completeness", "clarity")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(lambda seen: Do(refusal="No.") if seen.model == "c" else Do(_answer(seen))) as one:
        yield one


def _answer(seen: object) -> str:
    points = 1 + sum(str(seen).encode()) % 5
    return json.dumps({name: {"explanation": "x", "score": points} for name in SCORES})


def jurors(write: Write, stub: Stub) -> str:
    body = "".join(
        f'[[juror]]\nname = "{name}"\nmodel = "{name}"\nfamily = "f"\nprovider = "openai"\n'
        f'base_url = "{stub.openai_url}"\n'
        for name in "abc"
    )
    return str(write("panel.toml", f'name = "p"\n{body}'))


@pytest.fixture
def panel(run: Run, write: Write, stub: Stub) -> str:
    """Let two clinicians and two of three jurors rate twelve responses."""
    texts = "".join(f"i{n},visits,c{n},p,,r{n},m,said {n}\n" for n in range(12))
    assert run("study", "import", str(write("r.csv", HEAD + "\n" + texts)))[0] == 0
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for who in ("dr_a", "dr_b"):
        lines += [f"r{n},{who},clinician,{1 + n % 5},{1 + n % 4},{3 + n % 2}" for n in range(12)]
    assert run("rate", "ratings", str(write("ratings.csv", "\n".join(lines))))[0] == 0
    path = jurors(write, stub)
    assert run("jury", "run", path)[0] == 1
    return path


def row_of(out: str, scorer: str) -> dict[str, object]:
    return next(one for one in json.loads(out)["rows"] if one["scorer"] == scorer)


def test_a_juror_without_a_rating_is_named_and_its_panel_has_no_score(run: Run, panel: str) -> None:
    options = ("analyse", "calibrate", "--reps", "20", "--json", "-")
    code, out, err = run(*options)
    assert code == 0
    assert "jury: a, b\n" in err
    assert "asked, and gave no rating: c; not in this jury" in err
    assert str(row_of(out, "jury")["note"]).startswith("scored 12 of 12")

    for chosen in (("--panel", panel), ("--jurors", "a,b,c")):
        code, out, err = run(*options, *chosen)
        assert code == 0
        assert "asked, and gave no rating: c; " in err
        assert row_of(out, "jury")["icc"] is None
        assert "scored 0 of 12" in str(row_of(out, "jury")["note"])
        assert "scored 0 of 12" in str(row_of(out, "juror:c")["note"])


def test_two_of_three_jurors_suffice_where_that_is_asked_for(run: Run, panel: str) -> None:
    code, out, err = run(
        *(
            "analyse",
            "calibrate",
            "--panel",
            panel,
            "--min-jurors",
            "2",
            "--reps",
            "20",
            "--json",
            "-",
        ),
        "--details",
    )
    assert code == 0
    assert "jury: a, b, c" in err
    note = str(row_of(out, "jury")["note"])
    assert "scored 12 of 12" in note
    assert "mean of at least 2 of 3 jurors" in note
