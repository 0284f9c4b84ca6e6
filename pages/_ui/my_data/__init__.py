"""The parts of the My data page."""
