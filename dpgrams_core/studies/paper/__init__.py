"""The paper's tables and experiments, and our runs beside them."""
