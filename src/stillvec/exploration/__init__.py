"""Looking at vectors: one page on this machine, or one file that needs no server."""

from stillvec.exploration.explorer import MOST_SETS, Explorer
from stillvec.exploration.explorer_page import exported_page, live_page
from stillvec.exploration.page_export import exporting
from stillvec.exploration.page_server import Server
from stillvec.exploration.word_map import WordMap, mapping

__all__ = ["MOST_SETS", "Explorer", "Server", "WordMap", "exported_page", "exporting", "live_page", "mapping"]
