"""A study with some of everything, by three models, and the same study with its authors permuted."""

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from sqlalchemy import Connection, Engine, text
from sqlmodel import Session, select

from data.card import Marked, Reply
from data.database import open_study
from data.person import OPERATOR
from data.schema import Rater, Role
from data.study.assignments import Slot, assign, design_items
from data.study.pairs import pairs_frame
from data.study.people import add_people, invite
from data.study.ratings import submit
from data.study.room import next_task
from kit.commands import call
from kit.study_place import copy_study

Permute = Callable[[list[str]], list[str]]
CRITERIA = ("accuracy", "completeness", "clarity")
MODELS = ("gpt-4o-2024-08-06", "claude-3-7-sonnet", "llama-3.3-70b")
UNHEARD = dict(zip(MODELS, ("zz-lantern", "aa-heron", "mm-quarry"), strict=True))
# What a response of each says of itself, masked in what is shown; of two words each, so that metrics,
# which read the text as it is stored, stay the same; no number is that of an instance.
NAMED = ("GPT-5", "Grok-4", "Qwen-3", "Grok-3", "GPT-4", "Phi-4")
SELF = dict(zip((*MODELS, *UNHEARD.values()), NAMED, strict=True))
JURORS = ("medhelm-gpt", "medhelm-llama", "medhelm-claude")  # each of an author's family
DOCTORS = ("dr_a", "dr_b", "dr_c")
INSTANCES = 5
RANDOM = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?"), "<time>"),
    (re.compile(r"(?<![.\w])[0-9a-f]{12,}\b"), "<digest>"),
    (re.compile(r'"+(?:columns|each|token)"+:\s*"+[0-9a-f]*"+'), "<digest>"),
    (re.compile(r'"+[0-9A-Z]{4}"+'), "<way in>"),
    (re.compile(r"(?<=,)'?[\w-]{12}'?(?=,)"), "<assignment>"),
    (re.compile(r"\bsurvey-[\w-]{16}(?=,)"), "<survey>"),
    (re.compile(r"\b[0-9A-Z]{4}(-[0-9A-Z]{4}){2,}\b", re.IGNORECASE), "<code>"),
    (re.compile(r'"bytes": \d+'), "<bytes>"),  # of files that are compared, a ' before some codes
    (re.compile(r"(?m)^events \d+$"), "<events>"),  # a run stores in as many steps as time allows
)
WORDS = ("rest", "fever", "cough", "dose", "daily", "clinic", "review", "scan", "none", "mild")


def shuffled(models: list[str]) -> list[str]:
    """Give every response an author at random; as many to each as before."""
    return Random(7).sample(models, len(models))  # noqa: S311 - made up


def turned(models: list[str]) -> list[str]:
    """Give each author the responses of the next."""
    return [MODELS[(MODELS.index(one) + 1) % len(MODELS)] for one in models]


def unheard(models: list[str]) -> list[str]:
    """Give every response an author at random, of names that nobody has heard of."""
    mixed = Random(8).sample(models, len(models))  # noqa: S311 - made up
    return [UNHEARD[one] for one in mixed]


def done(url: str, *arguments: str) -> str:
    """Run one command, which must succeed, and return its output."""
    code, out, err = call(url, *arguments)
    assert code == 0, (arguments, out, err)
    return out


def responses() -> Iterator[dict[str, str]]:
    """Yield the rows of a file of responses: two benchmarks, three models an instance."""
    draw = Random(3)  # noqa: S311 - made up
    for benchmark in ("visits", "letters"):
        for i in range(INSTANCES):
            reference = f"Note {i}: " + " ".join(draw.choices(WORDS, k=8))
            for k, model in enumerate(MODELS):
                said = " ".join(draw.choices(WORDS, k=draw.randint(4, 30)))
                named = f"As {SELF[model]} I advise: " if i == 2 or (i, k) == (1, 1) else ""
                about = "Claude came with his mother. " if (i, k) == (3, 2) else ""
                yield {
                    "instance_id": f"i{i}",
                    "benchmark": benchmark,
                    "context": f"Patient {i} of {benchmark} coughs.",
                    "prompt": "Write a note.",
                    "reference": reference,
                    "response_id": f"{benchmark[0]}{i}-{draw.getrandbits(24)}",
                    "model": model,
                    "response": f"{named}{about}{said}.",
                    "group:language": ("de", "en")[(i + k) % 2],
                }


def write_csv(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, rows[0].keys())
        lines.writeheader()
        lines.writerows(rows)
    return path


