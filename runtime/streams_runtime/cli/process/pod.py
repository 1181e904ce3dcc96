"""One streams client as the process of a pod: `python -m streams_runtime.cli.process.pod`.

Exit codes: 0 NOT_RUNNING, 70 ERROR, 64 the application can't be used; after each of these, starting the same pod again
would not help. 75: it could not close in time. Anything else is a crash, and so is 75. How it ended goes to
the pod's conditions and, as JSON, to the termination file, so that it is known even when the API server is away.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams_runtime.cli.process.client_process import (
    leave,
    shorten_switch_interval,
    stop_on_signals,
    termination_document,
)
from streams_runtime.cli.process.termination import write_termination
from streams_runtime.errors import ConfigException, StreamsException
from streams_runtime.malloc_settings import share_heaps
from streams_runtime.states import EXIT_UNUSABLE

if TYPE_CHECKING:
    from streams_runtime.client import StreamsClient
    from streams_runtime.kubernetes.client_view import RecordsLeft
    from streams_runtime.kubernetes.pod_status_api import PodIdentity, PodStatusApi

_RESERVE = 10.0  # seconds of the grace period for the termination message and the end of the process
_LISTEN = "0.0.0.0:8080"

_LOGGER = logging.getLogger("streams_runtime.pod")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where a pod has its files."""

    application: Path
    secret: Path
    code: Path
    registry: Path
    state: Path
    termination: Path
    shutdown_request: Path
    queries: Path


@app.command()
def pod(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    application: Annotated[
        Path, typer.Option(envvar="STREAMSAPP_APPLICATION", help="Folder with application.json or application.json.gz.")
    ] = Path("/etc/streams/application"),
    secret: Annotated[
        Path, typer.Option(envvar="STREAMSAPP_SECRET", help="Folder with a file for each secret client property.")
    ] = Path("/etc/streams/kafka"),
    code: Annotated[
        Path, typer.Option(envvar="STREAMSAPP_CODE", help="Folder with the user's modules; absent: the image has them.")
    ] = Path("/etc/streams/code"),
    schema_registry: Annotated[
        Path,
        typer.Option(envvar="STREAMSAPP_SCHEMA_REGISTRY", help="The same for the properties of its client."),
    ] = Path("/etc/streams/schema-registry"),
    state_dir: Annotated[Path, typer.Option(envvar="STREAMSAPP_STATE", help="Folder of the stores.")] = Path(
        "/var/lib/streams"
    ),
    termination_file: Annotated[
        Path, typer.Option(envvar="STREAMSAPP_TERMINATION_FILE", help="Where the last word is written.")
    ] = Path("/dev/termination-log"),
    request_path: Annotated[
        Path,
        typer.Option("--told-file", envvar="STREAMSAPP_TOLD_FILE", help="Read for the word that all are to end."),
    ] = Path("/etc/streams/told/shutdown-application"),
    queries: Annotated[
        Path, typer.Option(envvar="STREAMSAPP_QUERIES", help="Folder with access/token, tls/tls.crt and tls/tls.key.")
    ] = Path("/etc/streams/queries"),
    service_account: Annotated[
        Path, typer.Option(envvar="STREAMSAPP_SERVICE_ACCOUNT", help="Folder with token and ca.crt.")
    ] = Path("/var/run/secrets/kubernetes.io/serviceaccount"),
    api_server: Annotated[
        str | None, typer.Option(envvar="STREAMSAPP_API_SERVER", help="URL. Default: as the pod's environment says.")
    ] = None,
    listen: Annotated[
        str, typer.Option(envvar="STREAMSAPP_LISTEN", help="host:port for queries and probes.")
    ] = _LISTEN,
    grace_seconds: Annotated[
        float, typer.Option(envvar="STREAMSAPP_GRACE_SECONDS", help="The pod's terminationGracePeriodSeconds.")
    ] = 75.0,
    log_level: Annotated[str, typer.Option(envvar="STREAMSAPP_LOG_LEVEL", help="DEBUG shows stack traces.")] = "INFO",
) -> None:
    """Run the pod's client until SIGTERM, or until it ends in ERROR."""
    # First of all: as the first process of its container, this one is not ended by a signal that it does not handle.
    stop = stop_on_signals()
    _prepare(log_level)
    mounts = Mounts(application, secret, code, schema_registry, state_dir, termination_file, request_path, queries)
    api: PodStatusApi | None = None
    try:
        identity, advertised = identify_pod(os.environ, listen)
        api = _api(identity, service_account, api_server)
        client, left = _client(mounts, api, listen, advertised)
    except (StreamsException, ValueError) as error:
        raise typer.Exit(_unusable(error, mounts.termination, api)) from error
    from streams_runtime.cli.process.pod_lifecycle import PodLifecycle

    closing = max(grace_seconds - _RESERVE, 1.0)
    leave(*PodLifecycle(client, left, api, stop, closing, mounts.termination, mounts.shutdown_request).run())


