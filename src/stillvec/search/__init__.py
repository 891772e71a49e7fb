"""Search in documents: passages with sentence vectors and an inverted index, in a folder."""

from stillvec.search.search_index import METHODS, Hit, Method, SearchIndex

__all__ = ["METHODS", "Hit", "Method", "SearchIndex"]
