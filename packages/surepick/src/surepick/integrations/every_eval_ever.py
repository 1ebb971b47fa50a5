"""every-eval-ever: files of instances, UUID_samples.jsonl, a JSON object a line.

Of each line are read: model_id, evaluation_name, sample_id, evaluation.score (or, where there is none, is_correct), and
sample_hash and evaluation_result_id where they are there. Numbers may be texts, as the collection stores them. The id
of an item is "NAME:SAMPLE_ID", with the first 16 digits of sample_hash behind it if all lines of a file have one, so
that a sample of other content is another item.
"""

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from surepick.core.files import check_regular, is_file, is_folder
from surepick.errors import InvalidInput
from surepick.integrations import answers
from surepick.text import quoted

PROGRAM = "every-eval-ever"
FIELDS = ("model_id", "evaluation_name", "sample_id")
WORDS = {"true": 1.0, "false": 0.0}
BEGINNING = 1_000_000  # bytes in which the first line ends
Row = tuple[str, dict[str, Any], str]  # "FILE, line 3", the instance, the item


def is_instances(path: Path) -> bool:
    """Whether a file has an instance in its first line."""
    if path.suffix != ".jsonl" or not is_file(path):
        return False
    try:
        with path.open("rb") as file:
            first = json.loads(file.readline(BEGINNING).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and all(name in first for name in (*FIELDS, "evaluation"))


def is_summary(data: object) -> bool:
    """Whether JSON data is a file of results without instances."""
    return isinstance(data, dict) and "model_info" in data and "evaluation_results" in data


def instance_files(path: Path) -> list[Path]:
    """The files of instances at a path: the file itself, or all below a folder."""
    return [one for one in sorted(path.rglob("*.jsonl")) if is_instances(one)] if is_folder(path) else [path]


def items_of(path: Path) -> list[str]:
    """The ids of the samples in files of instances, each once."""
    return list(dict.fromkeys(item for _, _, item in _rows(path)))


def read_answers(path: Path, expected: answers.Expected) -> answers.FileAnswers:
    """The scores in files of instances at a path; as `read_together`."""
    return read_together([path], expected)


def read_together(paths: Sequence[Path], expected: answers.Expected) -> answers.FileAnswers:
    """The scores in files of instances at all of these paths.

    `expected.metric` is the evaluation_result_id that counts, if there are some. A score counts as it is written, also
    where the line has an `error`.
    """
    known, found = set(expected.items or ()), []
    results: dict[tuple[str, str], str] = {}
    for where, instance, item in itertools.chain.from_iterable(map(_rows, paths)):
        result = str(instance.get("evaluation_result_id") or "")
        if expected.metric is not None and result != expected.metric:
            continue
        if expected.items is not None and item not in known:
            raise InvalidInput(f"{where}: {quoted(item)} is no item of this study. Nothing of this call was stored.")
        name = expected.known_candidate([str(instance["model_id"])], where)
        if results.setdefault((name, item), result) != result:
            raise InvalidInput(
                f"{where}: {quoted(name)} has several results for {quoted(item)}, {quoted(results[name, item])} and "
                f"{quoted(result)}. Say which one counts with --metric EVALUATION_RESULT_ID."
            )
        found.append((name, item, expected.score(_score(instance["evaluation"]), "evaluation.score", where)))
    if not found:
        raise InvalidInput(
            f"{', '.join(map(str, paths))}: no line has the evaluation_result_id {quoted(expected.metric)}."
        )
    return answers.FileAnswers.of(found)


def _rows(path: Path) -> Iterator[Row]:
    """Each instance of the files."""
    for file in instance_files(path):
        check_regular(file)
        lines = [
            (f"{file}, line {number}", answers.read_json_file(text, f"{file}, line {number}"))
            for number, text in enumerate(answers.answers_text(file).split("\n"), start=1)
            if text.strip()
        ]
        for where, instance in lines:
            for name in FIELDS:
                answers.field_of(instance, name, (str, int), where, PROGRAM)
            answers.field_of(instance, "evaluation", dict, where, PROGRAM)
        hashed = all(isinstance(instance.get("sample_hash"), str) for _, instance in lines)
        for where, instance in lines:
            item = f"{instance['evaluation_name']}:{instance['sample_id']}"
            yield where, instance, f"{item}:{instance['sample_hash'][: answers.DIGITS]}" if hashed else item


def _score(evaluation: dict[str, Any]) -> object:
    """The score, or whether it is right; a number that is written as a text, too."""
    value = evaluation.get("score")
    value = evaluation.get("is_correct") if value is None else value
    if isinstance(value, str):
        word = value.strip().lower()
        try:
            value = WORDS[word] if word in WORDS else float(word)
        except ValueError:
            return value
        return None if math.isnan(value) else value
    return value
