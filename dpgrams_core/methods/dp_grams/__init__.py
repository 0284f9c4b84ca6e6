"""DP-GRAMS (alg:dpgrams) and DP-GRAMS-C (alg:dpgrams-c): starts, rounds and noise."""
