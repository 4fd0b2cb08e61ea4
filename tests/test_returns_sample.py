"""The returns sample: every result that the specification fixes, and the answers' states."""

import pytest

from helpers.keywords import KeywordIndex, rrf
from helpers.rag import ANSWERED, INSUFFICIENT
from helpers.retrievers import FusionRetriever, ParentChildRetriever
from helpers.returns_sample import (
    CHILDREN,
    FRESH,
    KEYWORD_RANKING,
    ORDINARY,
    PARENTS,
    QUESTION,
    SEMANTIC_RANKING,
    FixedRetriever,
    return_decision,
)


def ids(hits):
    return [hit.metadata["id"] for hit in hits]


@pytest.fixture
def fusion():
    keywords, semantic = FixedRetriever(ids=KEYWORD_RANKING), FixedRetriever(ids=SEMANTIC_RANKING)
    return FusionRetriever(retrievers=[keywords, semantic])


@pytest.fixture
def rule(fusion):
    return ParentChildRetriever(index=fusion, parents=PARENTS, max_parents=1).invoke(QUESTION)


def test_three_children_of_two_parents():
    parent_of = {name: child.metadata["parent"] for name, child in CHILDREN.items()}
    assert parent_of == {"期限": "退货规则", "例外": "退货规则", "到账": "退款规则"}
    for name, child in CHILDREN.items():
        assert child.page_content in PARENTS[parent_of[name]].page_content


def test_the_keyword_ranking_is_that_of_the_keyword_index():
    hits = KeywordIndex(list(CHILDREN.values())).ranked(QUESTION)
    assert [hit.metadata["id"] for hit, _ in hits] == KEYWORD_RANKING


def test_the_fused_order(fusion):
    fused = rrf([KEYWORD_RANKING, SEMANTIC_RANKING])
    assert [item for item, _ in fused] == ["例外", "期限", "到账"]
    assert fused[0][1] == fused[1][1] == pytest.approx(1 / 61 + 1 / 62)
    assert fused[2][1] == pytest.approx(1 / 63)
    assert ids(fusion.invoke(QUESTION)) == ["例外", "期限", "到账"]


def test_the_first_two_children_are_one_parent_with_both_sentences(rule):
    assert ids(rule) == ["退货规则"]
    assert "7 天" in rule[0].page_content
    assert "生鲜商品不支持无理由退货" in rule[0].page_content


def test_all_three_children_are_two_parents(fusion):
    assert ids(ParentChildRetriever(index=fusion, parents=PARENTS).invoke(QUESTION)) == [
        "退货规则",
        "退款规则",
    ]


@pytest.mark.parametrize(
    ("day", "category", "begins", "basis"),
    [
        (10, FRESH, "refused: fresh food is the exception", "例外"),
        (10, ORDINARY, "refused: day 10 is past the 7 days", "期限"),
        (7, ORDINARY, "may be returned: day 7", "期限"),
        (3, FRESH, "refused: fresh food is the exception", "例外"),
        (8, ORDINARY, "refused: day 8 is past the 7 days", "期限"),
        (0, ORDINARY, "may be returned: day 0", "期限"),
    ],
)
def test_with_the_whole_rule_the_answer_stands_on_its_sentence(rule, day, category, begins, basis):
    decision = return_decision(day, category, rule)
    assert decision.state == ANSWERED
    assert decision.text.startswith(begins)
    assert CHILDREN[basis].page_content in decision.basis
    assert decision.missing == ()
    assert not decision.needs_person


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        ([], ("期限", "例外")),
        ([PARENTS["退款规则"]], ("期限", "例外")),
        ([CHILDREN["到账"]], ("期限", "例外")),
        ([CHILDREN["期限"]], ("例外",)),
        ([CHILDREN["例外"], CHILDREN["到账"]], ("期限",)),
    ],
)
@pytest.mark.parametrize("category", [FRESH, ORDINARY])
def test_half_a_rule_is_no_answer_but_a_state(found, missing, category):
    decision = return_decision(10, category, found)
    assert decision.state == INSUFFICIENT
    assert decision.text == "the complete return rule is missing"
    assert decision.missing == missing
    assert decision.basis == ()
    assert decision.needs_person


def test_the_number_of_days_is_read_from_the_text(rule):
    longer = rule[0].model_copy(update={"page_content": rule[0].page_content.replace("7", "14")})
    assert return_decision(10, ORDINARY, [longer]).text == "may be returned: day 10 is within the 14 days"


@pytest.mark.parametrize(
    ("day", "category", "says"), [(-1, FRESH, "before delivery"), (1, "fresh", "category")]
)
def test_a_question_that_makes_no_sense_is_an_error_not_a_state(rule, day, category, says):
    with pytest.raises(ValueError, match=says):
        return_decision(day, category, rule)
