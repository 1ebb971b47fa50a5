"""Models for lm-evaluation-harness without weights, and a task of sums that this file invents; run as a program it
writes the samples of a model: python harness_models.py FOLDER MODEL OUT [SAMPLES.json]"""

import hashlib
import json
import re
import sys
from pathlib import Path

SUMS = [(a, 3 * a % 7) for a in range(30)]
SKILL = {"lab/large": 0.9, "lab/medium": 0.7, "lab/small": 0.3}
TASK = """task: {task}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"]}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
filter_list:
  - {{name: plain, filter: [{{function: take_first}}]}}
  - {{name: digits, filter: [{{function: regex, regex_pattern: "(-?[0-9]+)"}}, {{function: take_first}}]}}
"""


def answer(model: str, question: str) -> str:
    """What a model says: right for its share of the questions, which a hash decides."""
    first, second = map(int, re.findall(r"\d+", question))
    draw = int(hashlib.sha256(f"{model} {question}".encode()).hexdigest()[:8], 16) / 2**32
    return str(first + second) if draw < SKILL[model] else f"It is {first + second + 1}."


def write_task(folder: Path, *, task: str = "sums", changed: bool = False) -> None:
    """The data set and the task as the harness reads them; `changed` adds 1 to a number of every fifth question."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = [(a + (changed and a % 5 == 0), b) for a, b in SUMS]
    rows = [{"question": f"What is {a} plus {b}?", "answer": str(a + b)} for a, b in pairs]
    (folder / f"{task}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (folder / f"{task}.yaml").write_text(TASK.format(task=task, data=folder / f"{task}.jsonl"), encoding="utf-8")


def evaluate(folder: Path, model: str, out: Path, samples: dict[str, list[int]] | None) -> None:
    """Run the harness on the tasks of a folder, and have it write its files."""
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Skilled(LM):
        """A model that answers by `answer`."""

        def generate_until(self, requests, disable_tqdm=False):
            return [answer(model, request.arguments[0]) for request in requests]

        def loglikelihood(self, requests, disable_tqdm=False):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    tracker = EvaluationTracker(output_path=str(out))
    tracker.general_config_tracker.log_experiment_args(
        model_source="skilled",
        model_args=f"pretrained={model}",
        system_instruction="",
        chat_template="",
        fewshot_as_multiturn=False,
    )
    tasks = list(samples) if samples else ["sums"]
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    found = simple_evaluate(
        Skilled(), tasks=tasks, samples=samples, task_manager=manager, log_samples=True, bootstrap_iters=0
    )
    rows = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=rows)
    for task in rows:
        tracker.save_results_samples(task_name=task, samples=rows[task])


if __name__ == "__main__":
    place, name, target, *plan = sys.argv[1:]
    asked = json.loads(Path(plan[0]).read_text(encoding="utf-8")) if plan else None
    write_task(Path(place), changed="changed" in place)
    evaluate(Path(place), name, Path(target), asked)
