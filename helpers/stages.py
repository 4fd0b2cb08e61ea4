"""Stages: the whole path from a site to a table of results, each stage computed when first asked for."""

import os
from functools import cached_property

import pandas as pd
from langchain_core.documents import Document

from helpers.budget import BudgetRetriever
from helpers.crawl import Crawl, crawl, serve
from helpers.embedding import WindowEmbedder
from helpers.evaluation import compare, judge_pairs
from helpers.index import VectorIndex
from helpers.judging import PairVerdict
from helpers.leaves import split_leaves
from helpers.models import load_embedder, load_gist_writer, load_judge, load_summariser, load_writer
from helpers.policies import POLICY_QUESTIONS, load_policies
from helpers.profiles import Profile, load_profile
from helpers.questions import Question, load_questions
from helpers.recording import ROOT, Journal, open_recording
from helpers.retrievers import CollapsedTreeRetriever, LeafRetriever
from helpers.summaries import Summariser
from helpers.tree import Tree, build_tree

SITE = ROOT / "data" / "site"
QUESTIONS = ROOT / "data" / "questions.jsonl"
# The address that stands in metadata and recordings, whatever port the copy in data/site is served from.
SITE_ADDRESS = "https://docs.example/"
SITE_DEPTH = 4

LEAF_RAG, RAPTOR = "leaf RAG", "RAPTOR"


