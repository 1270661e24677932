"""A calibration as a file for readers elsewhere: HTML, Markdown, CSV or LaTeX."""

from sqlalchemy import Engine

from medjury.services.calibrate import Calibration, content_of

FORMATS = ("html", "markdown", "csv", "latex")


def report_text(engine: Engine, found: Calibration, form: str) -> str:
    """Return a calibration in one of `FORMATS`.

    The page needs `details` and `page` to have been asked for; the tables only the rows.
    """
    if form == "html":
        from calibration.report.page import page

        return page(content_of(engine, found))
    options = found.question.options
    if form == "csv":
        from calibration.writers.table_csv import table_csv

        how = {"method": options.method, "reps": options.reps, "seed": options.seed}
        return table_csv(found.rows, how)
    from calibration.writers import markup

    what = f", criterion {options.criterion}" if options.criterion else ""
    how_made = (
        f"Method {options.method}{what}; bootstrap over instances, {options.reps} resamples, seed "
        f"{options.seed}"
    )
    return {"markdown": markup.markdown, "latex": markup.latex}[form](found.rows, how_made)
