"""The certificate of the query server, renewed while it runs."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import structlog

from streams_runtime.errors import ConfigException

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A certificate with those that stand behind it, and its key, both PEM."""

    certificate: Path
    key: Path


class Certificate:
    """A server's side of TLS. Connections that are made after `renew` have the new certificate, others keep theirs."""

    def __init__(self, files: TlsFiles) -> None:
        """Load the certificate.

        Raises:
            ConfigException: a file can't be read, or the two do not belong together; correct the Secret.
        """
        self._files = files
        self._loaded = self._file_versions()
        try:
            self.context = _context(files)
        except (OSError, ssl.SSLError) as error:
            raise ConfigException(
                f"certificate {files.certificate} and key {files.key} can't be used: {error}; correct tls.crt and"
                " tls.key in the Secret of spec.queries.tls.secretRef"
            ) from error

    def renew(self) -> bool:
        """Take over changed files; whether that was done. Those that can't be used are left, and the log says so."""
        versions = self._file_versions()
        if versions == self._loaded:
            return False
        try:
            _context(self._files)  # apart, since a half loaded pair would end every handshake
            self.context.load_cert_chain(self._files.certificate, self._files.key)
        except (OSError, ssl.SSLError) as error:
            # `_loaded` stays, so that the next call tries again: the Secret may be half written.
            _log.warning(
                "query_server.certificate_not_renewed", certificate=str(self._files.certificate), why=str(error)
            )
            return False
        self._loaded = versions
        _log.info("query_server.certificate_renewed", certificate=str(self._files.certificate))
        return True

    def _file_versions(self) -> tuple[tuple[int, int], ...]:
        try:
            found = [file.stat() for file in (self._files.certificate, self._files.key)]
        except OSError:
            return ()
        return tuple((each.st_mtime_ns, each.st_ino) for each in found)


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key)
    return context
