"""While a study is blind, no byte of a screen depends on who wrote which response.

Every screen of those who steer a study, with all its views, is drawn on a study and on copies of it
whose authors are permuted; all that Streamlit would send is compared.
"""

import re
from copy import deepcopy

import pytest
from kit.authored_study import make, permuted, plain, shuffled, turned, unheard
from kit.browsers import drawn_page
from sqlmodel import Session, select

from annotate.navigation import SCREENS
from annotate.navigation import study as served
from annotate.screens.frame import VIEW
from annotate.screens.setup import PARTS
from data.database import open_study
from data.schema import Account, Response, Role

pytestmark = pytest.mark.slow  # every view is drawn by a process of its own
AGO = re.compile(r"\d+ (?:second|minute)s?\b")
STEERED = [one for one in SCREENS if Role.COORDINATOR in one.roles]
SCRIPT = """
from annotate.navigation import SCREENS
from annotate.navigation import study
from data.person import Person
from data.schema import Role
screen = next(one for one in SCREENS if one.path == {path!r})
screen.draw(study(), Person({key}, {name!r}, Role({role!r})))
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return make(tmp_path_factory.mktemp("authored"))


@pytest.fixture(scope="module")
def as_it_is(study, tmp_path_factory):
    """Return every screen of the study as it is."""
    folder = tmp_path_factory.mktemp("as-it-is")
    return all_drawn(permuted(study, folder, list), folder)


@pytest.mark.parametrize("permute", [unheard, shuffled, turned])
def test_no_byte_of_a_screen_depends_on_who_wrote_what(study, as_it_is, tmp_path, permute):
    found = all_drawn(permuted(study, tmp_path, permute), tmp_path)
    assert found.keys() == as_it_is.keys()
    assert {path for path, *_ in found} == {one.path for one in STEERED}
    for what, said in as_it_is.items():
        assert found[what] == said, what


def all_drawn(url, folder):
    """Return what every view of every screen sends to the browser of each role."""
    engine = open_study(url)
    with Session(engine) as session:
        keys = dict(session.exec(select(Account.name, Account.id)).all())
        opened = session.exec(select(Response.response_id)).first() or ""
    engine.dispose()
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDJURY_DB", url)
        for name, role in (("Rita", Role.RESEARCHER), ("Carla", Role.COORDINATOR)):
            for screen in STEERED:
                if role in screen.roles:
                    given = {"path": screen.path, "key": keys[name], "name": name}
                    script = SCRIPT.format(**given, role=role.value)
                    for view, said in views(script, opened):
                        found[screen.path, str(role), view] = AGO.sub("<ago>", plain(said, folder))
        served().dispose()
    return found


def views(script, opened):
    """Yield the name of each view of a screen with all that it sends; one response, too."""
    first, names = drawn(script)
    yield "", first
    for name in names[1:]:
        yield name, drawn(script, **{VIEW: name})[0]
    for part in [*PARTS][1:] if "'setup'" in script else ():
        yield part, drawn(script, part=part)[0]
    if "'agreement'" in script:
        yield "a response", drawn(script, **{VIEW: "Responses"}, response=opened)[0]


def drawn(script, **address):
    """Return what a screen sends at an address, and the names of its views."""
    app = drawn_page(script)
    for name, value in address.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, [one.value for one in app.exception]
    return "\n".join(map(sent, (*app.main, *app.sidebar))), [one.label for one in app.tabs]


def sent(element):
    """Return what an element sends; of a table its cells as text, in which times can be told."""
    if element.type != "dataframe":
        return str(element.proto)
    told = deepcopy(element.proto)
    told.arrow_data.ClearField("data")
    return f"{told}{element.value.dtypes}\n{element.value.to_csv()}"
