"""What `spec.networkPolicy` may say, and the policy that comes of it."""

from __future__ import annotations

from typing import Any

import pytest
from operator_cases import digest_of, made, observed, removed
from operator_world import NAME, resource

from streams_operator.plan import plan
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.network import network_policy
from streams_runtime.api import read_application
from streams_runtime.api.spec.network_spec import NetworkPolicySpec

PEER = {"podSelector": {"matchLabels": {"app": "web"}}}
ON = {"networkPolicy": {"enabled": True}}
OFF = {"networkPolicy": {"enabled": False}}


def mistakes(policy: Any) -> list[str]:
    return [str(each) for each in read_application(resource({"networkPolicy": policy}), "here").mistakes]


def of_peer(peer: Any) -> list[str]:
    return mistakes({"enabled": True, "from": [peer]})


@pytest.mark.parametrize(
    "peer",
    [
        PEER,
        {"namespaceSelector": {}},
        {"podSelector": {}, "namespaceSelector": {"matchLabels": {"team": "shop"}}},
        {"ipBlock": {"cidr": "10.1.0.0/16", "except": ["10.1.2.0/24", "10.1.3.4/32"]}},
        {"ipBlock": {"cidr": "2001:db8::/32"}},
    ],
)
def test_pods_and_addresses_can_be_named(peer: Any) -> None:
    assert of_peer(peer) == []


@pytest.mark.parametrize(
    ("peer", "said"),
    [
        ({}, "spec.networkPolicy.from[0]: names nobody"),
        (PEER | {"ipBlock": {"cidr": "10.0.0.0/8"}}, "from[0].ipBlock: is given beside podSelector"),
        ({"podSelector": {"matchLabels": {"a/b/c": "d"}}}, "which is no qualified name"),
        ({"ipBlock": {"cidr": "10.1.0.1"}}, "from[0].ipBlock.cidr: found '10.1.0.1', which is no range of addresses"),
        ({"ipBlock": {"cidr": "10.1.0.1/16"}}, "which is no range of addresses"),
        ({"ipBlock": {"cidr": "here/16"}}, "which is no range of addresses"),
        ({"ipBlock": {"cidr": "10.1.0.0/16", "except": ["10.2.0.0/24"]}}, "10.2.0.0/24 is not within 10.1.0.0/16"),
        ({"ipBlock": {"cidr": "10.1.0.0/16", "except": ["10.1.0.0/16"]}}, "10.1.0.0/16 is not within 10.1.0.0/16"),
        ({"ipBlock": {"cidr": "10.1.0.0/16", "except": ["2001:db8::/64"]}}, "is not within 10.1.0.0/16"),
        ({"ipBlock": {"cidr": "10.1.0.0/16", "except": ["x"]}}, "except[0]: found 'x', which is no range"),
    ],
)
def test_what_a_policy_can_t_mean_is_refused_with_its_place(peer: Any, said: str) -> None:
    (mistake,) = of_peer(peer)
    assert said in mistake


def test_a_policy_that_is_off_holds_nobody() -> None:
    (mistake,) = mistakes({"from": [PEER]})
    assert mistake.startswith("spec.networkPolicy.from: is given beside enabled: false")


def test_pods_and_operator_reach_pods_and_so_do_those_that_are_named() -> None:
    peers = [PEER, {"namespaceSelector": {}}, {"ipBlock": {"cidr": "10.1.0.0/16", "except": ["10.1.2.0/24"]}}]
    given = NetworkPolicySpec.model_validate({"enabled": True, "from": peers})
    own = {"podSelector": {"matchLabels": {"streamsoperator.io/application": NAME}}}
    operator = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "streams-system"}}}
    found = network_policy(Identity(NAME, "shop", "uid"), given, "streams-system", executors=False)["spec"]
    assert found["podSelector"] == own["podSelector"]
    assert found["policyTypes"] == ["Ingress"]
    (rule,) = found["ingress"]
    assert [each["port"] for each in rule["ports"]] == [8080]
    assert rule["from"][:2] == [own, operator]
    assert rule["from"][2:] == peers


def test_executors_reach_the_driver_at_every_port() -> None:
    on = NetworkPolicySpec(enabled=True)
    _, executors = network_policy(Identity(NAME, "shop", "uid"), on, "o", executors=True)["spec"]["ingress"]
    assert executors == {"from": [{"podSelector": {"matchLabels": {"streamsoperator.io/executors-of": NAME}}}]}


def test_it_is_made_when_it_is_asked_for_and_goes_when_it_is_not() -> None:
    there = {"metadata": {"name": NAME, "uid": "u", "ownerReferences": [{"uid": "uid-of-orders"}]}, "spec": {}}
    objects = {("NetworkPolicy", NAME): there}
    assert made(plan(observed(ON)), "NetworkPolicy") == [NAME]
    assert made(plan(observed()), "NetworkPolicy") == []
    assert removed(plan(observed(OFF, objects=objects)), "NetworkPolicy") == [NAME]
    assert removed(plan(observed(ON, objects=objects)), "NetworkPolicy") == []


def test_somebody_else_s_policy_of_the_same_name_stays() -> None:
    there = {"metadata": {"name": NAME, "uid": "u", "ownerReferences": [{"uid": "somebody"}]}, "spec": {}}
    assert removed(plan(observed(OFF, objects={("NetworkPolicy", NAME): there})), "NetworkPolicy") == []


def test_no_pod_is_replaced_for_it() -> None:
    assert digest_of(ON) == digest_of()
