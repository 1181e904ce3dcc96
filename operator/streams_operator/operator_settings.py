"""The operator's settings, read from its environment. The chart sets these variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from streams_operator.model import Defaults
from streams_operator.shards import Shard
from streams_runtime.api.spec.template_spec import ResourcesSpec

PREFIX = "STREAMS_OPERATOR_"
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_FORMATS = ("text", "json")
_BY_THE_CLUSTER = "cluster"
_YES_OR_NO = ("true", "false")
_POLICIES = ("Always", "IfNotPresent", "Never")
_HIGHEST_PORT = 65535
_MOST_SHARDS = 64


class SettingError(Exception):
    """A variable has a value that can't be used. The text names it and says what would do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Times are in seconds, ports are TCP ports on all addresses; port 0 takes any that is free."""

    defaults: Defaults
    namespaces: tuple[str, ...] = ()  # empty: all
    lease_namespace: str = "default"
    lease_name: str = "streams-operator"
    shard: Shard = field(default_factory=Shard)  # its share of the namespaces: all
    rollout_at_a_time: int = 0  # applications that get a new default image at a time; 0: all at once
    metrics_port: int = 8080
    health_port: int = 8081
    webhook_port: int | None = None  # None: no webhook
    webhook_certificate: Path | None = None  # folder with tls.crt and tls.key
    log_level: str = "INFO"
    log_format: str = "json"


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings in STREAMS_OPERATOR_*. Raises SettingError for the first that can't be used."""
    values = _Values(environment)
    namespace = values.text("LEASE_NAMESPACE", _own_namespace())
    return Settings(
        defaults=Defaults(
            image=values.required("RUNTIME_IMAGE", "the image of the applications' pods"),
            delete_deadline=values.seconds("DELETE_DEADLINE", 120.0),
            image_pull_policy=values.one_of("IMAGE_PULL_POLICY", "IfNotPresent", _POLICIES),
            namespace=namespace,
            run_as_user=values.user("RUN_AS_USER", 10001),
            resources=values.resources("RESOURCES"),
            executors_as_pods=values.one_of("EXECUTORS_AS_PODS", "false", _YES_OR_NO) == "true",
        ),
        namespaces=tuple(dict.fromkeys(values.text("NAMESPACES", "").replace(",", " ").split())),
        lease_namespace=namespace,
        lease_name=values.text("LEASE_NAME", "streams-operator"),
        shard=values.shard("SHARD", "SHARDS"),
        rollout_at_a_time=values.count("ROLLOUT_MAX_APPLICATIONS", 0),
        metrics_port=values.port("METRICS_PORT", 8080),
        health_port=values.port("HEALTH_PORT", 8081),
        webhook_port=values.port("WEBHOOK_PORT", 0) if values.text("WEBHOOK_PORT", "") else None,
        webhook_certificate=values.certificate("WEBHOOK_CERTIFICATE", "WEBHOOK_PORT"),
        log_level=values.one_of("LOG_LEVEL", "INFO", _LEVELS),
        log_format=values.one_of("LOG_FORMAT", "json", _FORMATS),
    )


class _Values:
    """An empty variable counts as one that is not set, since a chart's template may leave it empty."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str, default: str) -> str:
        return self._environment.get(PREFIX + name, "").strip() or default

    def required(self, name: str, what: str) -> str:
        if value := self.text(name, ""):
            return value
        raise SettingError(f"{PREFIX}{name} is not set; give {what}")

    def one_of(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name, default)
        for each in allowed:
            if each.lower() == value.lower():
                return each
        raise SettingError(f"{PREFIX}{name} is {value!r}; give one of {', '.join(allowed)}")

    def seconds(self, name: str, default: float) -> float:
        value = self.text(name, str(default))
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            raise SettingError(f"{PREFIX}{name} is {value!r}; give a number of seconds, 0 or more")
        return number

    def count(self, name: str, default: int) -> int:
        value = self.text(name, str(default))
        if not value.isdecimal() or int(value) >= 2**31:
            raise SettingError(f"{PREFIX}{name} is {value!r}; give a whole number, 0 or more")
        return int(value)

    def user(self, name: str, default: int) -> int | None:
        value = self.text(name, str(default))
        if value == _BY_THE_CLUSTER:
            return None
        if not value.isdecimal() or not 0 < int(value) < 2**31:
            remedy = f"give the number of a user, 1 or more, or {_BY_THE_CLUSTER}"
            raise SettingError(f"{PREFIX}{name} is {value!r}; {remedy}")
        return int(value)

    def resources(self, name: str) -> ResourcesSpec | None:
        value = self.text(name, "")
        try:
            return ResourcesSpec.model_validate_json(value) if value else None
        except ValidationError as error:
            remedy = "give the requests and limits of a container, as JSON"
            raise SettingError(f"{PREFIX}{name} is {value!r}; {remedy}") from error

    def port(self, name: str, default: int) -> int:
        value = self.text(name, str(default))
        if not value.isdecimal() or int(value) > _HIGHEST_PORT:
            raise SettingError(f"{PREFIX}{name} is {value!r}; give a port number")
        return int(value)

    def shard(self, number: str, of: str) -> Shard:
        many, which = self.text(of, "1"), self.text(number, "0")
        if not many.isdecimal() or not 1 <= int(many) <= _MOST_SHARDS:
            raise SettingError(f"{PREFIX}{of} is {many!r}; give a number from 1 to {_MOST_SHARDS}")
        if int(many) > 1 and not self.text(number, ""):
            raise SettingError(f"{PREFIX}{number} is not set though {PREFIX}{of} is; give a number from 0 on")
        if not which.isdecimal() or int(which) >= int(many):
            raise SettingError(f"{PREFIX}{number} is {which!r}; give a number from 0 to {int(many) - 1}")
        return Shard(int(which), int(many))

    def certificate(self, name: str, port: str) -> Path | None:
        folder = self.text(name, "")
        if not self.text(port, ""):
            return None
        if not folder:
            raise SettingError(
                f"{PREFIX}{name} is not set though {PREFIX}{port} is; give the folder of its certificate"
            )
        for file in ("tls.crt", "tls.key"):
            if not (Path(folder) / file).is_file():
                raise SettingError(
                    f"{PREFIX}{name} is {folder!r}, which has no {file}; mount the certificate's Secret there"
                )
        return Path(folder)


def _own_namespace() -> str:
    try:
        return _NAMESPACE_FILE.read_text().strip()
    except OSError:
        return "default"
