"""Extraction: relations out of a page, by sentence patterns or by a writer, each with its sentence."""

import re
from collections.abc import Iterable, Iterator, Sequence

import json_repair
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate

from helpers.names import fold
from helpers.relations import Rejected, Relation, fault

Patterns = Sequence[tuple[str, re.Pattern]]

LONGEST_SENTENCE = 1000
"""Characters. What is longer is data, and would take the patterns long."""

# A line is a block (see `pages.page_text`); in it a sentence ends at a stop, not at the dot of an initial.
_PIECE_END = re.compile(r"\n|(?<=[.!?])(?<!\b[A-Z]\.)[ \t]+")
_LIST = re.compile(r",\s*(?:and\s+)?|\s+and\s+")

# A name begins with a capital or a digit: "the Return policy", "Order 1042", not "the photos of the damage".
_NAME = r"(?:[Tt]he |[Aa]n? )?[A-Z0-9][\w-]*(?: (?!and\b)[\w-]+){0,4}"
_NAMES = rf"{_NAME}(?:(?:, and |, | and ){_NAME})*"


def _sentence(verb, subject=_NAME, objects=_NAMES):
    # The look ahead saves time: most sentences lack the verb.
    return re.compile(rf"^(?=.* {verb} )(?P<subject>{subject}) {verb} (?P<object>{objects})[.!]?$")


POLICY_TYPES = (
    "contains",
    "is governed by",
    "is covered by",
    "can be swapped under",
    "is charged under",
    "has a special case for",
    "is an exception to",
    "takes precedence over",
    "requires",
    "replaces",
    "is an old version of",
    "escalates to",
    "was paid with",
    "was shipped by",
    "was sent from",
)
POLICY_PATTERNS: Patterns = tuple((verb, _sentence(verb)) for verb in POLICY_TYPES)
ALIAS = "is another name for"
_ANY_NAME = r"[\w-]+(?: [\w-]+){0,4}"
ALIAS_PATTERNS: Patterns = ((ALIAS, _sentence(ALIAS, subject=_ANY_NAME, objects=_NAME)),)

# Of the site: names of classes, of functions (with an underscore, else every word could be one) and of files.
_CLASS = r"(?:[A-Z][a-z0-9]+[A-Z]\w*|Trainer|Accelerator|Dataset|Tokenizer|Encoding)"
_FUNCTION = r"[a-z][a-z0-9]*_\w+"
_CODE = rf"(?:{_CLASS}|{_FUNCTION})"
_LIBRARY = r"(?:transformers|datasets|tokenizers|accelerate|Accelerate|peft|PEFT|torch|PyTorch)"
_FILE = r"[\w-]+\.(?:json|jinja|safetensors|bin|yaml|txt|arrow)"


def _clause(verbs, objects):
    """A code name, perhaps called, with a verb behind it and an object in the same clause."""
    subject = rf"\b(?P<subject>{_CODE})(?:\([^)]*\))?(?: \w+ly)?"
    return re.compile(rf"{subject} (?:{verbs})\b[^,;:]*? (?P<object>{objects})\b")


def _file_clause(verbs):
    """A sentence that begins with a code name or a library and names a file."""
    subject = rf"^(?:\w+\.)*(?P<subject>{_CODE}|{_LIBRARY})\b"
    return re.compile(rf"{subject}[^,;:]*? (?:{verbs}) [^;:]*?\b(?P<object>{_FILE})\b")


SITE_PATTERNS: Patterns = (
    ("is part of", re.compile(r"^\s*from (?P<object>\w+)[\w.]* import (?P<subject>\w+(?:, *\w+)*)$")),
    ("offers", re.compile(rf"\b(?P<subject>{_CLASS})\.(?P<object>[a-z]\w+)(?=[( ])")),
    ("loads", re.compile(rf"\.(?P<subject>(?:from|load)\w*)\(\"(?P<object>{_FILE})\"")),
    ("loads", _file_clause("reads|loads|downloads")),
    ("saves to", _file_clause("writes|saves|stores")),
    ("returns", _clause("returns", _CLASS)),
    ("requires", _clause("needs|requires", _CODE)),
    ("uses", _clause("uses|wraps|calls|is built on", rf"(?:{_CODE}|{_LIBRARY})")),
)

