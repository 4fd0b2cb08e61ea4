"""Graph: entities and typed relations, each with the sentence of a page that proves it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path

import networkx as nx

from helpers import graph_walks
from helpers.jsonlines import read_rows, write_rows
from helpers.names import Names, mentioned, without_article
from helpers.relations import Rejected, Relation, fault, keyed

__all__ = ["KnowledgeGraph", "Rejected", "Relation"]

FORMAT = "knowledge-graph 1"


class KnowledgeGraph:
    """Relations of many pages. What it holds depends on the pages, not on the order in which they came.

    Parameters
    ----------
    aliases : mapping of str to str, optional
        Another name -> the name to use. Case, a leading article and hyphens are folded without them.
    """

    def __init__(self, aliases: Mapping[str, str] | None = None):
        self.names = Names(aliases)
        # By folded names: the relation as it was written, and where its evidence starts.
        self._found: dict[Relation, tuple[Relation, int]] = {}

    def __len__(self):
        return len(self._found)

    def __repr__(self):
        return f"KnowledgeGraph({len(self.entities)} entities, {len(self)} relations)"

    def add(self, relations: Iterable[Relation], texts: Mapping[str, str]) -> list[Rejected]:
        """Take relations whose evidence stands literally in their page; return the others with the reason.

        Parameters
        ----------
        relations : iterable of Relation
        texts : mapping of str to str
            Source -> text of the page.
        """
        rejected = []
        for relation in relations:
            if reason := fault(relation, texts, self.names.key):
                rejected.append(Rejected(relation, reason))
                continue
            start = texts[relation.source].index(relation.evidence)
            self._found.setdefault(self._key(relation), (relation, start))
        self._forget()
        return rejected

    def remove(self, source: str) -> list[Relation]:
        """Take out the relations of a page and return them; none for a page that has none."""
        gone = [relation for relation in self.relations if relation.source == source]
        self._found = {key: value for key, value in self._found.items() if key.source != source}
        self._forget()
        return gone

    def update(self, source: str, text: str, relations: Iterable[Relation]) -> list[Rejected]:
        """Replace a page: its old relations go, the new ones are added, no other page is touched."""
        self.remove(source)
        return self.add(relations, {source: text})

    def faults(self, texts: Mapping[str, str]) -> list[Rejected]:
        """Return the relations that these texts no longer prove: of pages that changed or are gone."""
        checked = ((relation, fault(relation, texts, self.names.key)) for relation in self.relations)
        return [Rejected(relation, reason) for relation, reason in checked if reason]

    @cached_property
    def relations(self) -> list[Relation]:
        """All relations, names in one spelling, ordered by page and place in the page."""
        placed = sorted(self._found.items(), key=lambda item: (item[0].source, item[1][1], item[0].fact))
        return [
            replace(key, subject=self._spellings[key.subject], object=self._spellings[key.object])
            for key, _ in placed
        ]

    @cached_property
    def network(self) -> nx.MultiDiGraph:
        """The graph in networkx: nodes are names, an edge holds its Relation in ``relation``."""
        network = nx.MultiDiGraph()
        network.add_nodes_from(sorted(self._spellings.values()))
        for relation in self.relations:
            network.add_edge(relation.subject, relation.object, relation=relation)
        return network

    @property
    def entities(self) -> list[str]:
        """Names, sorted."""
        return list(self.network)

    def mentioned(self, text: str) -> list[str]:
        """Return the entities that a text names, under any of their names, in the order of the text."""
        return self.read(text)[0]

    def read(self, text: str) -> tuple[list[str], str]:
        """Return the entities that a text names, and its other words."""
        keys, rest = mentioned(text, self.names.forms(self._spellings))
        return [self._spellings[key] for key in keys], rest

    def about(self, name: str) -> list[Relation]:
        """Return the relations of an entity, in either direction; KeyError for an unknown name."""
        name = self._known(name)
        return [relation for relation in self.relations if name in (relation.subject, relation.object)]

    def proofs(self, relation: Relation) -> list[Relation]:
        """Return all relations that state the same fact, on whatever page."""
        fact = self._key(relation).fact
        return [other for other in self.relations if self._key(other).fact == fact]

    def place(self, relation: Relation) -> tuple[int, int]:
        """Return where the evidence stands in its page: ``text[start:end]``."""
        _, start = self._found[self._key(relation)]
        return start, start + len(relation.evidence)

    def paths(self, a: str, b: str, max_hops: int = 4, limit: int | None = None) -> list[list[Relation]]:
        """Return the ways from one entity to another, the shortest first, then by names.

        An edge may be walked against its direction. A fact that several pages state is one hop, with the
        evidence of the first of them (see `proofs`).

        Returns
        -------
        list of list of Relation
            Empty if nothing connects the two within `max_hops`.

        Raises
        ------
        KeyError
            If a name is unknown: a misspelling must not look like "not connected".
        """
        found = graph_walks.paths(self.network, self._hops, self._known(a), self._known(b), max_hops)
        return list(islice(found, limit))

    def communities(self, seed: int = 0) -> list[list[str]]:
        """Return groups of entities that hang together (Louvain), the largest first, names sorted."""
        return graph_walks.louvain(self.network, seed)

    def save(self, path: str | Path) -> None:
        """Write JSON lines: a header with the aliases, then a relation a line."""
        rows = [{"format": FORMAT, "relations": len(self), "aliases": self.names.aliases}]
        rows += [asdict(relation) | {"start": start} for relation, start in self._found.values()]
        write_rows(path, rows)

    @classmethod
    def load(cls, path: str | Path) -> "KnowledgeGraph":
        """Read a graph that `save` wrote (ValueError if the file is not whole); see `faults` for its age."""
        path = Path(path)
        try:
            header, *rows = read_rows(path)
            if header["format"] != FORMAT or header["relations"] != len(rows):
                raise ValueError(
                    f"expected {FORMAT} with {header.get('relations')} relations, found {len(rows)}"
                )
            graph = cls(header["aliases"])
            for row in rows:
                start = row.pop("start")
                relation = Relation(**row)
                graph._found[graph._key(relation)] = relation, start
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path.name} is not a whole graph ({error}): build it again") from error
        return graph

    @cached_property
    def _spellings(self):
        """Key -> name: what an alias asks for, else the most frequent spelling, else the first of those."""
        written = defaultdict(Counter)
        for key, (relation, _) in self._found.items():
            written[key.subject][without_article(relation.subject)] += 1
            written[key.object][without_article(relation.object)] += 1
        return {
            key: self.names.spelling(key) or min(counts, key=lambda name: (-counts[name], name))
            for key, counts in written.items()
        }

    @cached_property
    def _hops(self):
        """Name -> its neighbours by name, each with one relation a fact."""
        facts = defaultdict(lambda: defaultdict(dict))
        for relation in self.relations:
            facts[relation.subject][relation.object].setdefault(relation.fact, relation)
            facts[relation.object][relation.subject].setdefault(relation.fact, relation)
        return {
            name: [
                (other, [found[fact] for fact in sorted(found)]) for other, found in sorted(others.items())
            ]
            for name, others in facts.items()
        }

    def _forget(self):
        for derived in ("relations", "network", "_spellings", "_hops"):
            self.__dict__.pop(derived, None)

    def _key(self, relation):
        return keyed(relation, self.names.key)

    def _known(self, name):
        key = self.names.key(name)
        if key in self._spellings:
            return self._spellings[key]
        near = get_close_matches(name, self.entities, n=3)
        raise KeyError(
            f"no entity {name!r} in the graph" + (f"; did you mean {', '.join(near)}?" if near else "")
        )
