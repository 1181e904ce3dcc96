"""Workloads and contestants as their files declare them; whatever they say wrongly is refused by its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

HERE = Path(__file__).parent
WORKLOADS = HERE / "workloads"
CONTESTANTS = HERE / "contestants.yaml"

SideName = Literal["streams-operator", "kafka-streams", "quixstreams", "structured-streaming", "flink-sql"]
Guarantee = Literal["at_least_once", "exactly_once_v2"]
Task = Annotated[str, Field(pattern=r"^(totals|windowed|joined|q\d+)$")]
Experiment = Literal["backlog", "restore", "restart", "latency", "queries", "soak", "nexmark"]
Count = Annotated[int, Field(ge=1)]
_Model = TypeVar("_Model", bound=BaseModel)
_EACH_CASE = "{case}"


class DeclarationError(Exception):
    """A file of workloads or contestants, or a choice made on the command line, does not fit; correct what it names."""


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Contestant(_Declared):
    """One configuration of one side. `config` holds the side's own settings beside its defaults."""

    title: str
    side: SideName
    guarantee: Guarantee = "at_least_once"
    threads: Count = 1
    instances: Count = 1
    config: Mapping[str, str | int] = {}

    @property
    def exactly_once(self) -> bool:
        """Whether it works in transactions."""
        return self.guarantee == "exactly_once_v2"


class Case(_Declared):
    """One size of a workload.

    `pad`: bytes that each value is longer; `burst`: how many of the records come at once, of a soak; `rate`: records
    per second that come while it is measured; `queries` and `scans`: a second, for `seconds`; `killed`: when, of a
    restart; `gap_ms`: between two events of NEXMark; `limit_s`: the longest that one run may take.
    """

    name: str
    task: Task = "totals"
    records: Count
    keys: Count
    partitions: Count = 4
    pad: Annotated[int, Field(ge=0)] = 0
    burst: Count = 100_000
    rate: Count = 1_000
    queries: Count = 500
    scans: Annotated[int, Field(ge=0)] = 10
    seconds: Count = 30
    killed: Literal["half way", "at the end"] = "half way"
    gap_ms: Count = 1
    limit_s: Count = 600
    optional: bool = False
    contestants: tuple[str, ...] = ()
    """Who takes part in this case; empty: all of the workload."""
    why: Mapping[SideName, str] = {}
    """By side: why it does not take part in this case."""

    @property
    def size(self) -> str:
        """For people."""
        words = [f"{self.records:,} records", f"{self.keys:,} keys", f"{self.partitions} partitions"]
        return ", ".join([self.name, *words])

    def scaled(self, factor: float) -> Case:
        """With that many times the records, and as many keys a record as before. Rates and seconds stay as they are."""
        records, keys = max(1, round(self.records * factor)), max(1, round(self.keys * factor))
        return self.model_copy(update={"records": records, "keys": keys})


class Measure(_Declared):
    """A figure that the table shows."""

    figure: str
    title: str
    unit: str
    better: Literal["more", "less"]


class Ratio(_Declared):
    """How `ours` compares with `peers`, of each of which the best median counts; larger is better for this project."""

    figure: str
    case: str
    ours: tuple[str, ...]
    peers: tuple[str, ...]