def _prepare(log_level: str) -> None:
    # Only here: what is loaded from now on takes a second and more.
    import streams_runtime.cli.process.light_libraries  # noqa: F401 - before all others
    from streams_runtime.cli.process.process_logs import LogFormat, configure_logging

    configure_logging(LogFormat.JSON, log_level.upper(), sys.stdout)
    shorten_switch_interval()
    share_heaps()


def identify_pod(environment: Mapping[str, str], listen: str) -> tuple[PodIdentity, str]:
    """The pod, and the host:port at which the others reach it: its name in the headless Service.

    Raises:
        ConfigException: a variable that the operator sets is missing, or `listen` has no port.
    """
    from streams_runtime.kubernetes.pod_status_api import PodIdentity

    needed = ("POD_NAME", "POD_NAMESPACE", "STREAMSAPP_SERVICE")
    missing = [name for name in needed if not environment.get(name)]
    if missing:
        raise ConfigException(
            f"{', '.join(missing)} not set in the environment; the operator sets all of {', '.join(needed)}"
        )
    name, namespace, service = (environment[each] for each in needed)
    port = listen.rpartition(":")[2]
    if not port.isdigit():
        raise ConfigException(f"--listen {listen!r} has no port; give host:port, such as {_LISTEN}")
    identity = PodIdentity(name, namespace, environment.get("POD_UID"))
    return identity, f"{name}.{service}.{namespace}.svc:{port}"


def _api(identity: PodIdentity, service_account: Path, api_server: str | None) -> PodStatusApi:
    from streams_runtime.kubernetes.pod_status_api import ApiAccess, PodStatusApi, in_cluster

    if api_server is None:
        return PodStatusApi(in_cluster(os.environ, service_account), identity)
    return PodStatusApi(ApiAccess(api_server, service_account / "token", service_account / "ca.crt"), identity)


def _client(mounts: Mounts, api: PodStatusApi, listen: str, advertised: str) -> tuple[StreamsClient, RecordsLeft]:
    """The client of the application that is mounted, and what counts its restorations.

    Raises:
        ConfigException: the application or a secret property can't be used.
    """
    from streams_runtime.builder.resolve_python import check_built
    from streams_runtime.client import StreamsClient
    from streams_runtime.errors import InvalidApplicationException
    from streams_runtime.kubernetes.client_view import RecordsLeft
    from streams_runtime.kubernetes.mounted import (
        read_mounted_application,
        read_registry_properties,
        read_secret_properties,
        with_secret,
        without_secrets,
    )
    from streams_runtime.kubernetes.own_pod import OwnPod
    from streams_runtime.kubernetes.pod_peers import PodPeers
    from streams_runtime.kubernetes.pod_tags import pod_tags
    from streams_runtime.kubernetes.query_guard import pod_guard
    from streams_runtime.settings import InstanceSettings
    from streams_runtime.user_code import search_in

    application = read_mounted_application(mounts.application)
    if application.spec.code is not None:
        search_in(mounts.code)
    check_built(application)
    secret = read_secret_properties(mounts.secret)
    registry = read_registry_properties(mounts.registry)
    brokers = application.spec.kafka.bootstrap_servers or ""
    host, _, port = listen.rpartition(":")
    guard = pod_guard(application.spec.queries, api.pod.namespace, api.access, mounts.queries)
    peers = PodPeers(api.pod.name, advertised, guard.scheme)
    tags = pod_tags(api.access, api.pod, application.spec.processing.rack_aware_assignment_tags)
    place = (host, int(port), advertised)
    settings = InstanceSettings(api.pod.name, brokers, mounts.state, *place, peers=peers, client_tags=tags)
    left = RecordsLeft()
    try:
        complete, own_pod = with_secret(application, secret, registry), OwnPod(api.access, api.pod)
        return StreamsClient(complete, settings, left, guard, own_pod=own_pod), left
    except InvalidApplicationException as error:
        # Without the chain: its messages may quote a secret value.
        raise without_secrets(error, secret) from None


def _unusable(error: Exception, termination: Path, api: PodStatusApi | None) -> int:
    """The application can't be used: say so everywhere. Returns the exit code."""
    _LOGGER.error("%s", error)
    write_termination(termination, termination_document("NOT_STARTED", error))
    if api is not None:
        from streams_runtime.kubernetes.pod_conditions import Failure, restartable
        from streams_runtime.kubernetes.reporter import Reporter

        reporter = Reporter(api, lambda: (restartable(Failure.of(error)),))
        reporter.start()
        reporter.finish()
    return EXIT_UNUSABLE


if __name__ == "__main__":
    app()
