"""promptfoo: files of tests out, the results of `promptfoo eval -o FILE.json` in.

The id of an item is the JSON of the variables of its test, with sorted names. So it says what to ask, and a test that
was changed is another item, which is refused. Assertions belong into `defaultTest`, since a file of tests has none.
"""

import json
from pathlib import Path
from typing import Any

from surepick.errors import InvalidInput
from surepick.integrations import answers
from surepick.studies.ledger import Batch
from surepick.text import quoted

PROGRAM = "promptfoo"
ERROR = 2  # promptfoo's number of a test that failed by an error, and not by an assertion
Row = tuple[str, dict[str, Any], str]  # "FILE, result 3", the result, the item


def is_results(data: object) -> bool:
    """Whether JSON data is what promptfoo wrote."""
    inner = data.get("results") if isinstance(data, dict) else None
    return isinstance(inner, dict) and isinstance(inner.get("results"), list)


def items_of(path: Path) -> list[str]:
    """The ids of the tests in a file of results, each once."""
    return list(dict.fromkeys(item for _, _, item in _rows(path)))


def read_answers(path: Path, expected: answers.Expected) -> answers.FileAnswers:
    """The scores in a file of results: `score`, or the named one; results that failed by an error have none."""
    known, found = set(expected.items or ()), []
    prompts: dict[str, int] = {}
    numbers: dict[int, int] = {}
    rows = _rows(path)
    if expected.items is None:
        rows = [(where, {"failureReason": 0, **_with_prompt(result)}, item) for where, result, item in rows]
    several = expected.items is None and len({result["promptIdx"] for _, result, _ in rows}) > 1
    for where, result, item in rows:
        if expected.items is not None and item not in known:
            raise InvalidInput(
                f"{where}: a test with the variables {quoted(item)} is no item of this study. Either the tests were "
                "changed, which would void the certificate, or the study is of others. Nothing of this call was stored."
            )
        provider = answers.field_of(result, "provider", dict, where, PROGRAM) if expected.candidate is None else {}
        names = [str(provider[name]) for name in ("label", "id") if provider.get(name)]
        name = expected.known_candidate(names, where)
        prompt = answers.field_of(result, "promptIdx", int, where, PROGRAM)
        if several:
            name = f"{name}, prompt {numbers.setdefault(prompt, len(numbers)) + 1}"
        if prompts.setdefault(name, prompt) != prompt:
            raise InvalidInput(
                f"{where}: {quoted(name)} answered several prompts, and an item is answered once; evaluate one prompt, "
                "or make each pair of provider and prompt a provider with a label."
            )
        failed = answers.field_of(result, "failureReason", int, where, PROGRAM) == ERROR
        found.append((name, item, None if failed else _score(result, expected, where)))
    return answers.FileAnswers.of(found)


def _with_prompt(result: dict[str, Any]) -> dict[str, Any]:
    """A result as files of version 3 have it, of one of version 2, which knows a prompt by its text alone."""
    prompt, provider = result.get("prompt"), result.get("provider")
    label = prompt.get("label", prompt.get("raw")) if isinstance(prompt, dict) else prompt
    named = {"id": provider} if isinstance(provider, str) else provider
    return {"promptIdx": int(answers.sha(label), 16), **result, "provider": named}


def write_tests(batch: Batch, folder: Path) -> list[Path]:
    """Write a file for `promptfoo eval -t` for each candidate of a batch."""
    wanted: dict[str, list[dict[str, Any]]] = {}
    for name, item in zip(batch.pulls(), batch.item_ids, strict=True):
        wanted.setdefault(name, []).append({"vars": variables_of(item)})
    texts = {name: json.dumps(tests, ensure_ascii=False, indent=1) for name, tests in wanted.items()}
    return answers.write_each(folder, texts)


def variables_of(item: str) -> dict[str, Any]:
    """The variables of a test."""
    try:
        found = json.loads(item)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(
            f"the item {quoted(item)} is no test of {PROGRAM} (its variables as JSON); create the study with --items "
            "and a file of its results, or ask and tell tables."
        )
    return found


def _rows(path: Path) -> list[Row]:
    """Each result of a file."""
    data = answers.read_json_file(answers.answers_text(path), str(path))
    if not is_results(data):
        raise InvalidInput(
            f"{path} has no list results.results, as {PROGRAM} writes it by promptfoo eval -o FILE.json."
        )
    rows = []
    for number, result in enumerate(data["results"]["results"], start=1):
        where = f"{path}, result {number}"
        test = result if "testCase" not in result else answers.field_of(result, "testCase", dict, where, PROGRAM)
        variables = answers.field_of(test, "vars", dict, f"{where}, testCase", PROGRAM)
        rows.append((where, result, json.dumps(variables, sort_keys=True, ensure_ascii=False)))
    if not rows:
        raise InvalidInput(f"{path} has no results.")
    return rows


def _score(result: dict[str, Any], expected: answers.Expected, where: str) -> float:
    """The score that counts."""
    metric = expected.metric
    if metric is None:
        return expected.score(result.get("score"), "score", where)
    named = answers.field_of(result, "namedScores", dict, where, PROGRAM)
    return expected.score(named[answers.only_name(metric, list(named), "--metric", "metrics", where)], metric, where)
