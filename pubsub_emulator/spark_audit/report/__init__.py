"""The report of an audit: one page that opens offline, and its charts as pictures, from the audit's tables alone."""

from typing import Final

PAGE: Final = "report.html"
CHARTS: Final = "charts"
"""The folder of pictures beside the page."""
