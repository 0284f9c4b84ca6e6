"""Uploads: they stay in memory, and the page promises no larger ones than the server takes.

Streamlit leaves the parsing of an upload to Starlette, which writes every file of more than a megabyte to the disk.  A
private file must never be there, not even for the moment until Streamlit has read it into memory.  So the size from
which Starlette does that is moved out of reach when this module is imported; what Streamlit takes at all
(server.maxUploadSize) stays the bound, and is checked while the file arrives.
"""

from __future__ import annotations

import math
import sys

import streamlit as st
from starlette.formparsers import MultiPartParser

from dpgrams_core.errors import SpecError
from dpgrams_core.settings import Settings

MEGABYTE = 1_000_000

MultiPartParser.spool_max_size = sys.maxsize


def largest_upload(settings: Settings) -> int:
    """The size of the largest upload in whole megabytes, rounded up; the reader holds the file to the exact one.

    Raises
    ------
    SpecError
        Where the server would refuse what the owner allows: the widget would promise it all the same.
    """
    allowed, taken = settings.max_upload_bytes / MEGABYTE, int(st.get_option("server.maxUploadSize"))
    if allowed > taken:
        way = f"start it with --server.maxUploadSize={math.ceil(allowed)}, or put larger files into DPGRAMS_DATA"
        raise SpecError("DPGRAMS_MAX_UPLOAD_MB", allowed, f"the server takes at most {taken} MB; {way}")
    return max(1, math.ceil(allowed))
