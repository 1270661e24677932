"""The rating screen: shows the rating room, which talks to the server by its own requests."""

from sqlalchemy import Engine

from annotate.rating import page
from data.queries import Person


def show(engine: Engine, person: Person) -> None:
    """Draw the room of whoever is signed in; what they are shown, it asks for by their session."""
    page.draw()
