"""What every way in shares: the rubric of a benchmark that is new, and masking what names an author."""

from sqlalchemy import Engine

from annotate.blind import mask
from data.person import Person
from data.rubric import Rubric, read_rubric
from data.rubrics import known_as
from data.study.masks import MaskedText, names_to_mask, unsearched_texts
from data.study.steering import mask_found

GENERIC = "generic"


def rubric_for(benchmark: str) -> Rubric:
    """Return the shipped rubric of that benchmark, by HELM's or the paper's name, or the generic one."""
    bare = {_bare(name): rubric for name, rubric in known_as().items()}
    return read_rubric(bare.get(_bare(benchmark), GENERIC))


def _bare(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum())


def mask_new(engine: Engine, person: Person) -> int:
    """Mask what surely names an author in the responses not yet searched; return how many were.

    Page by page, each kept at once: a search that is cut short goes on where it ended.
    """
    names, done = names_to_mask(person, engine), 0
    for page in unsearched_texts(person, engine):
        masked_texts = [(text, mask(text.text, names)) for text in page]
        hits = [
            MaskedText(
                text.response, masked.text, [(at.start, at.end, at.text) for at in masked.changes]
            )
            for text, masked in masked_texts
            if masked.changes
        ]
        done += mask_found(person, engine, hits, page[-1].response)[0]
    return done
