"""The store and the partitions of a query, and the options that verbs share: each made in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from query_fakes import PARTITIONS, client_with, key_in
from typer.testing import CliRunner

from streams_runtime.cli.option_groups import with_option_groups
from streams_runtime.errors import StateStoreNotAvailableException, StoreTypeMismatch, UnknownStateStoreException
from streams_runtime.query.stores.store_target import owners_of, target_of
from streams_runtime.query.stores.views import StoreType
from streams_runtime.states import ClientState


@pytest.mark.parametrize("partition", range(PARTITIONS))
def test_a_key_narrows_a_target_to_its_partition_unless_the_query_names_others(partition: int) -> None:
    client, key = client_with(*range(PARTITIONS)), key_in(partition).encode()
    every = target_of(client, "counts", StoreType.KEY_VALUE)
    assert every.partitions is None
    assert every.at_key(key).partitions == {partition}
    named = target_of(client, "counts", StoreType.KEY_VALUE, [0, 2]).at_key(key)
    assert (named.partitions, named.partition_of(key)) == ({0, 2}, partition)


def test_the_clients_state_counts_before_the_name_and_the_name_before_the_type() -> None:
    client = client_with(0)
    with pytest.raises(StoreTypeMismatch):
        target_of(client, "counts", StoreType.WINDOW)
    with pytest.raises(UnknownStateStoreException):
        target_of(client, "nothing", StoreType.WINDOW)
    client.state = ClientState.ERROR
    with pytest.raises(StateStoreNotAvailableException):
        target_of(client, "nothing", StoreType.WINDOW)


def test_owners_are_known_in_every_state_of_the_client_and_of_stores_of_the_topology_alone() -> None:
    client = client_with(0)
    for client.state in ClientState:
        assert owners_of(client, "counts") == {}
        with pytest.raises(UnknownStateStoreException):
            owners_of(client, "nothing")


@dataclass(frozen=True)
class Near:
    url: Annotated[str, typer.Option(envvar="NEAR_URL", help="Where.")] = "http://here"
    often: Annotated[bool, typer.Option("--often")] = False


def test_a_group_of_options_is_on_the_command_line_and_reaches_the_verb_as_one_value() -> None:
    given: list[tuple[str, Near, int]] = []

    @with_option_groups
    def verb(key: Annotated[str, typer.Argument()], near: Near, times: Annotated[int, typer.Option()] = 1) -> None:
        """A verb."""
        given.append((key, near, times))

    app, run = typer.Typer(), CliRunner()
    app.command()(verb)
    assert run.invoke(app, ["a"]).exit_code == 0
    assert run.invoke(app, ["b", "--often", "--times", "3"], env={"NEAR_URL": "http://there"}).exit_code == 0
    assert given == [("a", Near(), 1), ("b", Near("http://there", often=True), 3)]
    assert run.invoke(app, ["c", "--near", "x"]).exit_code == 2
