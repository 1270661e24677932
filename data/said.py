"""What others wrote, as a message may say it: in one line, cut short, no text in the wrong column."""

LONGEST_NAME = 60


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name as a message may quote it: a long one may be a text in the wrong column."""
    fits = len(name) <= longest and name.isprintable()
    return name if fits else f"(a text of {len(name)} characters)"


def one_line(said: str, longest: int) -> str:
    """Return a message in one line that a terminal can show, cut short."""
    plain = "".join(sign if sign.isprintable() else " " for sign in said)
    line = " ".join(plain.split())
    return line if len(line) <= longest else line[: longest - 3] + "..."
