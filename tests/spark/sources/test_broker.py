"""A range of messages, from a consumer that says what the test lets it say: gaps, ends, silence and faults."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from skytide.errors import InputError
from skytide.spark.sources import broker
from skytide.spark.sources.broker import client_config, messages
from skytide.spark.sources.offsets import fail_on_loss

PART = ("t", 0)
CONFIG = client_config({}, servers="scripted:1")


class Fault:
    """An error of the client, which tests cannot make."""

    def __init__(self, code: int) -> None:
        self._code = code

    def code(self) -> int:
        return self._code

    def str(self) -> str:
        return f"code {self._code}"


class Message:
    def __init__(self, offset: int, code: int | None = None) -> None:
        self._offset = offset
        self._error = None if code is None else Fault(code)

    def error(self) -> Fault | None:
        return self._error

    def offset(self) -> int:
        return self._offset


class Consumer:
    """Gives one list of messages after the other, then nothing."""

    script: list[list[Message]] = []  # noqa: RUF012
    made: list[Consumer] = []  # noqa: RUF012

    def __init__(self, config: dict[str, Any]) -> None:
        self.at: list[int] = []
        self.closed = False
        Consumer.made.append(self)

    def assign(self, parts: list[Any]) -> None:
        self.at.append(parts[0].offset)

    def consume(self, count: int, timeout: float) -> list[Message]:
        return Consumer.script.pop(0) if Consumer.script else []

    def get_watermark_offsets(self, part: Any, timeout: float) -> tuple[int, int]:
        return 6, 9

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confluent_kafka, "Consumer", Consumer)
    monkeypatch.setattr(broker, "_open", {})
    monkeypatch.setattr(Consumer, "script", [])
    monkeypatch.setattr(Consumer, "made", [])


def read(first: int, last: int, *script: list[Message], lost: Any = fail_on_loss, timeout: float = 0.05) -> list[int]:
    Consumer.script.extend(script)
    found = messages(CONFIG, PART, first, last, timeout=timeout, lost=lost)
    return [message.offset() for chunk in found for message in chunk]


def end(offset: int) -> Message:
    return Message(offset, KafkaError._PARTITION_EOF)


def test_offsets_without_messages_are_passed_over() -> None:
    assert read(0, 6, [Message(0), Message(3)], [], [end(2)], [Message(4), end(6)]) == [0, 3, 4]


def test_a_message_beyond_the_range_ends_it_and_is_not_given() -> None:
    assert read(0, 6, [Message(4), Message(8)]) == [4]
    # The next range begins before that message, so the consumer goes back.
    assert read(6, 9, [Message(8)]) == [8]
    assert [one.at for one in Consumer.made] == [[0, 6]]


def test_a_range_that_goes_on_uses_the_consumer_as_it_stands() -> None:
    assert read(0, 2, [Message(0), Message(1)]) == [0, 1]
    assert read(2, 4, [Message(2)], [Message(3)]) == [2, 3]
    assert [one.at for one in Consumer.made] == [[0]]


def test_silence_is_an_error_after_a_while_and_the_consumer_goes() -> None:
    with pytest.raises(InputError, match="offset 1 of t did not come"):
        read(0, 5, [Message(0)])
    assert Consumer.made[0].closed
    assert read(1, 2, [Message(1)]) == [1] and len(Consumer.made) == 2


@pytest.mark.parametrize("code", [KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE])
def test_lost_messages_are_an_error_or_skipped(code: int) -> None:
    with pytest.raises(InputError, match="messages are lost: offset 2 of partition 0 of topic t is no longer there"):
        read(2, 8, [Message(2, code)])
    Consumer.script.clear()
    assert read(2, 8, [Message(2, code)], [Message(6), Message(7)], lost=lambda what: None) == [6, 7]
    assert Consumer.made[-1].at == [2, 6]


def test_other_faults_are_errors_that_say_so() -> None:
    with pytest.raises(InputError, match="'scripted:1' did not answer as expected: code 29"):
        read(0, 3, [Message(0, KafkaError.TOPIC_AUTHORIZATION_FAILED)])
