"""Six mock models that inspect_ai runs on questions that this file invents: python inspect_models.py FOLDER QUESTIONS

A study in FOLDER/lab.db is begun or gone on with; each call of a model is a line of FOLDER/calls.txt.
"""

import hashlib
import sys
import time
from pathlib import Path

SKILL = {f"mockllm/{name}": skill for name, skill in zip("abcdef", (0.9, 0.75, 0.7, 0.6, 0.45, 0.3), strict=True)}
MODELS = tuple(SKILL)


def is_right(model: str, question: int) -> bool:
    """Whether a model answers a question rightly: a hash decides."""
    return int(hashlib.sha256(f"{model} {question}".encode()).hexdigest()[:8], 16) / 2**32 < SKILL[model]


def question_of(text: str) -> int:
    return int(text.split()[3].rstrip("?"))


def task(questions: int, *, changed: bool = False):
    """The questions; `changed` has another right answer to the fourth."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import match

    samples = [
        Sample(input=f"What is twice {i}?", target=str(2 * i + (changed and i == 3)), id=f"q{i}")
        for i in range(questions)
    ]
    return Task(dataset=MemoryDataset(samples, name="twice"), scorer=match(), name="twice")


def models(folder: Path, *, failing: str = "", seconds: float = 0.0):
    """The models; `failing` raises an error at every call."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def speaker(name: str):
        def said(messages, tools, tool_choice, config):
            question = question_of(messages[-1].text)
            with (folder / "calls.txt").open("a", encoding="utf-8") as file:
                file.write(f"{name} {question}\n")
            if name == failing:
                raise ValueError("this model is broken")
            time.sleep(seconds)
            text = str(2 * question) if is_right(name, question) else "no idea"
            output = ModelOutput.from_content(name, text)
            output.usage = ModelUsage(
                input_tokens=1, output_tokens=1, total_tokens=2
            )  # else it is counted by a download
            return output

        return said

    return {name: get_model(name, custom_outputs=speaker(name)) for name in MODELS}


def study_in(folder: Path, questions: int):
    """The study in a folder, begun if it is absent."""
    import surepick as sp
    from surepick.integrations.inspect import items_of
    from surepick.studies.database import create_stored_study, list_stored_studies, resume_stored_study

    url = f"sqlite:///{folder / 'lab.db'}"
    if (folder / "lab.db").exists() and list_stored_studies(url):
        return resume_stored_study(url, "models")
    asked = {"epsilon": 0.05, "delta": 0.05, "noise": sp.Bernoulli(), "items": items_of(task(questions)), "seed": 3}
    policy = sp.make_policy("certified-items", sp.Arms(ids=MODELS), **asked)
    return create_stored_study(url, "models", policy)


def run(folder: Path, questions: int, **options) -> None:
    """Run inspect_ai until the study has stopped."""
    from inspect_ai import eval as evaluate

    from surepick.integrations.inspect import BestModel

    source = BestModel(study_in(folder, questions), lambda: task(questions), models=models(folder, **options))
    evaluate(source, model=None, log_dir=str(folder / "logs"), display="none", log_realtime=False, max_tasks=6)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
    print("the study has stopped")
