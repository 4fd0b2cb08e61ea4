"""Names: what folds together, what must not, and which entities a text names."""

import pytest

from helpers.names import Names, fold, mentioned, without_article


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("the Return policy", "Return policy"),
        ("The Return  Policy", "return policy"),
        ("Fresh-food exception", "a fresh food exception"),
        ("Fresh‑food", "Fresh-food"),  # a non-breaking hyphen
        ("Ｏrder １042", "Order 1042"),  # full-width characters
        ("Straße", "STRASSE"),
    ],
)
def test_spellings_of_one_name(a, b):
    assert fold(a) == fold(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [("C++", "C"), ("A 1001", "1001"), ("Order 104", "Order 1042"), ("theory", "ory"), ("-100", "100")],
)
def test_names_that_stay_apart(a, b):
    assert fold(a) != fold(b)


def test_an_article_goes_but_the_case_stays():
    assert without_article("The  Return policy") == "Return policy"


def test_an_alias_and_its_name_have_one_key():
    names = Names({"The 7-day rule": "the Return policy"})
    assert names.key("7 DAY rule") == names.key("return policy") == "return policy"
    assert names.spelling("return policy") == "Return policy"
    assert names.spelling("refund rule") is None


def test_an_alias_of_an_alias_is_refused():
    with pytest.raises(ValueError, match="alias itself"):
        Names({"a name": "another name", "another name": "the name"})


def test_an_alias_that_only_changes_case_is_allowed():
    assert Names({"RMA": "rma", "the code": "RMA"}).key("The code") == "rma"


@pytest.mark.parametrize("aliases", [{"": "name"}, {"alias": " "}])
def test_an_empty_alias_is_refused(aliases):
    with pytest.raises(ValueError, match="empty name"):
        Names(aliases)


def found(text, *names):
    return mentioned(text, {fold(name): name for name in names})[0]


def test_names_in_the_order_of_the_text():
    assert found("Does milk go with Order 7 or with milk?", "Order 7", "Milk") == ["Milk", "Order 7"]


def test_the_longest_name_wins():
    assert found("the fresh-food return policy", "return policy", "Fresh-food return policy") == [
        "Fresh-food return policy"
    ]


def test_a_short_name_beside_a_long_one_is_found_too():
    names = "Gift card", "Gift card rule"
    assert found("Is a gift card under the gift card rule?", *names) == ["Gift card", "Gift card rule"]


def test_whole_words_only():
    assert found("Order 1042 and the cardigan", "Order 104", "card") == []


def test_chinese_names_need_no_spaces():
    assert found("订单1042为什么适用生鲜例外？", "订单1042", "生鲜例外") == ["订单1042", "生鲜例外"]


def test_the_rest_of_the_text():
    assert mentioned("Is milk returned?", {"milk": "milk"})[1].split() == ["is", "returned?"]


def test_no_text_and_no_names():
    assert mentioned("", {"milk": "milk"}) == ([], "")
    assert mentioned("milk", {}) == ([], "milk")
