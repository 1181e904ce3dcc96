"""Queries by HTTPS, on real sockets: whom the client believes, where it sends its token, renewed certificates."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from certificates import self_signed
from query_fakes import KEYS, FakeClient, client_with, key_in
from structlog.testing import capture_logs
from typer.testing import CliRunner
from waiting import eventually

from streams_operator.model import InstanceAccount, Key, PodState
from streams_operator.reconcile.accounts import Accounts
from streams_runtime.cli.query.query_command import app as query_command
from streams_runtime.errors import ConfigException
from streams_runtime.query.client.query_client import QueryCredentials, StreamsQueryClient
from streams_runtime.query.server import query_server as server_module
from streams_runtime.query.server.access import QueryGuard, TokenGate
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.query.server.tls import Certificate, TlsFiles
from streams_runtime.query.stores.views import Owner
from streams_runtime.query.wire.problems import InstanceNotReachableException, QueryNotAuthenticatedException

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no openssl program on PATH to make certificates"
)


class Secured:
    """An instance behind TLS and a token."""

    def __init__(self, folder: Path) -> None:
        self.files = self_signed(folder)
        self.token = folder / "token"
        self.token.write_text("s3cret")
        self.client = client_with(0, 1, 2)
        guard = QueryGuard(TokenGate(self.token), self.files)
        self._server = QueryServer(self.client, "127.0.0.1", 0, grace=0, guard=guard)
        self.client.url = self.url = f"{guard.scheme}://127.0.0.1:{self._server.start()}"
        self.client.known_owners = {n: Owner("flights-0", self.url) for n in range(3)}

    @property
    def credentials(self) -> QueryCredentials:
        return QueryCredentials(token_file=self.token, ca_file=self.files.certificate)

    def presented(self) -> bytes:
        """The certificate that new connections see."""
        host, _, port = self.url.removeprefix("https://").rpartition(":")
        return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port)), timeout=60))

    def stop(self) -> None:
        self._server.stop()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    yield made
    made.stop()


def of(files: TlsFiles) -> bytes:
    return ssl.PEM_cert_to_DER_cert(files.certificate.read_text())


def test_a_client_with_the_authority_and_the_token_is_answered(secured: Secured) -> None:
    with StreamsQueryClient(secured.url, credentials=secured.credentials) as client:
        assert client.get("counts", "UA") == {"n": 4}
        assert [record.key for record in client.all("counts")] == [*KEYS]
        assert client.count("counts") == len(KEYS)


def test_the_command_is_answered_and_says_what_it_lacks_by_its_exit_code(secured: Secured) -> None:
    def query(*options: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(query_command, ["counts", "get", "UA", "--url", secured.url, *options])
        return done.exit_code, done.stdout, done.stderr

    believing = ("--ca-file", str(secured.files.certificate))
    assert query(*believing, "--token-file", str(secured.token))[:2] == (0, '{"key":"UA","value":{"n":4}}\n')
    code, _, said = query(*believing)
    assert (code, "Authorization: Bearer" in said) == (77, True)
    code, _, said = query("--token-file", str(secured.token))
    assert (code, "--ca-file" in said) == (1, True)


def test_an_unknown_authority_and_a_wrong_token_are_told_apart_and_not_retried(secured: Secured) -> None:
    def asleep(_: float) -> None:
        raise AssertionError("there is nothing to wait for")

    wrong = QueryCredentials(token="wrong", ca_file=secured.files.certificate)
    for credentials, expected in (
        (QueryCredentials(token="s3cret"), InstanceNotReachableException),
        (wrong, QueryNotAuthenticatedException),
    ):
        with (
            StreamsQueryClient(secured.url, sleep=asleep, credentials=credentials) as client,
            pytest.raises(expected),
        ):
            client.get("counts", "UA")


def test_probes_are_answered_without_a_token(secured: Secured) -> None:
    for path in ("/healthz", "/readyz", "/state/figures"):
        # Kubelets do not verify a probe's certificate.
        assert httpx.get(secured.url + path, verify=False, trust_env=False).status_code == 200


def test_the_operator_reads_figures_without_a_token_and_without_an_authority(secured: Secured) -> None:
    async def ask() -> InstanceAccount:
        accounts = Accounts(lambda _: None, lambda _: f"{secured.url}/state/figures")
        key, pod = Key("shop", "orders"), PodState(name="orders-0", uid="u", ordinal=0, phase="Running", created_at=0.0)
        try:
            while not (found := await accounts.of(key, [pod])):
                await asyncio.sleep(0.005)
            return found["orders-0"]
        finally:
            await accounts.close()

    assert asyncio.run(ask()) == InstanceAccount(("0_0",), None, 60)


def test_without_encryption_there_is_no_answer(secured: Secured) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(secured.url.replace("https:", "http:") + "/healthz", trust_env=False)


def test_a_token_that_came_by_https_never_goes_out_by_http(secured: Secured) -> None:
    """An instance that names another one by http:// must not get the client to tell the token there."""
    seen: list[str | None] = []

    class Spy:
        async def admit(self, authorization: str | None, address: str) -> None:
            seen.append(authorization)

    key, other = key_in(1), client_with(1)
    spying = QueryServer(other, "127.0.0.1", 0, grace=0, guard=QueryGuard(Spy()))
    other.url = f"http://127.0.0.1:{spying.start()}"
    local = secured.client.local
    secured.client.local = {n: view for n, view in local.items() if n != 1}
    secured.client.known_owners |= {1: Owner("flights-1", other.url)}
    try:
        with (
            StreamsQueryClient(secured.url, deadline=0.0, credentials=secured.credentials) as client,
            pytest.raises(InstanceNotReachableException, match="without encryption"),
        ):
            client.get("counts", key)
        assert seen == []
        with StreamsQueryClient(other.url, credentials=QueryCredentials(token="t")) as client:
            assert client.get("counts", key) is not None
        assert seen == ["Bearer t"], "who begins without encryption has chosen so"
    finally:
        spying.stop()
        secured.client.local = local
        secured.client.known_owners = {n: Owner("flights-0", secured.url) for n in range(3)}


