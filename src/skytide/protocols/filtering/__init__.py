"""Few-message monitoring of many clients, after zhang09c: one record per client, one server."""
