"""every-eval-ever: the results of a certificate, a file a candidate, by version 0.3.0 of its schema.

    FOLDER/STUDY/DEVELOPER/MODEL/UUID.json

A candidate's score is the mean of its measurements. What the certificate proves of all of them together stands in the
details of each: a mean of a study that measures the good ones more often is no more than a mean.
"""

import json
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surepick.core.files import write_whole
from surepick.errors import InvalidInput
from surepick.noise import Bernoulli, Bounded, parse_noise

SCHEMA = "0.3.0"
DETAILS = ("verdict", "promise", "reason", "registration", "algorithm", "epsilon", "delta", "certified_gap")
STRANGE = re.compile(r"[^\w.-]+")  # in the name of a folder
UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}


def results(
    certificate: Mapping[str, Any], *, seconds: int, organization: str = "unknown"
) -> dict[str, dict[str, Any]]:
    """The file of each candidate that was measured, as JSON data, by its path below a folder.

    Args:
        certificate: a certificate as JSON data (`read_certificate`), of at most 10,000 candidates.
        seconds: when the files are made, in seconds since 1970.
        organization: who measured.

    Raises:
        InvalidInput: the certificate has no list of candidates.
    """
    measured, ids = certificate.get("candidates"), certificate["arms"]["ids"]
    if measured is None or ids is None:
        raise InvalidInput(
            "this certificate has more than 10,000 candidates, and does not list what was measured of each; "
            "every-eval-ever has a file for each."
        )
    study = str(certificate["study"] or certificate["study_id"])
    found = {}
    columns = zip(ids, measured["pulls"], measured["means"], measured["fates"], strict=True)
    for name, pulls, mean, fate in columns:
        if mean is not None:
            score = {"pulls": pulls, "mean": mean, "fate": fate}
            developer, _, model = name.rpartition("/")
            unique = uuid.uuid5(uuid.NAMESPACE_URL, f"{certificate['sha256']}/{name}")
            version_4 = uuid.UUID(bytes=unique.bytes, version=4)  # the collection takes no other
            place = "/".join(STRANGE.sub("_", each) or "_" for each in (study, developer or "unknown", model))
            found[f"{place}/{version_4}.json"] = _result(certificate, study, name, score, seconds, organization)
    return found


def write_results(
    certificate: Mapping[str, Any], folder: str | Path, *, seconds: int, organization: str = "unknown"
) -> list[Path]:
    """Write the file of each candidate below a folder; the paths."""
    found = results(certificate, seconds=seconds, organization=organization)
    for place, data in found.items():
        path = Path(folder, place)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{json.dumps(data, indent=2, ensure_ascii=False)}\n".encode())
    return [Path(folder, place) for place in found]


def _result(
    certificate: Mapping[str, Any], study: str, name: str, score: dict[str, Any], seconds: int, organization: str
) -> dict[str, Any]:
    """One candidate."""
    program, _, version = str(certificate["made_by"]).partition(" ")
    developer = name.partition("/")[0] if "/" in name else "unknown"
    model = {"name": name, "id": name, "developer": developer, "additional_details": UNKNOWN}
    items = certificate.get("items")
    source: dict[str, Any] = {"dataset_name": study, "source_type": "other"}
    if items is not None:
        source["additional_details"] = {"items": str(items["number"]), "items_sha256": items["sha256"]}
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{study}/{name}/{seconds}",
        "retrieved_timestamp": str(seconds),
        "source_metadata": {
            "source_name": f"surepick certificate of {study}",
            "source_type": "documentation",  # totals, not the single results
            "source_organization_name": organization,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": program, "version": version or "unknown"},
        "model_info": model,
        "evaluation_results": [
            {
                "evaluation_result_id": f"{study}.mean",
                "evaluation_name": study,
                "source_data": source,
                "metric_config": {
                    "evaluation_description": "Mean of the measurements of a study that chose whom to measure.",
                    "metric_id": f"{STRANGE.sub('_', study)}.mean",
                    "metric_name": "Mean",
                    "metric_kind": "mean",
                    "lower_is_better": bool(certificate["minimize"]),
                    "score_type": "continuous",
                    **_range(certificate),
                },
                "score_details": {
                    "score": score["mean"],
                    "details": _details(certificate, score["fate"]),
                    "uncertainty": {"num_samples": score["pulls"]},
                },
            }
        ],
    }


def _range(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Between which scores all lie."""
    declared = (certificate["policy"] or {}).get("noise")
    noise = parse_noise(declared) if isinstance(declared, str) else None
    if certificate.get("items") is not None or isinstance(noise, Bernoulli):
        return {"min_score": 0.0, "max_score": 1.0}
    if isinstance(noise, Bounded):
        return {"min_score": noise.low, "max_score": noise.high}
    return {"min_score": "-Infinity", "max_score": "Infinity"}


def _details(certificate: Mapping[str, Any], fate: str) -> dict[str, str]:
    """What the certificate says of all candidates, in texts, as the schema has them."""
    stated = {name: certificate[name] for name in DETAILS} | {
        "fate": fate,
        "recommended": certificate["best_arm"],
        "certificate_sha256": certificate["sha256"],
        "assumptions": "\n".join(certificate["assumptions"]),
    }
    return {name: str(value) for name, value in stated.items() if value is not None}