EXTRACTION_PROMPT = PromptTemplate.from_template(
    """Find the relations between named things in this text.

Text:
{text}

Use only these types of relation: {types}.
Reply with a JSON list and nothing else, an entry for each relation. Its evidence is one sentence of \
the text that names both things, copied word for word:
[{{"subject": "<name>", "type": "<type>", "object": "<name>", "evidence": "<sentence>"}}]"""
)


def pieces(text: str) -> list[str]:
    """Return the sentences and code lines of a page, without marks of lists and headings."""
    found = (piece.strip().lstrip("#*- ") for piece in _PIECE_END.split(text))
    return [piece for piece in found if piece]


def extract_by_rules(page: Document, patterns: Patterns) -> list[Relation]:
    """Return the relations that patterns find in the sentences and code lines of a page.

    Parameters
    ----------
    page : Document
        With ``source`` in its metadata.
    patterns : sequence of (str, re.Pattern)
        Type, and a pattern with the groups ``subject`` and ``object``; "A, B and C" in either is three names.
    """
    source = page.metadata["source"]
    found = (
        Relation(subject, kind, object_, source, piece)
        for piece in pieces(page.page_content)
        if len(piece) <= LONGEST_SENTENCE
        for kind, pattern in patterns
        for match in pattern.finditer(piece)
        for subject in _LIST.split(match["subject"])
        for object_ in _LIST.split(match["object"])
    )
    return list(dict.fromkeys(found))


def extract_aliases(pages: Iterable[Document]) -> dict[str, str]:
    """Return other name -> name, from sentences such as "The RMA is another name for the Return number"."""
    return {
        relation.subject: relation.object
        for page in pages
        for relation in extract_by_rules(page, ALIAS_PATTERNS)
    }


def extract_by_writer(
    page: Document,
    writer,
    types: Sequence[str] = POLICY_TYPES,
    rejected: list[Rejected] | None = None,
) -> list[Relation]:
    """Return the relations that a writer finds in a page, without those that the page does not prove.

    The quoted words must stand in the page, in a sentence that names both things. The evidence is that whole
    sentence, so that a quote which the token limit cut off does no harm.

    Parameters
    ----------
    page : Document
        With ``source`` in its metadata.
    writer : Runnable or callable
        Prompt in, text out. It must not cut its answers at whole sentences: JSON has none.
    types : sequence of str
        The only types that are let in.
    rejected : list, optional
        What was left out is appended to it, with the reason.
    """
    notes = [] if rejected is None else rejected
    answer = (EXTRACTION_PROMPT | writer | StrOutputParser()).invoke(
        {"text": page.page_content, "types": ", ".join(types)}
    )
    relations = []
    for entry in _entries(answer):
        relation, reason = _checked(entry, page, types)
        if reason:
            notes.append(Rejected(relation, reason))
        else:
            relations.append(relation)
    if not relations and not notes:
        notes.append(Rejected(None, f"no relation in the answer: {answer[:60]!r}"))
    return list(dict.fromkeys(relations))


def _entries(answer) -> Iterator:
    """Yield the entries of what should be a JSON list: fenced, in prose, cut off, or none at all."""
    opening = re.search(r"\[?\s*\{", answer)
    value = json_repair.loads(answer[opening.start() :]) if opening else None
    yield from value if isinstance(value, list) else [value] if value else []


def _checked(entry, page, types):
    fields = ("subject", "type", "object", "evidence")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(field), str) for field in fields):
        return None, f"not a relation: {str(entry)[:60]}"
    subject, kind, object_, quote = (entry[field].strip() for field in fields)
    texts = {page.metadata["source"]: page.page_content}
    relation = Relation(subject, kind, object_, page.metadata["source"], quote)
    if reason := fault(relation, texts):
        return relation, reason
    if kind not in types:
        return relation, "unknown type"
    evidence = next((piece for piece in pieces(page.page_content) if quote in piece), quote)
    if not all(fold(name) in fold(evidence) for name in (subject, object_)):
        return relation, "the evidence does not name both"
    return Relation(subject, kind, object_, page.metadata["source"], evidence), None
