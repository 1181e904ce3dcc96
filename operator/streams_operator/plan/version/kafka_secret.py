"""What the Secret of `spec.kafka` gives the operator's own clients: properties, or why it can't be used."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from streams_operator.model import Json
from streams_runtime.api import StreamsApplication

REFUSED = "KafkaSecret"
"""Reason of InternalTopicsReady while the Secret can't be used."""


@dataclass(frozen=True, slots=True)
class KafkaSecret:
    """`properties` of the clients. `refusal` is why nobody asks the brokers; empty: the properties can be used."""

    properties: Mapping[str, str] | None = None
    refusal: str = ""


def kafka_secret_name(application: StreamsApplication) -> str | None:
    """The Secret that spec.kafka.secretRef names; None: it names none."""
    reference = application.spec.kafka.secret_ref
    return None if reference is None else reference.name


def kafka_secret(name: str, namespace: str, secret: Json | None) -> KafkaSecret:
    """The Secret `name` as it was read; `secret` None: there is none of this name."""
    if secret is None:
        return KafkaSecret(refusal=_refusal(name, namespace, "is not there"))
    try:
        return KafkaSecret(properties(secret))
    except (UnicodeDecodeError, binascii.Error):
        return KafkaSecret(refusal=_refusal(name, namespace, "holds a value that is not UTF-8 text"))


def properties(secret: Json) -> dict[str, str]:
    """The client properties in a Secret.

    Raises binascii.Error, UnicodeDecodeError: a value is none that a property can have.
    """
    data = secret.get("data") or {}
    if not isinstance(data, Mapping):
        return {}
    return {str(name): base64.b64decode(str(value)).decode().rstrip("\n") for name, value in data.items()}


def _refusal(name: str, namespace: str, found: str) -> str:
    return (
        f"spec.kafka.secretRef: Secret {name} {found} in namespace {namespace}."
        " Create it with one key for each client property"
    )
