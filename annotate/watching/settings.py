"""The settings of a watch: a TOML file that the study's owner writes."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from data.errors import BadFile
from data.files import read_user_toml
from jury.address import fault

Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(max_length=500)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class SourceSettings(_Part):
    """How outputs come.

    Attributes
    ----------
    benchmark : of rows that name none
    map : a file that names columns, as `study import --map`
    query : what is asked of a database
    poll_seconds : pause between two looks
    settle_seconds : a file that has not changed for so long has come as a whole
    most_megabytes : a larger file is refused
    """

    benchmark: str | None = None
    map: Path | None = None
    query: str = ""
    poll_seconds: Annotated[float, Field(gt=0)] = 30.0
    settle_seconds: Annotated[float, Field(ge=0)] = 10.0
    most_megabytes: Annotated[float, Field(gt=0)] = 500.0


class JurySettings(_Part):
    """Who rates, and what a day may cost.

    Attributes
    ----------
    panel : a panel's name or file; "" asks no jury
    daily_usd : US dollars from midnight to midnight UTC; None sets no bound but the study's
    retry_minutes : first pause before a juror that does not answer is tried again; it doubles up to 30
    most_answers : useless answers of a juror to one response, after which it is asked no more
    concurrency : requests in flight
    """

    panel: str = ""
    daily_usd: Annotated[float, Field(ge=0)] | None = None
    retry_minutes: Annotated[float, Field(gt=0)] = 1.0
    most_answers: Annotated[int, Field(ge=1)] = 3
    concurrency: Annotated[int, Field(ge=1)] = 8


class SampleSettings(_Part):
    """Which outputs clinicians rate.

    Attributes
    ----------
    share : of each stratum
    seed : that they are drawn with
    by : a group of responses that makes strata besides the benchmark
    clinicians : who rates them
    per_response : how many rate each; by default as the study's design has it, else 2
    """

    share: Share = 0.1
    seed: int = 0
    by: str = ""
    clinicians: tuple[str, ...] = ()
    per_response: Annotated[int, Field(ge=1)] | None = None


class RoutingSettings(_Part):
    """Which outputs the jury may pass: `rule` is the name that `analyse route --keep` gave; "" routes none."""

    rule: str = ""


class AgreementSettings(_Part):
    """How agreement is watched; the names are those of `analyse monitor`.

    `check_minutes`: agreement is computed anew so often, where clinicians rated meanwhile or a day began.
    """

    every: Literal["week", "month", "quarter"] = "month"
    false_alarms: Annotated[float, Field(ge=0.01, le=0.2)] = 0.05
    min_icc: Annotated[float, Field(ge=-1, le=1)] = 0.4
    min_instances: Annotated[int, Field(ge=3)] = 20
    baseline: Annotated[int, Field(ge=1)] | None = None
    baseline_report: Annotated[int, Field(ge=1)] | None = None
    target: Annotated[float, Field(lt=1)] | None = None
    since: date | None = None
    benchmark: str | None = None
    reps: Annotated[int, Field(ge=100)] = 1000
    check_minutes: Annotated[float, Field(ge=0)] = 60.0

    @model_validator(mode="after")
    def _has_one_target(self) -> "AgreementSettings":
        targets = (self.baseline, self.baseline_report, self.target)
        if sum(target is not None for target in targets) > 1:
            raise ValueError("give one of baseline, baseline_report and target")
        return self


class AlarmSettings(_Part):
    """Who is told of an alarm, and what is due.

    Attributes
    ----------
    owner, action, due_days : who is to act, what is due, and within how many days
    email : address that the hospital's mail server takes it to; "" sends none
    webhook : address that it is posted to; "" posts none
    webhook_key_env : variable with a token for the webhook, which its host may have
    again_minutes : first pause before a message that failed is sent again; it doubles up to an hour
    """

    owner: Text = ""
    action: Text = "Rate a new sample, and validate the jury again before it is used further."
    due_days: Annotated[int, Field(ge=1, le=365)] = 14
    email: str = ""
    webhook: str = ""
    webhook_key_env: str = ""
    again_minutes: Annotated[float, Field(gt=0)] = 1.0

    @model_validator(mode="after")
    def _can_be_told(self) -> "AlarmSettings":
        if (self.email or self.webhook) and not self.owner.strip():
            raise ValueError("owner: name who is to act on an alarm")
        if self.webhook and (why := fault(self.webhook)):
            raise ValueError(f"webhook: {why}")
        if self.email and ("@" not in self.email or not self.email.isprintable()):
            raise ValueError("email: not an address")
        return self


class WatchSettings(_Part):
    """All settings of a watch."""

    source: SourceSettings = SourceSettings()
    jury: JurySettings = JurySettings()
    sample: SampleSettings = SampleSettings()
    routing: RoutingSettings = RoutingSettings()
    agreement: AgreementSettings = AgreementSettings()
    alarm: AlarmSettings = AlarmSettings()

    def rows(self) -> list[tuple[str, str]]:
        """Return each setting with its value in words."""
        body: dict[str, dict[str, Any]] = self.model_dump(mode="json")
        return [
            (f"{part}.{name}", _in_words(value))
            for part, values in body.items()
            for name, value in values.items()
        ]


def _in_words(value: object) -> str:
    if value in (None, "", [], ()):
        return "not set"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def read_settings(path: Path | None) -> WatchSettings:
    """Return the settings in a file, the defaults without one.

    Raises
    ------
    BadFile
        If it cannot be read, or a value is not allowed; the message names it.
    """
    if path is None:
        return WatchSettings()
    body = read_user_toml(path, f"--settings {path}")
    try:
        return WatchSettings.model_validate(body)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(step) for step in problem["loc"])
        why = str(problem["msg"]).removeprefix("Value error, ")
        raise BadFile(f"--settings {path}, {where or 'settings'}: {why}") from error
