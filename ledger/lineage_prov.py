"""A lineage as W3C PROV-JSON, through the `prov` library: one document in the namespace of its log.

Acquisitions are activities, keys agents, everything else entities. What an acquisition read it `used`, what
it left behind `wasGeneratedBy` it, what came of that `wasInfluencedBy` it, and a thing made from another
`wasDerivedFrom` it. An entity is attributed to a key only where its signature was verified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from ledger.lineage_graph import PREFIX, Graph, Thing

if TYPE_CHECKING:
    from prov.identifier import QualifiedName

ACTIVITY, KEY = "acquisition", "key"
LEFT_BEHIND = ("segment", "refusal", "entry", "attestation")


def to_prov(graph: Graph) -> str:
    """The document as JSON text, the same for the same lineage."""
    from prov.model import PROV, ProvDocument

    document = ProvDocument()
    space = document.add_namespace("ledger", f"{PREFIX}{quote(graph.origin, safe='')}:")

    def name(kind: str, identity: str) -> QualifiedName:
        return space[f"{kind}/{quote(identity, safe='')}"]

    signers = dict.fromkeys(signer for thing in graph.things.values() for signer in verified(thing))
    for signer in signers:
        document.agent(name(KEY, signer), {PROV["type"]: space[KEY], PROV["label"]: signer})
    for key, thing in graph.things.items():
        facts = {space[fact]: value for fact, value in thing.facts.items() if fact.isidentifier()}
        described = {PROV["type"]: space[thing.kind], PROV["label"]: thing.label, **facts}
        if thing.kind == ACTIVITY:
            document.activity(name(*key), other_attributes=described)
            continue
        document.entity(name(*key), described)
        for signer in verified(thing):
            document.wasAttributedTo(name(*key), name(KEY, signer))
    for later, earlier in graph.edges:
        if earlier[0] == ACTIVITY and later[0] not in LEFT_BEHIND:
            document.wasInfluencedBy(name(*later), name(*earlier))
        elif earlier[0] == ACTIVITY:
            document.wasGeneratedBy(name(*later), name(*earlier))
        elif later[0] == ACTIVITY:
            document.used(name(*later), name(*earlier))
        else:
            document.wasDerivedFrom(name(*later), name(*earlier))
    return str(document.serialize(indent=2, ensure_ascii=False))


def verified(thing: Thing) -> tuple[str, ...]:
    """The keys whose signatures of a thing were checked; an audit also tells of those that only claim so."""
    return thing.signed_by if thing.facts.get("signed_by_this_log", True) else ()
