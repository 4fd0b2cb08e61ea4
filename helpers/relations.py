"""Relations: facts, each with the sentence that proves it, and what makes one unfit for a graph."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from helpers.names import fold


@dataclass(frozen=True)
class Relation:
    """A fact and its proof: ``evidence`` stands literally in the text of the page at ``source``."""

    subject: str
    type: str
    object: str
    source: str
    evidence: str

    def __str__(self):
        return f"{self.subject} {self.type} {self.object}"

    @property
    def fact(self) -> tuple[str, str, str]:
        """What is said, without who says it."""
        return self.subject, self.type, self.object


@dataclass(frozen=True)
class Rejected:
    """A relation that did not come in, and why; None where there was nothing to make one of."""

    relation: Relation | None
    reason: str


def keyed(relation: Relation, key: Callable[[str], str]) -> Relation:
    """Return a relation with the keys of its names in their place: equal for two spellings of one fact."""
    kind = " ".join(relation.type.split())
    return replace(relation, subject=key(relation.subject), type=kind, object=key(relation.object))


def fault(relation: Relation, texts: Mapping[str, str], key: Callable[[str], str] = fold) -> str | None:
    """Return why a relation has no place in a graph, None if it has one.

    Parameters
    ----------
    relation : Relation
    texts : mapping of str to str
        Source -> text of the page.
    key : callable
        What two spellings of one name have in common.
    """
    if not all(map(fold, (relation.subject, relation.type, relation.object))):
        return "empty name"
    if key(relation.subject) == key(relation.object):
        return "self-loop"
    if relation.source not in texts:
        return "no text of its source"
    # The empty string stands in every text and proves nothing.
    if not relation.evidence.strip() or relation.evidence not in texts[relation.source]:
        return "evidence not in source"
    return None
