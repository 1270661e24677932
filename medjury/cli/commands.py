"""The table of commands: a name, and its function as "module:name" under `medjury.cli`."""

from collections.abc import Iterator

PROGRAM = "medjury"
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
COMMANDS = {
    "check": "check:check",
    "demo": "demo:demo",
    "serve": "people:serve",
    "status": "status:status",
    "study import": "imports:import_",
    "study pairs": "imports:pairs",
    "study describe": "study:describe",
    "study plan": "study:plan",
    "study protocol set": "study:set_protocol",
    "study protocol check": "study:check_protocol",
    "study settings": "study:settings",
    "study rubric show": "rubrics:show_",
    "study rubric add": "rubrics:add",
    "study points": "study:points",
    "study lock": "record:lock",
    "study blind": "blinding:blind",
    "study unblind": "record:unblind",
    "study verify": "record:verify",
    "study backup": "record:backup",
    "rate people list": "people:list_",
    "rate people add": "people:add",
    "rate people end": "people:end",
    "rate people change": "people:change",
    "rate people join": "people:join",
    "rate assign": "assignments:assign",
    "rate training": "assignments:training",
    "rate remind": "people:remind",
    "rate flags": "assignments:flags",
    "rate adjudicate": "assignments:adjudicate",
    "rate ratings": "imports:ratings",
    "rate withdraw": "people:withdraw",
    "jury panels": "panels:panels",
    "jury run": "jury:run",
    "jury improve": "improve:improve",
    "jury probe": "panels:probe",
    "jury missing": "jury:missing",
    "jury references": "jury:references",
    "analyse calibrate": "agreement:calibrate",
    "analyse measure": "metrics:measure",
    "analyse juries": "analyse:juries",
    "analyse models": "analyse:models",
    "analyse predict": "analyse:predict",
    "analyse route": "analyse:route",
    "analyse errors": "analyse:errors",
    "analyse monitor": "analyse:monitor",
    "share export": "share:export",
    "share rubric": "share:rubric",
    "share dossier": "share:dossier",
}


def members(path: str) -> Iterator[str]:
    """Yield the first words after a group's path, in the table's order; the path of all is ""."""
    begin = f"{path} " if path else ""
    yield from dict.fromkeys(
        name.removeprefix(begin).partition(" ")[0] for name in COMMANDS if name.startswith(begin)
    )
