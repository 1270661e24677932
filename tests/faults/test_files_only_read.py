"""Every file that is written, of a study whose every name and text is hostile, in a reader of its format.

A reader finds each text as it went in, or visibly escaped, and nothing that it would act on. Tools that
take long to install are in `test_way_back.py`.
"""

import csv
import html
import json
import re
import shutil
import subprocess
import tomllib
import zipfile
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unicodedata import category
from xml.etree import ElementTree

import pytest
import yaml
from kit.exported_panels import RECORD
from kit.hostile_corpus import HALF, NUL, SECRET, trap
from kit.hostile_corpus import UNSEEN as CONTROLS
from kit.scores import study as little_study
from kit.studies import content_of
from markdown_it import MarkdownIt
from sqlalchemy import text

from calibration.notes import note
from calibration.report import charts
from calibration.report.page import page
from calibration.scope import AgreementRow
from calibration.shared_notes import ALONE_HAS_CRITERION
from calibration.writers import agreement_table, latex, markdown
from data.database import open_study
from data.errors import BadFile
from data.importers.redcap import forms
from data.rubric import Criterion, Rubric, read_rubric, rubric_toml
from data.safe_text import UNSEEN, unguarded, visible
from data.study.frames import ratings_frame
from jury.exports import bundle, helm, scorers
from jury.exports.bundle import Export, ExportRow, write_folder
from jury.panel import Panel
from medjury.services.redcap import choices, dictionary

FORMULA = tuple("=+-@\t\r")  # what a spreadsheet computes begins with one
GENERIC = read_rubric("generic")
READ = MarkdownIt("gfm-like", {"html": True, "linkify": False})
INERT = {"text", "softbreak", "hardbreak", "inline", "code_inline", "fence", "heading", "paragraph"}
INERT |= {"table", "thead", "tbody", "tr", "th", "td", "bullet_list", "list_item", "strong", "em"}
PDFLATEX = shutil.which("pdflatex") or ""
CRITERIA = ("accuracy", "completeness", "clarity")


@pytest.fixture
def laid(tmp_path):
    with trap(tmp_path) as laid:
        yield laid
        assert laid.sprung == []


def table_of(laid):
    """Return the rows of an agreement table: each name is benchmark, juror, clinician and in a note."""

    def line(name: str) -> AgreementRow:
        notes = (note(*ALONE_HAS_CRITERION, benchmarks=(name,)),)
        return AgreementRow(name, f"juror:{name}", n_responses=3, notes=notes)

    return [line(one) for one in [*laid.names(), NUL, HALF]]


def hostile_rubric(laid):
    """Return a rubric whose every free text is hostile, with a criterion for each text."""
    texts = laid.texts()
    criteria = tuple(
        Criterion(name=f"c{place}", question=one, anchors=dict.fromkeys(range(1, 6), one))
        for place, one in enumerate(texts)
    )
    told = {"version": "\n".join(texts), "audience": " ".join(texts), "criterion": criteria}
    return Rubric(**GENERIC.model_dump(exclude={"criterion", "version", "audience"}), **told)


def hostile_panel(laid, place="https://api.openai.com/v1"):
    """Return jurors whose model and family are hostile, by names that lead out of a folder."""
    one = {"provider": "openai", "base_url": place, "api_key_env": "OPENAI_API_KEY"}
    names = ("..", ".", "__proto__", *(f"j{place}" for place in range(len(laid.names()) - 3)))
    jurors = [
        one | {"name": name, "model": text, "family": text}
        for name, text in zip(names, laid.names(), strict=True)
    ]
    return Panel.model_validate({"name": "__init__", "juror": jurors})


def shown(source):
    """Return what a reader of Markdown sees; fail on what it would act on."""
    found: list[str] = []
    blocks = READ.parse(source)
    for token in [*blocks, *(one for block in blocks for one in block.children or ())]:
        kind = token.type.removesuffix("_open").removesuffix("_close")
        assert kind in INERT, f"{kind}: {token.content[:80]!r} {token.map}"
        if kind in ("text", "code_inline", "fence"):
            found.append(token.content)
    return "\n".join(found)


def test_markdown_shows_every_name_as_it_is_and_has_no_link_picture_list_or_html(laid):
    seen = shown(markdown(agreement_table(table_of(laid), "how")))
    assert [one for one in laid.names() if visible(one) not in seen] == []


