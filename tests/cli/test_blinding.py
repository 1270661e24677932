"""Blinding: names that are hidden or shortened are masked where sure at import, and listed where doubtful."""

import json
import re

import pytest
from kit.studies import Run, Write
from sqlalchemy import Engine, text

from data.study.masks import SHOWN
from data.study.verify import acts, verify
from medjury.services.blinding.search import MARK, Why, find_self_naming, mask, unmask

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


def test_an_import_masks_what_is_sure_and_counts_what_is_possible(run, engine, write):
    out = imported(run, write, NAMED, POSSIBLE, PLAIN)
    assert "1 responses named their author: masked (1 places)" in out
    assert "1 possible places left as they are: `medjury study blind` lists them" in out
    assert shown(engine) == {
        "r1": "As [author masked], I cannot examine. Patient denies fever.",
        "r2": None,
        "r3": None,
    }
    assert verify(engine).findings == ()


def test_a_search_that_was_cut_short_goes_on_with_the_next_command(run, engine, write):
    imported(run, write, NAMED, PLAIN)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("DELETE FROM setting"))
        connection.execute(text("UPDATE response SET shown = NULL"))
        connection.execute(text("DELETE FROM mask"))
        connection.execute(text("DELETE FROM event WHERE action = 'authors masked'"))
    assert "masked (1 places)" in run("study", "blind")[1]
    assert verify(engine).findings == ()


@pytest.mark.parametrize("masked", [(), ("--masked",)])
def test_names_are_blotted_out_in_lists_until_showing_them_is_recorded(run, engine, write, masked):
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


def test_the_names_of_a_locked_study_are_not_shown(run, write):
    imported(run, write, NAMED)
    assert run("study", "lock")[0] == 0
    code, out, err = run("study", "blind", "--masked", "--show-names")
    assert code == 2
    assert "locked" in err
    assert "ChatGPT" not in out


def test_a_place_is_counted_in_the_text_as_shown_which_hides_how_long_a_name_is(run, engine, write):
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


def test_what_is_possible_is_masked_or_left_by_hand_and_listed_no_more(run, engine, write):
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


def test_the_list_tells_place_words_and_why_and_never_the_author(run, write, tmp_path):
    imported(run, write, TWICE.replace("Seen", "Seen\t\x1b[31m"))
    out = run("study", "blind", "--show-names")[1]
    assert "`--leave ID@PLACE`" in out
    assert ("Claude" in out, "nova-large" in out, "\x1b[31m" in out) == (True, False, False)
    run("study", "blind", "--show-names", "--json", str(tmp_path / "doubtful.json"))
    found = json.loads((tmp_path / "doubtful.json").read_text())["places"]
    assert [(one["response"], one["text"]) for one in found] == [("r4", "Claude"), ("r4", "Opus 4")]
    assert {one["why"] for one in found} == {"other_meaning"}


def test_single_places_are_masked_or_left_and_the_decision_stays(run, engine, write):
    imported(run, write, TWICE)
    assert run("study", "blind", "--mask", "r4@16")[0] == 0
    assert shown(engine)["r4"] == "Seen by Claude. [author masked] agrees."
    assert run("study", "blind", "--leave", "r4@8")[0] == 0
    assert acts(engine, "possible names left")[0].detail == {"responses": [], "places": [["r4", 8]]}
    assert "nothing that may name an author" in run("study", "blind")[1]
    assert run("study", "blind", "--mask", "r4@9")[0] == 2
    assert run("study", "blind", "--leave", "r9@9")[0] == 2
    assert verify(engine).findings == ()


def test_words_can_be_left_in_every_response(run, engine, write):
    imported(run, write, POSSIBLE, TWICE)
    assert run("study", "blind", "--leave-words", "claude")[0] == 0
    out = run("study", "blind", "--show-names")[1]
    assert "Opus 4" in out
    assert "clinic today" not in out


STUDY = ["MyHospital-LM v2", "openai/gpt-4o-2024-08-06", "acme/tonsil-7b-chat"]
STRUCK = "A\u0336n\u0336t\u0336h\u0336r\u0336opic"
A_MODEL = "\u4e00\u4e2aAI\u8bed\u8a00\u6a21\u578b"

MASKED = [
    ("Written with Sonnet 4.5 today.", "Sonnet 4.5", Why.NAME),
    ("Drafted by Opus-4.1.", "Opus-4.1", Why.NAME),
    ("3.5 Sonnet, at your service", "3.5 Sonnet", Why.NAME),
    ("This is Tongyi Qianwen.", "Tongyi Qianwen", Why.NAME),
    ("\u6211\u662f\u901a\u4e49\u5343\u95ee\u3002", "\u901a\u4e49\u5343\u95ee", Why.NAME),
    ("\u6211\u662fChatGPT\u3002", "ChatGPT", Why.NAME),
    ("By Chat\u200bG\u2060PT, checked.", "Chat\u200bG\u2060PT", Why.NAME),
    (f"By {STRUCK}.", STRUCK, Why.NAME),
    ("MyHospital LM thinks so", "MyHospital LM", Why.OWN),
    ("myhospital-lm says", "myhospital-lm", Why.OWN),
    ("MyHospitalLM says", "MyHospitalLM", Why.OWN),
    ("_ChatGPT_ says", "ChatGPT", Why.NAME),
    ("see https://claude.ai/new", "claude.ai", Why.NAME),
    ("Chat GPT: stable", "Chat GPT", Why.NAME),
    ("Kimi K2 wrote it", "Kimi K2", Why.NAME),
    ("ERNIE Bot wrote it", "ERNIE Bot", Why.NAME),
    ("\u8c46\u5305", "\u8c46\u5305", Why.NAME),
    ("GLM-4.5 wrote it", "GLM-4.5", Why.NAME),
    ("Als KI-Sprachmodell kann ich", "KI-Sprachmodell", Why.SAYS),
    (f"\u4f5c\u4e3a{A_MODEL}\uff0c", A_MODEL, Why.SAYS),
    ("### Assistant: rest", "### Assistant:", Why.TEMPLATE),
    ("<|im_start|>Plan: rest.", "<|im_start|>", Why.TEMPLATE),
]

