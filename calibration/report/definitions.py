"""The definition box: which numbers these are, what was left out, and what they rest on."""

from collections.abc import Iterator

from calibration.messages.form import listed
from calibration.report.content import Content, Study

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
    "minus that of the held-out clinician with the same mean, on the same responses, each of both one "
    "figure over all clinicians. Only this supports that a jury agrees no worse than a clinician "
    "does. It is of these clinicians; the interval resamples instances, not clinicians."
)
MISSING = (
    "A rating that is missing stays missing and is counted. Nothing is filled in. A reading that "
    "lacks a criterion has no composite. "
)
PLACES = (
    ("All figures of this page", "`medjury calibrate --details --json FILE`"),
    ("The ratings themselves, without authors", "`medjury export FOLDER`"),
    ("Whether anything was changed behind the record's back", "`medjury verify`"),
    (
        "This report",
        "is no validation record: it is made anew from the study whenever it is asked for. The "
        "SHA-256 of the ratings in section 9 tells whether two reports rest on the same ratings.",
    ),
)


def definitions(content: Content) -> list[Fact]:
    """Return the terms and what they mean in this report."""
    return [*_statistics(content.study), *_exclusions(content), *_origin(content.study)]


def _statistics(study: Study) -> Iterator[Fact]:
    what = f"the criterion {study.criterion} alone" if study.criterion else "the rubric's criteria"
    yield "Composite", f"The mean of a rater's scores of one response over {what}."
    yield "z", f"Method {study.method}: {Z[study.method]}."
    yield "ICC", ICC
    yield (
        "Intervals",
        f"Bootstrap 95 %: {study.reps} resamples of instances with all their responses, everything "
        f"computed anew in each, z included; percentile interval; seed {study.seed}. F 95 %: exact "
        "for independent, normal responses.",
    )
    yield "Like for like", LIKE
    yield (
        "Margin",
        "0: the whole interval of like for like must lie above it. No other margin was set.",
    )
    yield (
        "Clinicians, by pairs",
        f"The mean ICC of pairs that share at least {study.min_shared} responses. One against one; "
        "the jury's row is against a mean, which is easier to agree with.",
    )
    yield (
        "p, Holm",
        "Two-sided, from the bootstrap shifted to 0; corrected for all comparisons of juries ever "
        "made on this study.",
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
    kept = "no instance was left out for its reference"
    sound = (
        "instances were left out whose references jurors had marked; the page's head says how many"
    )
    yield "References", f"{study.references}: {kept if study.references == 'all' else sound}."


def _origin(study: Study) -> Iterator[Fact]:
    for one in study.jurors:
        model = " ".join(filter(None, (one.provider, one.model))) or "ratings brought in as a file"
        yield f"Juror {one.name}", f"{model}{_hash('; settings', one.sha256)}."
    if study.silent:
        yield "Asked, and gave no rating", listed(study.silent) + "."
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
