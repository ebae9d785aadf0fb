"""The report of an audit: one page that opens offline, and its charts as pictures, from the audit's tables alone.

tables › columns › numbers (series, breakdown, savings, delays, culprits) › charts (axes, style) › drawing › page
"""

from typing import Final

PAGE: Final = "report.html"
CHARTS: Final = "charts"
"""The folder of pictures beside the page."""