def ratings(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return clinicians' and jurors' ratings; each juror leaves out texts that it has chosen."""
    draw = Random(5)  # noqa: S311 - made up
    rated = []
    for n, row in enumerate(rows):
        true = draw.uniform(1.5, 4.5)
        raters = [(who, "clinician") for k, who in enumerate(DOCTORS) if n % 3 != k]
        raters += [(who, "juror") for k, who in enumerate(JURORS) if n % 11 != k]
        for who, kind in raters:
            scores = {
                name: str(min(5, max(1, round(true + draw.gauss(0, 0.8))))) for name in CRITERIA
            }
            rated.append({"response_id": row["response_id"], "rater": who, "kind": kind} | scores)
    return rated


def make(folder: Path) -> str:
    """Make the study in a folder; return where it is."""
    url, rows = f"sqlite:///{folder}/study.db", list(responses())
    done(url, "study", "import", str(write_csv(folder / "responses.csv", rows)))
    done(url, "rate", "ratings", str(write_csv(folder / "ratings.csv", ratings(rows))))
    done(url, "analyse", "measure", "rouge-l")
    done(url, "study", "settings", "adjudicate_from", "2")
    done(url, "jury", "run", "simulated", "--benchmark", "letters")
    done(url, "study", "pairs", "letters", "--into", "pairs", "--number", "8")
    _compare(url, folder)
    engine = open_study(url)
    _people(engine)
    engine.dispose()
    done(url, "analyse", "calibrate", "--jurors", ",".join(JURORS), "--reps", "5", "--freeze")
    return url


def _compare(url: str, folder: Path) -> None:
    """Let two doctors and the simulated jury judge the pairs."""
    engine = open_study(url)
    names = [str(name) for name in pairs_frame(engine)["pair_id"]]
    engine.dispose()
    given = [
        {"pair_id": name, "rater": who, "kind": "clinician", "preference": str((n * k) % 5 - 2)}
        for n, name in enumerate(names)
        for k, who in enumerate(DOCTORS[:2], 1)
    ]
    done(url, "rate", "ratings", str(write_csv(folder / "preferences.csv", given)))
    done(url, "jury", "run", "simulated", "--benchmark", "pairs")


def _people(engine: Engine) -> None:
    """Let a clinician rate in the rating room, with a flag, and add who steers."""
    add_people(OPERATOR, engine, ["Rita"], Role.RESEARCHER)
    add_people(OPERATOR, engine, ["Carla"], Role.COORDINATOR)
    invite(engine, ["dr_z"])
    assign(engine, [Slot("dr_z", n, n) for n in range(1, 5)], seed=0, per_response=1)
    with Session(engine) as session:
        rater = session.exec(select(Rater.id).where(Rater.handle == "dr_z")).one()
    for number in range(3):
        task = next_task(engine, rater or 0).task
        assert task is not None
        spans = (Marked("accuracy", 0, 4, "wrong"),)
        flags = ("the context is another patient's",) if number else ()
        reply = Reply(dict.fromkeys(CRITERIA, 2 + number), {}, "of it all", spans, flags)
        submit(engine, rater or 0, task.card.code, reply, 5.0)


def permuted(url: str, folder: Path, permute: Permute) -> str:
    """Copy a study and give its responses other authors, behind the record's back.

    A response that names itself then names its other author.
    """
    copy = f"sqlite:///{folder}/study.db"
    copy_study(url, copy)
    engine = open_study(copy)
    with engine.begin() as connection:
        known = connection.execute(text("SELECT response, model FROM authorship ORDER BY response"))
        keys, models = zip(*known.all(), strict=True)
        for key, model in zip(keys, permute(list(models)), strict=True):
            change = "UPDATE authorship SET model = :model WHERE response = :key"
            connection.execute(text(change), {"model": model, "key": key})
        for key, before, after in zip(keys, models, permute(list(models)), strict=True):
            _rename_self(connection, key, SELF[before], SELF[after])
    assert {one.model for one in design_items(engine)} == {""}
    engine.dispose()
    return copy


def _rename_self(connection: Connection, key: int, before: str, after: str) -> None:
    """Have a response that names itself name another, with its masks where that then stands."""
    values = {"key": key, "before": before, "after": after, "more": len(after) - len(before)}
    for change in (
        "UPDATE response SET text = replace(text, :before, :after) WHERE id = :key",
        'UPDATE mask SET text = :after, "end" = "end" + :more WHERE response = :key AND text = :before',
    ):
        connection.execute(text(change), values)


def plain(printed: str, folder: Path) -> str:
    """Return what was said without its folder, and without what is random or the time."""
    printed = printed.replace(str(folder), "<folder>")
    for pattern, word in RANDOM:
        printed = pattern.sub(word, printed)
    return printed
