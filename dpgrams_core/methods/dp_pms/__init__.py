"""DP-PMS (alg:dp-pms), private modal regression."""
