"""What the private methods are compared with: mean shift, PMS, LOWESS, k-means and DP-k-means."""
