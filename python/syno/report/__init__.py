"""Reports of a study: one self-contained page, and pictures of its front and its progress."""

from syno.report.gather import gather
from syno.report.model import Report
from syno.report.write import write_page, write_pictures

__all__ = ["Report", "gather", "write_page", "write_pictures"]
