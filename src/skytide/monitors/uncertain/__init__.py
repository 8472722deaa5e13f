"""Probabilistic skylines over sliding windows, after Zhang, Lin, Zhang, Wang and Yu, ICDE 2009 (zhang09p)."""
