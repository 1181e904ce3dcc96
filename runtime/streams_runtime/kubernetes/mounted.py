"""What the operator mounts into a pod: the application, and the secret client properties."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.schemas.avro_checks import CLIENT_PROPERTIES
from streams_runtime.errors import ConfigException, InvalidApplicationException, Mistake
from streams_runtime.kafka.client.security import config_path

CONFIG_FILE = "application.json"
"""Name of the application's file in its folder; with `.gz` behind it when the application is long."""
_PEM = {f"ssl.{name}.pem": f"ssl.{name}.location" for name in ("ca", "certificate", "key")}


def read_mounted_application(folder: Path) -> StreamsApplication:
    """The application in `folder`, plain or compressed.

    Raises:
        ConfigException: neither file is there, or it can't be read.
        InvalidApplicationException: every mistake of the application; also that it names no brokers.
    """
    application = parse_application(_document(folder))
    if application.spec.kafka.bootstrap_servers is None:
        missing = "is missing, and a pod starts no broker of its own"
        raise InvalidApplicationException(
            [Mistake("spec.kafka.bootstrapServers", missing, "give host:port, several joined by commas")]
        )
    return application


def _document(folder: Path) -> dict[str, Any]:
    plain, compressed = folder / CONFIG_FILE, folder / f"{CONFIG_FILE}.gz"
    file = plain if plain.exists() or not compressed.exists() else compressed
    try:
        data = file.read_bytes()
        document = orjson.loads(gzip.decompress(data) if file is compressed else data)
    except FileNotFoundError:
        raise ConfigException(
            f"there is neither {plain} nor {compressed}; the operator mounts the application's ConfigMap there"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigException(f"{file} can't be read: {error}; the operator writes it, see its log") from error
    except orjson.JSONDecodeError as error:
        raise ConfigException(f"{file} is not JSON: {error}; the operator writes it, see its log") from error
    if not isinstance(document, dict):
        raise ConfigException(f"{file} holds no StreamsApplication; the operator writes it, see its log")
    return document


def read_secret_properties(folder: Path, field: str = "spec.kafka.secretRef") -> dict[str, str]:
    """The client properties in `folder`, by file name; none when there is no folder.

    A line break at the end is left out: editors and `kubectl create secret --from-file` bring one along.

    Raises:
        ConfigException: a file can't be read; the message has its name, never what is in it.
    """
    if not folder.is_dir():
        return {}
    # Kubernetes' own entries begin with two dots: the folder that the visible names are links into.
    files = sorted(file for file in folder.iterdir() if not file.name.startswith(".") and file.is_file())
    return {file.name: _text(file, field) for file in files}


def read_registry_properties(folder: Path) -> dict[str, str]:
    """The properties of the schema registry's client in `folder`, as `read_secret_properties`; PEM text stays there.

    Raises:
        ConfigException: a file can't be read, or there is no such property.
    """
    field = "spec.kafka.schemaRegistry.secretRef"
    found = read_secret_properties(folder, field)
    known = (*CLIENT_PROPERTIES, *_PEM)
    for name in found:
        if name not in known:
            raise ConfigException(
                f"{field}, key {name}: no property of the registry's client; {suggestion(name, known)}"
            )
    return {_PEM.get(name, name): str(folder / name) if name in _PEM else value for name, value in found.items()}


def _text(file: Path, field: str) -> str:
    try:
        return file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = f"the secret client property {file.name} is not UTF-8 text; correct this key of {field}"
        raise ConfigException(text) from None
    except OSError as error:
        text = f"the secret client property {file.name} can't be read: {error.strerror}; correct the Secret's mount"
        raise ConfigException(text) from error


def with_secret(
    application: StreamsApplication, secret: Mapping[str, str], registry: Mapping[str, str] | None = None
) -> StreamsApplication:
    """The application with the secret properties over those of spec.kafka.config and of its schemaRegistry.config."""
    kafka = application.spec.kafka
    declared = kafka.schema_registry
    if declared is not None and registry:
        declared = declared.model_copy(update={"config": {**declared.config, **registry}})
    merged = kafka.model_copy(update={"config": {**kafka.config, **secret}, "schema_registry": declared})
    return application.model_copy(update={"spec": application.spec.model_copy(update={"kafka": merged})})


def without_secrets(error: InvalidApplicationException, secret: Mapping[str, str]) -> InvalidApplicationException:
    """The same mistakes, with the Secret's keys as their places where they are about those, and no secret value."""
    keys = {config_path(name): f"spec.kafka.secretRef, key {name}" for name in secret}
    together = config_path("x").partition("[")[0]  # what properties come to only with each other
    return InvalidApplicationException(
        [
            Mistake(keys.get(each.path, each.path), _redacted(each.found, secret), each.remedy)
            if each.path in keys or each.path == together
            else each
            for each in error.mistakes
        ]
    )


def _redacted(text: str, secret: Mapping[str, str]) -> str:
    """The longest first: one value may be part of another."""
    values = {form for value in secret.values() for form in (value, repr(value)[1:-1], *value.splitlines()) if form}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, "(secret)")
    return text
