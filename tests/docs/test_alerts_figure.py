"""The picture of the alerts is that of a run."""

import alerts_figure


def test_the_picture_of_alerts_is_that_of_a_run() -> None:
    drawn = alerts_figure.drawing(alerts_figure.arrows())
    assert alerts_figure.PICTURE.read_text(encoding="utf-8") == drawn, (
        "`python docs/alerts_figure.py` draws it again"
    )


def test_a_publisher_is_told_of_its_entry_after_everything_else() -> None:
    words = [each.words for each in alerts_figure.arrows() if each.alert]
    assert words == [
        "relayer:add",
        "relay:add",
        "subscriber:add",
        "publisher:add",
        "subscriber:broadcaster:add",
        "publisher:broadcaster:add",
    ]
