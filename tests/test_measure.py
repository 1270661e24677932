"""`medjury measure`: what was read in part is named, and windows are a metric of their own."""

from collections.abc import Callable
from pathlib import Path

from kit.studies import Run
from sqlmodel import select

from data.database import open_study, reading
from data.schema import Rater, Rating

HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response\n"


def comments(url: str) -> dict[str, str]:
    """Return what is said of each rating: metric and response -> comment."""
    with reading(open_study(url)) as session:
        found = session.exec(select(Rater.handle, Rating.response, Rating.comment).join(Rater))
        return {f"{rater} {response}": comment for rater, response, comment in found}


def test_texts_that_are_cut_are_named_and_in_windows_none_is(
    run: Run, write: Callable[[str, str], Path], url: str
) -> None:
    long = "knee pain since May " * 200
    path = write(
        "r.csv", HEAD + f"i1,b,c,p,No fever.,short,m,No fever.\ni2,b,c,p,Pain.,long,m,{long}"
    )
    assert run("import", str(path))[0] == 0
    code, out, _ = run("measure", "bertscore")
    assert (code, "1 pair read only in part (512 word pieces): long" in out) == (0, True)
    code, out, _ = run("measure", "bertscore", "--long-texts", "windows")
    assert (code, "in part" in out) == (0, False)
    said = comments(url)
    assert len(said) == 4
    assert [name for name, comment in said.items() if "in part" in comment] == [
        next(name for name in said if name.endswith(" 2") and "windows" not in name)
    ]


def test_an_unknown_way_with_long_texts_is_refused(
    run: Run, write: Callable[[str, str], Path]
) -> None:
    path = write("r.csv", HEAD + "i1,b,c,p,No fever.,short,m,No fever.")
    run("import", str(path))
    code, _, error = run("measure", "bertscore", "--long-texts", "half")
    assert (code, "choose truncate or windows" in error) == (2, True)


def test_metrics_are_stored_together_or_not_at_all(
    run: Run, write: Callable[[str, str], Path], url: str, tmp_path: Path
) -> None:
    path = write("r.csv", HEAD + "i1,b,c,p,No fever.,short,m,No fever.")
    run("import", str(path))
    code, out, error = run("measure", "--model", str(tmp_path / "no-model"))
    assert (code, "scored" in out, "no-model" in error) == (2, False, True)
    assert not comments(url)
    assert run("measure")[0] == 0
    assert len(comments(url)) == 2
    assert "2 of these values were there already" in run("measure")[1]
