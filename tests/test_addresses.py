"""Canonical addresses, the folder of a crawl, and the guard of private addresses."""

import pytest
from sites import resolve_to

from helpers.addresses import canonical, is_allowed_address, page_key


@pytest.mark.parametrize(
    "address, expected",
    [
        ("HTTP://Docs.Example:80/A#part", "http://docs.example/A"),
        ("https://docs.example:443", "https://docs.example/"),
        ("https://docs.example:8443/a", "https://docs.example:8443/a"),
        ("https://user:pw@docs.example/a?b=2&a=1", "https://docs.example/a?a=1&b=2"),
        ("http://[::1]:8000/a b", "http://[::1]:8000/a%20b"),
        ("http://docs.example/a/%2E%2e//evil.example/x", "http://docs.example//evil.example/x"),
        ("http://docs.example/中?q=中", "http://docs.example/%E4%B8%AD?q=%E4%B8%AD"),
        ("mailto:a@docs.example", None),
        ("javascript:void(0)", None),
        ("data:text/html,x", None),
        ("http://[broken", None),
        ("http://docs.example:port/", None),
    ],
)
def test_canonical_addresses(address, expected):
    assert canonical(address) == expected


def test_forms_of_one_page_have_one_key():
    forms = ["http://h/x", "http://h/x/", "http://h/x/index.html"]
    assert {page_key(form) for form in forms} == {"http://h/x"}
    assert {page_key(form + "?a=1") for form in forms} == {"http://h/x?a=1"}
    assert page_key("http://h/x/myindex.html") == "http://h/x/myindex.html"
    assert page_key("http://h/index.html") == page_key("http://h/") == page_key("http://h")


@pytest.mark.parametrize(
    "addresses, allowed",
    [
        (["93.184.216.34"], True),
        (["2606:2800:220:1::1"], True),
        (["127.0.0.1"], False),
        (["10.0.0.5"], False),
        (["192.168.1.1"], False),
        (["172.16.0.1"], False),
        (["169.254.169.254"], False),
        (["0.0.0.0"], False),
        (["100.64.0.1"], False),
        (["::1"], False),
        (["fe80::1"], False),
        (["fd00::1"], False),
        (["::ffff:127.0.0.1"], False),
        (["93.184.216.34", "10.0.0.5"], False),
    ],
)
def test_private_addresses_are_refused(monkeypatch, addresses, allowed):
    resolve_to(monkeypatch, *addresses)
    assert is_allowed_address("docs.example") is allowed


def test_loopback_is_allowed_only_on_request(monkeypatch):
    assert [is_allowed_address(host, allow_loopback=True) for host in ("127.0.0.1", "::1")] == [True, True]
    assert is_allowed_address("10.0.0.5", allow_loopback=True) is False
    # Other spellings of 127.0.0.1 resolve to it as well.
    assert [is_allowed_address(host) for host in ("2130706433", "127.1")] == [False, False]
