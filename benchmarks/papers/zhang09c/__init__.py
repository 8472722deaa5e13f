"""zhang09c: the experiments of Section 7."""
