"""lm-evaluation-harness: files for its option --samples out, its samples_TASK_DATE.jsonl in.

The id of an item is "TASK:DOC_ID:DOC_HASH", with the first 16 digits of the harness's SHA-256 of the document. So a
document that is another one now is refused, and not counted as an answer to the old one.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surepick.core.files import check_regular, is_folder
from surepick.errors import InvalidInput
from surepick.integrations import answers
from surepick.studies.ledger import Batch
from surepick.text import quoted

PROGRAM = "lm-evaluation-harness"
FILE = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?\.jsonl")
ITEM = re.compile(rf"(.+):(\d+):([0-9a-f]{{{answers.DIGITS}}})", re.DOTALL)
Row = tuple[str, str, str, dict[str, Any]]  # "FILE, line 3", the folder's name, the item, the sample


def sample_files(path: Path) -> list[Path]:
    """The files of samples at a path: the file itself, or all below a folder."""
    if not is_folder(path):
        return [path]
    found = sorted(one for one in path.rglob("samples_*.jsonl") if FILE.fullmatch(one.name))
    if not found:
        raise InvalidInput(
            f"{path} has no file samples_TASK_DATE.jsonl in it or below; {PROGRAM} writes them with --log_samples."
        )
    return found


def items_of(path: Path) -> list[str]:
    """The ids of the documents in files of samples, each once; `--model dummy` makes such files without a model."""
    found: dict[tuple[str, int], str] = {}
    for where, _, item, _ in _rows(path):
        task, number, _ = parts_of(item)
        if found.setdefault((task, number), item) != item:
            raise InvalidInput(
                f"{where}: document {number} of {quoted(task)} is another one than in an earlier line: their doc_hash "
                "differs. The files are of two versions of the task; give those of one."
            )
    return [found[key] for key in sorted(found)]


def read_answers(path: Path, expected: answers.Expected) -> answers.FileAnswers:
    """The scores in files of samples, of `expected.candidate`, or of the one by which the harness named the folder."""
    known = {(task, number): item for item in expected.items or () for task, number, _ in [parts_of(item)]}
    ids = set(known.values())
    rows = list(_rows(path))
    filters = list(dict.fromkeys(str(sample.get("filter", "none")) for _, _, _, sample in rows))
    chosen = expected.name_of(expected.filter, filters, "--filter", "filters", str(path))
    found = []
    for where, folder, item, sample in rows:
        if str(sample.get("filter", "none")) != chosen:
            continue
        if expected.items is not None and item not in ids:
            _refuse_document(where, item, known)
        metrics = _metrics(sample, where, expected)
        metric = expected.name_of(expected.metric, [str(name) for name in metrics], "--metric", "metrics", where)
        named = [name for name in expected.candidates or () if answers.sanitized(name) == answers.sanitized(folder)]
        candidate = expected.known_candidate(named if len(named) == 1 else [folder], where)
        found.append((candidate, item, expected.score(sample.get(metric), metric, where)))
    return answers.FileAnswers.of(found)


def _metrics(sample: dict[str, Any], where: str, expected: answers.Expected) -> list[Any]:
    """The names of the scores of a sample; older files do not list them, and are read where no study depends on it."""
    if expected.items is None and "metrics" not in sample:
        return [name for name, value in sample.items() if name != "doc_id" and isinstance(value, int | float)]
    found: list[Any] = answers.field_of(sample, "metrics", list, where, PROGRAM)
    return found


def write_samples(batch: Batch, folder: Path) -> list[Path]:
    """Write a file for --samples for each candidate of a batch, numbers ascending, as the harness names samples."""
    wanted: dict[str, dict[str, list[int]]] = {}
    for name, item in zip(batch.pulls(), batch.item_ids, strict=True):
        task, number, _ = parts_of(item)
        wanted.setdefault(name, {}).setdefault(task, []).append(number)
    plans = {name: {task: sorted(numbers) for task, numbers in sorted(tasks.items())} for name, tasks in wanted.items()}
    return answers.write_each(folder, {name: json.dumps(plan) for name, plan in plans.items()})


def tasks_of(batch: Batch) -> list[str]:
    """The tasks of which a batch asks documents."""
    return sorted({parts_of(item)[0] for item in batch.item_ids})


def parts_of(item: str) -> tuple[str, int, str]:
    """(task, number of the document, digits of its hash) of an item."""
    found = ITEM.fullmatch(item)
    if found is None:
        raise InvalidInput(
            f"the item {quoted(item)} is none of {PROGRAM} (TASK:DOC_ID:DOC_HASH); create the study with --items and "
            "its samples_*.jsonl, or ask and tell tables."
        )
    return found[1], int(found[2]), found[3]


def _rows(path: Path) -> Iterator[Row]:
    """Each sample of the files."""
    for file in sample_files(path):
        check_regular(file)
        name = FILE.fullmatch(file.name)
        if name is None:
            raise InvalidInput(
                f"{file} is not named samples_TASK_DATE.jsonl, so we cannot know its task; give the file under the "
                f"name that {PROGRAM} gave it."
            )
        for line, text in enumerate(answers.answers_text(file).split("\n"), start=1):
            if text.strip():
                where = f"{file}, line {line}"
                sample = answers.read_json_file(text, where)
                number = answers.field_of(sample, "doc_id", int, where, PROGRAM)
                digest = answers.field_of(sample, "doc_hash", str, where, PROGRAM)
                item = f"{name[1]}:{number}:{digest[: answers.DIGITS]}"
                if ITEM.fullmatch(item) is None:
                    raise InvalidInput(f"{where}: doc_id {number} or doc_hash {quoted(digest)} is none of {PROGRAM}.")
                yield where, file.resolve().parent.name, item, sample


def _refuse_document(where: str, item: str, known: dict[tuple[str, int], str]) -> None:
    """Say why a document is no item of the study."""
    task, number, digest = parts_of(item)
    if (task, number) not in known:
        raise InvalidInput(
            f"{where}: document {number} of {quoted(task)} is no item of this study. Nothing of this call was stored."
        )
    raise InvalidInput(
        f"{where}: document {number} of {quoted(task)} has the doc_hash {digest}, and in this study "
        f"{parts_of(known[task, number])[2]}. The set was changed, or --samples was not ascending. Answers to other "
        "documents would void the certificate: run the version of the task with which the study was created. Nothing "
        "of this call was stored."
    )
