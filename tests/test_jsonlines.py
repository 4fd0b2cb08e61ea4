"""What is written comes back, also where a text holds what some take for the end of a line."""

import pytest
from langchain_core.documents import Document

from helpers.jsonlines import document_rows, read_rows, row_documents, write_rows

SEPARATORS = "one\u2028two\u0085three\nfour"


def test_documents_come_back_whole(tmp_path):
    documents = [Document(SEPARATORS, id="a", metadata={"id": "a", "level": 0})]
    write_rows(tmp_path / "new" / "file.jsonl", document_rows(documents))
    assert row_documents(read_rows(tmp_path / "new" / "file.jsonl")) == documents


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.jsonl"
    write_rows(path, [{"a": 1}])
    with pytest.raises(TypeError):
        write_rows(path, [{"a": 2}, {"a": object()}])
    assert read_rows(path) == [{"a": 1}]
    assert list(tmp_path.iterdir()) == [path], "on a full disk, what was written must not stay"


def test_half_a_line_is_an_error(tmp_path):
    (tmp_path / "file.jsonl").write_text('{"a": 1}\n{"a"')
    with pytest.raises(ValueError):
        read_rows(tmp_path / "file.jsonl")