LISTED = [
    ("Seen by Cla\u200bude today", "Cla\u200bude", Why.OTHER_MEANING),
    ("His implant is a SONNET 2.", "SONNET 2", Why.OTHER_MEANING),
    ("Speech processor OPUS 2 works.", "OPUS 2", Why.OTHER_MEANING),
    ("Note read in Epic Haiku 4.5.", "Haiku 4.5", Why.OTHER_MEANING),
    ("She read on ChatGPT that statins are harmful", "ChatGPT", Why.USED),
    ("It is past my knowledge cutoff.", "my knowledge cutoff", Why.SAYS),
    ("Okay, the user wants a note.", "Okay, the user", Why.REASONING),
    ("A product of Alibaba Cloud", "Alibaba", Why.OTHER_MEANING),
    ("4o agrees", "4o", Why.OTHER_MEANING),
    ("a tonsil of normal size", "tonsil", Why.OTHER_MEANING),
    ("Seen by Claude. 3 tablets left.", "Claude", Why.OTHER_MEANING),
    ("Gemini-generated advice", "Gemini", Why.OTHER_MEANING),
]

CLINICAL = [
    "Claude's sign on the left; Claude syndrome; Claude Bernard syndrome.",
    "Horner (Claude-Bernard-Horner) syndrome",
    "Her magnum opus, the op. 27; sonnets by heart.",
    "Fitted by a GLM with a log link; see also general linear model, GLM.",
    "L1 o 4 mg, t4 o.d., 4 o'clock",
    "T4 Ot 3",
    "Reasoning was intact; think aloud; thinking clear; <5 mg, > 3, x<y>z",
    "superior and inferior gemellus; bigeminy; trigeminal",
    "S1 S2 normal, no S3; e-cigarettes; 3b-4 CKD",
]


@pytest.mark.parametrize(("text", "betrayal", "why"), MASKED)
def test_a_hidden_name_that_can_mean_nothing_else_is_masked(text, betrayal, why):
    found = find_self_naming(text, STUDY)
    assert [(one.text, one.kind, one.why) for one in found] == [(betrayal, "sure", why)]
    masked = mask(text, STUDY)
    assert masked.text == text.replace(betrayal, MARK)
    assert unmask(masked) == text


@pytest.mark.parametrize(("text", "betrayal", "why"), LISTED)
def test_what_may_be_something_else_is_listed_with_the_reason_and_stays(text, betrayal, why):
    found = find_self_naming(text, STUDY)
    assert [(one.text, one.kind, one.why) for one in found] == [(betrayal, "possible", why)]
    assert mask(text, STUDY).text == text


@pytest.mark.parametrize("text", CLINICAL)
def test_clinical_words_are_neither_masked_nor_listed(text):
    assert find_self_naming(text) == []


BLOCKS = [
    "<think>The user wants a note. I am GPT-4o.</think>",
    "<thinking>\nFirst, the dose.\n</thinking>",
    "<THINK>\nFirst\n</THINK>",
    "&lt;think&gt;First&lt;/think&gt;",
    "[THINK]First[/THINK]",
    "<|channel|>analysis<|message|>First, the dose.<|end|>",
    "<|channel|>analysis<|message|>First<|end|><|start|>assistant<|channel|>final<|message|>",
    "\u25c1think\u25b7First\u25c1/think\u25b7",
    "<seed:think>First</seed:think>",
    "<unused94>thought\nFirst<unused95>",
    "<|begin_of_thought|>First<|end_of_thought|>",
    "<|START_THINKING|>First<|END_THINKING|>",
    "<th\u200bink>First</think>",
    "<reasoning effort='high'>First</reasoning>",
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_reasoning_block_is_masked_whole_and_named_as_such(block):
    text = f"{block}\nPlan: rest."
    masked = mask(text)
    assert masked.text.replace(MARK, "") == "\nPlan: rest."
    assert masked.changes[0].why is Why.REASONING
    assert unmask(masked) == text


def test_reasoning_that_is_all_there_is_or_opened_twice_loses_its_tags():
    text = "<think>Plan: rest.</think>\n"
    masked = mask(text)
    assert masked.text == f"{MARK}Plan: rest.{MARK}\n"
    assert unmask(masked) == text
    assert mask("<think>a<think>b").text == f"{MARK}a{MARK}b"
    assert mask("x <think>a<think>b</think> y").text == f"x {MARK} y"


def test_reasoning_with_one_tag_is_listed_and_the_tag_masked():
    for words, rest in (
        ("Okay, the dose.</think>\nPlan: rest.", "Okay, the dose."),
        ("<think>Okay, the dose", "Okay, the dose"),
    ):
        kinds = {(one.text, one.kind) for one in find_self_naming(words)}
        assert (rest, "possible") in kinds
        assert mask(words).text.replace(MARK, "") == re.sub("</?think>", "", words)


@pytest.mark.parametrize("unit", ["<think>", "GPT-4 ", "</think> "])
def test_a_text_of_nothing_but_marks_takes_no_longer_for_each_than_one_among_words(unit):
    masked = mask(unit * 5_000)
    assert len(masked.changes) == 5_000
    assert unmask(masked) == unit * 5_000
