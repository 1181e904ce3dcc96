"""The aggregate in the plan, and the store that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.api.sql.aggregate_calls import COUNT_DISTINCT
from streams_runtime.topology.nodes.plan_node import StepNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, SlidingWindows, Windows
from streams_runtime.topology.store_specs import StoreSpec, Windowing


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One column of an aggregate step: `column` = `function`(`argument`).

    `function` is a name of state.aggregates.aggregate_kinds.KINDS, of `count(distinct …)` COUNT_DISTINCT; `argument` a
    Spark SQL scalar expression, None for `count(*)`; `parameter` a number as text, for those functions that take one.
    Of python the parameter is the class's name, and the argument a struct of the columns that the class is given; of
    reduce it is what stands in its brackets, and the argument a struct of the columns that its lambda names; of max_by,
    min_by and COUNT_DISTINCT it is the second expression, of top this and the number. `path` is the field that it was
    declared in. `condition`: which records count (FILTER); None: all.
    """

    column: str
    function: str
    argument: str | None
    path: str
    parameter: str | None = None
    condition: str | None = None
    subtracts: bool = False
    """Whether its records say what leaves a group and what comes (topology.nodes.regroup_node), and not one value."""

    @property
    def taken(self) -> str | None:
        """What it takes of a record: the argument, or what a row that comes to the group has for it."""
        return f"new.`{self.column}`" if self.subtracts else self.argument

    @property
    def call(self) -> str:
        """The call as the user wrote it."""
        if self.function == "python":
            return f"python('{self.parameter}', {(self.argument or '').removeprefix('struct(')}"
        if self.function == "reduce":
            return f"reduce({self.parameter})"
        parameter = "" if self.parameter is None else f", {self.parameter}"
        called = "count(distinct " if self.function == COUNT_DISTINCT else f"{self.function}("
        condition = "" if self.condition is None else f" FILTER (WHERE {self.condition})"
        return f"{called}{self.argument or '*'}{parameter}){condition}"


@dataclass(frozen=True, slots=True)
class AggregateNode(StepNode):
    """A running aggregate of each key, or of each key's windows, kept in `store`; its output is a table.

    Records that come too late for a window go to the user's topic `late_topic`, if there is one.
    """

    KIND: ClassVar[str] = "aggregate"
    LEADS_OUT: ClassVar[bool] = True
    MAKES_TABLE: ClassVar[bool] = True

    aggregates: tuple[Aggregate, ...]
    store: str
    path: str
    windows: Windows | None = None
    late_topic: str | None = None

    @property
    def needs_value(self) -> bool:
        """By key and by sliding windows."""
        return isinstance(self.windows, SlidingWindows | None)

    @property
    def summary(self) -> str:
        """The aggregate in the user's own expressions."""
        calls = ", ".join(f"{each.column} = {each.call}" for each in self.aggregates)
        windows = "" if self.windows is None else f" in {self.windows.summary}"
        late = f", late records to {self.late_topic}" if self.late_topic is not None else ""
        return f"aggregate {calls}{windows}{late}"

    @property
    def users_topics(self) -> tuple[str, ...]:
        """The topic of late records."""
        return () if self.late_topic is None else (self.late_topic,)

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """The aggregates."""
        match self.windows:
            case None:
                return (StoreSpec.kept(self.store, "key-value", application_id, self.name),)
            case SessionWindows(retention=retention):
                return (StoreSpec.kept(self.store, "session", application_id, self.name, Windowing(retention)),)
            case windows:
                windowing = Windowing(windows.retention, windows.longest)
                return (StoreSpec.kept(self.store, "window", application_id, self.name, windowing),)
