"""zhang09p: the experiments of Section V."""
