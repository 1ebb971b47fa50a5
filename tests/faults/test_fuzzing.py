"""Whatever comes in, only a `SurepickError` comes out: one line of at most 500 characters, within 20 seconds of work.

Values, texts and command lines are drawn by hypothesis; files of each kind that surepick reads have some of their bytes
changed. The draws are the same in every run.
"""

import os
import random
import signal
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fuzz_commands import Ended, command_lines, run, spelled
from fuzz_inputs import CONTROLS, FRAME, PYTHON, real_files, texts, values
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

import surepick as sp
from surepick.studies.database import list_stored_studies, open_stored_study, resume_stored_study
from surepick.studies.logs.base import parse_duration
from surepick.tables import grouped_arms, read_arms, read_table
from surepick.text import LONGEST
from surepick_bench.results import read_results

SECONDS = 20
ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]], ["a", "b", "c"])
PROMISE = {"epsilon": 0.4, "delta": 0.05, "noise": sp.SubGaussian(0.5)}
SHARES = {  # of all inputs, in percent
    "values": 30,
    "texts": 20,
    "tables": 20,
    "certificates": 8,
    "databases": 6,
    "results": 4,
    "command lines": 12,
}
FAST, MANY = 400, 20_000


class TooLong(BaseException):
    """An input took longer than it may."""


