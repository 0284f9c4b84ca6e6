"""The parts of the Tradeoff page."""
