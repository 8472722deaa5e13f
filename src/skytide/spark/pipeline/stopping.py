"""Signals: Ctrl-C and SIGTERM end a run without a stack trace, a stream after the micro-batch that is under way."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from skytide.spark.pipeline.quiet import stopping

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """A signal ended the run."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def status(self) -> int:
        """The exit status as shells report it: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number


class Signals:
    """Takes the signals while a run lasts.

    Normally a signal raises `Stopped` at once. Where `patient` is set, the first is only noted in `received`, so that
    the run can end at a good moment, the second in `urgent`, and the third raises.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.urgent = False
        self.patient = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        self.take()
        return self

    def take(self) -> None:
        """Take the signals, again where somebody else took them: Spark does when it starts."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            before = signal.signal(number, self._handle)
            self._before.setdefault(number, before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        enough = self.urgent or not self.patient
        self.urgent = self.received is not None
        self.received = self.received or number
        if enough:
            stopping.set()  # a call of Spark's that is cut short here is no fault
            raise Stopped(self.received)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
