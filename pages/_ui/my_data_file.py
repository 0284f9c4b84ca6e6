"""Step 1 of My data: a file, and the only things that are said about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dpgrams_core.datasets.examples import example_csv
from dpgrams_core.datasets.table_reader import REASONS, Limits, Table, read_table
from dpgrams_core.datasets.upload import read_upload
from dpgrams_core.errors import DataError
from dpgrams_core.methods import fresh_seed
from dpgrams_core.settings import Settings, local_file
from pages._ui.my_data_state import Own, plain
from pages._ui.uploads import MEGABYTE, OFF, largest_upload, read_and_let_go, upload_box

ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".pq")


def file_step(own: Own, settings: Settings) -> None:
    """Choose a file, or say what is known of the one that was chosen."""
    if own.table is None:
        _choose(own, settings)
    else:
        _facts(own, own.table)


def file_title(own: Own) -> str:
    """The step in a line."""
    if own.table is None:
        return "**1 · File**"
    return f"**1 · File** — {_counted(own.table.n_rows, 'row')}, {_counted(len(own.table.numeric), 'numeric column')}"


def _choose(own: Own, settings: Settings) -> None:
    if settings.uploads:
        file = upload_box(
            f"A CSV or Parquet file, at most {settings.max_upload_bytes / MEGABYTE:g} MB",
            settings,
            f"own_upload_{own.uploads}",
            largest_upload(settings),
            "One row for each person, column names in the first row. It is kept in this session's memory only.",
        )
        if file is not None:
            _read(own, "upload", lambda: _uploaded(file, settings))
    else:
        st.info(f"{OFF} Or try it with the example file.", icon=":material/public:")
    if settings.data_folder is not None:
        _choose_local(own, settings)
    with st.container(horizontal=True, vertical_alignment="center", key="own_example"):
        if st.button("Try it with an example file", icon=":material/science:", key="own_try"):
            _read(own, "example", lambda: read_table(example_csv(fresh_seed()), "example.csv"))
        st.caption("3,000 people who do not exist, made afresh at every press.", width="content")


def _choose_local(own: Own, settings: Settings) -> None:
    """A file of the owner's folder, of any size."""
    assert settings.data_folder is not None
    try:
        names = sorted(
            path.name for path in settings.data_folder.iterdir() if path.suffix.lower() in ENDINGS and path.is_file()
        )
    except OSError:
        names = []
    if not names:
        st.caption("The folder of local files (DPGRAMS_DATA) has no CSV or Parquet file in it.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="own_local_row"):
        name = st.selectbox(
            "Or a file in this machine's folder, of any size",
            names,
            key="own_local",
            width=360,
            help="It is read in pieces. Only the columns that you pick must fit into memory.",
        )
        if st.button("Open it", icon=":material/folder_open:", key="own_open_local"):
            _read(own, "local", lambda: read_table(local_file(settings, name), limits=Limits.of_owner()))


def _read(own: Own, source: str, read: Callable[[], Table]) -> None:
    """Read a file, or say in a sentence why it cannot be used; the way to choose another stays where it is."""
    try:
        with st.spinner("Reading the file…"):
            table = read()
    except DataError as error:
        own.refuse(str(error))
    else:
        own.take(table, source)
    st.rerun()


def _uploaded(file: Any, settings: Settings) -> Table:
    return read_and_let_go(
        file,
        settings,
        lambda content, room, waiting: read_upload(content, file.name, settings, room=room, waiting=waiting),
    )


def _facts(own: Own, table: Table) -> None:
    """Names and the number of rows: treated as public, and said so."""
    names = ", ".join(f"`{name.replace('`', ' ')}`" for name in table.numeric[:12])
    more = f" and {len(table.numeric) - 12} more" if len(table.numeric) > 12 else ""
    st.markdown(f"**{table.n_rows:,} rows.** Numeric columns: {names}{more}.")
    st.caption(
        "Treated as public: how the file is written (that it can be read, the column names, which columns are numeric) "
        "and the number of rows. Nothing else about the file is shown, not even which rows miss a value."
    )
    for note in table.notes:
        st.caption(plain(note))
    if own.source == "example":
        st.caption("These people do not exist; the page treats them as if they did.")
    others = [column for column in table.columns if column.kind != "numeric"]
    if others:
        with st.expander(f"{_counted(len(others), 'column')} cannot be picked: why?", key="own_unusable"):
            for column in others[:30]:
                st.markdown(f"`{column.name.replace('`', ' ')}` {REASONS[column.kind]}")
    if st.button("Use another file", icon=":material/swap_horiz:", key="own_leave"):
        own.leave()
        st.rerun()
    words = "Another file clears this page. What was spent stays in the ledger."
    if own.source != "example":
        words += " The same file finds its budget again, and what was kept of its releases."
    st.caption(words)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
