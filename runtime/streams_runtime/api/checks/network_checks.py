"""Checks of `spec.networkPolicy`."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from streams_runtime.api.checks.label_checks import selector_mistakes
from streams_runtime.api.spec.network_spec import IpBlock, NetworkPeer, NetworkPolicySpec
from streams_runtime.errors import Mistake

_AT = "spec.networkPolicy"


def network_mistakes(policy: NetworkPolicySpec) -> Iterator[Mistake]:
    """What a policy says that it can't mean."""
    if not policy.enabled and policy.from_:
        found = "is given beside enabled: false, and there is no policy to hold it"
        yield Mistake(f"{_AT}.from", found, "leave it out, or set enabled to true")
    for index, peer in enumerate(policy.from_):
        yield from _peer(f"{_AT}.from[{index}]", peer)


def _peer(at: str, peer: NetworkPeer) -> Iterator[Mistake]:
    selectors = (("podSelector", peer.pod_selector), ("namespaceSelector", peer.namespace_selector))
    given = [name for name, selector in selectors if selector is not None]
    if not given and peer.ip_block is None:
        yield Mistake(at, "names nobody", "give it a podSelector, a namespaceSelector or an ipBlock; {} selects all")
    if given and peer.ip_block is not None:
        yield Mistake(f"{at}.ipBlock", f"is given beside {' and '.join(given)}", "make an entry of its own of it")
    for name, selector in selectors:
        if selector is not None:
            yield from selector_mistakes(f"{at}.{name}", selector)
    if peer.ip_block is not None:
        yield from _block(f"{at}.ipBlock", peer.ip_block)


def _block(at: str, block: IpBlock) -> Iterator[Mistake]:
    whole = _network(block.cidr)
    if whole is None:
        yield _no_range(f"{at}.cidr", block.cidr)
    for index, each in enumerate(block.except_):
        field, part = f"{at}.except[{index}]", _network(each)
        if part is None:
            yield _no_range(field, each)
        elif whole is not None and not _within(part, whole):
            yield Mistake(field, f"{each} is not within {block.cidr}", "leave it out, or widen the cidr")


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text) if "/" in text else None
    except ValueError:
        return None


def _within(part: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    """Whether it is a part that is smaller than the whole, as the API server wants it."""
    if isinstance(part, IPv4Network) and isinstance(whole, IPv4Network):
        return part != whole and part.subnet_of(whole)
    return isinstance(part, IPv6Network) and isinstance(whole, IPv6Network) and part != whole and part.subnet_of(whole)


def _no_range(at: str, text: str) -> Mistake:
    return Mistake(
        at, f"found {text!r}, which is no range of addresses", "write its first address and /bits: 10.1.0.0/16"
    )
