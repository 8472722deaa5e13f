"""Signals during a run."""

from __future__ import annotations

import os
import signal

import pytest

from skytide.spark.pipeline.stopping import Signals, Stopped


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_at_once_with_the_status_of_shells(number: int, status: int) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Stopped) as caught, Signals():
        os.kill(os.getpid(), number)
    assert caught.value.status == status
    assert signal.getsignal(number) is before


def test_where_a_run_is_patient_signals_are_noted_and_the_third_ends_it() -> None:
    with Signals() as signals:
        signals.patient = True
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals.received == signal.SIGTERM and not signals.urgent
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.received == signal.SIGTERM and signals.urgent
        with pytest.raises(Stopped) as caught:
            os.kill(os.getpid(), signal.SIGINT)
        assert caught.value.status == 143


def test_signals_that_another_took_are_taken_back_and_given_back_in_the_end() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Signals() as signals:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signals.take()
        with pytest.raises(Stopped):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
