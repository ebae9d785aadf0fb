"""The page of tables has every table and column, in the words of `spark_audit/history/schema.py`."""

from support.pages import filled

from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES


def test_the_page_shows_every_column_in_the_words_of_the_schema() -> None:
    page = filled("tables.md")
    for table in (*HISTORY_TABLES.values(), *RESULT_TABLES.values()):
        section = page.partition(f"### `{table.name}`, version {table.version}\n")[2].partition("\n### ")[0]
        assert section.strip().startswith(table.doc)
        for column in table.columns:
            assert f"`{column.name}`" in section
            assert f"`{column.name}`" in section or f"| `{column.name}` | {column.doc} |" in page
