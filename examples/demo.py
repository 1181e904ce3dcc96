"""The demonstration: a year of flights through two instances, one of which is killed half way, and all results checked.

Runs `streamsapp broker`, `produce`, `run` and `query` as a user would. Exit code 0: all results are right, or differ by
exactly the flights that were processed twice because of the kill, which at least once allows. 1: anything else.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo_parts.checks import Checked, check_carriers, check_origins, differing_keys, reads_again
from demo_parts.commands import DemoFailed, Event, Following, ask
from demo_parts.figures import Row
from demo_parts.report import print_store
from demo_parts.second_opinion import SecondOpinion, flights_zip
from demo_parts.topics import Follower, Record, last_values, wait_for_topic
from demo_parts.twice import Batch, batches
from rich.console import Console

from streams_runtime.cli.local.leftovers import sweep
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.types import TopicSpec

APPLICATION = Path(__file__).with_name("flights.yaml")
SOURCE, REPARTITION = "flights", "flights-origin-repartition"
READS = {"by-carrier": SOURCE, "by-origin": REPARTITION}
STORES = {"by-carrier": "carrier-totals", "by-origin": "origin-totals"}
PARTITIONS = 4
VICTIM, SURVIVOR = "flights-1", "flights-0"
PATIENCE = 600.0  # seconds; other work on the machine makes the demonstration slower, not wrong
END_SECONDS = 15.0  # for the last processes to be gone


@dataclass(frozen=True, slots=True)
class Results:
    """What the application has come to: its stores, its sink topics, and all that its repartition topic ever had."""

    stores: Mapping[str, Mapping[str, Row]]
    sinks: Mapping[str, Mapping[str, Row]]
    repartitioned: list[Record]


class Story:
    """Prints what happens, and remembers the processes that it heard of."""

    def __init__(self) -> None:
        given = Console()
        self.console = given if given.is_terminal else Console(width=max(given.width, 120))
        self.pids: set[int] = set()
        self._started_at = time.monotonic()

    def tell(self, text: str) -> None:
        """One line."""
        self.console.print(f"[dim]{time.monotonic() - self._started_at:5.0f} s[/]  {text}", highlight=False)


def main() -> int:
    """Run it; returns the exit code."""
    story = Story()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="streamsapp-demo-"))
    right = False
    try:
        right = check(story, folder, run_it(story, folder))
    except DemoFailed as failure:
        story.tell(f"[bold red]{failure}[/]")
    except KeyboardInterrupt:
        story.tell("interrupted")
    if not sweep(story.pids, END_SECONDS):
        story.tell("[bold red]processes were left running, and had to be killed[/]")
        right = False
    elif right:
        story.tell(f"nothing is left running of {len(story.pids)} processes and what they had started")
    if right:
        shutil.rmtree(folder)
    else:
        story.tell(f"logs, stores and the broker's data are in {folder}")
    return 0 if right else 1


def run_it(story: Story, folder: Path) -> Results:
    """Everything up to the last process's end."""
    with Following("broker", "--data-dir", str(folder / "broker"), log=folder / "broker.log") as broker:
        facts = broker.wait_for("broker", lambda event: "bootstrap_servers" in event, PATIENCE)
        story.pids |= {broker.pid, facts["pid"]}
        address = facts["bootstrap_servers"]
        story.tell(f"an Apache Kafka runs at {address}")
        load(story, address)
        arguments = [str(APPLICATION), "--bootstrap-servers", address, "--state-dir", str(folder / "state")]
        with Following("run", *arguments, "--log-level", "DEBUG", log=folder / "run.log") as run, watched(story, run):
            follower = start(story, run, address)
            kill_half_way(story, run, folder / "state")
            stores = finish(story, run)
            story.tell("stopping both instances, in order")
            if (code := run.stop()) != 0:
                raise DemoFailed(f"streamsapp run ended with exit code {code}")
        repartitioned = follower.read_to_end()
        sinks = {store: _rows(last_values(address, topic, PARTITIONS)) for store, topic in STORES.items()}
    return Results(stores, sinks, repartitioned)