def test_a_renewed_certificate_is_taken_over_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_RENEW_SECONDS", 0.0)
    secured = Secured(tmp_path)
    try:
        before = of(secured.files)
        assert secured.presented() == before
        self_signed(tmp_path)
        assert of(secured.files) != before
        eventually(lambda: secured.presented() == of(secured.files), "the new certificate")
        with StreamsQueryClient(secured.url, credentials=secured.credentials) as client:
            assert client.get("counts", "UA") == {"n": 4}
    finally:
        secured.stop()


def test_files_that_do_not_belong_together_leave_the_former_certificate_in_use(tmp_path: Path) -> None:
    files = self_signed(tmp_path)
    certificate = Certificate(files)
    other = self_signed(tmp_path, "other")
    shutil.copy(other.key, files.key)
    with capture_logs() as logs:
        assert not certificate.renew()
    assert [entry["event"] for entry in logs] == ["query_server.certificate_not_renewed"]
    shutil.copy(other.certificate, files.certificate)
    assert certificate.renew(), "the pair is whole again"
    assert not certificate.renew(), "nothing has changed since"


@pytest.mark.parametrize("missing", ["certificate", "key", "both wrong"])
def test_a_certificate_that_can_not_be_used_is_named_before_anything_listens(tmp_path: Path, missing: str) -> None:
    files = self_signed(tmp_path)
    if missing == "both wrong":
        files.key.write_text("no key")
    else:
        getattr(files, missing).unlink()
    server = QueryServer(FakeClient({}), "127.0.0.1", 0, guard=QueryGuard(tls=files))
    with pytest.raises(ConfigException, match=r"tls\.crt.*spec\.queries\.tls\.secretRef"):
        server.start()


@pytest.mark.parametrize(
    ("credentials", "said"),
    [
        (QueryCredentials(ca_file=Path("/nowhere/ca.crt")), "/nowhere/ca.crt"),
        (QueryCredentials(token_file=Path("/nowhere/token")), "/nowhere/token"),
    ],
)
def test_files_of_the_client_that_can_not_be_read_are_named(
    secured: Secured, credentials: QueryCredentials, said: str
) -> None:
    with pytest.raises(ConfigException, match=said), StreamsQueryClient(secured.url, credentials=credentials) as client:
        client.get("counts", "UA")
