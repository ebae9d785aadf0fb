"""The laboratory: experiments on networks, small worlds to try cheats in, fuzz campaigns and their corpus."""
