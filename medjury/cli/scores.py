"""Whom a command means by its jury: a panel's jurors, or those it names."""

import typer


def named_jurors(panel: str | None, jurors: str | None) -> list[str] | None:
    """Return the jurors the user names, one way or the other; None means all."""
    if panel and jurors is not None:
        raise typer.BadParameter("give --panel or --jurors, not both")
    if panel:
        from jury.panel import read_panel

        return [one.name for one in read_panel(panel).juror]
    return None if jurors is None else _each_once(jurors)


def _each_once(jurors: str) -> list[str]:
    """Return the names between the commas; refuse an empty one, and one that comes again."""
    names = [name.strip() for name in jurors.split(",")]
    again = dict.fromkeys(name for name in names if name and names.count(name) > 1)
    wrong = [f"{name} more than once" for name in again]
    wrong += ["an empty name"] if "" in names else []
    if wrong:
        raise typer.BadParameter(
            f"{jurors!r} has {' and '.join(wrong)}: name every juror once", param_hint="--jurors"
        )
    return names


def panel_families(panel: str | None) -> dict[str, str]:
    """Return the model families that a panel gives its jurors; none without a panel."""
    if panel is None:
        return {}
    from jury.panel import read_panel

    return {one.name: one.family for one in read_panel(panel).juror}
