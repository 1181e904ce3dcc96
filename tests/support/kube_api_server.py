"""A real API server over a real etcd, of its own, and controllers beside it when a test wants them."""

from __future__ import annotations

import secrets
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kube_binaries import program
from kube_cluster import Cluster
from kube_process import LOOPBACK, free_port, running, temporary_folder

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "openssl")
"""What an API server of one's own, and controllers beside it, are made of."""
ISSUER = "https://kubernetes.default.svc"
SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ACCOUNTS_KEY = "service-accounts.key"
"""File in the cluster's folder with which its service accounts' tokens are signed."""
_ANSWER = 5.0
_KEY_TIMEOUT = 30.0


@contextmanager
def api_server(
    extra: Sequence[str] = (), address: str = LOOPBACK, prefix: Sequence[str | Path] = ()
) -> Iterator[Cluster]:
    """An API server with RBAC, ready for requests; all of its data goes with it.

    `extra` are further flags of kube-apiserver, `address` the one that it listens at, and `prefix` a command
    that starts the programs elsewhere (in another network namespace). Raises EnvironmentException when a
    program is missing or does not come up.
    """
    with temporary_folder("cluster") as folder, _etcd(folder, address, prefix) as etcd:
        users = folder / "users.csv"
        token = secrets.token_hex(16)
        users.touch(mode=0o600)
        users.write_text(f'{token},admin,admin,"system:masters"\n')
        flags = [*_addresses(address), f"--etcd-servers={etcd}", f"--token-auth-file={users}", *extra]
        with _kube_apiserver(folder, [*prefix, program("kube-apiserver"), *flags], address, token) as cluster:
            yield cluster


@contextmanager
def controller_manager(
    cluster: Cluster,
    controllers: Sequence[str],
    address: str = LOOPBACK,
    prefix: Sequence[str | Path] = (),
    extra: Sequence[str] = (),
) -> Iterator[None]:
    """kube-controller-manager with the named controllers only, running inside the block; otherwise as `api_server`."""
    port = free_port()
    with temporary_folder("controllers") as folder:
        command = [
            *(*prefix, program("kube-controller-manager"), *extra),
            f"--kubeconfig={cluster.kubeconfig}",
            f"--controllers={','.join(controllers)}",
            "--leader-elect=false",
            f"--service-account-private-key-file={cluster.folder / SERVICE_ACCOUNTS_KEY}",
            f"--root-ca-file={cluster.endpoint['certificate-authority']}",
            f"--bind-address={address}",
            f"--secure-port={port}",
            f"--cert-dir={folder}",
        ]
        with running(command, folder, lambda: answers(f"https://{address}:{port}/healthz"), "controllers"):
            yield


@contextmanager
def _etcd(folder: Path, address: str, prefix: Sequence[str | Path]) -> Iterator[str]:
    url, peer = (f"http://{address}:{free_port()}" for _ in range(2))
    command = [
        *(*prefix, program("etcd"), f"--data-dir={folder / 'etcd'}", "--logger=zap", "--log-level=warn"),
        *(f"--listen-client-urls={url}", f"--advertise-client-urls={url}"),
        *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"),
    ]
    with running(command, folder, lambda: answers(f"{url}/health"), "etcd"):
        yield url


@contextmanager
def _kube_apiserver(folder: Path, command: Sequence[str | Path], address: str, token: str) -> Iterator[Cluster]:
    port, certificates = free_port(), folder / "certificates"
    key = folder / SERVICE_ACCOUNTS_KEY
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True, timeout=_KEY_TIMEOUT)
    flags = [
        *(f"--secure-port={port}", f"--cert-dir={certificates}"),
        *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"),
        f"--service-account-issuer={ISSUER}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        # An etcd older than 3.4.31 can't say how far a quiet watch is, and such a list would wait for that in vain.
        "--feature-gates=WatchList=false,SizeBasedListCostEstimate=false,DetectCacheInconsistency=false",
        "--allow-privileged=true",
        # As on OpenShift: who makes an object that blocks its owner's deletion needs a right over the owner.
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    ]
    url = f"https://{address}:{port}"
    with running([*command, *flags], folder, lambda: answers(f"{url}/readyz", token), "kube-apiserver"):
        # The certificate that it makes for itself has its authority's behind it.
        endpoint = {"server": url, "certificate-authority": str(certificates / "apiserver.crt")}
        yield Cluster(folder, endpoint, token, has_controllers=False)


def _addresses(address: str) -> list[str]:
    flags = [f"--bind-address={address}", f"--advertise-address={address}"]
    # A loopback address is refused as an endpoint of the Service `kubernetes`.
    return [*flags, "--endpoint-reconciler-type=none"] if address == LOOPBACK else flags


def answers(url: str, token: str | None = None) -> bool:
    """Whether an address answers a GET with success."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    # Whether it is up is all that is asked here; whom to trust is in the kubeconfig.
    unverified = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER, context=unverified):
            return True
    except OSError:
        return False
