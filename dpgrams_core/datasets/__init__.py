"""The data sets of the paper, synthetic and real."""
