"""Questions that need many runs: comparisons, error sources, needed budgets, rates, the paper."""
