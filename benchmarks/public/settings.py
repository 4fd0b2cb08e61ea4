"""Settings: what corpora are built with, and which numbers of a profile a run may vary."""

from dataclasses import dataclass, replace

from helpers.embedding import WindowEmbedder
from helpers.profiles import Profile, load_profile

VARIABLE = {
    "chunk_tokens": int,
    "prompt_tokens": int,
    "summary_tokens": int,
    "gist_tokens": int,
    "repetition_penalty": float,
    "max_levels": int,
    "threshold": float,
    "margin": float,
    "seed": int,
}
"""What decides a tree besides its pages and prompt, and its type."""


@dataclass(frozen=True)
class Settings:
    """How corpora are built: the profile, the embedder, and the writers of summaries and of gists."""

    profile: Profile
    embedder: WindowEmbedder
    summarise: object
    gist: object


def varied(profile: Profile, fields: list[str]) -> Profile:
    """Return a profile with some fields of `VARIABLE` changed, each given as "field=value".

    Raises
    ------
    ValueError
        If that is no such field, or no number.
    """
    changed = {}
    for field in fields:
        name, _, value = field.partition("=")
        try:
            changed[name] = VARIABLE[name](value)
        except (KeyError, ValueError):
            raise ValueError(f"{field!r} is not a number for one of {', '.join(VARIABLE)}") from None
    return replace(profile, **changed)


def changes(profile: Profile, prompt: str = "text", is_extracted: bool = False) -> dict[str, float | str]:
    """Return what differs from the headline runs: another prompt, no writer, another profile, or numbers of it."""
    usual = vars(load_profile(profile.name))
    changed = {name: value for name, value in vars(profile).items() if value != usual[name]}
    named = {"profile": (profile.name, "cpu"), "prompt": (prompt, "text"), "no writer": (is_extracted, False)}
    return {name: value for name, (value, headline) in named.items() if value != headline} | changed
