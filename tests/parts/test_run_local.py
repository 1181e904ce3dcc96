"""A local run's dealings with the machine, without broker or Spark: replicas, folders, leftovers, refusals, topics."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner
from waiting import eventually

from streams_runtime.api import parse_application, read_application
from streams_runtime.cli.common.tag_options import parse_tags
from streams_runtime.cli.local.leftovers import members, sweep
from streams_runtime.cli.local.outcome import End
from streams_runtime.cli.local.replica import Replica, ReplicaOptions
from streams_runtime.cli.local.run_checks import local_mistakes, query_mistakes
from streams_runtime.cli.local.run_folders import RunFolders
from streams_runtime.cli.local.supervisor import Supervisor
from streams_runtime.cli.process import instance as instance_module
from streams_runtime.cli.run import run
from streams_runtime.cli.users_topics import missing_topics
from streams_runtime.errors import ConfigException, EnvironmentException
from streams_runtime.kafka.broker.ports import require_free
from streams_runtime.lifecycle.retry_budget import RestartPolicy
from streams_runtime.topology.declared.build_topology import build_topology

DEADLINE = 20.0


class Scripted(ReplicaOptions):
    """An order whose instances are shell scripts; `$1` is the termination file, `$2` the told file."""

    def command(self, name, folder):
        return ["/bin/sh", "-c", self.log_level, name, str(folder.termination), str(folder.shutdown_request)]


def supervised(tmp_path, script, names=("app-0",), policy=None):
    folders, events = RunFolders(tmp_path, "app"), []
    options = Scripted(tmp_path, "localhost:1", script)
    policy = policy or RestartPolicy(first=0.01)
    replicas = [Replica(name, folders.instance(name), options, policy, events.append) for name in names]
    return Supervisor(replicas, events.append), events


def tick_until(supervisor, condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, supervisor.snapshots()
        supervisor.tick()
        time.sleep(0.005)


ONE_ASKS_FOR_ALL = """
word() { printf '{"state": "ERROR", "class": "%s", "message": "in use"%s}' "$1" "$2" > "$word"; exit 70; }
word="$1"
case "$0" in
  app-0) word LockException ', "shutdown": "application"' ;;
  app-2) [ -e "$1.crashed" ] || { touch "$1.crashed"; exit 1; } ;;