@contextmanager
def at_most(seconds):
    """Ends what takes longer: so many seconds of processor time, or thirty times as long by the clock."""

    def end(*_):
        raise TooLong(f"not done after {seconds} s")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 30 * seconds))
    before = [signal.signal(kind, end) for kind, _, _ in timers]
    for _, timer, most in timers:
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for (kind, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(kind, handler)


def check_sentence(text):
    """One line of at most 500 characters, with words in it, that a terminal shows as it is."""
    assert len(text) <= LONGEST, text
    assert text.isprintable(), text
    assert len(text) > 10, text


class Fuzz:
    """Inputs of each kind, counted; what may come out is checked here."""

    def __init__(self, folder: Path) -> None:
        self.files = real_files(folder)
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.slowest = 0.0

    def attempt(self, kind, call):
        """The call is done, or refused with a sentence; anything else fails the test."""
        self.counts[kind] += 1
        start = time.perf_counter()
        try:
            with at_most(SECONDS):
                return call()
        except sp.SurepickError as error:
            self.refused[kind] += 1
            check_sentence(str(error))
        finally:
            self.slowest = max(self.slowest, time.perf_counter() - start)
        return None

    # the kinds of inputs: (strategy, what is done with a draw)

    def values(self):
        return st.tuples(st.sampled_from(sorted(CALLS)), values()), lambda drawn: self.attempt(
            "values", lambda: CALLS[drawn[0]](drawn[1])
        )

    def texts(self):
        return st.tuples(st.sampled_from(sorted(READERS)), texts()), lambda drawn: self.attempt(
            "texts", lambda: READERS[drawn[0]](drawn[1])
        )

    def tables(self):
        def read(seed):
            rng = random.Random(seed)
            path = self.files.changed(rng.choice(self.files.tables), rng)
            self.attempt("tables", lambda: rng.choice(TABLE_READERS)(path))

        return st.integers(0, 2**32), read

    def certificates(self):
        def read(seed):
            path = self.files.changed_certificate(random.Random(seed))
            found = self.attempt("certificates", lambda: sp.verify_certificate(path))
            for line in found.lines if found else ():
                assert line.words.isprintable()

        return st.integers(0, 2**32), read

    def databases(self):
        def read(seed):
            rng = random.Random(seed)
            url = f"sqlite:///{self.files.changed_database(rng)}"
            self.attempt("databases", lambda: rng.choice(DATABASE_READERS)(url))

        return st.integers(0, 2**32), read

    def results(self):
        def read(seed):
            rng = random.Random(seed)
            for path in self.files.results:
                (self.files.folder / "changed" / path.name).write_bytes(path.read_bytes())
            path = self.files.changed(rng.choice(self.files.results), rng)
            self.attempt("results", lambda: read_results(path.with_name("bench.parquet")))

        return st.integers(0, 2**32), read

    def command_lines(self):
        def say(drawn):
            line = spelled(self.files, *drawn)
            ended = self.attempt("command lines", lambda: run(line))
            if ended is None:
                pytest.fail(f"an error was not turned into words: {line}")
            check_ended(line, ended)

        return command_lines(), say

    def go(self, kind, number):
        """So many inputs of a kind, the same in every run."""
        strategy, check = getattr(self, kind.replace(" ", "_"))()

        @settings(
            max_examples=number,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(strategy)
        def draws(drawn):
            with quiet(self.files.folder / "changed"):
                check(drawn)

        draws()


@contextmanager
def quiet(folder):
    """In a folder of its own, so that a file of an odd name lies there; our own warnings are for people."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        os.chdir(here)


def check_ended(line, ended):
    """A known exit code; one sentence where it is an error; nothing that a terminal would obey."""
    assert ended.code in (0, 1, 2, 3), line
    for text in (ended.out, ended.err):
        assert "Traceback" not in text, line
        assert all(one.isprintable() for one in text.replace("\n", "")), line
    said = [part for part in ended.err.splitlines() if part.startswith("error: ")]
    if ended.code in (1, 2):
        assert len(said) == 1 or "Usage: " in ended.err, (line, ended.err)
    for sentence in said:
        check_sentence(sentence.removeprefix("error: "))


def study():
    found = sp.Study(ARMS, sp.make_policy("certified-independent", ARMS, **PROMISE))
    found.ask()
    return found


def make(name="certified-independent", **changes):
    return sp.make_policy(name, ARMS, **(PROMISE | changes))


def bare(name, **changes):
    """A policy that uses no features, with odd settings, and what it asks first."""
    return sp.Study(ARMS, make(name, **changes)).ask()


def best(arms, measure, **changes):
    given = {"epsilon": 0.4, "noise": "subgaussian:0.1", "max_pulls": 50, "progress": False} | changes
    return sp.find_best(arms, measure, **given)


def policy(**changes):
    """A policy with odd settings, and what it asks first."""
    settings = {"name": "certified-linear", "arms": ARMS, "norm_bound": 1.0} | PROMISE | changes
    return sp.Study(settings["arms"], sp.make_policy(**settings)).ask()


CALLS = {
    "Arms ids": lambda odd: sp.Arms(ids=odd),
    "Arms one id": lambda odd: sp.Arms(ids=[odd, "b"]),
    "Arms features": sp.Arms,
    "Arms one feature": lambda odd: sp.Arms([[odd, 1.0]]),
    "Arms columns": lambda odd: sp.Arms([[1.0]], columns=odd),
    "tell rewards": lambda odd: study().tell(["a"], odd),
    "tell one reward": lambda odd: study().tell(["a"], [odd]),
    "tell ids": lambda odd: study().tell(odd, [0.5]),
    "tell one id": lambda odd: study().tell([odd], [0.5]),
    "tell keys": lambda odd: study().tell(["a"], [0.5], odd),
    "tell one key": lambda odd: study().tell(["a"], [0.5], [odd]),
    "tell worker": lambda odd: study().tell(["a"], [0.5], worker=odd),
    "tell plan": lambda odd: study().tell(["a"], [0.5], plan=odd),
    "tell failed": lambda odd: study().tell(["a"], [0.5], failed=odd),
    "tell one failed": lambda odd: study().tell(["a"], [0.5], failed=[odd]),
    "tell a failed key": lambda odd: study().tell(["a"], [0.5], failed=[("a", odd)]),
    "totals pulls": lambda odd: study().tell_totals(["a"], [odd], [0.5]),
    "totals sums": lambda odd: study().tell_totals(["a"], [1], [odd]),
    "totals squares": lambda odd: study().tell_totals(["a"], [1], [0.5], [odd]),
    "sums": lambda odd: study().tell_totals(study().ids, odd, odd, odd),
    "prior": lambda odd: study().tell_prior(["a"], [odd]),
    "prior ids": lambda odd: study().tell_prior(odd, [0.5]),
    "fail ids": lambda odd: study().fail(odd),
    "fail keys": lambda odd: study().fail(["a"], odd),
    "fail worker": lambda odd: study().fail(["a"], worker=odd),
    "abandon reason": lambda odd: study().abandon(odd),
    "abandon ids": lambda odd: study().abandon("it broke", odd),
    "close": lambda odd: study().close(odd),
    "release": lambda odd: study().release(odd),
    "ask pulls": lambda odd: study().lease(odd),
    "ask worker": lambda odd: study().lease(worker=odd),
    "ask lease": lambda odd: study().lease(duration=odd),
    "policy name": lambda odd: policy(name=odd),
    "policy arms": lambda odd: policy(arms=odd),
    "policy epsilon": lambda odd: policy(epsilon=odd),
    "policy delta": lambda odd: policy(delta=odd),
    "policy noise": lambda odd: policy(noise=odd),
    "policy norm": lambda odd: policy(norm_bound=odd),
    "policy kernel": lambda odd: policy(name="certified-kernel", kernel=odd),
    "policy expansion": lambda odd: policy(name="certified-kernel", expansion=odd),
    "policy max_dim": lambda odd: policy(name="certified-kernel", expansion="hermite:1", max_dim=odd),
    "policy gamma": lambda odd: policy(name="certified-kernel", gamma=odd),
    "policy batch": lambda odd: policy(largest_batch=odd),
    "policy dim": lambda odd: policy(dim=odd),
    "policy slack": lambda odd: policy(name="linear-embedding", slack=odd),
    "policy schedule": lambda odd: policy(name="linear-embedding", schedule=odd),
    "noise scale": sp.SubGaussian,
    "noise bound": lambda odd: sp.Bounded(0.0, odd),
    "noise text": sp.parse_noise,
    "duration": parse_duration,
    "verify": lambda odd: sp.verify_certificate({"format": odd, "rounds": odd, "sha256": odd}),
    "verify a source": sp.verify_certificate,
    "verify the arms": lambda odd: sp.verify_certificate({"format": 1, "rounds": [], "sha256": ""}, arms=odd),
    "verify the key": lambda odd: sp.verify_certificate({"format": 1, "rounds": [], "sha256": ""}, public_key=odd),
    "verify the code": lambda odd: sp.verify_certificate({"format": 1, "rounds": [], "sha256": ""}, registered=odd),
    "write a certificate": lambda odd: sp.write_certificate(odd, "certificate.json"),
    "write a certificate to": lambda odd: sp.write_certificate(study(), odd),
    "write a certificate named": lambda odd: sp.write_certificate(study(), "certificate.json", name=odd),
    "write a report": lambda odd: sp.write_report(odd, "report.html"),
    "write a report to": lambda odd: sp.write_report(study(), odd, forecast_up_to=0),
    "sign": lambda odd: sp.sign_certificate({}, odd),
    "Arms costs": lambda odd: sp.Arms(ids=["a", "b"], costs=odd),
    "Arms one cost": lambda odd: sp.Arms(ids=["a", "b"], costs=[odd, 1.0]),
    "Arms segments": lambda odd: sp.Arms(ids=["a", "b"], segments=odd),
    "Arms features and ids": lambda odd: sp.Arms(odd, odd),
    "Items": sp.Items,
    "one item": lambda odd: sp.Items([odd, "b"]),
    "read_arms": sp.read_arms,
    "read_arms id": lambda odd: sp.read_arms(FRAME, odd),
    "read_arms features": lambda odd: sp.read_arms(FRAME, "id", odd),
    "read_arms cost": lambda odd: sp.read_arms(FRAME, "id", cost=odd),
    "read_arms blocks": lambda odd: sp.read_arms(odd, blocks=True),
    "find_best": lambda odd: best(odd, lambda ids: np.zeros(len(ids))),
    "find_best one": lambda odd: best([odd, "b"], lambda ids: np.zeros(len(ids))),
    "find_best measure": lambda odd: best(["a", "b"], odd),
    "find_best rewards": lambda odd: best(["a", "b"], lambda ids: odd),
    "find_best one reward": lambda odd: best(["a", "b"], lambda ids: [odd] * len(ids)),
    "find_best epsilon": lambda odd: best(["a", "b"], lambda ids: np.zeros(len(ids)), epsilon=odd),
    "find_best noise": lambda odd: best(["a", "b"], lambda ids: np.zeros(len(ids)), noise=odd),
    "find_best policy": lambda odd: best(["a", "b"], lambda ids: np.zeros(len(ids)), policy=odd),
    "find_best max_cost": lambda odd: best(["a", "b"], lambda ids: np.zeros(len(ids)), max_cost=odd),
    "find_best items": lambda odd: best(["a", "b"], lambda ids, items: np.zeros(len(ids)), items=odd),
    "policy question": lambda odd: policy(name="certified-independent", question=odd, norm_bound=None),
    "policy constraints": lambda odd: bare("certified-independent", constraints=odd),
    "policy later": lambda odd: bare("certified-independent", later=odd),
    "policy blocks": lambda odd: bare("certified-independent", blocks=odd),
    "policy streams": lambda odd: bare("certified-independent", streams=odd),
    "policy evidence": lambda odd: bare("certified-independent", evidence=odd),
    "policy items": lambda odd: bare("certified-items", items=odd),
    "policy gap": lambda odd: bare("certified-independent", gap_bound=odd),
    "policy control": lambda odd: bare("certified-independent", question="above", control=odd),
    "policy share": lambda odd: bare("certified-independent", question="one-of", share=odd),
    "round": lambda odd: sp.round_design(odd, 10),
    "round total": lambda odd: sp.round_design([0.5, 0.5], odd),
    "solve": sp.solve_design,
    "solve active": lambda odd: sp.solve_design([[1.0, 0.0], [0.0, 1.0]], active=odd),
    "solve tolerance": lambda odd: sp.solve_design([[1.0, 0.0], [0.0, 1.0]], tolerance=odd),
    "allocate": lambda odd: sp.allocate(sp.solve_design([[1.0, 0.0], [0.0, 1.0]]), [[1.0, 0.0], [0.0, 1.0]], odd),
    "pilot": lambda odd: sp.pilot_noise(odd, odd, odd, failure=0.01),
    "pilot failure": lambda odd: sp.pilot_noise([3], [1.0], [2.0], failure=odd),
    "Normal": sp.Normal,
    "noise low": lambda odd: sp.Bounded(odd, 1.0),
    "summary": sp.paper_settings,
    "create": lambda odd: sp.create_study("sqlite://", odd, ARMS, make()),
    "create arms": lambda odd: sp.create_study("sqlite://", "s", odd, make()),
    "open": lambda odd: sp.open_study(odd, "s"),
    "list": sp.list_studies,
    "simulate": lambda odd: sp.simulate(odd, odd),
    "forecast": lambda odd: sp.forecast(make(), odd, max_pulls=200, rehearsals=2),
    "recorded": lambda odd: study().recorded(["a"], odd),
    "withdraw": lambda odd: study().withdraw(odd, "independent-of-value"),
    "withdraw reason": lambda odd: study().withdraw(["a"], odd),
    "run measure": lambda odd: study().run(odd, max_pulls=10, progress=False),
    "run limit": lambda odd: study().run(lambda ids: np.zeros(len(ids)), max_pulls=odd, progress=False),
    "blocks": lambda odd: study().tell(["a"], [0.5], blocks=odd),
    "items": lambda odd: study().tell(["a"], [0.5], items=odd),
    "url": lambda odd: resume_stored_study(odd, "s"),
    "study of": lambda odd: sp.Study(odd, odd),
}
READERS = {
    "noise": sp.parse_noise,
    "duration": parse_duration,
    "kernel": lambda text: policy(name="certified-kernel", kernel=text),
    "expansion": lambda text: policy(name="certified-kernel", expansion=text),
    "policy": lambda text: policy(name=text),
    "policy noise": lambda text: policy(noise=text),
    "certificate": sp.verify_certificate,
    "table": read_table,
    "database": lambda text: resume_stored_study(text, "s"),
}
TABLE_READERS = (
    read_table,
    read_arms,
    lambda path: read_arms(path, "id", standardize=True),
    lambda path: grouped_arms(read_table(path), "id", exclude=("y",)),
)


def _work(url):
    found = resume_stored_study(url, "s")
    str(found.progress())
    found.lease(1, worker="lab-2")
    found.tell(["b"], [0.2])
    found.close("enough")


DATABASE_READERS = (
    list_stored_studies,
    _work,
    lambda url: str(open_stored_study(url, "s").certificate()),
    lambda url: str(resume_stored_study(url, "s").progress()),
)


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory):
    return Fuzz(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("kind", SHARES)
def test_only_sentences_come_out(fuzz, kind):
    fuzz.go(kind, FAST * SHARES[kind] // 100)
    assert fuzz.counts[kind] >= 0.9 * FAST * SHARES[kind] // 100
    print(f"\n{fuzz.counts[kind]:,} {kind}, {fuzz.refused[kind]:,} refused")


def offered(fuzz, odd):
    """Every function of Python is given a value, alone and in a list."""
    for name in sorted(CALLS):
        for value in (odd, [odd, "b"]):
            with quiet(fuzz.files.folder / "changed"):
                fuzz.attempt("values", lambda call=CALLS[name], value=value: call(value))


@pytest.mark.parametrize("name", ["Raises", "Quarrels"])
def test_a_class_that_fails_when_it_is_looked_at_is_refused_by_every_function(fuzz, name):
    offered(fuzz, next(one for one in PYTHON if type(one).__name__ == name))


@pytest.mark.slow
def test_every_odd_value_is_offered_to_every_function_of_python(tmp_path):
    fuzz = Fuzz(tmp_path)
    for odd in PYTHON:
        if not hasattr(odd, "__next__"):  # of which the first caller would take all
            offered(fuzz, odd)
    print(f"\n{fuzz.counts.total():,} inputs, {fuzz.refused.total():,} refused, the slowest took {fuzz.slowest:.1f} s")
    assert fuzz.counts.total() >= MANY


@pytest.mark.slow
def test_only_sentences_come_out_of_20_000_inputs_of_python(tmp_path):
    fuzz = Fuzz(tmp_path)
    fuzz.go("values", MANY)
    print(f"\n{fuzz.counts.total():,} inputs, {fuzz.refused.total():,} refused, the slowest took {fuzz.slowest:.1f} s")
    assert fuzz.counts.total() >= 0.98 * MANY


@pytest.mark.slow
def test_only_sentences_come_out_of_20_000_inputs(tmp_path):
    fuzz = Fuzz(tmp_path)
    for kind, share in SHARES.items():
        fuzz.go(kind, MANY * share // 100)
        print(f"\n{fuzz.counts[kind]:,} {kind}, {fuzz.refused[kind]:,} refused", end="")
    print(f"\n{fuzz.counts.total():,} inputs, the slowest took {fuzz.slowest:.1f} s")
    assert fuzz.counts.total() >= 0.98 * MANY


def test_the_files_that_are_changed_are_sound(fuzz):
    files = fuzz.files
    for path in files.tables:
        if path.name not in ("arms.tsv", "told.csv"):  # tabs are not read by every version; one told a "failed"
            assert read_arms(path, "id", "x,z").ids == ("älpha", "b", "c,c")
    assert read_table(files.tables[-1]).num_rows == 4
    assert len(read_results(files.results[0]).replicates) == 3
    assert sp.verify_certificate(files.certificate).holds
    assert open_stored_study(f"sqlite:///{files.database}", "s").trace


# saboteurs: what the tests above must notice


def planted(monkeypatch, call):
    """Something in place of every reader of tables."""
    monkeypatch.setitem(globals(), "TABLE_READERS", (call,))


def test_a_reader_that_raises_something_else_is_noticed(fuzz, monkeypatch):
    planted(monkeypatch, lambda path: int("x"))
    with pytest.raises(ValueError, match="invalid literal"):
        fuzz.go("tables", 20)


def test_a_message_of_several_lines_or_of_many_characters_is_noticed(fuzz, monkeypatch):
    class Loud(sp.InvalidInput):
        def __str__(self):
            return self.said

    for said in ("one line\nand another", "x" * 501, "bell\x07 in a sentence", ""):
        Loud.said = said

        def refuse(path):
            raise Loud

        planted(monkeypatch, refuse)
        with pytest.raises(AssertionError):
            fuzz.go("tables", 20)


def test_a_function_of_python_that_raises_something_else_is_noticed(fuzz, monkeypatch):
    monkeypatch.setitem(globals(), "CALLS", {"len": len})
    with pytest.raises(TypeError):
        fuzz.go("values", 20)
    with pytest.raises(RuntimeError):
        offered(fuzz, next(one for one in PYTHON if type(one).__name__ == "Raises"))


@pytest.mark.parametrize("reader", [lambda path: time.sleep(600), lambda path: all(one == 0 for one in iter(int, 1))])
def test_a_reader_that_never_ends_is_noticed(fuzz, monkeypatch, reader):
    monkeypatch.setitem(globals(), "SECONDS", 0.05)
    planted(monkeypatch, reader)
    with pytest.raises(TooLong):
        fuzz.go("tables", 1)


def test_a_command_that_ends_oddly_is_noticed():
    for ended in (
        Ended(5, "", "error: something is wrong.\n"),
        Ended(2, "", ""),
        Ended(2, "", "error: one thing is wrong.\nerror: and another is.\n"),
        Ended(1, "", "Traceback (most recent call last):\nerror: something is wrong.\n"),
        Ended(0, f"study {CONTROLS}\n", ""),
    ):
        with pytest.raises(AssertionError):
            check_ended(["ask"], ended)
    check_ended(["ask"], Ended(2, "", "error: something is wrong here.\n"))
