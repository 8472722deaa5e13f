"""The protocols on a real network: one coordinator, many sites, and what is durable and readable of them."""
