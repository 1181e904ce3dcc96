"""What an instance hears of others: their figures, or that they do not answer; and nothing at all of strangers."""

from __future__ import annotations

import httpx
import pytest

from streams_runtime.query.client.peer_figures import PeerFigures

URLS = {"app-0": "http://app-0:1", "app-1": "https://app-1:1"}


class Instances:
    """Plays what instances answer, in turn; the last answer stays."""

    def __init__(self, **answers: list[httpx.Response | Exception]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert "authorization" not in request.headers
        self.asked.append(str(request.url))
        answers = self.answers[request.url.host.replace("-", "_")]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def figures(instances: Instances) -> PeerFigures:
    return PeerFigures(URLS.get, lambda: httpx.MockTransport(instances))


def test_those_whose_address_is_known_are_asked_and_no_others() -> None:
    instances = Instances(app_0=[httpx.Response(200, json={"tasks": []})], app_1=[httpx.Response(200, json={"a": 1})])
    assert figures(instances)(["app-0", "app-1", "stranger"]) == {"app-0": {"tasks": []}, "app-1": {"a": 1}}
    assert sorted(instances.asked) == ["http://app-0:1/state/figures", "https://app-1:1/state/figures"]
    assert figures(instances)([]) == figures(instances)(["stranger"]) == {}


@pytest.mark.parametrize(
    "answer",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("late"),
        httpx.Response(503, json={}),
        httpx.Response(200, content=b"{"),
        httpx.Response(200, json=[1]),
    ],
    ids=["refused", "late", "failed", "no JSON", "no object"],
)
def test_one_that_does_not_answer_is_asked_twice(answer: httpx.Response | Exception) -> None:
    instances = Instances(app_0=[answer])
    assert figures(instances)(["app-0"]) == {"app-0": None}
    assert len(instances.asked) == 2
    once = Instances(app_0=[answer, httpx.Response(200, json={"tasks": []})])
    assert figures(once)(["app-0"]) == {"app-0": {"tasks": []}}
