"""What the resolver is asked, and how its failure is told."""

from __future__ import annotations

from xml.etree import ElementTree

from streams_runtime.jvm.ivy import Coordinate, failure_text, module_descriptor

NO_NETWORK = """
:: problems summary ::
:::: WARNINGS
    Host maven.example not found. url=https://maven.example/org/example/thing/1.0/thing-1.0.pom

    Host maven.example not found. url=https://maven.example/org/example/thing/1.0/thing-1.0.jar

        module not found: org.example#thing;1.0
"""
UNKNOWN_VERSION = """
        module not found: org.example#thing;9.9

    ==== central: tried

      https://maven.example/org/example/thing/9.9/thing-9.9.pom
"""


def test_each_coordinate_is_asked_for_with_what_it_needs_to_run():
    wanted = [Coordinate.parse("org.example:thing:1.0"), Coordinate.parse("com.example:part:2")]
    root = ElementTree.fromstring(module_descriptor(wanted, ("org.example:left-out",)))
    found = [(each.get("org"), each.get("name"), each.get("rev"), each.get("conf")) for each in root.iter("dependency")]
    assert found == [
        ("org.example", "thing", "1.0", "default->default(runtime)"),
        ("com.example", "part", "2", "default->default(runtime)"),
    ]
    assert [(each.get("org"), each.get("module")) for each in root.iter("exclude")] == [("org.example", "left-out")]


def test_a_missing_network_is_called_that_and_each_host_named_once():
    text = failure_text("org.example:thing:1.0", NO_NETWORK)
    assert text.startswith("no network: the jars org.example:thing:1.0 could not be fetched")
    assert text.count("maven.example") == 1


def test_an_artifact_that_is_not_there_is_not_called_a_missing_network():
    text = failure_text("org.example:thing:9.9", UNKNOWN_VERSION)
    assert "no network" not in text
    assert "module not found: org.example#thing;9.9" in text


def test_the_error_says_what_to_do_where_only_a_mirror_is_in_reach():
    assert "STREAMSAPP_IVY_SETTINGS" in failure_text("org.example:thing:1.0", NO_NETWORK)
