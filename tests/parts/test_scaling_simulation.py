"""The number of instances over curves of load: it settles, catches up in time, and is never more than one too many."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

from example_counts import examples
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scaling_model import Curve, Simulation

from streams_operator.plan.scaling.capacity import capacity, needed
from streams_operator.plan.scaling.replica_decision import ROOM
from streams_operator.plan.scaling.scaling_policy import Policy

HOUR = 3600.0
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking, which takes minutes: an example is small as it is."""
parts = st.integers(0, 26).map(lambda number: number / 20)
"""Of what all instances that there may be can process together."""


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    tasks = draw(st.integers(1, 8))
    limit = draw(st.integers(1, 10))
    most = min(limit, tasks)
    least = draw(st.integers(1, most))
    target, stabilization = draw(st.sampled_from([30.0, 120.0, 600.0])), draw(st.sampled_from([60.0, 300.0]))
    return Policy(least, most, limit, tasks, target, stabilization)


@st.composite
def applications(draw: st.DrawFn) -> tuple[Policy, Simulation]:
    """An application that nothing comes to yet; loads are told as parts of what all of its instances can do."""
    policy = draw(policies())
    rate = draw(st.sampled_from([3.0, 200.0, 20_000.0]))
    simulation = Simulation(
        policy=policy,
        arrival=lambda _: 0.0,
        rate=rate,
        start=draw(st.integers(policy.least, policy.most)),
        backlog=rate * draw(st.sampled_from([0.0, 60.0, 1200.0])),
        moving=draw(st.sampled_from([5.0, 30.0, 180.0])),
        warm_up=draw(st.sampled_from([0.0, 20.0])),
        jitter=draw(st.floats(0.0, 0.1)),
        commit=draw(st.sampled_from([5.0, 10.0])),
    )
    return policy, simulation


def most_of(simulation: Simulation) -> float:
    policy = simulation.policy
    return capacity(policy.most, policy.tasks, simulation.rate)


def catches_up(simulation: Simulation) -> None:
    """In the target and what a step costs, where the replicas allow it; and what a step down leaves, for that room."""
    policy, moving = simulation.policy, simulation.moving + simulation.warm_up
    allowed = 1.4 * (policy.target + moving) + slack(simulation)
    assert simulation.longest_behind(after_up=True) <= allowed
    assert simulation.longest_behind(after_up=False) <= allowed + (moving + simulation.policy.settling) / (1 - ROOM)


def slack(simulation: Simulation) -> float:
    """Seconds that pass between a change of the load and a step: settling, and the samples that have to agree."""
    policy = simulation.policy
    return policy.settling + 5 * (policy.interval * 1.1 + 5.0) + 2 * simulation.commit


def holds_its_bounds(simulation: Simulation) -> None:
    policy = simulation.policy
    for (at, before), (later, after) in pairwise(simulation.wanted):
        assert abs(after - before) == 1, "one step at a time"
        assert policy.least <= after <= policy.most
        quiet = simulation.moving + policy.settling if at else policy.settling
        assert later - at >= quiet, "no step while tasks move, or before they were measured"
        if after < before:
            assert later - at >= policy.stabilization


def is_settled(simulation: Simulation, arrival: float) -> None:
    """At the end of an hour and more of one load: few enough instances, and enough of them."""
    least = simulation.least(arrival)
    assert simulation.replicas >= min(needed(arrival, simulation.policy.tasks, simulation.rate), simulation.policy.most)
    assert simulation.wanted[-1][0] <= simulation.now - HOUR, "it does not come to rest"
    if simulation.rate_is_known:
        assert simulation.replicas <= least + 1, "more than needed by more than one"
    assert arrival > 0.9 * most_of(simulation) or not simulation.is_behind(), "it is not caught up"


@settings(max_examples=examples(40), deadline=None, phases=PHASES)
@given(applications(), parts)
def test_a_load_that_does_not_change_brings_rest(given_: tuple[Policy, Simulation], part: float) -> None:
    _, simulation = given_
    arrival = part * most_of(simulation)
    simulation.arrival = lambda _: arrival
    simulation.rest(1.5 * HOUR, 12 * HOUR)
    holds_its_bounds(simulation)
    assert simulation.turns() <= 1, simulation.wanted
    catches_up(simulation)
    is_settled(simulation, arrival)