class Workload(_Declared):
    """One workload: what is done, by whom, at which sizes, and what is told of it."""

    name: str = ""
    title: str
    experiment: Experiment
    rounds: Count = 3
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]
    contestants: Annotated[tuple[str, ...], Field(min_length=1)]
    measures: Annotated[tuple[Measure, ...], Field(min_length=1)]
    ratios: Mapping[str, Ratio] = {}
    """By name; one that has `{case}` in its name and no case is one of each case."""
    chart: str | None = None
    """The figure that is drawn."""
    over: Literal["records", "keys", "partitions", "instances", "rate"] | None = None
    """What the chart has along its lower edge: bars by contestant without it, lines over it otherwise."""
    why: Mapping[str, str] = {}
    """By side: why it does not take part."""
    together: bool = False
    """All cases in one table of the first measure, with a line for each, instead of a table for each."""

    @model_validator(mode="before")
    @classmethod
    def _of_each_case(cls, content: Any) -> Any:
        if not isinstance(content, dict) or not isinstance(ratios := content.get("ratios"), dict):
            return content
        made = {}
        for name, ratio in ratios.items():
            each = content.get("cases", ()) if _EACH_CASE in name and isinstance(ratio, dict) else ()
            made |= {name.replace(_EACH_CASE, case["name"]): {"case": case["name"], **ratio} for case in each}
            if not each:
                made[name] = ratio
        return {**content, "ratios": made}

    @model_validator(mode="after")
    def _fits(self) -> Workload:
        cases, figures = {case.name for case in self.cases}, {each.figure for each in self.measures}
        if len(cases) < len(self.cases):
            raise ValueError("two cases have the same name")
        for case in self.cases:
            if stray := set(case.contestants) - set(self.contestants):
                raise ValueError(f"case {case.name}: {', '.join(sorted(stray))} is not among the contestants")
        for name, ratio in self.ratios.items():
            if ratio.case not in cases:
                raise ValueError(f"ratios.{name}.case: there is no case {ratio.case!r}, only {sorted(cases)}")
            if ratio.figure not in figures:
                raise ValueError(f"ratios.{name}.figure: {ratio.figure} is not among the measures")
            if stray := {*ratio.ours, *ratio.peers} - set(self.contestants):
                raise ValueError(f"ratios.{name}: {', '.join(sorted(stray))} is not among the contestants")
        if self.chart is not None and self.chart not in figures:
            raise ValueError(f"chart: {self.chart} is not among the measures")
        return self

    def resized(self, records: int | None, optional: bool, cases: Sequence[str] = ()) -> Workload:
        """The workload as it is to be measured: with the named cases, or all but the optional ones unless asked for.

        With `records` the first case has that many, and the others as many times more or less as before.
        """
        factor = 1.0 if records is None else records / self.cases[0].records
        taken = [case for case in self.cases if (case.name in cases if cases else optional or not case.optional)]
        return self.model_copy(update={"cases": tuple(case.scaled(factor) for case in taken)})

    def taking_part(self, case: Case) -> tuple[str, ...]:
        """The contestants of a case."""
        return case.contestants or self.contestants


def load_contestants(file: Path = CONTESTANTS) -> dict[str, Contestant]:
    """All contestants by name. Raises DeclarationError."""
    return {name: _read(Contestant, file, content, name) for name, content in _content(file).items()}


def load_workloads(
    names: Sequence[str], contestants: Mapping[str, Contestant], folder: Path = WORKLOADS
) -> list[Workload]:
    """The named workloads, all when none is named. Raises DeclarationError for unknown names and contestants."""
    known = {file.stem: file for file in sorted(folder.glob("*.yaml"))}
    if unknown := [name for name in names if name not in known]:
        raise DeclarationError(f"no workload {', '.join(unknown)}; there are {', '.join(known)}")
    made = []
    for name in names or known:
        workload = _read(Workload, known[name], {**_content(known[name]), "name": name})
        if stray := [each for each in workload.contestants if each not in contestants]:
            raise DeclarationError(f"{known[name]}: no contestant {', '.join(stray)} in {CONTESTANTS.name}")
        made.append(workload)
    return made


def _content(file: Path) -> dict[str, Any]:
    content = yaml.safe_load(file.read_text())
    if not isinstance(content, dict):
        raise DeclarationError(f"{file}: a mapping was expected, found {type(content).__name__}")
    return content


def _read(model: type[_Model], file: Path, content: object, under: str = "") -> _Model:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join([*([under] if under else []), *map(str, first["loc"])])
        raise DeclarationError(f"{file}: {path or 'the file'}: {first['msg']}") from None
