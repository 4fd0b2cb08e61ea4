"""Names: one entity has several spellings in a text; here they become one."""

import re
import unicodedata
from collections.abc import Iterable, Mapping

_DASHES = re.compile("[‐‑‒–—−]")
_GAP = re.compile(r"(?<=\w)-(?=\w)|\s+")
# "The 7-day rule" has an article; "A 1001" is a number with a letter.
_ARTICLE = re.compile(r"^(the\s+|an?\s+(?=[^\W\d]))", re.IGNORECASE)


def fold(name: str) -> str:
    """Return a name without what does not tell entities apart: case, article, hyphens, width of spaces.

    >>> fold("The Fresh-Food  exception")
    'fresh food exception'
    """
    text = _DASHES.sub("-", unicodedata.normalize("NFKC", name).casefold())
    return _GAP.sub(" ", without_article(text))


def without_article(name: str) -> str:
    """Return a name with single spaces and without the article in front of it."""
    return _ARTICLE.sub("", " ".join(name.split()))


class Names:
    """The aliases of entities, given by a person: no rule can know that "order 1001" is "A-1001".

    Parameters
    ----------
    aliases : mapping of str to str, optional
        Another name -> the name to use.

    Raises
    ------
    ValueError
        If a name to use is itself another name of something else, or a name is empty.
    """

    def __init__(self, aliases: Mapping[str, str] | None = None):
        self.aliases = dict(aliases or {})
        self._targets = {fold(alias): name for alias, name in self.aliases.items()}
        for alias, name in self.aliases.items():
            if not fold(alias) or not fold(name):
                raise ValueError(f"an empty name in the alias {alias!r} -> {name!r}")
            if fold(self._targets.get(fold(name), name)) != fold(name):
                raise ValueError(f"{alias!r} -> {name!r}: {name!r} is an alias itself, name its target")
        self._spellings = {fold(name): without_article(name) for name in self.aliases.values()}

    def key(self, name: str) -> str:
        """Return what two spellings of one entity have in common."""
        folded = fold(name)
        return fold(self._targets[folded]) if folded in self._targets else folded

    def spelling(self, key: str) -> str | None:
        """Return the spelling that an alias asks for, None where none does."""
        return self._spellings.get(key)

    def forms(self, keys: Iterable[str]) -> dict[str, str]:
        """Return every folded form under which the given entities may be named, with its key."""
        keys = set(keys)
        others = {alias: self.key(alias) for alias in self._targets}
        return {key: key for key in keys} | {form: key for form, key in others.items() if key in keys}


def mentioned(text: str, forms: Mapping[str, str]) -> tuple[list[str], str]:
    """Return the keys of the entities that a text names, in its order, each once, and the rest of the text.

    Whole words only; the longest name wins: in "the fresh-food return policy" there is no "return policy" if
    both are known.
    """
    rest, found = fold(text), {}
    for form in sorted((form for form in forms if form in rest), key=lambda form: (-len(form), form)):
        pattern = _whole_words(form)
        if match := pattern.search(rest):
            found[match.start()] = forms[form]
            # What a longer name has taken is not searched for shorter ones.
            rest = pattern.sub(lambda taken: "\0" * len(taken[0]), rest)
    return list(dict.fromkeys(found[start] for start in sorted(found))), rest.replace("\0", " ")


def _whole_words(form):
    before = r"(?<![^\W\u3400-\u9fff])" if _is_word(form[0]) else ""
    after = r"(?![^\W\u3400-\u9fff])" if _is_word(form[-1]) else ""
    return re.compile(before + re.escape(form) + after)


def _is_word(character):
    # Chinese has no spaces between words: there every character may begin or end a name.
    return bool(re.match(r"[^\W\u3400-\u9fff]", character))
