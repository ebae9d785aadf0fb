"""The report of an audit: one page that can be opened offline, and its charts as pictures.

It is made only from the audit's tables.
"""

from typing import Final

PAGE: Final = "report.html"
"""The file name of the page."""
CHARTS: Final = "charts"
"""The folder with pictures beside the page."""
