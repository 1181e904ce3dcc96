"""The page for people in a real browser: what its users come for, attacks, access, keyboard, phone and dark mode."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import PHONE, PROGRAMS, Page, chromium
from kube_binaries import lacking
from page_stage import (
    EVIL,
    PageStage,
    State,
    calm,
    lag_row,
    page_stage,
    problem_row,
    restoration_row,
)
from query_stage import Place, key_in
from selenium.webdriver import Chrome, Keys

from streams_runtime.query.server.access import QueryGuard, TokenGate
from streams_runtime.query.stores.views import KnownInstance
from streams_runtime.restore.restore_progress import in_all

UNKNOWN = "\u2013"
ROWS = "return document.querySelectorAll(arguments[0]).length"


@pytest.fixture(scope="module")
def shared_page_stage() -> Iterator[PageStage]:
    with page_stage() as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    if reason := lacking(*PROGRAMS):
        pytest.skip(reason)
    with chromium() as driver:
        yield driver


@pytest.fixture
def pages(shared_page_stage: PageStage) -> PageStage:
    shared_page_stage.reset()
    return shared_page_stage


@pytest.fixture
def page(browser: Chrome, tmp_path: Path) -> Iterator[Page]:
    made = Page(browser, tmp_path)
    yield made
    assert made.complaints() == []


def refusals(page: Page, *statuses: str) -> None:
    """The console has these of questions that were refused, as it should, and nothing else."""
    found = [re.search(r"status of (\d+)", each) for each in page.complaints()]
    assert {each and each[1] for each in found} == set(statuses)


def opened(page: Page, pages: PageStage, size: tuple[int, int] = (1280, 900), dark: bool = False) -> None:
    """The page, with the state of both instances."""
    page.open(pages.url, size, dark)
    page.wait(lambda: page.script(ROWS, "#instances-rows .state") == 2, "the states of two instances")


# --- what people come for


def test_the_lagging_partition_is_found(page: Page, pages: PageStage) -> None:
    """Among 400, of which one stands still while others are caught up with."""
    state = calm("orders-0", range(400))
    state["lag"] = [lag_row("orders", each, 5_000_000, each * 7) for each in range(400)]
    state["lag"][137] = lag_row("orders", 137, 1_200_000, 3_400_000)

    def moves(now: State, seconds: float) -> None:
        for row in now["lag"]:
            more = int(seconds * 900)
            row["end"] += more
            if row["partition"] != 137:
                row["position"] += more
            row["lag"] = row["end"] - row["position"]
        now["counters"]["records_processed"] += int(seconds * 900 * 399)

    pages.first.set(state, moves)
    opened(page, pages)
    page.wait(lambda: "orders-137" in page.text("#lag-finding"), "the finding")
    page.wait(lambda: "not read for" in page.text("#lag-rows tr.worst"), "what becomes of it")
    [[partition, instance, lag, read, arrives, _]] = page.cells("#lag-rows tr.worst")
    assert (partition, instance, lag[:3], read) == ("▲ orders-137", "orders-0", "3,4", "0")
    assert 800 < int(arrives) < 1000
    assert page.cells("#lag-rows tr:nth-child(2)")[0][5].startswith("keeps up, 3 s behind")
    page.wait(lambda: "k/s" in page.text(".card.topic"), "figures on the topic's card")
    assert page.script(ROWS, "#lag-rows tr") == 12
    page.screenshot("lag-desktop")
    page.click("#lag-all")
    assert page.script(ROWS, "#lag-rows tr") == 402
    assert page.script(ROWS, ".cell.ok") == 802
    page.click("#lag-all")
    page.open(pages.url, PHONE)
    page.wait(lambda: "orders-137" in page.text("#lag-rows tr.worst"), "the row on a phone")
    assert_no_sideways_scroll(page)
    page.screenshot("lag-phone")


def test_why_an_instance_is_in_error_is_seen(page: Page, pages: PageStage) -> None:
    state = calm("orders-1", ())
    message = (
        "record orders-1@4711 can't be read: the field amount is no number. Repair the producer; to go on past such"
        " records set spec.processing.onDeserializationError to continue or to deadLetter: {topic: …}"
    )
    state["state"] = "PENDING_ERROR"
    remedy = "repair or skip the record at topic, partition, offset"
    state["error"] = {"class": "DeserializationException", "message": message, "remedy": remedy}
    state["problems"] = [
        problem_row(
            f"orders-1-StreamThread-1 ended by {message}", "error", remedy=remedy, where="orders-1-StreamThread-1"
        ),
        problem_row("no broker at kafka:9092 answers; waiting for it, nothing is lost", times=12),
    ]
    pages.second.set(state)
    opened(page, pages)
    assert page.text("#state") == "✖ PENDING_ERROR"
    said = page.text(".error")
    assert said.startswith("✖ orders-1 ends in ERROR")
    for each in ("4711", "Repair the producer", "DeserializationException", "Repair or skip the record at topic"):
        assert each in said
    assert "12 times" in page.text("#problems-list")
    assert "orders-1 is PENDING_ERROR. orders-1 ended by DeserializationException" in page.text("#announce")
    page.screenshot("error-desktop")
    page.open(pages.url, PHONE, dark=True)
    page.wait(lambda: page.script(ROWS, ".error"), "the error on a phone")
    assert_no_sideways_scroll(page)
    page.screenshot("error-phone-dark")


def test_why_an_instance_has_ended_is_seen_at_another_one(page: Page, pages: PageStage) -> None:
    """By its last words, which a local run keeps."""
    opened(page, pages)
    word = {"state": "ERROR", "class": "LockException", "message": "the folder is held by process 7. Stop that one"}
    pages.first.known[1] = KnownInstance("orders-1", None, False, word)
    page.wait(lambda: "✖ orders-1 is in ERROR" in page.text(".error"), "the error")
    assert "held by process 7" in page.text(".error")
    assert "Stop the process that holds the state folder." in page.text(".error .remedy")
    assert page.cells("#instances-rows tr")[1] == ["orders-1", "✖ ERROR, ended", *[UNKNOWN] * 4]
    assert page.text("#state") == "✖ ERROR"
    page.screenshot("ended")


def test_a_key_is_queried_here_and_at_the_instance_that_has_it(page: Page, pages: PageStage) -> None:
    opened(page, pages)
    for partition, from_where in ((0, "From this instance"), (1, f"From {pages.second.url}")):
        page.fill("#query-fields input[name=key]", key_in(partition))
        page.press(Keys.ENTER)
        page.wait(lambda: from_where in page.text("#query-answer"), from_where)  # noqa: B023
        assert page.text("#query-answer tbody td").startswith(key_in(partition))
        assert '"n":' in page.text("#query-answer pre")
    page.fill("#query-fields input[name=key]", "nobody")
    page.press(Keys.ENTER)
    page.wait(
        lambda: "The store has no such key" in page.text("#query-answer"), "an answer for a key that is not there"
    )
    refusals(page, "421")


def test_windows_and_ranges_come_from_all_instances(page: Page, pages: PageStage) -> None:
    opened(page, pages)
    page.choose("#query-what", "all, from the first on")
    page.click("#query button[type=submit]")
    page.wait(lambda: "8 records. From 2 instances" in page.text("#query-answer"), "the records of both")
    keys = page.script(
        "return [...document.querySelectorAll('#query-answer tbody td:first-child')].map(e => e.textContent)"
    )
    assert keys == ["AA", "B6", "DL", "EV", "UA", "WN", "hello", "ü"]
    page.choose("#query-store", "per-minute (window)")
    page.fill("#query-fields input[name=key]", key_in(1))
    page.fill("#query-fields input[name=fromTime]", "2026-01-01T12:01:00Z")
    page.click("#query button[type=submit]")
    page.wait(lambda: "2 records" in page.text("#query-answer"), "the windows from then on")
    assert "2026-01-01T12:03:00" in page.text("#query-answer tbody")
    page.screenshot("query-desktop")
    page.choose("#query-store", "visits (session)")
    page.fill("#query-fields input[name=key]", key_in(0))
    page.fill("#query-fields input[name=fromTime]", "noon")
    page.click("#query button[type=submit]")
    page.wait(lambda: "Correct the query" in page.text("#query-answer"), "the remedy")
    assert "fromTime" in page.text("#query-answer")
    assert "RFC 3339" in page.text("#query-answer")
    for one in (pages.first, pages.second):
        one.stage.known_owners = {number: each for number, each in one.stage.known_owners.items() if number != 1}
    page.choose("#query-what", "sessions of keys between")
    page.fill("#query-fields input[name=fromTime]", "")
    page.click("#query button[type=submit]")
    page.wait(
        lambda: "1 partition of the store is on no instance" in page.text("#query-answer"), "the missing partition"
    )
    refusals(page, "421", "400")


def test_what_restores_and_for_how_long_is_seen(page: Page, pages: PageStage) -> None:
    state = calm("orders-0", (0, 2))
    state["state"] = "REBALANCING"
    state["tasks"][2]["state"] = state["tasks"][3]["state"] = "RESTORING"
    state["restoration"] = [
        restoration_row("counts", 0, 1_234_567, 2_000_000, 25_000.0),
        restoration_row("per-minute", 0, 10, 9_000_000, 300_000.0),
        restoration_row("visits", 2, 0, 40, None),
        restoration_row("visits", 0, 40, 40, 40.0, ended=True),
    ]
    state["restoration_in_all"] = in_all(state["restoration"])
    pages.first.set(state)
    opened(page, pages)
    page.wait(lambda: "3 store partitions restore" in page.text("#restoration-finding"), "the finding")
    assert page.cells("#restoration-rows tr") == [
        ["per-minute 0", "orders-0", "0 %", "8,999,990", "300k", "30 s"],
        ["counts 0", "orders-0", "61 %", "765,433", "25k", "31 s"],
        ["visits 2", "orders-0", "0 %", "40", UNKNOWN, "not known yet"],
    ]
    assert "↻" in page.text(".grid")
    assert page.cells("#tasks-rows tr")[0][:3] == ["1_0", "◐ RESTORING", "orders-0"]
    assert "◐ restores: 61 %" in page.text(".card")
    page.screenshot("restoration-desktop")
    page.open(pages.url, dark=True)
    page.wait(lambda: page.script(ROWS, "#restoration-rows tr") == 3, "the bars")
    page.screenshot("restoration-dark")


def test_the_step_that_drops_records_is_found(page: Page, pages: PageStage) -> None:
    state = calm("orders-0", (0, 2))
    state["dropped"] = [
        {"step": "per-minute", "reason": "too late", "records": 12_345},
        {"step": "by-user", "reason": "key is null", "records": 7},
    ]

    def moves(now: State, seconds: float) -> None:
        now["dropped"][0]["records"] += int(seconds * 10)

    pages.first.set(state, moves)
    other = calm("orders-1", (1,))
    other["dropped"] = [{"step": "per-minute", "reason": "too late", "records": 100}]
    pages.second.set(other)
    opened(page, pages)
    page.wait(lambda: "The step per-minute drops the most: 12,4" in page.text("#dropped-finding"), "the finding")
    assert re.search(r"per-minute⚠ 12\.[45]k dropped", page.text(".card.marked"))
    page.script(
        "document.querySelector('.card.marked[aria-label^=\"Step per-minute\"]').dispatchEvent(new Event('click'))"
    )
    assert re.search(r"12,\d{3}: too late", page.text("#detail"))
    page.wait(
        lambda: page.text("#dropped-rows td:last-child").split()[0] not in (UNKNOWN, "0"), "what was dropped lately"
    )
    page.screenshot("dropped-desktop")
    del state["dropped"], other["dropped"]
    state["counters"]["late_records"] = 3
    pages.first.set(state)
    pages.second.set(other)
    page.wait(lambda: page.cells("#dropped-rows tr")[0][:3] == ["any", "too late", "3"], "sums that are not by step")


# --- attacks


def test_names_keys_and_messages_are_never_html(page: Page, pages: PageStage) -> None:
    state = calm("orders-0", (0, 2))
    state["lag"].append(lag_row(EVIL, 0, 1, 10))
    state["tasks"][0]["thread"], state["tasks"][0]["state"] = EVIL, EVIL
    state["restoration"] = [restoration_row(EVIL, 0, 1, 10, 1.0)]
    state["restoration_in_all"] = in_all(state["restoration"])
    state["dropped"] = [{"step": EVIL, "reason": EVIL, "records": 1}]
    state["problems"] = [problem_row(EVIL, "error", where=EVIL, remedy=EVIL)]
    state["error"] = {"class": EVIL, "message": EVIL, "remedy": EVIL}
    state["standbys"] = [{"id": EVIL, "type": "standby", "state": EVIL, "stores": [], "lag": 3}]
    pages.first.set(state)
    pages.first.known.append(KnownInstance(EVIL, None, True))
    document = pages.first.topology_document
    try:
        evil = json.dumps(EVIL)[1:-1]
        pages.first.topology_document = json.loads(json.dumps(document).replace("with-country", evil))
        page.open(pages.url)
        page.wait(lambda: page.script(ROWS, "#problems-list li") and page.script(ROWS, ".card"), "the page")
    finally:
        pages.first.topology_document = document
    for where in (
        "#lag-rows",
        "#tasks-rows",
        "#restoration-rows",
        "#dropped-rows",
        "#problems-list",
        ".error",
        "#instances-rows",
    ):
        assert "<img src=x" in page.text(where), where
    page.fill("#query-fields input[name=key]", EVIL)
    page.press(Keys.ENTER)
    page.wait(lambda: "no such key" in page.text("#query-answer"), "an answer")
    assert page.script(
        "return [window.attacked ?? null, document.images.length, document.querySelectorAll('body script').length]"
    ) == [None, 0, 0]
    page.screenshot("attacked")


def test_nothing_is_asked_of_any_other_place(page: Page, pages: PageStage) -> None:
    opened(page, pages)
    asked = page.script("return performance.getEntriesByType('resource').map(each => each.name)")
    assert len(asked) > 10
    assert {each for each in asked if not each.startswith(pages.url)} == set()
    answers = page.script("return fetch('http://127.0.0.1:1/').then(() => 'asked', () => 'refused')")
    assert answers == "refused"
    assert any("Content Security Policy" in each for each in page.complaints())


# --- figures


def in_page(page: Page, module: str, expression: str) -> Any:
    """What an expression gives that has a module of the page as `m`."""
    return page.script(f"return import('/page/{module}.js').then(m => {expression})")


def test_numbers_keep_digits_that_javascript_would_round(page: Page, pages: PageStage) -> None:
    page.open(pages.url)
    text = '{"a":9007199254740993,"b":[1.10,-0,12345678901234567890]}'
    assert in_page(page, "source", f"m.shown(m.parsed('{text}'))") == text


@pytest.mark.parametrize(
    ("lag", "read", "arrives", "seconds", "becomes"),
    [
        (0, 5, 5, 30, ("caught-up", 0)),
        (None, 5, 5, 30, ("unknown", None)),
        (100, None, None, 0, ("unknown", None)),
        (100, 20, 10, 30, ("catches-up", 10)),
        (100, 10, 20, 30, ("falls-behind", None)),
        (100, 100, 101, 30, ("keeps-up", 1)),
        (100, 100, None, 30, ("catches-up", 1)),
        (100, 0, 10, 4, ("waits", 4)),
        (100, 0, 0, 30, ("stands", 30)),
    ],
)
def test_what_becomes_of_a_lag(
    page: Page, pages: PageStage, lag: Any, read: Any, arrives: Any, seconds: int, becomes: tuple[str, Any]
) -> None:
    if not page.driver.current_url.startswith(pages.url):
        page.open(pages.url)
    arguments = json.dumps([lag, read, arrives, seconds])
    found = in_page(page, "overview", f"m.pace(...{arguments})")
    assert (found["pace"], found["left"]) == becomes


def test_rates_are_of_half_a_minute_and_begin_anew_when_a_number_goes_back(page: Page, pages: PageStage) -> None:
    if not page.driver.current_url.startswith(pages.url):
        page.open(pages.url)
    rates = "const r = new m.Rates(); for (const [at, n] of {}) r.note('k', n, at); return [r.of('k'), r.more('k')]"
    samples = {
        "[[0, 10]]": [None, None],
        "[[0, 10], [1, 20]]": [None, 10],
        "[[0, 10], [2, 20]]": [5, 10],
        "[[0, 0], [2, 100], [4, 110], [34, 140]]": [1, 30],
        "[[0, 100], [2, 200], [4, 0], [8, 40]]": [10, 40],
    }
    for given, wanted in samples.items():
        assert in_page(page, "history", "{" + rates.replace("{}", given, 1) + "}") == wanted, given


# --- access


def test_with_a_gate_the_page_asks_for_a_token_and_shows_nothing_before(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("open-sesame")
    with page_stage(QueryGuard(TokenGate(file))) as gated:
        page.open(gated.url)
        page.wait(lambda: "This instance asks for a token" in page.text("#access"), "the form")
        assert not page.sees("#overview")
        assert "queries need a token here" in page.text("#access-why")
        assert page.script("return document.activeElement.id") == "token"
        page.screenshot("token")
        for wrong, why in (("wrong", "it is not the one"), ("höß", "it has characters that no token has")):
            page.fill("#token", wrong)
            page.press(Keys.ENTER)
            page.wait(lambda: "does not count" in page.text("#access-why") and why[3:] in page.text("#access-why"), why)  # noqa: B023
        page.fill("#token", "open-sesame")
        page.press(Keys.ENTER)
        page.wait(lambda: page.script(ROWS, "#instances-rows .state") == 2, "both instances, asked with the token")
        page.driver.refresh()
        page.wait(lambda: page.script(ROWS, "#instances-rows .state") == 2, "the token after a reload")
        file.write_text("another")
        page.wait(lambda: "does not count" in page.text("#access-why"), "the token that counts no more")
        assert not page.sees("#overview")
        page.click("#forget")
        page.wait(lambda: "queries need a token here" in page.text("#access-why"), "the page without a token")
        assert page.script("return sessionStorage.length + localStorage.length + document.cookie.length") == 0
    refusals(page, "401")


# --- an instance that goes, and one that nobody finds


def test_an_instance_that_does_not_answer_is_said_and_what_was_known_stays(page: Page, pages: PageStage) -> None:
    with page_stage() as stage:
        opened(page, stage)
        stage.first.known.append(KnownInstance("orders-2", "http://127.0.0.1:1", False))
        page.wait(
            lambda: (
                "not in the group: the instance at http://127.0.0.1:1 does not answer" in page.text("#instances-rows")
            ),
            "the third",
        )
        page.screenshot("instances")
    page.wait(lambda: "This instance does not answer" in page.text("#silent"), "the notice")
    assert page.text("#state") == "? was RUNNING"
    assert "orders-1" in page.text("#instances-rows")
    page.screenshot("silent")
    page.complaints()


def test_an_instance_that_is_running_before_spark_says_so_until_spark_is_there(page: Page, pages: PageStage) -> None:
    pages.first.set(calm("orders-0", range(3)) | {"spark_ready": False})
    opened(page, pages)
    page.wait(lambda: page.text("#state").endswith("RUNNING, Spark is starting"), "the headline")
    assert page.text("#instances-rows").count("RUNNING, Spark is starting") == 1
    page.screenshot("without-spark")
    pages.first.set(calm("orders-0", range(3)))
    page.wait(lambda: page.text("#state").endswith("RUNNING"), "Spark")
    assert "Spark" not in page.text("#instances-rows")


def test_a_page_that_nobody_looks_at_asks_for_nothing(page: Page, pages: PageStage) -> None:
    opened(page, pages)
    hide = "Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});"
    page.script(hide + "document.dispatchEvent(new Event('visibilitychange'))", True)
    asked = "return performance.getEntriesByType('resource').length"
    page.script("return new Promise(done => setTimeout(done, 2500))")
    before = page.script(asked)
    page.script("return new Promise(done => setTimeout(done, 2500))")
    assert page.script(asked) == before
    page.script(hide + "document.dispatchEvent(new Event('visibilitychange'))", False)
    page.wait(lambda: page.script(asked) > before, "questions once it is looked at")


# --- keyboard, phone, colours


def test_all_of_it_is_reached_by_keyboard(page: Page, pages: PageStage) -> None:
    opened(page, pages)
    page.press(Keys.TAB)
    assert page.script("return document.activeElement.className") == "skip"
    reached = []
    while "Skip to the content" not in reached and len(reached) < 60:
        page.press(Keys.TAB)
        reached.append(
            page.script(
                "const e = document.activeElement; return e.id || e.getAttribute('aria-label') || e.textContent.trim()"
            )
        )
    wanted = [
        "scope",
        "pause",
        "Endpoints",
        "Topology",
        "Stores",
        "orders-0",
        "query-store",
        "query-what",
        "query-stale",
        "Query",
    ]
    places = [reached.index(each) for each in wanted]
    assert places == sorted(places)
    cards = [each for each in reached if each.startswith(("Topic", "Step"))]
    assert len(cards) == 1, "the drawing is one stop"
    page.script("document.querySelector('.card[tabindex=\"0\"]').focus()")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    here = page.script("return document.activeElement.getAttribute('aria-label')")
    assert here.startswith("Step")
    page.press(Keys.ENTER)
    assert page.text("#detail h3") in here
    outline = page.script("return getComputedStyle(document.activeElement.querySelector('.shape')).strokeWidth")
    assert outline == "3.5px"
    headers = page.script("return [...document.querySelectorAll('th')].filter(e => !e.scope).length")
    assert headers == 0
    fields = "return [...document.querySelectorAll('input, select')].filter(e => !e.labels.length).length"
    assert page.script(fields) == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_stands_out_from_its_ground(page: Page, pages: PageStage, dark: bool) -> None:
    state = calm("orders-0", (0, 2))
    state["state"], state["tasks"][0]["state"], state["tasks"][1]["state"] = "REBALANCING", "RESTORING", "CREATED"
    state["lag"][0] = lag_row("orders", 0, 1, 10)
    state["dropped"] = [{"step": "counts", "reason": "too late", "records": 1}]
    state["problems"] = [problem_row("this; do that", "error", remedy="do that"), problem_row("this; do that")]
    state["error"] = {"class": "LockException", "message": "held by 7", "remedy": "stop it"}
    state["restoration"] = [restoration_row("counts", 0, 50, 100, 1.0)]
    state["restoration_in_all"] = in_all(state["restoration"])
    pages.first.set(state)
    opened(page, pages, dark=dark)
    assert page.low_contrasts() == []


@pytest.mark.parametrize("width", [320, 375, 768])
def test_a_narrow_window_never_scrolls_sideways(page: Page, pages: PageStage, width: int) -> None:
    long = "a-very-long-name-of-a-topic-that-somebody-has-thought-of-" * 3
    state = calm("orders-0", (0, 2))
    state["lag"].append(lag_row(long, 0, 1, 10))
    state["dropped"] = [{"step": long, "reason": "too late", "records": 1}]
    state["problems"] = [problem_row(long, where=long)]
    state["restoration"] = [restoration_row(long, 0, 50, 100, 1.0)]
    state["restoration_in_all"] = in_all(state["restoration"])
    state["tasks"][0]["state"] = "RESTORING"
    pages.first.set(state)
    pages.first.known.append(KnownInstance(long, None, True))
    opened(page, pages, (width, 800))
    assert_no_sideways_scroll(page)
    page.screenshot(f"long-names-{width}")


def assert_no_sideways_scroll(page: Page) -> None:
    width, seen = page.script("return [document.scrollingElement.scrollWidth, innerWidth]")
    assert width <= seen


def test_an_instance_alone_is_shown_by_its_button(page: Page, pages: PageStage) -> None:
    opened(page, pages)
    assert page.text("#tasks-grids").count("3 RUNNING") == 2
    page.click("#instances-rows tr:nth-child(2) button")
    assert page.text("#tasks-grids").count("1 RUNNING") == 2
    assert page.script("return document.getElementById('scope').value") == "orders-1"
    pages.second.stage.put(1, Place.ACTIVE)
