"""The dbt project of the examples: its sources are the schema, and its models keep their contract.

The SQL of the models runs in DuckDB without dbt, which is not a package of this project.
"""

import re
import runpy
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from support.spark_audit.audits import add_junk, drop_a_node, write_history

from pubsub_emulator.spark_audit.audit.run import audit

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "dbt"
VIEWS: Any = runpy.run_path(str(PROJECT / "views.py"))
MODELS = {
    model["name"]: model
    for model in yaml.safe_load((PROJECT / "models" / "models.yml").read_text())["models"]
}
_SOURCE = re.compile(r"\{\{ source\('audit', '(\w+)'\) \}\}")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dbt")
    write_history(folder / "history", 10, cheats={3: drop_a_node, 6: add_junk})
    audit(folder / "history", folder / "audit", engine="python")
    VIEWS["make_views"](str(folder / "audit"), str(folder / "views.duckdb"))
    return folder / "views.duckdb"


def test_the_sources_are_made_from_the_schema() -> None:
    found = (PROJECT / "models" / "sources.yml").read_text(encoding="utf-8")
    assert found == VIEWS["sources"](), "python examples/dbt/views.py --sources makes it"
    (source,) = yaml.safe_load(found)["sources"]
    assert all(each["description"].startswith("One row per ") for each in source["tables"])


def test_every_model_has_a_contract() -> None:
    assert {path.stem for path in (PROJECT / "models").glob("*.sql")} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_keeps_its_contract(name: str, database: Path) -> None:
    sql = _SOURCE.sub(r"audit.\1", (PROJECT / "models" / f"{name}.sql").read_text())
    with duckdb.connect(str(database), read_only=True) as connection:
        found = connection.sql(sql)
        columns = MODELS[name]["columns"]
        assert found.columns == [column["name"] for column in columns]
        types = [str(kind).lower() for kind in found.types]
        assert types == [column["data_type"] for column in columns]
        rows = found.fetchall()
    assert rows
    for place, column in enumerate(columns):
        if "constraints" in column:
            assert all(row[place] is not None for row in rows), column["name"]


def test_the_keys_of_the_sources_are_unique(database: Path) -> None:
    (source,) = yaml.safe_load((PROJECT / "models" / "sources.yml").read_text())["sources"]
    with duckdb.connect(str(database), read_only=True) as connection:
        for table in source["tables"]:
            key = table["data_tests"][0]["unique"]["column_name"]
            grouped = f"SELECT {key} AS place FROM audit.{table['name']} GROUP BY place"  # noqa: S608  # names of our own
            sql = f"{grouped} HAVING count(*) > 1"
            assert connection.sql(sql).fetchall() == [], table["name"]


def test_a_database_may_have_the_name_of_the_schema(database: Path) -> None:
    place = database.with_name("audit.duckdb")
    VIEWS["make_views"](str(database.parent / "audit"), str(place))
    with duckdb.connect(str(place), read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM audit.audit.chains").fetchall() != [(0,)]
