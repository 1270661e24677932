"""Names that are hidden or shortened are masked where sure and listed where doubtful."""

import pytest

from medjury.services.blinding.search import MARK, Why, find_self_naming, mask, unmask

STUDY = ["MyHospital-LM v2", "openai/gpt-4o-2024-08-06", "acme/tonsil-7b-chat"]

MASKED = [
    ("Written with Sonnet 4.5 today.", "Sonnet 4.5", Why.NAME),
    ("Drafted by Opus-4.1.", "Opus-4.1", Why.NAME),
    ("3.5 Sonnet, at your service", "3.5 Sonnet", Why.NAME),
    ("This is Tongyi Qianwen.", "Tongyi Qianwen", Why.NAME),
    ("\u6211\u662f\u901a\u4e49\u5343\u95ee\u3002", "\u901a\u4e49\u5343\u95ee", Why.NAME),
    ("\u6211\u662fChatGPT\u3002", "ChatGPT", Why.NAME),
    ("By Chat\u200bG\u2060PT, checked.", "Chat\u200bG\u2060PT", Why.NAME),
    (
        "By A\u0336n\u0336t\u0336h\u0336r\u0336opic.",
        "A\u0336n\u0336t\u0336h\u0336r\u0336opic",
        Why.NAME,
    ),
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
    (
        "\u4f5c\u4e3a\u4e00\u4e2aAI\u8bed\u8a00\u6a21\u578b\uff0c",
        "\u4e00\u4e2aAI\u8bed\u8a00\u6a21\u578b",
        Why.SAYS,
    ),
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
def test_a_hidden_name_that_can_mean_nothing_else_is_masked(
    text: str, betrayal: str, why: Why
) -> None:
    found = find_self_naming(text, STUDY)
    assert [(one.text, one.kind, one.why) for one in found] == [(betrayal, "sure", why)]
    masked = mask(text, STUDY)
    assert masked.text == text.replace(betrayal, MARK)
    assert unmask(masked) == text


@pytest.mark.parametrize(("text", "betrayal", "why"), LISTED)
def test_what_may_be_something_else_is_listed_with_the_reason_and_stays(
    text: str, betrayal: str, why: Why
) -> None:
    found = find_self_naming(text, STUDY)
    assert [(one.text, one.kind, one.why) for one in found] == [(betrayal, "possible", why)]
    assert mask(text, STUDY).text == text


@pytest.mark.parametrize("text", CLINICAL)
def test_clinical_words_are_neither_masked_nor_listed(text: str) -> None:
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
def test_a_reasoning_block_is_masked_whole_and_named_as_such(block: str) -> None:
    text = f"{block}\nPlan: rest."
    masked = mask(text)
    assert masked.text.replace(MARK, "") == "\nPlan: rest."
    assert masked.changes[0].why is Why.REASONING
    assert unmask(masked) == text


def test_a_reasoning_block_that_is_all_there_is_loses_only_its_tags() -> None:
    text = "<think>Plan: rest.</think>\n"
    masked = mask(text)
    assert masked.text == f"{MARK}Plan: rest.{MARK}\n"
    assert unmask(masked) == text


def test_reasoning_with_one_tag_is_listed_and_the_tag_masked() -> None:
    for text, rest in (
        ("Okay, the dose.</think>\nPlan: rest.", "Okay, the dose."),
        ("<think>Okay, the dose", "Okay, the dose"),
    ):
        kinds = {(one.text, one.kind) for one in find_self_naming(text)}
        assert (rest, "possible") in kinds
        assert mask(text).text.replace(MARK, "") == text.replace("</think>", "").replace(
            "<think>", ""
        )


@pytest.mark.parametrize("unit", ["<think>", "GPT-4 ", "</think> "])
def test_a_text_of_nothing_but_marks_takes_no_longer_for_each_than_one_among_words(
    unit: str,
) -> None:
    masked = mask(unit * 5_000)
    assert len(masked.changes) == 5_000
    assert unmask(masked) == unit * 5_000


def test_reasoning_that_is_opened_twice_and_never_closed_loses_both_tags() -> None:
    assert mask("<think>a<think>b").text == f"{MARK}a{MARK}b"
    assert mask("x <think>a<think>b</think> y").text == f"x {MARK} y"
