"""The database that tests bring."""

import psycopg


def test_a_test_gets_an_empty_database_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        version = connection.info.server_version
    assert found == (0,)
    assert version >= 140000
