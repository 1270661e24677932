"""The table of commands: a row says a command's name, its place and an example."""

from collections.abc import Iterator
from typing import NamedTuple

PROGRAM = "medjury"


class Command(NamedTuple):
    """One command.

    Attributes
    ----------
    name
        Its words after `medjury`, such as "rate people list".
    place
        Its function, "module:name" under `medjury.cli`.
    about
        The first line of its help; equal to that of its docstring.
    example
        What follows its name in the example that its help ends with.
    """

    name: str
    place: str
    about: str
    example: str


GROUPS = {
    "study": "Set up, freeze, check and copy a study.",
    "study protocol": "Fix before the rating what the study is to show, and check whether it does.",
    "study rubric": "Rubrics: the criteria, scales and prompts that clinicians and jurors share.",
    "rate": "Clinicians: who rates what, their training, their differences and flags.",
    "rate people": "People who may sign in, and how.",
    "jury": "Panels of language models: run them, test their jurors, list what is missing.",
    "analyse": "Agreement with the clinicians, the choice of a jury, the models compared.",
    "share": "Write files for others: the study as CSV, a validated rubric for another tool.",
}

COMMANDS = (
    Command(
        "demo",
        "demo:demo",
        "Make a demo study with simulated raters, print the agreement, serve the pages.",
        "--no-serve",
    ),
    Command("serve", "people:serve", "Serve the pages of clinicians and researchers.", "--create"),
    Command("status", "status:status", "Say where the study stands and what to do next.", ""),
    Command(
        "study import",
        "import_commands:import_",
        "Import responses with their instances; repeating it changes nothing.",
        "responses.csv --benchmark visits",
    ),
    Command(
        "study describe",
        "study_setup:describe",
        "Show or set what clinicians read about the study: purpose, contact, consent, guideline.",
        "study.toml",
    ),
    Command(
        "study plan",
        "planning:plan",
        "Plan the size of a study: responses and clinicians for a given precision.",
        "--icc 0.7 --width 0.2",
    ),
    Command(
        "study protocol set",
        "study_setup:set_protocol",
        "Fix margin, jury and limits before clinicians rate: what is fixed later only explores.",
        "--margin 0.3 --jurors gpt,oss",
    ),
    Command(
        "study protocol show",
        "study_setup:show_protocol",
        "Show the protocol and when it was fixed.",
        "",
    ),
    Command(
        "study protocol check",
        "study_setup:check_protocol",
        "Analyse the study as its protocol says; exit 1 unless it shows what it is to show.",
        "--reps 200",
    ),
    Command(
        "study settings",
        "study_setup:settings",
        "Show the settings of the study, or change one.",
        "adjudicate_from 2",
    ),
    Command(
        "study rubric list",
        "rubrics:list_",
        "List the rubrics that ship with medjury, and which each benchmark of the study is rated on.",
        "",
    ),
    Command(
        "study rubric show",
        "rubrics:show_",
        "Show a rubric: criteria, anchors of the scale, and the jurors' prompt.",
        "generic",
    ),
    Command(
        "study rubric add",
        "rubrics:add",
        "Check your own rubric, or read those of a HELM installation, and store them in the study.",
        "our_rubric",
    ),
    Command(
        "study points",
        "points:points",
        "Have a benchmark rated by points of the case; without a file show points and agreement on them.",
        "points.csv --benchmark visits",
    ),
    Command(
        "study taxonomy",
        "taxonomy:taxonomy",
        "Show the taxonomy of tasks, and how many benchmarks stand in each part of it.",
        "",
    ),
    Command(
        "study lock",
        "record:lock",
        "Freeze the study: no ratings, imports or assignments until it is reopened.",
        "--who dr_lee",
    ),
    Command(
        "study blind",
        "blinding:blind",
        "List text that may name a response's author; mask it or leave it.",
        "--list",
    ),
    Command(
        "study unblind",
        "record:unblind",
        "Print who wrote which response; recorded, and stated in every later report.",
        '--reason "rating has ended" --out authors.csv',
    ),
    Command(
        "study verify",
        "record:verify",
        "Check the study against its audit record, or a bundle against the study; exit 1 on findings.",
        "",
    ),
    Command(
        "study backup",
        "moving:backup",
        "Write the whole study to a new SQLite file, or into an empty database, and check it.",
        "backup.db",
    ),
    Command(
        "rate people list",
        "people:list_",
        "List everybody who may sign in: role, progress, last activity, way in, consent.",
        "",
    ),
    Command(
        "rate people add",
        "people:add",
        "Add people and print a sign-in code or an invitation link for each.",
        "dr_lee --role coordinator",
    ),
    Command(
        "rate people renew",
        "people:renew",
        "Give a person a new code or link; old ones and open sessions end.",
        "dr_lee",
    ),
    Command(
        "rate people end",
        "people:end",
        "End a person's access and sessions at once; their ratings stay.",
        "dr_lee",
    ),
    Command(
        "rate people change",
        "people:change",
        "Set or remove a person's e-mail address or specialty; sessions opened with an old address end.",
        "dr_a --email dr_a@hospital.example --specialty cardiology",
    ),
    Command(
        "rate assign",
        "assignments:assign",
        "Assign responses to clinicians; new clinicians get a sign-in code.",
        "--raters raters.txt --per-response 2",
    ),
    Command(
        "rate training",
        "assignments:training",
        "Import expert scores for the training round, or show how clinicians stand in it.",
        "experts.csv",
    ),
    Command(
        "rate remind",
        "people:remind",
        "List clinicians with open work and no recent activity; print or send reminders.",
        "",
    ),
    Command(
        "rate flags",
        "assignments:flags",
        "List the flags that clinicians raised, or answer one.",
        "",
    ),
    Command(
        "rate adjudicate",
        "assignments:adjudicate",
        "List responses on which clinicians differ, and assign a reading that settles them.",
        "",
    ),
    Command(
        "rate ratings",
        "import_commands:ratings",
        "Import ratings made elsewhere: by clinicians, jurors or metrics; also REDCap and MedHELM.",
        "ratings.csv",
    ),
    Command(
        "jury panels",
        "panels:panels",
        "List the panels that ship with medjury and those in this folder, with models and prices.",
        "",
    ),
    Command(
        "jury run",
        "jury:run",
        "Have every juror of a panel rate what it has not rated yet; exit 1 if ratings are missing.",
        "simulated",
    ),
    Command(
        "jury improve",
        "improve:improve",
        "Let a jury learn from what clinicians said; exit 1 if it stopped before its end.",
        "simulated --rounds 1",
    ),
    Command(
        "jury probe",
        "panels:probe",
        "Test which settings each juror supports and whether it is fit to judge.",
        "simulated",
    ),
    Command(
        "jury missing",
        "jury:missing",
        "List missing verdicts with the last reason, and what all calls have cost.",
        "",
    ),
    Command(
        "jury references",
        "references:check_references_of",
        "Ask every juror, once per instance, whether the reference states facts its source lacks.",
        "simulated",
    ),
    Command(
        "analyse calibrate",
        "agreement:calibrate",
        "Compare the jury, its jurors and metrics with the clinicians: the agreement table.",
        "--reps 200",
    ),
    Command(
        "analyse measure",
        "metrics:measure",
        "Score responses by metrics: against references, or answers by their key as HELM does.",
        "rouge-l",
    ),
    Command(
        "analyse juries",
        "juries:juries",
        "Rank every possible jury of the jurors that have rated, corrected for having chosen the best of many.",
        "--reps 200",
    ),
    Command(
        "analyse models",
        "models:models",
        "Compare the models: win rates, mean scores, categories, cost. Unblinds.",
        '--reps 200 --unblind --reason "rating has ended"',
    ),
    Command(
        "analyse predict",
        "predict:predict",
        "Predict clinicians' scores of responses they did not rate, from a validated jury.",
        "--csv predictions.csv",
    ),
    Command(
        "analyse route",
        "route:route",
        "Say which responses the jury may pass and which a clinician must read, with a bound that holds.",
        "--at-most 3 --bound 0.3 --csv routes.csv",
    ),
    Command(
        "analyse errors",
        "errors:errors",
        "Show which errors clinicians mark, and the worst and most disputed responses in their words.",
        "--benchmark visits --per-group 3",
    ),
    Command(
        "analyse monitor",
        "monitor:monitor",
        "Follow the jury's agreement with clinicians over time; exit 1 when it has fallen.",
        "--reps 200",
    ),
    Command(
        "share export",
        "export:export",
        "Write the study as CSV with a data dictionary; authors only on request.",
        "study_files",
    ),
    Command(
        "share rubric",
        "rubrics:export",
        "Write a rubric, its jury and its validation for the tool that runs evaluations.",
        "generic --to medjury --out bundle --panel simulated --reps 200",
    ),
    Command(
        "share dossier",
        "dossier:dossier",
        "Fill in a reporting guideline from the study: a methods section, and each item with its evidence.",
        "--to tripod-llm --out dossier.html --reps 200",
    ),
)

BY_NAME = {row.name: row for row in COMMANDS}


def members(path: str) -> Iterator[str]:
    """Yield the first words after a group's path, in the table's order; the path of all is ""."""
    begin = f"{path} " if path else ""
    yield from dict.fromkeys(
        name.removeprefix(begin).partition(" ")[0] for name in BY_NAME if name.startswith(begin)
    )