def load(story: Story, address: str) -> None:
    """Feed the flights, and make the sinks' topics."""
    topic = (SOURCE, str(flights_zip()), "--key", "carrier", "--null", "NA", "--partitions", str(PARTITIONS))
    (fed,) = ask("produce", *topic, "--bootstrap-servers", address, "--output", "json")
    story.tell(
        f"loaded {fed['records']:,} flights into the topic {SOURCE}, {PARTITIONS} partitions, keyed by carrier"
        f" ({fed['records_per_second']:,}/s)"
    )
    admin = Admin(client_properties(address, {}))
    made = admin.create_topics([TopicSpec(name, PARTITIONS) for name in STORES.values()])
    if made.refused:
        raise DemoFailed(f"the sinks' topics could not be made: {made.refused}")


def start(story: Story, run: Following, address: str) -> Follower:
    """Wait for both instances."""
    run.wait_for("set-up", lambda event: _application(event).get("setup") == "Created", PATIENCE)
    follower = Follower(address, REPARTITION, wait_for_topic(address, REPARTITION, PATIENCE))
    run.wait_for("RUNNING application", lambda event: _application(event).get("state") == "RUNNING", PATIENCE)
    for each in run.instances.values():
        tasks = ", ".join(task["id"] for task in each["tasks"])
        story.tell(f"{each['name']} runs at {each['url']} (pid {each['pid']}) with the tasks {tasks}")
    return follower


def kill_half_way(story: Story, run: Following, folder: Path) -> None:
    """SIGKILL one instance, and follow its return."""

    def half_way(event: Event) -> bool:
        source = _source(event)
        return source is not None and source["committed"] * 2 >= source["end"]

    half = _source(run.wait_for("half of the flights", half_way, PATIENCE)) or {}
    pid, at = run.instances[VICTIM]["pid"], time.time()
    kill_and_lose_disk(pid, folder / VICTIM)
    story.tell(
        f"[bold]{half['committed']:,} of {half['end']:,} flights are committed: SIGKILL to {VICTIM}[/] (pid {pid}),"
        " its stores deleted too"
    )
    crash = run.wait_for("crash", lambda event: event["event"] == "crash", PATIENCE)
    story.tell(crash["text"])

    def back(event: Event) -> bool:
        victim = {each["name"]: each for each in event.get("instances", ())}.get(VICTIM)
        if victim is None:
            return False
        return victim["state"] == "RUNNING" and victim["pid"] != pid and bool(victim["tasks"])

    run.wait_for(f"return of {VICTIM}", back, PATIENCE)
    story.tell(f"{VICTIM} is back (pid {run.instances[VICTIM]['pid']}), {time.time() - at:.0f} s after the kill")
    for name in (VICTIM, SURVIVOR):
        tell_restoration(story, run, name, at)


def kill_and_lose_disk(pid: int, folder: Path) -> None:
    """SIGKILL an instance; its stores are gone before it can be started again."""
    os.kill(pid, signal.SIGSTOP)
    lost = next(folder.glob("*/.lock")).parent
    lost.rename(lost.with_name("lost"))
    os.kill(pid, signal.SIGKILL)
    shutil.rmtree(lost.with_name("lost"))


def tell_restoration(story: Story, run: Following, name: str, since: float) -> None:
    """What an instance has restored since a moment (seconds since 1970)."""
    found: dict[tuple[str, int, float], Mapping[str, Any]] = {}
    for event in run.events:
        for each in event.get("instances", ()):
            for entry in each["restoration"] if each["name"] == name else ():
                if entry["started_at"] >= since:
                    found[entry["store"], entry["partition"], entry["started_at"]] = entry
    spans = [f"{it['store']}-{it['partition']} {it['start']:,}→{it['position']:,}" for it in found.values()]
    records = sum(entry["restored"] for entry in found.values())
    if spans:
        story.tell(f"{name} restored {records:,} changelog records, by offsets: {', '.join(spans)}")