esac
while [ ! -s "$2" ]; do sleep 0.01; done
grep -q '"instance":"app-0","class":"LockException","message":"in use"' "$2" && word ShutdownRequestedException
"""


def test_when_one_asks_for_the_end_of_the_application_all_others_are_told_also_one_that_is_started_again(tmp_path):
    supervisor, events = supervised(tmp_path, ONE_ASKS_FOR_ALL, ("app-0", "app-1", "app-2"))
    supervisor.start()
    tick_until(supervisor, lambda: supervisor.ended)
    assert supervisor.ends == (End.ERROR,) * 3
    kinds = {each.name: each.failure.kind for each in supervisor.snapshots()}
    assert kinds["app-0"] == "LockException"
    assert {kinds["app-1"], kinds["app-2"]} == {"ShutdownRequestedException"}
    assert [each.facts for each in events if each.event == "shutdown-application"] == [{"instance": "app-0"}]


def test_an_instance_that_ended_in_error_is_not_started_again(tmp_path):
    script = """echo '{"state":"ERROR","class":"LockException","message":"in use"}' > "$1"; exit 70"""
    supervisor, events = supervised(tmp_path, script)
    supervisor.start()
    tick_until(supervisor, lambda: supervisor.ended)
    (seen,) = supervisor.snapshots()
    assert supervisor.ends == (End.ERROR,)
    assert (seen.state, seen.restarts, seen.over) == ("ERROR", 0, True)
    assert [each.event for each in events] == ["ended"]
    assert "LockException: in use" in events[0].text
    assert str(tmp_path / "app-0" / "instance.log") in events[0].text


def test_an_instance_that_crashes_is_started_again_until_its_budget_is_spent(tmp_path):
    supervisor, events = supervised(tmp_path, "kill -9 $$", policy=RestartPolicy(2, 1e9, 0.01))
    supervisor.start()
    tick_until(supervisor, lambda: supervisor.ended)
    assert supervisor.ends == (End.CRASHED,)
    assert supervisor.failed == ("app-0",)
    assert [each.event for each in events] == ["crash", "restart", "crash", "restart", "crash"]
    assert "signal SIGKILL" in events[0].text


def test_the_log_of_a_crashed_process_stays_beside_the_new_one(tmp_path):
    script = f"echo $$; test -f {tmp_path}/once || {{ touch {tmp_path}/once; exit 3; }}; exit 0"
    supervisor, _news = supervised(tmp_path, script)
    supervisor.start()
    tick_until(supervisor, lambda: supervisor.ended)
    folder = tmp_path / "app-0"
    assert supervisor.ends == (End.NOT_RUNNING,)
    assert (folder / "instance.log").read_text() != (folder / "instance.log.1").read_text()


def test_stop_asks_each_process_to_close_and_restarts_nothing(tmp_path):
    script = f"trap 'exit 0' TERM; touch {tmp_path}/ready-$0; while :; do sleep 0.02; done"
    supervisor, events = supervised(tmp_path, script, ("app-0", "app-1"))
    supervisor.start()
    tick_until(supervisor, lambda: len(list(tmp_path.glob("ready-*"))) == 2)
    supervisor.stop()
    supervisor.stop()
    tick_until(supervisor, lambda: supervisor.ended)
    assert supervisor.ends == (End.NOT_RUNNING, End.NOT_RUNNING)
    assert {each.event for each in events} == {"ended"}


def test_stop_gives_up_an_instance_that_waits_for_its_restart(tmp_path):
    supervisor, _news = supervised(tmp_path, "exit 9", policy=RestartPolicy(first=1000.0, longest=1000.0))
    supervisor.start()
    tick_until(supervisor, lambda: supervisor.snapshots()[0].state == "CRASHED")
    assert not supervisor.ended
    supervisor.stop()
    assert supervisor.ends == (End.CRASHED,)


def test_kill_ends_a_process_that_does_not_listen(tmp_path):
    supervisor, _news = supervised(tmp_path, f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.02; done")
    supervisor.start()
    tick_until(supervisor, (tmp_path / "ready").exists)
    supervisor.stop()
    supervisor.kill()
    tick_until(supervisor, lambda: supervisor.ended)
    assert supervisor.ends == (End.KILLED,)


def test_what_an_instance_leaves_behind_is_swept(tmp_path):
    script = "sleep 1000 & echo $!; exec sleep 1000"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as leader:
        child = int(leader.stdout.readline())
        assert members([leader.pid]) == {leader.pid, child}
        leader.kill()
        # It has ended, and nobody has asked for its exit code yet.
        eventually(lambda: members([leader.pid]) == {child})
        leader.wait()
        assert sweep([leader.pid], grace=0.0) is False
        assert sweep([leader.pid], grace=DEADLINE) is True


def test_a_temporary_folder_goes_but_for_the_logs_of_what_failed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folders = RunFolders(None, "app")
    for name in ("app-0", "app-1"):
        folders.instance(name).make_ready()
        folders.instance(name).log.write_text("words")
        (folders.instance(name).root / "app").mkdir()
    assert folders.finish(keep=False, failed=["app-1"]) == folders.root
    assert [str(each.relative_to(folders.root)) for each in folders.root.rglob("*")] == ["app-1", "app-1/instance.log"]
    assert folders.finish(keep=False, failed=[]) is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_stays_that_was_given_or_is_to_be_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    given, kept = RunFolders(tmp_path / "mine", "app"), RunFolders(None, "app")
    for each in (given, kept):
        each.instance("app-0").make_ready()
    assert given.finish(keep=False, failed=[]) is None
    assert kept.finish(keep=True, failed=[]) == kept.root
    assert (tmp_path / "mine" / "app-0").is_dir()
    assert (kept.root / "app-0").is_dir()


def test_a_folder_that_is_no_folder_is_named_with_the_option_to_use(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentException, match=r"file/app-0 of an instance can't be used.*--state-dir"):
        RunFolders(tmp_path / "file", "app").instance("app-0").make_ready()


def test_old_logs_move_up_and_the_oldest_go(tmp_path):
    folder = RunFolders(tmp_path, "app").instance("app-0")
    for number in range(9):
        folder.make_ready()
        folder.log.write_text(str(number))
    assert [file.read_text() for file in sorted(folder.root.glob("instance.log*"))] == ["8", "7", "6", "5", "4", "3"]


def document(**spec):
    topology = {
        "sources": [
            {"name": "a", "topic": "a", "key": {"format": "string"}, "value": {"format": "json", "schema": "x DOUBLE"}},
            {"name": "b", "topic": "b", "key": {"format": "string"}, "value": {"format": "json", "schema": "x DOUBLE"}},
        ],
        "steps": [
            {"name": "both", "merge": ["a", "b"]},
            {"name": "totals", "from": "both", "aggregate": {"n": "count(*)"}, "store": "totals"},
        ],
        "sinks": [{"from": "totals", "topic": "out"}],
    }
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": topology, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({}, []),
        ({"suspend": True}, ["spec.suspend"]),
        ({"spark": {"master": "k8s://https://kubernetes.default.svc"}}, ["spec.spark.master"]),
        ({"replicas": 0}, ["spec.replicas"]),
        ({"kafka": {"secretRef": {"name": "s"}}, "suspend": True}, ["spec.kafka.secretRef", "spec.suspend"]),
    ],
)
def test_what_only_a_cluster_has_is_refused_by_name(spec, paths):
    assert [each.path for each in local_mistakes(read_application(document(**spec)), None)] == paths


TOKEN_ACCESS = {"access": {"token": {"secretRef": {"name": "s"}}}}


@pytest.mark.parametrize(
    ("queries", "paths", "remedy"),
    [
        (TOKEN_ACCESS, ["spec.queries.access.token"], "--queries-token-file"),
        ({"access": {"kubernetes": {"groups": ["a"]}}}, ["spec.queries.access.kubernetes"], "--queries-token-file"),
        ({"tls": {"secretRef": {"name": "s"}}}, ["spec.queries.tls"], "listen on this machine alone"),
    ],
)
def test_who_may_query_a_local_run_is_told_by_a_file_or_refused(queries, paths, remedy):
    found = list(query_mistakes(read_application(document(queries=queries)), None))
    assert [each.path for each in found] == paths
    assert remedy in found[0].remedy


def test_a_token_of_a_local_run_reaches_its_instances(tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret")
    assert list(query_mistakes(read_application(document(queries=TOKEN_ACCESS)), token)) == []
    command = ReplicaOptions(tmp_path, "b:1", queries_token=token).command(
        "app-0", RunFolders(tmp_path, "app").instance("app-0")
    )
    assert command[command.index("--queries-token-file") + 1] == str(token)
    token.write_text("\n")
    with pytest.raises(ConfigException, match="is empty"):
        list(query_mistakes(read_application(document()), token))


def test_instances_answer_at_the_port_given_and_those_behind_it_or_at_free_ones(tmp_path):
    folders = RunFolders(tmp_path, "app")

    def listens_at(order, name):
        command = order.command(name, folders.instance(name))
        return command[command.index("--listen") + 1]

    order = ReplicaOptions(tmp_path, "b:1", port=8080)
    assert [listens_at(order, name) for name in ("app-0", "app-1")] == ["127.0.0.1:8080", "127.0.0.1:8081"]
    assert listens_at(ReplicaOptions(tmp_path, "b:1"), "app-1") == "127.0.0.1:0"


def test_instances_have_the_values_of_a_tag_in_turn(tmp_path):
    order = ReplicaOptions(tmp_path, "b:1", tags=parse_tags(["zone=a,b", "example.com/rack=7"]))
    folders = RunFolders(tmp_path, "app")
    for name, zone in (("app-0", "a"), ("app-1", "b"), ("app-2", "a")):
        told = [each for each in order.command(name, folders.instance(name)) if each.startswith("--client-tag")]
        assert told == [f"--client-tag=zone={zone}", "--client-tag=example.com/rack=7"]


def test_an_instance_has_the_tags_of_its_command_line(tmp_path, monkeypatch):
    made = []

    def refuse(_application, settings, **_more):
        made.append(settings)
        raise ConfigException("enough")

    monkeypatch.setattr(instance_module, "StreamsClient", refuse)
    for name in ("configure_logging", "shorten_switch_interval", "share_heaps"):
        monkeypatch.setattr(instance_module, name, lambda *_: None)
    command = [
        str(Path(__file__).parents[2] / "examples" / "first.yaml"),
        "--bootstrap-servers=b:1",
        "--instance-id=app-0",
        f"--state-dir={tmp_path}",
    ]
    tags = ["--client-tag=zone=a", "--client-tag=example.com/rack=7"]
    result = CliRunner().invoke(instance_module.app, [*command, *tags])
    assert (result.exit_code, "enough" in result.output) == (64, True)
    assert [each.client_tags for each in made] == [{"zone": "a", "example.com/rack": "7"}]
    refused = CliRunner().invoke(instance_module.app, [*command, "--client-tag=zone=a,b"])
    assert (refused.exit_code, len(made)) == (64, 1)
    assert "found 'a,b' as the value of the tag zone" in refused.output


@pytest.mark.parametrize("given", [["zone"], ["zone="], ["=a"], ["zone=a,,b"], ["zone=a", "zone=b"]])
def test_a_tag_without_key_or_value_or_given_twice_is_refused(given):
    with pytest.raises(typer.BadParameter, match="zone=a,b"):
        parse_tags(given)


def test_a_port_at_which_somebody_listens_is_refused_by_its_number():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentException, match=f"port {port} of 127.0.0.1 can't be used"):
            require_free(port)
    require_free(port)


def test_the_own_brokers_port_and_other_brokers_are_not_given_together():
    given = ["first.yaml", "--bootstrap-servers", "b:1", "--broker-port", "9092"]
    app = typer.Typer()
    app.command()(run)
    answer = CliRunner().invoke(app, given)
    assert answer.exit_code == 2
    assert "--broker-port" in answer.output


def test_replicas_may_be_zero_when_instances_are_given():
    assert list(local_mistakes(read_application(document(replicas=0)), 2)) == []


@pytest.mark.parametrize(
    ("present", "made"),
    [
        ({}, {"a": 4, "b": 4, "out": 4, "letters": 4}),
        ({"a": 7}, {"b": 7, "out": 7, "letters": 7}),
        ({"a": 2, "b": 2, "out": 1}, {"letters": 2}),
        ({"a": 2, "b": 2, "out": 1, "letters": 1}, {}),
    ],
)
def test_missing_topics_get_the_partitions_of_the_sources_that_are_there(present, made):
    spec = {"processing": {"onDeserializationError": {"deadLetter": {"topic": "letters"}}}}
    application = parse_application(document(**spec))
    found = missing_topics(build_topology(application), application.spec, present)
    assert {each.name: each.partitions for each in found} == made