@settings(max_examples=examples(25), deadline=None, phases=PHASES)
@given(applications(), parts, parts)
def test_a_step_is_caught_up_with_and_brings_rest(
    given_: tuple[Policy, Simulation], before: float, after: float
) -> None:
    _, simulation = given_
    one, other = before * most_of(simulation), after * most_of(simulation)
    simulation.arrival = lambda now: one if now < HOUR else other
    simulation.run(HOUR).rest(1.5 * HOUR, 12 * HOUR)
    holds_its_bounds(simulation)
    assert simulation.turns() <= 3, simulation.wanted  # up for the first backlog, down, up for the step, and down
    catches_up(simulation)
    is_settled(simulation, other)


@settings(max_examples=examples(15), deadline=None, phases=PHASES)
@given(applications(), parts, st.sampled_from([0.02, 0.1, 0.2]), st.integers(0, 1000))
def test_noise_brings_no_oscillation(given_: tuple[Policy, Simulation], part: float, noise: float, seed: int) -> None:
    _, simulation = given_
    arrival, random = part * most_of(simulation), Random(seed)
    simulation.arrival = lambda _: arrival * (1 + noise * random.uniform(-1, 1))
    simulation.run(3 * HOUR)
    since = simulation.now
    simulation.run(3 * HOUR)
    holds_its_bounds(simulation)
    assert simulation.turns() <= 2, simulation.wanted
    assert len([at for at, _ in simulation.wanted if at > since]) <= 1, simulation.wanted


def curve(shape: str, most: float, length: float) -> Curve:
    """Up to `most` records a second; the last hours are of one load."""
    match shape:
        case "sine":
            return lambda now: most * (0.5 + 0.5 * math.sin(2 * math.pi * now / length))
        case "ramp":
            return lambda now: most * min(now / length, 1.0)
        case "spikes":
            return lambda now: most * (1.0 if now % length < 120.0 else 0.2)
        case _:
            return lambda now: most if now % length < length / 2 else 0.1 * most


@settings(max_examples=examples(25), deadline=None, phases=PHASES)
@given(
    applications(),
    st.sampled_from(["sine", "ramp", "spikes", "day and night"]),
    parts,
    st.sampled_from([1800.0, 7200.0]),
)
def test_a_load_that_changes_turns_the_number_no_more_often_than_itself(
    given_: tuple[Policy, Simulation], shape: str, part: float, length: float
) -> None:
    _, simulation = given_
    changing, last = 4 * HOUR, part * most_of(simulation)
    shaped = curve(shape, last, length)
    simulation.arrival = lambda now: shaped(now) if now < changing else last
    simulation.run(changing)
    assert simulation.turns() <= 2 * math.ceil(changing / length) + 1, simulation.wanted
    simulation.rest(1.5 * HOUR, 12 * HOUR)
    holds_its_bounds(simulation)
    assert simulation.turns(changing) <= 2, simulation.wanted
    is_settled(simulation, last)


def test_without_a_busy_instance_none_is_taken_away_that_was_not_proven_too_many() -> None:
    policy = Policy(1, 4, 4, 4)
    simulation = Simulation(policy, lambda _: 400.0, rate=1000.0, start=4).run(2 * HOUR)
    assert simulation.replicas == 4, "one has shown 100 records a second, and may not be able to do 200"
    assert simulation.verdicts[-1][1].reason == "RateUnknown"
    simulation.arrival = lambda _: 0.0
    assert simulation.run(2 * HOUR).replicas == 1


def test_one_partition_that_is_far_behind_gets_no_instance_that_could_not_help() -> None:
    policy = Policy(1, 4, 4, 8)
    simulation = Simulation(policy, lambda _: 100.0, rate=1000.0, start=4, backlog=10_000_000.0)
    simulation.run(600.0)
    assert simulation.replicas == 4
    assert simulation.verdicts[-1][1].reason == "AtMaximum"
