"""Graph retrieval: from the entities in a question along their relations to the original sentences."""

import re
from collections.abc import Iterator

from langchain_core.documents import Document

from helpers.budget import BudgetRetriever
from helpers.graph import KnowledgeGraph
from helpers.names import fold
from helpers.recording import content_key

# Who finds a rule must learn what changes it, though the sentence begins with the other rule. All other
# relations are walked from subject to object only: from a rule to all its products would bring everything.
CHANGES = frozenset({"is an exception to", "takes precedence over", "replaces", "has a special case for"})

_NO_CONTENT = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can did do does for from how i if in is it its may my of on or that the "
        "this to was what when which who why will with",
    )
)


class GraphRetriever(BudgetRetriever):
    """The sentences that prove what a graph knows about the entities in a question.

    First come the hops of the shortest paths between two named entities, then what can be reached from a
    named entity: the more of the question's other words a relation shares the earlier, then the nearer, then
    what changes a rule before the rest. A fact that several pages state comes once. No entity, no hit.

    Parameters
    ----------
    graph : KnowledgeGraph
    hops : int
        How far to walk.
    changes : frozenset of str
        Types that are walked from object to subject too.
    """

    graph: KnowledgeGraph
    hops: int = 3
    changes: frozenset[str] = CHANGES

    def ranked(self, question: str) -> Iterator[tuple[Document, float]]:
        entities, other_words = self.graph.read(question)
        steps = self._on_paths(entities)
        scores = self._around(entities, _words(other_words)) | dict.fromkeys(steps, 2.0)
        sentences = {}
        for relation in sorted(
            scores, key=lambda relation: (-scores[relation], *self._order(relation, steps))
        ):
            place = relation.source, *self.graph.place(relation)
            sentences.setdefault(place, []).append(relation)
        for place, relations in sentences.items():
            yield _document(place, relations), scores[relations[0]]

    def _on_paths(self, entities):
        """Return the hops of the shortest paths between each two entities, numbered as they are walked."""
        steps = {}
        for number, a in enumerate(entities):
            for b in entities[number + 1 :]:
                paths = self.graph.paths(a, b, self.hops)
                for step in (step for path in paths if len(path) == len(paths[0]) for step in path):
                    steps.setdefault(step, len(steps))
        return steps

    def _around(self, entities, words):
        """Return the relations within reach: up to 1 for words in common, and up to 0.1 for nearness."""
        scores, facts = {}, set()
        frontier, seen = list(entities), set(entities)
        for far in range(self.hops):
            reached = []
            for name in frontier:
                out, into, changing = self._links(name)
                reached += [relation.object for relation in out] + [relation.subject for relation in changing]
                for relation in out + (changing if far else into):
                    if relation.fact not in facts:
                        facts.add(relation.fact)
                        scores[relation] = _shared(words, relation) + 0.1 / (1 + far)
            frontier = [name for name in dict.fromkeys(reached) if name not in seen]
            seen.update(frontier)
        return scores

    def _links(self, name):
        """Return what begins at an entity, what ends at it, and which of these change it."""
        out = [relation for _, _, relation in self.graph.network.out_edges(name, data="relation")]
        into = [relation for _, _, relation in self.graph.network.in_edges(name, data="relation")]
        return out, into, [relation for relation in into if relation.type in self.changes]

    def _order(self, relation, steps):
        step, rest = steps.get(relation, len(steps)), relation.type not in self.changes
        return step, rest, relation.source, self.graph.place(relation), relation.fact


def _document(place, relations):
    source, start, end = place
    evidence = relations[0].evidence
    about = {
        "id": content_key(source, evidence)[:12],
        "level": 0,
        "source": source,
        "start": start,
        "end": end,
    }
    about["relation"] = "; ".join(map(str, relations))
    return Document(evidence, id=about["id"], metadata=about)


def _shared(words, relation):
    return len(words & _words(f"{relation} {relation.evidence}")) / max(1, len(words))


def _words(text):
    """Return the words that carry content, by their first five letters: "returned" meets "return"."""
    return {word[:5] for word in re.findall(r"\w+", fold(text)) if word not in _NO_CONTENT}
