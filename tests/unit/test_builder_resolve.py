"""`topology: {python: …}`: what the module makes counts on a machine, and stands beside the name in a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from click.testing import Result
from typer.testing import CliRunner

from streams_runtime.api import StreamsApplication, load_application, parse_application, read_application
from streams_runtime.builder.resolve_python import check_built, read_file
from streams_runtime.cli.build import build
from streams_runtime.cli.topology.topology_command import topology
from streams_runtime.cli.validate import validate
from streams_runtime.errors import InvalidApplicationException

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = "from streams_runtime.builder import StreamsBuilder, json\n\n\ndef build():\n"
BODY = """\
    builder = StreamsBuilder()
    orders = builder.stream("orders", key="string", value=json("amount DOUBLE, n INT"))
    orders.filter("amount > 0", name="paid").group_by_key().aggregate(n="sum(n)", store="totals").to("totals")
    return builder
"""

app = typer.Typer()
for command in (build, topology, validate):
    app.command()(command)
runner = CliRunner()


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports is forgotten behind it.

    Nor is it kept as bytecode, which Python takes for that of the next code of the same length and second.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith("shop"):
            del sys.modules[name]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return application(tmp_path, HEAD + BODY)


def application(folder: Path, code: str, **topology: Any) -> Path:
    (folder / "shop.py").write_text(code)
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"replicas": 2, "topology": {"python": "shop:build", **topology}},
    }
    (folder / "shop.yaml").write_text(yaml.safe_dump(document))
    return folder / "shop.yaml"


def load_file(file: Path) -> StreamsApplication:
    reading = read_file(file)
    assert reading.application is not None, reading.reported
    return reading.application


def run(*arguments: str | Path) -> Result:
    return runner.invoke(app, [str(each) for each in arguments])


def test_the_example_in_python_is_the_example_in_yaml() -> None:
    python = load_file(EXAMPLES / "python" / "flights-enriched.yaml").spec.topology
    assert python.python == "flights_enriched:build"
    declared = load_application(EXAMPLES / "flights-enriched.yaml").spec.topology
    assert python.model_copy(update={"python": None}) == declared


def test_build_prints_what_a_cluster_takes_and_the_code_is_compared_with_it(file: Path, tmp_path: Path) -> None:
    done = run("build", file)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "'n': sum(n)" in done.stdout  # kubectl reads n as false
    built = parse_application(yaml.safe_load(done.stdout))
    assert (built.spec.replicas, built.spec.topology.python) == (2, "shop:build")
    assert [each.name for each in built.spec.topology.steps] == ["paid", "totals"]
    assert built == load_file(file)
    check_built(built)
    assert run("build", file, "--output", "json", "--to", tmp_path / "built.json").stdout == ""
    assert load_application(tmp_path / "built.json") == built
    # Built files are built again, and are right as they are.
    assert run("build", tmp_path / "built.json").stdout == done.stdout
    assert run("validate", "--no-spark", tmp_path / "built.json").exit_code == 0
    assert run("topology", "--diff", file, tmp_path / "built.json").exit_code == 0


def test_without_what_it_makes_a_name_is_refused_where_nobody_has_the_code(file: Path) -> None:
    (mistake,) = read_application(file.read_text()).mistakes
    assert (mistake.path, mistake.remedy) == (
        "spec.topology.python",
        "apply what `streamsapp build FILE` prints, which has both",
    )


OTHERS = {
    "a step that differs": (BODY.replace("> 0", "> 1"), "its step 'paid' differs in where"),
    "a step that is gone": (
        BODY.replace('.filter("amount > 0", name="paid")', ""),
        "it has no step 'paid'; its step 'totals' differs in from",
    ),
    "a step more": (
        BODY.replace("    return", '    orders.filter("amount < 0", name="back")\n    return'),
        "its step 'back' does not stand here",
    ),
    "another format": (BODY.replace("n INT", "n BIGINT"), "its source 'orders' differs in value"),
    "another sink": (
        BODY.replace('.to("totals")', '.to("sums")'),
        "it has no sink 'totals → totals'; its sink 'totals → sums' does not stand here",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_code_that_makes_another_topology_than_the_resource_has_is_refused_by_what_differs(
    case: str, file: Path, tmp_path: Path
) -> None:
    body, words = OTHERS[case]
    built = load_file(file)
    run("build", file, "--to", tmp_path / "built.yaml")
    del sys.modules["shop"]
    (tmp_path / "shop.py").write_text(HEAD + body)
    with pytest.raises(InvalidApplicationException) as refused:
        check_built(built)
    (mistake,) = refused.value.mistakes
    assert mistake.path == "spec.topology.python"
    assert mistake.found.endswith(f"than the one that stands beside it: {words}")
    assert mistake.remedy.startswith("build the file again (`streamsapp build FILE`)")
    assert read_file(tmp_path / "built.yaml").mistakes == (mistake,)
    # Two files are compared as they are, whatever code is here now.
    assert run("topology", "--diff", tmp_path / "built.yaml", tmp_path / "built.yaml").exit_code == 0


def test_another_order_of_parts_which_numbers_sub_topologies_is_another_topology(tmp_path: Path) -> None:
    source = '    builder.stream("{0}", value="string").to("from-{0}")\n'
    body = "    builder = StreamsBuilder()\n{0}{1}    return builder\n"
    one, other = source.format("one"), source.format("other")
    built = load_file(application(tmp_path, HEAD + body.format(one, other)))
    del sys.modules["shop"]
    (tmp_path / "shop.py").write_text(HEAD + body.format(other, one))
    with pytest.raises(InvalidApplicationException, match="its sources stand in another order; its sinks stand in"):
        check_built(built)


def test_the_order_of_columns_which_a_cluster_does_not_keep_is_none(tmp_path: Path) -> None:
    code = BODY.replace('n="sum(n)"', 'n="sum(n)", a="count(*)"')
    document = yaml.safe_load(run("build", application(tmp_path, HEAD + code)).stdout)
    aggregate = document["spec"]["topology"]["steps"][1]["aggregate"]
    assert list(aggregate) == ["n", "a"]
    document["spec"]["topology"]["steps"][1]["aggregate"] = dict(sorted(aggregate.items()))
    check_built(parse_application(document))


WRONG = {
    "no such function": ("def buidl():\n    pass\n", "shop has no 'build'", "did you mean 'buidl'?"),
    "no function": ("build = 3\n", "'shop:build' is 3, which is no function", "name a function"),
    "nothing returned": (HEAD + "    StreamsBuilder()\n", "'shop:build' returns NoneType", "return the StreamsBuilder"),
    "no source": (HEAD + "    return StreamsBuilder()\n", "'shop:build' reads no topic", "stream or table"),
    "a failure": (HEAD + "    return 1 / 0\n", "'shop:build' failed: ZeroDivisionError", "correct it"),
    "its line": (HEAD + "    return 1 / 0\n", "(shop.py, line 5)", "correct it"),
    "a wrong call": (
        HEAD + '    StreamsBuilder().stream("a", value="string").key_by("value")\n',
        "required keyword-only argument: 'name' (shop.py, line 5)",
        "correct it",
    ),
    "a call that fails inside": (
        HEAD + '    StreamsBuilder().stream("a", value="string").select(3)\n',
        "(shop.py, line 5)",
        "correct it",
    ),
    "a call that is refused": (
        HEAD + '    StreamsBuilder().stream("a", value="string").filter(build)\n',
        "'shop:build' failed: shop.py:5: found <function build",
        "write expressions as Spark SQL text",
    ),
    "an exit": (HEAD + "    raise SystemExit(3)\n", "'shop:build' failed: SystemExit: 3", "correct it"),
    "a module that fails": ("1 / 0\n", "the module shop can't be imported: ZeroDivisionError", "correct it"),
}


@pytest.mark.parametrize("case", WRONG)
def test_code_that_gives_no_topology_is_a_mistake_of_the_reference(case: str, tmp_path: Path) -> None:
    code, found, remedy = WRONG[case]
    (mistake,) = read_file(application(tmp_path, code)).mistakes
    assert mistake.path == "spec.topology.python"
    assert found in mistake.found
    assert remedy in mistake.remedy


def test_mistakes_of_the_topology_name_the_call_and_those_of_the_file_its_fields(tmp_path: Path) -> None:
    file = application(tmp_path, HEAD + BODY.replace("amount >", "amout >"))
    file.write_text(file.read_text().replace("replicas: 2", "replicas: -2"))
    done = run("validate", "--no-spark", file)
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "spec.replicas: found -2; give at least 0",
        "shop.py:7 filter('paid').where: unknown column 'amout'; did you mean 'amount'?",
    ]


def test_two_modules_of_one_name_are_not_taken_for_each_other(file: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = application(tmp_path / "other", HEAD + BODY.replace("> 0", "> 1"))
    assert load_file(file).spec.topology.steps[0].where == "amount > 0"
    (mistake,) = read_file(other).mistakes
    assert mistake.path == "spec.topology.python"
    assert "can't be loaded beside" in mistake.found


def test_build_lists_mistakes_with_1_and_ends_with_2_where_it_can_not_write(file: Path, tmp_path: Path) -> None:
    done = run("build", file, "--to", tmp_path / "nowhere" / "built.yaml")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "can't be written" in done.stderr
    assert run("build", tmp_path / "absent.yaml").exit_code == 2
    del sys.modules["shop"]
    (tmp_path / "shop.py").write_text("build = 3\n")
    done = run("build", file)
    assert (done.exit_code, done.stdout.count("\n")) == (1, 1)
