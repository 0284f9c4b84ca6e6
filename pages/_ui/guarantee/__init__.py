"""The parts of the Guarantee page."""
