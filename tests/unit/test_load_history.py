"""What the operator remembers of an application's load, and what two answers of its pods say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from streams_operator.application_load import Learned, Load, LoadMemory
from streams_operator.model import InstanceAccount, Key
from streams_operator.plan.scaling.capacity import capacity, needed
from streams_operator.plan.scaling.load_samples import compacted, measured
from streams_operator.plan.scaling.replica_decision import Verdict
from streams_operator.plan.scaling.scaling_lessons import memory
from streams_operator.plan.scaling.scaling_policy import Policy, stabilization_of
from streams_operator.reconcile.accounts import account
from streams_operator.reconcile.load_history import LoadHistory

KEY = Key("shop", "orders")


def said(at: float, position: int | None, lag: int | None, *tasks: str) -> InstanceAccount:
    return InstanceAccount(tasks=tasks or ("0_0",), lag=lag, position=position, at=at)


def test_what_comes_in_is_what_was_processed_and_what_waits_in_addition() -> None:
    before = {"a": said(100.0, 1000, 500), "b": said(100.0, 0, 0, "0_1", "0_2")}
    after = {"a": said(110.0, 1300, 400), "b": said(110.0, 60, 20, "0_1", "0_2")}
    sample = measured(before, after)
    assert sample is not None
    assert sample.arrival == pytest.approx((300 - 100 + 60 + 20) / 10)
    assert (sample.lag, sample.seconds, sample.peak) == (420, 10.0, 30.0)
    assert sample.furthest == 1200, "three tasks, if all were 400 behind"
    assert (sample.busy_records, sample.busy_seconds) == (300, 10.0), "the other one ran out of work"
    assert sample.one_task_behind


def test_an_instance_that_may_have_run_out_of_work_was_not_busy() -> None:
    sample = measured({"a": said(100.0, 1000, 299)}, {"a": said(110.0, 1300, 5)})
    assert sample is not None
    assert (sample.peak, sample.busy_seconds) == (30.0, 0.0)


@pytest.mark.parametrize(
    "after",
    [
        {},
        {"b": said(110.0, 1300, 400)},
        {"a": said(110.0, 1300, 400), "b": said(110.0, 0, 0)},
        {"a": said(100.0, 1300, 400)},
        {"a": said(191.0, 1300, 400)},
        {"a": said(110.0, 900, 400)},
        {"a": said(110.0, None, 400)},
        {"a": said(110.0, 1300, None)},
        {"a": said(110.0, 1300, 400, "0_1")},
    ],
)
def test_answers_that_do_not_belong_together_say_nothing(after: Mapping[str, InstanceAccount]) -> None:
    assert measured({"a": said(100.0, 1000, 500)}, after) is None


def test_an_instance_without_tasks_has_nothing_to_do() -> None:
    idle = InstanceAccount(at=100.0)
    sample = measured({"a": said(100.0, 0, 0), "b": idle}, {"a": said(110.0, 50, 0), "b": replace(idle, at=110.0)})
    assert sample is not None
    assert (sample.arrival, sample.lag) == (5.0, 0)


def test_a_sample_is_as_long_as_was_asked_for_and_a_lost_answer_makes_it_longer() -> None:
    clock = [0.0]
    history = LoadHistory(lambda: clock[0])

    def load(at: float, **accounts: InstanceAccount) -> list[tuple[float, float]]:
        clock[0] = at
        return [(each.since, each.until) for each in history.of(KEY, accounts, 15.0).samples]

    assert load(0.0, a=said(0.0, 0, 0)) == []
    assert load(5.0, a=said(5.0, 5, 0)) == [], "too short"
    assert load(15.0, a=said(15.0, 15, 0)) == [(0.0, 15.0)]
    assert load(16.0, a=said(15.0, 15, 0)) == [(0.0, 15.0)], "the same answer"
    assert load(30.0) == [(0.0, 15.0)]
    assert load(45.0, a=said(45.0, 45, 0)) == [(0.0, 15.0), (15.0, 45.0)]
    assert load(60.0, a=said(60.0, 60, 0, "0_1")) == [], "other tasks are another load"
    assert load(75.0, a=said(75.0, 75, 0, "0_1")) == [(60.0, 75.0)]
    assert load(200.0, a=said(200.0, 75, 0, "0_1")) == [(60.0, 75.0)]
    assert load(215.0, a=said(215.0, 75, 0, "0_1")) == [(200.0, 215.0)], "what lies before the gap is old"


def test_what_is_remembered_is_what_the_round_said() -> None:
    clock = [0.0]
    history = LoadHistory(lambda: clock[0])
    for number in range(10):
        clock[0] = 15.0 * number
        load = history.of(KEY, {"a": said(clock[0], number, 0)}, 15.0)
        history.remember(KEY, LoadMemory(60.0, Learned(rate=7.0)))
    assert [each.since for each in load.samples] == [45.0, 60.0, 75.0, 90.0, 105.0, 120.0]
    assert load.learned.rate == 7.0
    history.remember(KEY, LoadMemory(0.0, Learned(rate=8.0)))
    clock[0] = 150.0
    load = history.of(KEY, {"a": said(150.0, 10, 0)}, 15.0)
    assert (load.samples, load.learned.rate, load.quiet_since) == ((), 8.0, 135.0)
    history.remember(KEY, None)
    assert history.of(KEY, {}, 15.0).learned == Learned()
    history.clear()
    assert history.of(KEY, {}, 15.0).heard == 150.0


def test_a_day_of_samples_is_a_few_dozen_and_the_greatest_load_stays() -> None:
    sample = measured({"a": said(0.0, 0, 0)}, {"a": said(15.0, 1500, 0)})
    assert sample is not None
    samples = tuple(
        replace(sample, since=15.0 * number, until=15.0 * (number + 1), arrival=100.0 + (number == 1000))
        for number in range(1, 5760)
    )
    held = samples[:1]
    for each in samples[1:]:
        held = compacted((*held, each))
        assert len(held) <= 48
    assert (held[0].since, held[-1].until) == (15.0, 86_400.0)
    assert max(each.arrival for each in held) == 101.0
    assert all(one.until == other.since for one, other in pairwise(held))
    assert held[-16:] == samples[-16:]


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 12, 100])
def test_the_fewest_instances_have_the_capacity_and_one_fewer_has_not(tasks: int) -> None:
    for demand in (0.0, 5e-324, 0.5, 1.0, 1.5, 2.9, tasks / 2, tasks - 0.01, float(tasks)):
        fewest = needed(demand, tasks, 1.0)
        if demand <= tasks:
            assert capacity(fewest, tasks, 1.0) >= demand * (1 - 1e-9)
            assert fewest == 1 or capacity(fewest - 1, tasks, 1.0) < demand
    assert needed(tasks * 1.01, tasks, 1.0) == tasks + 1
    assert needed(1.0, tasks, 0.0) == tasks + 1


def test_pods_of_an_earlier_runtime_say_nothing_of_positions() -> None:
    answer = {"tasks": [{"id": "0_0"}], "restoration": [], "lag": [{"lag": 3}]}
    found = account(answer)
    assert (found.lag, found.position, found.standby_lag) == (3, None, 0)
    new = account({**answer, "lag": [{"lag": 3, "position": 5}, {"lag": 1, "position": 6}], "standbys": [{"lag": 8}]})
    assert (new.lag, new.position, new.standby_lag) == (4, 11, 8)
    assert account({**answer, "standbys": [{"lag": None}]}).standby_lag is None


def test_what_an_instance_misses_before_it_takes_part_counts_as_records_to_restore() -> None:
    answer = {"tasks": [], "restoration": [{"ended_at": None, "end": 5, "position": 3}], "lag": []}
    assert account({**answer, "warm_up": {"ready": False, "remaining": 40}}).records_left == 42
    assert account({**answer, "warm_up": None}).records_left == account(answer).records_left == 2


@pytest.mark.parametrize("strange", [1e300, 2**63 + 1, float("nan"), "many", []])
def test_what_is_no_offset_is_no_answer(strange: object) -> None:
    answer = {"tasks": [{"id": "0_0"}], "restoration": [], "lag": [{"lag": 3, "position": strange}]}
    with pytest.raises((ValueError, TypeError)):
        account(answer)


def test_a_step_up_soon_after_one_down_makes_the_next_one_down_wait_twice_as_long() -> None:
    policy = Policy(1, 4, 4, 4, stabilization=300.0)

    def after(learned: Learned, now: float, step: int) -> Learned:
        load = Load(now=now, quiet_since=now, learned=learned)
        return memory(policy, load, Verdict(2 + step, "", "", 1.0), 2, True).learned

    learned = after(after(Learned(), 1000.0, -1), 1500.0, 1)
    assert learned.patience == 2
    learned = after(learned, 1600.0, 1)
    assert learned.patience == 2, "another one up says nothing more"
    learned = after(after(learned, 3000.0, -1), 4000.0, 1)
    assert learned.patience == 4
    learned = after(after(learned, 5000.0, -1), 50_000.0, 1)
    assert learned.patience == 1, "fewer were enough for long"
    assert stabilization_of(policy, Learned(patience=2)) == 600.0
    assert stabilization_of(policy, Learned(patience=2**40)) == 86_400.0


def test_what_a_step_costs_is_known_once_everything_is_quiet() -> None:
    policy = Policy(1, 4, 4, 4)
    sample = measured({"a": said(150.0, 0, 0)}, {"a": said(165.0, 1500, 0)})
    assert sample is not None
    stepped = memory(policy, Load(now=100.0), Verdict(1, "", "", None), 2, True).learned
    assert (stepped.stepped_at, stepped.recovering) == (100.0, True)
    waiting = memory(policy, Load(now=120.0, learned=stepped), Verdict(1, "", "", None), 1, False)
    assert waiting == LoadMemory(0.0, stepped)
    quiet = Load(now=165.0, quiet_since=150.0, samples=(sample,), learned=stepped)
    known = memory(policy, quiet, Verdict(1, "", "", None), 1, True).learned
    assert (known.cost, known.stepped_at, known.recovering) == (50.0, None, True)
    caught_up = memory(policy, replace(quiet, learned=known), Verdict(1, "", "", None), 1, True).learned
    assert not caught_up.recovering
