"""The check that fails a test which leaves threads at work can fail."""

import threading

import pytest
from leftovers import nothing_left


def test_a_thread_that_goes_on_is_named():
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, name="a client that looks for its server")
    with pytest.raises(AssertionError, match=r"left at work.*a client that looks"), nothing_left(patience=0.0):
        thread.start()
    ended.set()
    thread.join()


def test_a_thread_that_ends_in_time_is_fine():
    with nothing_left():
        threading.Timer(0.05, lambda: None).start()
