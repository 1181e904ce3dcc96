"""KIP-698's table: what each way of setting up makes of every mixture of internal topics that are there or missing."""

from __future__ import annotations

import dataclasses
import itertools
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.api.spec.kafka_spec import InitSpec
from streams_runtime.errors import ConfigException, MissingInternalTopicException
from streams_runtime.topics.setup_policy import InitParameters, automatic, explicit, manual
from streams_runtime.topology.plan import InternalTopic

KINDS = ("repartition", "changelog")
ALL = tuple(InitParameters(*each) for each in itertools.product([False, True], repeat=2))


def topic(kind, number):
    return InternalTopic(f"app-{number}-{kind}", kind, 3, -1, ())


EXPECTED = st.lists(st.sampled_from(KINDS), min_size=1, max_size=6).map(
    lambda kinds: tuple(topic(kind, number) for number, kind in enumerate(kinds))
)


@st.composite
def mixtures(draw):
    """(expected, missing): at least one is missing."""
    expected = draw(EXPECTED)
    gone = draw(st.lists(st.booleans(), min_size=len(expected), max_size=len(expected)).filter(any))
    return expected, tuple(each for each, is_gone in zip(expected, gone, strict=True) if is_gone)


def enabled(parameters):
    """The kinds that init(parameters) may make beside others, said anew and not read from the policy."""
    return {
        kind
        for kind, on in (
            ("repartition", parameters.setup_repartition_topics_if_incomplete_enabled),
            ("changelog", parameters.setup_changelog_topics_if_incomplete_enabled),
        )
        if on
    }


@pytest.mark.parametrize("parameters", ALL)
def test_a_timeout_stays_whatever_is_enabled_after_it_and_changes_no_permission(parameters):
    timed = parameters.with_timeout(timedelta(seconds=90))
    assert dataclasses.replace(timed, timeout=None) == parameters
    assert parameters.timeout is None
    assert parameters.seconds is None
    for change in (
        "enable_setup_repartition_topics_if_incomplete",
        "disable_setup_repartition_topics_if_incomplete",
        "enable_setup_changelog_topics_if_incomplete",
        "disable_setup_changelog_topics_if_incomplete",
        "enable_setup_internal_topics_if_incomplete",
        "disable_setup_internal_topics_if_incomplete",
    ):
        changed = getattr(timed, change)()
        assert changed.seconds == 90
        assert dataclasses.replace(changed, timeout=None) == getattr(parameters, change)()


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(seconds=-1)])
def test_a_timeout_that_leaves_no_time_is_refused(timeout):
    with pytest.raises(ConfigException, match="more than zero"):
        InitParameters().with_timeout(timeout)


@given(mixtures(), st.sampled_from(ALL))
def test_init_follows_the_table_for_every_mixture_and_all_parameters(mixture, parameters):
    expected, missing = mixture
    may = len(missing) == len(expected) or {each.kind for each in missing} <= enabled(parameters)
    if may:
        assert explicit(parameters)(expected, missing) == missing
        return
    with pytest.raises(MissingInternalTopicException) as caught:
        explicit(parameters)(expected, missing)
    text = str(caught.value)
    assert all(each.name in text for each in expected)
    for kind in KINDS:
        has_missing = any(each.kind == kind for each in missing)
        assert (f"--setup-{kind}-topics-if-incomplete" in text) is has_missing
        assert (f"setup{kind.capitalize()}TopicsIfIncomplete: true" in text) is has_missing
    assert "spec.internalTopics.init.nonce" in text


@pytest.mark.parametrize(
    ("missing", "enables", "made"),
    [
        ((0, 1), (), True),
        ((0,), (), False),
        ((1,), (), False),
        ((0,), ("repartition",), True),
        ((1,), ("repartition",), False),
        ((0,), ("changelog",), False),
        ((1,), ("changelog",), True),
        ((0,), KINDS, True),
        ((1,), KINDS, True),
    ],
)
def test_the_rows_of_the_table_for_one_topic_of_each_kind(missing, enables, made):
    expected = (topic("repartition", 0), topic("changelog", 1))
    absent = [expected[number] for number in missing]
    policy = explicit(InitParameters(*(kind in enables for kind in KINDS)))
    if made:
        assert list(policy(expected, absent)) == absent
    else:
        with pytest.raises(MissingInternalTopicException):
            policy(expected, absent)


@given(mixtures())
def test_a_rebalance_with_manual_set_up_makes_nothing_and_lists_all_that_is_missing(mixture):
    expected, missing = mixture
    with pytest.raises(MissingInternalTopicException) as caught:
        manual(expected, missing)
    text = str(caught.value)
    assert all(each.name in text for each in missing)
    assert "spec.internalTopics.setup is manual" in text
    assert "streamsapp init" in text
    assert "spec.internalTopics.init.nonce" in text
    # Options that would lose nothing more are offered only where topics were lost.
    assert ("-if-incomplete" in text) is (len(missing) < len(expected))


@given(mixtures())
def test_a_rebalance_with_automatic_set_up_makes_whatever_is_missing(mixture):
    expected, missing = mixture
    assert automatic(expected, missing) == missing


def test_init_parameters_begin_with_everything_disabled():
    assert enabled(InitParameters()) == set()
    assert not InitParameters().setup_internal_topics_if_incomplete_enabled


@given(st.sampled_from(ALL), st.sampled_from(KINDS), st.booleans())
def test_a_kind_is_enabled_and_disabled_by_itself_and_the_parameters_are_not_changed(parameters, kind, on):
    before = dataclasses.astuple(parameters)
    verb = "enable" if on else "disable"
    changed = getattr(parameters, f"{verb}_setup_{kind}_topics_if_incomplete")()
    assert enabled(changed) == (enabled(parameters) | {kind} if on else enabled(parameters) - {kind})
    assert changed.setup_internal_topics_if_incomplete_enabled == (enabled(changed) == set(KINDS))
    assert dataclasses.astuple(parameters) == before


@given(st.sampled_from(ALL))
def test_both_kinds_are_enabled_and_disabled_together(parameters):
    assert enabled(parameters.enable_setup_internal_topics_if_incomplete()) == set(KINDS)
    assert enabled(parameters.disable_setup_internal_topics_if_incomplete()) == set()


def test_init_parameters_can_not_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        InitParameters().setup_changelog_topics_if_incomplete_enabled = True


@pytest.mark.parametrize("parameters", ALL)
def test_the_resource_s_init_says_the_same_as_parameters(parameters):
    repartition, changelog, _ = dataclasses.astuple(parameters)
    spec = InitSpec.model_validate(
        {
            "nonce": 1,
            "setupRepartitionTopicsIfIncomplete": repartition,
            "setupChangelogTopicsIfIncomplete": changelog,
        }
    )
    assert InitParameters.from_spec(spec) == parameters


def test_a_resource_without_an_init_enables_nothing():
    assert InitParameters.from_spec(None) == InitParameters()
