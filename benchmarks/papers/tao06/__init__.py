"""Tao, Papadias: Maintaining Sliding Window Skylines on Data Streams, TKDE 2006."""
