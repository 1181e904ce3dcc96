"""Certificates of a test's own, made by the openssl program."""

from __future__ import annotations

import subprocess
from pathlib import Path

from streams_runtime.query.server.tls import TlsFiles


def self_signed(folder: Path, name: str = "tls") -> TlsFiles:
    """A certificate of 127.0.0.1 and its key in `folder`, its own authority; an existing pair is replaced."""
    files = TlsFiles(folder / f"{name}.crt", folder / f"{name}.key")
    fresh = TlsFiles(folder / f".{name}.crt", folder / f".{name}.key")
    command = [
        *("openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=queries"),
        *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-addext", "subjectAltName=IP:127.0.0.1"),
        *("-out", fresh.certificate, "-keyout", fresh.key),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    fresh.key.replace(files.key)
    fresh.certificate.replace(files.certificate)
    return files
