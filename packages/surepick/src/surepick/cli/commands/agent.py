"""Studies as tools of an agent, by the Model Context Protocol: create, ask, tell, status, certificate, analyze, verify.

A tool does what the command of its name does, and answers with the same JSON; an error is the same sentence. Of an open
round a tool tells how many results are in and who holds what is out, and never a value: whoever saw one could stop when
it suits. All studies are in one database, or on one server, whose address the agent is not told.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, cast

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from surepick.analysis import finished
from surepick.certificates.document import certificate_document, write_document
from surepick.certificates.verify import verify_certificate
from surepick.cli.commands.measure import plan_json
from surepick.cli.commands.studies import progress_json
from surepick.cli.output import picked
from surepick.core.arms import Arms
from surepick.errors import InvalidInput, SurepickError
from surepick.linalg.rows import one_thread
from surepick.noise import USUAL_NOISE, parse_noise
from surepick.policies.base import spec_of
from surepick.policies.options import fitting_policy
from surepick.policies.registry import make_policy
from surepick.studies.opening import create_study, list_studies, open_study, resume_study
from surepick.tables import read_arms

WORKER = "agent"
INSTRUCTIONS = (
    "surepick finds the best of many candidates from noisy measurements, and says when it is sure. create a study, "
    "then ask what to measure, measure exactly that, and tell every result with its key, whatever it is; repeat until "
    "stopped is true. Then certificate says which candidate is the best, within epsilon, and what that rests on. "
    "Results of an open round are told to nobody. For measurements that were made already: analyze."
)
READS, ADDS = ToolAnnotations(read_only_hint=True), ToolAnnotations(destructive_hint=False)
SUMMARY = (
    *("best_arm", "lists", "verdict", "promise", "reason", "certified_gap", "epsilon", "delta", "pulls", "cost"),
    *("assumptions", "checks", "registration", "sha256"),
)
Tool = Callable[..., dict[str, Any]]
Study = Annotated[str, Field(description="The name of the study.")]


class Result(BaseModel):
    """One measurement that was made."""

    id: str = Field(description="The candidate.")
    reward: float | None = Field(description="What was measured; null where the measurement failed: it is asked again.")
    key: str | None = Field(None, description="The key that ask gave this measurement, so that it counts once.")


def agent_server(url: str) -> MCPServer:
    """The server of the studies at an address, of a database or of a server; `run()` speaks on standard input."""
    server = MCPServer("surepick", instructions=INSTRUCTIONS)
    for tool, hint in TOOLS.items():
        server.tool(annotations=hint)(_told(url, tool))
    return server


def _told(url: str, tool: Tool) -> Tool:
    """A tool that knows the address, which is no parameter of it any more; its errors are told as they are."""
    signature = inspect.signature(tool)
    knows = {"url": url} if "url" in signature.parameters else {}

    def told(**given: Any) -> dict[str, Any]:
        try:
            with one_thread():
                return tool(**knows, **given)
        except SurepickError as error:
            raise ToolError(str(error)) from error

    named: Any = functools.wraps(tool)(told)
    parameters = [one for name, one in signature.parameters.items() if name not in knows]
    named.__signature__ = signature.replace(parameters=parameters)
    named.__annotations__ = {name: kind for name, kind in tool.__annotations__.items() if name not in knows}
    return cast(Tool, named)


def create(
    url: str,
    study: Study,
    epsilon: Annotated[float | None, Field(description="How much worse than the best the answer may be.")] = None,
    candidates: Annotated[list[str] | None, Field(description="The names of the candidates.")] = None,
    table: Annotated[str | None, Field(description="In their place: a file with a row for each.")] = None,
    id_column: Annotated[str | None, Field(description="The column of the table that names them.")] = None,
    delta: Annotated[float, Field(description="The probability with which the answer may be wrong.")] = 0.05,
    noise: Annotated[
        str, Field(description="normal, bernoulli (0 or 1), bounded:LOW:HIGH, or subgaussian:SCALE.")
    ] = USUAL_NOISE,
    minimize: Annotated[bool, Field(description="Small measurements are good.")] = False,
    options: Annotated[
        dict[str, Any] | None,
        Field(
            description='Options of create_study: {"budget": 200}, {"assume": "linear"}, {"question": "top", "m": 3}.'
        ),
    ] = None,
) -> dict[str, Any]:
    """Start a study: which of the candidates is the best? Its promise is fixed from now on."""
    if (candidates is None) == (table is None):
        raise InvalidInput("give the names of the candidates, or a table of them.")
    arms = Arms(ids=candidates) if table is None else read_arms(table, id_column)
    given = options or {}
    policy = make_policy(fitting_policy(given), arms, epsilon=epsilon, delta=delta, noise=noise, **given)
    made = create_study(url, study, policy, minimize=minimize, surplus="refuse")
    found = {"study": study, "candidates": len(made.ids), "policy": spec_of(made.policy)}
    return {**found, "registration": made.registration, "status": str(made.progress())}


def ask(
    url: str,
    study: Study,
    most: Annotated[int | None, Field(description="At most so many measurements; null: all that are free.")] = None,
    worker: Annotated[str, Field(description="Who measures; what is asked is kept for this one.")] = WORKER,
    hours: Annotated[float, Field(description="How long it is kept.")] = 8.0,
) -> dict[str, Any]:
    """What to measure next: candidates, and a key for each measurement. Measure nothing else, and tell all of it."""
    opened = resume_study(url, study)
    batch = opened.lease(most, worker=worker, duration=hours * 3_600.0)
    return {"study": study, **plan_json(opened.progress(), batch)}


def tell(
    url: str,
    study: Study,
    results: Annotated[list[Result], Field(description="Measurements, in any order.")],
    worker: Annotated[str, Field(description="Who measured.")] = WORKER,
    accept_unusual: Annotated[bool, Field(description="Results that stand out were looked at, and are true.")] = False,
) -> dict[str, Any]:
    """Report measurements, each with its key. A key counts once; nothing is stored where a result is refused."""
    opened = resume_study(url, study)
    made = [one for one in results if one.reward is not None]
    keys = [one.key for one in made]
    if None in keys and any(key is not None for key in keys):
        raise InvalidInput("some results have keys and others have none: give the key of each, as ask gave it.")
    receipt = opened.tell(
        [one.id for one in made],
        [one.reward for one in results if one.reward is not None],
        None if None in keys or not keys else keys,
        worker=worker,
        failed=[(one.id, one.key) for one in results if one.reward is None],
        accept_unusual=accept_unusual,
    )
    opened.ask()  # the next round, where this one is complete
    counted = picked(receipt, "counted", "repeated", "late", "failed")
    return {"study": study, **counted, "stopped": opened.stopped, "status": str(opened.progress())}


def status(url: str, study: Study) -> dict[str, Any]:
    """What is in, what is out with whom, and what the complete rounds say."""
    opened = resume_study(url, study)
    return {"study": study, **progress_json(opened.progress()), "registration": opened.registration}


def studies(url: str) -> dict[str, Any]:
    """The studies that there are."""
    same = ("name", "candidates", "policy", "epsilon", "delta", "rounds", "pulls", "verdict", "registration")
    return {"studies": [picked(one, *same) for one in list_studies(url)]}


def certificate(
    url: str,
    study: Study,
    out: Annotated[str | None, Field(description="Write it to this JSON file, which verify checks.")] = None,
) -> dict[str, Any]:
    """The answer by the complete rounds: the best candidate, whether that is certified, and what it rests on."""
    document = certificate_document(open_study(url, study), study, check=True)
    written = None if out is None else str(write_document(document, out))
    return {"study": study, **{name: document[name] for name in SUMMARY if name in document}, "file": written}


def analyze(
    table: Annotated[str, Field(description="A file with a row for each measurement, or results of an evaluation.")],
    id_column: Annotated[str | None, Field(description="The column that names the candidate.")] = None,
    reward: Annotated[str | None, Field(description="The column of the measurements.")] = None,
    item: Annotated[str | None, Field(description="The column of the test item that all candidates answer.")] = None,
    minimize: Annotated[bool | None, Field(description="Are small measurements good?")] = None,
    noise: Annotated[str | None, Field(description="As in create; null: by the values.")] = None,
    delta: Annotated[float, Field(description="The probability with which any of it may be wrong.")] = 0.05,
    out: Annotated[str | None, Field(description="Write the result to this JSON file.")] = None,
) -> dict[str, Any]:
    """A verdict on measurements that were made already, by a plan that did not look at values."""
    found = finished.analyze(
        table,
        id=id_column,
        reward=reward,
        item=item,
        minimize=minimize,
        delta=delta,
        noise=parse_noise(noise) if noise else None,
    )
    if out is not None:
        found.write(out)
    return {"lines": found.lines(), "file": out}


def verify(
    file: Annotated[str, Field(description="The file of a certificate.")],
    registered: Annotated[str | None, Field(description="The registration code of create.")] = None,
) -> dict[str, Any]:
    """Compute every number of a certificate again, from its measurements."""
    result = verify_certificate(file, registered=registered)
    lines = [picked(line, "what", "holds", "words") for line in result.lines]
    return {"file": file, **picked(result, "holds", "verdict", "registration", "unchecked"), "lines": lines}


TOOLS: dict[Tool, ToolAnnotations] = {
    create: ADDS,
    ask: ADDS,
    tell: ADDS,
    status: READS,
    studies: READS,
    certificate: ADDS,
    analyze: ADDS,
    verify: READS,
}
