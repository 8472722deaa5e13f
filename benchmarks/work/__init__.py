"""The guard of work: what every algorithm does on small fixed inputs, counted, and compared with what it did before."""
