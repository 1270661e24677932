"""An e-mail address belongs to one person who may sign in, and opens nothing once it is gone."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from data.errors import Conflict, MedjuryError, NotAllowed
from data.person import OPERATOR
from data.schema import Role
from data.study import people as accounts
from data.study.access import enter, enter_by_email
from data.study.verify import acts, verify

A, B = "a@ward.example", "b@ward.example"
ACTS = ("e-mail given", "e-mail changed", "e-mail removed")


@pytest.fixture
def study(engine):
    """Return a study with two clinicians, one of whom has an address."""
    accounts.add_people(OPERATOR, engine, ["dr-a"], email=A)
    accounts.add_people(OPERATOR, engine, ["dr-b"])
    return engine


def owner(engine, email):
    """Return whom the hospital account with this address lets in; empty if nobody."""
    found = accounts.person_by_email(engine, email)
    return found.name if found else ""


def person(engine, name):
    """Return somebody signed in with a new code."""
    found = accounts.check_code(engine, accounts.renew_access(OPERATOR, engine, name).code).person
    assert found is not None
    return enter(engine, found).person


def test_a_changed_email_lets_in_by_the_new_address_only(study):
    assert accounts.set_email(OPERATOR, study, "dr-a", f" {B.upper()} ")
    assert (owner(study, A), owner(study, B)) == ("", "dr-a")
    with pytest.raises(Conflict, match="belongs to dr-a"):
        accounts.set_email(OPERATOR, study, "dr-b", B)
    before = len(acts(study, *ACTS))
    assert not accounts.set_email(OPERATOR, study, "dr-a", B.upper())  # as it is already
    assert not accounts.set_email(OPERATOR, study, "dr-b", None)
    assert len(acts(study, *ACTS)) == before
    assert accounts.set_email(OPERATOR, study, "dr-a", None)
    assert owner(study, B) == ""
    assert {one.email for one in accounts.people(OPERATOR, study)} == {None}


@pytest.mark.parametrize("adding", [True, False])
def test_an_email_of_somebody_shut_out_can_be_given_to_another(study, adding):
    accounts.end_access(OPERATOR, study, "dr-a")
    if adding:
        accounts.add_people(OPERATOR, study, ["dr-c"], email=A)
    else:
        accounts.set_email(OPERATOR, study, "dr-b", A)
    accounts.renew_access(OPERATOR, study, "dr-a")
    assert owner(study, A) == ("dr-c" if adding else "dr-b")
    assert [one.email for one in accounts.people(OPERATOR, study)].count(A) == 1


def test_of_many_who_are_given_one_email_at_once_one_has_it(engine):
    names = [f"dr-{number}" for number in range(6)]
    accounts.add_people(OPERATOR, engine, names)

    def give(name):
        try:
            return accounts.set_email(OPERATOR, engine, name, A)
        except MedjuryError:
            return False

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(give, names)) == 1
    assert [one.email for one in accounts.people(OPERATOR, engine)].count(A) == 1


@pytest.mark.parametrize("email", [B, None])
def test_a_session_opened_by_the_old_email_ends_and_one_by_code_stays(study, email):
    by_code = person(study, "dr-a")
    by_hospital = enter_by_email(study, by_code).person
    assert accounts.person_by_access(study, by_hospital.access) is not None
    accounts.set_email(OPERATOR, study, "dr-a", email)
    assert accounts.person_by_access(study, by_hospital.access) is None
    assert accounts.person_by_access(study, by_code.access) is not None


@pytest.mark.parametrize("role", [Role.CLINICIAN, Role.RESEARCHER])
def test_only_a_coordinator_sets_an_email_even_their_own(study, role):
    accounts.add_people(OPERATOR, study, ["me"], role)
    me = person(study, "me")
    for name in ("me", "dr-a"):
        with pytest.raises(NotAllowed):
            accounts.set_email(me, study, name, B)
    assert (owner(study, A), owner(study, B)) == ("dr-a", "")


def test_every_change_of_an_email_stands_in_the_record_without_the_address(study):
    accounts.add_people(OPERATOR, study, ["boss"], Role.COORDINATOR)
    boss = person(study, "boss")
    accounts.set_email(boss, study, "dr-a", B)
    accounts.set_email(boss, study, "dr-a", None)
    found = acts(study, *ACTS)
    assert [one.action for one in found] == list(ACTS)
    assert [one.actor for one in found] == ["coordinator", boss.actor, boss.actor]
    assert len({one.detail["account"] for one in found}) == 1
    assert "ward" not in str([(one.actor, one.detail) for one in found])
    assert verify(study).findings == ()
