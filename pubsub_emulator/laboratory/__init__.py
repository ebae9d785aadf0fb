"""The laboratory: experiments, small worlds to try cheats in, fuzz campaigns and their corpus."""
