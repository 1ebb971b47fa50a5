"""Notes on tables belong to whoever reads them, also where others read at the same time."""

import threading
import warnings

import pytest

from surepick.tables import TableWarning, keeping_notes, read_table


def test_inside_a_note_is_a_value_and_outside_a_warning(write):
    path = write("id;x\na;1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with keeping_notes() as notes:
            read_table(path)
    assert len(notes) == 1
    assert "semicolons" in notes[0]
    with pytest.warns(TableWarning, match="semicolons"):
        read_table(path)
    assert len(notes) == 1


def test_nobody_sees_the_notes_of_another_thread(write):
    """Two read in turn, each inside of its own `keeping_notes`: a catch of warnings would hold both."""
    mine, theirs = write("id;x\na;1\n", "mine.csv"), write("id;x\na;1\n", "theirs.csv")
    inside, done = threading.Event(), threading.Event()
    found = {}

    def other():
        with keeping_notes() as notes:
            inside.set()
            done.wait(10)
            read_table(theirs)
        found["other"] = notes

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    with keeping_notes() as notes:
        read_table(mine)
        done.set()
        thread.join()
    assert [note.partition(":")[0] for note in notes] == [str(mine)]
    assert [note.partition(":")[0] for note in found["other"]] == [str(theirs)]
