"""Blinding at the command line: sure names are masked at import, possible ones by hand."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import Run
from sqlalchemy import Engine, text

from data.study.masks import SHOWN
from data.study.verify import acts, verify

Write = Callable[[str, str], Path]

HEADER = "instance_id,benchmark,context,prompt,response_id,model,response\n"

NAMED = 'r1,openai/gpt-4o,"As ChatGPT, I cannot examine. Patient denies fever."'

POSSIBLE = "r2,nova-large,Seen by Claude in clinic today. Nothing else."

PLAIN = "r3,nova-large,Mild pain."


def imported(run: Run, write: Write, *rows: str) -> str:
    lines = "".join(f"i{row.split(',')[0]},visits,ctx,ask,{row}\n" for row in rows)
    code, out, err = run("study", "import", str(write(f"{len(rows)}.csv", HEADER + lines)))
    assert code == 0, err
    return out


def shown(engine: Engine) -> dict[str, str | None]:
    with engine.connect() as connection:
        return dict(connection.execute(text("SELECT response_id, shown FROM response")).all())


def test_an_import_masks_what_is_sure_and_counts_what_is_possible(
    run: Run, engine: Engine, write: Write
) -> None:
    out = imported(run, write, NAMED, POSSIBLE, PLAIN)
    assert "1 responses named their author: masked (1 places)" in out
    assert "1 possible places left as they are: `medjury study blind` lists them" in out
    assert shown(engine) == {
        "r1": "As [author masked], I cannot examine. Patient denies fever.",
        "r2": None,
        "r3": None,
    }
    assert verify(engine).findings == ()


def test_a_search_that_was_cut_short_goes_on_with_the_next_command(
    run: Run, engine: Engine, write: Write
) -> None:
    imported(run, write, NAMED, PLAIN)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("DELETE FROM setting"))
        connection.execute(text("UPDATE response SET shown = NULL"))
        connection.execute(text("DELETE FROM mask"))
        connection.execute(text("DELETE FROM event WHERE action = 'authors masked'"))
    assert "masked (1 places)" in run("study", "blind")[1]
    assert verify(engine).findings == ()


@pytest.mark.parametrize("masked", [(), ("--masked",)])
def test_names_are_blotted_out_in_lists_until_showing_them_is_recorded(
    run: Run, engine: Engine, write: Write, masked: tuple[str, ...]
) -> None:
    imported(run, write, NAMED.replace("Patient", "Claude agreed; patient"), PLAIN)
    _, out, _ = run("study", "blind", *masked, "--json", "-")
    assert "ChatGPT" not in out
    assert "Claude" not in out
    assert "[author masked]" in out
    assert acts(engine, SHOWN) == []
    _, shown_out, _ = run("study", "blind", *masked, "--show-names", "--json", "-")
    assert ("ChatGPT" if masked else "Claude") in shown_out
    (act,) = acts(engine, SHOWN)
    assert act.actor == "coordinator"
    assert act.detail == {"places": 1, "responses": 1}
    assert verify(engine).findings == ()


def test_the_names_of_a_locked_study_are_not_shown(run: Run, write: Write) -> None:
    imported(run, write, NAMED)
    assert run("study", "lock")[0] == 0
    code, out, err = run("study", "blind", "--masked", "--show-names")
    assert code == 2
    assert "locked" in err
    assert "ChatGPT" not in out


def test_a_place_is_counted_in_the_text_as_shown_which_hides_how_long_a_masked_name_is(
    run: Run, engine: Engine, write: Write
) -> None:
    long = NAMED.replace("Patient", "Claude agreed; patient")
    short = long.replace("ChatGPT", "GPT-5").replace("r1", "r7")
    imported(run, write, long, short)
    out = run("study", "blind")[1]
    at = shown(engine)["r1"].index("Claude")
    assert f"r1@{at}" in out
    assert f"r7@{at}" in out
    assert run("study", "blind", "--mask", f"r7@{at}", "--leave", f"r1@{at}")[0] == 0
    assert "Claude" not in shown(engine)["r7"]
    (left,) = acts(engine, "possible names left")
    assert left.detail == {"responses": [], "places": [["r1", long.index("Claude", 20) - 18]]}
    assert "nothing that may name an author" in run("study", "blind")[1]


def test_what_is_possible_is_masked_or_left_by_hand_and_listed_no_more(
    run: Run, engine: Engine, write: Write
) -> None:
    imported(run, write, POSSIBLE, PLAIN, POSSIBLE.replace("r2", "r6"))
    assert "1 responses masked, 0 left" in run("study", "blind", "--mask", "r2")[1]
    assert shown(engine)["r2"] == "Seen by [author masked] in clinic today. Nothing else."
    assert run("study", "blind", "--leave", "r6")[0] == 0
    assert acts(engine, "possible names left")[0].detail == {"responses": ["r6"]}
    assert "nothing that may name an author" in run("study", "blind", "--list")[1]
    for wrong in (("--mask", "r2"), ("--mask", "r9"), ("--leave", "r9")):
        assert run("study", "blind", *wrong)[0] == 2
    assert verify(engine).findings == ()


TWICE = "r4,nova-large,Seen by Claude. Opus 4 agrees."


def test_the_list_tells_place_words_and_why_and_never_the_author(
    run: Run, write: Write, tmp_path: Path
) -> None:
    imported(run, write, TWICE.replace("Seen", "Seen\t\x1b[31m"))
    out = run("study", "blind", "--show-names")[1]
    assert "`--leave ID@PLACE`" in out
    assert ("Claude" in out, "nova-large" in out, "\x1b[31m" in out) == (True, False, False)
    run("study", "blind", "--show-names", "--json", str(tmp_path / "doubtful.json"))
    found = json.loads((tmp_path / "doubtful.json").read_text())["places"]
    assert [(one["response"], one["text"]) for one in found] == [("r4", "Claude"), ("r4", "Opus 4")]
    assert {one["why"] for one in found} == {"other_meaning"}


def test_single_places_are_masked_or_left_and_the_decision_stays(
    run: Run, engine: Engine, write: Write
) -> None:
    imported(run, write, TWICE)
    assert run("study", "blind", "--mask", "r4@16")[0] == 0
    assert shown(engine)["r4"] == "Seen by Claude. [author masked] agrees."
    assert run("study", "blind", "--leave", "r4@8")[0] == 0
    assert acts(engine, "possible names left")[0].detail == {"responses": [], "places": [["r4", 8]]}
    assert "nothing that may name an author" in run("study", "blind")[1]
    assert run("study", "blind", "--mask", "r4@9")[0] == 2
    assert run("study", "blind", "--leave", "r9@9")[0] == 2
    assert verify(engine).findings == ()


def test_words_can_be_left_in_every_response(run: Run, engine: Engine, write: Write) -> None:
    imported(run, write, POSSIBLE, TWICE)
    assert run("study", "blind", "--leave-words", "claude")[0] == 0
    out = run("study", "blind", "--show-names")[1]
    assert "Opus 4" in out
    assert "clinic today" not in out