class Workbench:
    """One run of the pipeline. Every attribute is a stage; asking for one computes those before it.

    Parameters
    ----------
    profile : str or Profile, optional
        See `helpers.profiles.load_profile`.
    site : str, optional
        Address to crawl; by default the environment's ``WORKBENCH_SITE``, else the site in ``data/site``.
    max_depth : int, optional
        Depth of the crawl; the environment's ``WORKBENCH_DEPTH``, else 4.
    questions : path, optional
        Questions about the site (see `helpers.questions.load_questions`); the environment's
        ``WORKBENCH_QUESTIONS``, else those about the site in ``data/site``.
    progress : bool
        Whether long stages show a bar.
    """

    questions_file = QUESTIONS
    recording_prefix = ""

    def __init__(
        self,
        profile: str | Profile | None = None,
        site=None,
        max_depth=None,
        questions=None,
        progress: bool = False,
    ):
        self.profile = profile if isinstance(profile, Profile) else load_profile(profile)
        self.site = site or os.environ.get("WORKBENCH_SITE")
        self.max_depth = max_depth or int(os.environ.get("WORKBENCH_DEPTH", SITE_DEPTH))
        self.own_questions = questions or os.environ.get("WORKBENCH_QUESTIONS")
        self.progress = progress

    def _journal(self, name):
        return open_recording(self.recording_prefix + name, self.profile)

    @cached_property
    def crawled(self) -> Crawl:
        """Pages and what was skipped."""
        if self.site:
            return crawl(self.site, max_depth=self.max_depth, progress=self.progress)
        with serve(SITE) as url:
            return crawl(url, max_depth=self.max_depth, public_url=SITE_ADDRESS, progress=self.progress)

    @property
    def pages(self) -> list[Document]:
        """Pages in the order of the crawl."""
        return self.crawled.pages

    @cached_property
    def embedder(self) -> WindowEmbedder:
        """The profile's embedder."""
        return load_embedder(self.profile)

    @cached_property
    def leaves(self) -> list[Document]:
        """Leaves of all pages."""
        sizes = self.profile.chunk_tokens, self.profile.chunk_overlap
        return split_leaves(self.pages, self.embedder.count_tokens, *sizes)

    @cached_property
    def tree_journal(self) -> Journal:
        """Recorded clusters and summaries."""
        return self._journal("tree")

    @cached_property
    def summariser(self) -> Summariser:
        """The writer with the summary prompt."""
        return load_summariser(self.profile, self.embedder.count_tokens)

    @cached_property
    def gist_writer(self) -> Summariser:
        """The writer with the prompt for gists, for `build_tree(..., gist=...)`."""
        return load_gist_writer(self.profile, self.embedder.count_tokens)

    @cached_property
    def tree(self) -> Tree:
        """The tree of summaries."""
        return build_tree(
            self.leaves,
            self.embedder,
            self.summariser,
            self.tree_journal,
            progress=self.progress,
            **self.profile.tree_options,
        )

    @property
    def summary_prompt_tokens(self) -> list[int]:
        """Tokens of the prompt that each summary of the tree was written from."""
        children = [self.tree.children(node.metadata["id"]) for node in self.tree.summaries]
        return [self.summariser.prompt_tokens([node.page_content for node in nodes]) for nodes in children]

    @cached_property
    def index(self) -> VectorIndex:
        """All nodes of the tree in one index."""
        return VectorIndex.build(list(self.tree.nodes.values()), self.embedder)

    @cached_property
    def questions(self) -> list[Question]:
        """The questions, their quotes found in the pages.

        Raises
        ------
        ValueError
            If there is a site of one's own without questions about it.
        """
        if self.site and not self.own_questions:
            raise ValueError(
                f"the questions in {self.questions_file.name} are not about {self.site}: name a file of your own "
                "in WORKBENCH_QUESTIONS, written like that one, or unset WORKBENCH_SITE"
            )
        return load_questions(self.own_questions or self.questions_file, self.pages)

    def retrievers(self, token_budget: int | None = None) -> dict[str, BudgetRetriever]:
        """Plain RAG and RAPTOR, reading the same number of tokens."""
        limit = {
            "token_budget": token_budget or self.profile.token_budget,
            "count_tokens": self.embedder.count_tokens,
        }
        return {
            LEAF_RAG: LeafRetriever(index=self.index, **limit),
            RAPTOR: CollapsedTreeRetriever(index=self.index, reading="plain", **limit),
        }

    @cached_property
    def answer_journal(self) -> Journal:
        """Recorded answers."""
        return self._journal("answers")

    @cached_property
    def writer(self):
        """The writer of answers, recorded."""
        return load_writer(self.profile, self.answer_journal, progress=self.progress)

    @cached_property
    def results(self) -> pd.DataFrame:
        """Every question asked of every system."""
        return compare(self.questions, self.retrievers(), self.tree, self.writer)

    @cached_property
    def verdict_journal(self) -> Journal:
        """Recorded verdicts."""
        return self._journal("verdicts")

    @cached_property
    def judge(self):
        """The judge, recorded."""
        return load_judge(self.profile, self.verdict_journal, progress=self.progress)

    @cached_property
    def verdicts(self) -> dict[str, PairVerdict]:
        """Verdicts on the answers of plain RAG (a) and RAPTOR (b), by question; none on unanswerable ones."""
        answers = self.results.pivot(index="question", columns="system", values="answer")
        asked = [question for question in self.questions if question.evidence]
        pairs = [(q.text, answers.loc[q.id, LEAF_RAG], answers.loc[q.id, RAPTOR]) for q in asked]
        verdicts = judge_pairs(pairs, self.judge)
        return {question.id: verdict for question, verdict in zip(asked, verdicts, strict=True)}

    def calls(self) -> pd.DataFrame:
        """How many results of each stage were computed in this run, and how many were replayed."""
        journals = {
            "tree": self.tree_journal,
            "answers": self.answer_journal,
            "verdicts": self.verdict_journal,
        }
        return pd.DataFrame(
            [
                {"stage": name, "live": journal.live, "replayed": journal.replayed}
                for name, journal in journals.items()
            ]
        )


class ShopWorkbench(Workbench):
    """The same stages over the shop's policies in ``data/policies``."""

    questions_file = POLICY_QUESTIONS
    recording_prefix = "policies-"

    @cached_property
    def crawled(self) -> Crawl:
        """The pages, read from their folder."""
        return Crawl(load_policies(), [])
