"""RAPTOR against plain RAG on folders of documents and questions that others wrote; see benchmarks/quality.py."""
