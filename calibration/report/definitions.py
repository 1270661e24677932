"""The definitions of a report: how its figures are computed, what is excluded, and their origin."""

from collections.abc import Iterator

from calibration.notes import listed
from calibration.protocol import Protocol
from calibration.report.content import Content, Study
from calibration.tables.meanings import TRIED_WORDS

Fact = tuple[str, str]
Z = {
    "paper": (
        "z within each rater over all of the rater's composites in the analysed set (sd with n - 1), "
        "then the mean over the clinicians, and over the jury, of a response: section 4.3.3 of the "
        "MedHELM paper"
    ),
    "published": (
        "the mean of raw composites over the clinicians, and over the jury, of a response, then z of "
        "the two columns over the responses that have both: what the MedHELM paper's Table 2 was "
        "computed with"
    ),
}
ICC = (
    "ICC(C,2) = ICC(3,2), consistency of two columns, the clinicians' and the scorer's (Shrout & "
    "Fleiss 1979; McGraw & Wong 1996). A constant added to one rater changes nothing: points of the "
    "scale are given beside it. It has no lower bound and is never cut at 0."
)
LIKE = (
    "Each clinician is held out in turn: the ICC of the jury with the mean of the other clinicians, "
    "minus that of the held-out clinician with the same mean, on the same responses. Each of the two "
    "ICCs is one figure over all clinicians. Only this comparison supports that a jury agrees no worse "
    "than a clinician does. It is about these clinicians; the interval resamples instances, not "
    "clinicians."
)
MISSING = (
    "A rating that is missing stays missing and is counted. Nothing is filled in. A reading that "
    "lacks a criterion has no composite. "
)
PLACES = (
    ("All figures of this page", "`medjury analyse calibrate --details --json FILE`"),
    ("The ratings themselves, without authors", "`medjury share export FOLDER`"),
    ("Check that nothing was changed outside the record", "`medjury study verify`"),
    (
        "This report",
        "is not a validation record: it is made from the study again each time. The SHA-256 of the "
        "ratings in section 9 shows whether two reports rest on the same ratings.",
    ),
)


def definitions(content: Content) -> list[Fact]:
    """Return the terms of this report and their meaning."""
    return [*_statistics(content), *_exclusions(content), *_origin(content.study)]


def _statistics(content: Content) -> Iterator[Fact]:
    study = content.study
    criteria = (
        f"the criterion {study.criterion} alone" if study.criterion else "the rubric's criteria"
    )
    yield "Composite", f"The mean of a rater's scores of one response over {criteria}."
    yield "z", f"Method {study.method}: {Z[study.method]}."
    yield "ICC", ICC
    yield (
        "Intervals",
        "ICCs, 95 %: the jackknife over instances with all their responses, everything computed anew "
        "without each, on Fisher's z, with Satterthwaite's degrees of freedom. Other intervals: "
        f"{study.reps} bootstrap resamples of instances, percentiles, seed {study.seed}.",
    )
    yield "Like for like", LIKE
    yield "Margin", _margin(content.protocol)
    yield (
        "Clinicians, by pairs",
        f"The mean ICC of pairs that share at least {study.min_shared} responses. It compares one "
        "clinician with one; the jury's row compares it with a mean, which is easier to agree with.",
    )
    yield (
        "p",
        f"Two-sided, by the jackknife over instances. {TRIED_WORDS}",
    )


def _margin(protocol: Protocol | None) -> str:
    """Return the margin of non-inferiority that the verdict takes, or that it takes none."""
    if protocol is None:
        return "None was fixed, so no verdict says that the jury agrees no worse than a clinician."
    return (
        f"{protocol.margin:g} in ICC, fixed in the protocol: for non-inferiority the whole interval of "
        f"like for like must lie above -{protocol.margin:g}."
    )


def _exclusions(content: Content) -> Iterator[Fact]:
    study = content.study
    scored = f"At least {study.needed} of {len(study.jurors)} jurors must have scored a response"
    every = study.needed == len(study.jurors)
    yield "Missing", MISSING + ("The jury needs all its jurors." if every else scored + ".")
    yield (
        "Analysed set",
        "The responses that at least one clinician rated with a composite. A rater whose composites "
        "do not vary has no z: named in the notes and left out, never counted as 0.",
    )
    none = "no instance was left out for its reference"
    marked = "instances were left out whose references jurors had marked; the top of the page says how many"
    yield "References", f"{study.references}: {none if study.references == 'all' else marked}."


def _origin(study: Study) -> Iterator[Fact]:
    for juror in study.jurors:
        model = (
            " ".join(filter(None, (juror.provider, juror.model))) or "ratings imported from a file"
        )
        yield f"Juror {juror.name}", f"{model}{_hash('; settings', juror.sha256)}."
    if study.silent:
        yield "Jurors without a rating", listed(study.silent) + "."
    for rubric in study.rubrics:
        criteria = ", ".join(rubric.criteria)
        yield (
            f"Rubric of {rubric.benchmark}",
            f"{rubric.name} {rubric.version}: {criteria}; scale {rubric.scale}"
            f"{_hash(';', rubric.sha256)}.",
        )
    yield "Ratings", f"{_hash('All ratings,', study.fingerprint) or 'not recorded'}."
    yield "Software", ", ".join(f"{name} {version}" for name, version in study.versions.items())


def _hash(words: str, sha256: str) -> str:
    return f"{words} SHA-256 {sha256}" if sha256 else ""
