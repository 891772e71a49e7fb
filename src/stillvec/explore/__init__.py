"""Looking at vectors: one page on this machine, or one file that needs no server."""

from stillvec.explore.explorer import MOST_SETS, Explorer
from stillvec.explore.map import WordMap, mapping
from stillvec.explore.packing import exporting
from stillvec.explore.page import exported_page, live_page
from stillvec.explore.server import Server

__all__ = ["MOST_SETS", "Explorer", "Server", "WordMap", "exported_page", "exporting", "live_page", "mapping"]