def test_a_bundles_page_shows_every_text_and_has_no_link_picture_or_html(laid):
    given = Export(hostile_rubric(laid), hostile_panel(laid), (), RECORD)
    seen = shown(bundle.write(given)["bundle.md"])
    assert [one for one in laid.names() if visible(one) not in seen] == []


def test_a_dossier_shows_every_name_and_has_no_link_picture_or_html(
    run, engine, write, tmp_path, laid
):
    whole(run, write, laid)
    call = ("share", "dossier", "--to", "grras", "--reps", "20", "--out", str(tmp_path / "m.md"))
    assert run(*call)[0] == 0
    seen = shown((tmp_path / "m.md").read_text("utf-8"))
    assert [one for one in hostile_benchmarks(laid) if visible(one) not in seen] == []


def tex_words(source):
    """Return what a strict reader of LaTeX sees outside comments; fail on any command but ours."""
    ours = {"begin", "end", "centering", "caption", "toprule", "midrule", "bottomrule", "textit"}
    ours |= {"multicolumn", "textbackslash", "textasciitilde", "textasciicircum", "textless"}
    ours |= {"textgreater", "textbar", "textquotedbl", "textasciigrave"}
    body = "\n".join(line for line in source.split("\n") if not line.startswith("%"))
    assert {*re.findall(r"\\([A-Za-z]+)", body)} <= ours
    assert {*re.findall(r"\\([^A-Za-z])", body)} <= set("{}$&%#_,\\")
    plain = re.sub(r"\\(?:[A-Za-z]+|[^A-Za-z])", "", body).replace("$-$", "")
    assert not set("%#_~^$") & {*plain}
    assert not [one for one in body if category(one) in UNSEEN and one != "\n"]
    return body


def test_latex_holds_no_command_of_a_name_and_no_sign_that_nobody_sees(laid):
    body = tex_words(latex(agreement_table(table_of(laid), "how")))
    assert ("\\textbackslash{}input\\{" in body, "U+202E" in body) == (True, True)


