"""One visit: an address becomes a document or a reason, whatever the server and the extractor do."""

from helpers.client import Answer, Unwanted
from helpers.pages import page_text
from helpers.visits import visit

HTML = "<title>T</title><main><p>Text <a href='b.html'>b</a></p></main>"


class OneAnswer:
    """A client that gives one answer, or raises one reason."""

    def __init__(self, answer):
        self.answer = answer

    def get(self, address, folder):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def visited(answer, extractor=page_text):
    return visit(OneAnswer(answer), "http://site/a.html", "http://site/", extractor)


def test_a_page_becomes_a_document_with_its_links():
    found = visited(Answer("http://site/a.html", "text/html", HTML))
    assert found.page.page_content == "Text b"
    assert found.page.metadata == {"source": "http://site/a.html", "title": "T", "content_type": "text/html"}
    assert found.links == ["http://site/b.html"]


def test_plain_text_is_taken_as_it_is():
    found = visited(Answer("http://site/a.txt", "text/plain", "a < b"))
    assert found.page.page_content == "a < b"


def test_what_is_unwanted_is_a_reason():
    found = visited(Unwanted("HTTP 404"))
    assert (found.page, found.reason, found.answered) == (None, "HTTP 404", False)


def test_an_extractor_that_raises_costs_one_page_and_not_its_links():
    def broken(html):
        raise ValueError("no body")

    found = visited(Answer("http://site/a.html", "text/html", HTML), broken)
    assert found.page is None and found.answered
    assert found.reason == "extractor failed: ValueError('no body')"
    assert found.links == ["http://site/b.html"]


def test_an_empty_page_is_a_reason():
    assert visited(Answer("http://site/a.html", "text/html", "<main> </main>")).reason == "empty page"
