"""Certificates whose facts were altered, and all the rest computed anew."""

import json

from surepick.certificates import document as certificate, verify_facts


def forged(document: dict, spoil) -> dict:
    """All that follows from altered facts, computed as an honest writer would: what a careful forger hands in."""
    spoilt = json.loads(json.dumps(document))
    spoil(spoilt)
    arms = verify_facts.stated_arms(spoilt["arms"], None)
    facts = verify_facts.stated_facts(spoilt, arms, verify_facts.stated_policy(spoilt["policy"], arms, None))
    return {**certificate.document_of(facts)}


def every_look(name: str, value):
    """Spoils one field of every look."""

    def spoil(document: dict) -> None:
        for entry in document["rounds"]:
            for look in entry["looks"]:
                look[name] = value

    return spoil
