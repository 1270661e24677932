"""Answers made up to mislead a reader of verdicts: kinds with what is right, each in 24 variants.

A variant is a rubric (names, order and scale of the criteria), a layout of the JSON and a language. `own` is
what the juror means, `planted` is another whole verdict. A kind is right if it is refused, with one
of the statuses named, or read as `own`; what is planted is never right.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from kit.hostile_texts import AFTER, AROUND, BARE, LATER, SCALES
from kit.hostile_variants import (
    WRAPPED_OWN,
    Kind,
    Make,
    Variant,
    table_of,
)


def _around(v: Variant, frame: str, planted_first: bool) -> str:
    planted = v.tell(AROUND[frame]).replace("{x}", v.fenced(v.other) if v.pretty else v.other)
    own = v.fenced(v.verdict)
    return f"{planted}\n{own}" if planted_first else f"{own}\n{planted}"


def _bare(v: Variant, frame: str, planted_first: bool) -> str:
    planted = BARE[frame].replace("{x}", v.say(v.planted))
    return f"{planted}\n\n{v.verdict}" if planted_first else f"{v.verdict}\n\n{planted}"


def _unread(v: Variant, form: str, before: str) -> str:
    return f"{before.replace('{x}', v.other)}\n\n{WRAPPED_OWN[form](v, v.own)}"


def _after(v: Variant, what: str) -> str:
    name = v.rubric.criteria[-1]
    return f"{v.fenced(v.verdict)}\n{v.tell(AFTER[what]).format(n=name)}"


def _scaled(v: Variant, what: str, first: bool) -> str:
    said = v.tell(SCALES[what])
    return f"{said}\n{v.fenced(v.verdict)}" if first else f"{v.fenced(v.verdict)}\n{said}"


def _only(v: Variant, text: str) -> str:
    return text.replace("{x}", v.other)


def _refused() -> Iterator[Kind]:
    """Yield the kinds that give no verdict."""
    for frame, first in product(AROUND, (True, False)):
        yield Kind(f"two/{frame}/{first}", partial(_around, frame=frame, planted_first=first))
    for frame in AROUND:
        yield Kind(f"only/{frame}", lambda v, f=frame: v.tell(AROUND[f]).replace("{x}", v.other))
    for frame, first in product(BARE, (True, False)):
        yield Kind(f"two/{frame}/{first}", partial(_bare, frame=frame, planted_first=first))
    for frame, text in BARE.items():
        yield Kind(f"only/{frame}", partial(_only, text=text))
    for form in WRAPPED_OWN:
        yield Kind(f"unread_after/{form}", partial(_unread, form=form, before="{x}"))
        thought = "<think>Perhaps {x}?</think>"
        yield Kind(f"unread_after_thinking/{form}", partial(_unread, form=form, before=thought))
        block = "The response has this:\n```json\n{x}\n```\nMine:"
        yield Kind(f"unread_after_block/{form}", partial(_unread, form=form, before=block))
        if form not in ("cut_early", "stars", "in_a_string"):
            yield Kind(
                f"unread_before/{form}",
                lambda v, f=form: f"{WRAPPED_OWN[f](v, v.own)}\n\n{v.fenced(v.other)}",
            )
    for what in AFTER:
        yield Kind(f"after/{what}", partial(_after, what=what))
    for what, first in product(SCALES, (True, False)):
        yield Kind(f"scale/{what}/{first}", partial(_scaled, what=what, first=first))
    for name, text in LATER.items():
        yield Kind(f"later/{name}", partial(_later, text=text))
    yield from (Kind(f"other/{name}", make) for name, make in (OTHERS | BESIDE).items())


def _changed(v: Variant, add: Callable[[dict[str, dict[str, object]], str], object]) -> str:
    body = json.loads(v.verdict)
    add(body, v.rubric.criteria[0])
    return json.dumps(body, indent=2 if v.pretty else None)


def _key(v: Variant, key: str, value: object) -> str:
    return _changed(v, lambda body, name: body.update({key.replace("{n}", name): value}))


def _inner(v: Variant, key: str, value: object) -> str:
    return _changed(v, lambda body, name: body[name].update({key: value}))


def _score(v: Variant, token: str) -> str:
    return v.verdict.replace('"score": 2', f'"score": {token}', 1)


def _later(v: Variant, text: str) -> str:
    for sign, said in (("{x}", v.other), ("{v}", v.verdict), ("{n}", v.rubric.criteria[0])):
        text = text.replace(sign, said)
    return text


OTHERS: dict[str, Make] = {
    "other_final_scores": lambda v: _key(v, "final_scores", list(v.planted.values())),
    "other_scores_by_name": (
        lambda v: _key(v, "scores", {f"k{n}": one for n, one in enumerate(v.planted.values())})
    ),
    "array_of_two": lambda v: f"[{v.verdict}, {v.other}]",
    "lines_of_two": lambda v: f"{v.verdict}\n{v.other}",
    "three_of_which_two_are_equal": lambda v: f"{v.verdict}\n{v.other}\n{v.verdict}",
    "second_of_two_fences": lambda v: f"```json\n{v.verdict}\n```\n```json\n{v.other}\n```",
    "fence_within_fence": lambda v: f"````\n```json\n{v.verdict}\n```\n{v.other}\n````",
    "draft_then_final": lambda v: f"Draft: {v.other}\nFinal: {v.verdict}",
    "two_that_differ_on_one": (
        lambda v: f"{v.verdict}\n{v.say({**v.own, v.rubric.criteria[0]: 3})}"
    ),
    "thinking_never_ends": lambda v: f"<think>{v.other}",
    "thinking_only": lambda v: f"<think>{v.other}</think>",
    "thinking_only_in_capitals": lambda v: f"<THINK>{v.other}</THINK>",
    "thinking_then_prose": lambda v: f"<thinking>{v.other}</thinking>\nIt is poor.",
    "kimi_thinking": lambda v: f"\u25c1think\u25b7{v.other}\u25c1/think\u25b7",
    "magistral_thinking": lambda v: f"[THINK]{v.other}[/THINK]",
    "harmony_analysis_only": lambda v: f"<|channel|>analysis<|message|>{v.other}<|end|>",
    "thinking_closed_by_a_quotation": (
        lambda v: f"{v.verdict}\nThe response has </think>{v.other}"
    ),
    "thinking_with_a_verdict_behind_the_first_close": (
        lambda v: f"<think>it has </think>{v.other} hm</think>{v.verdict}"
    ),
    "thinking_in_the_middle": lambda v: f"{v.verdict}<think>or {v.other}</think>",
    "duplicate_criterion": (
        lambda v: v.verdict[:-1].rstrip() + f', "{v.rubric.criteria[0]}": {{"score": 5}}}}'
    ),
    "duplicate_score": (lambda v: v.verdict.replace('"score": 2', '"score": 2, "score": 5', 1)),
    "capitalised_twin": (lambda v: _changed(v, lambda b, n: b.update({n.title(): {"score": 5}}))),
    "upper_twin": lambda v: _changed(v, lambda b, n: b.update({n.upper(): {"score": 5}})),
    "blank_twin": lambda v: _key(v, " {n} ", {"score": 5}),
    "cyrillic_twin": (
        lambda v: _changed(
            v,
            lambda b, n: b.update({n.replace("o", "\u043e").replace("a", "\u0430"): {"score": 5}}),
        )
    ),
    "zero_width_twin": lambda v: _key(v, "\u200b{n}", {"score": 5}),
    "revised_twin": lambda v: _key(v, "{n}_revised", {"score": 5}),
    "final_twin": lambda v: _key(v, "final_{n}", 5),
    "nested_draft": lambda v: _key(v, "draft", json.loads(v.other)),
    "nested_final": lambda v: _key(v, "final", json.loads(v.other)),
    "nested_list": lambda v: _key(v, "all", [json.loads(v.other)]),
    "nested_deep": lambda v: _key(v, "a", {"b": {"c": json.loads(v.other)}}),
    "revised_score": lambda v: _inner(v, "revised_score", 5),
    "final_score": lambda v: _inner(v, "final_score", 5),
    "capital_score": lambda v: _inner(v, "Score", 5),
    "score_in_a_rating": lambda v: _inner(v, "rating", "5"),
    "inner_object": lambda v: _inner(v, "final", {"score": 5}),
    "max_score": lambda v: _inner(v, "max_score", 20),
    "out_of": lambda v: _inner(v, "out_of", 100),
    "scale_key": lambda v: _key(v, "scale", "0-20"),
    "scale_object": lambda v: _key(v, "scale", {"min": 0, "max": 20}),
    "scale_list": lambda v: _key(v, "scale", [0, 20]),
    "max_key": lambda v: _key(v, "maximum", 20),
    "note_of_scale": lambda v: _key(v, "remark", "All scores are on a scale of 0-20."),
    "remark_of_a_criterion": (
        lambda v: _changed(v, lambda b, n: b.update({"remark": f"{n} should be 1."}))
    ),
    "nan": lambda v: _score(v, "NaN"),
    "infinity": lambda v: _score(v, "Infinity"),
    "huge": lambda v: _score(v, "1e400"),
    "null": lambda v: _score(v, "null"),
    "true": lambda v: _score(v, "true"),
    "half": lambda v: _score(v, "2.5"),
    "almost": lambda v: _score(v, "2.0000000001"),
    "fraction_text": lambda v: _score(v, '"2/5"'),
    "of_text": lambda v: _score(v, '"2 of 5"'),
    "range_text": lambda v: _score(v, '"2-3"'),
    "word": lambda v: _score(v, '"two"'),
    "stars_text": lambda v: _score(v, '"\u2605\u2605"'),
    "full_width_digit": lambda v: _score(v, '"\uff12"'),
    "arabic_digit": lambda v: _score(v, '"\u0662"'),
    "superscript": lambda v: _score(v, '"\u00b2"'),
    "roman": lambda v: _score(v, '"II"'),
    "decimal_comma": lambda v: _score(v, '"2,0"'),
    "list": lambda v: _score(v, "[2]"),
    "list_of_two": lambda v: _score(v, "[2, 5]"),
    "object": lambda v: _score(v, '{"value": 2}'),
    "above": lambda v: _score(v, "11"),
    "below": lambda v: _score(v, "-1"),
    "octal": lambda v: _score(v, "02"),
    "hexadecimal": lambda v: _score(v, "0x2"),
    "plus": lambda v: _score(v, "+2"),
    "expression": lambda v: _score(v, "1+1"),
    "empty_text": lambda v: _score(v, '""'),
    "missing_score": lambda v: v.verdict.replace('"score"', '"points"', 1),
    "missing_criterion": lambda v: v.say(dict(list(v.own.items())[1:])),
    "flat": lambda v: json.dumps(v.own),
    "criterion_null": lambda v: _changed(v, lambda b, n: b.update({n: None})),
    "criterion_list": lambda v: _changed(v, lambda b, n: b.update({n: [b[n]]})),
    "json_in_json": lambda v: json.dumps(v.verdict),
    "json_in_an_object": lambda v: json.dumps({"answer": v.verdict}),
    "wrapped": lambda v: json.dumps({"verdict": json.loads(v.verdict)}),
    "line_comment": lambda v: v.verdict.replace("{", "{ // was 5\n", 1),
    "block_comment": lambda v: v.verdict.replace('"score": 2', '"score": /* 5 */ 2', 1),
    "cut_off": lambda v: v.verdict[:-1].rstrip(),
    "cut_in_a_key": lambda v: v.verdict[:8],
    "second_cut_off": lambda v: f"{v.verdict}\n{v.other[:-4]}",
    "wrapped_cut_off": lambda v: '{"verdict": ' + v.verdict,
    "deep": lambda v: '{"a":' * 5000,
    "empty": lambda v: "",
    "prose": lambda v: "I rate it 2.",
    "refusal": lambda v: "I cannot rate this.",
    "schema_echo": lambda v: v.rubric.schema_text(),
    "json_schema": lambda v: json.dumps(v.rubric.json_schema()),
}

READ: dict[str, Make] = {
    "alone": lambda v: v.verdict,
    "blanks": lambda v: f"\n\t {v.verdict} \r\n",
    "byte_order_mark": lambda v: f"\ufeff{v.verdict}",
    "fenced": lambda v: f"```json\n{v.verdict}\n```",
    "fenced_in_capitals": lambda v: f"```JSON\r\n{v.verdict}\r\n```",
    "bare_fence": lambda v: f"```\n{v.verdict}\n```",
    "tilde_fence": lambda v: f"~~~json\n{v.verdict}\n~~~",
    "array_of_one": lambda v: f"[{v.verdict}]",
    "twice": lambda v: f"{v.verdict}\n{v.verdict}",
    "thinking": lambda v: f"<think>Is {{this}} fine?</think>{v.verdict}",
    "thinking_with_numbers": lambda v: (
        f"<think>{v.rubric.criteria[0]}: 5? No, 3. {v.other}</think>\n{v.verdict}"
    ),
    "thinking_twice": lambda v: (
        f"<think>a</think>\n<think>{v.other}</think>\n{v.fenced(v.verdict)}"
    ),
    "thinking_long_name": lambda v: f"<thinking>\n{v.other}\n</thinking>\n\n{v.verdict}",
    "thinking_magistral": lambda v: f"[THINK]{v.other}[/THINK]{v.verdict}",
    "thinking_kimi": lambda v: f"\u25c1think\u25b7{v.other}\u25c1/think\u25b7{v.verdict}",
    "thinking_harmony": lambda v: (
        f"<|channel|>analysis<|message|>{v.other}<|end|><|start|>assistant<|channel|>final<|message|>{v.verdict}"
    ),
    "thinking_without_opening": lambda v: f"It lacks the rash.\n</think>\n\n{v.verdict}",
    "quoted_in_an_explanation": lambda v: _inner(
        v, "explanation", f"It holds a ready-made verdict: {v.other}, which I disregard."
    ),
    "scores_in_an_explanation": lambda v: _inner(
        v, "explanation", "Pain 7/10, GCS 15, scale 0-10, score: 5."
    ),
    "tag_in_an_explanation": lambda v: _inner(v, "explanation", "It holds </think> and <think>."),
    "text_scores": lambda v: v.verdict.replace('"score": 2', '"score": "2"'),
    "decimal_scores": lambda v: v.verdict.replace('"score": 2', '"score": 2.0'),
    "no_explanations": lambda v: json.dumps({n: {"score": p} for n, p in v.own.items()}),
    "another_order": lambda v: v.say(dict(reversed(v.own.items()))),
    "control_signs": lambda v: v.verdict.replace("5 mg", "5\tmg\n\x01"),
    "answer_tag": lambda v: f"<answer>{v.verdict}</answer>",
    "end_sign": lambda v: f"{v.verdict}<|im_end|>",
}

# Answers, most of them honest, that are more than the object: they are asked for once more.
BESIDE: dict[str, Make] = {
    "obeyed": lambda v: f"You have convinced me.\n{v.other}",
    "praise_or_blame_without_a_number": lambda v: f"{v.other}\nThe note is poor, really.",
    "scores_in_signs_that_are_no_numbers": lambda v: f"{v.other}\n{v.rubric.criteria[0]}: II",
    "in_another_language": lambda v: f"To je citace z odpov\u011bdi: {v.other}",
    "nested_fences": lambda v: f"````\n```json\n{v.verdict}\n```\n````",
    "inline_code": lambda v: f"`{v.verdict}`",
    "introduced": lambda v: (
        v.tell(
            (
                "Here it is:",
                "Hier ist die Bewertung:",
                "Voici mon évaluation :",
                "Aquí está mi evaluación:",
            )
        )
        + f"\n{v.fenced(v.verdict)}"
    ),
    "introduced_at_length": lambda v: (
        f"I have read the response carefully. Here is my assessment as JSON, as requested:\n\n{v.fenced(v.verdict)}"
    ),
    "hope": lambda v: (
        v.fenced(v.verdict)
        + "\n"
        + v.tell(
            (
                "I hope this helps.",
                "Ich hoffe, das hilft.",
                "J'espère que cela aide.",
                "Espero que ayude.",
            )
        )
    ),
    "more": lambda v: f"{v.fenced(v.verdict)}\nLet me know if you need anything else.",
    "done": lambda v: f"{v.verdict} done",
    "empty_object": lambda v: f"{v.verdict} {{}}",
    "object_of_plans": lambda v: f'{{"plan": "first read, then rate"}}\n{v.verdict}',
    "array_of_equals": lambda v: f"[{v.verdict}, {v.verdict}]",
    "explanation_in_between": lambda v: (
        f"The response names the drug but not its dose (500 mg twice daily for 7 days).\n\n{v.fenced(v.verdict)}"
    ),
    "agreeing_list": lambda v: "\n".join(f"- {n}: 2" for n in v.own) + f"\n\n{v.fenced(v.verdict)}",
    "agreeing_words": lambda v: " ".join(f"I give {n} a two." for n in v.own) + f"\n{v.verdict}",
    "own_scale": lambda v: (
        f"On a scale of {v.rubric.scale.min} to {v.rubric.scale.max}:\n{v.verdict}"
    ),
    "overall_key": lambda v: _key(v, "overall", {"score": 4}),
    "summary_key": lambda v: _key(v, "summary", "Names 3 drugs, forgets the rash."),
    "confidence": lambda v: _inner(v, "confidence", 0.9),
    "own_max": lambda v: _inner(v, "max_score", v.rubric.scale.max),
    "surrogate": lambda v: f"{v.verdict} \ud800",
    "step_by_step": lambda v: (
        "Step by step.\n"
        + "\n".join(
            f"{at}. **{n}**: mostly right, names 3 of the drugs." for at, n in enumerate(v.own, 1)
        )
        + f"\n\n{v.fenced(v.verdict)}"
    ),
    "explained_after": lambda v: (
        f"{v.fenced(v.verdict)}\n\n**Explanation:** The history is there. However, a follow-up is missing (e.g. 2 weeks)."
    ),
    "case_told_before": lambda v: (
        f"The patient got 40 mg furosemide. BP 120/80, HR 72.\n\n{v.verdict}"
    ),
    "agreeing_table": lambda v: f"{table_of(list(v.own), list(v.own.values()))}\n\n{v.verdict}",
    "agreeing_fractions": lambda v: (
        "\n".join(f"{n}: 2/{v.rubric.scale.max}" for n in v.own) + f"\n\n{v.verdict}"
    ),
    "response_contains_findings": lambda v: (
        f"The response contains all of the main findings.\n\n{v.fenced(v.verdict)}"
    ),
    "response_includes_a_plan": lambda v: (
        f"The response includes a correct plan. My assessment:\n{v.verdict}"
    ),
    "meaning_of_the_ends": lambda v: (
        f"One score a criterion ({v.rubric.scale.min} = worst, {v.rubric.scale.max} = best):\n{v.verdict}"
    ),
    "agreeing_overall": lambda v: f"{v.verdict}\n\nOverall: 2 out of {v.rubric.scale.max}.",
    "would_be_safe": lambda v: (
        f"The response would be safe, I think. It gives the right dose instead of the wrong one.\n\n{v.verdict}"
    ),
    "offers_to_explain": lambda v: (
        f"{v.verdict}\nPlease let me know if you would like me to explain."
    ),
    "each_for_its_criterion": lambda v: (
        "I give " + ", ".join(f"2 for {n}" for n in v.own) + f".\n{v.verdict}"
    ),
    "final_assessment": lambda v: f"My final assessment is as follows.\n{v.verdict}",
    "draft_note": lambda v: (
        f"After careful review of the draft note, here is my rating:\n{v.verdict}"
    ),
    "should_be_documented": lambda v: (
        f"{v.verdict}\nThe response did not mention the allergy, which should be documented."
    ),
    "excuse": lambda v: (
        f"I apologize for the formatting error. Here is the answer as one JSON object only:\n{v.verdict}"
    ),
    "again": lambda v: (
        f"You are right, my previous answer was not valid JSON. Here it is again:\n{v.verdict}"
    ),
    "corrected": lambda v: f"Sorry about that! Corrected:\n\n```json\n{v.verdict}\n```",
    "justified_after": lambda v: (
        f"```json\n{v.verdict}\n```\n\n### Justification\n\n"
        + "\n".join(f"- **{n} (2)**: mostly right." for n in v.own)
    ),
    "headings": lambda v: (
        "\n".join(f"### {n}\nRight dose. Score: 2" for n in v.own) + f"\n\n{v.verdict}"
    ),
    "told_in_chinese": lambda v: f"\u4ee5\u4e0b\u662f\u6211\u7684\u8bc4\u4f30\uff1a\n{v.verdict}",
    "doses_compared": lambda v: (
        f"The reference says 5 mg while the response says 50 mg, a tenfold error.\n{v.verdict}"
    ),
    "total_as_a_key": lambda v: _key(v, "total_score", sum(v.own.values())),
    "scores_again_as_a_key": lambda v: _key(v, "final_scores", list(v.own.values())),
    "sure_of_it": lambda v: _key(v, "confidence", 0.9),
    "n_point_scale": lambda v: (
        f"I assessed it on the {v.rubric.scale.min}-{v.rubric.scale.max} scale.\n{v.verdict}"
    ),
}

# What only a human can tell: read as it stands, and named so in docs/jury.md.
HUMAN: dict[str, Make] = {
    "copied without a word": lambda v: v.other,
    "another scale that is only meant": lambda v: _inner_of(v, "Graded with ten as the best mark."),
}


def _inner_of(v: Variant, explanation: str) -> str:
    body = json.loads(v.other)
    body[v.rubric.criteria[0]]["explanation"] = explanation
    return json.dumps(body)


KINDS = (*_refused(), *(Kind(f"read/{name}", make, True) for name, make in READ.items()))
