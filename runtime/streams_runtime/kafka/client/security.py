"""Login and encryption settings: read in librdkafka's or in Java's spelling, written in either."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from streams_runtime.api.reading.field_paths import under
from streams_runtime.errors import ConfigException

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_MODULES: Mapping[str, str] = {"PLAIN": _PLAIN, "SCRAM-SHA-256": _SCRAM, "SCRAM-SHA-512": _SCRAM}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)"
    r"(?P<options>(?:\s+\w+\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s\";]+))*)\s*;\s*"
)
_JAAS_OPTION = re.compile(r"(\w+)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|[^\s\";]+)")
_PREFIXES = ("security.", "sasl.", "ssl.", "enable.ssl.")

# Each setting under the name that it has here, and how librdkafka and Java spell it.
_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "protocol": ("security.protocol",),
    "mechanism": ("sasl.mechanism", "sasl.mechanisms"),
    "username": ("sasl.username",),
    "password": ("sasl.password",),
    "jaas": ("sasl.jaas.config",),
    "ca_file": ("ssl.ca.location", "ssl.truststore.location"),
    "ca_type": ("ssl.truststore.type",),
    "ca_text": ("ssl.ca.pem", "ssl.truststore.certificates"),
    "certificate_file": ("ssl.certificate.location",),
    "certificate_text": ("ssl.certificate.pem", "ssl.keystore.certificate.chain"),
    "key_file": ("ssl.key.location",),
    "key_text": ("ssl.key.pem", "ssl.keystore.key"),
    "keystore_file": ("ssl.keystore.location",),
    "keystore_type": ("ssl.keystore.type",),
    "keystore_password": ("ssl.keystore.password",),
    "key_password": ("ssl.key.password",),
    "check_host": ("ssl.endpoint.identification.algorithm",),
}
_KNOWN: Mapping[str, str] = {name: field for field, names in _SPELLINGS.items() for name in names}

Report = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True)
class Security:
    """How to log in and what to trust; every field that is None was not set.

    Certificates and keys are PEM, each as a file or as text; `keystore_file` holds both, as PEM or, with
    `keystore_type` PKCS12, as PKCS#12. `check_host` is `https` or `none`.
    """

    protocol: str | None = None
    mechanism: str | None = None
    username: str | None = None
    password: str | None = None
    ca_file: str | None = None
    ca_text: str | None = None
    certificate_file: str | None = None
    certificate_text: str | None = None
    key_file: str | None = None
    key_text: str | None = None
    keystore_file: str | None = None
    keystore_type: str | None = None
    keystore_password: str | None = None
    key_password: str | None = None
    check_host: str | None = None

    def for_librdkafka(self) -> dict[str, str]:
        """The settings as librdkafka spells them."""
        pem_store = self.keystore_file if self.keystore_type == "PEM" else None
        pkcs12 = self.keystore_file if self.keystore_type == "PKCS12" else None
        return _set(
            {
                "security.protocol": self.protocol,
                "sasl.mechanisms": self.mechanism,
                "sasl.username": self.username,
                "sasl.password": self.password,
                "ssl.ca.location": self.ca_file,
                "ssl.ca.pem": self.ca_text,
                # Each of the two takes its own part out of a file that holds both.
                "ssl.certificate.location": self.certificate_file or pem_store,
                "ssl.key.location": self.key_file or pem_store,
                "ssl.certificate.pem": self.certificate_text,
                "ssl.key.pem": self.key_text,
                "ssl.keystore.location": pkcs12,
                "ssl.keystore.password": self.keystore_password,
                "ssl.key.password": self.key_password,
                "ssl.endpoint.identification.algorithm": self.check_host,
            }
        )

    def for_java(self) -> dict[str, str]:
        """The settings as Java's clients spell them; reads the certificate and the key if they are two files.

        Raises ConfigException, naming the field, for a file that can't be read or that Java can't use.
        """
        certificates, key = self.certificate_text, self.key_text
        if self.certificate_file is not None and self.key_file is not None:
            # Java takes certificate and key from one file or as two texts, never from two files.
            certificates = _content("ssl.certificate.location", self.certificate_file)
            key = _content("ssl.key.location", self.key_file)
        if key is not None:
            _refuse_traditional_key(key)
        trusted = self.ca_file is not None or self.ca_text is not None
        return _set(
            {
                "security.protocol": self.protocol,
                "sasl.mechanism": self.mechanism,
                "sasl.jaas.config": self._jaas(),
                "ssl.truststore.type": "PEM" if trusted else None,
                "ssl.truststore.location": self.ca_file,
                "ssl.truststore.certificates": self.ca_text,
                "ssl.keystore.type": "PEM" if certificates is not None else self.keystore_type,
                "ssl.keystore.location": self.keystore_file,
                "ssl.keystore.password": self.keystore_password,
                "ssl.keystore.certificate.chain": certificates,
                "ssl.keystore.key": key,
                "ssl.key.password": self.key_password,
                "ssl.endpoint.identification.algorithm": "" if self.check_host == "none" else self.check_host,
            }
        )

    def _jaas(self) -> str | None:
        if self.mechanism is None:
            return None
        module = _MODULES[self.mechanism]
        return f"{module} required username={_quoted(self.username)} password={_quoted(self.password)};"


def config_path(name: str) -> str:
    """The path of a client property in the resource."""
    return under("spec.kafka.config", name)


def is_security(name: str) -> bool:
    """Whether a client property has to do with login or encryption."""
    return name.startswith(_PREFIXES)


def read_security(config: Mapping[str, str], report: Report) -> Security:
    """The security settings among `config`; `report(name, found, remedy)` is called for each mistake."""
    values: dict[str, str] = {}
    for name, value in config.items():
        if not is_security(name):
            continue
        field = _KNOWN.get(name)
        if field is None:
            report(name, "is not a security setting that both of the application's clients have", _known_names())
        elif values.setdefault(field, value) != value:
            report(name, "contradicts the same setting under its other name", "keep one of the two")
    _read_login(values, report)
    _read_encryption(values, report)
    return Security(**values)


def _read_login(values: dict[str, str], report: Report) -> None:
    protocol = values.get("protocol", "PLAINTEXT").upper()
    if "protocol" in values:
        values["protocol"] = protocol
    if protocol not in _PROTOCOLS:
        report("security.protocol", f"is {values['protocol']!r}", f"use one of {', '.join(_PROTOCOLS)}")
        return
    if not protocol.startswith("SASL_"):
        for field in ("mechanism", "username", "password", "jaas"):
            if values.pop(field, None) is not None:
                remedy = "set security.protocol to SASL_SSL or SASL_PLAINTEXT, or leave it out"
                report(_SPELLINGS[field][0], f"has no effect with security.protocol {protocol}", remedy)
        return
    mechanism = values.get("mechanism", "").upper()
    if mechanism not in _MODULES:
        found = f"is {values['mechanism']!r}" if mechanism else "is not set"
        report("sasl.mechanism", found, f"use one of {', '.join(_MODULES)}")
        values.pop("mechanism", None)
        values.pop("jaas", None)
        return
    values["mechanism"] = mechanism
    if (jaas := values.pop("jaas", None)) is not None:
        _read_jaas(jaas, mechanism, values, report)
    else:
        for field in ("username", "password"):
            if field not in values:
                report(f"sasl.{field}", "is not set", "set it, or use sasl.jaas.config")


def _read_jaas(text: str, mechanism: str, values: dict[str, str], report: Report) -> None:
    match = _JAAS.fullmatch(text)
    module = _MODULES[mechanism]
    remedy = f'write {module} required username="…" password="…";'
    if match is None:
        report("sasl.jaas.config", "is not one login module with its options and a semicolon", remedy)
        return
    if match["module"] != module:
        report("sasl.jaas.config", f"names {match['module']}, which is not for {mechanism}", remedy)
        return
    options = {name: _unquoted(value) for name, value in _JAAS_OPTION.findall(match["options"])}
    if options.keys() != {"username", "password"}:
        found = f"has the options {', '.join(sorted(options)) or 'none'}"
        report("sasl.jaas.config", found, "set username and password, and nothing else")
        return
    for field, value in options.items():
        if values.setdefault(field, value) != value:
            report("sasl.jaas.config", f"contradicts sasl.{field}", "keep one of the two")


def _read_encryption(values: dict[str, str], report: Report) -> None:
    store_type = values.pop("ca_type", "PEM").upper()
    if store_type != "PEM":
        remedy = "export the certificates as PEM (keytool -exportcert -rfc) and set ssl.truststore.type to PEM"
        report("ssl.truststore.type", f"is {store_type}, which librdkafka can't read", remedy)
    if "keystore_file" in values:
        kind = values.get("keystore_type", "not set").upper()
        values["keystore_type"] = kind
        if kind not in ("PEM", "PKCS12"):
            remedy = "use PEM or PKCS12 (keytool -importkeystore -deststoretype PKCS12 converts a JKS)"
            report("ssl.keystore.type", f"is {kind}", remedy)
    else:
        values.pop("keystore_type", None)
    for one, other in (("certificate", "key"), ("key", "certificate")):
        for form in ("file", "text"):
            if f"{one}_{form}" in values and f"{other}_{form}" not in values:
                missing = _SPELLINGS[f"{other}_{form}"][0]
                report(_SPELLINGS[f"{one}_{form}"][0], f"is set without {missing}", f"set {missing} as well")
    check = values.get("check_host")
    if check is not None:
        values["check_host"] = check.lower() or "none"
        if values["check_host"] not in ("https", "none"):
            report("ssl.endpoint.identification.algorithm", f"is {check!r}", "use https or none")


def _known_names() -> str:
    return f"use {', '.join(sorted(_KNOWN))}"


def _set(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _quoted(text: str | None) -> str:
    escaped = (text or "").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _content(name: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is not PEM"
        raise ConfigException(
            f"{config_path(name)}: {file} can't be read: {reason}. Mount the file, or correct the path"
        ) from failure


def _refuse_traditional_key(key: str) -> None:
    kinds = (kind for kind in ("RSA", "EC", "DSA") if f"BEGIN {kind} PRIVATE KEY" in key)
    traditional = next(kinds, None)
    if traditional is not None:
        raise ConfigException(
            f"{config_path('ssl.key.location')}: the key is a traditional {traditional} key, which Java can't"
            " read. Convert it: openssl pkcs8 -topk8 -nocrypt -in key.pem -out key.pkcs8.pem"
        )
