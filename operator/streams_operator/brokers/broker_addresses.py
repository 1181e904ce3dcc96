"""Brokers' addresses as an application's pods see them, written so that the operator's pod reaches the same."""

from __future__ import annotations


def servers_from(namespace: str, servers: str) -> str:
    """`kafka:9092` in an application of namespace `shop` is the Service kafka of `shop`: `kafka.shop.svc:9092`.

    Addresses whose host has a dot mean the same everywhere, and `localhost` means nothing to pods; both stay.
    """
    return ",".join(_one(namespace, each.strip()) for each in servers.split(","))


def _one(namespace: str, address: str) -> str:
    host, colon, port = address.rpartition(":")
    if not colon or not host or "." in host or ":" in host or host == "localhost":
        return address
    return f"{host}.{namespace}.svc:{port}"