def finish(story: Story, run: Following) -> dict[str, dict[str, Row]]:
    """Wait until all is processed, and query both stores."""

    def stored(event: Event) -> bool:
        return _application(event).get("caught_up", False) and all(
            each["state"] == "RUNNING" and each["lag"] == 0 for each in run.instances.values()
        )

    run.wait_for("end of the backlog", stored, PATIENCE)
    story.tell("caught up: every flight is processed and committed")
    url = run.instances[SURVIVOR]["url"]
    stores = {store: {row["key"]: row["value"] for row in ask("query", store, "all", "--url", url)} for store in STORES}
    story.tell(
        f"streamsapp query, asking {SURVIVOR} only: " + ", ".join(f"{len(rows)} keys {s}" for s, rows in stores.items())
    )
    theirs = {int(task["id"].partition("_")[2]) for task in run.instances[VICTIM]["tasks"] if task["id"][0] == "0"}
    key = next((key for key in sorted(stores["by-carrier"]) if partition_for(key.encode(), PARTITIONS) in theirs), None)
    if key is None:
        raise DemoFailed(f"{VICTIM} has no carrier to be asked for, only the partitions {sorted(theirs)}")
    (answer,) = ask("query", "by-carrier", "get", key, "--url", url)
    if answer != {"key": key, "value": stores["by-carrier"][key]}:
        raise DemoFailed(f"by-carrier get {key} gave {answer}, and all gave {stores['by-carrier'][key]}")
    story.tell(
        f"by-carrier get {key}, asked of {SURVIVOR} and answered by {VICTIM}: {answer['value']['flights']:,} flights,"
        f" on average {answer['value']['arr_delay_avg']:.2f} minutes late"
    )
    return stores


def check(story: Story, folder: Path, results: Results) -> bool:
    """Compare everything with DuckDB's figures; whether all is right."""
    found = batches((folder / "state").glob("*/instance.log*"))
    if not found:
        raise DemoFailed("the instances' logs tell of no batch, so what was processed twice can't be known")
    opinion = SecondOpinion(folder, PARTITIONS)
    opinion.note_repartitioned(results.repartitioned)
    checked = {
        "by-carrier": check_carriers(opinion, results.stores["by-carrier"], reads_again(found, SOURCE)),
        "by-origin": check_origins(opinion, results.stores["by-origin"], reads_again(found, REPARTITION)),
    }
    for store, it in checked.items():
        print_store(story.console, store, it.ours, it.theirs, it.verdicts)
    wrong = [f"{store}: {', '.join(it.unexplained)}" for store, it in checked.items() if it.unexplained]
    for store, topic in STORES.items():
        if keys := differing_keys(results.stores[store], results.sinks[store]):
            wrong.append(f"the last values of the topic {topic} are not those of the store: {', '.join(keys)}")
    if lost := opinion.lost():
        wrong.append(f"{lost:,} flights never came to the topic {REPARTITION}")
    if strange := opinion.unexplained_excess(reads_again(found, SOURCE)):
        wrong.append(
            f"{strange:,} records of the topic {REPARTITION} are too many, and no batch was read again for them"
        )
    tell_twice(story, checked, found)
    for text in wrong:
        story.tell(f"[bold red]WRONG: {text}[/]")
    if not wrong:
        apart = " but for those" if any(it.twice for it in checked.values()) else ""
        story.tell(
            f"[bold green]all figures agree with DuckDB's{apart}[/]; the sink topics end with the stores' values"
        )
    return not wrong


def tell_twice(story: Story, checked: Mapping[str, Checked], found: list[Batch]) -> None:
    """What at least once came to."""
    again = {store: len(reads_again(found, topic)) for store, topic in READS.items()}
    story.tell(
        f"interrupted batches that were read again: {again['by-carrier']} of the topic {SOURCE},"
        f" {again['by-origin']} of {REPARTITION}"
    )
    counts = [f"{it.twice:,} in {store}" for store, it in checked.items() if it.twice]
    if counts:
        story.tell(f"flights processed twice, which are exactly flights of those batches: {', '.join(counts)}")
    else:
        story.tell("0 flights were processed twice")


@contextmanager
def watched(story: Story, run: Following) -> Iterator[None]:
    """Remember every process of a run."""
    story.pids.add(run.pid)
    try:
        yield
    finally:
        story.pids |= {each["pid"] for event in run.events for each in event.get("instances", ()) if each["pid"]}


def _application(event: Event) -> Mapping[str, Any]:
    told: Mapping[str, Any] = event.get("application", {})
    return told


def _source(event: Event) -> Mapping[str, Any] | None:
    """How far the topic of the flights is processed."""
    return next((each for each in event.get("topics", ()) if each["topic"] == SOURCE), None)


def _rows(values: Mapping[str, bytes]) -> dict[str, Row]:
    return {key: json.loads(value) for key, value in values.items()}


if __name__ == "__main__":
    sys.exit(main())