@pytest.mark.slow
@pytest.mark.skipif(not PDFLATEX, reason="pdflatex is not installed")
def test_pdflatex_opens_and_runs_nothing_though_it_may(laid, tmp_path):
    rows = [one for one in table_of(laid) if one.benchmark.isascii()]
    table = latex(agreement_table(rows, "how"))
    head = "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs}"
    (tmp_path / "t.tex").write_text(f"{head}\\begin{{document}}\n{table}\\end{{document}}\n")
    done = subprocess.run(
        [PDFLATEX, "-shell-escape", "-halt-on-error", "-interaction=nonstopmode", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "t.log").read_text("latin-1")
    assert "secret" not in log.replace("\n", "").partition("Overfull")[0]
    assert (SECRET in log, "runsystem" in log) == (False, False)


@pytest.mark.e2e
def test_a_report_opened_in_a_browser_runs_nothing_asks_nobody_and_shows_every_name(
    browser, laid, tmp_path
):
    names = hostile_benchmarks(laid)
    scores = little_study(benchmarks=tuple(names), n=12)
    raters = dict(zip(("gpt", "dr1"), ("<img src=x>&", names[0]), strict=True))
    ratings = scores.ratings.assign(rater=scores.ratings["rater"].replace(raters))
    (tmp_path / "r.html").write_text(page(content_of(replace(scores, ratings=ratings))), "utf-8")
    context = browser.new_context(bypass_csp=False)
    opened, asked, said = context.new_page(), [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("dialog", lambda dialog: said.append(dialog.message))
    opened.goto((tmp_path / "r.html").as_uri())
    text = " ".join(opened.locator("body").inner_text().split())
    assert (asked, said) == ([(tmp_path / "r.html").as_uri()], [])
    foreign = "script, img, iframe, object, embed, base, link, form, [onload], [onerror], image"
    for element in (foreign, "a[href]:not([href^='#'])"):
        assert opened.locator(element).count() == 0
    context.close()
    for one in names:
        assert " ".join(one.split()) in text, one


def hostile_benchmarks(laid):
    """Return a name of each kind; as many as a study's figures are computed for in a moment."""
    parts = ("<script>", "![p]", "{{ 7", "file://", "\\input", "=cmd")
    parts += ("signal", "| a | b", "O'Brien")
    return [next(one for one in laid.names() if part in one) for part in parts]


def hostile_charts(laid):
    """Return charts in which every name is hostile, by what draws them."""
    names = [*CONTROLS, NUL, "constructor", "__proto__", *hostile_benchmarks(laid), *laid.names()]
    made = {"kind": "jury", "value": 0.5, "low": 0.2, "high": 0.8}
    figures = {"role": "watched", "too_few": False, "icc": 0.5, "low": 0.2, "high": 0.8}
    labelled = [made | {"label": one} for one in dict.fromkeys(names)]
    watched = [SimpleNamespace(period=one, **figures) for one in names]
    return {
        "intervals": charts.chart_intervals(labelled, "t"),
        "periods": charts.chart_periods(watched, 0.4, 0.5),
    }


@pytest.mark.parametrize("name", ["intervals", "periods"])
def test_a_chart_is_drawn_of_hostile_names_as_text_and_its_file_is_xml_that_loads_nothing(
    laid, name
):
    drawn = charts.svg(hostile_charts(laid)[name])
    elements = [*ElementTree.fromstring(drawn).iter()]  # noqa: S314 our own
    kinds = {one.tag.rpartition("}")[2] for one in elements}
    shapes = {"svg", "g", "path", "text", "tspan", "rect", "line", "defs", "clipPath"}
    assert kinds <= shapes | {"linearGradient", "stop"}
    for one in elements:
        for key, value in one.attrib.items():
            assert not key.rpartition("}")[2].startswith("on")
            assert "href" not in key or value.startswith("#")
            assert "url(" not in value or "url(#" in value


def test_no_name_stands_in_a_chart_where_vega_reads_an_expression_or_an_address(laid):
    acted_on = {"signal", "expr", "href", "url", "calculate", "filter", "labelExpr", "test"}
    acted_on.add("field")
    names = {*laid.names(), *map(visible, laid.names())}

    def walk(part: Any, key: str = "") -> None:
        for inner, one in part.items() if isinstance(part, dict) else enumerate(part):
            if isinstance(one, dict | list):
                if inner != "data":
                    walk(one, str(inner))
            elif str(inner) in acted_on:
                assert one not in names, (key, inner, one)

    for chart in hostile_charts(laid).values():
        walk(chart.to_dict())


def test_a_rubrics_toml_gives_back_each_text(laid):
    rubric = hostile_rubric(laid)
    body = tomllib.loads(rubric_toml(rubric))
    assert body["version"] == rubric.version
    assert [one["question"] for one in body["criterion"]] == laid.texts()
    assert [one["anchors"]["1"] for one in body["criterion"]] == laid.texts()


def test_redcaps_labels_and_choices_hold_no_html_piping_or_separator_of_a_text(laid):
    rubric = hostile_rubric(laid)
    for one in rubric.criterion:
        points = choices(one, rubric).split("|")
        assert [point.strip().partition(",")[0] for point in points] == list("12345")
        assert not set("<>[\n\r") & {*choices(one, rubric)}
        words = html.unescape(points[0].partition(": ")[2]).split()
        assert words == one.anchors[1].replace("|", "/").split()
    for row in dictionary(forms([rubric])):
        assert not set("<>[\n\r") & {*row[4]}
        assert not row[4].startswith(FORMULA)
        assert row[17] in ("", "@READONLY", "@HIDDEN @READONLY")


def test_helms_yaml_gives_back_each_model_and_makes_nothing_of_it(laid):
    panel = hostile_panel(laid)
    files = helm.prod_env(panel)
    made = yaml.safe_load(files["prod_env/model_deployments.yaml"])["model_deployments"][1:]
    assert [one["client_spec"]["args"]["openai_model_name"] for one in made] == laid.names()
    for one in made:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", one["name"])
    judges = yaml.safe_load(helm.judges(panel))["judges"]
    assert [one["name"] for one in judges] == [one.name for one in panel.juror]
    for line in files["prod_env/credentials.conf"].splitlines():
        assert re.fullmatch(r"[\w-]+ApiKey: \$\{\?OPENAI_API_KEY\}", line)


WRITERS = {
    "medjury": bundle.write,
    "inspect": scorers.write_inspect,
    "mlflow": scorers.write_mlflow,
    "promptfoo": scorers.write_promptfoo,
}


@pytest.mark.parametrize("tool", WRITERS)
def test_no_file_of_an_export_leads_out_of_its_folder_and_each_json_gives_back_its_texts(
    laid, tool, tmp_path
):
    texts = laid.texts()
    rows = tuple(ExportRow(f"{one}/1", one, one, one, one, one, one, one) for one in texts)
    files = WRITERS[tool](Export(GENERIC, hostile_panel(laid), rows, RECORD))
    write_folder(tmp_path / "out", files)
    out = tmp_path / "out"
    made = {str(one.relative_to(out)) for one in out.rglob("*") if one.is_file()}
    assert made == {*files}
    found: list[object] = []
    for name, body in files.items():
        if name.endswith(".json"):
            found.append(json.loads(body))
        if name.endswith(".jsonl"):
            found += [json.loads(line) for line in body.split("\n") if line]
    held = {*strings(found)}
    assert {*laid.names()} <= held
    assert tool == "medjury" or {*texts} <= held


def strings(value):
    """Yield every text in JSON values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "..\\x"])
def test_a_file_that_would_lead_out_of_its_folder_is_refused_and_nothing_written(tmp_path, name):
    with pytest.raises(BadFile, match="leads out of the folder"):
        write_folder(tmp_path / "out" / "in", {"a": "x", name: "x"})
    assert [*tmp_path.iterdir()] == []


def study_names(laid):
    """Return the names that an import takes as they are: a guard against formulas it takes away."""
    return [one for one in laid.names() if unguarded(one) == one]


def whole(run, write, laid):
    """Make a study whose every name and text is hostile, rated by clinicians and a juror."""
    names, places = study_names(laid), hostile_benchmarks(laid)
    lines, scores = [], []
    texts = ("instance_id", "context", "prompt", "reference", "checklist", "response")
    texts += ("response_id", "model")
    for number, one in enumerate(names):
        place = {"benchmark": places[number % len(places)]}
        lines.append(json.dumps(dict.fromkeys(texts, one) | place))
        for place, who in enumerate([*places[:2], names[0]]):
            kind = "juror" if place == 2 else "clinician"
            for criterion in CRITERIA:
                given = {"response_id": one, "rater": who, "kind": kind, "criterion": criterion}
                scores.append(json.dumps(given | {"score": 1 + number % 5, "comment": one}))
    for command, rows in (("study import", lines), ("rate ratings", scores)):
        said = run(*command.split(), str(write("rows.jsonl", "\n".join(rows))))
        assert said[0] == 0, said


def cells(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_each_text_of_a_study_stands_in_its_csv_and_no_cell_is_a_formula(
    run, engine, write, tmp_path, laid
):
    whole(run, write, laid)
    out = tmp_path / "out"
    assert run("share", "export", str(out), "--unblind", "--reason", study_names(laid)[5])[0] == 0
    found = {path: cells(path) for path in out.rglob("*.csv")}
    assert found
    every = [cell for rows in found.values() for row in rows for cell in row]
    numbers = re.compile(r"[+-][\d.]+")
    assert [one for one in every if one.startswith(FORMULA) and not numbers.fullmatch(one)] == []
    assert {*study_names(laid)} <= {*map(unguarded, every)}


def test_a_package_brings_each_text_back_to_the_last_sign(run, engine, write, tmp_path, laid):
    whole(run, write, laid)
    package, place = str(tmp_path / "study.zip"), f"sqlite:///{tmp_path / 'other.db'}"
    unblinded = ("--unblind", "--reason", "a copy")
    assert run("share", "export", "--package", package, *unblinded)[0] == 0
    with zipfile.ZipFile(package) as archive:
        assert not [one for one in archive.namelist() if ".." in one or one.startswith("/")]
    assert run("study", "import", package, "--db", place)[0] == 0
    other = open_study(place)
    assert ratings_frame(other).equals(ratings_frame(engine))
    assert texts_in(other) == texts_in(engine)
    other.dispose()


def texts_in(engine):
    query = "select i.instance_id, i.context, i.prompt, i.reference, i.checklist, r.text, a.model"
    tables = "from response r join instance i on i.id = r.instance join authorship a on a.response = r.id"
    with engine.connect() as held:
        return sorted(tuple(row) for row in held.execute(text(f"{query} {tables}")))
