"""Returns sample: a shop's rules in three sentences, small enough that every ranking and answer is known.

The sentences are Chinese. 期限: "within 7 days of delivery, goods can be returned"; 例外: "fresh food cannot
be returned without cause"; both are children of 退货规则, the return rule. 到账: "the refund arrives 3
working days after approval", a child of 退款规则, the refund rule.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from langchain_core.documents import Document

from helpers.budget import BudgetRetriever
from helpers.rag import ANSWERED, INSUFFICIENT

FRESH, ORDINARY = "生鲜", "普通"
QUESTION = "签收第 10 天，生鲜商品还能退货吗？"
"""Can fresh food be returned on day 10 after delivery?"""

TERM = re.compile(r"签收后 ?(\d+) ?天内[^。]*。")
EXCEPTION = re.compile(rf"{FRESH}[^。]*不支持[^。]*退货[^。]*。")


def _child(child_id, parent_id, text):
    metadata = {"id": child_id, "parent": parent_id, "level": 0, "source": parent_id}
    return Document(text, id=child_id, metadata=metadata)


def _parent(parent_id):
    text = "".join(c.page_content for c in CHILDREN.values() if c.metadata["parent"] == parent_id)
    return Document(text, id=parent_id, metadata={"id": parent_id, "level": 0, "source": parent_id})


CHILDREN = {
    "期限": _child("期限", "退货规则", "签收后 7 天内可以申请退货。"),
    "例外": _child("例外", "退货规则", "生鲜商品不支持无理由退货。"),
    "到账": _child("到账", "退款规则", "审核通过后 3 个工作日退款到账。"),
}
PARENTS = {name: _parent(name) for name in ("退货规则", "退款规则")}

KEYWORD_RANKING = ["例外", "期限"]
SEMANTIC_RANKING = ["期限", "例外", "到账"]


class FixedRetriever(BudgetRetriever):
    """A ranking of the sample that is given, whatever the question; scores are 1, 1/2, 1/3, ..."""

    ids: list[str]

    def ranked(self, question: str) -> Iterable[tuple[Document, float]]:
        return ((CHILDREN[child_id], 1 / rank) for rank, child_id in enumerate(self.ids, start=1))


@dataclass(frozen=True)
class Decision:
    """What the retrieved text says about a return.

    Attributes
    ----------
    state : str
        ``answered`` or ``insufficient evidence``, as in `helpers.rag`.
    text : str
    basis : tuple of str
        The original sentences that decide, word for word.
    missing : tuple of str
        What the retrieved text lacks; empty if answered.
    """

    state: str
    text: str
    basis: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def needs_person(self) -> bool:
        """Whether a person takes over here: nothing may be promised or refused on half a rule."""
        return self.state != ANSWERED


def return_decision(day: int, category: str, parents: Iterable[Document]) -> Decision:
    """Decide on a return from the retrieved text alone, and only if both sentences of the rule are in it.

    Parameters
    ----------
    day : int
        Whole days since delivery.
    category : str
        `FRESH` or `ORDINARY`.
    parents : iterable of Document
        What was retrieved; may be empty.

    Raises
    ------
    ValueError
        If the goods were not delivered yet, or the category is unknown: that is no matter of evidence.
    """
    if day < 0:
        raise ValueError(f"day {day} is before delivery")
    if category not in (FRESH, ORDINARY):
        raise ValueError(f"category must be {FRESH} or {ORDINARY}, got {category!r}")
    text = "\n".join(parent.page_content for parent in parents)
    term, exception = TERM.search(text), EXCEPTION.search(text)
    if not term or not exception:
        missing = [name for name, found in (("期限", term), ("例外", exception)) if not found]
        return Decision(INSUFFICIENT, "the complete return rule is missing", missing=tuple(missing))
    if category == FRESH:
        return Decision(ANSWERED, "refused: fresh food is the exception", (exception[0],))
    # Ordinary goods stand on both sentences: the term, and that the exception is about something else.
    basis = term[0], exception[0]
    if day > int(term[1]):
        return Decision(ANSWERED, f"refused: day {day} is past the {term[1]} days", basis)
    return Decision(ANSWERED, f"may be returned: day {day} is within the {term[1]} days", basis)
